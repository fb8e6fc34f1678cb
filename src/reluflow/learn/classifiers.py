"""The three classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..dynamics import Limit, Trajectory, descend, limit
from ..margins import KKT, MarginSolution, kkt, max_margin
from ..problem import Dataset, Network, NotSeparable, Problem, ProblemError, Stopped, Undecided
from ..problem.types import Array
from ..problem.words import count
from .base import Drawn, TwoClasses
from .errors import NoCertificate, NoSeparator

_REMEDY = "Another random_state or a larger width may do; on_undecided='best' takes the best network found."


class FlowLimitClassifier(Drawn):
    r"""The classifier at time infinity: the certified limit of the gradient flow from a small start.

    ``fit`` follows the flow of a two-layer ReLU network to the limit of its direction (`reluflow.limit`), a KKT point
    of the margin problem with a certificate. Nothing is tuned: no learning rate, no number of epochs. Where a feature
    is much larger than the others it decides alone, so put ``StandardScaler`` before it.

    Parameters
    ----------
    width : int
        Number of neurons.
    slope : float
        Slope of the activation for negative input; 0 is ReLU.
    bias : bool or float
        Give every sample a constant feature, 1 or of this value, that stands for biases in the first layer.
    scale : float, optional
        Size of the start; default: 1e-6.
    scheme : str
        How the start is drawn, as for `reluflow.initialize`.
    loss : {"logistic", "exponential"}
    train : {"both", "first"}
        Which layers are trained.
    rtol : float
        Tolerance of the integration; 1e-6 is faster and nearly always enough, since the limit itself is solved for.
    max_steps : int
        Most steps of integration.
    time_limit : float, optional
        Most seconds for the flow; what is found then depends on the machine.
    on_undecided : {"raise", "best"}
        What to do where no limit is confirmed or points are never classified: raise `NoCertificate`, or warn and use
        the network at the end of the flow.
    random_state : int, RandomState or None
        Of the draw.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; f is positive for the second.
    network_ : Network
        Of unit norm; its last input is the constant feature.
    margin_ : float
        Its normalised margin; not positive where samples are not classified.
    certificate_ : KKT or None
        What shows that it is a KKT point; None for one that is only the best found.
    limit_ : Limit or None
        All that was found of the limit.
    trajectory_ : Trajectory
        The flow.
    problem_ : Problem
        What was solved, for the other verbs of reluflow.
    findings_ : list of Finding
        Which theorems apply.
    linear_ : bool or None
        Whether it decides like a linear function; then ``coef_`` and ``intercept_`` are that one.

    Examples
    --------
    >>> X, y = [[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0], [-1.0, -2.5]], ["yes", "yes", "no", "no"]
    >>> found = FlowLimitClassifier(width=8, bias=False, random_state=0).fit(X, y)
    >>> found.predict([[3.0, 0.5], [-1.0, -1.0]]), round(found.margin_, 10), found.certificate_.is_kkt(1e-12)
    (array(['yes', 'no'], dtype='<U3'), 0.5840985669, True)
    """

    def __init__(
        self,
        width: int = 50,
        slope: float = 0.0,
        bias: float | bool = True,
        *,
        scale: float | None = None,
        scheme: str = "balanced",
        loss: str = "logistic",
        train: str = "both",
        rtol: float = 1e-9,
        max_steps: int = 100_000,
        time_limit: float | None = None,
        on_undecided: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.width, self.slope, self.bias = width, slope, bias
        self.scale, self.scheme, self.loss, self.train = scale, scheme, loss, train
        self.rtol, self.max_steps, self.time_limit = rtol, max_steps, time_limit
        self.on_undecided, self.random_state = on_undecided, random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> FlowLimitClassifier:
        """Find the limit of the flow on the samples; see the class."""
        data = self._samples(X, y)
        self.problem_ = self._problem(data)
        self.limit_: Limit | None = None
        self.certificate_: KKT | None = None
        try:
            end = limit(
                self.problem_,
                rtol=self.rtol,
                max_steps=self.max_steps,
                time_limit=self.time_limit,
                optimum=False,
                progress=False,
            )
        except Undecided as error:
            self._take_best(error.partial, str(error))
        else:
            self.limit_, self.trajectory_ = end, end.trajectory
            if end.kind == "margin":
                self.network_, self.certificate_ = end.network, end.kkt
            else:
                self._take_best(end, f"{end.reason}.")
        self.margin_ = float(self.network_.normalized_margin(data, self.problem_.train))
        self._linear(self.network_)
        return self

    def _take_best(self, found: Any, why: str) -> None:
        run = found.trajectory if isinstance(found, Limit) else found
        if self.on_undecided == "raise" or not isinstance(run, Trajectory) or not _is_there(run.final):
            raise NoCertificate(f"no classifier at time infinity: {why} {_REMEDY}", found) from None
        self._warn(why)
        self.trajectory_, self.network_ = run, run.final.normalized(self.problem_.train)

    def _values(self, points: Array) -> Array:
        return self.network_.normalized_outputs(points, self.problem_.train)


class DescentClassifier(Drawn):
    r"""A two-layer ReLU network trained in steps, as people run it: gradient descent, SGD or Adam.

    Beside `FlowLimitClassifier` it shows how far a finite run is from the limit.

    Parameters
    ----------
    width, slope, bias, scheme, loss, train, on_undecided, random_state
        As for `FlowLimitClassifier`; ``random_state`` also decides the order of the samples. ``on_undecided`` is for
        runs that diverge or end with samples on the wrong side: by default a finite run promises nothing, so the first
        is raised and the second accepted.
    scale : float, optional
        Size of the start; default: 0.01, times a draw of the scheme.
    method : {"gd", "sgd", "adam"}
    step : float, optional
        The learning rate; default as for `reluflow.descend`.
    steps, epochs : int, optional
        How long; default: 1000 steps.
    batch : int, optional
        Batch size for SGD and Adam.
    schedule : str
        As for `reluflow.descend`.
    until_loss : float, optional
        Stop early there.

    Attributes
    ----------
    classes_, network_, margin_, problem_, findings_, linear_, coef_, intercept_, trajectory_
        As for `FlowLimitClassifier`; ``network_`` is the last iterate as it is.
    certificate_ : KKT or None
        How far the last iterate is from a KKT direction; None where it does not classify every sample.

    Examples
    --------
    >>> X, y = [[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0], [-1.0, -2.5]], [1, 1, 0, 0]
    >>> found = DescentClassifier(width=8, step=0.5, random_state=0).fit(X, y)
    >>> found.score(X, y), found.predict_proba([[3.0, 3.0]])[0].round(2)
    (1.0, array([0., 1.]))
    """

    def __init__(
        self,
        width: int = 50,
        slope: float = 0.0,
        bias: float | bool = True,
        *,
        method: str = "gd",
        step: float | None = None,
        steps: int | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        schedule: str = "fixed",
        until_loss: float | None = None,
        scale: float | None = 0.01,
        scheme: str = "balanced",
        loss: str = "logistic",
        train: str = "both",
        on_undecided: str = "raise",
        random_state: Any = None,
    ) -> None:
        self.width, self.slope, self.bias = width, slope, bias
        self.method, self.step, self.steps, self.epochs = method, step, steps, epochs
        self.batch, self.schedule, self.until_loss = batch, schedule, until_loss
        self.scale, self.scheme, self.loss, self.train = scale, scheme, loss, train
        self.on_undecided, self.random_state = on_undecided, random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> DescentClassifier:
        """Train on the samples; see the class."""
        data = self._samples(X, y)
        self.problem_ = self._problem(data)
        try:
            self.trajectory_ = descend(
                self.problem_,
                self.method,
                step=self.step,
                steps=1000 if self.steps is None and self.epochs is None else self.steps,
                epochs=self.epochs,
                batch=self.batch,
                schedule=self.schedule,
                until_loss=self.until_loss,
                seed=self._seed,
                progress=False,
            )
        except Undecided as error:
            if self.on_undecided == "raise" or not isinstance(error.partial, Trajectory):
                raise NoCertificate(f"no classifier: {error}", error.partial) from None
            self._warn(str(error))
            self.trajectory_ = error.partial
        self.network_ = self.trajectory_.final
        if not _is_there(self.network_):
            raise NoCertificate("every weight is zero at the end; start with a larger scale.", self.trajectory_)
        self.margin_ = float(self.network_.normalized_margin(data, self.problem_.train))
        self.certificate_ = _certificate(self.problem_, self.trajectory_)
        self._linear(self.network_)
        return self

    def _values(self, points: Array) -> Array:
        return self.network_.outputs(points)

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Return the probabilities of the two classes under the logistic loss, shape (n, 2)."""
        f = self.decision_function(X)
        plus = np.exp(-np.logaddexp(0.0, -f))
        return np.column_stack([np.exp(-np.logaddexp(0.0, f)), plus])


