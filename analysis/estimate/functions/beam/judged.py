"""Verdict on a beam: what the sensors' own noise and the stated errors of frequencies do not explain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Curve, Estimate, Identification
from analysis.base.words import percent
from analysis.estimate.finish.evidence import RARE
from analysis.estimate.functions.beam.fit import Problem
from analysis.estimate.functions.beam.frequency_responses import compare_response
from analysis.estimate.functions.beam.mode_shapes import compare_shapes
from analysis.estimate.functions.beam.other_beams import other_beams
from analysis.estimate.functions.beam.stated import Stated, stated_numbers
from analysis.estimate.functions.judgement import Left, Verdict, judge_left, own_noise
from analysis.estimate.functions.penalised import Fit

Array = NDArray[np.float64]

_SHEAR = 3.1  # E/(kappa G): 2 (1 + 0.3) over 5/6
_FAR = 0.03  # rms of the frequencies' relative errors beyond which a beam misses them
_SPARE = 0.5  # measured numbers beyond the degrees of freedom without which nothing is left to judge
_CLEAR_SHARE = 0.05  # of the largest value of a shape, rms, beyond which a beam misses it


def judged(result: Identification, task: Problem, fit: Fit) -> Identification:
    """The result with its verdict; error bars are widened where something but noise is left."""
    verdict = judge_left(
        _left(task, fit), fit.converged, undetermined=_unknowable(task, fit) or other_beams(task, fit)
    )
    stated = stated_numbers(task, fit)
    if verdict.verdict != "cannot tell":
        verdict = _with_frequencies(verdict, task, fit)
        verdict = _with_shapes(verdict, task, fit)
        verdict = _with_responses(verdict, task, fit)
    if verdict.verdict in ("fits", "close"):
        verdict = _with_stated(verdict, stated)
    factor = verdict.widening
    return replace(
        verdict.written(result),
        warnings=[*result.warnings, *(s.words() for s in stated if s.unchecked), *_slender(task, fit)],
        curves={name: _widened(curve, factor) for name, curve in result.curves.items()},
        parameters={name: _broader(e, factor) for name, e in result.parameters.items()},
    )


def _left(task: Problem, fit: Fit) -> list[Left]:
    """What is left of each sensor, over all records that have it."""
    names = list(dict.fromkeys(name for o in task.observations for name in o.names))
    residuals = task.residuals(fit.theta)
    out = []
    for name in names:
        data, left = [], []
        for observation, rows in zip(task.observations, residuals, strict=True):
            for i, own in enumerate(observation.names):
                if own == name:
                    data.append(np.where(observation.valid[i], observation.data[i], np.nan))
                    left.append(rows[i])
        noise, doubt = own_noise(data)
        size = noise if np.isfinite(noise) else float(np.sqrt(np.nanmean(np.concatenate(left) ** 2))) or 1.0
        out.append(Left(name, data, left, [row / size for row in left], noise, doubt))
    return out


def _unknowable(task: Problem, fit: Fit) -> list[str]:
    """Frequencies alone, of which no list determines a curve; or no more numbers than unknowns."""
    beam = task.system.beam
    if task.observations or beam.responses:
        return []
    count = len(beam.frequencies)
    curves = [b.symbol for b in task.unknowns.blocks if b.intervals]
    if curves and beam.shapes is None:
        return [
            f"{count} frequencies cannot tell {', '.join(curves)} along the beam: other curves have the same "
            "frequencies, and the band repeats the assumption that it varies smoothly. Measure mode shapes "
            "or a motion, or ask for one number (intervals = 0)."
        ]
    if task.stated - max(fit.freedom, 2.0 * len(curves)) < _SPARE:
        return [
            "There are no more measured numbers than unknowns: nothing is left that could show a wrong "
            "support, length or mode number."
        ]
    return []


def _with_frequencies(verdict: Verdict, task: Problem, fit: Fit) -> Verdict:
    """The verdict with the measured frequencies beside those of the beam."""
    from scipy.special import chdtrc

    beam = task.system.beam
    if not beam.frequencies:
        return verdict
    found = task.system.frequencies(task.system.state(fit.theta, derivatives=False))[0]
    numbers = np.array(beam.frequency_modes or range(1, len(beam.frequencies) + 1)) - 1
    miss = found[numbers] / np.array(beam.frequencies) - 1.0
    statistic = float(np.sum((miss / beam.frequency_error) ** 2))
    probability = float(chdtrc(max(len(miss) - 1, 1), statistic))
    size = 100 * float(np.sqrt(np.mean(miss**2)))
    stated = percent(beam.frequency_error)
    if probability >= RARE:
        words = f"The measured frequencies are met within {size:.2g} % ({stated} stated)."
        return replace(verdict, reasons=[*verdict.reasons, words])
    worst = int(np.argmax(np.abs(miss)))
    words = (
        f"The beam misses the measured frequencies by {size:.2g} % (rms) where {stated} was stated, most of "
        f"all {beam.frequencies[worst]:.4g} Hz: supports, length, a mode number or the theory is wrong."
    )
    return _missed(verdict, words, size / 100, _FAR)


def _with_shapes(verdict: Verdict, task: Problem, fit: Fit) -> Verdict:
    """The verdict with the measured mode shapes beside those of the beam."""
    from scipy.special import chdtrc

    beam, system = task.system.beam, task.system
    if beam.shapes is None:
        return verdict
    numbers = np.array(beam.frequency_modes or range(1, len(beam.frequencies) + 1)) - 1
    state = system.state(fit.theta, derivatives=False)
    rows = [row for row, _ in compare_shapes(system, state, fit.theta, beam.shapes, numbers)]
    size = np.array([np.sqrt(np.mean(row**2)) for row in rows]) * beam.shapes.error
    freedom = sum(len(row) - 1 for row in rows)
    probability = float(chdtrc(freedom, sum(float(row @ row) for row in rows)))
    stated = percent(beam.shapes.error)
    if probability >= RARE:
        words = f"The measured mode shapes are met within {percent(size.max())} ({stated} stated)."
        return replace(verdict, reasons=[*verdict.reasons, words])
    worst = int(np.argmax(size))
    words = (
        f"The beam misses the measured mode shapes, most of all that of mode {numbers[worst] + 1}: by "
        f"{percent(size[worst])} of its largest value (rms) where {stated} was stated."
    )
    return _missed(verdict, words, float(size.max()), _CLEAR_SHARE)


def _with_responses(verdict: Verdict, task: Problem, fit: Fit) -> Verdict:
    """The verdict with the measured frequency responses beside those of the beam."""
    from scipy.special import chdtrc

    beam, system = task.system.beam, task.system
    if not beam.responses:
        return verdict
    state = system.state(fit.theta, derivatives=False)
    rows = [compare_response(system, state, fit.theta, r)[0] for r in beam.responses]
    size = np.array([np.sqrt(np.mean(row**2)) * r.error for row, r in zip(rows, beam.responses, strict=True)])
    freedom = max(sum(len(row) for row in rows) - fit.freedom, 1.0)
    probability = float(chdtrc(freedom, sum(float(row @ row) for row in rows)))
    worst = int(np.argmax(size))
    measured = beam.responses[worst]
    stated = percent(measured.error)
    if probability >= RARE:
        words = f"The measured frequency responses are met within {percent(size[worst])} ({stated} stated)."
        return replace(verdict, reasons=[*verdict.reasons, words])
    words = (
        f"The beam misses the measured frequency responses, most of all that at x = {measured.at:.4g} m: by "
        f"{percent(size[worst])} of its size (rms) where {stated} was stated."
    )
    return _missed(verdict, words, float(size.max()), _CLEAR_SHARE)


def _missed(verdict: Verdict, words: str, share: float, far: float) -> Verdict:
    """The verdict where more is missed than was stated; ``far``: the share beyond which it is not close."""
    misses = share > far or verdict.verdict == "misses"
    return replace(
        verdict,
        verdict="misses" if misses else "close",
        reasons=[words, *verdict.reasons],
        missed=float(np.fmax(share, verdict.missed)),
    )


def _with_stated(verdict: Verdict, stated: list[Stated]) -> Verdict:
    """No better than close where the data want another length or mass than the description states."""
    words = [s.words() for s in stated if s.doubted]
    if not words:
        return verdict
    moved = max(abs(s.shift * s.moves) for s in stated if s.doubted)
    missed = float(np.fmax(verdict.missed, moved))
    return replace(verdict, verdict="close", reasons=[*words, *verdict.reasons], missed=missed)


def _slender(task: Problem, fit: Fit) -> list[str]:
    """A sentence where shear and rotary inertia, left out, would show in the measured frequencies."""
    beam, system = task.system.beam, task.system
    if not beam.frequencies or beam.shear is not None or not beam.gyration:
        return []
    highest = max(beam.frequency_modes or (len(beam.frequencies),))
    state, space = system.state(fit.theta, derivatives=False), system.space
    mass = task.unknowns.property_at("mass", fit.theta, space.points)
    turn = space.slope @ state.basis[:, system.rigid + highest - 1]
    lower = 0.5 * beam.gyration * (1.0 + _SHEAR) * float((space.weights * mass) @ turn**2)
    if lower < beam.frequency_error:
        return []
    return [
        f"Shear and rotary inertia lower the frequency of mode {highest} by some {percent(lower)}: count "
        f"them with shear = {_SHEAR:g} in [section] (E over kappa G of a solid steel section)."
    ]


def _widened(curve: Curve, factor: float) -> Curve:
    y, low, high = (np.array(row) for row in (curve.y, curve.lower, curve.upper))
    if np.all(low > 0):  # the band of a logarithm
        low, high = y * (low / y) ** factor, y * (high / y) ** factor
    else:
        low, high = y + factor * (low - y), y + factor * (high - y)
    return replace(curve, lower=low.tolist(), upper=high.tolist())


def _broader(estimate: Estimate, factor: float) -> Estimate:
    value, ideal = estimate.value, estimate.stderr
    return replace(
        estimate,
        stderr=factor * ideal,
        lower=value + factor * (estimate.lower - value),
        upper=value + factor * (estimate.upper - value),
        stderr_ideal=ideal,
    )
