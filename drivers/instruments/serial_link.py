"""Lines of text to and from an instrument: RS-232, USB, a TCP socket (``socket://host:port``), VISA.

What goes wrong on such lines is handled once, here. After a time-out the line is drained and the instrument
asked who it is, so that a late answer is never taken for the next one. Garbage is refused, not guessed at. A
link that was lost is opened again with the next call, and said so in ``events``. No two programs speak to one
instrument: the second would change the first one's drive behind its back.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drivers.base import system
from drivers.base.control_folder import control_folder
from drivers.base.protocols import InstrumentError, LinkLost
from drivers.instruments import visa

QUIET_SECONDS = 0.15  # without a byte: then the line is taken for drained
DRAIN_SECONDS = 2.0
LOOK_SECONDS = 0.02  # between two looks whether an answer is still to be waited for


def list_ports() -> tuple[list[tuple[str, str]], str]:
    """Each serial port with its description, and a sentence if there is none."""
    from serial.tools.list_ports import comports

    ports = [(p.device, p.description or "serial port") for p in comports()]
    return ports, "" if ports else "No serial port was found."


@dataclass(frozen=True)
class LinkSettings:
    """How the instrument wants to be spoken to."""

    baudrate: int = 9600
    stopbits: int = 1
    timeout: float = 0.5  # s to wait for an answer
    ending: bytes = b"\n"


class SerialLink:
    """One instrument on one line. Calls may come from any thread."""

    def __init__(
        self, port: str, settings: LinkSettings, on_event: Callable[[str], None] | None = None
    ) -> None:
        self.port, self.settings = port, settings
        self._on_event = on_event
        self._lock = threading.RLock()
        self._serial: Any = None
        self._doubtful = False  # an answer may still be on its way
        self._late = False  # it did not come in time
        self._was_open = False
        self._claim: int | None = None  # open file that marks a port by network as ours
        # Asks the instrument who it is; raises if it is another.
        self.identify_again: Callable[[], object] | None = None
        # Whether something must not wait: then nothing more is drained or waited for.
        self.in_a_hurry: Callable[[], bool] = bool
        self.events: list[str] = []  # what happened to the link, with the time

    def write(self, command: str) -> None:
        """Send a line that is not answered."""
        with self._lock:
            self._ready()
            self._send(command)

    def write_if(self, allowed: Callable[[], bool], begin: str, end: str, instead: str) -> bool:
        """Send a line whose end is decided last: ``end`` if that is still allowed then, else ``instead``.

        An instrument does nothing before the line ends, so what is not allowed any more while the line is on
        its way has no effect. Whether ``end`` was sent.
        """
        with self._lock:
            self._ready()
            self._put(begin.encode("ascii"))
            still = allowed()
            self._put((end if still else instead).encode("ascii") + self.settings.ending)
            return still

    def send_now(self, command: str) -> None:
        """Send a line that must not wait: nothing is drained or asked first; a lost link is opened again."""
        with self._lock:
            for attempt in (1, 2):
                if self._serial is None:
                    self._open()
                try:
                    self._send(command)
                    return
                except LinkLost:
                    if attempt == 2:
                        raise

    def ask_now(self, command: str) -> str:
        """The answer to a question that must not wait, asked once; InstrumentError if none comes in time."""
        with self._lock:
            if self._serial is None:
                self._open()
            if self._doubtful:
                self._guarded(lambda: self._serial.read(self._serial.in_waiting))
            return self._ask(command)

    def distrust(self) -> None:
        """Somebody else has spoken to the instrument: what comes next may be the answer to that."""
        self._doubtful = True

    def check(self) -> None:
        """LinkLost if the port is gone and does not come back; nothing is sent."""
        with self._lock:
            if self._serial is None:
                self._open()
            self._guarded(lambda: self._serial.in_waiting)

    def query(self, command: str) -> str:
        """Send a line and give the answer. One repetition covers a lost or garbled answer."""
        with self._lock:
            self._ready()
            try:
                return self._ask(command)
            except LinkLost:
                raise
            except InstrumentError:
                self._doubtful = True
                self._ready()
                return self._ask(command)

    def close(self) -> None:
        with self._lock:
            self._drop()
            if self._claim is not None:
                os.close(self._claim)
                self._claim = None

    # -- inside

    def _ready(self) -> None:
        if self._serial is None:
            self._open()
        if self._doubtful:
            identify, self.identify_again = self.identify_again, None  # it uses query itself
            try:
                self._recover(identify)
            finally:
                self.identify_again = identify

    def _recover(self, identify: Callable[[], object] | None) -> None:
        """Drain the line until the instrument says who it is and nothing else comes."""
        for attempt in (1, 2):
            self._drain()
            self._doubtful = False
            try:
                if identify is not None:
                    identify()
                return
            except LinkLost:
                raise
            except InstrumentError:
                self._doubtful = True
                if attempt == 2:
                    raise

    def _open(self) -> None:
        try:
            self._serial = self._port()
        except (OSError, ValueError) as error:  # SerialException is an OSError
            if "exclusively lock" in str(error):
                raise self._in_use() from None
            raise LinkLost(
                f"The instrument on {self.port} cannot be reached ({_reason(error)}): "
                "check cable, power and the name of the port."
            ) from None
        if self._was_open:
            self._event(f"{self.port}: connected again")
        self._was_open = True
        self._doubtful = True  # whatever was under way when the port was opened

    def _port(self) -> Any:
        s = self.settings
        if "://" in self.port:  # a serial port is marked by itself
            self._claim_address()
        if self.port.startswith(visa.PREFIX):
            return visa.VisaPort(self.port, s)
        import serial

        return serial.serial_for_url(
            self.port, baudrate=s.baudrate, stopbits=s.stopbits, timeout=min(s.timeout, LOOK_SECONDS),
            write_timeout=1.0, exclusive=True,
        )  # fmt: skip

    def _claim_address(self) -> None:
        """Refuse an address that another program of ours on this machine uses; LinkLost."""
        if self._claim is not None:
            return
        name = hashlib.sha256(self.port.encode()).hexdigest()[:16]
        claim = os.open(control_folder() / f"{name}.port", os.O_RDWR | os.O_CREAT, 0o600)
        if not system.lock(claim):
            os.close(claim)
            raise self._in_use()
        self._claim = claim

    def _in_use(self) -> LinkLost:
        return LinkLost(
            f"The instrument on {self.port} is in use by another program: two that set one instrument would "
            "change each other's drive."
        )

    def _ask(self, command: str) -> str:
        self._send(command)
        answer = self._receive()
        if not answer:
            self._doubtful = self._late = True
            raise InstrumentError(f"The instrument on {self.port} did not answer '{command}'.")
        if not answer.endswith(self.settings.ending):
            self._doubtful = True
            raise InstrumentError(
                f"The instrument on {self.port} broke off in its answer to '{command}': {answer!r}."
            )
        try:
            text = answer.decode("ascii").strip("\r\n")
        except UnicodeDecodeError:
            text = "\0"
        if not text.isprintable():
            self._doubtful = True
            raise InstrumentError(
                f"The instrument on {self.port} answered '{command}' with garbage: {answer!r}."
            )
        return text

    def _receive(self) -> bytes:
        """The answer with its ending; less if that is all that came in time."""
        answer, deadline = b"", time.monotonic() + self.settings.timeout
        while not answer.endswith(self.settings.ending) and time.monotonic() < deadline:
            self._check_hurry()
            answer += self._guarded(lambda: self._serial.read_until(self.settings.ending))
        return answer

    def _check_hurry(self) -> None:
        if self.in_a_hurry():
            self._doubtful = self._late = True
            raise InstrumentError(f"The instrument on {self.port} was not waited for: the drive was stopped.")

    def _send(self, command: str) -> None:
        self._put(command.encode("ascii") + self.settings.ending)

    def _put(self, data: bytes) -> None:
        self._guarded(lambda: self._serial.write(data))
        self._guarded(lambda: self._serial.flush())  # never two commands on their way: STOP would be third

    def _drain(self) -> None:
        """Throw away what still comes, until the line is quiet."""
        deadline = time.monotonic() + DRAIN_SECONDS
        quiet_since = time.monotonic()
        quiet = self.settings.timeout if self._late else QUIET_SECONDS  # an answer may still come
        self._late = False
        while time.monotonic() - quiet_since < quiet:
            self._check_hurry()
            if self._guarded(lambda: self._serial.read(self._serial.in_waiting)):
                quiet_since = time.monotonic()
            if time.monotonic() > deadline:
                raise InstrumentError(f"The line on {self.port} is never quiet: is the baud rate right?")
            time.sleep(0.01)

    def _guarded(self, action: Callable[[], Any]) -> Any:
        """Do something with the port; any failure of it means that the link is gone."""
        try:
            return action()
        except Exception as error:  # SerialException, OSError, and termios.error, which is neither
            self._drop()
            self._event(f"{self.port}: connection lost ({_reason(error)})")
            raise LinkLost(
                f"The connection to the instrument on {self.port} was lost ({_reason(error)}); "
                "it is opened again with the next command."
            ) from None

    def _drop(self) -> None:
        port, self._serial = self._serial, None
        if port is not None:
            with contextlib.suppress(Exception):
                port.close()

    def _event(self, text: str) -> None:
        self.events.append(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {text}")
        if self._on_event is not None:
            self._on_event(text)


def _reason(error: Exception) -> str:
    return str(error).split("\n")[0] or type(error).__name__
