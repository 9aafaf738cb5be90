"""Measured inputs between their samples: smooth, or held by a converter. The record does not tell.

A force that a converter holds, splined through its samples, acts half a sample early: of a right model that
leaves residuals that are not noise. So where the model's best motion leaves more than the noise, the inputs
are read as held, and that is kept if it leaves a tenth less, by the rule of the identification (see
analysis/estimate/shooting/interpolation.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.shooting.interpolation import LOWER
from analysis.experiment import Conditions
from analysis.model import Model
from analysis.validation.residuals import left_over
from analysis.validation.subject import Subject, prepare_subject

_AT_NOISE = 1.2  # mean square of what is left over the noise up to which nothing else is tried
HELD = Conditions(inputs="hold", denoise=False)


def read_subject(
    model: Model,
    record: Record,
    values: Mapping[str, float],
    frequency: float | None = None,
    stated: Conditions | None = None,
) -> Subject:
    """The model and the record, read as ``stated``, else with the inputs as it follows them better."""
    if stated is not None:
        return prepare_subject(model, record, values, frequency, stated)
    smooth = prepare_subject(model, record, values, frequency)
    if not smooth.model.inputs:
        return smooth
    left = left_over(smooth, SILENT)
    if left <= _AT_NOISE:
        return smooth
    held = prepare_subject(model, record, values, frequency, HELD)
    return held if left_over(held, SILENT) < LOWER * left else smooth
