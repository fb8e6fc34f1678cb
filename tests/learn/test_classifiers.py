"""The classifiers for scikit-learn: its own checks, and every number by a second way."""

import json
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import reluflow as rf

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'reluflow[learn]'")
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import ConvergenceWarning, NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from reluflow.learn import (  # noqa: E402
    DescentClassifier,
    FlowLimitClassifier,
    MaxMarginClassifier,
    NoCertificate,
    NoSeparator,
)

POINTS = np.array([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0], [-1.0, -2.5]])
WORDS = np.array(["yes", "yes", "no", "no"])
XOR = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])

# All of scikit-learn's checks, those for arrays of other libraries among them, which run only with this variable set
# before SciPy is imported: hence a process of its own. Small and short, since they fit a hundred times.
CHECKS = """
import json, warnings
warnings.simplefilter("ignore")
from sklearn.utils.estimator_checks import check_estimator
from reluflow.learn import DescentClassifier, FlowLimitClassifier, MaxMarginClassifier
makers = [
    MaxMarginClassifier(on_undecided="best"),
    DescentClassifier(),
    FlowLimitClassifier(width=4, slope=0.5, max_steps=80, on_undecided="best"),
]
found = {}
for maker in makers:
    rows = check_estimator(maker, on_fail=None, on_skip=None)
    found[type(maker).__name__] = [(row["check_name"], row["status"], repr(row["exception"])) for row in rows]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def checks():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", CHECKS], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["MaxMarginClassifier", "DescentClassifier", "FlowLimitClassifier"])
def test_every_check_of_scikit_learn_passes_and_none_is_skipped(checks, name):
    assert len(checks[name]) > 50
    assert [row for row in checks[name] if row[1] != "passed"] == []


# -- what they find -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True, 0.5])
def test_the_limit_is_that_of_the_verb(bias):
    found = FlowLimitClassifier(width=8, bias=bias, random_state=3).fit(POINTS, WORDS)
    end = rf.limit(found.problem_, optimum=False, progress=False)
    assert end.kind == "margin"
    assert found.margin_ == pytest.approx(end.margin, rel=1e-12)
    assert found.certificate_.is_kkt(1e-9)
    data = found.problem_.data
    assert data.d == 2 + (bias is not False)
    assert found.decision_function(POINTS) == pytest.approx(end.network.outputs(data.X), rel=1e-9)
    assert list(found.predict(POINTS)) == list(WORDS)
    assert list(found.classes_) == ["no", "yes"]
    assert {one.claim for one in found.findings_} >= {"PL-T1", "LL-T3.1"}
    assert found.findings_ is found.findings_


def test_the_margin_of_orthogonally_separable_data_is_that_of_the_theorem():
    """PL-C1: 1 / (2 (|w+| + |w-|)), from the two classes alone."""
    found = FlowLimitClassifier(width=20, bias=False, random_state=0).fit(POINTS, [1, 1, -1, -1])
    plus, minus = rf.class_margins(rf.Dataset(POINTS, [1, 1, -1, -1]))
    assert found.margin_ == pytest.approx(1 / (2 * (1 / plus.margin + 1 / minus.margin)), rel=1e-9)


def test_descent_is_that_of_the_verb_and_its_probabilities_add_up():
    found = DescentClassifier(width=8, method="sgd", batch=2, epochs=30, step=0.2, random_state=1).fit(POINTS, WORDS)
    again = rf.descend(
        found.problem_, "sgd", batch=2, epochs=30, step=0.2, seed=found.trajectory_.settings["seed"], progress=False
    )
    assert found.network_ == again.final
    X = np.random.default_rng(0).normal(size=(20, 2)) * 50
    p = found.predict_proba(X)
    assert p.sum(axis=1) == pytest.approx(np.ones(20), abs=1e-15)
    assert p[:, 1] == pytest.approx(1 / (1 + np.exp(-found.decision_function(X))), rel=1e-12)
    assert found.margin_ == pytest.approx(found.network_.normalized_margin(found.problem_.data))


def test_the_widest_separator_is_that_of_an_svm():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 4))
    X = X[np.abs(X[:, 0] + X[:, 1] - 1.0) > 0.3]
    y = np.where(X[:, 0] + X[:, 1] > 1.0, "b", "a")
    found = MaxMarginClassifier(bias=False)
    with pytest.raises(NoSeparator, match=r"on_undecided='best'") as refused:
        found.fit(X, y)
    signed = X * np.where(y == "b", 1, -1)[:, None]
    assert np.abs(refused.value.certificate @ signed).max() < 1e-12
    assert refused.value.certificate.min() >= 0
    wide = np.column_stack([X, np.ones(len(X))])
    found = MaxMarginClassifier(bias=False).fit(wide, y)
    # An SVM with its offset held at 0 by symmetric data is the same program.
    svm = SVC(kernel="linear", C=1e9, tol=1e-10).fit(
        np.vstack([wide, -wide]), np.append(y, np.where(y == "b", "a", "b"))
    )
    assert found.coef_ == pytest.approx(svm.coef_, rel=1e-5, abs=1e-6)
    assert found.margin_ == pytest.approx(1 / np.linalg.norm(svm.coef_), rel=1e-6)
    assert MaxMarginClassifier().fit(X, y).coef_[0] == pytest.approx(found.coef_[0, :-1], rel=1e-9)
    assert MaxMarginClassifier().fit(X, y).intercept_ == pytest.approx(found.coef_[0, -1:], rel=1e-9)
    assert found.certificate_.verified
    q = found.decision_function(wide) * np.where(y == "b", 1, -1)
    assert q.min() == pytest.approx(1.0, abs=1e-9)
    assert set(found.support_) == set(np.flatnonzero(q < 1 + 1e-9))


def test_coefficients_where_the_network_is_linear():
    mirrored, labels = np.vstack([POINTS, -POINTS]), np.append(WORDS, WORDS[::-1])
    found = FlowLimitClassifier(width=10, slope=0.3, bias=False, random_state=0).fit(mirrored, labels)
    assert found.linear_
    grid = np.random.default_rng(0).normal(size=(200, 2))
    same = np.sign(grid @ found.coef_[0] + found.intercept_) == np.sign(found.decision_function(grid))
    assert same.all()
    bent = FlowLimitClassifier(width=10, random_state=0, bias=False).fit(POINTS, WORDS)
    assert bent.linear_ is False
    assert not hasattr(bent, "coef_")
    with pytest.raises(AttributeError, match=r"does not decide like a linear function.*network_"):
        bent.coef_  # noqa: B018


# -- scikit-learn around them ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [FlowLimitClassifier(8, 0.0, False, random_state=0), DescentClassifier(8, random_state=3), MaxMarginClassifier()],
)
def test_clone_pickle_and_the_same_draw(made):
    from joblib import Parallel, delayed

    first, second = clone(made).fit(POINTS, WORDS), clone(made).fit(POINTS, WORDS)
    assert np.array_equal(first.decision_function(POINTS), second.decision_function(POINTS))
    again = pickle.loads(pickle.dumps(first))
    assert np.array_equal(first.decision_function(POINTS), again.decision_function(POINTS))
    assert again.margin_ == first.margin_
    (there,) = Parallel(n_jobs=1)(delayed(clone(made).fit)(POINTS, WORDS) for _ in range(1))
    assert there.margin_ == first.margin_
    with pytest.raises(NotFittedError):
        clone(made).predict(POINTS)


def test_pipeline_and_grid_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 2)) * [1.0, 100.0] + 5.0
    y = np.where(X[:, 0] + X[:, 1] / 100 > 5.05, 7, 3)
    search = GridSearchCV(
        make_pipeline(
            StandardScaler(), FlowLimitClassifier(4, rtol=1e-6, random_state=0, on_undecided="best", max_steps=100)
        ),
        {"flowlimitclassifier__slope": [0.3, 0.6]},
        cv=2,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(X, y)
    assert search.best_score_ > 0.7
    assert set(search.predict(X)) == {3, 7}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_and_their_names(library):
    frames = pytest.importorskip(library, reason=f"{library} is not installed: pip install {library} runs this test")
    frame = frames.DataFrame({"size": POINTS[:, 0], "cost": POINTS[:, 1]})
    found = MaxMarginClassifier().fit(frame, WORDS)
    assert list(found.feature_names_in_) == ["size", "cost"]
    assert found.problem_.data.names == ("size", "cost", "bias")
    assert list(found.predict(frame)) == list(WORDS)
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(frame[["cost", "size"]])


# -- where there is no answer -----------------------------------------------------------------------


def test_a_start_that_leaves_points_behind():
    """One neuron cannot see both sides of an XOR: the flow stalls, and says so."""
    made = FlowLimitClassifier(1, bias=False, random_state=0)
    with pytest.raises(
        NoCertificate, match=r"(?s)no classifier at time infinity.*width.*on_undecided='best'"
    ) as refused:
        made.fit(XOR, [1, 1, 0, 0])
    assert isinstance(refused.value, (ValueError, rf.Undecided))
    assert refused.value.partial is not None
    made.set_params(on_undecided="best")
    with pytest.warns(ConvergenceWarning, match="best network found is used"):
        made.fit(XOR, [1, 1, 0, 0])
    assert made.certificate_ is None
    assert made.score(XOR, [1, 1, 0, 0]) >= 0.5
    assert made.margin_ <= 0


def test_no_separator():
    with pytest.raises(ValueError, match="no vector has a positive inner product"):
        MaxMarginClassifier().fit(XOR, [1, 1, 0, 0])
    with pytest.warns(ConvergenceWarning, match="no linear function classifies all 4 samples"):
        found = MaxMarginClassifier(on_undecided="best").fit(XOR * [[3], [1], [1], [1]], [1, 1, 0, 0])
    assert found.certificate_ is None
    assert found.margin_ <= 0
    # Where the loss is least its gradient vanishes.
    data = found.problem_.data
    q = data.signed @ np.append(found.coef_, found.intercept_)
    assert np.abs((1 / (1 + np.exp(q))) @ data.signed).max() < 1e-5


def test_a_run_that_overflows():
    made = DescentClassifier(8, step=1e300, steps=50, scale=1.0, random_state=0)
    with pytest.raises(NoCertificate, match=r"step.*too large"):
        made.fit(POINTS, WORDS)


BAD = {
    "three classes": ({}, POINTS, [0, 1, 2, 1], "Only binary classification is supported.*3 classes.*Keep two"),
    "one class": ({}, POINTS, [1, 1, 1, 1], "one class only.*two are needed"),
    "NaN": ({}, np.where(POINTS == 2.0, np.nan, POINTS), WORDS, "contains NaN"),
    "no samples": ({}, POINTS[:0], WORDS[:0], "0 sample"),
    "continuous labels": ({}, POINTS, [0.5, 1.5, 2.5, 0.1], "Unknown label type"),
    "lengths differ": ({}, POINTS, WORDS[:3], "inconsistent numbers of samples"),
    "text features": ({}, [["a", "b"]] * 4, WORDS, "could not convert string"),
    "a point with two labels": ({}, POINTS[[0, 0, 1, 2]], WORDS[[0, 2, 1, 3]], "same point with labels"),
    "width 0": ({"width": 0}, POINTS, WORDS, "width"),
    "slope 2": ({"slope": 2.0}, POINTS, WORDS, r"outside \[0, 1\]"),
    "bias 0": ({"bias": 0.0}, POINTS, WORDS, "bias = 0.0: True"),
    "no such scheme": ({"scheme": "xavier"}, POINTS, WORDS, "scheme = 'xavier' is not known"),
    "no such loss": ({"loss": "hinge"}, POINTS, WORDS, "loss 'hinge' is not known"),
    "no such answer": ({"on_undecided": "guess"}, POINTS, WORDS, "choose 'raise' or 'best'"),
    "a zero point": ({"bias": False}, POINTS * [[0], [1], [1], [1]], WORDS, "zero row"),
}  # fmt: skip


@pytest.mark.parametrize("made", [FlowLimitClassifier, DescentClassifier, MaxMarginClassifier])
@pytest.mark.parametrize("case", BAD)
def test_bad_uses_are_value_errors_that_teach(made, case):
    settings, X, y, message = BAD[case]
    if not set(settings) <= set(made().get_params()):
        with pytest.raises(TypeError):
            made(**settings)
        return
    with pytest.raises(ValueError, match=f"(?s){message}"):
        made(**settings).fit(X, y)


@pytest.mark.parametrize("made", [FlowLimitClassifier, DescentClassifier, MaxMarginClassifier])
def test_labels_0_and_1_as_floats_are_two_classes(made):
    drawn = {"random_state": 0} if "random_state" in made().get_params() else {}
    found = made(**drawn).fit(POINTS, np.array([1.0, 1.0, 0.0, 0.0]))
    assert np.array_equal(found.predict(POINTS), [1.0, 1.0, 0.0, 0.0])
    assert found.classes_.dtype == np.float64


def test_new_points_with_other_columns():
    with pytest.raises(ValueError, match="3 features, but MaxMarginClassifier is expecting 2"):
        MaxMarginClassifier().fit(POINTS, WORDS).predict(np.ones((2, 3)))


def test_without_scikit_learn_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['sklearn.base'] = None\n"
        "import reluflow as rf\n"
        "try: rf.learn.MaxMarginClassifier\n"
        "except rf.ProblemError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "pip install 'reluflow[learn]'" in done.stdout, done.stderr
