"""Inputs between their samples, where no way of reading them makes the model fit.

A model that lacks something, such as the inductance of a coil, may follow the record better with inputs that
are held or straight between their samples than with smooth ones. A fit to the noise would prove that reading;
one that is merely close does not, and what the parameters move by from one reading to the other is an error.
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


def with_other_reading(
    experiment: Experiment, fitted: Fitted, judgement: Judgement, progress: Progress
) -> Judgement:
    """The judgement with the difference to smooth inputs in its errors, where held or straight ones were the
    search's own choice and did not lead to a fit to the noise."""
    chosen = _WORDS.get(fitted.experiment.conditions.inputs)
    if chosen is None or judgement.verdict != "close" or experiment.conditions.inputs != "auto":
        return judgement
    try:
        other = fit(experiment, fitted.as_start(), progress)
    except (ShakedownError, np.linalg.LinAlgError):
        return judgement
    if not other.converged or other.names != fitted.names or not np.all(np.isfinite(other.estimate)):
        return judgement
    shift = other.estimate - fitted.estimate
    inputs = " and ".join(fitted.experiment.model.inputs)
    words = (
        f"Read {chosen} between the samples, {inputs} explains more than as a smooth curve, but not all: "
        "what the parameters move by between the two readings counts as an error."
    )
    covariance = judgement.covariance + np.outer(shift, shift)
    return replace(judgement, covariance=covariance, reasons=[*judgement.reasons, words])
