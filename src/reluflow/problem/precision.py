"""Numbers that doubles themselves give."""

from __future__ import annotations

EPS = 2.0**-52  #: Distance from 1 to the next double: twice the largest relative error of one rounding.
TINY = 1e-300  #: Stands for a length or a sum of 0 in a division: positive, and below all that is meant.
