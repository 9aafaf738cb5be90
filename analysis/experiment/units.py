"""Units of the record beside those of the model: numbers are taken as they are, so a difference is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.base.record import Record
    from analysis.model import Model

_NONE = {"", "1", "-", "–"}  # ways to write that a quantity has no unit
_SAME = str.maketrans({"µ": "u", "μ": "u", "²": "2", "³": "3", "·": " ", "^": "", "*": " "})


def unit_words(model: Model, record: Record) -> list[str]:
    """A sentence for each channel whose stated unit is not the one the model states for it."""
    words = []
    for name in (*model.outputs, *model.inputs):
        if name not in record:
            continue
        found, wanted = record.channels[name].unit, model.unit(name)
        if _differ(found, wanted):
            words.append(
                f"The record has {name} in {found}, the model in {wanted}: numbers are not converted, so the "
                "parameters' units do not hold. Change one of the two."
            )
    return words


def _differ(found: str, wanted: str) -> bool:
    one, other = (" ".join(unit.translate(_SAME).split()) for unit in (found, wanted))
    return one not in _NONE and other not in _NONE and one != other
