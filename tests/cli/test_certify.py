"""``reluflow certify``: margins, certificates, gaps."""

import itertools
import json
from functools import partial

import numpy as np
import pytest

from helpers import cli
from reluflow import Network, Undecided, example

run, document = partial(cli.run, "certify"), partial(cli.document, "certify")


@pytest.mark.parametrize(("name", "slope"), [("D1", 0.5), ("D6", 0.5), ("D8", 0.2)])
def test_the_best_network_is_certified(name, slope):
    found = document(name, "--slope", slope)
    known = example(name)
    for bound in ("lower", "upper"):
        assert known.agrees("global_margin", found["best"][bound], slope=slope, slack=1e-9)
    assert found["best"]["exact"] is True
    assert found["network"]["kkt"]["holds"] is True
    assert found["network"]["gap"]["at_most"] < 1e-9


@pytest.mark.parametrize("name", ["D1", "D2", "D3"])
def test_the_linear_separator_is_the_known_one(name):
    known, found = example(name), document(name)["separator"]
    assert known.agrees("gamma_star", found["margin"])
    assert known.agrees("w_star", found["direction"])
    assert found["support"] == known.answers["support"].tolist()


def test_a_kkt_network_that_is_not_optimal(tmp_path):
    # Three neurons on the symmetric set: KKT, but below the best margin 0.375
    known = example("D4")
    known.networks["kkt"].save(tmp_path / "kkt.npz")
    found = document("D4", "--network", tmp_path / "kkt.npz")
    assert found["network"]["kkt"]["holds"] is True
    assert found["network"]["kkt"]["residual"] < 1e-14
    assert found["network"]["margin"] == pytest.approx(0.356107225225, abs=1e-12)
    assert found["network"]["gap"]["at_least"] == pytest.approx(0.375 - 0.356107225225, abs=1e-9)
    assert found["network"]["linear"]["holds"] is False


def test_a_network_that_is_not_kkt_says_so(tmp_path):
    Network([[1.0, 0.3], [-1.0, -0.2]], [1.0, -1.0]).save(tmp_path / "net.npz")
    found = document("EX1", "--network", tmp_path / "net.npz")
    assert found["network"]["kkt"]["holds"] is False
    assert found["network"]["kkt"]["residual"] > 1e-3
    assert found["network"]["gap"]["at_least"] > 1e-3


def test_misclassifying_network(tmp_path):
    Network([[-1.0, 0.0]], [1.0]).save(tmp_path / "net.npz")
    found = document("EX1", "--network", tmp_path / "net.npz")
    assert found["network"]["margin"] < 0
    assert found["network"]["kkt"] is None
    assert "not classified" in run("EX1", "--network", tmp_path / "net.npz").stdout.replace("\n", " ")


