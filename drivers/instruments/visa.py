"""Instruments on USB, LAN and GPIB through VISA, for the same classes that speak on a serial line.

A port ``visa://RESOURCE``, such as ``visa://USB0::0x0957::0x2C07::MY52::INSTR`` or ``visa://GPIB0::10::INSTR``,
goes wherever a serial port goes. Which VISA library is used, a maker's or pyvisa-py, PyVISA decides; the
variable ``PYVISA_LIBRARY`` overrules it. On a bus of messages a line is sent when it is whole.

``python -m drivers.instruments.visa PORT COMMAND ...`` sends commands from a process of its own: how the
second guard reaches such an output.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import TYPE_CHECKING, Any

from analysis import EXTRAS, missing_extra, need_extra

if TYPE_CHECKING:
    from drivers.instruments.serial_link import LinkSettings

PREFIX = "visa://"
OPEN_MS = 2000


def list_devices() -> tuple[list[tuple[str, str]], str]:
    """Each VISA resource, as a port; and a sentence if none could be looked for."""
    if not EXTRAS["visa"].installed:
        return [], missing_extra("visa")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of buses that pyvisa-py cannot look at without more packages
            names = _manager().list_resources("?*::INSTR")
    except Exception as error:  # VisaIOError, OSError, or whatever a maker's library raises
        return [], f"VISA instruments could not be listed: {_words(error)}."
    # Serial ports are listed as such.
    return [(PREFIX + n, "VISA instrument") for n in names if not n.startswith("ASRL")], ""


def _manager() -> Any:
    import pyvisa

    return pyvisa.ResourceManager()


class VisaPort:
    """A VISA resource with the few methods of a serial port that a link uses."""

    in_waiting = 0  # a bus of messages hands over nothing unasked

    def __init__(self, port: str, settings: LinkSettings) -> None:
        need_extra("visa")
        self._ending = settings.ending
        self._line = b""
        try:
            self._resource = _manager().open_resource(port.removeprefix(PREFIX), open_timeout=OPEN_MS)
        except Exception as error:
            raise OSError(_words(error)) from None
        self._resource.timeout = 1000 * settings.timeout  # ms
        self._resource.write_termination = self._resource.read_termination = settings.ending.decode()
        if hasattr(self._resource, "baud_rate"):
            self._resource.baud_rate = settings.baudrate

    def write(self, data: bytes) -> None:
        """Send a line once its end has come; until then nothing is on the bus."""
        self._line += data
        if self._line.endswith(self._ending):
            line, self._line = self._line, b""
            self._resource.write_raw(line)

    def flush(self) -> None:
        """Nothing is kept back."""

    def read_until(self, ending: bytes) -> bytes:
        """The answer with its ending; empty if none came in time."""
        from pyvisa.constants import StatusCode
        from pyvisa.errors import VisaIOError

        try:
            answer = bytes(self._resource.read_raw())
        except VisaIOError as error:
            if error.error_code == StatusCode.error_timeout:
                return b""
            raise
        if not answer or answer.endswith(ending):
            return answer
        return answer + ending  # the bus marks the end by itself

    def read(self, count: int) -> bytes:
        """Throw away an answer that nobody waits for any more: device clear, where the bus has it."""
        from pyvisa.errors import VisaIOError

        with contextlib.suppress(VisaIOError, NotImplementedError, AttributeError):
            self._resource.clear()
        self._line = b""
        return b""

    def close(self) -> None:
        self._resource.close()


def _words(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".") or type(error).__name__


def main(port: str, *commands: str) -> None:
    """Send lines to an instrument and end; OSError if a question among them is not answered."""
    from drivers.instruments.serial_link import LinkSettings

    link = VisaPort(port, LinkSettings())
    for command in commands:
        link.write(command.encode("ascii") + b"\n")
        if "?" in command and not link.read_until(b"\n"):
            raise OSError("it does not answer")
    link.close()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as problem:
        sys.exit(_words(problem))
