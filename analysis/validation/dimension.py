"""Correlation dimension of the record and of the model's motion seen through the same sensors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.reconstruct.dimension import CorrelationDimension, correlation_dimension
from analysis.validation.chance import judged_among
from analysis.validation.check import Check, Panel, Role, Trace, graded, impossible
from analysis.validation.exponents import thinned
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

NAME, TITLE = "dimension", "Correlation dimension"
_NEAR, _FAR = 0.2, 0.6  # difference of the dimensions: agreement, doubt
_MOST = 10_000  # samples


def check_dimension(subject: Subject) -> Check:
    """Dimensions by the same scaling region, taken from the record."""
    if subject.driven is None or subject.fading:
        return impossible(NAME, TITLE, subject.reason or subject.fading)
    if subject.twin is None:
        return Check(NAME, TITLE, "failed", "The model escapes: its motion grows without bound.")
    measured = _estimate(subject, subject.states)
    own = _estimate(subject, subject.twin, measured.region) if measured is not None else None
    if measured is None or own is None:
        return impossible(NAME, TITLE, "Too few points of the record are close for a correlation dimension.")
    gap = abs(measured.value - own.value)
    noise = 2 * float(np.hypot(measured.stderr, own.stderr))
    status = graded(gap, max(_NEAR, min(noise, _FAR)), _FAR)
    verdict = {"passed": "they agree", "doubtful": "they hardly agree"}.get(status, "they do NOT agree")
    if status != "passed":  # is it further off than another record of the same motion would be?
        others = [_estimate(subject, states, measured.region) for states in subject.other_twins]
        values = np.array([d.value for d in (own, *others) if d is not None])
        status, verdict = judged_among(measured.value, values, status, verdict)
    said = [f"{d.value:.2f} ± {d.stderr:.2f}" for d in (measured, own)]
    words = f"Record {said[0]}, model {said[1]}: {verdict}."
    numbers = {
        "record": measured.value,
        "record_stderr": measured.stderr,
        "model": own.value,
        "model_stderr": own.stderr,
    }
    return Check(NAME, TITLE, status, words, numbers, (), (_panel(measured, own),))


def _estimate(
    subject: Subject, states: Array, region: tuple[float, float] | None = None
) -> CorrelationDimension | None:
    try:
        found = correlation_dimension(thinned(subject, states)[0][:, :_MOST], region=region)
    except ShakedownError:
        return None
    return found if np.isfinite(found.value) else None


def _panel(measured: CorrelationDimension, own: CorrelationDimension) -> Panel:
    def trace(found: CorrelationDimension, role: Role) -> Trace:
        middle = np.sqrt(found.radii[1:] * found.radii[:-1])
        good = np.isfinite(found.slopes)
        return Trace(role, middle[good], found.slopes[good], role)

    return Panel(
        "Local slope",
        "radius [spread]",
        "d ln C / d ln r [–]",
        (trace(measured, "measured"), trace(own, "model")),
        log_x=True,
    )
