"""Misfits of different measures are not joined in one line."""

from __future__ import annotations

import math

from app.descents import apart, stages


def test_given_a_misfit_that_rises_then_another_stage_begins_there() -> None:
    misfits = [90.0, 4.0, 4.0, 1200.0, 1100.0, 1100.0 * (1 + 1e-12), 1300.0]
    assert [misfits[s] for s in stages(misfits)] == [misfits[:3], misfits[3:6], misfits[6:]]
    steps, values = apart(misfits)
    assert [v for v in values if not math.isnan(v)] == misfits and len(values) == len(misfits) + 2
    assert [s for s, v in zip(steps, values, strict=True) if not math.isnan(v)] == [1, 2, 3, 4, 5, 6, 7]
    assert math.isnan(values[3]) and math.isnan(values[7])
    assert stages([]) == [] and apart([]) == ([], [])
