"""Test functions and quadrature on samples."""

import numpy as np
import pytest

from analysis.signal.splines import make_probes

WHOLE = np.array([0])


@pytest.mark.parametrize(("uniform", "tolerance"), [(True, 1e-7), (False, 2e-4)])
def test_given_a_smooth_function_when_integrated_by_parts_then_the_parts_agree(uniform, tolerance):
    rng = np.random.default_rng(1)
    t = np.arange(400) * 0.01
    if not uniform:
        t = t + 0.004 * rng.uniform(-1, 1, 400)
    functions = make_probes(t, WHOLE, 4)
    x, dx, ddx = np.sin(7 * t), 7 * np.cos(7 * t), -49 * np.sin(7 * t)
    once = functions.integrals(dx[None])[0]
    assert -functions.integrals(x[None], functions.slope)[0] == pytest.approx(
        once, abs=tolerance * np.abs(once).max()
    )
    twice = functions.integrals(ddx[None])[0]
    assert functions.integrals(x[None], functions.curvature)[0] == pytest.approx(
        twice, abs=50 * tolerance * np.abs(twice).max()
    )


def test_given_a_jump_listed_twice_when_integrated_then_each_side_counts_once():
    left, right = np.arange(0, 101) * 0.01, np.arange(100, 201) * 0.01
    t = np.concatenate([left, right])
    functions = make_probes(t, np.array([0, 101]), 3)
    step = np.concatenate([np.full(101, 2.0), np.full(101, -1.0)])
    ramp = np.where(t < 1, 2 * t, 2 - (t - 1))  # its integral, continuous
    assert -functions.integrals(ramp[None], functions.slope)[0] == pytest.approx(
        functions.integrals(step[None])[0], abs=1e-12
    )
