"""The model with what the record shows it to miss, for the multipliers of an orbit.

Multipliers hang on the slopes of the forces, which a model fitted without a term has wrong even where its
forces are right: dry friction that viscous damping stands for takes energy, but half as much off a deviation.
To the equations in which the drive acts come powers and products of the states and friction
v / sqrt(v^2 + s^2), those that the model cannot make from its own terms; the weak form fits all of them to
the record at once, for several scales s. The likeliest is taken, the next one tells how much the choice
matters.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.identification import Identification
from analysis.estimate.methods import identify
from analysis.holding.hold import HeldOrbit, multipliers_on
from analysis.holding.linearise import linearise
from analysis.holding.mode_tones import (
    Tones,
    phase_of,
    record_with_phase,
    record_without_modes,
    tones_of_modes,
    turning,
    with_tones,
)
from analysis.holding.orbit_estimate import estimate_orbit, shown_of_modes
from analysis.holding.outlook import outputs_and_slopes
from analysis.holding.plant import LoopPlant
from analysis.holding.tuning import gap_of
from analysis.model import Model
from analysis.model.reading import from_tables
from analysis.validation.subject import Subject

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

DEGREE = 3  # of products of the states
POWERS = (4, 5, 6)  # of single states
SCALES = (0.02, 0.08, 0.3)  # of friction, over the spread of its state
NEW = 1e-3  # share of a term that the model's own terms must leave unexplained
LOOKED_AT = 4000  # samples on which that is tried
DRAWS = 24
EXACT = 1e-6  # drift of a model that is taken at its word: its orbits are its own
CLOSED = 1e-5  # of the spread, from node to node: 1e-7 is usual, 5e-5 to 1e-4 where there is no orbit
FARTHEST = 1.0  # of an orbit from its averages, over the noise of a sample: hundredths where it is the same
DRIFTED = 2.0  # difference of the halves over what noise explains, beyond which the orbit has moved
UNSURE = 0.03  # share of what a completed model changes in a multiplier that may be wrong


@dataclass(frozen=True, eq=False)
class CompletedModel:
    """A model with more terms, and draws of its values as uncertain as the fit says."""

    model: Model
    draws: Sequence[Array]
    process: float  # what it still misses (see LoopPlant)
    tones: Complex  # [channels] what modes add at the drive's frequency beside what the dither test says


@dataclass(frozen=True, eq=False)
class CompletedOrbit:
    """An orbit as a completed model has it."""

    states: Array  # [n, J]
    shown: Array  # [channels, J] without what modes beside the model add
    band: Array  # its standard error
    multipliers: NDArray[np.complex128]
    multiplier_errors: Array
    away: (
        float  # of what the channels show of the model's own orbit there from their plain averages, rms, over
    )
    # the noise of a sample; inf where the model has none


def completed_models(subject: Subject, plant: LoopPlant) -> list[CompletedModel]:
    """The two likeliest completions of the subject's model, best first; none where the weak form fails.

    The record counts without what the plant's modes add to its channels, which is unknown with the rest where
    the channels show states.
    """
    found: list[tuple[float, Identification, Model, Tones | None]] = []
    for scale in SCALES:
        model = _with_terms(subject, scale)
        if model is None:
            break
        tones = with_tones(model, plant.channels, tones_of_modes(plant), subject) if plant.modes else None
        try:
            if tones is None:
                fit = identify(model, record_without_modes(subject, plant), "weak", finish=False)
            else:
                fit = identify(tones.model, record_with_phase(subject), "weak", finish=False)
        except ShakedownError:
            continue
        if fit.residual is not None and np.isfinite(fit.residual.chi2):
            found.append((float(fit.residual.chi2), fit, model, tones))
    found.sort(key=lambda one: one[0])
    return [_completed(model, fit, tones, plant, subject) for _, fit, model, tones in found[:2]]


def completed_orbit(plant: LoopPlant, held: HeldOrbit, completed: Sequence[CompletedModel]) -> CompletedOrbit:
    """An orbit that was held as the best completion has it: its states, what the channels show of it, and the
    multipliers there.

    A state that no channel shows owes everything to the model: with a model that lacks a term it is off.
    """
    best, *others = (replace(plant, model=c.model, process=c.process) for c in completed)
    k, before = held.target.multiple, held.target.states
    theta = 2 * np.pi * k * np.arange(before.shape[1]) / before.shape[1]
    typical = np.sqrt(np.mean(held.averaged_band**2, axis=1))
    beside_model = [shown_of_modes(plant, theta) + turning(c.tones, theta) for c in completed]
    none = np.zeros(before.shape[1])
    alone = held.averaged - beside_model[0]
    found = estimate_orbit(best, before, alone, typical, none, k)
    first, second = (
        estimate_orbit(best, found.states, half - beside_model[0], np.sqrt(2) * typical, none, k).states
        for half in held.averaged_halves
    )
    own = linearise(plant, before).multipliers
    beside = linearise(others[0], found.states).multipliers if others else own
    multipliers, errors = multipliers_on(best, found.states, (first, second), beside, completed[0].draws)
    errors = np.hypot(errors, UNSURE * np.abs(multipliers - own))
    shown, apart = (outputs_and_slopes(best, s, k)[0] for s in (found.states, first))
    apart -= outputs_and_slopes(best, second, k)[0]
    exact = estimate_orbit(replace(best, process=EXACT), found.states, alone, typical, none, k).states
    off = np.sqrt(np.mean((outputs_and_slopes(best, exact, k)[0] - alone) ** 2, axis=1))
    away = float(np.max(off / np.maximum(plant.noise, 3 * typical))) if _closes(best, exact) else np.inf
    by_next = np.zeros_like(shown)
    if others:
        states = estimate_orbit(others[0], before, held.averaged - beside_model[1], typical, none, k).states
        by_next = outputs_and_slopes(others[0], states, k)[0] - shown
    return CompletedOrbit(found.states, shown, _band(found.errors, apart, by_next), multipliers, errors, away)


def _closes(plant: LoopPlant, states: Array) -> bool:
    """Whether states [n, J] are a motion of the plant's model: near a fold it may have none."""
    miss = linearise(plant, states).ends - np.roll(states, -1, axis=1)
    return bool(np.abs(miss / plant.scale[:, None]).max() < CLOSED)


