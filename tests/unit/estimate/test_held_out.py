"""The prediction of the last fifth is that of a fit which never saw it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from analysis.base.record import Record
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.held_out import held_out
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model

DT, N = 0.1, 500
LAST = slice(4 * N // 5, N)


def motion(c: float, k: float, start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """x of the linear oscillator, which rings down without a force."""
    root = np.sqrt(k - c * c / 4)
    phase = root * (times - times[0])
    return np.exp(-c * (times - times[0]) / 2) * (
        start[0] * np.cos(phase) + (start[1] + c * start[0] / 2) / root * np.sin(phase)
    )


def stiffening(stiffer: float) -> tuple[Fitted, np.ndarray]:
    """A ring-down whose stiffness grows slowly, fitted by a constant one, and the record."""
    t = DT * np.arange(N)
    z = solve_ivp(
        lambda t, z: [z[1], -0.02 * z[1] - (2.0 + stiffer * t / t_end) * z[0]],
        (0, t_end := t[-1]), [1.0, 0.0], t_eval=t, rtol=1e-10, atol=1e-12,
    ).y  # fmt: skip
    x = z[0] + 0.01 * np.random.default_rng(2).standard_normal(N)
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.02}, "k": {"guess": 2.0}}, outputs={"x": "x"}
    )
    experiment = Experiment(model, Record.from_arrays(1 / DT, {"x": x}), Conditions())
    return fit(experiment, Start("test", experiment.guesses(), [z])), x


def fitted_by_scipy(
    x: np.ndarray, guess: list[float], known: tuple[float, float] | None = None
) -> np.ndarray:
    """Parameters (unless known) and initial state by SciPy, from the closed form."""
    times = DT * np.arange(len(x))

    def left(u: np.ndarray) -> np.ndarray:
        c, k = known or (float(u[0]), float(u[1]))
        return motion(c, k, u[-2:], times) - x

    return np.asarray(least_squares(left, guess, xtol=1e-13, ftol=1e-13).x)


@pytest.mark.parametrize("stiffer", [0.0, 0.03])
def test_the_last_fifth_is_predicted_by_the_parameters_of_the_other_four(stiffer: float) -> None:
    found, x = stiffening(stiffer)
    predicted = held_out(found)
    assert predicted is not None
    c, k, *_ = fitted_by_scipy(x[: LAST.start], [0.02, 2.0, 1.0, 0.0])
    state = fitted_by_scipy(x[LAST], [x[LAST.start], 0.0], (c, k))
    rms = float(np.sqrt(np.mean((motion(c, k, state, DT * np.arange(N // 5)) - x[LAST]) ** 2)))
    assert predicted.rms["x"] == pytest.approx(rms, rel=0.05)
    assert predicted.r2["x"] == pytest.approx(1 - (rms / np.std(x)) ** 2, rel=1e-3)
    whole = found.values[0, :2]
    state = fitted_by_scipy(x[LAST], [x[LAST.start], 0.0], (float(whole[0]), float(whole[1])))
    seen = float(np.sqrt(np.mean((motion(*whole, state, DT * np.arange(N // 5)) - x[LAST]) ** 2)))
    if stiffer:  # what the fit has seen it follows better
        assert rms > 1.05 * seen


@pytest.mark.parametrize(("power", "factor"), [(0.5, 0.3), (3.0, -1e-5)], ids=["root", "cubic"])
def test_given_traded_parameters_of_a_wrong_law_then_the_four_fifths_are_fitted_again(
    power: float, factor: float
) -> None:
    """A relaxation's limit and rate are traded against each other: the step of one linearisation away from
    the whole fit predicted 67 % worse (root) and 33 % better (cubic) than the fit that it stands for."""
    t = DT * np.arange(N)
    x = (t / 10 if power > 1 else 0.0) + factor * t**power
    x = x + 0.002 * np.random.default_rng(4).standard_normal(N)

    def relaxed(a: float, b: float, x0: float, part: slice) -> np.ndarray:
        return np.asarray(a + (x0 - a) * np.exp(-b * (t[part] - t[part][0])) - x[part])

    def left_of_four(u: np.ndarray) -> np.ndarray:
        return relaxed(u[0], u[1], u[2], slice(0, LAST.start))

    model = Model.from_equations(
        {"x": "b*(a - x)"}, {"a": {"guess": 3.0}, "b": {"guess": 0.05}}, outputs={"x": "x"}
    )
    experiment = Experiment(model, Record.from_arrays(1 / DT, {"x": x}), Conditions())
    predicted = held_out(fit(experiment, Start("test", experiment.guesses(), [x[None]])))
    a, b, _ = least_squares(left_of_four, [3.0, 0.05, 0.0], x_scale=[1.0, 0.05, 1.0]).x

    def left_of_last(u: np.ndarray) -> np.ndarray:
        return relaxed(a, b, u[0], LAST)

    last = least_squares(left_of_last, [x[LAST.start]])
    assert predicted is not None
    assert predicted.rms["x"] == pytest.approx(float(np.sqrt(np.mean(last.fun**2))), rel=0.01)
