"""Rest states of the model with the frequencies and damping of small motions (Yuan 1995, section 4.8)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.words import percent
from analysis.dynamics.equilibrium import Equilibrium, equilibria
from analysis.signal.frequency_response import FrequencyResponse
from analysis.validation.check import Check, graded, impossible
from analysis.validation.drive import depends_on_time, opened
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

NAME, TITLE = "equilibria", "Rest and small motions"
_NEAR, _FAR = 0.03, 0.10  # relative difference of the natural frequency
_HALF = 0.7  # of the peak's height: frequencies above it give the mode


def rest_states(subject: Subject) -> list[Equilibrium]:
    """Equilibria without drive within the visited range and half as far again; empty if there are none."""
    still = opened(subject.model)
    if depends_on_time(still):
        return []
    low, high = subject.states.min(axis=1), subject.states.max(axis=1)
    room = 0.25 * (high - low)
    box = {n: (float(a), float(b)) for n, a, b in zip(still.states, low - room, high + room, strict=True)}
    try:
        found = equilibria(still, box, inputs=[0.0] * len(still.inputs))
    except ShakedownError:
        return []
    return [
        e for e in found if np.all(e.state > low - (high - low)) and np.all(e.state < high + (high - low))
    ]


def check_equilibria(
    subject: Subject, rests: Sequence[Equilibrium], measured: FrequencyResponse | None
) -> Check:
    """Where the model rests and how it moves there, beside the main mode of a measured transfer function."""
    if not rests:
        return impossible(NAME, TITLE, "The model has no rest state within the visited range.")
    unit = "Hz" if subject.unit == "s" else f"per {subject.unit}"
    rows = [
        {
            **{n: float(v) for n, v in zip(subject.model.states, _tidied(subject, e.state), strict=True)},
            "stable": e.stable,
            "frequencies": [float(v) for v in e.frequencies],
            "damping_ratios": [float(v) for v in e.damping_ratios],
        }
        for e in rests
    ]
    stable = [e for e in rests if e.stable and len(e.frequencies)]
    first = subject.model.states[0]
    modes = [
        f"at {first} = {e.state[0]:.3g}: {e.frequencies[0]:.4g} {unit}, "
        f"damping {percent(e.damping_ratios[0])}"
        for e in stable
    ]
    said = "Small motions of the model " + "; ".join(modes) if modes else "No rest of the model is stable"
    said += "."
    if measured is None:
        words = f"{said} Nothing to hold them beside: no transfer function was given."
        return Check(NAME, TITLE, "not possible", words, {}, rows)
    if not stable:
        return Check(NAME, TITLE, "failed", said, {}, rows)
    frequency, damping = main_mode(measured)
    nearest = min(stable, key=lambda e: abs(float(e.frequencies[0]) - frequency))
    gap = abs(float(nearest.frequencies[0]) / frequency - 1)
    words = f"{said} The transfer function shows {frequency:.4g} {unit} and {percent(damping)}."
    numbers = {
        "frequency": float(nearest.frequencies[0]),
        "measured_frequency": frequency,
        "damping_ratio": float(nearest.damping_ratios[0]),
        "measured_damping_ratio": damping,
    }
    return Check(NAME, TITLE, graded(gap, _NEAR, _FAR), words, numbers, rows)


def _tidied(subject: Subject, state: Array) -> Array:
    """Zero where only rounding is left."""
    return np.where(np.abs(state) < 1e-9 * np.ptp(subject.states, axis=1), 0.0, state)


def main_mode(measured: FrequencyResponse) -> tuple[float, float]:
    """Frequency and damping ratio of the highest peak: a rational function of one mode, fitted around it.

    (b0 + b1 s) / (s^2 + 2 z w s + w^2), iterated linear least squares (Sanathanan and Koerner 1963).
    """
    f, H = measured.frequency, measured.response
    good = measured.coherence > 0.5
    f, H = f[good], H[good]
    top = int(np.argmax(np.abs(H)))
    near = np.abs(H) > _HALF * np.abs(H[top])
    left, right = top, top
    while left > 0 and near[left - 1]:
        left -= 1
    while right < len(f) - 1 and near[right + 1]:
        right += 1
    part = slice(max(left - 3, 0), right + 4)
    scale = 2 * np.pi * f[top]
    s, h = 1j * 2 * np.pi * f[part] / scale, H[part]
    weight = np.ones(len(s))
    answer = np.array([0.0, 1.0, 0.0, 0.0])
    for _ in range(10):
        rows = np.stack([h * s, h, -np.ones_like(s), -s], axis=1) * weight[:, None]
        right_side = -h * s**2 * weight
        stacked = np.concatenate([rows.real, rows.imag])
        answer, *_ = np.linalg.lstsq(stacked, np.concatenate([right_side.real, right_side.imag]), rcond=None)
        weight = 1.0 / np.maximum(np.abs(s**2 + answer[0] * s + answer[1]), 1e-6)
    natural = float(np.sqrt(max(answer[1], 1e-12)))
    damping = float(answer[0] / (2 * natural))
    return float(natural * np.sqrt(max(1 - damping**2, 0.0)) * f[top]), damping
