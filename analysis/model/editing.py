"""One parameter of a model's text changed in place: comments and layout of the rest stay as they are."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from analysis.model import document, reading
from analysis.model.model import Parameter


def with_parameter(text: str, name: str, parameter: Parameter) -> str:
    """The text of a model file in which that parameter reads as given; ModelError if it makes no sense."""
    found = document.read(text, "model")
    span = found.spans.get(("parameters", name))
    if span is None:  # written as a table of its own, or not there
        model = reading.model(found)
        changed = replace(model, parameters={**model.parameters, name: parameter}).to_toml()
    else:
        changed = found.text[: span[0]] + _inline(parameter) + found.text[span[1] :]
    reading.model(document.read(changed, "model"))  # refuses a guess outside its bounds, and the like
    return changed


def _inline(parameter: Parameter) -> str:
    """As an inline table: ``{ guess = 0.1, lower = 0, unit = "N s/m" }``."""
    entries = [f"{'guess' if parameter.free else 'value'} = {_number(parameter.value)}"]
    for key in ("lower", "upper"):
        bound = getattr(parameter, key)
        if math.isfinite(bound):
            entries.append(f"{key} = {_number(bound)}")
    if parameter.unit:
        entries.append(f"unit = {json.dumps(parameter.unit, ensure_ascii=False)}")
    return "{ " + ", ".join(entries) + " }"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e6 else repr(float(value))
