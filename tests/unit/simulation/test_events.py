"""Motions whose slope jumps, against stretches joined at events that SciPy finds, and their differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.model import Model
from analysis.model.switching import switching_of
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import sensitivities, simulate

FRICTION = Model.from_equations(
    {"x": "v", "v": "-k*x - mu*sign(v) + f*cos(w*t)"}, {"k": 1.0, "mu": 0.5, "f": 2.0, "w": 0.7}
)
CONTACT = Model.from_equations(  # a preloaded spring: the force jumps by F at the stop
    {"x": "v", "v": "-c*v - k*x - where(x > gap, F + kc*(x - gap), 0) + f*cos(t)"},
    {"c": 0.1, "k": 1.0, "gap": 0.6, "F": 0.3, "kc": 40.0, "f": 0.8},
)
TIMES = np.linspace(0, 25, 251)


def joined(
    field: Callable[[float, np.ndarray, int], list[float]],
    height: Callable[[float, np.ndarray, int], float],
    following: Callable[[float, np.ndarray, int], int],
    side: int,
    start: list[float],
) -> np.ndarray:
    """States at TIMES: stretches of one side each, ended where ``height`` passes zero."""
    out = np.empty((len(start), len(TIMES)))
    out[:, 0] = start
    t, y = 0.0, np.array(start)
    while t < TIMES[-1]:
        event: Callable[[float, np.ndarray], float] = lambda s, z, side=side: height(s, z, side)  # noqa: E731
        event.terminal, event.direction = True, -1.0  # type: ignore[attr-defined]
        run = solve_ivp(
            lambda s, z, side=side: field(s, z, side), (t, TIMES[-1] + 1e-9), y, "DOP853", rtol=1e-12,
            atol=1e-13, events=event, dense_output=True, max_step=0.1,
        )  # fmt: skip
        inside = (run.t[-1] >= TIMES) & (t < TIMES)
        if inside.any():
            out[:, inside] = run.sol(TIMES[inside])
        t, y = float(run.t[-1]), run.y[:, -1].copy()
        side = following(t, y, side)
    return out


def friction(k: float, mu: float, f: float, w: float, x0: float) -> np.ndarray:
    """Sides +1 and -1 of slip, 0 of stick."""

    def force(t: float, y: np.ndarray) -> float:
        return float(f * np.cos(w * t) - k * y[0])

    def field(t: float, y: np.ndarray, side: int) -> list[float]:
        return [y[1], force(t, y) - mu * side] if side else [0.0, 0.0]

    def height(t: float, y: np.ndarray, side: int) -> float:
        return side * y[1] if side else mu - abs(force(t, y))

    def following(t: float, y: np.ndarray, side: int) -> int:
        y[1] = 0.0
        pull = force(t, y)
        return int(np.sign(pull)) if side == 0 or abs(pull) > mu else 0

    return joined(field, height, following, following(0.0, np.array([x0, 0.0]), 1), [x0, 0.0])


def contact(c: float, k: float, gap: float, F: float, kc: float, f: float) -> np.ndarray:
    def field(t: float, y: np.ndarray, side: int) -> list[float]:
        push = F + kc * (y[0] - gap) if side > 0 else 0.0
        return [y[1], -c * y[1] - k * y[0] - push + f * np.cos(t)]

    return joined(field, lambda t, y, side: side * (y[0] - gap), lambda t, y, side: -side, -1, [0.0, 0.0])


@pytest.mark.parametrize("f", [2.0, 0.7])  # slip alone; stick and slip
def test_given_dry_friction_then_motion_and_sensitivities_are_those_of_joined_stretches(f: float) -> None:
    values = {"k": 1.0, "mu": 0.5, "f": f, "w": 0.7}
    states, s = sensitivities(FRICTION, TIMES, [1.0, 0.0], values, wrt=list(values), wrt_initial=["x"])
    assert np.abs(states - friction(**values, x0=1.0)).max() < 1e-7
    sticks = np.count_nonzero(np.abs(states[1]) < 1e-9) > 10
    assert sticks == (f < 1)
    everything = {**values, "x0": 1.0}
    for column, (name, value) in enumerate(everything.items()):
        ahead, behind = (friction(**{**everything, name: value + h}) for h in (1e-5, -1e-5))
        truth = (ahead - behind) / 2e-5
        assert np.abs(s[:, column] - truth).max() < 1e-5 * np.abs(truth).max(), name
    run = simulate(FRICTION, TIMES, [1.0, 0.0], values)
    assert np.abs(run.states - states).max() < 1e-7
    assert run.steps < 400  # and not thousands of small ones at every jump


def test_given_a_stop_that_pushes_at_once_then_the_gaps_sensitivity_has_its_jumps() -> None:
    values = {"c": 0.1, "k": 1.0, "gap": 0.6, "F": 0.3, "kc": 40.0, "f": 0.8}
    states, s = sensitivities(CONTACT, TIMES, [0.0, 0.0], values, wrt=["gap", "F", "kc"])
    assert np.abs(states - contact(**values)).max() < 1e-7
    assert np.count_nonzero(np.diff(states[0] > 0.6)) >= 6
    for column, name in enumerate(("gap", "F", "kc")):
        h = 1e-5 * values[name]
        ahead, behind = (contact(**{**values, name: values[name] + d}) for d in (h, -h))
        truth = (ahead - behind) / (2 * h)
        # samples within 2 h of a jump see it or not: all others agree
        error = np.abs(s[:, column] - truth) / np.abs(truth).max()
        assert np.quantile(error, 0.99) < 1e-4 and np.median(error) < 1e-5, name


def test_given_a_force_that_switches_in_time_then_it_does_so_exactly() -> None:
    model = Model.from_equations({"x": "v", "v": "a*sign(sin(t - u))"}, {"a": 2.0}, inputs={"u": "measured"})
    inputs = Inputs.from_samples(0.0, 1.0, [np.full(30, 0.25)], "hold")
    times = np.array([0.25, 0.25 + np.pi, 0.25 + 2 * np.pi, 0.25 + 4 * np.pi])
    run = simulate(model, times, [0.0, 0.0], inputs=inputs)
    assert run["v"] == pytest.approx([0.0, 2 * np.pi, 0.0, 0.0], abs=1e-10)
    assert run["x"] == pytest.approx([0.0, np.pi**2, 2 * np.pi**2, 4 * np.pi**2], abs=1e-9)


@pytest.mark.parametrize(
    ("text", "jumps"),
    [
        ("-mu*sign(v)", 1),
        ("-mu*heaviside(x - 1)*where(v > 0, 1, -1)", 2),
        ("-mu*abs(v)*sign(v)", 0),  # continuous: a kink is left to the control of the steps
        ("-where(x > mu, 3*(x - mu), 0)", 0),
        ("-max(x, 0) + min(v, 1) + abs(x)", 0),
        ("-mu*x", 0),
    ],
)
def test_given_equations_then_only_jumps_are_surfaces(text: str, jumps: int) -> None:
    model = Model.from_equations({"x": "v", "v": text}, {"mu": 0.5})
    found = switching_of(model.equations, {"mu": 0.5})
    assert (0 if found is None else len(found.surfaces)) == jumps


@pytest.mark.parametrize(
    ("beyond", "rtol"),
    [
        (1.7191018110152805e-07, 7.293095593088766e-10),
        (1.555607013033255e-07, 1.0687793365873267e-09),
        (6.802368026311447e-10, 3.934501320038012e-06),
    ],
)
def test_given_a_motion_that_only_grazes_a_stop_then_it_goes_on_as_without(
    beyond: float, rtol: float
) -> None:
    """Met a moment after its turn, the stop was taken for a surface to slide along: no motion was found."""
    model = Model.from_equations(
        {"x": "v", "v": "-x - where(x > gap, kc*(x - gap) + cc*v, 0)"},
        {"gap": {"guess": 1.0}, "kc": {"guess": 1000.0}, "cc": {"guess": 4.0}},
    )
    times = np.linspace(0, 20, 201)
    states, _ = sensitivities(
        model, times, np.array([0.0, 1.0]), {"gap": 1.0 - beyond}, rtol=rtol, atol=1e-12
    )
    assert states[0] == pytest.approx(np.sin(times), abs=2e-3)


def test_given_a_stiff_model_with_a_stop_then_no_more_steps_are_taken_than_were_allowed() -> None:
    """x'' = -c x' - x creeps as exp(-t/c) where c is large; explicit steps would be some millions.

    A search met such points on its way and took minutes over each; beyond the limit implicit steps go on.
    """
    model = Model.from_equations({"x": "v", "v": "-c*v - x - where(x > 2, 1 + 100*(x - 2), 0)"}, {"c": 1e6})
    times = np.linspace(0, 10, 11)
    run = simulate(model, times, [1.0, 0.0], rtol=1e-6, most_steps=2000)
    assert run.diverged_at is None and run.steps < 2000
    assert run["x"] == pytest.approx(np.exp(-times / 1e6), abs=2e-6)
