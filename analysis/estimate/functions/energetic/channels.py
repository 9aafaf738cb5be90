"""What a record shows of an oscillator: displacement, velocity, acceleration, and the motion that follows."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.gaps import filled
from analysis.base.record import Record
from analysis.estimate.functions.energetic.start import Motion
from analysis.estimate.functions.energetic.unknowns import UnknownFunctions
from analysis.experiment.states import derivative_pairs, rate_outputs
from analysis.signal.double_integration import integrated_twice
from analysis.signal.inputs import Inputs
from analysis.signal.smoothing import smooth

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

ACCELERATION = "a"  # channel of an accelerometer that no output of the model describes
_DRIFTED = 0.3  # of the squares of an integrated velocity, by which a drifting zero is believed
_DRIFT = 4  # polynomials of time by which a zero may wander: constant to cubic


def oscillator_states(model: Model) -> tuple[str, str]:
    """Names of displacement and velocity; the model must be one oscillator without other states."""
    pairs = derivative_pairs(model) if len(model.states) == 2 else {}
    if len(pairs) != 1:
        raise ModelError(
            f"{model.name} is not one oscillator: the method wants two states, a displacement and its "
            f'velocity, whose equation holds what is known, such as v = "f".'
        )
    (velocity, place), *_ = pairs.items()
    if (place, velocity) != (0, 1):
        raise ModelError(f"{model.name}: write the displacement first, then its velocity.")
    return model.states[0], model.states[1]


def with_acceleration(model: Model, records: Sequence[Record]) -> Model:
    """The model with an output ``a``, the rate of its velocity, where records hold such a channel and neither
    displacement nor velocity.
    """
    known = {*model.states, *model.inputs, *model.outputs, *model.parameters}
    plain = any(s in record for s in (*model.states, *model.outputs) for record in records)
    if plain or ACCELERATION in known or not any(ACCELERATION in record for record in records):
        return model
    from analysis.model import Model

    raw = tomllib.loads(model.to_toml())
    states = dict(raw["states"])
    outputs = {name: name for name in states} | {ACCELERATION: states[model.states[1]]}
    return Model.from_equations(
        states,
        raw.get("parameters"),
        name=model.name,
        inputs=raw.get("inputs"),
        definitions=raw.get("definitions"),
        outputs=outputs,
        initial=raw.get("initial"),
    )


def acceleration_channel(model: Model, records: Sequence[Record]) -> tuple[str, float]:
    """Name of the channel of an accelerometer and its factor; an empty name where there is none. An output
    whose equation is that of the velocity, times a factor, is one.
    """
    for output, (state, factor) in rate_outputs(model).items():
        name = model.outputs[output]
        if state == 1 and any(name in record for record in records):
            return name, factor
    return "", 1.0


def measured_channels(model: Model, records: Sequence[Record]) -> tuple[list[Array], list[str]]:
    """Channels [rows, N] of each record (nan: not measured) and the rows' names."""
    names = list(oscillator_states(model))
    acceleration, factor = acceleration_channel(model, records)
    factors = [1.0, 1.0]
    if acceleration:
        names, factors = [*names, acceleration], [*factors, factor]
    rows = [[_channel(r, n) / f for n, f in zip(names, factors, strict=True)] for r in records]
    return [np.array(own) for own in rows], names


def sensor_drift(times: Array, data: Array) -> Array:
    """Columns [rows, N, D] by which the zero of a sensor may wander, of the size of its channel.

    An accelerometer is never free of it, and a velocity is integrated where nothing shows the displacement.
    """
    rows, count = data.shape
    there = [bool(np.isfinite(row).any()) for row in data]
    wandering = [i for i in range(1, rows) if there[i] and (i == 2 or not there[0])]
    shapes = _wandering(count)
    out = np.zeros((rows, count, _DRIFT * len(wandering)))
    for k, row in enumerate(wandering):
        out[row, :, _DRIFT * k : _DRIFT * (k + 1)] = float(np.nanstd(data[row])) * shapes
    return out


