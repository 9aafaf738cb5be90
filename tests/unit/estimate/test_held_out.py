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
