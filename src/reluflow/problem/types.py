"""The arrays of this package, by what their entries are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]  # -1, 0, +1
Flags = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]  # places in an array
Ints = npt.NDArray[np.int64]
Integers = npt.NDArray[np.object_]  # Python's own, of any size