def _integrated(v: Array, dt: float) -> tuple[Array, Array]:
    """Displacement about its mean, and the velocity; without the offset and drift of its sensor where they
    would be a good part of the displacement.
    """

    def integral(rows: Array) -> Array:
        total = np.zeros_like(rows)
        total[1:] = np.cumsum(0.5 * dt * (rows[1:] + rows[:-1]), axis=0)
        return np.asarray(total - np.mean(total, axis=0), dtype=np.float64)

    courses, x = _wandering(len(v)), integral(v)
    columns = integral(courses)
    factors = np.linalg.lstsq(columns, x, rcond=None)[0]
    freed = x - columns @ factors
    if np.sum(freed**2) > (1.0 - _DRIFTED) * np.sum(x**2):
        return x, v
    return freed, v - courses @ factors


def first_drift(drift: Array, data: Array, motion: Motion) -> Array:
    """Factors of the drift's columns to begin with: what the motion as it was integrated leaves out."""
    shown = data.copy()
    if motion.a is not None:
        shown[2] -= motion.a
    if motion.v is not None:
        shown[1] -= motion.v
    there = np.isfinite(data) & np.any(drift != 0, axis=2)
    return np.asarray(np.linalg.lstsq(drift[there], shown[there], rcond=None)[0], dtype=np.float64)


def _wandering(count: int) -> Array:
    """Courses [N, D] of a zero: constant to cubic."""
    grid = np.linspace(-1.0, 1.0, count)
    return np.asarray(np.polynomial.legendre.legvander(grid, _DRIFT - 1), dtype=np.float64)


def motion_of(
    kernels: object, p: Array, times: Array, data: Array, inputs: Inputs, noise: float = 0.0
) -> Motion:
    """The measured channels with gaps bridged, the smoothed motion, and the known part along it. ``noise`` is
    that of the acceleration.
    """
    dt = float(times[1] - times[0])
    x, v, a = (_bridged(data[i]) if i < len(data) else None for i in range(3))
    if x is not None or v is not None:
        a = None
    if a is not None:
        x, smooth_v, a = integrated_twice(a, dt, noise, _wandering(len(times)))
        smooth_x = x
    else:
        if x is None:
            if v is None:
                raise DataError(
                    "The record holds neither the displacement nor the velocity of the model, nor an "
                    f"acceleration: a channel {ACCELERATION}, or an output with the velocity's equation."
                )
            x, v = _integrated(v, dt)
        smooth_x, slope = smooth(x, dt)
        smooth_v = slope if v is None else smooth(v, dt)[0]
    state = np.ascontiguousarray(np.vstack([smooth_x, smooth_v]))
    rate = np.empty_like(state)
    kernels.rhs_many(times, state, np.ascontiguousarray(inputs.values(times)), p, rate)  # type: ignore[attr-defined]
    return Motion(times, x, v, a, smooth_x, smooth_v, rate[1])


def zero_is_free(model: Model, unknowns: UnknownFunctions) -> bool:
    """Whether the equations stay true when the displacement is shifted, H with it: what is known changes with
    x by a function of what H depends on alone.
    """
    if unknowns.x is None:
        return False
    kernels, rng = model.kernels(), np.random.default_rng(3)
    m, k = len(model.inputs), len(model.parameters)
    slope, by_parameter, rate = np.empty((2, 2)), np.empty((2, k)), np.empty(2)
    place, speed, found = rng.standard_normal(), rng.standard_normal(), []
    for _ in range(4):
        state = np.array([place, rng.standard_normal() if unknowns.v is None else speed])
        kernels.jac(rng.random(), state, rng.standard_normal(m), model.values(), rate, slope, by_parameter)
        found.append(slope[1, 0])
    return bool(np.ptp(found) <= 1e-9 * np.max(np.abs(found)))


def _channel(record: Record, name: str) -> Array:
    if name not in record:
        return np.full(len(record), np.nan)
    return np.where(record.channels[name].valid(), record[name], np.nan)


def _bridged(row: Array) -> Array | None:
    return filled(row) if np.isfinite(row).any() else None
