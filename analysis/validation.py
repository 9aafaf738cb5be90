"""Does the identified model move as the specimen does? Orbits, exponents, sections, forecasts, and a verdict.

A chaotic model cannot be judged by its trajectory; it is judged by what is invariant (Yuan 1995, section
4.7): the periodic orbits inside the motion and their multipliers, the Lyapunov exponents, the dimension, the
distribution of the stroboscopic points, and by forecasts over a few Lyapunov times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.errors import DataError, ShakedownError
from analysis.progress import SILENT, Progress
from analysis.record import Record

if TYPE_CHECKING:
    from analysis.equilibrium import Equilibrium
    from analysis.model import Model
    from analysis.orbits import PeriodicOrbit

Array = NDArray[np.float64]

_SECTION_POINTS = 500
_LONG_RUN = 400  # drive periods (or turns) over which the model's exponents are taken
_ORBITS = 12  # extracted orbits that the model's are searched beside
_NEAR = 0.05  # rms distance of an orbit, of the span, that counts as the same orbit
_TRIES = 6  # recurrences of an orbit from which the model's is searched
_ENOUGH = 0.6  # share of the extracted orbits that a good model has too


@dataclass(frozen=True, eq=False)
class OrbitCheck:
    """An extracted orbit and the model's nearest one."""

    multiple: int | None
    period: float  # unit of time, extracted
    closure: float
    found: bool  # the model has a periodic orbit near it
    distance: float  # rms between the two, as a fraction of the span; nan if none
    multiplier: float  # largest multiplier of the model's orbit, absolute
    measured_multiplier: float  # the same from the record's local linear maps; nan where they say nothing


@dataclass(frozen=True, eq=False)
class Validation:
    """The numbers behind the verdict. Exponents in nats per unit of time; divide by ln 2 for bits."""

    orbits: list[OrbitCheck]
    model_exponents: Array
    model_exponents_stderr: Array
    data_exponent: float
    data_exponent_stderr: float
    model_dimension: float
    data_dimension: float
    section_distance: float  # energy distance of the stroboscopic points, model against record
    section_spread: float  # the same between the two halves of the record: what chance does
    measured_section: Array
    model_section: Array
    horizon: float  # unit of time until a forecast misses by half of the spread
    equilibria: list[Equilibrium]
    escaped: bool
    passed: bool
    verdict: list[str]


def validate(
    model: Model, record: Record, values: Mapping[str, float], progress: Progress = SILENT
) -> Validation:
    """Put the model with these parameter values beside the record."""
    from analysis.measurement import measurements, start_states

    known = model.with_values({n: v for n, v in values.items() if n in model.parameters})
    data = measurements(known, [record])[0]
    if known.inputs:
        raise DataError("A model with measured inputs is validated by its simulated response: see identify.")
    states = start_states(known, data, known.values())
    frequency = record.excitation.frequency if record.excitation is not None else None
    base = 1.0 / frequency if frequency else _turn(states) * record.dt
    progress.report(0.05, "orbits")
    orbits = _orbits(known, record, states, base, frequency is not None, progress.part(0.05, 0.4))
    progress.report(0.4, "exponents")
    spectrum, errors, run, escaped = _long_run(known, record, states, base)
    exponent, exponent_error = _data_exponent(states, record.dt)
    progress.report(0.6, "dimension")
    dimensions = [_dimension(part) for part in (states, run)] if not escaped else [_dimension(states), np.nan]
    progress.report(0.75, "section")
    seen, model_points = _sections(record, states, run, base, escaped)
    distance, chance = _section_distances(seen, model_points)
    progress.report(0.85, "forecast")
    horizon = np.nan if escaped else _horizon(known, record, base, progress.part(0.85, 0.98))
    checks = Validation(
        orbits, spectrum, errors, exponent, exponent_error, dimensions[1], dimensions[0], distance, chance,
        seen, model_points, horizon, _equilibria(known, states), escaped, False, [],
    )  # fmt: skip
    return _judged(checks)


def _turn(states: Array) -> float:
    from analysis.autonomous import mean_turn

    return float(mean_turn(states))


def _orbits(
    model: Model, record: Record, states: Array, base: float, forced: bool, progress: Progress
) -> list[OrbitCheck]:
    """Extracted orbits, and the model's orbits found by shooting from them."""
    from analysis.autonomous import autonomous_orbits
    from analysis.orbits import forced_orbits

    period = base / record.dt
    if forced:
        found = forced_orbits(states, period, multiples=range(1, 7), progress=progress.part(0.0, 0.5))
    else:
        found = autonomous_orbits(states, longest=int(6 * period), progress=progress.part(0.0, 0.5))
    chosen = sorted(found.orbits, key=lambda o: o.closure)[:_ORBITS]
    checks = []
    for number, orbit in enumerate(chosen):
        progress.report(0.5 + 0.5 * number / len(chosen), "orbits of the model")
        checks.append(_orbit_check(model, record, states, orbit, base, forced))
    return sorted(checks, key=lambda c: c.period)


