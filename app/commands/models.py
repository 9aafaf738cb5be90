"""shakedown models: the library of models, or one model in detail."""

from __future__ import annotations

import argparse
import math
from typing import Any

from analysis import Model
from app import project_names as names
from app.output import add_json_option, table, write_json
from drivers.library import load_model, model_files


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", type=names.model, help=f"{names.MODEL}; without: list all")
    add_json_option(parser)


def run(args: argparse.Namespace) -> None:
    if args.model is None:
        _list(args.json)
    else:
        _detail(load_model(args.model), args.json)


def _list(target: str | None) -> None:
    models = {name: load_model(path) for name, path in model_files().items()}
    if write_json(target, [{"model": name, **_summary(m)} for name, m in models.items()]):
        return
    rows = [(name, len(m.states), len(m.free), m.name) for name, m in models.items()]
    print(table(("model", "states", "free", "what"), rows))


def _summary(model: Model) -> dict[str, Any]:
    return {
        "name": model.name,
        "description": model.description,
        "states": list(model.states),
        "inputs": list(model.inputs),
        "outputs": list(model.outputs),
        "free": list(model.free),
    }


def _detail(model: Model, target: str | None) -> None:
    parameters = {
        name: {
            "value": p.value,
            "lower": None if math.isinf(p.lower) else p.lower,
            "upper": None if math.isinf(p.upper) else p.upper,
            "unit": p.unit,
            "free": p.free,
        }
        for name, p in model.parameters.items()
    }
    payload = {
        **_summary(model),
        "reference": model.reference,
        "linear": list(model.linear),
        "parameters": parameters,
        "initial": {name: {"value": i.value, "free": i.free} for name, i in model.initial.items()},
        "equations": model.to_text().splitlines(),
        "latex": model.latex_equations(),
    }
    if write_json(target, payload):
        return
    print("\n".join(part for part in (model.name, model.description, model.reference) if part))
    print(f"\n{model.to_text()}\n")
    rows = [(name, p.value, p.unit, _role(model, name)) for name, p in model.parameters.items()]
    if rows:
        print(table(("parameter", "value", "unit", "role"), rows))
    if model.initial:
        starts = [
            f"{name} = {i.value:g}" + (" (free)" if i.free else "") for name, i in model.initial.items()
        ]
        print(f"\nInitial: {', '.join(starts)}")


def _role(model: Model, name: str) -> str:
    p = model.parameters[name]
    if not p.free:
        return "known"
    bounds = "" if math.isinf(p.lower) and math.isinf(p.upper) else f", {p.lower:g} to {p.upper:g}"
    return ("identified, linear" if name in model.linear else "identified") + bounds
