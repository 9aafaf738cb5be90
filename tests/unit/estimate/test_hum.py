"""Hum in a sensor: fitted along with the parameters, unless it may be the motion's own."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis import Model, Record, identify
from analysis.base.identification import Identification
from analysis.estimate.finish.tones import of_the_motion

DT, N = 0.05, 1200
TIMES = DT * np.arange(N)
TRUTH = {"c": 0.1, "k": 4.0}


@cache
def _ring_down(hum: float) -> Identification:
    """A damped oscillation with hum of a share of its spread, 15 % above resonance."""
    z = solve_ivp(lambda t, z: [z[1], -0.1 * z[1] - 4 * z[0]], (0, 60), (1, 0), t_eval=TIMES, rtol=1e-10).y[0]
    noise = 0.02 * np.random.default_rng(3).standard_normal(N)
    tone = np.sqrt(2) * hum * np.cos(2 * np.pi * 0.366 * TIMES + 1.0)
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.13}, "k": {"guess": 5.2}}, outputs={"x": "x"}
    )
    return identify(model, Record.from_arrays(1 / DT, {"x": z + z.std() * (noise + tone)}), "shooting")


def test_given_hum_near_resonance_then_it_is_fitted_along_and_the_errors_stay_small() -> None:
    found, clean = _ring_down(0.03), _ring_down(0.0)
    assert found.verdict == "fits"
    (hum,) = found.extra["hum"]
    assert hum["frequency"] == pytest.approx(0.366, abs=0.001)
    assert "A tone at 0.366" in found.reasons[0]
    for name, truth in TRUTH.items():
        estimate = found.parameters[name]
        assert abs(estimate.value - truth) < 3 * estimate.stderr
        assert clean.parameters[name].stderr < estimate.stderr < 1.3 * clean.parameters[name].stderr
    assert "hum" not in clean.extra


def test_given_harmonics_that_the_model_lacks_then_they_are_not_taken_for_hum() -> None:
    """A cubic spring under a sine leaves tones of what a linear model explains."""
    force = 0.5 * np.cos(2.0 * (TIMES + 100.0))
    x = solve_ivp(
        lambda t, z: [z[1], 0.5 * np.cos(2 * t) - 0.2 * z[1] - 4 * z[0] - z[0] ** 3],
        (0, 160), (0.3, 0.0), t_eval=100 + TIMES, rtol=1e-10, atol=1e-12,
    ).y[0]  # fmt: skip
    x = x + 0.005 * np.std(x) * np.random.default_rng(0).standard_normal(N)
    model = Model.from_equations(
        {"x": "v", "v": "f - c*v - k*x"},
        {"c": {"guess": 0.2}, "k": {"guess": 4.5}},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )
    found = identify(model, Record.from_arrays(1 / DT, {"x": x, "f": force}), "shooting", denoise=False)
    assert found.extra["tones"] == ["x"]
    assert found.verdict != "fits" and "hum" not in found.extra


def test_given_a_motion_of_lines_then_those_they_make_together_are_its_own() -> None:
    one = np.cos(2 * np.pi * 0.5 * TIMES)
    two = one + 0.4 * np.cos(2 * np.pi * 3.37 * TIMES)
    for motion, own, foreign in ((one, (0.5, 1.5, 0.75), (0.9, 2.1)), (two, (2.37, 3.87, 1.5), (2.7, 4.1))):
        assert all(of_the_motion(motion, f, DT) for f in own)
        assert not any(of_the_motion(motion, f, DT) for f in foreign)
    assert not of_the_motion(np.exp(-0.05 * TIMES) * one, 0.5, DT)
    rng = np.random.default_rng(1)
    assert not any(of_the_motion(rng.standard_normal(N), f, DT) for f in (0.5, 3.0))
    many = sum(np.cos(2 * np.pi * f * TIMES + f) for f in (0.5, 1.1, 1.7, 2.3))
    assert of_the_motion(many, 3.05, DT)