def _orbit_check(
    model: Model, record: Record, states: Array, orbit: PeriodicOrbit, base: float, forced: bool
) -> OrbitCheck:
    """The model's orbit beside an extracted one, searched from its recurrences until one leads there."""
    measured = float(abs(orbit.multipliers[0])) if len(orbit.multipliers) else float("nan")
    length = orbit.period * record.dt
    best = OrbitCheck(orbit.multiple, length, orbit.closure, False, np.nan, np.nan, measured)
    for start in orbit.starts[:_TRIES]:
        closed = _closed(model, record, states, replace(orbit, start=int(start)), base, forced)
        if closed is None:
            continue
        distance, multiplier = closed
        if not best.distance <= distance:  # also where none was found before
            best = replace(best, found=distance < _NEAR, distance=distance, multiplier=multiplier)
        if best.found:
            break
    return best


def _closed(
    model: Model, record: Record, states: Array, orbit: PeriodicOrbit, base: float, forced: bool
) -> tuple[float, float] | None:
    """Distance of the model's orbit from the segment, and its largest multiplier; None without one."""
    from analysis.shooting import periodic_orbit
    from analysis.simulation import simulate

    dt, length = record.dt, orbit.period * record.dt
    start = _drive_time(record) + orbit.start * dt
    pieces = max(2, round(8 * length / base))
    places = orbit.start + orbit.period * np.arange(pieces) / pieces
    if places[-1] + orbit.period / pieces >= states.shape[1]:
        return None
    along = np.array([np.interp(places, np.arange(states.shape[1]), row) for row in states])
    try:
        closed = periodic_orbit(
            model, along[:, 0], length, start=start, free_period=not forced, segments=pieces, along=along
        )
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    if not closed.converged:
        return None
    segment = states[:, orbit.segment]
    times = np.asarray(start + np.linspace(0.0, closed.period, segment.shape[1]), dtype=np.float64)
    run = simulate(model, times, closed.state)
    gap = (run.states - segment) / np.ptp(states, axis=1)[:, None]
    return float(np.sqrt(np.mean(gap**2))), float(np.abs(closed.multipliers).max())


def _drive_time(record: Record) -> float:
    """The model's time at the first sample, so that its drive has the recorded phase."""
    drive = record.excitation
    return drive.phase / (2 * np.pi * drive.frequency) if drive is not None and drive.phase else 0.0


def _long_run(model: Model, record: Record, states: Array, base: float) -> tuple[Array, Array, Array, bool]:
    """Exponents of the model and a motion of it as long as the record, from a measured state."""
    from analysis.lyapunov import lyapunov_spectrum
    from analysis.simulation import simulate

    n, start = len(model.states), _drive_time(record)
    times = np.asarray(start + record.dt * np.arange(states.shape[1]), dtype=np.float64)
    run = simulate(model, times, states[:, 0], rtol=1e-8, atol=1e-10)
    escaped = bool(run.diverged_at is not None or not np.isfinite(run.states).all())
    if escaped:
        return np.full(n, np.nan), np.full(n, np.nan), run.states, True
    spectrum = lyapunov_spectrum(
        model, _LONG_RUN * base, 50 * base, initial=states[:, 0], start=start, rtol=1e-8, atol=1e-10
    )
    return spectrum.exponents, spectrum.stderr, run.states, False


def _data_exponent(states: Array, dt: float) -> tuple[float, float]:
    from analysis.exponents import largest_exponent

    try:
        found = largest_exponent(_scaled(states), dt)
    except ShakedownError:
        return np.nan, np.nan
    return found.value, found.stderr


def _dimension(states: Array) -> float:
    from analysis.dimension import correlation_dimension

    try:
        return float(correlation_dimension(_scaled(states)).value)
    except ShakedownError:
        return float("nan")


def _scaled(states: Array) -> Array:
    return states / np.std(states, axis=1, keepdims=True)


def _sections(record: Record, states: Array, run: Array, base: float, escaped: bool) -> tuple[Array, Array]:
    """Stroboscopic points of record and model, once a period of the drive (or turn)."""
    positions = np.arange(states.shape[1] * record.dt / base - 1) * base / record.dt
    positions = positions[-_SECTION_POINTS:]

    def at(motion: Array) -> Array:
        samples = np.arange(motion.shape[1])
        return np.array([np.interp(positions, samples, row) for row in motion])

    return at(states), at(run) if not escaped else np.full((len(states), 0), np.nan)


