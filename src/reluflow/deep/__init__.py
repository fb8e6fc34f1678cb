"""PyTorch models seen with the same eyes: imported as networks, or trained and looked at layer by layer.

PyTorch is needed for the functions that touch a model, and is imported by them.
"""

from .bridge import from_torch, is_torch_file, problem_from_file, problem_from_torch
from .head import head
from .layers import from_arrays
from .lightning import lightning_callback
from .logs import TensorBoardLog, WandbLog
from .look import (
    InnerProducts,
    LayerFeatures,
    LayerWeights,
    Separability,
    correlations,
    features,
    inner_products,
    layer_weights,
    separability,
    spectrum,
)
from .nets import conv_net, residual_net
from .train import Training, train
from .watch import watch
from .watched import Watch

__all__ = [
    "InnerProducts",
    "LayerFeatures",
    "LayerWeights",
    "Separability",
    "TensorBoardLog",
    "Training",
    "WandbLog",
    "Watch",
    "conv_net",
    "correlations",
    "features",
    "from_arrays",
    "from_torch",
    "head",
    "inner_products",
    "is_torch_file",
    "layer_weights",
    "lightning_callback",
    "problem_from_file",
    "problem_from_torch",
    "residual_net",
    "separability",
    "spectrum",
    "train",
    "watch",
]
