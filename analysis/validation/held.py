"""Orbits that were held on the rig beside the model's own: proof that they exist, and where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.words import percent
from analysis.dynamics.shooting import periodic_orbit
from analysis.model import Model
from analysis.simulation.simulate import simulate
from analysis.validation.check import Check, Status, graded, impossible
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

NAME, TITLE = "held orbits", "Held orbits"
ORDER: tuple[Status, ...] = ("passed", "doubtful", "failed")
_PIECES = 4  # of shooting in a period of the drive
_NEAR = 0.05  # rms distance, of the orbit's span, within which it is the same orbit
_ALL, _MOST = 0.99, 0.75  # share of the held orbits that a good model has, and a doubtful one
_CLOSE, _AWAY = 0.02, 0.04  # median distance, of the span


@dataclass(frozen=True, eq=False)
class HeldMotion:
    """An orbit held on the rig, at even phases of the drive from phase zero over all of its periods."""

    number: int
    periods: int  # of the drive
    states: Array  # [n, K] of the model that held it: where the search begins
    outputs: Mapping[str, Array]  # channel: its mean [K]
    errors: Mapping[str, Array]  # standard errors of those
    multiplier: float  # the largest, real part
    multiplier_error: float


def check_held(subject: Subject, held: Sequence[HeldMotion]) -> Check:
    """Whether the model has the orbits that were held, how far from them, and with which multipliers."""
    if not held:
        return impossible(NAME, TITLE, "No held orbits were given.")
    if subject.driven is None or not subject.forced:
        return impossible(NAME, TITLE, subject.reason or "Held orbits are those of a driven motion.")
    rows = [_beside(subject, subject.driven, one) for one in held]
    found = [row for row in rows if row["in_model"]]
    share = len(found) / len(rows)
    away = float(np.median([row["distance"] for row in found])) if found else np.nan
    over = float(np.median([row["over_errors"] for row in found])) if found else np.nan
    counted = graded(1 - share, 1 - _ALL, 1 - _MOST)
    placed = graded(away, _CLOSE, _AWAY)
    status = max((counted, placed), key=ORDER.index)
    near = (
        f", {percent(away)} of the span away ({over:.2g} times the errors of the averages)" if found else ""
    )
    return Check(
        NAME, TITLE, status,
        f"The model has {len(found)} of {len(rows)} orbits that were held on the rig{near}.",
        {"held": float(len(rows)), "found": float(len(found)), "distance": away, "over errors": over}, rows,
    )  # fmt: skip


def _beside(subject: Subject, model: Model, one: HeldMotion) -> dict[str, float | bool]:
    """The model's orbit nearest to a held one."""
    row: dict[str, float | bool] = {
        "orbit": float(one.number), "periods": float(one.periods), "in_model": False, "distance": np.nan,
        "over_errors": np.nan, "multiplier": np.nan, "held_multiplier": one.multiplier,
        "held_multiplier_error": one.multiplier_error,
    }  # fmt: skip
    count, pieces = one.states.shape[1], _PIECES * one.periods
    places = count * np.arange(pieces) / pieces
    around = np.concatenate([one.states, one.states[:, :1]], axis=1)
    along = np.array([np.interp(places, np.arange(count + 1), state) for state in around])
    length = one.periods * subject.base
    try:
        orbit = periodic_orbit(
            model, along[:, 0], length, segments=pieces, along=along, tolerance=1e-8, iterations=20, rtol=1e-9
        )
    except (ShakedownError, np.linalg.LinAlgError):
        return row
    if not orbit.converged:
        return row
    times = np.arange(count) * length / count

    run = simulate(model, times, orbit.state, rtol=1e-11).states
    seen = np.empty((len(model.outputs), count))
    model.kernels().out_many(
        times, np.ascontiguousarray(run), np.zeros((len(model.inputs), count)), model.values(), seen
    )
    shares, over = [], []
    for name, mean in one.outputs.items():
        if name not in model.outputs:
            continue
        off = seen[model.outputs.index(name)] - mean
        shares.append(float(np.sqrt(np.mean(off**2)) / np.ptp(mean)))
        over.append(float(np.sqrt(np.mean(off**2) / np.mean(one.errors[name] ** 2))))
    if not shares:
        return row
    distance = float(np.max(shares))
    return row | {
        "in_model": distance < _NEAR, "distance": distance, "over_errors": float(np.max(over)),
        "multiplier": float(orbit.multipliers[0].real),
    }  # fmt: skip
