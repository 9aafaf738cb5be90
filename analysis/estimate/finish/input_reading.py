"""Inputs between their samples, where the search itself chose to read them as held or straight.

It chooses by the misfit, and of a fit that misses for another reason (a model that lacks the inductance of a
coil, a jump in time) that says little. So the smooth reading is tried again where the search ended, and once
more when a fault of the record was found: the reading that follows the samples better is kept. Where the two
follow equally well, or the model is merely close, what the parameters move by between them is an error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import Progress
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.judge import Judgement
from analysis.estimate.start import OtherReading, Start
from analysis.experiment import Experiment

Array = NDArray[np.float64]

_WORDS = {"hold": "as held", "linear": "as straight lines"}
_AS_LIKELY = "follows the record as well as read as a smooth curve"
_HELD_LATE = 0.5  # samples by which a held input acts later than a smooth one
_ALIKE = 1.1  # times the misfit: the motion was not lost between the readings
_EQUALLY = 15.0  # of chi-square between two readings that the data do not choose between


def in_the_better_reading(given: Experiment, fitted: Fitted, progress: Progress) -> Fitted:
    """The fit, or the one with smooth inputs if these follow the samples better."""
    smooth = _smooth(given, fitted, progress)
    if smooth is None:
        return fitted
    gain = fitted.chi2_at(fitted.sigma) - smooth.chi2_at(fitted.sigma)
    if gain <= 0.0:
        return fitted
    shift = (fitted.estimate - smooth.estimate).tolist() if gain < _EQUALLY else None
    left = OtherReading(fitted.experiment.conditions.inputs, shift)
    return replace(smooth, start=replace(fitted.start, other_reading=left))


def with_other_reading(
    given: Experiment, fitted: Fitted, judgement: Judgement, progress: Progress
) -> Judgement:
    """The judgement with what the parameters move by between the readings in its errors, unless the data
    prove one of them."""
    if judgement.verdict not in ("fits", "close"):
        return judgement
    inputs = " and ".join(fitted.experiment.model.inputs)
    left = fitted.start.other_reading
    if left is not None and fitted.experiment.conditions.inputs == "auto":
        if left.shift is None or len(left.shift) != len(fitted.estimate):
            return judgement
        read = f"Read {_WORDS[left.kind]} between the samples, {inputs}"
        return _unsure(judgement, np.array(left.shift), f"{read} {_AS_LIKELY}")
    smooth = _smooth(given, fitted, progress)
    if smooth is None:
        return judgement
    gain = smooth.chi2_at(fitted.sigma) - fitted.chi2_at(fitted.sigma)
    read = f"Read {_WORDS[fitted.experiment.conditions.inputs]} between the samples, {inputs}"
    if judgement.verdict == "fits" and gain > _EQUALLY:
        words = f"{read} explains more than as a smooth curve (chi2 lower by {gain:.3g})."
        return replace(judgement, reasons=[*judgement.reasons, words])
    more = "explains more than as a smooth curve, but not all" if gain > _EQUALLY else _AS_LIKELY
    return _unsure(judgement, smooth.estimate - fitted.estimate, f"{read} {more}")


def _unsure(judgement: Judgement, shift: Array, words: str) -> Judgement:
    words = (
        f"{words}: what the parameters move by between the two readings counts as an error; the option "
        "inputs= settles it."
    )
    covariance = judgement.covariance + np.outer(shift, shift)
    return replace(judgement, covariance=covariance, reasons=[*judgement.reasons, words])


def _smooth(given: Experiment, fitted: Fitted, progress: Progress) -> Fitted | None:
    """The fit with smooth inputs where others were the search's own choice; None where it does not end.

    A single motion may be lost on the way from one reading to the other; a path is not.
    """
    said = given.conditions
    if said.inputs != "auto" or fitted.experiment.conditions.inputs not in _WORDS:
        return None
    smooth = fitted.experiment.with_inputs("auto", said.denoise)
    best: Fitted | None = None
    for start in (fitted.as_start(), replace(_later(fitted), engine="path")):
        try:
            found = fit(smooth, start, progress)
        except (ShakedownError, np.linalg.LinAlgError):
            continue
        sound = found.converged and found.names == fitted.names and np.all(np.isfinite(found.estimate))
        if sound and (best is None or found.chi2_at(fitted.sigma) < best.chi2_at(fitted.sigma)):
            best = found
        if best is not None and best.chi2_at(fitted.sigma) < _ALIKE * fitted.chi2_at(fitted.sigma):
            break
    return best


def _later(fitted: Fitted) -> Start:
    """A start with the outputs' unknown delays as they are with smooth inputs: held ones act half a sample
    later."""
    start, conditions = fitted.as_start(), fitted.experiment.conditions
    if start.sensors is None or conditions.inputs != "hold":
        return start
    outputs = fitted.experiment.model.outputs
    moved = np.array(start.sensors)
    late = np.array([name in conditions.delays for name in outputs])
    moved[:, len(outputs) : 2 * len(outputs)] += _HELD_LATE * fitted.pieces[0].run.dt * late
    return replace(start, sensors=moved)
