"""The studio in a notebook: the same page as a widget, with the drawn data and the result as Python objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..data import as_dataset
from ..problem import Dataset, Problem, ProblemError, ReluflowError

if TYPE_CHECKING:
    from ..report import Explanation

_SECONDS = 20.0


def Studio(source: Any = None, y: Any = None, **settings: Any) -> Any:
    """Open the studio in a notebook (needs the extra ``notebook``).

    Parameters
    ----------
    source : Problem, Dataset, array, data frame, str or path, optional
        The data it opens with, as for `reluflow.as_problem`; default: an example.
    y : array_like, optional
        Labels.
    **settings
        How the network is drawn: ``width``, ``slope``, ``scheme``, ``log_scale``, ``seed``, ``loss``, ``train``.

    Returns
    -------
    anywidget.AnyWidget
        ``widget.data`` is the `Dataset` on the screen, ``widget.problem`` the `Problem` and ``widget.result`` its
        `Explanation`.

    Raises
    ------
    ProblemError
        anywidget is not installed.

    Examples
    --------
    >>> studio = Studio("ML-F6", width=10)
    >>> studio.data.n, studio.problem.net.p
    (5, 10)
    """
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ProblemError(
            f'rf.Studio needs {error.name}, which is not installed; pip install "reluflow[notebook]".'
        ) from None
    from .state import DEFAULTS, data_of, problem_of
    from .work import Desk

    first = _first(source, y, settings)
    desk = Desk()

    class StudioWidget(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
        """The studio, and what is on its screen."""

        _esm = script()
        _css = stylesheet()
        state = traitlets.Dict(first).tag(sync=True)
        start = traitlets.Dict(opening(first)).tag(sync=True)

        @property
        def data(self) -> Dataset:
            """The points on the screen."""
            return data_of({**DEFAULTS, **self.state})

        @property
        def problem(self) -> Problem:
            """The problem on the screen."""
            return problem_of(self.state)

        @property
        def result(self) -> Explanation:
            """What is explained on the screen; computed if it is not there yet."""
            return desk.explanation(self.state, _SECONDS)

    widget = StudioWidget()
    widget.on_msg(lambda _, message, __: widget.send(reply(desk, message)))
    return widget


def _first(source: Any, y: Any, settings: dict[str, Any]) -> dict[str, Any]:
    from .presets import preset_state, presets
    from .state import DEFAULTS, problem_of, state_of

    unknown = [key for key in settings if key not in DEFAULTS]
    if unknown:
        raise ProblemError(f"Studio has no setting {unknown[0]!r}; it has {', '.join(DEFAULTS)}.")
    if isinstance(source, Problem):
        return state_of(source.data, source, **settings)
    if source is None:
        state = {**preset_state(presets()[0]["name"]), **settings}
    else:
        state = state_of(as_dataset(source, y), **settings)
    problem_of(state)  # says what is wrong
    return state


def reply(desk: Any, message: Any) -> dict[str, Any]:
    """Answer a message of the page: its number, and a document or an error."""
    from .worker import error_document

    number = message.get("number") if isinstance(message, dict) else None
    try:
        return {"number": number, "document": desk.answer(message["kind"], message["asked"])}
    except ReluflowError as error:
        return {"number": number, "error": error_document(error)}
    except (KeyError, TypeError, ValueError) as error:
        wrong = ProblemError(f"the message is not understood ({error}); reload the widget.")
        return {"number": number, "error": error_document(wrong)}


def opening(first: dict[str, Any] | None) -> dict[str, Any]:
    """Return what a page has to know to begin."""
    from .presets import lectures, presets
    from .state import DEFAULTS, SCHEMES

    return {
        "first": first,
        "presets": presets(),
        "lectures": lectures(),
        "schemes": list(SCHEMES),
        "defaults": dict(DEFAULTS),
    }


def script() -> str:
    """Return all modules of the studio as one."""
    from ..report.page import FRONT, bundle
    from .web import WEB

    return f"{bundle('widget.js', WEB, FRONT)}\nexport default {{ render }};\n"


def stylesheet() -> str:
    """Return the stylesheet."""
    from ..report.page import style

    return style()
