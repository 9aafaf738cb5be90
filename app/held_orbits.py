"""Held orbits from the JSON that `shakedown hold` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analysis import DataError, HeldMotion, parse_json
from drivers.base.files import read_text

if TYPE_CHECKING:
    from analysis import Model


def read_held(path: str, model: Model) -> list[HeldMotion]:
    """The orbits of the file that were held; those with another verdict are no evidence."""
    try:
        told = parse_json(read_text(path, "a result of hold"))
        found = [_motion(o, model) for o in told["orbits"] if o["verdict"] == "held"]
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise DataError(
            f"{path} is not a result of `shakedown hold` ({type(error).__name__}: {error})."
        ) from None
    if not found:
        raise DataError(f"No orbit of {path} was held: there is nothing to compare.")
    return found


def _motion(o: dict[str, object], model: Model) -> HeldMotion:
    states, orbit = o["states"], o["orbit"]
    multipliers, errors = o["multipliers"], o["multiplier_errors"]
    if not (isinstance(states, dict) and isinstance(orbit, dict)):
        raise TypeError("states and orbit are not tables")
    if not (isinstance(multipliers, list) and isinstance(errors, list)):
        raise TypeError("multipliers are not a list")
    return HeldMotion(
        int(str(o["number"])), int(str(o["periods"])),
        np.array([states[name] for name in model.states], dtype=np.float64),
        {name: np.array(row["mean"], dtype=np.float64) for name, row in orbit.items()},
        {name: np.array(row["stderr"], dtype=np.float64) for name, row in orbit.items()},
        float(multipliers[0][0]), float(errors[0]) if errors[0] is not None else float("nan"),
    )  # fmt: skip
