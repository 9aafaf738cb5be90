"""The model as readable text and as a model file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from analysis.model.equations import Equations, Implicit
from analysis.model.functions import Spline
from analysis.model.grammar import Expression

if TYPE_CHECKING:
    from analysis.model.model import Model


def toml(model: Model) -> str:
    """A model file that reads back as an equal model."""
    equations = model.equations
    lines = [f"name = {_text(model.name)}"]
    lines += [f"{key} = {_text(v)}" for key in ("description", "reference") if (v := getattr(model, key))]
    lines += _table("states", {name: _text(e.text) for name, e in equations.states.items()})
    inputs = {name: _text("measured") for name in equations.measured}
    inputs.update({name: _text(e.text) for name, e in equations.driven.items()})
    lines += _table("inputs", inputs)
    # A shift of time belongs to a record, not to the model: it is no part of the file.
    ends = {end for name, spline in equations.functions.items() for end in spline.end_names(name)}
    own = {n: p for n, p in model.parameters.items() if n != equations.time_shift and n not in ends}
    lines += _table("parameters", {name: _entry(p, p.unit) for name, p in own.items()})
    lines += _table("initial", {name: _entry(i, "") for name, i in model.initial.items()})
    lines += _table("definitions", {name: _defined(equations, name) for name in equations.definitions})
    if not _outputs_are_states(model):
        lines += _table("outputs", {name: _text(e.text) for name, e in equations.outputs.items()})
    lines += _table("units", {name: _text(unit) for name, unit in model.units.items()})
    return "\n".join(lines) + "\n"


def _outputs_are_states(model: Model) -> bool:
    outputs = model.equations.outputs
    return list(outputs) == list(model.states) and all(e.text == name for name, e in outputs.items())


def _table(name: str, entries: Mapping[str, str]) -> list[str]:
    return ["", f"[{name}]", *(f"{key} = {value}" for key, value in entries.items())] if entries else []


def _text(text: str) -> str:
    """A TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'


def _entry(item: Any, unit: str) -> str:
    fields = {"guess" if item.free else "value": item.value, "lower": item.lower, "upper": item.upper}
    parts = [f"{key} = {value!r}" for key, value in fields.items() if not math.isinf(value)]
    if unit:
        parts.append(f"unit = {_text(unit)}")
    plain = not item.free and len(parts) == 1
    return repr(item.value) if plain else "{ " + ", ".join(parts) + " }"


def _defined(equations: Equations, name: str) -> str:
    function = equations.functions.get(name)
    if function is None:
        return _definition(equations.definitions[name])
    if isinstance(function, Spline):
        ends = "" if function.open else f", lower = {function.lower!r}, upper = {function.upper!r}"
        return f"{{ function = {_text(function.argument)}, knots = {function.knots}{ends} }}"
    rows = {
        "function": [_text(axis.argument) for axis in function.axes],
        "knots": [str(axis.knots) for axis in function.axes],
    }
    if not function.open:
        rows |= {key: [repr(getattr(axis, key)) for axis in function.axes] for key in ("lower", "upper")}
    return "{ " + ", ".join(f"{key} = [{', '.join(row)}]" for key, row in rows.items()) + " }"


def _axis(spline: Spline) -> str:
    ends = "" if spline.open else f" from {spline.lower:g} to {spline.upper:g}"
    return f"{spline.argument} ({spline.knots} knots{ends})"


def _definition(item: Expression | Implicit) -> str:
    if isinstance(item, Implicit):
        return f"{{ solve = {_text(item.residual.text)}, lower = {item.lower!r}, upper = {item.upper!r} }}"
    return _text(item.text)


def plain(model: Model) -> str:
    """The equations for a terminal: derivatives first, then what they use, then what sensors see."""
    equations = model.equations
    lines = [(f"d{name}/dt", _spaced(e.text)) for name, e in equations.states.items()]
    lines += [(name, _spaced(e.text)) for name, e in equations.driven.items()]
    lines += [(name, "measured") for name in equations.measured]
    for name, item in equations.definitions.items():
        if name in equations.functions:
            axes = [_axis(axis) for axis in equations.functions[name].axes]
            lines.append((name, f"an unknown function of {' and '.join(axes)}"))
        elif isinstance(item, Implicit):
            bounds = f"{item.lower:g} <= {name} <= {item.upper:g}"
            lines.append((name, f"the root of {_spaced(item.residual.text)} = 0 in {bounds}"))
        else:
            lines.append((name, _spaced(item.text)))
    if not _outputs_are_states(model):
        lines += [(name, _spaced(e.text)) for name, e in equations.outputs.items()]
    return "\n".join(_aligned(lines))


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _aligned(lines: Iterable[tuple[str, str]]) -> list[str]:
    lines = list(lines)
    width = max(len(left) for left, _ in lines)
    return [f"{left:<{width}} = {right}" for left, right in lines]
