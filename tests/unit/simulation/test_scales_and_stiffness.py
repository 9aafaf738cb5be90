"""Simulation in any unit, and of models whose parts are fast and slow: truth from closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from analysis.dynamics.shooting import periodic_orbit
from analysis.model import Model
from analysis.simulation.radau import radau_table
from analysis.simulation.simulate import sensitivities, simulate

OSCILLATOR = Model.from_equations({"x": "v", "v": "-w**2*x"}, {"w": 1.0})
DUFFING = Model.from_equations(
    {"x": "v", "v": "-c*v - k*x - k3*x**3 + f*cos(w*t)"}, {"c": 0.2, "k": 1.0, "k3": 1.0, "f": 3.0, "w": 1.3}
)
# a force that an actuator makes, 10 000 times faster than the motion
ACTUATOR = Model.from_equations(
    {"x": "v", "v": "-c*v - k*x + a", "a": "(f*cos(w*t) - a)/tau"},
    {"c": 0.2, "k": 1.0, "f": 3.0, "w": 1.3, "tau": 1e-4},
)
START = np.array([1.0, 0.0, 0.0])


@pytest.mark.parametrize("length", [1e-12, 1e-9, 1e6])
@pytest.mark.parametrize("time", [4e-8, 1.0, 1e3])
def test_given_any_units_when_simulated_then_the_relative_answer_and_the_cost_are_the_same(
    length: float, time: float
) -> None:
    t = np.linspace(0, 30, 301)
    run = simulate(OSCILLATOR, time * t, [length, 0.0], {"w": 1 / time})
    assert np.abs(run["x"] / length - np.cos(t)).max() < 3e-9
    reference = simulate(OSCILLATOR, t, [1.0, 0.0])
    assert abs(run.steps - reference.steps) <= 1


def in_units(length: float, time: float) -> dict[str, float]:
    """The values of DUFFING when lengths and times are in other units."""
    return {
        "c": 0.2 / time, "k": 1 / time**2, "k3": 1 / (length * time) ** 2, "f": 3 * length / time**2,
        "w": 1.3 / time,
    }  # fmt: skip


@pytest.mark.parametrize(("length", "time"), [(1e-9, 4e-8), (1.0, 1.0), (1e6, 1e3)])
def test_given_any_units_when_an_orbit_is_closed_then_it_is_the_same_orbit(
    length: float, time: float
) -> None:
    period = 2 * np.pi / 1.3
    guess = np.array([2.0, -0.5])
    reference = periodic_orbit(DUFFING, guess, period)
    unit = np.array([length, length / time])
    found = periodic_orbit(DUFFING, guess * unit, period * time, in_units(length, time))
    assert found.converged and found.gap < 1e-9
    assert found.state / unit == pytest.approx(reference.state, rel=1e-8)
    assert np.sort(np.abs(found.multipliers)) == pytest.approx(
        np.sort(np.abs(reference.multipliers)), rel=1e-7
    )
    end = solve_ivp(
        lambda t, y: [y[1], -0.2 * y[1] - y[0] - y[0] ** 3 + 3 * np.cos(1.3 * t)], (0, period),
        found.state / unit, "DOP853", rtol=1e-12, atol=1e-12,
    ).y[:, -1]  # fmt: skip
    assert end == pytest.approx(found.state / unit, abs=1e-8)
    lost = periodic_orbit(DUFFING, guess * unit, period * time, in_units(length, time), iterations=1)
    assert not lost.converged and lost.gap > 1e-6  # one step does not close it, and does not say so


def test_given_other_units_when_a_driven_motion_starts_from_rest_then_nothing_changes() -> None:
    t = np.linspace(0, 20, 201)
    reference = simulate(DUFFING, t, [0.0, 0.0], rtol=1e-11)
    length, time = 1e-6, 4e-8  # micrometres at 25 MHz, in metres and seconds
    values = in_units(length, time)
    run = simulate(DUFFING, time * t, [0.0, 0.0], values)
    assert np.abs(run["x"] / length - reference["x"]).max() < 1e-7
    assert run.steps < 1.1 * simulate(DUFFING, t, [0.0, 0.0]).steps
    s = sensitivities(DUFFING, t, [0.0, 0.0], wrt=["k3"])[1]
    small = sensitivities(DUFFING, time * t, [0.0, 0.0], values, wrt=["k3"])[1] * values["k3"]
    assert np.abs(small[0, 0] / length - s[0, 0]).max() < 1e-6 * np.abs(s[0]).max()


def test_given_a_state_that_is_zero_but_for_rounding_then_the_run_ends() -> None:
    model = Model.from_equations(
        {"x": "u", "u": "-3.3*x", "y": "v", "v": "-2.7*y + 0.1*x + 0.2*x - 0.3*x"},  # the force on y cancels
        {"k": 1.0},
    )
    run = simulate(model, np.linspace(0, 50, 51), [1.0, 0.0, 0.0, 0.0])
    assert run.diverged_at is None
    assert np.abs(run["x"] - np.cos(np.sqrt(3.3) * run.times)).max() < 1e-7
    assert np.abs(run["y"]).max() < 1e-15
    assert run.steps < 2000


def actuator_truth(times: np.ndarray, c: float, tau: float, a0: float = 0.0) -> np.ndarray:
    """The linear system with its drive as two more states, by the matrix exponential."""
    w = 1.3
    matrix = np.array(
        [
            [0, 1, 0, 0, 0],
            [-1, -c, 1, 0, 0],
            [0, 0, -1 / tau, 3 / tau, 0],
            [0, 0, 0, 0, -w],
            [0, 0, 0, w, 0],
        ]
    )
    start = np.array([1.0, 0.0, a0, 1.0, 0.0])
    return np.stack([(expm(matrix * t) @ start)[:3] for t in times], axis=1)


def test_given_a_stiff_model_when_simulated_then_implicit_steps_agree_with_the_closed_form() -> None:
    times = np.concatenate([[0.0, 1e-4, 5e-4], np.linspace(0.5, 30, 60)])
    truth = actuator_truth(times, 0.2, 1e-4)
    for method in ("adaptive", "implicit"):
        run = simulate(ACTUATOR, times, START, method=method)
        assert np.abs(run.states - truth).max() < 2e-7
        assert np.abs(run.states - truth)[:2].max() < 2e-9
        assert run.steps < 4000  # explicit steps alone would be 50 000
    assert simulate(ACTUATOR, times, START, rtol=1e-12).states == pytest.approx(truth, abs=3e-10)


def test_given_a_stiff_model_when_differentiated_then_the_closed_forms_differences_agree() -> None:
    times = np.linspace(0, 30, 31)
    _, s = sensitivities(ACTUATOR, times, START, wrt=["c", "tau"], wrt_initial=["a"])
    h = 1e-4
    by_c = (actuator_truth(times, 0.2 + h, 1e-4) - actuator_truth(times, 0.2 - h, 1e-4)) / (2 * h)
    by_tau = (actuator_truth(times, 0.2, 1.01e-4) - actuator_truth(times, 0.2, 0.99e-4)) / 2e-6
    by_a0 = actuator_truth(times, 0.2, 1e-4, 1.0) - actuator_truth(times, 0.2, 1e-4, 0.0)
    # the rounding of the matrix exponential limits the difference by tau
    for column, (truth, error) in enumerate(((by_c, 1e-6), (by_tau, 3e-5), (by_a0, 1e-6))):
        assert np.abs(s[:, column] - truth)[:2].max() < error * np.abs(truth[:2]).max(), column


def test_given_the_collocation_table_then_it_has_the_published_coefficients_and_orders() -> None:
    table, root = radau_table(3), np.sqrt(6)
    assert table.c == pytest.approx([(4 - root) / 10, (4 + root) / 10, 1.0], abs=1e-15)
    assert table.a[0] == pytest.approx(
        [(88 - 7 * root) / 360, (296 - 169 * root) / 1800, (-2 + 3 * root) / 225], abs=1e-15
    )
    five = radau_table(5)
    for k in range(1, 10):  # order 9: the quadrature is exact up to t^8
        assert five.a[-1] @ five.c ** (k - 1) == pytest.approx(1 / k, abs=1e-14)
