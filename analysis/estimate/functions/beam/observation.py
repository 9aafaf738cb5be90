"""What the sensors of one record see, with derivatives in every unknown, and the comparison with the data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.record import Record
from analysis.estimate.functions.beam.description import INPUT_KINDS, SENSOR_KINDS, Beam, Sensor
from analysis.estimate.functions.beam.response import Complex, filtered, stepped
from analysis.estimate.functions.beam.system import BeamSystem, State

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Observation:
    """One record prepared for comparison: rows are its sensors, columns its samples."""

    names: tuple[str, ...]
    times: Array
    dt: float
    places: Array  # of the sensors, m
    orders: NDArray[np.intp]  # time derivatives that a sensor takes
    data: Array  # [S, T], base motion taken off; invalid samples are 0
    valid: NDArray[np.bool_]
    base_order: int
    base: Array | None  # samples of the base motion
    forces: tuple[tuple[float, Array], ...]  # (place, samples)
    loaded: bool  # the constant load acts
    start_modes: int  # 0: from rest
    offsets: NDArray[np.bool_]

    def first(self, count: int) -> Observation:
        """The first samples only."""
        return replace(
            self,
            times=self.times[:count],
            data=self.data[:, :count],
            valid=self.valid[:, :count],
            base=None if self.base is None else self.base[:count],
            forces=tuple((at, samples[:count]) for at, samples in self.forces),
        )

    def only(self, chosen: NDArray[np.intp]) -> Observation:
        """Some of the sensors."""
        return replace(
            self,
            names=tuple(self.names[i] for i in chosen),
            places=self.places[chosen],
            orders=self.orders[chosen],
            data=self.data[chosen],
            valid=self.valid[chosen],
            offsets=self.offsets[chosen],
        )

    def predict(self, system: BeamSystem, state: State, theta: Array) -> tuple[Array, Array]:
        """Response [S, T] and its sensitivity [P, S, T]."""
        modes, count = state.modes, len(state.dpoles)
        sensors, dsensors = self._seen(system, state, theta)
        value = np.zeros((len(sensors), len(self.times)))
        slope = np.zeros((count, *value.shape))
        poles = modes.poles[modes.kept]
        if self.base is not None:
            pair = filtered(poles, self.base, self.dt)
            drives = [(state.base_load, state.dbase_load, self.base_order, pair, self.base)]
        else:
            drives = []
        length = system.unknowns.block("length")
        for at, samples in self.forces:
            row, slide = (r[0] @ state.basis for r in system.rows(np.array([at]), theta))
            moved = {} if length is None else {length.where.start: slide}
            drives.append((row, moved, 0, filtered(poles, samples, self.dt), samples))
        if self.loaded:
            load = system.unknowns.scalar("load", theta)
            pair, ones = stepped(poles, self.times), np.ones(len(self.times))
            spread = {p: load * row for p, row in state.dspread_load.items()}
            drives.append((load * state.spread_load, spread, 0, pair, ones))
        for vector, dvector, order, pair, samples in drives:
            part, dpart = _through(
                state, sensors, dsensors, self.orders + order, vector, dvector, pair, samples
            )
            value += part
            slope += dpart
            if self.loaded and drives and vector is drives[-1][0]:
                for block in system.unknowns.blocks:
                    if block.key == "load" and count:
                        slope[block.where.start] += part
        return value, slope

    def _seen(self, system: BeamSystem, state: State, theta: Array) -> tuple[Array, dict[int, Array]]:
        """Reduced shapes at the sensors [S, r], and their derivatives by the unknowns that move them."""
        rows, slide = system.rows(self.places, theta)
        length = system.unknowns.block("length")
        return rows @ state.basis, {} if length is None else {length.where.start: slide @ state.basis}

    def nuisance(self, system: BeamSystem, state: State, theta: Array) -> tuple[Complex, Array]:
        """Free motions of the lowest modes [modes, S, T] and the sensors' constants [offsets, S, T]."""
        modes = state.modes
        order = np.argsort(np.abs(modes.poles[modes.kept]))[: self.start_modes]
        poles = modes.poles[modes.kept][order]
        shapes = self._seen(system, state, theta)[0] @ modes.shapes[:, modes.kept][:, order]
        shapes = shapes * poles ** self.orders[:, None]
        free = shapes.T[:, :, None] * np.exp(poles[:, None] * self.times)[:, None, :]
        constants = np.zeros((int(self.offsets.sum()), *self.data.shape))
        for i, s in enumerate(np.flatnonzero(self.offsets)):
            constants[i, s] = 1.0
        return free, constants

    def nuisance_slope(self, system: BeamSystem, state: State, theta: Array, amplitudes: Complex) -> Array:
        """Sensitivity [P, S, T] of the free motions with given complex amplitudes."""
        modes = state.modes
        order = np.argsort(np.abs(modes.poles[modes.kept]))[: self.start_modes]
        poles = modes.poles[modes.kept][order]
        sensors, dsensors = self._seen(system, state, theta)
        power = poles ** self.orders[:, None]
        shapes = sensors @ modes.shapes[:, modes.kept][:, order] * power  # [S, m]
        dpoles = state.dpoles[:, order]  # [P, m]
        dshapes = np.einsum("sr,prm->psm", sensors, state.dshapes[:, :, order]) * power
        dshapes += shapes * self.orders[:, None] / poles * dpoles[:, None, :]
        for p, change in dsensors.items():
            dshapes[p] += change @ modes.shapes[:, modes.kept][:, order] * power
        grown = amplitudes[:, None] * np.exp(poles[:, None] * self.times)  # [m, T]
        left = np.concatenate([dshapes, shapes * dpoles[:, None, :]], axis=2)
        right = np.concatenate([grown, grown * self.times])
        return np.asarray(left.real @ right.real - left.imag @ right.imag)


