"""The sweeps of the maximum-likelihood path against dense least squares, derivatives against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag

from analysis.estimate.path import solver
from analysis.estimate.path.estimate import estimate_path
from analysis.estimate.path.segment import PathSegment
from analysis.model import Model
from analysis.signal.inputs import Inputs

STATES, OUTPUTS, NODES, OWN, FREE = 3, 2, 7, 2, 3  # of FREE unknowns OWN act through the equations


def linear_problem(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    residuals = rng.standard_normal((NODES, OUTPUTS))
    residuals[2, 0] = residuals[4] = np.nan  # missing samples
    return {
        "V": rng.standard_normal((NODES - 1, STATES, STATES + OWN)) * 0.7,
        "C": rng.standard_normal((NODES - 1, STATES)),
        "R": residuals,
        "G": rng.standard_normal((NODES, OUTPUTS, STATES)),
        "D": rng.standard_normal((NODES, OUTPUTS, FREE)),
        "start": rng.standard_normal(STATES),
        "spread": rng.uniform(0.5, 2.0, STATES),
        "slack": np.diag(rng.uniform(0.3, 1.0, STATES)) + 0.1 * rng.standard_normal((STATES, STATES)),
    }


def dense(given: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and right-hand side of the least squares over all states, then the unknowns."""
    width = NODES * STATES + FREE
    rows, right = [], []

    def add(blocks: dict[int, np.ndarray], by_unknown: np.ndarray, value: np.ndarray) -> None:
        row = np.zeros((len(value), width))
        for node, block in blocks.items():
            row[:, node * STATES : (node + 1) * STATES] = block
        row[:, NODES * STATES : NODES * STATES + by_unknown.shape[1]] = by_unknown
        rows.append(row)
        right.append(value)

    prior = np.diag(1 / given["spread"])
    add({0: prior}, np.zeros((STATES, 0)), prior @ given["start"])
    for k in range(NODES):
        seen = np.isfinite(given["R"][k])
        add({k: given["G"][k][seen]}, given["D"][k][seen], given["R"][k][seen])
    root = np.linalg.inv(given["slack"])
    for k in range(NODES - 1):
        A, B = given["V"][k, :, :STATES], given["V"][k, :, STATES:]
        add({k: -root @ A, k + 1: root}, -root @ B, root @ given["C"][k])
    return np.vstack(rows), np.concatenate(right)


@pytest.mark.parametrize("seed", [1, 2])
def test_given_a_linear_path_then_the_sweeps_solve_its_least_squares(seed: int) -> None:
    given = linear_problem(seed)
    S, M = np.empty((NODES, STATES, STATES)), np.empty((NODES, STATES, FREE + 1))
    K, s = np.empty((NODES, OUTPUTS, STATES)), np.empty((NODES, OUTPUTS))
    E, H, g = np.zeros((NODES, OUTPUTS, FREE + 1)), np.zeros((FREE, FREE)), np.zeros(FREE)
    solver.forward(
        *(given[n] for n in ("V", "C", "R", "G", "D", "start", "spread", "slack")), S, M, K, s, E, H, g
    )
    A, b = dense(given)
    whole = A.T @ A
    inner, outer = slice(0, NODES * STATES), slice(NODES * STATES, None)
    schur = whole[outer, outer] - whole[outer, inner] @ np.linalg.solve(
        whole[inner, inner], whole[inner, outer]
    )
    exact = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(H, schur, rtol=1e-9)
    assert np.linalg.solve(H, g) == pytest.approx(exact[outer], rel=1e-8)
    for step in (exact[outer], np.zeros(FREE)):  # the states follow any step of the unknowns
        follow = np.linalg.lstsq(A[:, inner], b - A[:, outer] @ step, rcond=None)[0]
        dX, L = np.empty((STATES, NODES)), np.empty((NODES, STATES))
        solver.backward(given["V"], given["G"], step, S, M, K, s, E, dX, L)
        assert dX.T.ravel() == pytest.approx(follow, rel=1e-8, abs=1e-10)
        # a multiplier is the miss of its equation over the covariance by which it may be missed
        for k in range(NODES - 1):
            moved = given["V"][k, :, :STATES] @ dX[:, k] + given["V"][k, :, STATES:] @ step[:OWN]
            miss = dX[:, k + 1] - moved - given["C"][k]
            over = np.linalg.solve(given["slack"] @ given["slack"].T, miss)
            assert -L[k + 1] == pytest.approx(over, rel=1e-7, abs=1e-9)


