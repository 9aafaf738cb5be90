"""Names and units of imported channels."""

from __future__ import annotations

import re
from collections.abc import Sequence


def split_unit(title: str) -> tuple[str, str]:
    """``x [mm]`` as name and unit."""
    match = re.fullmatch(r"(.*?)\s*\[([^\[\]]*)\]\s*", title.strip(), re.DOTALL)
    return (match[1], match[2].strip()) if match else (title.strip(), "")


def distinct(names: Sequence[str]) -> list[str]:
    """The names made usable: empty ones numbered (c1, c2), repeated ones told apart (x, x_2)."""
    result: list[str] = []
    taken = set(names)
    for position, name in enumerate(names):
        plain = name or f"c{position + 1}"
        label, number = plain, 2
        while label in result or (label != name and label in taken):
            label = f"{plain}_{number}"
            number += 1
        result.append(label)
    return result