def _band(errors: Array, apart: Array, by_next: Array) -> Array:
    """Errors [channels, J] of an orbit: those of the averages, or what its two halves differ by (``apart``)
    where that is clearly more, and how far the next likely model takes it (``by_next``)."""
    own, seen, moved = (np.sqrt(np.mean(row**2, axis=1)) for row in (errors, 0.5 * apart, by_next))
    total = np.hypot(np.where(seen > DRIFTED * own, seen, own), moved)
    return np.asarray(errors * (total / own)[:, None])


def _completed(
    model: Model, fit: Identification, tones: Tones | None, plant: LoopPlant, subject: Subject
) -> CompletedModel:
    fitted = model.with_values({n: v for n, v in fit.values().items() if n in model.parameters})
    names = list(fit.parameters)
    own = [i for i, name in enumerate(names) if name in model.parameters]
    places = [list(model.parameters).index(names[i]) for i in own]
    spread = np.array(fit.covariance)[np.ix_(own, own)]
    values = fitted.values()
    drawn = np.random.default_rng(0).multivariate_normal(values[places], spread, DRAWS)
    draws = np.tile(values, (DRAWS, 1))
    draws[:, places] = drawn
    own_tones = tones_of_modes(plant) if tones is None else tones.values(fit.values())
    added = turning(own_tones, phase_of(subject))
    gap = gap_of(replace(plant, model=fitted, modes=()), subject, added)
    return CompletedModel(fitted, list(draws), gap, own_tones - tones_of_modes(plant))


def _with_terms(subject: Subject, scale: float) -> Model | None:
    """The model with every candidate that is new to it; None where there is none."""
    model = subject.model
    tables: dict[str, Any] = tomllib.loads(model.to_toml())
    states, inputs, rates = _along(subject)
    number = 0
    for row in _driven_rows(model, states, inputs):
        name = model.states[row]
        known = rates[row]
        for text, values in _candidates(subject, states, scale):
            left = values - known @ np.linalg.lstsq(known, values, rcond=None)[0]
            if np.linalg.norm(left) < NEW * np.linalg.norm(values):
                continue
            known = np.column_stack([known, values])
            number += 1
            tables["states"][name] = f"{tables['states'][name]} + missed{number}*{text}"
            tables.setdefault("parameters", {})[f"missed{number}"] = {"guess": 0.0}
    return from_tables(tables, model.name) if number else None


def _along(subject: Subject) -> tuple[Array, Array, Array]:
    """States [n, K] and inputs [1, K] at some samples, and [n, K, parameters] what each adds to a rate."""
    model = subject.model
    every = max(1, subject.states.shape[1] // LOOKED_AT)
    row = subject.record[model.inputs[0]][: subject.states.shape[1]]
    good = np.flatnonzero(np.isfinite(row))[::every]
    states = np.ascontiguousarray(subject.states[:, good])
    inputs = np.ascontiguousarray(row[good][None, :])
    kernels, p = model.kernels(), model.values()
    n, k = len(model.states), len(model.parameters)
    rates = np.empty((n, len(good), k))
    dx, Jx, Jp = np.empty(n), np.empty((n, n)), np.empty((n, k))
    for j in range(len(good)):
        kernels.jac(0.0, np.ascontiguousarray(states[:, j]), inputs[:, j].copy(), p, dx, Jx, Jp)
        rates[:, j] = Jp
    return states, inputs, rates


def _driven_rows(model: Model, states: Array, inputs: Array) -> list[int]:
    by_input = np.empty((len(model.states), 1))
    model.kernels().jac_u(0.0, states[:, 0].copy(), inputs[:, 0].copy(), model.values(), by_input)
    return [int(i) for i in np.flatnonzero(by_input[:, 0])]


def _candidates(subject: Subject, states: Array, scale: float) -> list[tuple[str, Array]]:
    """Terms in the model language, and their values along the samples, of size one."""
    names, spread = subject.model.states, np.std(subject.states, axis=1)
    places = range(len(names))
    groups = [g for size in range(2, DEGREE + 1) for g in combinations_with_replacement(places, size)]
    groups += [(i,) * power for i in places for power in POWERS]
    found = [(_product(names, spread, g), np.prod(states[list(g)], axis=0)) for g in groups]
    for name, own, row in zip(names, spread, states, strict=True):
        s = scale * own
        found.append((f"{name}/sqrt({name}**2 + {float(s * s)!r})", row / np.sqrt(row**2 + s * s)))
    return found


def _product(names: Sequence[str], spread: Array, group: Sequence[int]) -> str:
    return "*".join(f"({names[i]}/{float(spread[i])!r})" for i in group)
