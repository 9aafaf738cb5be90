"""Records as a model sees them: measured outputs, inputs as functions of time, and a first path of the
states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.record import Record
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.signal.noise import HIGHEST_ORDER
from analysis.signal.smoothing import clean_input, smooth

if TYPE_CHECKING:
    from analysis.estimate.path.estimate import Segment

Array = NDArray[np.float64]

_PIECE, _PIECES = 1024, 8  # samples of a long channel that its noise is judged by


@dataclass(frozen=True, eq=False)
class Measurement:
    """One record in the model's order of outputs and inputs. Lost samples are nan."""

    times: Array  # [N]
    outputs: Array  # [q, N]; a channel that was not measured is nan throughout
    inputs: Inputs
    spans: tuple[tuple[int, int], ...]  # stretches in which every input is known
    variants: tuple[
        Inputs, ...
    ] = ()  # the inputs changed by one standard deviation of what is unknown of them
    input_noise: Array = field(default_factory=lambda: np.zeros(0))  # [m] white noise on the inputs' samples

    @property
    def dt(self) -> float:
        return float(self.times[1] - self.times[0])

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Which outputs have samples."""
        return np.asarray(np.isfinite(self.outputs).any(axis=1))


def measurements(
    model: Model, records: Sequence[Record], kind: str = "cubic", denoise: bool = True
) -> list[Measurement]:
    """What the records hold of the model's outputs and inputs.

    Unless ``denoise`` is off, a periodic drive is replaced by its harmonics; of other inputs the noise is
    measured, for the methods that weigh it. Steps stay steps.
    """
    if not records:
        raise DataError("There is no record to identify from.")
    return [_measurement(model, record, kind, denoise) for record in records]


def _measurement(model: Model, record: Record, kind: str, denoise: bool) -> Measurement:
    if len(record) < 8:
        raise DataError(f"The record has {len(record)} samples: too few to identify anything.")
    if not any(name in record for name in model.outputs):
        raise DataError(
            f"The record holds none of the outputs {', '.join(model.outputs)} of {model.name}: it has "
            f"{', '.join(record.names)}. Name the channels that stand for them."
        )
    outputs = np.full((len(model.outputs), len(record)), np.nan)
    for i, name in enumerate(model.outputs):
        if name in record:
            channel = record.channels[name]
            outputs[i] = np.where(channel.valid(), channel.data, np.nan)
    missing = [name for name in model.inputs if name not in record]
    if missing:
        raise DataError(
            f"{model.name} needs the measured input {', '.join(missing)}, but the record has "
            f"{', '.join(record.names)}."
        )
    known = np.ones(len(record), dtype=bool)
    samples = np.zeros((len(model.inputs), len(record)))
    noise = np.zeros(len(model.inputs))
    modes: list[tuple[int, Array]] = []
    for i, name in enumerate(model.inputs):
        channel = record.channels[name]
        valid = channel.valid()
        known &= valid
        filled = _filled(np.where(valid, channel.data, np.nan))
        samples[i] = filled
        if denoise:
            clean = clean_input(filled, record.dt, record.excitation)
            samples[i], noise[i] = clean.samples, clean.noise
            modes += [(i, mode) for mode in clean.modes]
    inputs = Inputs.from_samples(0.0, record.dt, samples, kind) if len(samples) else Inputs.none()
    variants = []
    for i, mode in modes:
        changed = samples.copy()
        changed[i] += mode
        variants.append(Inputs.from_samples(0.0, record.dt, changed, kind))
    return Measurement(record.times, outputs, inputs, _stretches(known), tuple(variants), noise)


def _stretches(known: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    return tuple((int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= 8)


def _filled(row: Array) -> Array:
    good = np.isfinite(row)
    if good.all() or not good.any():
        return row
    return np.interp(np.arange(len(row)), np.flatnonzero(good), row[good])


def noise_of(row: Array) -> float:
    """Noise of a channel from its high-order differences (see :mod:`analysis.signal.noise`); 0 for want of
    samples.

    The value alone, from at most a few thousand samples: quick enough to run at every identification.
    """
    good = row[np.isfinite(row)]
    if len(good) < 20 * HIGHEST_ORDER:
        return 0.0
    pieces = [good[s : s + _PIECE] for s in np.linspace(0, max(len(good) - _PIECE, 0), _PIECES).astype(int)]
    differences = np.stack(pieces if len(good) > _PIECE * _PIECES else [good])
    levels = np.empty(HIGHEST_ORDER)
    for q in range(HIGHEST_ORDER):
        differences = np.diff(differences, axis=1)
        size = np.abs(differences).ravel()
        middle = len(size) // 2
        levels[q] = 1.4826 * np.partition(size, middle)[middle] / np.sqrt(comb(2 * q + 2, q + 1))
        if q > 1 and levels[q] > 0.98 * levels[q - 1]:
            return float(levels[: q + 1].min())
    return float(levels[-1])


def direct_states(model: Model) -> dict[int, int]:
    """Outputs that are a state and nothing else: {output: state}."""
    kernels = model.kernels()
    n, m, k, q = len(model.states), len(model.inputs), len(model.parameters), len(model.outputs)
    rng = np.random.default_rng(1)
    found = np.ones((q, n), dtype=bool)
    for _ in range(2):
        x, y = rng.random(n), np.empty(q)
        kernels.out(rng.random(), x, rng.random(m), model.values() + 0.01 * rng.random(k), y)
        found &= y[:, None] == x[None, :]
    return {int(i): int(j) for i, j in zip(*np.nonzero(found), strict=True)}


def derivative_pairs(model: Model) -> dict[int, int]:
    """State j is the derivative of state i, by the equations alone: {j: i}."""
    return {j: i for j, (i, factor) in scaled_derivatives(model).items() if factor == 1.0}


def scaled_derivatives(model: Model) -> dict[int, tuple[int, float]]:
    """The derivative of state i is a known factor times state j, by the equations alone: {j: (i, factor)}."""
    kernels = model.kernels()
    n, m = len(model.states), len(model.inputs)
    free = np.array([name in model.free for name in model.parameters], dtype=bool)
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(3):
        x, dx = rng.standard_normal(n), np.empty(n)
        p = model.values() + 0.01 * free * rng.standard_normal(len(free))
        kernels.rhs(rng.random(), x, rng.standard_normal(m), p, dx)
        ratios.append(dx[:, None] / x[None, :])
    factor = ratios[0]
    with np.errstate(invalid="ignore"):  # equations that overflow at a random state: no constant factor
        same = np.all([np.abs(r - factor) <= 1e-12 * np.abs(factor) for r in ratios[1:]], axis=0)
    pairs: dict[int, tuple[int, float]] = {}
    for i, j in zip(*np.nonzero(same & np.isfinite(factor) & (factor != 0)), strict=True):
        if i != j:
            exact = 1.0 if abs(factor[i, j] - 1) < 1e-12 else float(factor[i, j])
            pairs.setdefault(int(j), (int(i), exact))
    return pairs


@dataclass(frozen=True, eq=False)
class StateSamples:
    """States at the samples: those seen by the outputs, and velocities got from them by differentiation."""

    values: Array  # [n, N]
    seen: NDArray[np.bool_]  # measured, directly or through an output that can be inverted
    derived: dict[int, tuple[int, float]]  # d(state i)/dt = factor * state j gave state j: {j: (i, factor)}


def state_samples(model: Model, measurement: Measurement, values: Array, smoothed: bool) -> StateSamples:
    """States as the outputs show them, smoothed as far as their noise asks for or as they are."""
    n, N = len(model.states), len(measurement.times)
    X = np.zeros((n, N))
    for name, initial in model.initial.items():
        X[model.states.index(name)] = initial.value
    seen = np.zeros(n, dtype=bool)
    measured = np.flatnonzero(measurement.measured)
    rows = np.stack([_filled(measurement.outputs[i]) for i in measured])
    if smoothed:
        rows = np.stack([smooth(row, measurement.dt)[0] for row in rows])
    direct = direct_states(model)
    if all(int(i) in direct for i in measured):
        columns = [direct[int(i)] for i in measured]
        X[columns] = rows
        seen[columns] = True
    else:
        _invert_outputs(model, measurement, values, measured, rows, X, seen)
    derived = {}
    for derivative, (state, factor) in scaled_derivatives(model).items():
        if seen[state] and not seen[derivative]:
            X[derivative] = smooth(X[state], measurement.dt)[1] / factor
            derived[derivative] = state, factor
    return StateSamples(X, seen, derived)


def _invert_outputs(
    model: Model,
    measurement: Measurement,
    values: Array,
    measured: NDArray[np.int64],
    rows: Array,
    X: Array,
    seen: NDArray[np.bool_],
) -> None:
    """States that give the measured outputs, by Newton's method at every sample."""
    n, N = X.shape
    kernels, U = model.kernels(), measurement.inputs.values(measurement.times)
    Y = np.empty((len(model.outputs), N))
    Yx = np.empty((len(model.outputs), n, N))
    Yp = np.empty((len(model.outputs), len(values), N))
    for _ in range(6):
        kernels.out_jac_many(measurement.times, X, U, values, Y, Yx, Yp)
        G = Yx[measured].transpose(2, 0, 1)
        seen |= np.any(G != 0, axis=(0, 1))
        if np.all(G[:1] == G):  # linear outputs, as most are: one inverse serves all samples
            step = np.linalg.pinv(G[0]) @ (rows - Y[measured])
        else:
            step = (np.linalg.pinv(G) @ (rows - Y[measured]).T[:, :, None])[:, :, 0].T
        if not np.all(np.isfinite(step)):
            break
        X += step
        if np.all(np.abs(step).max(axis=1) <= 1e-9 * (np.ptp(X, axis=1) + 1e-300)):
            break


