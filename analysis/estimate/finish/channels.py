"""What may be wrong with a channel: an offset of an output, a delay of an output or of an input.

Each is one more column of the score test (see score.py). A delay d of an input that was recorded late means
that f(t + d) drove the specimen: its column is the slope of the input carried through the linearised flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.linearised import Linearisation, Regression
from analysis.estimate.finish.missing_terms import tested
from analysis.estimate.finish.score import Missing, Scores, output_columns

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

OFFSET, DELAY = "offset", "delay"
_HALF = 0.15  # samples around half a sample within which an early input looks like one that is held


def channel_faults(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: Sequence[Regression]
) -> list[Missing]:
    """Offset and delay of every output, delay of every input that is taken as exact.

    The delay of a noisy input is left to the outputs: the slope of its noise would pass for a delay.
    """
    model = fitted.experiment.model
    found = []
    for i, name in enumerate(model.outputs):
        found += _of_output(fitted, linear, regressions, i, name)
    if not fitted.inputs_estimated:
        for i, name in enumerate(model.inputs):
            columns = [part.columns(*part.shifted_input(i)) for part in linear]
            rows = [
                part.stretch.inputs.values(part.stretch.times)[i] for part in linear if part.stretch.inputs
            ]
            slopes = [np.gradient(row, p.stretch.times) for row, p in zip(rows, linear, strict=True)]
            found.append(
                _missing(tested(fitted, regressions, columns), 0, DELAY, name, _power(slopes), _power(rows))
            )
    return found


def _of_output(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: Sequence[Regression], i: int, name: str
) -> list[Missing]:
    columns, moved, whole = [], [], []
    for part in linear:
        rows = part.stretch.outputs - part.residuals.T * part.stretch.sigma[:, None]  # of the model
        shifts = np.zeros((part.q, part.N, 2))
        shifts[i, :, 0] = 1.0
        shifts[i, :, 1] = -np.gradient(np.nan_to_num(rows[i]), part.stretch.times)
        columns.append(output_columns(part, shifts))
        moved.append(shifts[i])
        whole.append(np.nan_to_num(part.stretch.outputs[i]))
    scored = tested(fitted, regressions, columns)
    size = _power(whole)
    return [
        _missing(scored, j, kind, name, _power([rows[:, j] for rows in moved]), size)
        for j, kind in enumerate((OFFSET, DELAY))
    ]


def _power(rows: Sequence[Array]) -> float:
    return float(sum(np.sum(row**2) for row in rows))


def _missing(scored: Scores, j: int, kind: str, name: str, own: float, whole: float) -> Missing:
    coefficients, errors = scored.coefficients()
    share = abs(float(coefficients[j])) * np.sqrt(own / whole) if whole > 0 else 0.0
    shift = tuple(float(change) for change in -scored.along[:, j] * coefficients[j])
    t = float(scored.t_values()[j])
    return Missing(kind, name, t, float(coefficients[j]), float(errors[j]), float(share), shift=shift)


def looks_held(channel: str, samples: float, inputs: Sequence[str], outputs: Sequence[str]) -> bool:
    """Whether a channel that seems late by so many samples speaks of inputs that are held between them."""
    if channel in inputs:
        return abs(samples + 0.5) < _HALF
    return len(inputs) > 0 and len(outputs) == 1 and abs(samples - 0.5) < _HALF


def fault_words(fault: Missing, interval: float, inputs: Sequence[str], outputs: Sequence[str]) -> str:
    """An offset or a delay in words, with the option that fits it."""
    size = f"t = {abs(fault.t):.1f}"
    if fault.name == OFFSET:
        return (
            f"The sensor of {fault.place} seems to have an offset of {fault.coefficient:.3g} ± "
            f"{fault.stderr:.2g} ({size}): the option offsets={fault.place} fits it."
        )
    samples = fault.coefficient / interval
    way = "late" if samples > 0 else "early"
    option = f"delays={','.join(outputs) if fault.place in inputs else fault.place}"
    if looks_held(fault.place, samples, inputs, outputs):
        option = f"inputs=hold (a force that is held between samples acts so) or {option}"
    size = f"{fault.coefficient / np.sign(samples):.3g} ± {fault.stderr:.2g}, {size}"
    late = f"{fault.place} seems to come {abs(samples):.2g} samples too {way}"
    return f"{late} ({size}): the option {option} fits it."
