"""Simulated serial instruments on pseudo-terminals: they speak the real commands and misbehave on request.

``with SimulatedOFV5000() as instrument: OFV5000(instrument.port)``. Set ``fault`` to ``silence``,
``garbage``, ``half`` (lines cut short), ``slow`` (one answer that comes late), ``wrong`` (another answer) or
``deaf`` (nothing arrives there: its cable is out at the other end, or it has frozen);
call ``unplug`` and ``plug_in`` to pull the cable.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
import tempfile
import threading
import time
from pathlib import Path

NUMBER = r"[\d.]+(?:E-?\d+)?"
DEFAULTS_OFV5000 = {
    ("VeloDec", "Range"): "10 mm/s/V",
    ("TrackingFilter", "Range"): "Slow",
    ("SignalLevel", "Value"): "384",
    ("OverRange", "State"): "0",
}


class PtyInstrument:
    """Reads lines, answers with ``answer``. The port is a link that survives unplugging."""

    late = 1.0  # s, of a slow answer

    def __init__(self) -> None:
        self.fault = ""
        self.received: list[bytes] = []
        self._folder = tempfile.TemporaryDirectory()
        self.port = str(Path(self._folder.name) / "tty")
        self._plugged = threading.Event()
        self._thread: threading.Thread | None = None
        self.plug_in()

    def answer(self, line: str) -> str | None:
        """The answer to a line; None where the instrument is silent."""
        raise NotImplementedError

    def plug_in(self) -> None:
        if sys.platform == "win32":
            raise OSError("This system has no pseudo-terminals.")
        import pty  # noqa: TID251 (not reached on Windows)
        import tty

        master, slave = pty.openpty()
        tty.setraw(master)
        tty.setraw(slave)
        link = Path(self.port)
        link.unlink(missing_ok=True)
        link.symlink_to(os.ttyname(slave))
        os.close(slave)
        self._plugged.set()
        self._thread = threading.Thread(target=self._run, args=(master,), name="instrument", daemon=True)
        self._thread.start()

    def unplug(self) -> None:
        Path(self.port).unlink(missing_ok=True)
        self._plugged.clear()
        if self._thread is not None:
            self._thread.join()  # it closes the line: nobody else may read from a number that is given anew

    def __enter__(self) -> PtyInstrument:
        return self

    def __exit__(self, *error: object) -> None:
        self.unplug()
        self._folder.cleanup()

    def _run(self, master: int) -> None:
        pending = b""
        while self._plugged.is_set():
            if not select.select([master], [], [], 0.01)[0]:
                continue
            try:
                pending += os.read(master, 256)
            except OSError:  # nobody has the port open at this moment
                time.sleep(0.01)
                continue
            *lines, pending = pending.split(b"\n")
            for line in lines:
                self.received.append(line + b"\n")
                self._reply(master, line.decode("ascii", "replace").strip())
        os.close(master)

    def _reply(self, master: int, line: str) -> None:
        if self.fault == "deaf":
            return
        text = self.answer(line)
        if text is None or self.fault == "silence":
            return
        reply = text.encode("ascii") + b"\n"
        if self.fault == "slow":  # once
            self.fault = ""
            time.sleep(self.late)
        elif self.fault == "garbage":
            reply = b"\x80\xfe" + reply
        elif self.fault == "half":
            reply = reply[: len(reply) // 2]
        elif self.fault == "wrong":
            reply = b"?\n"
        with contextlib.suppress(OSError):
            os.write(master, reply)


class SimulatedOFV5000(PtyInstrument):
    """A controller with a velocity decoder and a tracking filter; no displacement decoder, no filter card."""

    def __init__(self) -> None:
        self.values = dict(DEFAULTS_OFV5000)
        self.stubborn = False  # ignores what it is told
        super().__init__()

    def answer(self, line: str) -> str | None:
        verb, part, _, attribute, *value = line.split(",", 4)
        if verb == "GetDevInfo":
            return {"Name": "OFV-5000", "Version": "2.11"}.get(attribute, "Not Available")
        if verb == "Set":
            if not self.stubborn and (part, attribute) in self.values:
                self.values[part, attribute] = value[0]
            return None
        return self.values.get((part, attribute), "Not Available")


class SimulatedOFV3001(PtyInstrument):
    """The older controller."""

    def __init__(self) -> None:
        self.range = 3
        super().__init__()

    def answer(self, line: str) -> str | None:
        if line == "VELO?":
            return str(self.range)
        if line == "OVR":
            return "0"
        if found := re.fullmatch(r"VELO([1-9])", line):
            self.range = int(found[1])
        return None


class SimulatedGenerator(PtyInstrument):
    """What both generators have: the output that is really there, open or at an amplifier's input."""

    def __init__(self) -> None:
        self.frequency, self.peak_to_peak, self.on = 1000.0, 1.0, True
        self.history: list[tuple[float, float]] = []  # time, peak value at the output open
        self.error = False
        super().__init__()

    @property
    def peak(self) -> float:
        """Peak value at the output now."""
        return self.peak_to_peak / 2 if self.on else 0.0

    def note(self) -> None:
        self.history.append((time.monotonic(), self.peak))