def start_states(model: Model, measurement: Measurement, values: Array) -> Array:
    """A first path [n, N] for the maximum-likelihood finisher; what nothing shows stays as the model
    starts.
    """
    samples = state_samples(model, measurement, values, smoothed=True)
    X, known = samples.values, samples.seen.copy()
    known[list(samples.derived)] = True
    for derivative, (state, factor) in scaled_derivatives(model).items():
        if known[derivative] and not known[state]:
            X[state] = factor * _integral(X[derivative], measurement.dt)
    return X


def _integral(rate: Array, dt: float) -> Array:
    """Running integral without its straight-line part, which an offset of the sensor would make."""
    total = np.concatenate([[0.0], np.cumsum(0.5 * dt * (rate[1:] + rate[:-1]))])
    grid = np.linspace(-1, 1, len(total))
    return np.asarray(total - np.polynomial.Polynomial.fit(grid, total, 1)(grid))


def path_segments(
    model: Model, data: Sequence[Measurement], values: Sequence[Array], states: Sequence[Array] | None = None
) -> list[Segment]:
    """Segments for :func:`analysis.estimate.path.estimate.estimate_path`: one for each stretch in which the
    inputs
    are known.
    """
    from analysis.estimate.path.estimate import Segment

    segments = []
    for record, measurement in enumerate(data):
        own = values[min(record, len(values) - 1)]
        X = states[record] if states is not None else start_states(model, measurement, own)
        for first, stop in measurement.spans:
            if not np.isfinite(measurement.outputs[:, first:stop]).any():
                continue
            segments.append(
                Segment(
                    np.ascontiguousarray(measurement.times[first:stop]),
                    np.ascontiguousarray(measurement.outputs[:, first:stop]),
                    np.ascontiguousarray(X[:, first:stop]),
                    measurement.inputs if measurement.inputs.count else None,
                    record,
                    variants=measurement.variants,
                    input_noise=measurement.input_noise,
                )
            )
    if not segments:
        raise DataError("Every stretch of the records is broken by lost samples: nothing is left to fit.")
    return segments
