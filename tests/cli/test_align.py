"""``reluflow align``: the table, the document, the picture."""

from functools import partial

import numpy as np
import pytest

from helpers import cli
from reluflow import Network, example

run, document = partial(cli.run, "align"), partial(cli.document, "align")


def test_the_text_names_fates_extrema_and_bounds():
    result = run("EX1", "--width", 8)
    assert result.exit_code == 0
    for word in ("8 aligned", "Strict local extrema", "all of them", "Where the neurons go", "t_1' ="):
        assert word in result.stdout


def test_the_document_agrees_with_the_worked_example(tmp_path):
    # EX1 of the zoo: neuron (1, -2) with negative output takes one sample on board at 0.0756507616 (unit force, sum)
    Network.balanced([[-1.0, 1.0], [1.0, -2.0], [-1.0, -0.9]], [-1, -1, 1], log_scale=-3000).save(tmp_path / "net.npz")
    found = document("EX1", "--network", tmp_path / "net.npz", "--loss", "exponential", "--reduction", "sum")
    times = [neuron["last_event"] for neuron in found["neurons"]]
    np.testing.assert_allclose(times, [0.1066340283, 0.0756507616, 1.0876512410], atol=6e-11)
    gains = [neuron["log_gain"] for neuron in found["neurons"]]
    np.testing.assert_allclose([gains[0], gains[2]], [0.1919420204, -4.3685457189], atol=6e-11)
    assert found["fates"] == {"aligned": 3}
    assert {row["extremal"] for row in found["groups"]} == {0, 1}
    assert [e["kind"] for e in found["extremal_directions"]["directions"]] == ["max", "min"]
    assert found["last_event"] == pytest.approx(max(times))


def test_bounds_are_those_of_the_theorem_in_the_problems_clock():
    found = document("EX1", "--width", 4)
    # mean logistic on four samples runs at speed 1/8; the bound depends on the draw through zeta_2 >= xi
    assert found["bounds"]["t_1_sharp"] == pytest.approx(8 * example("EX1").answers["t_1_prime"], rel=1e-9)
    assert document("EX1", "--width", 4, "--slope", 0.5)["bounds"] is None
    assert document("EX1", "--width", 4, "--scheme", "gaussian")["bounds"] is None


@pytest.mark.parametrize("data", ["EX2", "ALG-EARLY", "D9"])
def test_picture(tmp_path, data):
    file = tmp_path / "early.png"
    result = run(data, "--width", 12, "--plot", file)
    assert result.exit_code == 0, result.stderr
    assert file.read_bytes().startswith(b"\x89PNG")
    assert str(file) in result.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["EX3", "--width", 3, "--plot", "x.png"], "data in the plane"),
        (["EX1", "--width", 3, "--plot", "/no/such/folder/x.png"], "cannot be written"),
        (["EX1", "--width", 3, "--plot", "x.nonsense"], "cannot be written"),
        (["EX1", "--width", 0], "width must be a positive integer"),
        (["EX1", "--slope", 2], "outside [0, 1]"),
        (["EX1", "--scheme", "xavier"], "choose one of balanced"),
        (["EX1", "--loss", "hinge"], "loss 'hinge'"),
        (["EX1", "--branch", "left"], "--branch left"),
        (["EX1", "--network", "absent.npz"], "there is no file absent.npz"),
        (["EX1", "--scale", 1e-6, "--log-scale", -3], "two names for one thing"),
        (["EX1", "--train", "second"], "--train second"),
    ],
)
def test_bad_input(arguments, words, tmp_path):
    assert "Traceback" not in cli.refused(tmp_path, words, "align", *arguments).output


def test_network_of_another_dimension(tmp_path):
    Network([[1.0, 2.0, 3.0]], [1.0]).save(tmp_path / "net.npz")
    result = run("EX1", "--network", tmp_path / "net.npz")
    assert result.exit_code == 2
    assert "2 features but the network has 3 inputs" in result.stderr.replace("\n", " ")
