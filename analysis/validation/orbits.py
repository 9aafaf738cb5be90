"""Has the model the periodic orbits that the record shows? Found by shooting from the extracted ones.

Yuan 1995, section 4.7: a chaotic motion is judged by the orbits inside it and their multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import Progress
from analysis.base.words import rounded
from analysis.dynamics.shooting import periodic_orbit
from analysis.model import Model
from analysis.orbits.forced import forced_orbits
from analysis.orbits.orbit import PeriodicOrbit
from analysis.simulation.simulate import simulate
from analysis.validation.check import Check, Panel, Trace, impossible
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

NAME, TITLE = "orbits", "Periodic orbits"
_ORBITS = 12  # extracted orbits that the model's are searched beside
_LONGEST = 6  # periods of the drive (or turns)
_NEAR = 0.05  # rms distance of an orbit, of the span, that counts as the same orbit
_PIECES = 4  # of shooting in a period of the drive
_TRIES = 4  # recurrences of an orbit from which the model's is searched
_ENOUGH, _FEW = 0.5, 0.25  # share of the extracted orbits that a good model has too, and a doubtful one
_FEWEST = 3  # orbits below which the share says nothing
_DRAWN = 6


@dataclass(frozen=True, eq=False)
class OrbitMatch:
    """An extracted orbit and the model's nearest one."""

    orbit: PeriodicOrbit
    found: bool  # the model has a periodic orbit near it
    distance: float  # rms between the two, as a fraction of the span; nan if none
    multiplier: float  # largest multiplier of the model's orbit, absolute
    measured: Array  # [n, K] states along the extracted orbit
    model: Array  # [n, K] along the model's; empty if none


def check_orbits(subject: Subject, progress: Progress) -> Check:
    """Extracted orbits, and the model's orbits found by shooting from them."""
    if subject.driven is None:
        return impossible(NAME, TITLE, subject.reason)
    if subject.hidden:
        return impossible(NAME, TITLE, f"Nothing shows {', '.join(subject.hidden)}.")
    try:
        extracted = _extracted(subject, progress.part(0.0, 0.5))
    except ShakedownError as error:
        return impossible(NAME, TITLE, str(error))
    chosen = sorted(extracted, key=lambda o: o.closure)[:_ORBITS]
    matches = []
    for number, orbit in enumerate(chosen):
        progress.report(0.5 + 0.5 * number / len(chosen), "orbits of the model")
        matches.append(_match(subject, subject.driven, orbit))
    matches.sort(key=lambda m: (m.orbit.period, m.orbit.closure))
    if len(matches) < _FEWEST:
        words = f"The record shows {len(matches) or 'no'} periodic orbit{'s' * (len(matches) != 1)}: too few."
        return replace(impossible(NAME, TITLE, words), rows=_rows(subject, matches))
    found = [m for m in matches if m.found]
    share = len(found) / len(matches)
    away = float(np.mean([m.distance for m in found])) if found else np.nan
    near = f", on average {rounded(100 * away, 2)} % of the span away" if found else ""
    return Check(
        NAME,
        TITLE,
        "passed" if share >= _ENOUGH else "doubtful" if share >= _FEW else "failed",
        f"The model has {len(found)} of the {len(matches)} closest orbits of the record{near}.",
        {"compared": float(len(matches)), "found": float(len(found)), "distance": away},
        _rows(subject, matches),
        _panels(subject, matches),
    )


def _extracted(subject: Subject, progress: Progress) -> tuple[PeriodicOrbit, ...]:
    from analysis.orbits.autonomous import autonomous_orbits

    period = subject.base / subject.dt
    if subject.forced:
        multiples = range(1, _LONGEST + 1)
        return forced_orbits(subject.states, period, multiples=multiples, progress=progress).orbits
    return autonomous_orbits(subject.states, longest=int(_LONGEST * period), progress=progress).orbits


def _match(subject: Subject, model: Model, orbit: PeriodicOrbit) -> OrbitMatch:
    """The model's orbit beside an extracted one, searched from its recurrences until one leads there."""
    segment = subject.states[:, orbit.segment]
    best = OrbitMatch(orbit, False, np.nan, np.nan, segment, np.empty((len(segment), 0)))
    for start in orbit.starts[:_TRIES]:
        closed = _closed(subject, model, replace(orbit, start=int(start)))
        if closed is not None and not best.distance <= closed.distance:  # also where none was found before
            best = replace(closed, orbit=orbit)
        if best.found:
            break
    return best


def _closed(subject: Subject, model: Model, orbit: PeriodicOrbit) -> OrbitMatch | None:
    """The model's orbit by shooting from this segment; None if there is none."""
    states, dt, length = subject.states, subject.dt, orbit.period * subject.dt
    start = subject.origin + orbit.start * dt
    pieces = max(2, round(_PIECES * length / subject.base))
    places = orbit.start + orbit.period * np.arange(pieces) / pieces
    if places[-1] + orbit.period / pieces >= states.shape[1]:
        return None
    along = np.array([np.interp(places, np.arange(states.shape[1]), row) for row in states])
    free = not subject.forced
    try:
        closed = periodic_orbit(
            model, along[:, 0], length, start=start, free_period=free, segments=pieces, along=along,
            tolerance=1e-8, iterations=15, rtol=1e-9,
        )  # fmt: skip
    except (ShakedownError, np.linalg.LinAlgError):
        return None
    if not closed.converged:
        return None
    segment = states[:, orbit.segment]
    times = np.asarray(start + np.linspace(0.0, closed.period, segment.shape[1]), dtype=np.float64)
    run = simulate(model, times, closed.state).states
    distance = float(np.sqrt(np.mean(((run - segment) / np.ptp(states, axis=1)[:, None]) ** 2)))
    size = float(np.abs(closed.multipliers).max())
    return OrbitMatch(orbit, distance < _NEAR, distance, size, segment, run)


def _rows(subject: Subject, matches: list[OrbitMatch]) -> list[dict[str, object]]:
    return [
        {
            "periods": m.orbit.multiple,
            "length": m.orbit.period * subject.dt,
            "closure": m.orbit.closure,
            "in_model": m.found,
            "distance": m.distance,
            "multiplier": m.multiplier,
            "measured_multiplier": float(abs(m.orbit.multipliers[0])) if len(m.orbit.multipliers) else np.nan,
        }
        for m in matches
    ]


def _panels(subject: Subject, matches: list[OrbitMatch]) -> tuple[Panel, ...]:
    names = subject.model.states
    second = 1 if len(names) > 1 else 0
    panels = []
    rank = [sum(o.orbit.multiple == m.orbit.multiple for o in matches[:i]) for i, m in enumerate(matches)]
    order = sorted(range(len(matches)), key=lambda i: rank[i])  # first one of each period, then the others
    for m in (matches[i] for i in sorted(order[:_DRAWN])):
        traces = [Trace("measured", m.measured[0], m.measured[second], "measured")]
        if m.model.size:
            traces.append(Trace("model", m.model[0], m.model[second], "model"))
        length = m.orbit.multiple or f"{m.orbit.period * subject.dt:.3g} {subject.unit}"
        title = f"Period {length}" + ("" if m.found else ", record only")
        panels.append(Panel(title, subject.label(names[0]), subject.label(names[second]), tuple(traces)))
    return tuple(panels)
