"""Held orbits from the JSON that `shakedown hold` writes: evidence to validate by, data to identify from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import DataError, Excitation, HeldMotion, parse_json
from drivers.base.files import read_text

if TYPE_CHECKING:
    from analysis import Model, Record


def read_held(path: str, model: Model) -> list[HeldMotion]:
    """The orbits of the file that were held; those with another verdict are no evidence."""
    with _as_a_result_of_hold(path):
        told = parse_json(read_text(path, "a result of hold"))
        found = [_motion(o, model) for o in told["orbits"] if o["verdict"] == "held"]
    if not found:
        raise DataError(f"No orbit of {path} was held: there is nothing to compare.")
    return found


@contextmanager
def _as_a_result_of_hold(path: str) -> Iterator[None]:
    """What is missing or of another kind in the file is told in a sentence."""
    try:
        yield
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise DataError(
            f"{path} is not a result of `shakedown hold` ({type(error).__name__}: {error})."
        ) from None


def is_held(path: str) -> bool:
    """Whether a file is named as results are; recordings never are."""
    return Path(path).suffix.lower() == ".json"


def held_records(path: str, padded: bool = False) -> list[Record]:
    """The orbits of the file that were held, each as a record that states its noise.

    One period of the orbit, the channels' plain averages (which owe nothing to a model) and the force of the
    drive. ``padded``: with a period of the drive more on either side, which repeats it, for a method that
    tapers; it uses the period between them only.
    """
    with _as_a_result_of_hold(path):
        told = parse_json(read_text(path, "a result of hold"))
        held, drive = [o for o in told["orbits"] if o["verdict"] == "held"], told["drive"]
        if held and not all("averaged" in o for o in held):
            raise DataError(f"{path} was written by an earlier version: hold the orbits again.")
        sine = Excitation(float(drive["frequency"]), float(drive["amplitude"]), 0.0)
        found = [_record(o, sine, padded) for o in held]
    if not found:
        raise DataError(f"No orbit of {path} was held: there is nothing to identify from.")
    return found


def _record(o: dict[str, Any], sine: Excitation, padded: bool) -> Record:
    from analysis import Record

    periods, cycle = int(o["periods"]), len(o["phase"])
    nodes = cycle // periods  # of a period of the drive
    at = np.arange(-nodes, cycle + nodes + 1) % cycle if padded else np.arange(cycle)
    arrays = {n: np.array(row["mean"], dtype=np.float64)[at] for n, row in o["averaged"].items()}
    arrays |= {n: np.array(row, dtype=np.float64)[at] for n, row in o["input"].items()}
    errors = {n: np.array(row["stderr"], dtype=np.float64) for n, row in o["averaged"].items()}
    closed = {"closed_orbit": {"start": nodes, "periods": periods}} if padded else {}
    return Record.from_arrays(
        nodes * sine.frequency, arrays, noise={n: float(np.sqrt(np.mean(e**2))) for n, e in errors.items()},
        excitation=sine, metadata={"held_orbit": int(o["number"]), **closed},
    )  # fmt: skip


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