class MaxMarginClassifier(TwoClasses):
    r"""The widest linear separator of the samples, with a certificate: a hard-margin support vector machine, verified.

    Parameters
    ----------
    bias : bool or float
        Allow an offset, as the weight of a constant feature of 1 or of this value. It counts in the norm; the larger
        the value, the less.
    on_undecided : {"raise", "best"}
        What to do where no linear function separates the samples: raise `NoSeparator`, or warn and use the linear
        function of least logistic loss.

    Attributes
    ----------
    classes_, coef_, intercept_, findings_
        ``coef_`` and ``intercept_`` give every sample a margin of at least 1.
    margin_ : float
        Distance of the closest sample (with its constant feature) from the boundary; not positive where samples are on
        the wrong side.
    certificate_ : MarginSolution or None
        Multipliers and residuals.
    support_ : ndarray of int
        Samples on the margin.
    problem_ : Problem
        The separator as a network of two neurons, for the other verbs of reluflow.

    Examples
    --------
    >>> found = MaxMarginClassifier(bias=False).fit([[2.0, 1.0], [1.0, 2.0], [-3.0, -1.0]], ["b", "b", "a"])
    >>> found.coef_, found.margin_.__round__(9), found.support_, found.certificate_.verified
    (array([[0.33333333, 0.33333333]]), 2.121320344, array([0, 1]), True)
    """

    linear_ = True

    def __init__(self, bias: float | bool = True, *, on_undecided: str = "raise") -> None:
        self.bias = bias
        self.on_undecided = on_undecided

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> MaxMarginClassifier:
        """Find the separator; see the class."""
        data = self._samples(X, y)
        self.certificate_: MarginSolution | None = None
        try:
            self.certificate_ = max_margin(data)
            self._direction: Array | None = self.certificate_.w
            self.support_ = self.certificate_.support
        except NotSeparable as error:
            if self.on_undecided == "raise":
                raise NoSeparator(
                    f"{error} on_undecided='best' takes the linear function of least logistic loss; "
                    "FlowLimitClassifier needs no linear one.",
                    error.certificate,
                    error.residual,
                ) from None
            self._take_best(data, f"no linear function classifies all {count(data.n, 'sample')}.")
        except Stopped:
            raise
        except Undecided as error:
            if self.on_undecided == "raise":
                raise NoCertificate(str(error), error.partial) from None
            self._take_best(data, str(error))
        w = np.asarray(self._direction)
        self.network_ = Network(np.stack([w, -w]), [1.0, -1.0])
        self.problem_ = Problem(data, self.network_)
        self.margin_ = float((data.signed @ w).min() / np.linalg.norm(w))
        return self

    def _take_best(self, data: Dataset, why: str) -> None:
        from sklearn.linear_model import LogisticRegression

        self._warn(why)
        # Not separable, so there is a finite minimiser; a pull towards 0 this weak moves no digit that matters.
        best = LogisticRegression(C=1e10, fit_intercept=False, tol=1e-8, max_iter=10_000).fit(data.X, data.y)
        self._direction = best.coef_[0]
        self.support_ = np.empty(0, dtype=np.intp)

    def _values(self, points: Array) -> Array:
        return np.asarray(points @ self._part("coef_"))


def _is_there(net: Network) -> bool:
    return bool(np.isfinite(net.log_norm()))


def _certificate(problem: Problem, run: Trajectory) -> KKT | None:
    """Hold the end of a run against the KKT conditions, where it classifies every sample."""
    q = float(run.measures.q_min[-1])
    if not q > 0:
        return None
    try:
        return kkt(problem.data, run.final, problem.train, active_tol=min(0.9, 20 / q), kink_tol=min(1e-2, 0.1 / q))
    except (ProblemError, Undecided):
        return None
