"""One page of shared memory between the rig's process, the window, the second guard and ``shakedown stop``.

A file of one page in the control folder, mapped by all of them. No lock is ever taken: a process that is
frozen or killed at any instant keeps nobody from setting the STOP byte. Each field has one writer, except
STOP, which everybody may set and the rig's process alone clears; numbers are aligned words, so a reader never
sees half of one. Standard library only: the second guard and the stop command start in milliseconds.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
import stat
import struct
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE_BYTES = 8192
_MAGIC = b"SHKDRIV1"
SILENT_SECONDS = 0.5  # without a sign of life of the rig's process: then the second guard acts
STATES = ("off", "armed", "ramping", "playing", "latched", "tripped")

_OPENED = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

# Bytes (offset).
_STOP, _GUARD_ACTED, _CLOSED, _SERVED, _ZEROED = 8, 9, 10, 11, 12
# Words of 8 bytes (index).
_PID, _STARTED, _GUARD_PID, _STOPS = 2, 3, 4, 5
_RIG_BEAT, _WINDOW_BEAT, _GUARD_BEAT, _OUTPUT = 6, 7, 8, 9
_COUNTERS = 10  # eight words from here
_SEQUENCE, _STATE, _FREQUENCY, _AMPLITUDE, _LEVEL, _AT, _TRIP_SECONDS = 20, 21, 22, 23, 24, 25, 26
_CORRECTION = 27
# Texts: offset and room, two bytes of length in front.
_WAVEFORM, _UNIT, _REASON = (256, 64), (320, 32), (512, 1000)
_STOP_WORD, _GUARD_WORD, _ABOUT = (1536, 400), (2048, 1000), (4096, 4000)


@dataclass(frozen=True)
class DriveStatus:
    """What the rig's process says about its drive."""

    state: str = "off"  # one of STATES
    waveform: str = ""
    frequency: float = 0.0  # Hz
    amplitude: float = 0.0  # target, in the unit
    level: float = 0.0  # 0 to 1: soft start and stop
    unit: str = ""
    reason: str = ""  # of a STOP or a trip, whole; while nothing plays: why the drive is silent
    at: float = 0.0  # time.monotonic() at which this was true
    stops: int = 0  # STOPs and trips since the rig was opened: what ``arm`` has to name
    correction: float = 0.0  # of a control loop on top of the amplitude: its largest size lately

    @property
    def text(self) -> str:
        """Such as ``SINE 7.5 Hz 1.50 V``; the state alone while nothing plays."""
        if self.state in ("ramping", "playing"):
            planned = self.waveform == "segments"  # parts one after another: no frequency of their own
            name = "PLAN" if planned else self.waveform.upper()
            pitch = f" {self.frequency:g} Hz" if self.frequency and not planned else ""
            loop = f" + loop {self.correction:.2f}" if self.correction >= 0.005 else ""
            return f"{name}{pitch} {self.amplitude:.2f}{loop} {self.unit}".rstrip()
        return {"latched": "STOPPED", "tripped": "TRIPPED"}.get(self.state, self.state.upper())

    @property
    def latched(self) -> bool:
        """Whether nothing plays until a person arms the drive again."""
        return self.state in ("latched", "tripped")

    @property
    def driving(self) -> bool:
        return self.state in ("ramping", "playing")


@dataclass(frozen=True)
class StreamCounts:
    """What the process that reads the source has counted since the stream was started."""

    samples: int = 0  # read, lost ones not counted
    lost: int = 0
    gaps: int = 0
    overloads: int = 0
    overloaded: int = 0  # samples, summed over channels
    late: int = 0  # blocks


