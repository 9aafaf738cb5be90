"""Names and units of imported channels."""

from __future__ import annotations

import re
from collections.abc import Sequence

from drivers.formats.timing import SECONDS, is_time

# Units that a title may end in without square brackets: in round ones, where a remark may stand as well, and
# behind a stroke, where a group's name may stand before it.
UNITS = frozenset(
    [
        "s",
        "ms",
        "us",
        "µs",
        "μs",
        "ns",
        "min",
        "h",
        "m",
        "mm",
        "cm",
        "km",
        "um",
        "µm",
        "μm",
        "nm",
        "in",
        "ft",
        "kg",
        "g",
        "mg",
        "t",
        "N",
        "kN",
        "mN",
        "lbf",
        "V",
        "mV",
        "uV",
        "µV",
        "μV",
        "kV",
        "A",
        "mA",
        "uA",
        "µA",
        "Pa",
        "kPa",
        "MPa",
        "GPa",
        "hPa",
        "bar",
        "mbar",
        "psi",
        "Hz",
        "kHz",
        "MHz",
        "rad",
        "mrad",
        "deg",
        "°",
        "rpm",
        "K",
        "C",
        "°C",
        "F",
        "°F",
        "J",
        "W",
        "kW",
        "Nm",
        "T",
        "mT",
        "G",
        "Ohm",
        "ohm",
        "Ω",
        "kΩ",
        "F",
        "pF",
        "nF",
        "H",
        "strain",
        "ustrain",
        "µstrain",
        "μstrain",
        "%",
        "dB",
    ]
)


def split_unit(title: str) -> tuple[str, str]:
    """``x [mm]``, ``x (mm)``, ``x/mm`` and ``x, mm`` as name and unit; of times ``time_ms``, too."""
    title = title.strip()
    if match := re.fullmatch(r"(.*?)\s*\[([^\[\]]*)\]", title, re.DOTALL):
        return match[1], match[2].strip()
    match = re.fullmatch(r"(.*\S)\s*\(([^()]+)\)", title, re.DOTALL) or re.fullmatch(
        r"([^/,]*\S)\s*[/,]\s*(.+)", title, re.DOTALL
    )
    if match and is_unit(match[2]):
        return match[1], match[2].strip()
    name, _, last = title.rpartition("_")
    return (name, last) if is_time(name) and last in SECONDS else (title, "")


def is_unit(text: str) -> bool:
    """Whether the text is made of known units, such as ``m/s^2``, ``N*m`` or ``m s⁻²``."""
    parts = re.split(
        r"[/*·.\s]+", re.sub(r"[²³⁻¹]|\^-?[0-9]+|(?<=[A-Za-zµμ°Ω])-?[0-9]+", "", text.strip().strip("()"))
    )
    return bool(parts) and all(part in UNITS or part == "1" for part in parts)


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
