"""Verdict on a beam: what the sensors' own noise and the stated errors of frequencies do not explain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Curve, Estimate, Identification
from analysis.estimate.finish.evidence import RARE
from analysis.estimate.functions.beam.fit import Problem
from analysis.estimate.functions.judgement import Left, Verdict, judge_left, own_noise
from analysis.estimate.functions.penalised import Fit

Array = NDArray[np.float64]

_FAR = 0.03  # rms of the frequencies' relative errors beyond which a beam misses them
_SPARE = 1.5  # frequencies beyond the degrees of freedom without which a curve is an assumption


def judged(result: Identification, task: Problem, fit: Fit) -> Identification:
    """The result with its verdict; error bars are widened where something but noise is left."""
    verdict = judge_left(_left(task, fit), fit.converged, undetermined=_unknowable(task, fit))
    if verdict.verdict != "cannot tell":
        verdict = _with_frequencies(verdict, task, result)
    factor = verdict.widening
    return replace(
        result,
        verdict=verdict.verdict,
        reasons=verdict.reasons,
        extra={**result.extra, **verdict.findings},
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
    """Frequencies alone that are too few for a curve."""
    count = len(task.system.beam.frequencies)
    curves = [b.symbol for b in task.unknowns.blocks if b.intervals]
    if task.observations or not curves or count - max(fit.freedom, len(curves) * 2) >= _SPARE:
        return []
    return [
        f"{count} frequencies cannot tell {', '.join(curves)} along the beam: the curve and its band repeat "
        "the assumption that it varies smoothly. Measure more frequencies, or a motion."
    ]


def _with_frequencies(verdict: Verdict, task: Problem, result: Identification) -> Verdict:
    """The verdict with the measured frequencies beside those of the beam."""
    from scipy.special import chdtrc

    beam = task.system.beam
    if not beam.frequencies:
        return verdict
    found = np.array(result.extra["frequencies_hz"])
    numbers = np.array(beam.frequency_modes or range(1, len(beam.frequencies) + 1)) - 1
    if len(found) <= numbers.max():
        state = task.system.state(np.asarray(task.unknowns.start), derivatives=False)
        found = task.system.frequencies(state)[0]
    miss = found[numbers] / np.array(beam.frequencies) - 1.0
    statistic = float(np.sum((miss / beam.frequency_error) ** 2))
    probability = float(chdtrc(max(len(miss) - 1, 1), statistic))
    size = 100 * float(np.sqrt(np.mean(miss**2)))
    stated = f"{100 * beam.frequency_error:.2g} %"
    if probability >= RARE:
        words = f"The measured frequencies are met within {size:.2g} % ({stated} stated)."
        return replace(verdict, reasons=[*verdict.reasons, words])
    worst = int(np.argmax(np.abs(miss)))
    words = (
        f"The beam misses the measured frequencies by {size:.2g} % (rms) where {stated} was stated, most of "
        f"all {beam.frequencies[worst]:.4g} Hz: supports, length, a mode number or the theory is wrong."
    )
    far = size > 100 * _FAR or verdict.verdict == "misses"
    return replace(
        verdict, verdict="misses" if far else "close", reasons=[words, *verdict.reasons],
        findings={**verdict.findings, "missed share": max(size / 100, _share(verdict))},
    )  # fmt: skip


def _share(verdict: Verdict) -> float:
    return float(verdict.findings.get("missed share", 0.0))


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
