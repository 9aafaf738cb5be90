"""Units of the record beside those of the model: numbers are taken as they are, so a difference is said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.base.record import Record
    from analysis.model import Model

_NONE = {"", "1", "-", "–"}  # ways to write that a quantity has no unit
_SAME = str.maketrans({"µ": "u", "μ": "u", "²": "2", "³": "3", "·": " ", "^": "", "*": " "})


_BASES = ("m", "g", "s", "N", "V", "A", "Pa", "W", "J", "Hz", "T", "C", "F", "rad", "bar", "strain")
_PREFIXES = ("p", "n", "u", "m", "c", "d", "k", "M", "G")
_SCALES = {prefix + base: base for base in _BASES for prefix in _PREFIXES}
_OTHER_SIZE = ({"deg", "rad"}, {"°", "rad"}, {"g", "m/s2"})  # the same quantity, though not by a prefix


def unit_words(model: Model, record: Record, sure: bool = False) -> list[str]:
    """A sentence for each channel whose stated unit is not the one the model states for it.

    ``sure``: only where both are units of one quantity and of another size, such as mm and m, so that they
    are not just written in another way.
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


def _differ(found: str, wanted: str) -> bool:
    one, other = _plain(found), _plain(wanted)
    return one not in _NONE and other not in _NONE and one != other


def _plain(unit: str) -> str:
    return " ".join(unit.translate(_SAME).split())


def _of_other_size(found: str, wanted: str) -> bool:
    """Whether two units of one quantity differ in size: by a prefix somewhere, or by name (deg, rad)."""
    one, other = _plain(found), _plain(wanted)
    if {one, other} in _OTHER_SIZE:
        return True
    pairs = list(zip(*(re.findall(r"[^\W\d]+|[\W\d]", unit) for unit in (one, other)), strict=False))
    alike = len("".join(a for a, _ in pairs)) == len(one) and len("".join(b for _, b in pairs)) == len(other)
    return alike and all(a == b or _base(a) == _base(b) != "" for a, b in pairs)


def _base(symbol: str) -> str:
    """The unit without its prefix; empty: unknown."""
    return symbol if symbol in _BASES else _SCALES.get(symbol, "")