class DrivePage:
    """The page, opened by one process. ``create`` makes it, ``open`` finds it; others' are refused."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        try:
            self._map = mmap.mmap(handle, PAGE_BYTES)
        finally:
            os.close(handle)
        self._bytes = memoryview(self._map)
        self._words = self._bytes.cast("q")
        self._reals = self._bytes.cast("d")

    @classmethod
    def create(cls, path: Path, about: Mapping[str, Any]) -> DrivePage:
        """A new page that only this user can read; ``about`` says what it belongs to.

        It gets its name when it is whole: a STOP that looks for drives at that moment sees none or all of it.
        """
        if os.path.lexists(path):
            raise FileExistsError(f"{path} exists.")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        unfinished = path.with_suffix(".new")
        handle = os.open(unfinished, flags, 0o600)
        try:
            # Written, not only made that long: on a full disk touching a hole would end the process.
            if os.write(handle, bytes(PAGE_BYTES)) < PAGE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(unfinished))
        except OSError:
            os.close(handle)
            unfinished.unlink()
            raise
        page = cls(unfinished, handle)
        page._put(_ABOUT, json.dumps(about))
        page._bytes[: len(_MAGIC)] = _MAGIC
        page.close()  # Windows renames no file that is in use
        unfinished.replace(path)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, owner: int | None = None, flags: int = _OPENED) -> DrivePage:
        """An existing page; ValueError if the file is no page, or belongs to somebody else than ``owner``."""
        handle = os.open(path, flags)
        found = os.fstat(handle)
        ours = owner is None or not hasattr(os, "getuid") or found.st_uid == owner
        if not stat.S_ISREG(found.st_mode) or found.st_size != PAGE_BYTES or not ours:
            os.close(handle)
            raise ValueError(f"{path} is no drive's page of ours.")
        page = cls(path, handle)
        if bytes(page._bytes[: len(_MAGIC)]) != _MAGIC:
            page.close()
            raise ValueError(f"{path} is no drive's page.")
        return page

    @classmethod
    def open_held(cls, path: Path, pid: int, owner: int | None = None) -> DrivePage:
        """The page whose file was removed under a process that holds it open (see :meth:`hold_open`).

        Whoever logs out loses the session's runtime folder, though what he started may go on.
        """
        for held in Path(f"/proc/{pid}/fd").iterdir():
            if str(held.readlink()) == f"{path} (deleted)":
                page = cls.open(held, owner, os.O_RDWR)
                page.path = path
                return page
        raise FileNotFoundError(path)

    def hold_open(self) -> None:
        """Keep the file open until this process ends, so that others find it even after it was removed."""
        os.open(self.path, os.O_RDWR)

    def close(self) -> None:
        """Let go of the memory; the file stays."""
        for view in (self._words, self._reals, self._bytes):
            view.release()
        self._map.close()

    def remove(self) -> None:
        """Delete the file: the drive is at zero and nobody needs to find it any more.

        Windows refuses while another process has it open; a page that is ``closed`` is cleared away by the
        next look for drives.
        """
        with contextlib.suppress(PermissionError):
            self.path.unlink(missing_ok=True)

    # -- STOP

    def request_stop(self, word: str = "STOP") -> None:
        """Ask for STOP, from any process, without waiting for anything."""
        self._put(_STOP_WORD, word)
        self._bytes[_STOP] = 1

    @property
    def stop_requested(self) -> bool:
        return self._bytes[_STOP] != 0

    @property
    def stop_word(self) -> str:
        return self._get(_STOP_WORD)

    def clear_stop(self) -> None:
        """For the rig's process alone, after it has latched."""
        self._bytes[_STOP] = 0

    @property
    def stops(self) -> int:
        return self._words[_STOPS]

    @stops.setter
    def stops(self, count: int) -> None:
        self._words[_STOPS] = count

    # -- signs of life

    @property
    def rig_pid(self) -> int:
        return self._words[_PID]

    def claim(self, pid: int) -> None:
        """The rig's process writes down who it is."""
        self._words[_STARTED] = started(pid)
        self._words[_PID] = pid

    def rig_lives(self) -> bool:
        """Whether the rig's process exists (perhaps frozen); a number given anew does not count."""
        pid = self.rig_pid
        return pid > 0 and alive(pid) and self._words[_STARTED] in (0, started(pid))

    @property
    def rig_beat(self) -> float:
        return self._reals[_RIG_BEAT]

    @rig_beat.setter
    def rig_beat(self, moment: float) -> None:
        self._reals[_RIG_BEAT] = moment

    @property
    def window_beat(self) -> float:
        return self._reals[_WINDOW_BEAT]

    @window_beat.setter
    def window_beat(self, moment: float) -> None:
        self._reals[_WINDOW_BEAT] = moment

    @property
    def guard_pid(self) -> int:
        return self._words[_GUARD_PID]

    @guard_pid.setter
    def guard_pid(self, pid: int) -> None:
        self._words[_GUARD_PID] = pid

    @property
    def guard_beat(self) -> float:
        return self._reals[_GUARD_BEAT]

    @guard_beat.setter
    def guard_beat(self, moment: float) -> None:
        self._reals[_GUARD_BEAT] = moment

    @property
    def served(self) -> bool:
        """Whether the rig was opened: before that nothing can play."""
        return self._bytes[_SERVED] != 0

    @served.setter
    def served(self, on: bool) -> None:
        self._bytes[_SERVED] = on

    @property
    def closed(self) -> bool:
        """Whether the rig's process has ended with its drive at zero."""
        return self._bytes[_CLOSED] != 0

    @closed.setter
    def closed(self, on: bool) -> None:
        self._bytes[_CLOSED] = on

    # -- the second guard

    @property
    def guard_acted(self) -> str:
        """Why the second guard zeroed the output; empty while it has not."""
        return (self._get(_GUARD_WORD) or "the second guard acted") if self._bytes[_GUARD_ACTED] else ""

    @property
    def zeroed(self) -> bool:
        """Whether the output that was taken over is at zero by now."""
        return self._bytes[_ZEROED] != 0

    def take_over(self, word: str, zeroed: bool = False) -> None:
        """The second guard zeroes the output: no driver raises it again until a person arms the drive."""
        self._put(_GUARD_WORD, word)
        self._bytes[_ZEROED] = zeroed
        self._bytes[_GUARD_ACTED] = 1
        self._reals[_OUTPUT] = 0.0

    def hand_back(self) -> None:
        """For the rig's process alone, when a person arms the drive."""
        self._bytes[_GUARD_ACTED] = 0

    # -- what is shown

    @property
    def output(self) -> float:
        """Level times amplitude at the amplifier now."""
        return self._reals[_OUTPUT]

    @output.setter
    def output(self, value: float) -> None:
        self._reals[_OUTPUT] = value

    @property
    def status(self) -> DriveStatus:
        """What the rig's process last said about its drive, all of the same moment."""
        for _ in range(100):
            before = self._words[_SEQUENCE]
            found = DriveStatus(
                STATES[min(self._words[_STATE], len(STATES) - 1)],
                self._get(_WAVEFORM),
                self._reals[_FREQUENCY],
                self._reals[_AMPLITUDE],
                self._reals[_LEVEL],
                self._get(_UNIT),
                self._get(_REASON),
                self._reals[_AT],
                self.stops,
                self._reals[_CORRECTION],
            )
            if before == self._words[_SEQUENCE] and before % 2 == 0:
                break
        return found  # after a hundred attempts the writer died inside: what it left is the best there is

    def publish(self, status: DriveStatus) -> None:
        """For the rig's process alone."""
        self._words[_SEQUENCE] |= 1  # odd: being written
        self._words[_STATE] = STATES.index(status.state)
        self._reals[_FREQUENCY], self._reals[_AMPLITUDE] = status.frequency, status.amplitude
        self._reals[_LEVEL], self._reals[_AT] = status.level, status.at
        self._reals[_CORRECTION] = status.correction
        self._put(_WAVEFORM, status.waveform)
        self._put(_UNIT, status.unit)
        self._put(_REASON, status.reason)
        self._words[_SEQUENCE] += 1

    @property
    def counts(self) -> StreamCounts:
        return StreamCounts(*(self._words[_COUNTERS + i] for i in range(6)))

    @counts.setter
    def counts(self, counts: StreamCounts) -> None:
        for i, value in enumerate(vars(counts).values()):
            self._words[_COUNTERS + i] = value

    @property
    def stream_seconds(self) -> float:
        """Time of the source at the newest sample."""
        return self._reals[_COUNTERS + 6]

    @stream_seconds.setter
    def stream_seconds(self, seconds: float) -> None:
        self._reals[_COUNTERS + 6] = seconds

    @property
    def about(self) -> dict[str, Any]:
        """What the page belongs to: rig, title, user, how to zero its outputs."""
        try:
            found = json.loads(self._get(_ABOUT) or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def outputs(self) -> list[Mapping[str, Any]]:
        """How to zero each output; see :mod:`drivers.base.zeroing`. What is no table is left out."""
        found = self.about.get("outputs")
        return [how for how in found if isinstance(how, dict)] if isinstance(found, list) else []

    @property
    def window_pid(self) -> int:
        """The process that opened the rig; 0 if the page does not tell."""
        found = self.about.get("window")
        return found if isinstance(found, int) else 0

    def set_about(self, about: Mapping[str, Any]) -> None:
        """ValueError for more than there is room for: nobody could set such an output to zero."""
        text = json.dumps(about)
        if len(text) > _ABOUT[1]:
            raise ValueError(f"The drive's description has {len(text)} bytes, of {_ABOUT[1]} at most.")
        self._put(_ABOUT, text)

    # -- texts

    def _put(self, place: tuple[int, int], text: str) -> None:
        offset, room = place
        data = text.encode("utf-8", "backslashreplace")[:room]  # names of files may be no UTF-8
        self._bytes[offset + 2 : offset + 2 + len(data)] = data
        struct.pack_into("=H", self._bytes, offset, len(data))

    def _get(self, place: tuple[int, int]) -> str:
        offset, room = place
        (length,) = struct.unpack_from("=H", self._bytes, offset)
        return bytes(self._bytes[offset + 2 : offset + 2 + min(length, room)]).decode("utf-8", "ignore")


def alive(pid: int) -> bool:
    """Whether a process exists; one that has ended and waits to be asked for its exit code does not."""
    if sys.platform == "win32":
        return _alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # OverflowError: no such number can be a process
        return False
    except OSError:
        pass  # it exists and is not ours
    return process_state(pid) != "Z"


def process_state(pid: int) -> str:
    """R, S, D: runs or waits; T: stopped; Z: has ended; empty where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib costs start-up time)
            return file.read().rsplit(b")", 1)[1].split(None, 1)[0].decode()
    except (OSError, IndexError):
        return ""


_EXITING, _DUMPING, _KILL = 0x4, 0x200, 1 << 8  # PF_EXITING, PF_DUMPCORE; SIGKILL among those pending


def is_ending(pid: int) -> bool:
    """Whether a process was killed or has crashed, though its memory and its links are still there.

    A large process on a busy machine takes a tenth of a second and more until its links close. False where
    the system does not tell (fields 9 and 31 of ``/proc/PID/stat``).
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rsplit(b")", 1)[1].split()
        return bool(int(fields[6]) & (_EXITING | _DUMPING) or int(fields[28]) & _KILL)
    except (OSError, IndexError, ValueError):
        return False


def started(pid: int) -> int:
    """When a process was started, in the system's own count; 0 where it does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return int(file.read().rsplit(b")", 1)[1].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def _alive_on_windows(pid: int) -> bool:
    import ctypes

    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
    if not handle:
        return False
    code = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return code.value == 259  # STILL_ACTIVE


def now() -> float:
    """Seconds of the machine's steady clock, the same for all its processes."""
    return time.monotonic()