def test_not_separable_data_carry_their_proof(tmp_path):
    file = tmp_path / "xor.csv"
    file.write_text("1,1,1\n-1,-1,1\n1,-1,-1\n-1,1,-1\n")
    found = document(file)
    assert found["separator"]["separable"] is False
    proof = found["separator"]["certificate"]
    X = np.array([[1, 1], [-1, -1], [-1, 1], [1, -1]], float)  # signed points
    np.testing.assert_allclose(np.array(proof["weights"]) @ X[proof["samples"]], 0.0, atol=1e-14)
    assert found["best"]["lower"] > 0  # a network of four neurons separates them
    text = run(file)
    assert text.exit_code == 0
    assert "vanishes" in text.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["EX1", "--slope", -0.5], "outside [0, 1]"),
        (["EX1", "--network", "absent.npz"], "there is no file"),
        (["EX1", "--train", "second"], "--train second"),
        (["EX1", "--budget", 0], "--budget 0"),
        (["EX1", "--budget", -5], "--budget -5"),
        (["EX1", "--tolerance", -1], "--tolerance = -1.0: a number in [0, 1)"),
        (["EX1", "--tolerance", "nan"], "--tolerance = nan"),
        (["EX1", "--tolerance", "inf"], "--tolerance = inf"),
        (["EX1", "--time-limit", 0], "positive number of seconds"),
        (["EX1", "--time-limit", "nan"], "positive number of seconds"),
        (["EX1", "--no-optimum"], "give one with --network"),
        (["EX1", "--no-optimum", "--budget", 5, "--network", "x.npz"], "give one of them"),
        (["absent.csv"], "no file"),
    ],
)
def test_bad_input(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr.replace("\n", " ")


def test_contradicting_slopes(tmp_path):
    Network([[1.0, 0.0]], [1.0], slope=0.2).save(tmp_path / "net.npz")
    result = run("EX1", "--network", tmp_path / "net.npz", "--slope", 0.3)
    assert result.exit_code == 2
    assert "contradicts" in result.stderr


# -- what is found when there is not enough time -----------------------------------------------------------


def test_out_of_time_everything_found_is_printed(tmp_path, monkeypatch):
    known = example("D4")
    known.networks["kkt"].save(tmp_path / "kkt.npz")
    seen = set()
    for seconds in (1, 4, 8, 30, 1000):
        # A clock that goes on by a second whenever it is looked at: what is reached does not depend on the machine.
        ticks = itertools.count()
        monkeypatch.setattr("reluflow.problem.time.time.monotonic", lambda ticks=ticks: float(next(ticks)))
        result = run("D4", "--network", tmp_path / "kkt.npz", "--time-limit", seconds, "--json")
        found = json.loads(result.stdout)
        assert result.exit_code == (3 if found["unfinished"] else 0)
        best = found["best"]
        assert best["lower"] <= 0.375 * (1 + 1e-9)
        assert best["upper"] >= 0.375 * (1 - 1e-9)
        assert found["network"]["margin"] == pytest.approx(0.356107225225, abs=1e-12)
        seen.add(result.exit_code)
        text = run("D4", "--network", tmp_path / "kkt.npz", "--time-limit", seconds)
        assert (text.exit_code == 3) == ("Unfinished: the time limit ended" in text.stdout)
    assert seen == {0, 3}


@pytest.mark.parametrize("where", ["reluflow.margins.linearity", "reluflow.margins.global_.search.approach"])
def test_interrupted_everything_found_is_printed(tmp_path, monkeypatch, where):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupt)
    known = example("D4")
    known.networks["kkt"].save(tmp_path / "kkt.npz")
    result = run("D4", "--network", tmp_path / "kkt.npz", "--json")
    assert result.exit_code == 130
    found = json.loads(result.stdout)
    assert found["unfinished"].startswith("interrupted")
    assert found["separator"] is not None
    assert found["network"]["kkt"]["holds"] is True
    if found["best"] is not None:
        assert found["best"]["lower"] <= 0.375 * (1 + 1e-9)
        assert found["best"]["upper"] >= 0.375 * (1 - 1e-9)
    assert (found["best"] is None) == ("linearity" in where)


def test_the_optimum_can_be_left_out(tmp_path):
    known = example("D4")
    known.networks["kkt"].save(tmp_path / "kkt.npz")
    found = document("D4", "--network", tmp_path / "kkt.npz", "--no-optimum")
    assert found["best"] is None
    assert found["network"]["gap"] is None
    assert found["network"]["kkt"]["holds"] is True
    text = run("D4", "--network", tmp_path / "kkt.npz", "--no-optimum").stdout
    assert "largest margin" not in text


def test_a_limit_that_is_not_confirmed_is_no_answer(tmp_path, monkeypatch):
    def undecided(problem, **options):
        raise Undecided("no limit could be confirmed.")

    monkeypatch.setattr("reluflow.dynamics.limit", undecided)
    Network([[1.0, 0.3], [-1.0, -0.2]], [1.0, -1.0]).save(tmp_path / "net.npz")
    result = run("EX1", "--network", tmp_path / "net.npz", "--limit")
    assert result.exit_code == 3
    assert "undecided: no limit could be confirmed" in " ".join(result.stdout.split())
    assert "largest margin of any network" in result.stdout
