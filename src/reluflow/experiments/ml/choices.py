"""What Min, Mallada and Vidal leave open in all their experiments."""

from __future__ import annotations

from ..core.experiment import Choice

BOTH_LAYERS = (
    Choice(
        "loss and reduction",
        "exponential, mean over the samples",
        "with it the reported iteration numbers come out, for the toy data and for MNIST; the sum would be n times "
        "too fast, the logistic loss twice too slow",
    ),
    Choice("derivative of the ReLU at 0", "0", "that of the paper's theory; it is met with probability 0"),
    Choice("seeds", "0 and on", "not given"),
)
