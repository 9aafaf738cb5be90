"""Orbits to be held: those of the model beside the close returns of a record.

Each extracted orbit is closed on the model by multiple shooting: returns that no orbit stands behind, repeats
of shorter orbits and duplicates disappear here, before anything moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.dynamics.shooting import PeriodicOrbit, periodic_orbit
from analysis.orbits.forced import forced_orbits
from analysis.simulation.simulate import simulate
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

LONGEST = 6  # periods of the drive
NODES = 4  # of shooting in a period of the drive
TRIES = 4  # recurrences of an orbit from which the model's is searched
MOVED = 0.35  # of the spread (rms): a shot orbit farther from its return is another one
SAME = 0.03  # of the spread: closer than this everywhere is the same orbit
UNSTABLE = 1.0 + 1e-3  # a motion that stays by itself needs no loop


@dataclass(frozen=True, eq=False)
class Target:
    """An orbit of the model: states [n, k nodes], the first column at phase 0 of the drive."""

    multiple: int  # periods of the drive
    states: Array
    multipliers: NDArray[np.complex128]  # the model's

    @property
    def stable(self) -> bool:
        return bool(np.abs(self.multipliers).max() < UNSTABLE)


def orbit_targets(
    subject: Subject, nodes: int, longest: int = LONGEST, progress: Progress = SILENT
) -> list[Target]:
    """The model's orbits of up to ``longest`` periods that the record comes near, by period and size of
    multiplier, with ``nodes`` places a period."""
    if subject.driven is None or not subject.forced:
        raise DataError(subject.reason or "The record has no periodic drive: there is no orbit to be held.")
    if subject.hidden:
        raise DataError(f"Nothing in the record shows {', '.join(subject.hidden)}: the orbits are unknown.")
    period = subject.base / subject.dt
    multiples = range(1, longest + 1)
    # Not confirmed on the data (maps): shooting on the model, below, confirms them.
    found = forced_orbits(
        subject.states, period, multiples=multiples, maps=False, progress=progress.part(0.0, 0.3)
    )
    targets: list[Target] = []
    for number, orbit in enumerate(found.orbits):
        progress.report(0.3 + 0.7 * number / len(found.orbits), "orbits of the model")
        for start in orbit.starts[:TRIES]:
            target = _shot(subject, int(start), int(orbit.multiple or 1), nodes)
            if target is not None:
                if not any(same_orbit(target.states, t.states, _spread(subject), nodes) for t in targets):
                    targets.append(target)
                break
    return sorted(targets, key=lambda t: (t.multiple, float(np.abs(t.multipliers[0]))))


def _spread(subject: Subject) -> Array:
    return np.asarray(np.std(subject.states, axis=1))


def _shot(subject: Subject, start: int, multiple: int, nodes: int) -> Target | None:
    """The model's orbit by shooting from the samples at ``start``; None where there is none nearby."""
    assert subject.driven is not None
    states, dt = subject.states, subject.dt
    length, pieces = multiple * subject.base, multiple * NODES
    places = start + length / dt * np.arange(pieces) / pieces
    if places[-1] + 1 >= states.shape[1]:
        return None
    along = np.array([np.interp(places, np.arange(states.shape[1]), row) for row in states])
    begin = subject.origin + start * dt
    try:
        orbit = periodic_orbit(
            subject.driven, along[:, 0], length, start=begin, segments=pieces, along=along,
            tolerance=1e-8, iterations=20, rtol=1e-9,
        )  # fmt: skip
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    if not orbit.converged:
        return None
    target = sampled(subject, orbit, multiple, nodes)
    if target is None or lower_period(target.states, _spread(subject), multiple, nodes):
        return None
    first = subject.driven and simulate(subject.driven, begin + (places - start) * dt, orbit.state).states
    away = np.sqrt(np.mean(((first - along) / _spread(subject)[:, None]) ** 2))
    return target if away < MOVED else None


def sampled(subject: Subject, orbit: PeriodicOrbit, multiple: int, nodes: int) -> Target | None:
    """An orbit at the places of the loop, the first at phase 0 of the drive (the model's t = 0)."""
    assert subject.driven is not None
    count = multiple * nodes
    step = subject.base / nodes
    first = int(np.ceil(orbit.start / step - 1e-9))
    times = np.concatenate([[orbit.start], (first + np.arange(count)) * step])
    if times[1] <= times[0]:
        times[0] = times[1] - 1e-9 * step
    run = simulate(subject.driven, times, orbit.state, rtol=1e-10).states[:, 1:]
    if not np.isfinite(run).all():
        return None
    return Target(multiple, np.roll(run, first % count, axis=1), orbit.multipliers)


def lower_period(states: Array, spread: Array, multiple: int, nodes: int) -> bool:
    """Whether an orbit of ``multiple`` periods only repeats a shorter one."""
    for shift in range(1, multiple):
        if multiple % shift == 0:
            turned = np.roll(states, shift * nodes, axis=1)
            if np.sqrt(np.mean(((turned - states) / spread[:, None]) ** 2)) < SAME:
                return True
    return False


def same_orbit(a: Array, b: Array, spread: Array, nodes: int) -> bool:
    """Whether two orbits agree but for a shift by whole periods of the drive."""
    if a.shape != b.shape:
        return False
    for shift in range(0, a.shape[1], nodes):
        turned = np.roll(b, shift, axis=1)
        if np.sqrt(np.mean(((turned - a) / spread[:, None]) ** 2)) < SAME:
            return True
    return False


def with_states(target: Target, states: Array) -> Target:
    """The same target at corrected places."""
    return replace(target, states=states)