def test_given_further_columns_then_they_are_swept_as_those_of_the_unknowns_are() -> None:
    given = linear_problem(4)
    K, s = np.empty((NODES, OUTPUTS, STATES)), np.empty((NODES, OUTPUTS))
    E = np.zeros((NODES, OUTPUTS, FREE + 1))
    solver.forward(
        *(given[n] for n in ("V", "C", "R", "G", "D", "start", "spread", "slack")),
        np.empty((NODES, STATES, STATES)), np.empty((NODES, STATES, FREE + 1)), K, s, E,
        np.zeros((FREE, FREE)), np.zeros(FREE),
    )  # fmt: skip
    pushes = np.zeros((NODES - 1, STATES, FREE))
    pushes[:, :, :OWN] = given["V"][:, :, STATES:]
    again = np.full((NODES, OUTPUTS, FREE), np.nan)
    solver.forward_columns(given["V"], pushes, given["G"], given["D"], K, s, again)
    assert again == pytest.approx(E[:, :, :FREE], rel=1e-12, abs=1e-13)
    assert np.all(again[4] == 0.0) and np.abs(again[3]).min() > 0.0  # missing samples have no part


def test_given_a_linear_path_then_the_information_of_its_first_state_is_that_of_all_samples() -> None:
    given = linear_problem(3)
    variance = np.array([0.2, 0.0, 0.7])
    found = solver.initial_information(
        np.ascontiguousarray(given["V"][:, :, :STATES]), given["G"], given["R"], variance
    )
    # y = G A ... A z0 + G (sum of the misses carried along) + noise, without any prior
    carried, seen, carriers = np.eye(STATES), [], []
    effect = np.zeros((STATES, STATES * NODES))
    for k in range(NODES):
        if k:
            carried, effect = given["V"][k - 1, :, :STATES] @ carried, given["V"][k - 1, :, :STATES] @ effect
        effect[:, k * STATES : (k + 1) * STATES] = np.eye(STATES)
        good = np.isfinite(given["R"][k])
        seen.append(given["G"][k][good] @ carried)
        carriers.append(given["G"][k][good] @ effect)
    # the miss at a sample is let in before that sample is used: what is known is the state before it
    J, W = np.vstack(seen), np.vstack(carriers)
    noise = np.eye(len(J)) + W @ block_diag(*[np.diag(variance)] * NODES) @ W.T
    assert found == pytest.approx(J.T @ np.linalg.solve(noise, J), rel=1e-8)


MODEL = Model.from_equations(
    {"x": "v", "v": "-c*v - k*x - 0.5*x**3 + f"},
    {"c": {"guess": 0.3}, "k": {"guess": 2.0}},
    inputs={"f": "measured"},
    outputs={"x": "x + 0.2*c*v", "a": "f - c*v - k*x"},
)


