"""The integrator that the tests of the claims use, against a general solver."""

import numpy as np
import pytest

import reluflow as rf
from helpers.integrate import integrate


@pytest.mark.parametrize("train", ["both", "first"])
def test_time_and_path_agree_with_a_general_solver(train):
    from scipy.integrate import solve_ivp

    data = rf.example("D2").data
    net = rf.Network([[0.3, 0.1], [-0.2, -0.05]], [0.31, -0.21], slope=0.5)
    problem = rf.Problem(data, net, train=train)
    run = integrate(problem, q_end=5.0)

    def velocity(_, theta):
        W, a = theta[:4].reshape(2, 2), theta[4:]
        z = data.X @ W.T
        slopes = np.where(z > 0, 1.0, 0.5)
        g = problem.loss.force(data.y * ((slopes * z) @ a)) / data.n
        dW = a[:, None] * ((slopes * g[:, None]).T @ data.signed)
        da = (g * data.y) @ (slopes * z) if train == "both" else np.zeros(2)
        return np.concatenate([dW.ravel(), da])

    end = float(run.time[-1])
    exact = solve_ivp(velocity, (0, end), np.concatenate([net.W.ravel(), net.a]), rtol=1e-11, atol=1e-13).y[:, -1]
    W, a = run.final.weights()
    assert np.allclose(np.concatenate([W.ravel(), a]), exact, rtol=1e-6, atol=0)
