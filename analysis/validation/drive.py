"""The same model with its drive changed: opened, so that any input can be put in; a tone in place of a
measured input; a factor on the drive. And the period of a model's own drive.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.record import Record
from analysis.model import Model
from analysis.model.drive import drive_of
from analysis.model.reading import from_tables
from analysis.signal.tone import tone_basis

Array = NDArray[np.float64]

SCALE = "drive_scale"  # the factor's name
_HARMONICS = 3  # of a tone that a shaker distorts
_MISS = 0.03  # of the input's spread that its tone may leave unexplained


def depends_on_time(model: Model) -> bool:
    """Whether the equations hold t, so that they are driven from within."""
    return drive_of(model).present


def drive_period(model: Model) -> float | None:
    """Period of the model's own drive; None without one, or if it does not repeat."""
    return drive_of(model).period


def opened(model: Model) -> Model:
    """The model with every input as a measured one; its own drive is then zero when the inputs are."""
    tables = tomllib.loads(model.text)
    if not any(text != "measured" for text in tables.get("inputs", {}).values()):
        return model
    tables["inputs"] = dict.fromkeys(tables["inputs"], "measured")
    return from_tables(tables, model.name)


def scaled(model: Model) -> Model | None:
    """The model with a factor ``drive_scale`` on its own drive; None if the drive is no [inputs] entry."""
    tables = tomllib.loads(model.text)
    inputs = tables.get("inputs", {})
    if not inputs or "measured" in inputs.values() or depends_on_time(opened(model)):
        return None
    tables["inputs"] = {name: f"{SCALE}*({text})" for name, text in inputs.items()}
    tables["parameters"] = {**tables.get("parameters", {}), SCALE: 1.0}
    return from_tables(tables, model.name)


@dataclass(frozen=True)
class Tone:
    """A measured input as offset and harmonics of the drive."""

    offset: float
    cosines: tuple[float, ...]
    sines: tuple[float, ...]
    miss: float  # rms left over, of the spread


def tone_of(row: Array, times: Array, frequency: float) -> Tone:
    """Least squares of offset and three harmonics; ``times`` of the samples as the model counts them."""
    good = np.isfinite(row)
    basis = tone_basis(times[good], frequency, _HARMONICS)
    found, *_ = np.linalg.lstsq(basis, row[good], rcond=None)
    left = float(np.std(row[good] - basis @ found) / max(float(np.std(row[good])), 1e-300))
    return Tone(float(found[0]), tuple(found[1::2].tolist()), tuple(found[2::2].tolist()), left)


def toned(model: Model, record: Record, times: Array, frequency: float, noise: float) -> Model:
    """The model with each measured input as the tone that the record shows; DataError if it is none.

    ``times``: the model's, at the samples; a record may start at any phase of the drive.

    ``noise``: share of the inputs' spread that is sensor noise and may be left over.
    """
    tables = tomllib.loads(model.text)
    tables["inputs"] = dict(tables["inputs"])
    parameters: dict[str, Any] = dict(tables.get("parameters", {}))
    parameters |= {"drive_frequency": frequency, SCALE: 1.0}
    for name in model.inputs:
        tone = tone_of(record[name], times, frequency)
        if tone.miss > max(_MISS, 1.2 * noise):
            raise DataError(
                f"The input {name} is no tone ({100 * tone.miss:.0f} % of it is something else), so the "
                "model has no orbits or exponents of its own."
            )
        text = f"{name}_offset"
        parameters[f"{name}_offset"] = tone.offset
        for k, (c, s) in enumerate(zip(tone.cosines, tone.sines, strict=True), 1):
            angle = f"2*pi*{k}*drive_frequency*t"
            text += f" + {name}_cos{k}*cos({angle}) + {name}_sin{k}*sin({angle})"
            parameters |= {f"{name}_cos{k}": c, f"{name}_sin{k}": s}
        tables["inputs"][name] = f"{SCALE}*({text})"
    tables["parameters"] = parameters
    return from_tables(tables, model.name)
