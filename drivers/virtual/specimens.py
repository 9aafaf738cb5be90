"""Specimens of a virtual rig that differ from one another, as real ones do: each has a number.

The number decides by how much every parameter differs from the profile's own value, up to the profile's
``scatter``. The same number is the same specimen; 0 is the one that the profile describes.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np

from drivers.library import load_model
from drivers.rig.profile import RigError, RigProfile

HIGHEST = 9999  # a number that a person can read out and type


def new_number() -> int:
    """The number of a specimen that nobody has seen yet."""
    return 1 + secrets.randbelow(HIGHEST)


def scatters(profile: RigProfile) -> dict[str, float]:
    """By how much a parameter of the virtual specimens may differ, as a share of itself; empty: all alike."""
    table = _table(profile)
    given = table.get("scatter", {})
    if not isinstance(given, dict) or not all(_is_share(value) for value in given.values()):
        raise RigError(
            "[instruments.source.specimen] scatter: shares (below 1) by which parameters differ, by name."
        )
    unknown = set(given) - set(load_model(table.get("model", "")).parameters) if given else set()
    if unknown:
        raise RigError(
            f"[instruments.source.specimen] scatter: the model has no {', '.join(sorted(unknown))}."
        )
    return {name: float(value) for name, value in given.items()}


def with_specimen(profile: RigProfile, number: int) -> RigProfile:
    """The rig with the specimen of a number clamped to its shaker."""
    if number < 0:
        raise RigError(f"A specimen's number is 0 or more, not {number}.")
    scatter = scatters(profile)
    if not number:
        return profile
    if not scatter:
        raise RigError(f"The specimens of the rig '{profile.key}' are all alike: it has no `scatter`.")
    known = true_parameters(profile)
    rng = np.random.default_rng(number)
    drawn = {name: known[name] * (1.0 + share * rng.uniform(-1.0, 1.0)) for name, share in scatter.items()}
    return profile.with_changes(specimen=drawn, number=number)


def number_of(profile: RigProfile) -> int:
    """The number of the specimen; 0: the one that the profile describes."""
    return int(_table(profile).get("number", 0))


def true_parameters(profile: RigProfile) -> dict[str, float]:
    """What the parameters of a virtual specimen really are; empty for a real rig."""
    table = _table(profile)
    if not table:
        return {}
    model = load_model(table.get("model", "")).with_values(table.get("parameters", {}))
    return {name: parameter.value for name, parameter in model.parameters.items()}


def _table(profile: RigProfile) -> Mapping[str, Any]:
    table = profile.instruments["source"].get("specimen", {}) if profile.virtual else {}
    return table if isinstance(table, dict) else {}


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1
