"""The rig as the window sees it: opened by name, driven, recorded, and stopped from anywhere.

Opening, ending a recording and closing happen in threads of their own, so that the window never waits for an
instrument. STOP goes straight to the driver.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QObject, QTimer, pyqtSignal

from analysis import ShakedownError
from app.desktop.opening import OpenedRig, open_replay, open_rig
from app.desktop.sequencer import Sequencer
from drivers.acquisition.engine import BlockQueue, Engine, Status
from drivers.acquisition.sequence import Sequence as Sequence_
from drivers.base.drive_page import DriveStatus
from drivers.base.limits import Limits
from drivers.base.protocols import ActiveRecording, Block, ChannelInfo, DriveState, Exciter, InstrumentError
from drivers.base.trigger import Trigger
from drivers.base.waveform import Waveform
from drivers.rig.profile import Rig

_log = logging.getLogger(__name__)

CLOSING_SECONDS = 30.0  # for a rig that is let go
WATCH = 50  # ms, between two looks at the rig: what is shown of its drive is never 200 ms old


class Commands:
    """Calls to instruments, one after the other in a thread of their own: an answer may take its time."""

    def __init__(self, refused: Callable[[str], object]) -> None:
        self._refused = refused
        self._calls: list[tuple[str, Callable[[], object]]] = []
        self._state = threading.Condition()
        self._ended = False
        threading.Thread(target=self._run, name="commands", daemon=True).start()

    def put(self, kind: str, call: Callable[[], object]) -> None:
        """Queue a call; of several waiting ones of the same kind only the newest is done."""
        with self._state:
            self._calls = [c for c in self._calls if c[0] != kind]
            self._calls.append((kind, call))
            self._state.notify()

    def forget(self) -> None:
        """Drop what is waiting."""
        with self._state:
            self._calls = []

    def end(self) -> None:
        with self._state:
            self._ended = True
            self._calls = []
            self._state.notify()

    def _run(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._calls or self._ended)
                if self._ended:
                    return
                _, call = self._calls.pop(0)
            try:
                call()
            except ShakedownError as error:
                with contextlib.suppress(RuntimeError):  # the window may be gone
                    self._refused(str(error))


class RigDesk(QObject):
    """The rig in use, or none. Every method may be called at any time and returns at once."""

    opening = pyqtSignal(str)  # title
    delayed = pyqtSignal(str)  # the instrument that takes long to open
    opened = pyqtSignal()
    closed = pyqtSignal()
    failed = pyqtSignal(str)  # one sentence: what happened, what it means, what to do
    recording_changed = pyqtSignal()
    recorded = pyqtSignal(object)  # Path of a finished recording
    ended = pyqtSignal()  # a replay has come to its end
    drive_stopped = pyqtSignal(str)  # by something else than this window, and why
    drive_changed = pyqtSignal(object)  # DriveStatus: the drive as the rig's own process sees it
    notice = pyqtSignal(str)  # something that the person at the rig should know, such as an absent watchdog
    refused = pyqtSignal(str)  # an instrument would not do what was asked, and why
    end_asked = pyqtSignal()  # the drive is to end, and it belongs to work with the control loop
    calibrated = pyqtSignal(str, str, float)  # channel, field of the profile, its value; the stream has ended
    marked = pyqtSignal(int, str, int)  # a marker's number, its word and its sample of the stream
    _ready = pyqtSignal(int, object)  # from the opening thread: attempt, and what came of it

    def __init__(self, library: Callable[[], Path]) -> None:
        super().__init__()
        self._library = library
        self._rig: OpenedRig | None = None
        self._engine: Engine | None = None
        self._blocks: BlockQueue | None = None
        self._commands: Commands | None = None
        self._marks: Commands | None = None  # a queue of their own: a moment does not wait for an instrument
        self._mark_numbers = count()
        self._drive = DriveState()
        self._asked_to_stop = False
        self._closing: threading.Thread | None = None
        self.sequencer = Sequencer()
        self._capture: ActiveRecording | None = None
        self.recording_path: Path | None = None  # of the newest recording
        self._reported = 0  # finished recordings told of
        self._opening = 0  # number of the newest attempt; older ones are closed when they arrive
        self._lock = threading.Lock()
        self.failure = ""
        self.being_opened = ""  # rig that is on its way to be the one in use
        self.recording_since = 0.0
        self._armed = False
        self.calibrating = False
        self.in_use = ""  # the work that has drive and recording to itself, in words; empty: none
        self.finishing = False  # stopped, on its way to disk
        self.operator = ""
        self.test: dict[str, Any] = {}  # what is known of the test, for each recording
        self.specimen = 0  # number of the one on virtual rigs, where theirs differ; 0: the profile's
        self._ready.connect(self._take)
        self._shown_drive = DriveStatus()
        self._watch = QTimer(self)
        self._watch.setInterval(WATCH)
        self._watch.timeout.connect(self._look)

    # -- what there is

    @property
    def name(self) -> str:
        return self._rig.name if self._rig else ""

    @property
    def title(self) -> str:
        return self._rig.title if self._rig else ""

    @property
    def rig(self) -> OpenedRig | None:
        return self._rig

    @property
    def channels(self) -> tuple[ChannelInfo, ...]:
        return self._rig.source.channels if self._rig else ()

    @property
    def rate(self) -> float:
        return self._rig.source.rate if self._rig else 0.0

    @property
    def limits(self) -> Limits | None:
        return self._rig.exciter.limits if self._rig and self._rig.exciter else None

    @property
    def unit(self) -> str:
        return self._rig.exciter.unit if self._rig and self._rig.exciter else ""

    @property
    def can_tap(self) -> bool:
        return self._rig is not None and self._rig.tap is not None

    @property
    def running(self) -> bool:
        return self._engine is not None and self._engine.status.running

    @property
    def recording(self) -> bool:
        return self._capture is not None and not self._capture.done

    @property
    def waiting(self) -> bool:
        """Armed, but the trigger has not fired."""
        capture = self._capture
        return self._armed and capture is not None and not capture.done and not capture.triggered

    def status(self) -> Status:
        return self._engine.status if self._engine else Status()

    def drive(self) -> DriveState:
        """What the exciter did at the newest block."""
        return self._drive

    def drive_status(self) -> DriveStatus:
        """The drive now, as the rig's own process says: off, armed, ramping, playing, latched or tripped.

        Read from shared memory: no call, never more than a few hundredths of a second old.
        """
        rig = self._rig
        return DriveStatus("off") if rig is None or rig.rig is None else rig.rig.drive_status()

    def blocks(self) -> list[Block]:
        """The blocks that have arrived since the last call."""
        blocks = self._blocks.read() if self._blocks else []
        if blocks and blocks[-1].drive is None and self.limits is not None:
            told = self._told_drive()
            blocks = [replace(b, drive=replace(told, index=b.start_index)) for b in blocks]
        if blocks and blocks[-1].drive is not None:
            before, self._drive = self._drive, blocks[-1].drive
            if before.playing and not self._drive.playing and not self._asked_to_stop:
                self.drive_stopped.emit(self._drive.reason or "for no known reason")
        return blocks

    def _told_drive(self) -> DriveState:
        """The drive of a generator on its own clock: no sample tells of it, the rig's process does."""
        status = self.drive_status()
        if not status.driving:
            return DriveState(reason=status.reason)
        steady = status.state == "playing"
        return DriveState(
            0, True, status.waveform, status.frequency, status.amplitude, status.level, math.nan, steady
        )

    # -- opening and closing

    def open(self, name: str) -> None:
        """Open a rig of the library of rigs (or a profile by its path) and start its stream."""
        number = self.specimen
        self._begin(name, lambda waiting: open_rig(name, number, waiting=waiting))

    def open_again(self, loop: bool) -> None:
        """Open the rig in use anew, once it is let go: with the channels of its control loop or without."""
        name, number = self.name, self.specimen

        def opener(waiting: Callable[[str], object]) -> OpenedRig:
            if self._closing is not None:
                self._closing.join(CLOSING_SECONDS)  # the same instruments: they must be free
            return open_rig(name, number, loop, waiting)

        self._begin(name, opener)

    def open_replay(self, path: Path) -> None:
        """Play a recording as if it were a rig."""
        self._begin(path.stem, lambda waiting: open_replay(path))

    def cancel_opening(self) -> None:
        """Give up the rig that is being opened; no rig is in use then."""
        if self.being_opened:
            self._opening += 1
            self.being_opened = ""
            self.closed.emit()

    def _begin(self, title: str, opener: Callable[[Callable[[str], object]], OpenedRig]) -> None:
        self._release()
        self._opening += 1
        number = self._opening
        self.failure = ""
        self.being_opened = title
        told: set[str] = set()

        def waiting(what: str) -> None:
            if number != self._opening:
                raise InstrumentError("This rig is not wanted any more.")
            if what not in told:
                told.add(what)
                self.delayed.emit(what)

        self.opening.emit(title)

        def work() -> None:
            try:
                rig = opener(waiting)
                engine = Engine(rig.source, rig.exciter)
                queue = engine.subscribe()
                _start(rig, engine)
            except ShakedownError as error:
                self._ready.emit(number, (None, str(error)))
            except Exception as error:
                _log.exception("%s could not be opened", title)
                text = f"The rig could not be opened ({type(error).__name__}: {error})."
                self._ready.emit(number, (None, text))
            else:
                if rig.beat is not None:
                    rig.beat()
                self._ready.emit(number, (rig, engine, queue))

        threading.Thread(target=work, name="opening", daemon=True).start()

    def _take(self, number: int, arrived: Any) -> None:
        """Back in the window's thread: the rig runs already, or there is a reason why not."""
        rig, *rest = arrived
        if number != self._opening:
            if rig is not None:
                threading.Thread(target=_end, args=(rig, rest[0]), daemon=True).start()
            return
        self.being_opened = ""
        if rig is None:
            self._fail(rest[0])
            return
        self._rig, (self._engine, self._blocks) = rig, rest
        self._commands = Commands(self.refused.emit)
        self._marks = Commands(lambda error: self.refused.emit(f"The marker could not be set: {error}"))
        self._watch.start()
        self._look()
        self.opened.emit()
        for text in rig.rig.notices if rig.rig is not None else ():
            self.notice.emit(text)

    def _release(self) -> None:
        """Let go of the rig in use; what is being recorded is saved first, in a thread."""
        rig, engine = self._rig, self._engine
        self.sequencer.stop()
        self._rig = self._engine = self._blocks = None
        self._drive = DriveState()
        self._watch.stop()
        for queue in (self._commands, self._marks):
            if queue is not None:
                queue.end()
        self._commands = self._marks = None
        if rig is None or engine is None:
            return
        capture, self._capture = self._capture, None
        self._reported = 0

        def work() -> None:
            out_of_reach = _end(rig, engine)
            if out_of_reach:
                sys.stderr.write(f"shakedown: {out_of_reach}\n")
                with contextlib.suppress(RuntimeError):
                    self.failed.emit(out_of_reach)
            for finished in capture.finished if capture is not None else ():
                with contextlib.suppress(RuntimeError):  # the window may be gone
                    self.recorded.emit(finished.path)

        thread = threading.Thread(target=work, name="closing", daemon=True)
        thread.start()
        self._closing = thread
        self.closed.emit()

    def close(self) -> None:
        """Ramp down, save what is being recorded, let go of the instruments; waits for it."""
        self._opening += 1
        self._release()
        if self._closing is not None:
            self._closing.join(CLOSING_SECONDS)

    # -- driving

    def play(self, waveform: Waveform) -> None:
        """Ramp up to a waveform. What can be refused at once is refused at once."""
        exciter = self._free_exciter()
        exciter.limits.check_frequency(*waveform.band)
        exciter.limits.check_amplitude(waveform.amplitude)
        self._asked_to_stop = False
        self._ask("play", lambda: exciter.play(waveform))

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        exciter = self._free_exciter()
        self._ask("change", lambda: exciter.change(frequency, amplitude))

    def stop(self, reason: str = "STOP was pressed") -> None:
        """STOP: ramp to zero at once and latch: nothing plays until ``arm``. Never waits, never fails."""
        rig = self._rig
        self._asked_to_stop = True
        if rig is not None and rig.exciter is not None:
            rig.exciter.request_stop(reason)
        self.sequencer.stop()
        if self._commands is not None:
            self._commands.forget()

    def end_drive(self, reason: str = "stopped by you") -> None:
        """End the drive as part of the work: it ramps down, and something else may be played next."""
        self._asked_to_stop = True
        exciter = self._exciter()
        if self.in_use:
            self.end_asked.emit()
            return
        if self._commands is not None:
            self._commands.forget()
        self._ask("end", lambda: exciter.stop(reason))

    def arm(self) -> None:
        """Allow the drive to be played again after STOP or a trip; only ever because a person asked."""
        rig, status = self._rig, self.drive_status()
        if rig is not None and rig.rig is not None:
            rig_ = rig.rig
            self._ask("arm", lambda: rig_.arm(status.stops))

    def tap(self, strength: float = 1.0) -> None:
        rig = self._rig
        self._check_free()
        if rig is not None and rig.tap is not None:
            tap = rig.tap
            self._ask("tap", lambda: tap(strength))

    def calibrate(self, channel: str, resistor: float | None = None) -> None:
        """Null a strain bridge, or calibrate it with a shunt resistor (ohm). The stream is interrupted.

        ``calibrated`` tells the result: the rig is to be opened again with it. What goes wrong is
        ``refused``, and the stream goes on.
        """
        rig, engine = self._rig, self._engine
        if rig is None or engine is None or not self.running:
            raise InstrumentError("Open this rig first: the calibration is done by its instruments.")
        self._check_free()
        if self.recording or self.sequencer.running:
            raise InstrumentError("A recording is being made: stop it first.")
        if self._drive.playing:
            raise InstrumentError("Stop the drive first: a bridge is calibrated at rest.")
        source: Any = rig.source
        self.calibrating = True

        def work() -> None:
            try:
                engine.stop()
                if resistor is None:
                    found = "initial_bridge_voltage", source.null_bridge(channel)
                else:
                    found = "shunt_gain", source.shunt_calibrate(channel, resistor)
                self.calibrated.emit(channel, *found)
            except ShakedownError as error:
                self.refused.emit(str(error))
                with contextlib.suppress(ShakedownError):  # lost as well: the watch says it
                    engine.start()
            finally:
                self.calibrating = False

        threading.Thread(target=work, name="calibration", daemon=True).start()

    def use(self, words: str) -> None:
        """Give drive and recording to work that is called so, until ``in_use`` is empty again."""
        self.in_hand()
        self._check_free()
        if self.recording or self.sequencer.running:
            raise InstrumentError("A recording is being made: stop it first.")
        if self.drive_status().latched:
            raise InstrumentError("The drive was stopped: arm it first, with the button at the top.")
        self.in_use = words
        self._asked_to_stop = True  # the drive goes on and off by the work

    def in_hand(self) -> tuple[Rig, Engine]:
        """The rig that runs and its engine, for work that has them to itself."""
        if self._rig is None or self._rig.rig is None or self._engine is None or not self.running:
            raise InstrumentError("No rig with a shaker is running: open one on the Rig page.")
        return self._rig.rig, self._engine

    def _check_free(self) -> None:
        if self.in_use:
            raise InstrumentError(f"{self.in_use} has the rig: cancel it first.")

    def _free_exciter(self) -> Exciter:
        self._check_free()
        return self._exciter()

    def _exciter(self) -> Exciter:
        if self._rig is None or self._rig.exciter is None:
            raise InstrumentError("This rig has no shaker.")
        return self._rig.exciter

    def _ask(self, kind: str, call: Callable[[], object]) -> None:
        if self._commands is not None:
            self._commands.put(kind, call)

    # -- recording

    def record(
        self,
        name: str = "",
        notes: str = "",
        tags: Sequence[str] = (),
        seconds: float | None = None,
        trigger: Trigger | None = None,
    ) -> None:
        """Record into the library, for some seconds or until stopped."""
        self._check_free()
        self._record(name, notes, tags, seconds, trigger, self._drive.playing)

    def record_use(self, name: str) -> ActiveRecording:
        """Record what the work does that has the rig to itself, until stopped."""
        return self._record(name, "", (), None, None, True)

    def _record(
        self, name: str, notes: str, tags: Sequence[str], seconds: float | None, trigger: Trigger | None,
        driven: bool,
    ) -> ActiveRecording:  # fmt: skip
        rig, engine = self._rig, self._engine
        if rig is None or engine is None or not engine.status.running:
            raise InstrumentError("no rig is running: open one on the Rig page.")
        from app.library import free_path
        from drivers.acquisition.capture import recording_to
        from drivers.acquisition.metadata import recording_metadata

        path = free_path(self._library(), name)  # says now if the folder cannot be used
        metadata = recording_metadata(
            rig.source, rig.profile, title=rig.title, operator=self.operator, notes=notes, tags=tags,
            driven=driven, test=self.test,
        )  # fmt: skip
        length = None if seconds is None else max(1, round(seconds * rig.source.rate))
        capture = engine.record(recording_to(path, rig.source, metadata), length, trigger)
        self._capture = capture
        self.recording_path = path
        self._armed, self.finishing = trigger is not None, False
        self._reported = 0
        self.recording_since = time.monotonic()
        self.recording_changed.emit()
        return capture

    def mark(self, number: int, text: str) -> None:
        """Mark this moment of the recording, or give a marker that was set another word; never waits."""
        engine, marks = self._engine, self._marks
        if engine is None or marks is None or not self.recording or self.finishing:
            return

        def work() -> None:
            sample = engine.mark(number, text)
            with contextlib.suppress(RuntimeError):  # the window may be gone
                self.marked.emit(number, text, sample)

        # One after the other: the word that was typed last is the one that stays.
        marks.put(f"mark {next(self._mark_numbers)}", work)

    def stop_recording(self) -> None:
        """End the recording; it is finished in the background and announced by ``recorded``."""
        capture = self._capture
        if self.in_use:
            self.end_asked.emit()
        elif capture is not None and not capture.done:
            self.finishing = True
            threading.Thread(target=capture.end, name="finishing", daemon=True).start()

    def run_sequence(self, sequence: Sequence_, folder: Path) -> None:
        """Run a plan of drives and recordings; the whole plan is checked before anything moves."""
        if self._rig is None or self._rig.rig is None or self._engine is None or not self.running:
            raise InstrumentError("No rig with a shaker is running.")
        self._check_free()
        if self.recording or self.sequencer.running:
            raise InstrumentError("A recording is being made already: stop it first.")
        self._asked_to_stop = True  # the drive goes on and off by the plan
        self.sequencer.start(sequence, folder, self._rig.rig, self._engine, self.operator, self.test)

    # -- watching

    def _look(self) -> None:
        """Give a sign of life, and notice what has happened in the threads of the engine."""
        if self._rig is not None and self._rig.beat is not None:
            self._rig.beat()
        self._show_drive()
        capture, engine = self._capture, self._engine
        if self.calibrating:
            return
        if capture is not None and capture.done:
            self._capture = None
            self.recording_changed.emit()
            for finished in capture.finished[self._reported :]:
                self.recorded.emit(finished.path)
            if capture.failed and engine is not None and engine.status.running:
                self.failed.emit(capture.failed)  # otherwise the engine says the same in a moment
        if engine is not None and not engine.status.running and self._capture is None:
            failure = engine.status.failure
            self._watch.stop()
            if failure:
                self._fail(failure)
            else:
                self.ended.emit()

    def _show_drive(self) -> None:
        """Tell the pages when the drive does something else than before."""
        status, before = self.drive_status(), self._shown_drive
        if replace(status, at=0.0) != replace(before, at=0.0):
            self._shown_drive = status
            self.drive_changed.emit(status)

    def _fail(self, text: str) -> None:
        self.failure = text
        self.failed.emit(text)


def _start(rig: OpenedRig, engine: Engine) -> None:
    """Start the stream; a rig that will not is closed again."""
    try:
        engine.start()
    except Exception:
        with contextlib.suppress(Exception):
            rig.close()
        raise


def _end(rig: OpenedRig, engine: Engine) -> str:
    """Drive to zero, stream and recording to their end, instruments released, whatever one of them says.

    A sentence if the output could not be set to zero.
    """
    exciter = rig.exciter

    def silence() -> None:
        if exciter is not None:
            exciter.stop("the rig is closed")

    for step in (silence, engine.stop):
        with contextlib.suppress(Exception):
            step()
    try:
        rig.close()
    except InstrumentError as error:
        return str(error)
    except Exception as error:
        _log.warning("the rig did not close", exc_info=error)
    return ""
