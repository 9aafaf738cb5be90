"""A model whose measured input becomes a tone, so that it has periodic motions of its own."""

from __future__ import annotations

import tomllib

from analysis.base.errors import ModelError
from analysis.model import Model
from analysis.model.reading import from_tables

TONE_FREQUENCY, TONE_AMPLITUDE = "frequency", "amplitude"


def driven_by_a_tone(model: Model, frequency: float, amplitude: float) -> Model:
    """The model with its one measured input as ``amplitude*cos(2*pi*frequency*t)``, both as parameters."""
    if len(model.inputs) != 1:
        raise ModelError(
            f"{model.name} has {len(model.inputs)} measured inputs: only one can be made a tone."
            if model.inputs
            else f"{model.name} has no measured input to be made a tone."
        )
    taken = {TONE_FREQUENCY, TONE_AMPLITUDE} & {*model.parameters, *model.states, *model.outputs}
    if taken:
        raise ModelError(f"{model.name} uses the name {sorted(taken)[0]} already: rename it there.")
    tables = tomllib.loads(model.to_toml())
    tables["inputs"] = {**tables["inputs"], model.inputs[0]: f"{TONE_AMPLITUDE}*cos(2*pi*{TONE_FREQUENCY}*t)"}
    tables["parameters"] = {
        **tables.get("parameters", {}),
        TONE_FREQUENCY: frequency,
        TONE_AMPLITUDE: amplitude,
    }
    return from_tables(tables, model.name)