def _section_distances(seen: Array, model: Array) -> tuple[float, float]:
    """Energy distance of the two clouds, and of the record's halves."""
    scale = np.std(seen, axis=1, keepdims=True)
    scale = np.where(scale > 0, scale, 1.0)
    if model.shape[1] < 4:
        return np.nan, np.nan
    half = seen.shape[1] // 2
    distance = energy_distance(seen / scale, model / scale)
    return distance, energy_distance(seen[:, :half] / scale, seen[:, half:] / scale)


def energy_distance(one: Array, other: Array) -> float:
    """Energy distance of two clouds of points [n, N] (Szekely and Rizzo 2013): 0 for equal distributions."""

    def mean(a: Array, b: Array) -> float:
        return float(np.mean(np.linalg.norm(a[:, :, None] - b[:, None, :], axis=0)))

    return float(np.sqrt(max(2 * mean(one, other) - mean(one, one) - mean(other, other), 0.0)))


def _horizon(model: Model, record: Record, base: float, progress: Progress) -> float:
    from analysis.prediction import predict

    stretch = min(8 * base, 0.2 * record.duration)
    part = record.cut(0, min(len(record), round(200 * base * record.rate)))
    try:
        return float(predict(model, part, {}, stretch, progress).horizon)
    except ShakedownError:
        return float("nan")


def _equilibria(model: Model, states: Array) -> list[Equilibrium]:
    """Rest states within the visited range without the drive, with frequencies and damping (section 4.8)."""
    from analysis.equilibrium import equilibria

    still = {name: 0.0 for name in model.parameters if _is_drive_amplitude(model, name)}
    box = {name: (float(row.min()), float(row.max())) for name, row in zip(model.states, states, strict=True)}
    try:
        return equilibria(model.with_values(still), box)
    except ShakedownError:
        return []


def _is_drive_amplitude(model: Model, name: str) -> bool:
    """A parameter whose removal takes explicit time out of the equations."""
    kernels = model.kernels()
    n = len(model.states)
    p = model.values({name: 0.0})
    x = np.linspace(0.3, 0.7, n)
    rates = []
    for t in (0.123, 1.377, 2.911):
        rate = np.empty(n)
        kernels.rhs(t, x, np.zeros(len(model.inputs)), p, rate)
        rates.append(rate)
    q, moving = model.values(), []
    for t in (0.123, 1.377, 2.911):
        rate = np.empty(n)
        kernels.rhs(t, x, np.zeros(len(model.inputs)), q, rate)
        moving.append(rate)
    return bool(np.ptp(rates, axis=0).max() == 0.0 and np.ptp(moving, axis=0).max() > 0.0)


def _judged(checks: Validation) -> Validation:
    """Sentences with the numbers behind them, and whether the model passed."""
    words, passed = [], True
    if checks.escaped:
        return replace(checks, passed=False, verdict=["The model escapes: its motion grows without bound."])
    found = [o for o in checks.orbits if o.found]
    if checks.orbits:
        share = len(found) / len(checks.orbits)
        passed &= share >= _ENOUGH
        near = (
            f", on average {100 * np.mean([o.distance for o in found]):.2g} % of the span away"
            if found
            else ""
        )
        words.append(
            f"The model has {len(found)} of the {len(checks.orbits)} closest orbits of the record{near}."
        )
    else:
        words.append("The record has no close returns, so orbits say nothing.")
    largest = float(checks.model_exponents[0])
    if np.isfinite(checks.data_exponent):
        gap = abs(largest - checks.data_exponent)
        allowed = 2 * np.hypot(checks.model_exponents_stderr[0], checks.data_exponent_stderr)
        agree = gap <= max(allowed, 0.25 * abs(checks.data_exponent))
        passed &= agree
        words.append(
            f"Largest exponent: model {largest:.3g} ± {checks.model_exponents_stderr[0]:.2g}, record "
            f"{checks.data_exponent:.3g} ± {checks.data_exponent_stderr:.2g} nats per unit of time "
            f"({'agree' if agree else 'do NOT agree'}); in bits {largest / np.log(2):.3g}."
        )
    ratio = checks.section_distance / max(checks.section_spread, 1e-12)
    same = bool(ratio < 4.0)
    passed &= same
    words.append(
        f"Stroboscopic points lie {checks.section_distance:.2g} apart (energy distance); the record's own "
        f"halves differ by {checks.section_spread:.2g}: they {'agree' if same else 'do NOT agree'}."
    )
    if np.isfinite(checks.horizon) and largest > 0:
        words.append(
            f"A forecast is good for {checks.horizon:.3g} units of time, "
            f"{checks.horizon * largest:.2g} Lyapunov times."
        )
    words.append("The model is validated." if passed else "The model is NOT validated; see the points above.")
    return replace(checks, passed=bool(passed), verdict=words)
