"""What the classifiers share: samples in, labels out, the problem behind them, what theory says of it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from ..margins import linearity
from ..problem import Dataset, Network, Problem, ProblemError, initialize
from ..problem.checks import is_number
from ..problem.initialize import Scheme
from ..problem.types import Array
from ..theory import Finding, check

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ProblemError(
        "the classifiers need scikit-learn 1.6 or newer, which is not installed; pip install 'reluflow[learn]' brings "
        "it."
    ) from None

_UNDECIDED = ("raise", "best")


class TwoClasses(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of two classes by the sign of a function; subclasses have ``bias`` and ``on_undecided``."""

    bias: float | bool
    on_undecided: str
    network_: Network

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    # -- samples in ------------------------------------------------------------------------------------

    def _samples(self, X: Any, y: Any) -> Dataset:
        """Check the samples by scikit-learn's own tools and make a dataset of them; remember the classes."""
        if self.on_undecided not in _UNDECIDED:
            raise ProblemError(f"on_undecided = {self.on_undecided!r} is not known; choose 'raise' or 'best'.")
        points, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        kinds, side = np.unique(labels, return_inverse=True)
        if kinds.size > 2:
            # The first sentence is scikit-learn's own.
            raise ProblemError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}: y has "
                f"{kinds.size} classes ({_few(kinds)}). Keep two of them, or wrap this in "
                "sklearn.multiclass.OneVsRestClassifier."
            )
        if kinds.size < 2:
            raise ProblemError(
                f"y holds one class only ({kinds[0]!r}), but two are needed: there is nothing to tell apart; add "
                "samples of the other class."
            )
        self.classes_ = kinds
        names = getattr(self, "feature_names_in_", None)
        return Dataset.prepared_from(
            points,
            np.where(side == 1, 1.0, -1.0),
            names=None if names is None else names.tolist(),
            bias=self._constant(),
        )

    def _constant(self) -> float | None:
        """Return the value of the constant feature that stands for biases."""
        if self.bias is False:
            return None
        value = 1.0 if self.bias is True else self.bias
        if not is_number(value) or not np.isfinite(value) or value == 0:
            raise ProblemError(
                f"bias = {self.bias!r}: True (for 1), False, or the value of the constant feature is needed, not 0."
            )
        return float(value)

    def _points(self, X: Any) -> Array:
        check_is_fitted(self)
        points: Array = validate_data(self, X, reset=False, dtype=np.float64)
        constant = self._constant()
        return points if constant is None else np.column_stack([points, np.full(len(points), constant)])

    # -- labels out ------------------------------------------------------------------------------------

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Return f at the rows of X; positive for ``classes_[1]``."""
        return self._values(self._points(X))

    def _values(self, points: Array) -> Array:
        raise NotImplementedError

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the class of every row of X; where f is exactly 0, the first."""
        side = (self.decision_function(X) > 0).astype(np.intp)
        found: npt.NDArray[Any] = self.classes_[side]
        return found

    # -- what is known of it ---------------------------------------------------------------------------

    def _linear(self, network: Network) -> None:
        """Remember the linear function that decides like the network, if there is one."""
        found = linearity(network)
        self.linear_ = found.linear
        self._direction = found.direction if found.linear else None

    def _part(self, name: str) -> Array:
        check_is_fitted(self)
        if self._direction is None:
            raise AttributeError(
                f"{type(self).__name__} has no {name}: the network it found does not decide like a linear function "
                "(linear_ says whether it does); network_ has its weights."
            )
        return np.asarray(self._direction)

    @property
    def coef_(self) -> Array:
        """Unit vector that decides like the network, shape (1, n_features); only where it is linear."""
        whole = self._part("coef_")
        return whole[None, : self.n_features_in_]

    @property
    def intercept_(self) -> Array:
        """The offset that goes with ``coef_``, shape (1,)."""
        whole, constant = self._part("intercept_"), self._constant()
        return np.array([0.0 if constant is None else constant * whole[-1]])

    @property
    def findings_(self) -> Sequence[Finding]:
        """Which theorems apply to what was fitted, condition by condition (computed when first asked for)."""
        check_is_fitted(self)
        if "_found" not in vars(self):
            self._found = check(self.problem_)
        return self._found

    def _warn(self, why: str) -> None:
        warnings.warn(f"{type(self).__name__}: {why} The best network found is used.", ConvergenceWarning, stacklevel=3)


class Drawn(TwoClasses):
    """A classifier that starts from a network drawn at random."""

    width: int
    slope: float
    scheme: str
    scale: float | None
    train: str
    loss: str
    random_state: Any

    def _problem(self, data: Dataset) -> Problem:
        if self.scheme not in get_args(Scheme):
            raise ProblemError(f"scheme = {self.scheme!r} is not known; choose one of {', '.join(get_args(Scheme))}.")
        self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        scheme: Any = self.scheme
        net = initialize(data.d, self.width, scheme, self.scale, self._seed, self.slope)
        return Problem(data, net, self.loss, train=self.train)  # type: ignore[arg-type]


def _few(values: npt.NDArray[Any]) -> str:
    shown = [repr(v) for v in values[:4].tolist()]
    return ", ".join(shown) + (", ..." if values.size > 4 else "")
