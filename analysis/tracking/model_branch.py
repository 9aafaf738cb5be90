"""The model's branch under a tracked one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.dynamics.imposed import ImposedMotion, ImposedMotions
from analysis.model import Model
from analysis.tracking.tracking import TrackedBranch

Array = NDArray[np.float64]

PLACES = 120
_NEWTON = 20


def model_branch(model: Model, output: str, branch: TrackedBranch) -> tuple[Array, Array]:
    """Force (or frequency) and amplitude along the model's branch, over the range that was measured."""
    solver, p = ImposedMotions(model, output), model.values()
    points = [one.point for one in branch.in_order()]
    if branch.plan.kind == "force":
        amplitudes = np.linspace(points[0].amplitude.value, points[-1].amplitude.value, PLACES)
        motion: ImposedMotion | None = None
        forces = np.full(PLACES, np.nan)
        for i, amplitude in enumerate(amplitudes):
            found = solver.solve(p, branch.plan.at, float(amplitude), motion)
            if found is not None:
                forces[i], motion = abs(found.force), found
        return forces, amplitudes
    rows = [_at_phase(solver, p, one.frequency.value, one.amplitude.value, one.phase.value) for one in points]
    return np.array(rows), np.array([one.amplitude.value for one in points])


def _at_phase(solver: ImposedMotions, p: Array, frequency: float, amplitude: float, phase: float) -> float:
    """Frequency (Hz) at which the model's motion of this amplitude has this phase behind its force."""
    motion: ImposedMotion | None = None
    for _ in range(_NEWTON):
        found = solver.solve(p, frequency, amplitude, motion)
        if found is None:
            return float("nan")
        motion = found
        turned, slope = found.force * np.exp(1j * phase), found.by_frequency * np.exp(1j * phase)
        step = -turned.imag / slope.imag
        frequency += float(np.clip(step, -0.05 * frequency, 0.05 * frequency))
        if abs(step) < 1e-10 * frequency:
            return frequency
    return float("nan")