def test_given_offsets_delays_and_drifts_then_every_derivative_is_that_of_differences() -> None:
    rng = np.random.default_rng(4)
    N, n, q, k = 9, 2, 2, 2
    t = 3.0 + 0.1 * np.arange(N)
    inputs = Inputs.from_samples(2.0, 0.1, np.sin(1.3 * (2.0 + 0.1 * np.arange(40)))[None])
    states = np.ascontiguousarray(rng.standard_normal((n, N)))
    outputs = np.ascontiguousarray(rng.standard_normal((q, N)))
    sigma, kernels = np.array([0.5, 3.0]), MODEL.kernels()
    values = np.concatenate([MODEL.values(), [0.1, -0.2], [0.03, -0.02], [0.4, 0.6]])
    free = np.arange(len(values), dtype=np.int64)

    def evaluated(X: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        C, R = np.empty((N - 1, n)), np.empty((N, q))
        solver.evaluate(
            kernels.rhs,
            kernels.out,
            t,
            X,
            outputs,
            sigma,
            p,
            2,
            inputs.t0,
            inputs.dt,
            inputs.coefficients,
            C,
            R,
        )
        return C, R

    V, C, R = np.empty((N - 1, n, n + k)), np.empty((N - 1, n)), np.empty((N, q))
    G, D = np.empty((N, q, n)), np.empty((N, q, len(free)))
    solver.linearise(
        kernels.jac, kernels.out_jac, t, states, outputs, sigma, values, free, 2, inputs.t0, inputs.dt,
        inputs.coefficients, V, C, R, G, D,
    )  # fmt: skip
    there = evaluated(states, values)
    assert pytest.approx(there[0], abs=1e-12) == C and pytest.approx(there[1], abs=1e-12) == R
    # offset, drift from the input's first sample on, and the delayed output, by hand
    late = R[:, 0] * sigma[0] + values[2] + values[6] * (t - inputs.t0)
    from scipy.integrate import solve_ivp

    def rate(at: float, z: np.ndarray) -> list[float]:
        force = float(inputs.values(np.array([at]))[0, 0])
        return [z[1], -0.3 * z[1] - 2.0 * z[0] - 0.5 * z[0] ** 3 + force]

    for node in (0, 5):
        back = solve_ivp(rate, (t[node], t[node] - 0.03), states[:, node], rtol=1e-10, atol=1e-12).y[:, -1]
        shown = back[0] + 0.2 * 0.3 * back[1]
        assert late[node] == pytest.approx(outputs[0, node] - shown, abs=1e-6)
    h = 1e-6
    for j in range(len(values)):
        moved = [evaluated(states, values + side * h * np.eye(len(values))[j]) for side in (-1, 1)]
        slope: Any = (moved[1][1] - moved[0][1]) / (2 * h)
        assert -D[:, :, j] == pytest.approx(slope, abs=2e-6)
        if j < k:
            assert V[:, :, n + j] == pytest.approx((moved[1][0] - moved[0][0]) / (2 * h), abs=1e-7)
    for i in range(n):
        change = np.zeros_like(states)
        change[i, ::2] = h  # every other state: the defect behind it and before it are told apart
        moved = [evaluated(states + side * change, values) for side in (-1, 1)]
        slope = (moved[1][1] - moved[0][1]) / (2 * h)
        assert -G[::2, :, i] == pytest.approx(slope[::2], abs=2e-6)
        defect = (moved[1][0] - moved[0][0]) / (2 * h)
        assert V[::2, :, i] == pytest.approx(defect[::2], abs=1e-7)
        assert defect[1::2] == pytest.approx(np.tile(-np.eye(n)[i], (len(defect[1::2]), 1)), abs=1e-7)


def test_given_a_lag_that_is_known_then_the_path_is_that_of_the_motion_before_it() -> None:
    """x = cos t, seen 0.3 too late; nothing but the motion is left to find."""
    model = Model.from_equations({"x": "v", "v": "-k*x"}, {"k": 1.0}, outputs={"x": "x"})
    times = 0.1 * np.arange(80)
    rough = np.stack([np.cos(times - 0.1), -np.sin(times - 0.1)])
    segment = PathSegment(times, np.cos(times - 0.3)[None], rough)
    found = estimate_path(
        model.kernels(), [segment], model.values(), [], sigma=np.array([0.01]),
        sensors=np.array([0.0, 0.3, 0.0]),
    )  # fmt: skip
    assert found.states[0][0] == pytest.approx(np.cos(times), abs=1e-3)
    assert found.states[0][1] == pytest.approx(-np.sin(times), abs=1e-3)
