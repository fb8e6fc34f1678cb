r"""
A PyTorch model, certified
==========================

Train a two-layer model in PyTorch as you always do, then ask :func:`reluflow.compare` where it stands: its margin, the
limit of the gradient flow from its own weights with a certificate, and the largest margin of any network. The flow from
the trained weights goes on for ever, so the model is on its way; this says how much of the way it has gone.

(Where PyTorch is not installed this example says so and draws nothing.)
"""

import matplotlib.pyplot as plt
import numpy as np

import reluflow as rf
from reluflow.report.panels import regions, samples

try:
    import torch
except ImportError:
    torch = None
    print('PyTorch is not installed: pip install "reluflow[deep]" brings it.')

data = rf.example("D2").data

if torch is not None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 16, bias=False), torch.nn.LeakyReLU(0.5), torch.nn.Linear(16, 1, bias=False)
    )
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(0.1)
    X, y = torch.tensor(data.X, dtype=torch.float32), torch.tensor(data.y, dtype=torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(600):
        optimizer.zero_grad()
        torch.nn.functional.softplus(-y * model(X)[:, 0]).mean().backward()
        optimizer.step()
    found = rf.compare(model, data, time_limit=600)  # seconds, on a busy machine
    print(found)

# %%

if torch is not None:
    figure, panels = plt.subplots(1, 2, figsize=(7.4, 3.9), layout="constrained")
    for axes, net, title in (
        (panels[0], found.problem.net, f"trained: margin {found.margin:.4f}"),
        (panels[1], found.limit.network, f"its limit: margin {found.limit.margin:.4f}"),
    ):
        regions(axes, net.outputs, (-1.5, 1.5))
        samples(axes, data.X, data.y, 100, 2.4)
        axes.set(title=title)
    plt.show()

# %%

if torch is not None:
    assert found.limit.kkt.is_kkt(1e-9)
    assert found.margin < found.limit.margin
    assert found.limit.margin <= found.optimum.upper * (1 + 1e-9)
    outputs = model(X)[:, 0].detach().numpy()
    assert np.allclose(outputs, found.problem.net.outputs(data.X), rtol=1e-5)
