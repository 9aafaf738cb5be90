"""Laser vibrometer controllers by Polytec: OFV-5000 and the older OFV-3001.

OFV-5000 (115200 baud, 8N1, LF): ``Get|Set|GetDevInfo,<class>,<number>,<attribute>[,<value>]``; Set is silent,
a part that is not built in answers ``Not Available``. OFV-3001 (9600 baud): ``VELO?``, ``VELO1`` to
``VELO9``, ``OVR``. Commands as used by independent public clients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from drivers.base.protocols import InstrumentError, Setting
from drivers.instruments.serial_link import LinkSettings, SerialLink
from drivers.rig.profile import RigError

MISSING = "Not Available"
FULL_SIGNAL = 512.0  # reading of SignalLevel at full strength
_SI = {"m": 1.0, "mm": 1e-3, "um": 1e-6, "µm": 1e-6, "nm": 1e-9}

# setting: class, attribute, values that the controller's decoders and filters know
_OFV5000 = {
    "velocity range": ("VeloDec", "Range", ("1 mm/s/V", "2 mm/s/V", "10 mm/s/V", "50 mm/s/V")),
    "displacement range": ("DisplDec", "Range", ()),
    "velocity filter": ("VeloFilter", "Range", ()),
    "tracking filter": ("TrackingFilter", "Range", ("Off", "Slow", "Fast")),
}


def open_ofv5000(table: Mapping[str, Any]) -> OFV5000:
    return OFV5000(_port(table))


def open_ofv3001(table: Mapping[str, Any]) -> OFV3001:
    ranges = {int(k): str(v) for k, v in dict(table.get("ranges", {})).items()}
    return OFV3001(_port(table), ranges)


def _port(table: Mapping[str, Any]) -> str:
    if "port" not in table:
        raise RigError("a vibrometer controller needs 'port', such as /dev/ttyUSB0 or COM3.")
    return str(table["port"])


class OFV5000:
    """Modular vibrometer controller."""

    def __init__(self, port: str) -> None:
        self.link = SerialLink(port, LinkSettings(115200))
        self.link.identify_again = self.identify

    def identify(self) -> str:
        name = self.link.query("GetDevInfo,Controller,0,Name")
        if "OFV" not in name:
            raise InstrumentError(
                f"The instrument on {self.link.port} is no OFV controller: it says '{name}'."
            )
        return f"Polytec {name}, firmware {self.link.query('GetDevInfo,Controller,0,Version')}"

    def settings(self) -> Mapping[str, Setting]:
        """The settings of the parts that are built in."""
        found = {}
        for name, (part, attribute, choices) in _OFV5000.items():
            value = self.link.query(f"Get,{part},0,{attribute}")
            if value != MISSING:
                found[name] = Setting(value, choices)
        return found

    def set(self, name: str, value: str) -> None:
        if name not in _OFV5000:
            raise InstrumentError(f"The OFV-5000 has no '{name}': it has {', '.join(_OFV5000)}.")
        part, attribute, choices = _OFV5000[name]
        if choices and value not in choices:
            raise InstrumentError(f"The {name} is one of {', '.join(choices)}, not '{value}'.")
        self.link.write(f"Set,{part},0,{attribute},{value}")
        taken = self.link.query(f"Get,{part},0,{attribute}")
        if taken != value:
            raise InstrumentError(f"The OFV-5000 did not take '{value}' as {name}: it stands at '{taken}'.")

    def signal_strength(self) -> float:
        return min(1.0, max(0.0, _number(self.link.query("Get,SignalLevel,0,Value")) / FULL_SIGNAL))

    def over_range(self) -> bool:
        """Whether the velocity decoder is or was overdriven."""
        return _number(self.link.query("Get,OverRange,0,State")) != 0

    def sensitivity(self) -> tuple[float, str]:
        return parse_range(self.link.query("Get,VeloDec,0,Range"))

    def close(self) -> None:
        self.link.close()


class OFV3001:
    """The older controller. What its range numbers mean depends on the decoder built in: ``ranges`` tells."""

    def __init__(self, port: str, ranges: Mapping[int, str] | None = None) -> None:
        self.link = SerialLink(port, LinkSettings(9600))
        self._ranges = dict(ranges or {})
        self.link.identify_again = self._number_now

    def identify(self) -> str:
        return f"Polytec OFV-3001, velocity range number {self._number_now()}"

    def settings(self) -> Mapping[str, Setting]:
        numbers = tuple(str(n) for n in sorted(self._ranges)) or tuple("123456789")
        return {"velocity range": Setting(str(self._number_now()), numbers)}

    def set(self, name: str, value: str) -> None:
        if name != "velocity range" or value not in self.settings()[name].choices:
            raise InstrumentError(f"The OFV-3001 cannot set '{name}' to '{value}'.")
        self.link.write(f"VELO{value}")
        if (taken := self._number_now()) != int(value):
            raise InstrumentError(f"The OFV-3001 did not take range {value}: it stands at {taken}.")

    def signal_strength(self) -> float:
        raise InstrumentError("The OFV-3001 tells its signal strength on its own display only.")

    def over_range(self) -> bool:
        return _number(self.link.query("OVR")) != 0

    def sensitivity(self) -> tuple[float, str]:
        number = self._number_now()
        if number not in self._ranges:
            raise InstrumentError(
                f"What range {number} of this OFV-3001 means is not in the rig profile: add it to 'ranges'."
            )
        return parse_range(self._ranges[number])

    def close(self) -> None:
        self.link.close()

    def _number_now(self) -> int:
        answer = self.link.query("VELO?")
        found = re.fullmatch(r"(?:VELO)?([1-9])", answer)
        if found is None:
            raise InstrumentError(f"The OFV-3001 gave no range number but '{answer}'.")
        return int(found[1])


def parse_range(text: str) -> tuple[float, str]:
    """What one volt means, in SI: ``10 mm/s/V`` is (0.01, "m/s"), ``50 um/V`` is (5e-05, "m")."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*(\S+?)(/s)?/V\s*", text)
    if found is None or found[2] not in _SI:
        raise InstrumentError(f"'{text}' is no range of a vibrometer.")
    return float(found[1]) * _SI[found[2]], "m/s" if found[3] else "m"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InstrumentError(f"The controller gave no number but '{text}'.") from None
