"""Transfer functions: measured (H1 with its coherence), of the model under the same input, and linearised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.record import Record
from analysis.base.words import rounded
from analysis.dynamics.equilibrium import Equilibrium
from analysis.experiment import Conditions, Experiment
from analysis.experiment.states import start_states
from analysis.model import Model
from analysis.signal.frequency_response import (
    COHERENT,
    FrequencyResponse,
    ResponseAverager,
    default_lines,
)
from analysis.simulation.simulate import simulate
from analysis.validation.check import Check, Panel, Trace, graded, impossible
from analysis.validation.drive import depends_on_time, opened
from analysis.validation.subject import LONGEST, Subject

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

NAME, TITLE = "transfer", "Transfer function"
_NEAR, _FAR = 0.05, 0.15  # difference of the two, of the measured one
_STEP = 1e-3  # of an input's standard deviation: for the derivatives by it


def linearised(
    model: Model, rest: Equilibrium, frequency: Array, source: int = 0, output: int = 0, step: float = _STEP
) -> Complex:
    """C (2 pi i f - A)^-1 B + D of the motion around an equilibrium, from one input to one output.

    ``step``: small change of the input, in its unit, from which B and D are taken.
    """
    kernels, p = model.kernels(), model.values()
    n, m, k, q = len(model.states), len(model.inputs), len(p), len(model.outputs)
    x, u = np.ascontiguousarray(rest.state), np.zeros(m)
    A, C = np.empty((n, n)), np.empty((q, n))
    kernels.jac(0.0, x, u, p, np.empty(n), A, np.empty((n, k)))
    kernels.out_jac(0.0, x, u, p, np.empty(q), C, np.empty((q, k)))
    B, D = _by_input(model, x, u, source, output, step)
    s = 2j * np.pi * frequency
    shifted = s[:, None, None] * np.eye(n) - A
    return np.asarray(
        (np.linalg.solve(shifted, np.tile(B[:, None], (len(s), 1, 1)))[:, :, 0] @ C[output]) + D
    )


def _by_input(model: Model, x: Array, u: Array, source: int, output: int, h: float) -> tuple[Array, float]:
    """Derivatives of rates and of an output by one input."""
    kernels, p = model.kernels(), model.values()
    rates, outs = np.empty((2, len(x))), np.empty((2, len(model.outputs)))
    for i, side in enumerate((-h, h)):
        moved = u.copy()
        moved[source] += side
        kernels.rhs(0.0, x, moved, p, rates[i])
        kernels.out(0.0, x, moved, p, outs[i])
    return (rates[1] - rates[0]) / (2 * h), float((outs[1] - outs[0])[output] / (2 * h))


def check_transfer(
    subject: Subject, given: FrequencyResponse | Record | None, rests: list[Equilibrium]
) -> tuple[Check, FrequencyResponse | None]:
    """The measured transfer function beside the model's; also the measured one, if it was given."""
    still = opened(subject.model)
    try:
        if isinstance(given, FrequencyResponse):
            return _against_linearised(subject, still, given, rests), given
        if given is not None:
            measured, own = _both(still, given, subject.conditions)
            return _compared(subject, measured, own.response, "the model under the same input"), measured
        if not subject.model.inputs or subject.driven is not None:
            words = "No transfer function was measured, and the drive of this record is a single tone."
            return impossible(
                NAME, TITLE, words if subject.forced else "No transfer function was measured."
            ), None
        measured, own = _both(still, subject.record, subject.conditions)
        return _compared(subject, measured, own.response, "the model under the same input"), None
    except ShakedownError as error:
        return impossible(NAME, TITLE, str(error)), None


