"""Hum fitted along: a tone in a sensor that stands out of the residuals becomes a nuisance unknown.

Amplitude, phase and frequency of the tone are found together with the parameters (Gauss and Newton on the
linearised fit, then the fit again on outputs without the tone, in turn until both stay); the errors of the
parameters are those with the tone projected out. A tone at a line of the motion itself is left alone: what a
wrong model leaves of a periodic motion are tones, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.fit import optimum_near
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.held_out import output_spread
from analysis.estimate.finish.linearised import hum_columns, joined, linearisations, regressions_of
from analysis.estimate.finish.missing_terms import tested
from analysis.estimate.finish.score import combined
from analysis.estimate.finish.tones import Tone, of_the_motion, tone
from analysis.experiment.hum import Hum

if TYPE_CHECKING:
    from analysis.experiment import Experiment

HUM = "hum"  # finding: the tones that were fitted along

_MOST_TONES = 4  # of an output: the mains and its harmonics
_MOST_RUNS = 8  # each has a tone of its own
_STEPS = 8  # of the tone, each with a fit
_SETTLED = 0.05  # standard errors by which a last step may move it


def without_hum(fitted: Fitted, progress: Progress = SILENT) -> Fitted | None:
    """The fit with the tones that are left fitted along; None where there are none, or no fit with them."""
    whole, start = fitted.experiment, fitted.start
    hum: tuple[Hum, ...] = ()
    if len(whole.runs) > _MOST_RUNS or fitted.inputs_estimated:
        return None
    found = fitted
    for _ in range(_MOST_TONES * fitted.sigma.shape[1]):
        added = _next_tone(found)
        if not added:
            break
        hum = (*hum, *added)
        again = _fitted_along(whole, found, hum, progress)
        if again is None:
            return None
        found, hum = again, again.experiment.hum
    if found is fitted:
        return None
    regressions, followed = regressions_of(found, linearisations(found))
    if not followed:
        return None
    named = [
        {"output": whole.model.outputs[h.output], "frequency": h.frequency, "amplitude": h.amplitude}
        for h in hum
    ]
    start = replace(start, findings={**start.findings, HUM: named})
    return replace(found, start=start, information=joined(regressions)[0])


def hum_words(fitted: Fitted) -> list[str]:
    """The tones that were fitted along, a sentence each."""
    outputs = fitted.experiment.model.outputs
    words = []
    for h in fitted.experiment.hum:
        spread = output_spread(fitted, h.output)
        share = 100.0 * h.amplitude / np.sqrt(2.0) / spread if spread > 0 else float("nan")
        words.append(
            f"A tone at {h.frequency:.4g} cycles per unit of time runs through {outputs[h.output]}, "
            f"amplitude {h.amplitude:.2g} ({share:.2g} % of its spread): hum, or a force that the model "
            "lacks, fitted with the parameters."
        )
    return words


def _next_tone(fitted: Fitted) -> list[Hum]:
    """The surest tone that is left and is none of the motion's own lines, in every run of its output."""
    best: tuple[Tone, int] | None = None
    for i in range(fitted.sigma.shape[1]):
        found = tone([piece.residuals[i] for piece in fitted.pieces], fitted.pieces[0].run.dt)
        if found is None or (best is not None and found.probability >= best[0].probability):
            continue
        motions = [p.run.outputs[i, p.first : p.stop] - p.residuals[i] for p in fitted.pieces]
        longest = max(motions, key=lambda row: int(np.isfinite(row).sum()))
        if not of_the_motion(longest, found.frequency, fitted.pieces[0].run.dt):
            best = found, i
    if best is None:
        return []
    line, output = best
    return [
        Hum(number, output, line.frequency, float(run.times.mean()))
        for number, run in enumerate(fitted.experiment.runs)
        if np.isfinite(run.outputs[output]).any()
    ]


def _fitted_along(whole: Experiment, fitted: Fitted, hum: Sequence[Hum], progress: Progress) -> Fitted | None:
    """The fit with these tones at their best; None where it has no end."""
    found = fitted
    for _ in range(_STEPS):
        linear = linearisations(found)
        columns = [hum_columns(hum, part) for part in linear]
        regressions = [part.regression() for part in linear]
        if not all(r.finite for r in regressions):
            return None
        step, covariance = combined(tested(found, regressions, columns))
        hum = [h.moved(step[3 * i : 3 * i + 3]) for i, h in enumerate(hum)]
        moved = optimum_near(whole.without_hum(hum), found, progress)
        if moved is None:
            return None
        found = moved
        error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        if np.all(np.abs(step) <= _SETTLED * error + 1e-12 * np.abs(step).max()):
            return found
    return None
