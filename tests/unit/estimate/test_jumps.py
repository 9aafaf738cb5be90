"""Jumps in time that nobody marked: found, said, and the record fitted on either side."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from analysis import Model, Record, identify
from analysis.base.identification import Identification

DT, N, LOST = 0.05, 1200, 17
FIRST = 700  # sample before which the others were lost
TRUTH = {"c": 0.05, "k": 4.0}


def _identified(lost: int, quintic: float = 0.0) -> Identification:
    """A ring-down of which ``lost`` samples are missing in the middle."""
    times = DT * np.arange(N + lost)
    x = solve_ivp(
        lambda t, z: [z[1], -0.05 * z[1] - 4 * z[0] - quintic * z[0] ** 5],
        (0, times[-1]), (1.0, 0.0), t_eval=times, rtol=1e-10, atol=1e-12,
    ).y[0]  # fmt: skip
    x = np.delete(x, np.s_[FIRST : FIRST + lost])
    x = x + 0.02 * x.std() * np.random.default_rng(5).standard_normal(N)
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.06}, "k": {"guess": 5.0}}, outputs={"x": "x"}
    )
    return identify(model, Record.from_arrays(1 / DT, {"x": x}), "shooting")


def test_given_samples_lost_without_a_mark_then_the_record_is_cut_there() -> None:
    found = _identified(LOST)
    assert found.verdict == "fits"
    (place,) = found.extra["jumps"]
    assert 0 <= place - FIRST * DT < 25 * DT
    assert "The motion jumps just before t = 35" in found.reasons[0]
    for name, truth in TRUTH.items():
        estimate = found.parameters[name]
        assert abs(estimate.value - truth) < 3 * estimate.stderr < 0.02 * truth


def test_given_a_spring_that_the_model_lacks_then_large_motion_is_not_taken_for_a_jump() -> None:
    found = _identified(0, quintic=0.4)
    assert found.verdict != "fits" and "jumps" not in found.extra
