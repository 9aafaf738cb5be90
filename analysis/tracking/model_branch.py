"""The model's branch under a tracked one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.dynamics.imposed import ImposedMotion, ImposedMotions
from analysis.model import Model
from analysis.tracking.tracking import Kind, TrackedBranch

Array = NDArray[np.float64]

PLACES = 120
_NEWTON = 20


def model_branch(model: Model, output: str, branch: TrackedBranch) -> tuple[Array, Array]:
    """Force (or frequency) and amplitude along the model's branch, over the range that was measured."""
    points = [one.point for one in branch.in_order()]
    frequencies, amplitudes, phases = (
        np.array([getattr(one, name).value for one in points]) for name in ("frequency", "amplitude", "phase")
    )
    return branch_beside(model, output, branch.plan.kind, branch.plan.at, frequencies, amplitudes, phases)


def branch_beside(
    model: Model, output: str, kind: Kind, at: float, frequencies: Array, amplitudes: Array, phases: Array
) -> tuple[Array, Array]:
    """The same beside measured motions, in the order of the branch; ``at``: Hz of a curve over the force."""
    solver, p = ImposedMotions(model, output), model.values()
    if kind == "force":
        fine = np.linspace(amplitudes[0], amplitudes[-1], PLACES)
        motion: ImposedMotion | None = None
        forces = np.full(PLACES, np.nan)
        for i, amplitude in enumerate(fine):
            found = solver.solve(p, at, float(amplitude), motion)
            if found is not None:
                forces[i], motion = abs(found.force), found
        return forces, fine
    seen = zip(frequencies, amplitudes, phases, strict=True)
    return np.array([_at_phase(solver, p, float(f), float(a), float(u)) for f, a, u in seen]), amplitudes


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
