"""A Lightning run watched as it trains."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..problem.errors import ProblemError
from .watch import watch

_HOMES = ("lightning.pytorch", "pytorch_lightning")


def lightning_callback(X: Any, y: Any = None, *, of: str | None = None, **options: Any) -> Any:
    """Make a Lightning callback that watches a run: ``Trainer(callbacks=[lightning_callback(X, y)])``.

    Parameters
    ----------
    X, y
        The samples on which the model is looked at, as for `watch`.
    of : str, optional
        Name of the submodule of the LightningModule that is the classifier; default: the LightningModule itself, called
        on a batch of inputs.
    **options
        As for `watch`.

    Returns
    -------
    lightning.pytorch.Callback
        Its ``watch`` is the `Watch`, from the start of ``fit`` on.
    """

    class Watching(_callback()):  # type: ignore[misc]
        watch: Any = None

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
            model = pl_module if of is None else pl_module.get_submodule(of)
            self.watch = watch(model, X, y, **options)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
            self.watch.close()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002
            if self.watch is not None:
                self.watch.close()

    return Watching()


def _callback() -> Any:
    for home in _HOMES:
        try:
            return import_module(home).Callback
        except ImportError:
            continue
    raise ProblemError("lightning_callback needs Lightning, which is not installed; pip install lightning brings it.")
