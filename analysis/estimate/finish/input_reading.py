"""Inputs between their samples, where the search itself chose to read them as held or straight.

It chooses by the misfit, and of a fit that misses for another reason (a model that lacks the inductance of a
coil, a jump in time) that says little. So the smooth reading is tried again where the search ended, and once
more when a fault of the record was found: the reading that follows the samples better is kept. Where the two
follow equally well, or the model is merely close, what the parameters move by between them is an error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from analysis.base.errors import ShakedownError
from analysis.base.progress import Progress
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.judge import Judgement
from analysis.experiment import Experiment

_WORDS = {"hold": "as held", "linear": "as straight lines"}
_EQUALLY = 15.0  # of chi-square between two readings that the data do not choose between


def in_the_better_reading(given: Experiment, fitted: Fitted, progress: Progress) -> Fitted:
    """The fit, or the one with smooth inputs if these follow the samples better."""
    smooth = _smooth(given, fitted, progress)
    if smooth is None or smooth.chi2_at(fitted.sigma) >= fitted.chi2_at(fitted.sigma):
        return fitted
    return replace(smooth, start=fitted.start)


def with_other_reading(
    given: Experiment, fitted: Fitted, judgement: Judgement, progress: Progress
) -> Judgement:
    """The judgement with the difference to smooth inputs in its errors, unless the data prove the reading."""
    if judgement.verdict not in ("fits", "close"):
        return judgement
    smooth = _smooth(given, fitted, progress)
    if smooth is None:
        return judgement
    proven = smooth.chi2_at(fitted.sigma) - fitted.chi2_at(fitted.sigma) > _EQUALLY
    if judgement.verdict == "fits" and proven:
        return judgement
    shift = smooth.estimate - fitted.estimate
    chosen, inputs = _WORDS[fitted.experiment.conditions.inputs], " and ".join(fitted.experiment.model.inputs)
    more = "explains more than as a smooth curve, but not all" if proven else "is as likely as a smooth curve"
    words = (
        f"Read {chosen} between the samples, {inputs} {more}: "
        "what the parameters move by between the two readings counts as an error."
    )
    covariance = judgement.covariance + np.outer(shift, shift)
    return replace(judgement, covariance=covariance, reasons=[*judgement.reasons, words])


def _smooth(given: Experiment, fitted: Fitted, progress: Progress) -> Fitted | None:
    """The fit with smooth inputs where others were the search's own choice; None where it does not end."""
    said = given.conditions
    if said.inputs != "auto" or fitted.experiment.conditions.inputs not in _WORDS:
        return None
    try:
        other = fit(fitted.experiment.with_inputs("auto", said.denoise), fitted.as_start(), progress)
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    sound = other.converged and other.names == fitted.names and np.all(np.isfinite(other.estimate))
    return other if sound else None
