"""Stroboscopic points of record and model, and the distance between their distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.signal.strobe import sample_at
from analysis.simulation.simulate import simulate
from analysis.validation.check import MEASURED, MODEL, Check, Panel, Status, Trace, impossible
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

NAME, TITLE = "section", "Stroboscopic section"
_POINTS = 800
_STRETCHES = 6  # of the model's motion, each as long as the record
_FEWEST = 40
_CHANCE, _FAR = 1.5, 3.0  # distance over that of chance: agreement, doubt
_CLOSE = 0.08  # distance below which the clouds are the same to the eye


def check_section(subject: Subject) -> Check:
    """Energy distance of the record's points to the model's, beside that of stretches of the model's run.

    The stretches are as long as the record: so far apart, and no farther, a record of a right model is.
    """
    if subject.driven is None or subject.fading:
        return impossible(NAME, TITLE, subject.reason or subject.fading)
    period = subject.base / subject.dt
    positions = np.arange(2.0, subject.states.shape[1] - 3, period)[:_POINTS]
    if len(positions) < _FEWEST:
        return impossible(NAME, TITLE, f"The record holds {len(positions)} periods: too few for a section.")
    measured = sample_at(subject.states, positions)
    own = _stretches(subject, len(positions))
    if own is None:
        return Check(NAME, TITLE, "failed", "The model escapes: its motion grows without bound.")
    scale = np.std(subject.states, axis=1, keepdims=True)  # of the motion: a section may be a single point
    distance, chance = section_distance(measured / scale, own / scale, len(positions))
    ratio = distance / max(chance, 1e-12)
    same = ratio <= _CHANCE or distance <= _CLOSE
    status: Status = "passed" if same else "doubtful" if ratio <= _FAR else "failed"
    agree = {"passed": "they agree", "doubtful": "they hardly agree"}.get(status, "they do NOT agree")
    words = (
        f"The points of record and model lie {distance:.2g} apart (energy distance, in spreads); stretches "
        f"of the model's own motion as long as the record lie up to {chance:.2g} apart: {agree}."
    )
    numbers = {"distance": distance, "by_chance": chance}
    return Check(NAME, TITLE, status, words, numbers, (), _panels(subject, measured, own))


def _stretches(subject: Subject, count: int) -> Array | None:
    """The model's points as the sensors show them, several times as many as the record has; None if it
    escapes."""
    assert subject.driven is not None
    times = subject.times[2] + subject.base * np.arange(count)
    rng = np.random.default_rng(0)  # any draw of the noise will do
    stretches = []
    for place in subject.places(_STRETCHES):
        run = simulate(subject.driven, times, subject.states[:, place + 2], rtol=1e-7)
        if run.diverged_at is not None or not np.isfinite(run.states).all():
            return None
        stretches.append(run.states + subject.state_noise[:, None] * rng.normal(size=run.states.shape))
    return np.concatenate(stretches, axis=1)


def section_distance(measured: Array, own: Array, length: int) -> tuple[float, float]:
    """Energy distance of measured points to the model's, and the largest of stretches of these to all."""
    thin = max(1, own.shape[1] // _POINTS)
    apart = []
    for k in range(0, own.shape[1] - length + 1, length):
        rest = np.concatenate([own[:, :k], own[:, k + length :]], axis=1)
        apart.append(energy_distance(own[:, k : k + length], rest[:, ::thin]))
    return energy_distance(measured, own[:, ::thin]), max(apart)


def energy_distance(one: Array, other: Array) -> float:
    """Energy distance of two clouds of points [n, N] (Szekely and Rizzo 2013): 0 for equal distributions."""

    def mean(a: Array, b: Array) -> float:
        return float(np.mean(np.linalg.norm(a[:, :, None] - b[:, None, :], axis=0)))

    return float(np.sqrt(max(2 * mean(one, other) - mean(one, one) - mean(other, other), 0.0)))


def _panels(subject: Subject, measured: Array, own: Array) -> tuple[Panel, ...]:
    names = subject.model.states
    second = 1 if len(names) > 1 else 0
    x, y = subject.label(names[0]), subject.label(names[second])
    once = "once a period" if subject.forced else "once a turn"
    low = np.minimum(measured.min(axis=1), own.min(axis=1))
    high = np.maximum(measured.max(axis=1), own.max(axis=1))
    room = 0.05 * (high - low) + 1e-12
    ranges = [(float(low[i] - room[i]), float(high[i] + room[i])) for i in (0, second)]
    return tuple(
        Panel(
            f"{who}, {once}", x, y, (Trace(role, points[0], points[second], role, points=True),),
            x_range=ranges[0], y_range=ranges[1],
        )
        for who, role, points in (("Record", MEASURED, measured), ("Model", MODEL, own))
    )  # fmt: skip
