"""Opens the virtual rig of a profile: model, shaker, sensors from the tables of the file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from analysis import Model
from drivers.base.clock import Clock
from drivers.base.converter import check_bits
from drivers.library import load_model
from drivers.rig.loop import LoopTiming
from drivers.rig.profile import RigError, RigProfile, build, positive
from drivers.virtual.plant import EndStop, Plant, Shaker, Specimen
from drivers.virtual.rig import VirtualExciter, VirtualRig, VirtualSensor

STEPS_A_SECOND = 3000.0  # of the integration, at least
MOST_STEPS_A_SECOND = 1e7  # more than any machine integrates


def open_source(profile: RigProfile, clock: Clock | None, seed: int) -> VirtualRig:
    table = profile.instruments["source"]
    bits = table.get("bits", 24)
    check_bits("The converter of [instruments.source]", bits)
    sensors = [
        VirtualSensor(
            table["wiring"][c.name], c.sensitivity, c.zero, _offset(table, c.name), c.noise, c.range, bits
        )
        for c in profile.channels
    ]
    channels = [c.info() for c in profile.channels]
    loop = build(LoopTiming, table["loop"], "loop") if "loop" in table else None
    return VirtualRig(profile.name, open_plant(profile), channels, sensors, profile.limits, seed, clock, loop)


def _offset(table: Mapping[str, Any], name: str) -> float:
    offset = dict(table.get("offsets", {})).get(name, 0.0)
    if isinstance(offset, bool) or not isinstance(offset, int | float):
        raise RigError(f"[instruments.source] offsets: '{name}' must be a number of volts, not {offset!r}.")
    return float(offset)


def open_exciter(profile: RigProfile, source: Any) -> VirtualExciter:
    if not isinstance(source, VirtualRig):
        raise RigError("[instruments.exciter]: a virtual exciter needs a virtual source.")
    return source.exciter


def open_plant(profile: RigProfile, table: Mapping[str, Any] | None = None) -> Plant:
    """The specimen and shaker that a profile's source (or another table) describes."""
    table = profile.instruments["source"] if table is None else table
    for needed in ("specimen", "shaker"):
        if not isinstance(table.get(needed), dict):
            raise RigError(f"[instruments.source.{needed}] is missing: a virtual rig needs it.")
    specimen = dict(table["specimen"])
    model = _with_inputs(load_model(specimen.pop("model", "")), specimen.get("inputs", {}))
    specimen["values"] = specimen.pop("parameters", {})
    for told in ("scatter", "number"):  # which of the specimens this one is: its parameters say it all
        specimen.pop(told, None)
    if "stop" in specimen:
        specimen["stop"] = build(EndStop, specimen["stop"], "specimen.stop")
    part = build(Specimen, {"model": model, **specimen}, "specimen")
    steps_a_second = positive(
        "[instruments.source] steps_a_second", table.get("steps_a_second", STEPS_A_SECOND)
    )
    if steps_a_second > MOST_STEPS_A_SECOND:
        raise RigError(
            f"[instruments.source] steps_a_second must be {MOST_STEPS_A_SECOND:g} at most, "
            f"not {steps_a_second:g}."
        )
    steps = max(1, round(steps_a_second / profile.rate))
    return Plant(part, build(Shaker, table["shaker"], "shaker"), profile.rate, steps)


def _with_inputs(model: Model, inputs: Mapping[str, str]) -> Model:
    """The model with inputs that its file writes as expressions taken from the shaker instead."""
    if set(inputs) <= set(model.inputs):
        return model
    import tomli_w

    table = tomllib.loads(model.text)
    for name in inputs:
        if name not in table.get("inputs", {}):
            raise RigError(f"The model '{model.name}' has no input '{name}' to connect to the shaker.")
        table["inputs"][name] = "measured"
    return Model.from_toml(tomli_w.dumps(table), model.name)
