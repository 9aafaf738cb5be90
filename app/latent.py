"""A recording with the states of a fitted model as further channels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis import Identification, LatentStates, Record


def with_states(record: Record, result: Identification, found: LatentStates) -> Record:
    """The recording with every state of the model and its standard error, under names of their own."""
    from analysis import Channel, Model

    model, channels = Model.from_toml(result.model_text), dict(record.channels)
    for name, values, errors in zip(found.names, found.values, found.stderr, strict=True):
        channels[f"{name} (model)"] = Channel(values, model.unit(name))
        channels[f"{name} (model) error"] = Channel(errors, model.unit(name))
    return replace(record, channels=channels)
