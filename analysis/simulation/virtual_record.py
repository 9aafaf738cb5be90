"""A record of a simulated experiment: the model's outputs seen by virtual sensors, and its drive."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Channel, Excitation, Record
from analysis.model import Model
from analysis.model.reading import from_tables
from analysis.signal.inputs import Inputs
from analysis.signal.tone import tone_basis
from analysis.simulation.sensor import Sensor
from analysis.simulation.simulate import (
    States,
    Trajectory,
    Values,
    initial_vector,
    parameter_vector,
    simulate,
)

Array = NDArray[np.float64]

_CHUNK = 50_000  # samples simulated between two reports of progress
_OVERSAMPLING = 8  # of the clean signal when the sensor filters or its clock is imperfect


def virtual_record(
    model: Model,
    seconds: float,
    rate: float,
    rng: np.random.Generator,
    sensor: Sensor | Mapping[str, Sensor] | None = None,
    initial: States = None,
    values: Values = None,
    inputs: Inputs | None = None,
    transient: float = 0.0,
    method: str = "adaptive",
    rtol: float = 1e-9,
    progress: Progress = SILENT,
) -> Record:
    """Simulate ``transient`` and then ``seconds`` (the model's unit of time) sampled at ``rate``.

    Every output passes ``sensor`` (or its own, by name); the inputs are recorded clean. DataError if it
    diverges.
    """
    if not (0 < seconds < np.inf and 0 < rate < np.inf and 0 <= transient < np.inf):
        raise DataError("The length and the rate of a simulation must be positive numbers.")
    sensors = {name: _sensor(sensor, name) for name in model.outputs}
    fine = any(s.cutoff is not None or s.jitter or s.clock_ppm for s in sensors.values())
    oversampling = _OVERSAMPLING if fine else 1
    count = round(seconds * rate)
    total = (transient * rate if method == "rk4" else 0) + count
    if count < 1 or total * oversampling * len(model.states) > 400_000_000:
        raise DataError(f"{seconds:g} s at {rate:g} Hz make {count} samples: choose another length or rate.")
    times = transient + np.arange(count * oversampling) / (rate * oversampling)
    run = _in_chunks(model, times, initial, values, inputs, method, rtol, transient, progress)
    channels: dict[str, Channel] = {}
    for name, clean in zip(model.outputs, run.outputs, strict=True):
        channels[name] = sensors[name].measure(clean, rate, rng, model.unit(name), oversampling)
    drive = None
    for name, clean in input_signals(run).items():
        sampled = np.ascontiguousarray(clean[::oversampling])
        channels.setdefault(name, Channel(sampled, model.unit(name)))
        drive = drive or harmonic(sampled, rate)
    parameters = dict(zip(model.parameters, (float(v) for v in run.parameters), strict=True))
    about = {"source": "simulation", "model": model.name, "parameters": parameters, "transient": transient}
    return Record(rate, channels, excitation=drive, drive_time=float(transient), metadata=about)


def _sensor(sensor: Sensor | Mapping[str, Sensor] | None, name: str) -> Sensor:
    if sensor is None:
        return Sensor()
    return sensor if isinstance(sensor, Sensor) else sensor.get(name, Sensor())


def _in_chunks(
    model: Model,
    times: Array,
    initial: States,
    values: Values,
    inputs: Inputs | None,
    method: str,
    rtol: float,
    transient: float,
    progress: Progress,
) -> Trajectory:
    """One simulation in pieces, so that it can be watched and stopped."""
    p, given = parameter_vector(model, values), Inputs.none() if inputs is None else inputs
    state = initial_vector(model, initial)
    given.check(model.inputs, times[0] - transient, times[-1])
    steps = 0
    if transient > 0:
        step = times[1] - times[0] if len(times) > 1 and method == "rk4" else transient
        lead = np.arange(0.0, times[0], step)
        run = simulate(model, np.append(lead, times[0]), state, p, given, method, rtol)
        state, steps = run.states[:, -1], run.steps
        if run.diverged_at is not None:
            raise DataError(str(run))
    pieces = [state[:, None]]
    for first in range(0, len(times) - 1, _CHUNK):
        progress.report(first / len(times), "simulating")
        run = simulate(model, times[first : first + _CHUNK + 1], pieces[-1][:, -1], p, given, method, rtol)
        if run.diverged_at is not None:
            raise DataError(str(run))
        pieces.append(run.states[:, 1:])
        steps += run.steps
    progress.report(1.0, "simulated")
    return Trajectory(model, times, np.concatenate(pieces, axis=1), p, given, None, steps)


def input_signals(run: Trajectory) -> dict[str, Array]:
    """The inputs along a simulated motion, those given as expressions and the measured ones."""
    model = run.model
    signals: dict[str, Array] = dict(zip(model.inputs, run.inputs.values(run.times), strict=True))
    if model.equations.driven:
        watcher = _watching_inputs(model.to_toml())
        seen = np.empty((len(watcher.outputs), len(run.times)))
        states = np.ascontiguousarray(run.states)
        watcher.kernels().out_many(run.times, states, run.inputs.values(run.times), run.parameters, seen)
        signals.update(zip(watcher.outputs, seen, strict=True))
    return signals


@lru_cache(maxsize=64)
def _watching_inputs(text: str) -> Model:
    """The same model whose outputs are its driven inputs."""
    tables = tomllib.loads(text)
    driven = [name for name, what in tables["inputs"].items() if what != "measured"]
    return from_tables(tables | {"outputs": {name: name for name in driven}}, "inputs")


def harmonic(samples: Array, rate: float) -> Excitation | None:
    """Frequency, amplitude and phase of a clean sine, None if the signal is anything else."""
    n = len(samples)
    if n < 8 or not np.all(np.isfinite(samples)) or np.ptp(samples) == 0:
        return None
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(n)))
    w = 2 * np.pi * max(int(np.argmax(spectrum[1:])) + 1, 1) / n  # rad per sample
    k = np.arange(n, dtype=np.float64)
    for _ in range(30):  # Gauss-Newton for the frequency, the linear part solved each time
        basis = tone_basis(k, w / (2 * np.pi), 1)[:, 1:].T
        a, b = np.linalg.lstsq(basis.T, samples, rcond=None)[0]
        slope = k * (b * basis[0] - a * basis[1])
        full = np.stack([*basis, slope])
        step = np.linalg.lstsq(full.T, samples - a * basis[0] - b * basis[1], rcond=None)[0][2]
        w += float(step)
        if abs(step) * n < 1e-12 or not 0 < w < np.pi:
            break
    residual = samples - a * np.cos(w * k) - b * np.sin(w * k)
    if not 0 < w < np.pi or np.std(residual) > 1e-6 * np.std(samples):
        return None
    return Excitation(
        float(w * rate / (2 * np.pi)), float(np.hypot(a, b)), float(np.arctan2(-b, a) % (2 * np.pi))
    )