def _both(
    still: Model, record: Record, conditions: Conditions
) -> tuple[FrequencyResponse, FrequencyResponse]:
    """H1 of the record and of the model's own answer to the recorded input."""
    if not still.inputs or depends_on_time(still):
        raise DataError("The model has no input that a transfer function could start from.")
    record = record.cut(0, LONGEST)
    (data,) = Experiment(still, record, conditions).runs
    start = start_states(still, data, still.values())[:, 0]
    run = simulate(still, data.times, start, None, data.inputs, rtol=1e-7)
    i = int(np.flatnonzero(data.measured)[0])
    names = (still.inputs[0], still.outputs[i])
    drive = data.inputs.values(data.times)[0]
    answer, own = data.outputs[i], run.outputs[i]
    if not np.isfinite(own).all():
        raise DataError("The model escapes under the recorded input.")
    averager = ResponseAverager(3, record.rate, default_lines(len(drive)))
    averager.add(np.stack([drive, answer, np.where(np.isfinite(answer), own, np.nan)]))
    return averager.response(1, names=names), averager.response(2, names=names)


def _against_linearised(
    subject: Subject, still: Model, given: FrequencyResponse, rests: list[Equilibrium]
) -> Check:
    stable = [e for e in rests if e.stable]
    if not stable or not still.inputs:
        raise DataError("The model has no stable rest, or no input, for a transfer function to hold beside.")
    source = still.inputs.index(given.input) if given.input in still.inputs else 0
    output = still.outputs.index(given.output) if given.output in still.outputs else int(subject.shown[0])
    step = _STEP * _size_of_input(subject, still.inputs[source])
    curves = [linearised(still, e, given.frequency, source, output, step) for e in stable]
    best = int(np.argmin([_miss(given, c) for c in curves]))
    where = "; ".join(f"{n} = {v:.3g}" for n, v in zip(subject.model.states, stable[best].state, strict=True))
    return _compared(subject, given, curves[best], f"the model linearised at {where}")


def _size_of_input(subject: Subject, name: str) -> float:
    """Standard deviation of an input where the record has it; 1 where it does not."""
    channel = subject.record.channels.get(name)
    size = float(np.nanstd(channel.data)) if channel is not None else 0.0
    return size if np.isfinite(size) and size > 0 else 1.0


def _miss(measured: FrequencyResponse, own: Complex) -> float:
    good = measured.coherence >= COHERENT
    if np.count_nonzero(good) < 5:
        raise DataError("The coherence is below 0.8 nearly everywhere: the transfer function says nothing.")
    size = float(np.linalg.norm(measured.response[good]))
    return float(np.linalg.norm((own - measured.response)[good]) / size)


def _compared(subject: Subject, measured: FrequencyResponse, own: Complex, what: str) -> Check:
    miss = _miss(measured, own)
    status = graded(miss, _NEAR, _FAR)
    good = measured.coherence >= COHERENT
    words = (
        f"Where the coherence is above {COHERENT:g}, the measured transfer function and that of {what} "
        f"differ by {rounded(100 * miss, 2)} %."
    )
    f, unit = measured.frequency, "Hz" if subject.unit == "s" else f"1/{subject.unit}"
    names = f"{measured.output or 'output'} / {measured.input or 'input'}"
    size = Panel(
        "Size",
        f"frequency [{unit}]",
        f"|{names}|",
        (
            Trace("measured", f[good], np.abs(measured.response)[good], "measured"),
            Trace("model", f, np.abs(own), "model"),
        ),
        log_y=True,
    )
    angle = Panel(
        "Phase",
        f"frequency [{unit}]",
        "phase [°]",
        (
            Trace("measured", f[good], np.degrees(np.angle(measured.response))[good], "measured"),
            Trace("model", f, np.degrees(np.angle(own)), "model"),
        ),
    )
    coherence = Panel("Coherence", f"frequency [{unit}]", "coherence [–]", (
        Trace("measured", f, measured.coherence, "measured"),
        Trace("only what is above counts", f[[0, -1]], np.full(2, COHERENT), "limit"),
    ))  # fmt: skip
    return Check(NAME, TITLE, status, words, {"miss": miss}, (), (size, angle, coherence))