class SimulatedDS345(SimulatedGenerator):
    """Stanford DS345: knows FREQ, AMPL, OFFS, FUNC, PHSE, *IDN?, *ESR?."""

    def answer(self, line: str) -> str | None:
        if line == "*IDN?":
            return "StanfordResearchSystems,DS345,12345,1.04"
        if line == "*ESR?":
            status, self.error = (32 if self.error else 0), False
            return str(status)
        if line == "AMPL? VP":
            return f"{self.peak_to_peak / 2:.3f}VP"
        if found := re.fullmatch(rf"AMPL ({NUMBER})VP", line):
            self.peak_to_peak = 2 * float(found[1])  # told is that into 50 ohm
            self.error |= self.peak_to_peak > 20
        elif found := re.fullmatch(r"FREQ ([\d.]+)", line):
            self.frequency = float(found[1])
        elif not re.fullmatch(r"(FUNC [0-5]|OFFS [-\d.]+|PHSE [\d.]+)", line):
            self.error = True
        self.note()
        return None


class SimulatedScpi(SimulatedGenerator):
    """Agilent 33250A: knows FUNC, FREQ, VOLT, VOLT:OFFS, VOLT:UNIT, OUTP, OUTP:LOAD, SYST:ERR?, *IDN?."""

    def __init__(self) -> None:
        self.load, self.voltage_unit = "50", "VPP"  # as after switching on
        super().__init__()

    def answer(self, line: str) -> str | None:
        if line == "*IDN?":
            return "Agilent Technologies,33250A,0,2.01-1.01-2.00-03-2"
        if line == "SYST:ERR?":
            text = '-113,"Undefined header"' if self.error else '+0,"No error"'
            self.error = False
            return text
        if line == "OUTP?":
            return str(int(self.on))
        if line in ("OUTP ON", "OUTP OFF"):
            self.on = line.endswith("ON")
        elif found := re.fullmatch(rf"VOLT ({NUMBER}|MIN)", line):
            told = 0.01 if found[1] == "MIN" else float(found[1])
            volts = 2 * 2**0.5 * told if self.voltage_unit == "VRMS" else told
            self.peak_to_peak = volts if self.load == "INF" else 2 * volts
        elif found := re.fullmatch(r"OUTP:LOAD (50|INF)", line):
            self.load = found[1]  # what is there stays; it is only told otherwise
        elif found := re.fullmatch(r"VOLT:UNIT (VPP|VRMS)", line):
            self.voltage_unit = found[1]
        elif found := re.fullmatch(r"FREQ ([\d.]+)", line):
            self.frequency = float(found[1])
        elif not re.fullmatch(r"(FUNC SIN|VOLT:OFFS 0)", line):
            self.error = True
        self.note()
        return None