def _through(
    state: State,
    sensors: Array,
    dsensors: dict[int, Array],
    orders: NDArray[np.intp],
    vector: Array,
    dvector: dict[int, Array],
    pair: tuple[Complex, Complex],
    samples: Array,
) -> tuple[Array, Array]:
    """Response to one input and its sensitivity; ``orders``: total time derivatives from input to sensor."""
    modes = state.modes
    kept, poles = modes.shapes[:, modes.kept], modes.poles[modes.kept]
    seen, driven = sensors @ kept, vector @ kept  # [S, K], [K]
    power = modes.twice * poles ** orders[:, None]  # [S, K]
    residue = seen * driven * power
    y, dy = pair
    value = residue.real @ y.real - residue.imag @ y.imag
    direct = orders == 2  # the second derivative also passes the input straight on
    if direct.any():
        value[direct] += np.outer(sensors[direct] @ vector, samples)
    count = len(state.dpoles)
    if count == 0:
        return value, np.zeros((0, *value.shape))
    ddriven = np.einsum("r,prk->pk", vector, state.dshapes)
    for p, change in dvector.items():
        ddriven[p] += change @ kept
    dresidue = (sensors @ state.dshapes) * driven + seen * ddriven[:, None, :]
    for p, change in dsensors.items():
        dresidue[p] += (change @ kept) * driven
    dresidue = dresidue * power + residue * (orders[:, None] / poles) * state.dpoles[:, None, :]
    left = np.concatenate([dresidue, residue * state.dpoles[:, None, :]], axis=2)
    flat = left.reshape(-1, left.shape[2])
    both = np.concatenate([y, dy])
    slope = (flat.real @ both.real - flat.imag @ both.imag).reshape(count, *value.shape)
    if direct.any():
        for p, change in state.dmass.items():
            slope[p, direct] -= np.outer(sensors[direct] @ (change @ vector), samples)
        for p, change in dvector.items():
            slope[p, direct] += np.outer(sensors[direct] @ change, samples)
        for p, change in dsensors.items():
            slope[p, direct] += np.outer(change[direct] @ vector, samples)
    return value, slope


def observe(beam: Beam, record: Record) -> Observation:
    """Prepare a record: its sensors (those of the description that it has), drives and valid samples."""
    sensors = [s for s in beam.sensors if s.name in record]
    if not sensors:
        raise DataError(
            f"The record has none of the beam's sensors ({', '.join(s.name for s in beam.sensors)}): "
            f"its channels are {', '.join(record.names)}."
        )
    base, base_order, forces = None, 0, []
    for drive in beam.inputs:
        samples = record[drive.name]
        if not record.channels[drive.name].valid().all():
            raise DataError(f"The drive '{drive.name}' has lost or clipped samples: cut the record there.")
        if drive.base:
            if base is not None:
                raise DataError("Only one channel can be the motion of the base.")
            base, base_order = samples, INPUT_KINDS[drive.kind]
        else:
            assert drive.at is not None
            forces.append((drive.at, samples))
    data = np.array([record[s.name] for s in sensors])
    valid = np.array([record.channels[s.name].valid() for s in sensors])
    for i, sensor in enumerate(sensors):
        if base is not None and not sensor.relative:
            data[i] -= _base_seen(beam, sensor, base)
    orders = np.array([SENSOR_KINDS[s.kind] for s in sensors])
    if base is not None and np.any(orders + base_order > 2):
        raise DataError(
            "The base motion must be measured at least as often differentiated as the sensors' kind."
        )
    places = np.array([_place(s, record) for s in sensors])
    return Observation(
        names=tuple(s.name for s in sensors),
        times=record.times,
        dt=record.dt,
        places=places,
        orders=orders,
        data=np.where(valid, data, 0.0),
        valid=valid,
        base_order=base_order,
        base=base,
        forces=tuple(forces),
        loaded=beam.load.value != 0,
        start_modes=beam.start_modes if beam.start == "free" else 0,
        offsets=np.array([s.offset for s in sensors]),
    )


def _base_seen(beam: Beam, sensor: Sensor, base: Array) -> Array:
    """The base motion as the sensor sees it; only the same kind can be taken off without drift."""
    kind = next(d.kind for d in beam.inputs if d.base).removeprefix("base ")
    if kind != sensor.kind:
        raise DataError(
            f"Sensor '{sensor.name}' measures {sensor.kind} and sees the base too, whose {kind} was "
            f"measured: "
            f"measure both alike, or say relative = true if the base motion is already taken off."
        )
    return base


def _place(sensor: Sensor, record: Record) -> float:
    if not isinstance(sensor.at, str):
        return sensor.at
    try:
        return float(record.metadata[sensor.at])
    except (KeyError, TypeError, ValueError):
        raise DataError(
            f"Sensor '{sensor.name}' stands at the record's '{sensor.at}', which its metadata do not give."
        ) from None
