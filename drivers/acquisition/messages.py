"""What the window and the rig's process say to each other: typed messages with numbers.

Every request has a number, and its answer carries the same one: an answer that comes after its caller has
given up is dropped and never taken for the answer to another call. Everything here is a value that can be
sent between processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from drivers.acquisition.capture import CaptureState, Sink
from drivers.base.protocols import Block
from drivers.base.trigger import Trigger
from drivers.base.waveform import Waveform


@dataclass(frozen=True)
class Command:
    """Something that the rig's process is asked to do. Each worker does its commands one after the other."""

    worker: ClassVar[str] = "stream"  # a stalled source must not keep the drive's commands waiting


@dataclass(frozen=True)
class Play(Command):
    worker: ClassVar[str] = "drive"
    waveform: Waveform


@dataclass(frozen=True)
class Change(Command):
    worker: ClassVar[str] = "drive"
    frequency: float | None = None
    amplitude: float | None = None


@dataclass(frozen=True)
class EndDrive(Command):
    worker: ClassVar[str] = "drive"
    reason: str = "stopped"


@dataclass(frozen=True)
class Arm(Command):
    """Release the latch, for a person who has seen this many stops: a later STOP wins."""

    worker: ClassVar[str] = "drive"
    seen: int = 0


@dataclass(frozen=True)
class AskDriveState(Command):
    worker: ClassVar[str] = "drive"


@dataclass(frozen=True)
class Control(Command):
    """Close the control loop with a controller, or let go of the drive (None) with a reason.

    The controller travels pickled: its equations are compiled where commands may take long.
    """

    worker: ClassVar[str] = "loop"
    controller: bytes | None
    reason: str = ""


@dataclass(frozen=True)
class AskLoop(Command):
    worker: ClassVar[str] = "loop"


@dataclass(frozen=True)
class StartStream(Command): ...


@dataclass(frozen=True)
class StopStream(Command): ...


@dataclass(frozen=True)
class TapSpecimen(Command):
    strength: float = 1.0


@dataclass(frozen=True)
class Record(Command):
    make_sink: Callable[[int], Sink]
    length: int | None
    trigger: Trigger | None
    captures: int


@dataclass(frozen=True)
class EndRecording(Command):
    worker: ClassVar[str] = "recording"
    failure: str = ""


@dataclass(frozen=True)
class Mark(Command):
    """A person marks this moment of the recording; the same number again gives it another word."""

    worker: ClassVar[str] = "recording"
    number: int
    text: str


@dataclass(frozen=True)
class UseInstrument(Command):
    """Call a sensor's controller, or the calibration of the source (``name`` "source"); may take long."""

    worker: ClassVar[str] = "instruments"
    name: str
    method: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class CloseRig(Command):
    worker: ClassVar[str] = "recording"


@dataclass(frozen=True)
class Request:
    """``until``: time.monotonic() at which its caller gives it up; no drive begins later than that."""

    number: int
    command: Command
    until: float = math.inf


@dataclass(frozen=True)
class Answer:
    number: int
    value: Any = None


@dataclass(frozen=True)
class Refusal:
    """An error as it was raised over there: its class if it is one of ours, and its sentence."""

    number: int
    text: str
    module: str = ""
    name: str = ""


@dataclass(frozen=True)
class Opening:
    """An instrument is opened now, by its name in words."""

    what: str


@dataclass(frozen=True)
class Opened:
    """The rig is open: what the window needs to know to look like it."""

    source: tuple[Any, ...]  # name, channels, rate
    exciter: tuple[Any, ...] | None  # unit, limits, whether it takes corrections of a loop
    controllers: tuple[str, ...] = ()
    specimen: bool = False
    notices: tuple[str, ...] = ()  # what the person at the rig should know


@dataclass(frozen=True)
class RecordingNews:
    state: CaptureState


@dataclass(frozen=True)
class StreamBlock:
    block: Block


@dataclass(frozen=True)
class StreamEnded:
    failure: str = ""


@dataclass
class Links:
    """What connects the two processes."""

    control: Any  # multiprocessing.connection.Connection, both ways: requests, answers, news
    data: Any  # to the window: samples, for the eye and for whoever computes with them live
    page: Path  # the shared page: STOP, signs of life, the drive's status
