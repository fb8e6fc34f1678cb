"""An xarray dataset with tables of different dimensions, which does not let itself be made a single one by accident."""

from __future__ import annotations

from math import prod
from typing import Any

from ..problem import ProblemError

try:
    import xarray
except ImportError:
    raise ProblemError(
        "to_xarray needs xarray, which is not installed; pip install 'reluflow[arrays]' brings it."
    ) from None

_MOST_ROWS = 1_000_000


class Tables(xarray.Dataset):  # type: ignore[no-untyped-call]
    """What `to_xarray` returns: an `xarray.Dataset`; see there."""

    __slots__ = ()

    def to_dataframe(self, *args: Any, **kwargs: Any) -> Any:
        """Make one table of it, unless that is every combination of things that have nothing to do with each other."""
        rows, largest = prod(self.sizes.values()), max((v.size for v in self.variables.values()), default=0)
        if rows > max(largest, _MOST_ROWS) or rows == 0 < largest:  # nothing, where there is no event
            sizes = ", ".join(f"{size} {name}s" for name, size in self.sizes.items())
            raise ProblemError(
                f"one table of all variables would have {rows} rows, every combination of {sizes}; choose variables "
                "that share their dimensions, as in [['log_loss', 'log_norm']], or use Trajectory.to_dataframe()."
            )
        return super().to_dataframe(*args, **kwargs)
