"""A high-pass filter in one sensor's channel: an input that is coupled through a capacitor, the lower limit
of a piezoelectric accelerometer.

Of the output x such a channel shows x - q with q' = a (x - q): what is missing is -q, one more column of the
score test for each of a few corners a, from a fifth of the motion's own frequency down to an eightieth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.gaps import filled
from analysis.estimate.finish.linearised import Linearisation, Regression
from analysis.estimate.finish.missing_terms import tested
from analysis.estimate.finish.score import Missing, output_columns
from analysis.signal.recursion import first_order

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

HIGH_PASS = "high-pass"
_CORNERS = (
    0.2,
    0.05,
    0.0125,
)  # of the motion's frequency: one within a factor 2 of the filter's looks like it


def high_passed(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: Sequence[Regression]
) -> list[Missing]:
    """A high-pass in the channel of every output; only what takes slow motion away, never what adds it."""
    found = []
    for i, name in enumerate(fitted.experiment.model.outputs):
        rows = [filled(p.stretch.outputs[i] - p.residuals[:, i] * p.stretch.sigma[i]) for p in linear]
        frequency = _frequency(rows, linear)
        if not frequency > 0:
            continue
        lost = [_slow_parts(row, p.stretch.times, frequency) for row, p in zip(rows, linear, strict=True)]
        columns = []
        for part, own in zip(linear, lost, strict=True):
            shifts = np.zeros((part.q, part.N, len(_CORNERS)))
            shifts[i] = -own
            columns.append(output_columns(part, shifts))
        scored = tested(fitted, regressions, columns)
        sizes, t = scored.coefficients(), scored.t_values()
        whole = sum(float(np.nansum(p.stretch.outputs[i] ** 2)) for p in linear)
        for j, corner in enumerate(_CORNERS):
            coefficient = float(sizes[0][j])
            if not coefficient > 0:
                continue
            power = sum(float(np.sum(own[:, j] ** 2)) for own in lost)
            shift = tuple(float(change) for change in -scored.along[:, j] * coefficient)
            found.append(
                Missing(
                    HIGH_PASS, name, float(t[j]), coefficient, float(sizes[1][j]),
                    coefficient * float(np.sqrt(power / whole)), shift=shift, scale=corner * frequency,
                )
            )  # fmt: skip
    return found


def high_pass_words(fault: Missing) -> str:
    """The filter in words, with its corner and what to write into the model."""
    rate = fault.coefficient * fault.scale  # exact while the filter is slow beside the motion
    return (
        f"{fault.place} seems to have passed a high-pass filter (an input coupled through a capacitor, the "
        f"lower limit of an accelerometer) with a time constant near {1.0 / rate:.2g} "
        f"(t = {abs(fault.t):.1f}): a state q with q' = (output - q)/tau and the "
        "output less q in the model fit it."
    )


def _frequency(rows: Sequence[Array], linear: Sequence[Linearisation]) -> float:
    """Of the motion, as an angular rate: its slope over its size about the mean."""
    mean = float(np.mean(np.concatenate(rows)))
    size = sum(float(np.sum((row - mean) ** 2)) for row in rows)
    slope = sum(
        float(np.sum(np.gradient(row, p.stretch.times) ** 2)) for row, p in zip(rows, linear, strict=True)
    )
    return float(np.sqrt(slope / size)) if size > 0 else 0.0


def _slow_parts(row: Array, times: Array, frequency: float) -> Array:
    """What each filter takes away [N, corners], begun long ago at the mean of what it sees first."""
    found = np.empty((len(row), len(_CORNERS)))
    interval = float(times[1] - times[0]) if len(times) > 1 else 0.0
    for j, corner in enumerate(_CORNERS):
        kept = float(np.exp(-corner * frequency * interval))
        first = float(np.mean(row[: max(int(1.0 / max(1.0 - kept, 1e-9)), 1)]))
        found[:, j] = first_order(kept, (1.0 - kept) * row, first)
    return found
