"""Units of the record beside those of the model: numbers are taken as they are, so a difference is said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from analysis.base.errors import DataError

if TYPE_CHECKING:
    from analysis.base.record import Record
    from analysis.experiment.curves import MeasuredCurve, MeasuredDecay
    from analysis.model import Model

_NONE = {"", "1", "-", "–"}  # ways to write that a quantity has no unit
_SAME = str.maketrans({"µ": "u", "μ": "u", "²": "2", "³": "3", "·": " ", "^": "", "*": " "})
_WRITTEN = {"inches": "in", "inch": "in", "°C": "degC", "℃": "degC", "°F": "degF", "°": "deg"}

_QUANTITIES: tuple[tuple[str, ...], ...] = (  # units of one quantity that differ in size or zero
    ("m", "in", "ft", "mil"), ("g", "lb"), ("s", "min", "h"), ("N", "lbf", "kgf"), ("V",), ("A",),
    ("Pa", "bar", "psi", "atm", "mmHg"), ("W",), ("J",), ("Hz",), ("T",), ("C",), ("F",), ("rad", "deg"),
    ("strain",), ("K", "degC", "degF"),
)  # fmt: skip
_BASES = {unit: units[0] for units in _QUANTITIES for unit in units}
_PREFIXED = ("m", "g", "s", "N", "V", "A", "Pa", "W", "J", "Hz", "T", "C", "F", "rad", "bar", "strain", "K")
_PREFIXES = ("p", "n", "u", "m", "c", "d", "k", "M", "G")
_SCALES = {prefix + base: _BASES[base] for base in _PREFIXED for prefix in _PREFIXES}
_OTHER_SIZE = (  # the same quantity, written with other units altogether
    {"g", "m/s2"}, {"C", "K"}, {"rpm", "rad/s"}, {"rpm", "deg/s"}, {"rpm", "Hz"}, {"Hz", "rad/s"},
)  # fmt: skip


def unit_words(model: Model, record: Record, sure: bool = False) -> list[str]:
    """A sentence for each channel whose stated unit is not the one the model states for it.

    ``sure``: only where both are units of one quantity and of another size or zero, such as mm and m or
    degC and K, so that they are not just written in another way.
    """
    words = []
    for name in (*model.outputs, *model.inputs):
        if name not in record:
            continue
        found, wanted = record.channels[name].unit, model.unit(name)
        if _differ(found, wanted) and (not sure or _of_other_size(found, wanted)):
            words.append(
                f"The record has {name} in {found}, the model in {wanted}: numbers are not converted, so the "
                "parameters' units do not hold. Change one of the two."
            )
    return words


def check_curve_units(model: Model, curve: MeasuredCurve | MeasuredDecay) -> list[str]:
    """A sentence for each unit of a curve that is written otherwise than the model's; where its size is
    another one, such as mm for m, it is refused.
    """
    output = curve.output or model.outputs[0]
    words = []
    for what, name, found in (
        ("amplitude", output, curve.amplitude_unit), ("force", model.inputs[0], curve.force_unit),
    ):  # fmt: skip
        wanted = model.unit(name)
        if not _differ(found, wanted):
            continue
        told = f"{curve.source or 'The curve'} has its {what} in {found}, the model '{name}' in {wanted}"
        if _of_other_size(found, wanted):
            raise DataError(f"{told}: write one of the two in the other's unit.")
        words.append(f"{told}: numbers are not converted, so the parameters' units may not hold.")
    return words


def _differ(found: str, wanted: str) -> bool:
    one, other = _plain(found), _plain(wanted)
    return one not in _NONE and other not in _NONE and one != other


def _plain(unit: str) -> str:
    for symbol, name in _WRITTEN.items():
        unit = unit.replace(symbol, name)
    return " ".join(unit.translate(_SAME).split())


def _of_other_size(found: str, wanted: str) -> bool:
    """Whether two units of one quantity differ in size: by a prefix somewhere, or by name (bar, Pa)."""
    one, other = _plain(found), _plain(wanted)
    if {one, other} in _OTHER_SIZE:
        return True
    pairs = list(zip(*(re.findall(r"[^\W\d]+|[\W\d]", unit) for unit in (one, other)), strict=False))
    alike = len("".join(a for a, _ in pairs)) == len(one) and len("".join(b for _, b in pairs)) == len(other)
    return alike and all(a == b or _base(a) == _base(b) != "" for a, b in pairs)


def _base(symbol: str) -> str:
    """The first unit of the symbol's quantity; empty: unknown."""
    return _BASES.get(symbol) or _SCALES.get(symbol, "")
