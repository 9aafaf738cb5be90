"""What modes beside the model add to a record that the drive alone made: a tone in each channel.

The dither test knows a mode to percents; a record of minutes can tell the tone to a thousandth. Where a
channel shows a state x as X = x + p, with the tone p = a cos(theta) + b sin(theta) of the drive's phase,

    X' = F(X - p, ...) + p',

and a, b are unknowns beside those of the model, cosine and sine of the drive two more inputs.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.record import Record
from analysis.holding.orbit_estimate import shown_of_modes
from analysis.holding.plant import LoopPlant
from analysis.model import Model
from analysis.model.reading import from_tables
from analysis.validation.subject import Subject

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

COSINE, SINE = "drive_cosine", "drive_sine"


def record_without_modes(subject: Subject, plant: LoopPlant) -> Record:
    """The subject's record without what the dither test says that modes add."""
    if not plant.modes:
        return subject.record
    shown = shown_of_modes(plant, phase_of(subject))
    kept = {name: subject.record[name] - row for name, row in zip(plant.channels, shown, strict=True)}
    return subject.record.with_channels(**kept)


def tones_of_modes(plant: LoopPlant) -> Complex:
    """[channels] complex amplitudes of what the modes add at the drive's frequency, by the dither test."""
    theta = 2 * np.pi * np.arange(16) / 16
    return np.asarray(2 * np.mean(shown_of_modes(plant, theta) * np.exp(-1j * theta), axis=1))


def record_with_phase(subject: Subject) -> Record:
    """The subject's record with cosine and sine of its drive."""
    theta = phase_of(subject)
    return subject.record.with_channels(**{COSINE: np.cos(theta), SINE: np.sin(theta)})


def turning(tones: Complex, theta: Array) -> Array:
    """[channels, N] tones at phases ``theta`` of the drive."""
    return np.asarray((tones[:, None] * np.exp(1j * theta)).real)


@dataclass(frozen=True)
class Tones:
    """A model of states as the channels show them, with the parameters that are cosine and sine of each."""

    model: Model
    names: Sequence[tuple[str, str]]

    def values(self, fitted: Mapping[str, float]) -> Complex:
        """[channels] complex amplitudes."""
        return np.array([complex(fitted[a], -fitted[b]) for a, b in self.names])


def with_tones(model: Model, channels: Sequence[str], tones: Complex, subject: Subject) -> Tones | None:
    """The model with a tone in each channel, sought from ``tones``; None where a channel shows no state
    itself, or an unknown function is of one."""
    tables: dict[str, Any] = tomllib.loads(model.to_toml())
    shown: Mapping[str, Any] = tables.get("outputs", {})
    if any(c not in model.states or shown.get(c, c) != c for c in channels):
        return None
    if any(isinstance(one, Mapping) and "solve" not in one for one in tables.get("definitions", {}).values()):
        return None
    names = [(f"tone_{c}_cosine", f"tone_{c}_sine") for c in channels]
    own = {c: f"({c} - {a}*{COSINE} - {b}*{SINE})" for c, (a, b) in zip(channels, names, strict=True)}
    tables["definitions"] = {k: _replaced(v, own) for k, v in tables.get("definitions", {}).items()}
    tables["states"] = {k: _replaced(v, own) for k, v in tables["states"].items()}
    omega = repr(float(2 * np.pi / subject.base))
    for c, (a, b), tone in zip(channels, names, tones, strict=True):
        tables["states"][c] += f" + {omega}*({b}*{COSINE} - {a}*{SINE})"
        tables["parameters"][a] = {"guess": float(tone.real)}
        tables["parameters"][b] = {"guess": float(-tone.imag)}
    tables["inputs"] |= {COSINE: "measured", SINE: "measured"}
    return Tones(from_tables(tables, model.name), names)


def _replaced(item: Any, own: Mapping[str, str]) -> Any:
    if isinstance(item, Mapping):
        return {**item, "solve": _replaced(item["solve"], own)}
    return re.sub(r"[A-Za-z_]\w*", lambda found: own.get(found[0], found[0]), item)


def phase_of(subject: Subject) -> Array:
    """Of the drive, at the samples of the subject's record."""
    return np.asarray(2 * np.pi * subject.times / subject.base)
