"""Instruments that hang or answer late on request, opened inside the rig's own process.

A profile whose tables are :class:`Table` brings them there: reading such a table in another process imports
this module, which makes the drivers known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivers.base.protocols import Block, Samples
from drivers.instruments.sound import SoundSource
from drivers.rig.profile import RigProfile
from drivers.rig.registry import CONTROLLERS, SOURCES
from drivers.virtual.parts import open_source as open_virtual
from drivers.virtual.rig import VirtualRig
from drivers.virtual.sound_host import LoopbackHost


class Table(dict[str, Any]):
    """A table of a profile; unpickling it imports this module."""


SOURCES["stalling"] = ("tests.soak.slow_parts", "open_stalling")
TRACE_SECONDS = 0.001
SOUND_RATE = 8000.0  # Hz
SOURCES["looped sound"] = ("tests.soak.slow_parts", "open_looped_sound")
CONTROLLERS["echo"] = ("tests.soak.slow_parts", "open_echo")


def open_stalling(profile: RigProfile, clock: Any, seed: int) -> VirtualRig:
    source = open_virtual(profile, clock, seed)
    flag = Path(profile.instruments["source"]["flag"])
    _stall(source, flag)
    _trace_drive(source, flag.with_name("trace"))
    return source


def open_looped_sound(profile: RigProfile, clock: Any, seed: int) -> SoundSource:
    """A sound card wired back to itself; the last sample of each of its blocks is written down."""
    flag = Path(profile.instruments["source"]["flag"])
    source = SoundSource(profile, TracedHost(flag.with_name("trace")))
    _stall(source, flag)
    return source


class TracedHost(LoopbackHost):
    """Writes down what it plays, block by block, with the time."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace.open("a", encoding="utf-8")
        super().__init__(rates=(SOUND_RATE,))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "output":
            self._trace.write(f"{time.monotonic():.4f} {value:.6g}\n")
            self._trace.flush()


def _stall(source: Any, flag: Path) -> None:
    plain = source.read

    def read(into: Samples) -> Block:
        while flag.exists():  # hangs, as a driver whose device is gone does
            time.sleep(0.02)
        return plain(into)

    source.read = read


def _trace_drive(rig: VirtualRig, trace: Path) -> None:
    """Write each millisecond of the drive down with the time at which it is played."""
    take, rate = rig._player.take, rig._player.rate
    step = max(1, round(TRACE_SECONDS * rate))
    file = trace.open("a", encoding="utf-8")

    def traced(count: int, correction: Samples | None = None) -> Samples:
        values = take(count, correction)
        begin = rig._zero + rig._index / rig.rate
        file.writelines(f"{begin + i / rate:.4f} {values[i]:.6g}\n" for i in range(0, count, step))
        file.flush()
        return values

    rig._player.take = traced  # type: ignore[method-assign]


class Echo:
    """A controller that gives back what it is asked, after a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def identify(self) -> str:
        return "echo"

    def settings(self) -> Mapping[str, Any]:
        return {}

    def set(self, name: str, value: str) -> str:
        time.sleep(float(value))
        return name

    def signal_strength(self) -> float:
        return 1.0

    def over_range(self) -> bool:
        return False

    def sensitivity(self) -> tuple[float, str]:
        return 1.0, "V"

    def close(self) -> None:
        return


def open_echo(table: Mapping[str, Any]) -> Echo:
    return Echo()


def with_slow_parts(profile: RigProfile, flag: Path, exciter: Mapping[str, Any] | None = None) -> RigProfile:
    """A virtual rig whose source stalls while ``flag`` exists, with an echo beside it."""
    from dataclasses import replace

    driver = "looped sound" if profile.instruments["source"]["driver"] == "sound" else "stalling"
    source = {**profile.instruments["source"], "driver": driver, "flag": str(flag)}
    instruments = {
        "source": Table(source),
        "exciter": dict(exciter or profile.instruments["exciter"]),
        "echo": Table({"driver": "echo"}),
    }
    return replace(profile, instruments=instruments)
