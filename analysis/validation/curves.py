"""Measured branches and backbones beside the model: the force that it needs for every measured motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.base.errors import ShakedownError
from analysis.base.words import percent
from analysis.dynamics.imposed import ImposedMotion, ImposedMotions
from analysis.experiment.curves import MeasuredCurve
from analysis.experiment.units import check_curve_units
from analysis.model import Model
from analysis.validation.check import MEASURED, MODEL, Check, Panel, Trace, graded, impossible

NAME, TITLE = "curves", "Measured curves"
_NEAR, _FAR = 0.03, 0.10  # rms of what is missed over that of the force: its real and imaginary part
_WITHIN = 2.5  # rms of what is missed over the errors told: then it is none


def check_curves(model: Model, values: Mapping[str, float], curves: Sequence[MeasuredCurve]) -> Check:
    """The model's force (and phase) at the measured frequencies and amplitudes."""
    if not curves:
        return impossible(NAME, TITLE, "No response curve or backbone was given.")
    model = model.with_values({n: v for n, v in values.items() if n in model.parameters})
    try:
        return _checked(model, curves)
    except ShakedownError as error:
        return impossible(NAME, TITLE, str(error))


def _checked(model: Model, curves: Sequence[MeasuredCurve]) -> Check:
    rows: list[dict[str, float | str]] = []
    squares, total, weighed, lost = 0.0, 0.0, [], 0
    traces = []
    for curve in curves:
        check_curve_units(model, curve)
        solver = ImposedMotions(model, curve.output or model.outputs[0])
        motion: ImposedMotion | None = None
        own = np.full(len(curve), np.nan)
        for i in range(len(curve)):
            found = solver.solve(model.values(), float(curve.frequency[i]), float(curve.amplitude[i]), motion)
            if found is None:
                lost += 1
                continue
            motion, own[i] = found, abs(found.force)
            miss, size, error = _miss(curve, i, found)
            squares, total = squares + miss**2, total + size**2
            weighed += [miss / error] if np.isfinite(error) and error > 0 else []
            rows.append(
                {
                    "curve": curve.source, "frequency": float(curve.frequency[i]),
                    "amplitude": float(curve.amplitude[i]), "force": float(curve.force[i]),
                    "model's force": abs(found.force), "missed": miss,
                }
            )  # fmt: skip
        told = curve.force if np.isfinite(curve.force).any() else curve.frequency
        traces += [
            Trace(f"measured {curve.source}", told, curve.amplitude, MEASURED, points=True),
            Trace(f"model {curve.source}", own if told is curve.force else told, curve.amplitude, MODEL),
        ]
    if lost:
        words = f"The model has no motion at {lost} of {lost + len(rows)} measured points."
        return Check(NAME, TITLE, "failed", words, {"lost": float(lost)}, rows)
    share = float(np.sqrt(squares / total))
    over = float(np.sqrt(np.mean(np.square(weighed)))) if weighed else float("nan")
    status = "passed" if over < _WITHIN else graded(share, _NEAR, _FAR)
    errors = f", {over:.2g} times the errors told" if np.isfinite(over) else ""
    words = f"Over {len(rows)} points the model misses {percent(share)} of the force{errors}."
    panel = Panel("Response over force", "force", "amplitude", tuple(traces))
    return Check(NAME, TITLE, status, words, {"missed share": share, "over errors": over}, rows, (panel,))


def _miss(curve: MeasuredCurve, i: int, found: ImposedMotion) -> tuple[float, float, float]:
    """What is missed of the force at a point, the force's size, and the error of what is missed."""
    force, phase = curve.force[i], curve.phase[i]
    own = [found.by_frequency * curve.frequency_error[i], found.by_amplitude * curve.amplitude_error[i]]
    if np.isfinite(force) and np.isfinite(phase):
        miss = abs(found.force - force * np.exp(-1j * phase))
        parts = [curve.force_error[i], force * curve.phase_error[i], abs(own[0]), abs(own[1])]
        return float(miss), float(force), float(np.linalg.norm(parts))
    if np.isfinite(force):
        direction = found.force / abs(found.force)
        miss, parts = abs(abs(found.force) - force), [curve.force_error[i]]
    else:
        direction = 1j * np.exp(-1j * phase)
        miss = abs((found.force * np.conj(direction)).real)
        parts = [abs(found.force) * curve.phase_error[i]]
    parts += [(o * np.conj(direction)).real for o in own]
    return float(miss), abs(found.force), float(np.linalg.norm(parts))
