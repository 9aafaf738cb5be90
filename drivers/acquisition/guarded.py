"""A rig whose instruments live in a process of their own: same protocols, and the drive outlives nothing.

Recordings are made over there too: they are finished even when this process is killed.

``open_guarded`` gives a :class:`~drivers.rig.profile.Rig` like ``open_rig``. Call ``rig.beat()`` from the
window's event loop a few times a second: when the beats stay away the drive ramps down. STOP, the drive's
status and the counters go through shared memory: no call, no lock, no waiting. See
:mod:`drivers.acquisition.server`.
"""

from __future__ import annotations

import atexit
import contextlib
import getpass
import itertools
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from analysis import ShakedownError
from drivers.acquisition import messages as m
from drivers.acquisition.capture import CaptureState, DriveStop
from drivers.acquisition.server import run
from drivers.base.control_folder import control_folder, new_page_path
from drivers.base.drive_page import DrivePage, DriveStatus, StreamCounts
from drivers.base.latch import Latch
from drivers.base.limits import Limits
from drivers.base.protocols import (
    Block,
    DriveState,
    InstrumentError,
    LinkLost,
    LoopStatus,
    Samples,
    Setting,
)
from drivers.base.trigger import Trigger
from drivers.base.waveform import Waveform
from drivers.base.zeroing import ZeroingFailed, zero_output
from drivers.recording import Finished, recover
from drivers.rig.profile import Rig, RigProfile, instrument_called

PATIENCE = 1.0  # s without a beat after which the drive is stopped
SLOW_SECONDS = 4.0  # of an opening after which somebody may want to know what it waits for
ASK_SECONDS = 0.2  # from then on, between two questions whether it is still wanted
OPENING_SECONDS = 180.0  # compiling a new model's equations takes a while, on a busy machine a long one
ANSWER_SECONDS = 10.0
END_SECONDS = 2.0  # for an ordinary end of the drive; then STOP
CLOSING_SECONDS = 20.0
REACH_SECONDS = 1.0  # to set the output to zero from here, with attempts that take up to a second each
INSTRUMENT_SECONDS = 60.0  # a serial instrument that is asked again, a calibration that averages
LOST = "The rig's process ended unexpectedly; the drive is off and what was recorded is safe."


class GuardedRig(Rig):
    """A rig in its own process."""

    link: RigLink

    def beat(self) -> None:
        self.link.beat()

    def emergency_stop(self, reason: str = "STOP") -> None:
        self.link.stop(reason)

    def arm(self, seen: int | None = None) -> None:
        self.link.arm(seen)

    def drive_status(self) -> DriveStatus:
        return self.link.status

    def close(self) -> None:
        self.link.close()


def open_guarded(
    profile: RigProfile,
    seed: int = 0,
    patience: float = PATIENCE,
    log: Path | None = None,
    waiting: Callable[[str], object] = lambda what: None,
) -> GuardedRig:
    """Open a rig in a process of its own. ``log`` keeps a trace of the drive for inspection.

    ``waiting`` is called again and again while an instrument takes long to open, or the source to start,
    with what is waited for in words; what it raises ends the opening or the start.
    """
    link = RigLink(profile, seed, patience, log, waiting)
    shape = link.opened
    rig = GuardedRig(profile, RemoteSource(link, *shape.source))
    rig.link = link
    if shape.exciter is not None:
        unit, limits, modulated = shape.exciter
        rig.exciter = (RemoteModulatedExciter if modulated else RemoteExciter)(link, unit, limits)
    rig.controllers = {name: RemoteController(link, name) for name in shape.controllers}
    rig.notices = list(shape.notices)
    if shape.specimen:
        rig.specimen = link
    return rig


class _Pending:
    """A call whose answer has not come."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.answer: Any = None


class RigLink:
    """The window's end of the links to the rig's process."""

    def __init__(
        self,
        profile: RigProfile,
        seed: int,
        patience: float,
        log: Path | None,
        waiting: Callable[[str], object],
    ) -> None:
        self._profile, self._waiting = profile, waiting
        self._awaited = "the rig's process"  # what opens now
        context = multiprocessing.get_context("spawn")
        self._control, control = context.Pipe()
        self._data, data = context.Pipe(duplex=False)
        about = {"rig": profile.key, "title": profile.name[:200], "user": _user(), "window": os.getpid()}
        self.page = _new_page(about)
        self._pending: dict[int, _Pending] = {0: _Pending()}  # number 0: the opening itself
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._receiving = threading.Lock()
        self._capture: RemoteCapture | None = None
        self._closed = self._gone = False
        self._process = context.Process(
            target=run,
            args=(profile, m.Links(control, data, self.page.path), seed, patience, log),
            name="rig",
            daemon=True,
        )
        self._process.start()
        for theirs in (control, data):
            theirs.close()  # ours are copies: with them open the end of the process would not be seen
        atexit.register(self.close)  # a window that ends with an exception still ramps down
        self._listener = threading.Thread(target=self._listen, name="rig link", daemon=True)
        self._listener.start()
        try:
            self.opened: m.Opened = self._await_opening()
        except BaseException:
            self._give_up_opening()
            raise

    def _await_opening(self) -> Any:
        pending = self._pending[0]
        if not self._await(pending, OPENING_SECONDS, lambda: f"{self._awaited} to open"):
            self._pending.pop(0, None)
            raise InstrumentError(f"Waited {OPENING_SECONDS:g} s in vain for {self._awaited} to open.")
        return self._answer(0, pending, 0.0)

    def _await(self, pending: _Pending, seconds: float, what: Callable[[], str]) -> bool:
        """Whether the answer comes in that time; whoever waits hears what for, and gives up by raising."""
        begin = time.monotonic()
        pending.arrived.wait(min(SLOW_SECONDS, seconds))
        while not pending.arrived.wait(ASK_SECONDS):
            self._waiting(what())
            if time.monotonic() - begin > seconds:
                return False
        return True

    def _give_up_opening(self) -> None:
        self._closed = True
        atexit.unregister(self.close)
        self._process.join(1.0)
        if self._process.is_alive():
            self._process.terminate()
        self._process.join(5.0)
        self.page.remove()

    # -- safety: shared memory, never a wait

    def stop(self, reason: str = "STOP") -> None:
        """STOP: seen by the rig's process within milliseconds, whatever this one is doing."""
        self.page.request_stop(reason)

    def beat(self) -> None:
        """A sign of life of the window."""
        self.page.window_beat = time.monotonic()

    @property
    def status(self) -> DriveStatus:
        """The drive as the rig's process sees it."""
        if self._gone:
            return DriveStatus("off", reason=self.page.guard_acted or LOST, at=time.monotonic())
        status = self.page.status
        taken = self.page.guard_acted
        return replace(status, state="tripped", reason=taken) if taken else status

    @property
    def output(self) -> float:
        """The drive's level now, as the rig's process sees it."""
        return self.page.output

    @property
    def counts(self) -> StreamCounts:
        return self.page.counts

    @property
    def pid(self) -> int | None:
        return self._process.pid

    # -- calls

    def call(self, command: m.Command, seconds: float = ANSWER_SECONDS) -> Any:
        """Have the rig's process do something and wait for its answer. From any thread."""
        number, pending = self._ask(command, seconds)
        return self._answer(number, pending, seconds)

    def start_stream(self) -> None:
        """Start the source, which may take long: a simulated one compiles its plant first."""
        what = f"{instrument_called('source', self._profile)} to start"
        number, pending = self._ask(m.StartStream(), OPENING_SECONDS)
        try:
            if not self._await(pending, OPENING_SECONDS, lambda: what):
                raise InstrumentError(f"Waited {OPENING_SECONDS:g} s in vain for {what}.")
        finally:
            self._pending.pop(number, None)
        self._answer(number, pending, 0.0)

    def _ask(self, command: m.Command, seconds: float) -> tuple[int, _Pending]:
        """Send a command that is worth doing for so long; its number, and where its answer will be."""
        pending = _Pending()
        with self._lock:
            number = next(self._numbers)
            self._pending[number] = pending
            try:
                if self._gone or self._closed:
                    raise OSError
                self._control.send(m.Request(number, command, time.monotonic() + seconds))
            except (OSError, ValueError):
                del self._pending[number]
                raise self._lost() from None
        return number, pending

    def arm(self, seen: int | None = None) -> None:
        """Allow the drive to be played again; ``seen``: the stops that the person knows of."""
        self.call(m.Arm(self.page.stops if seen is None else seen))

    def tap(self, strength: float = 1.0) -> None:
        self.call(m.TapSpecimen(strength))

    def receive(self, seconds: float) -> Any:
        """The next message of the stream, None if none came in time."""
        try:
            with self._receiving:  # of two readers one would wait for what the other has taken
                return self._data.recv() if self._data.poll(seconds) else None
        except (EOFError, OSError):
            raise self._lost() from None

    def record(self, order: m.Record) -> RemoteCapture:
        """Have the rig's process record; see ``Engine.record``."""
        if self._capture is not None and not self._capture.done:
            raise InstrumentError("A recording is being made already: stop it first.")
        self._capture = capture = RemoteCapture(self)  # before the first news can come
        try:
            self.call(order)
        except ShakedownError:
            self._capture = None
            raise
        return capture

    def _listen(self) -> None:
        """In a thread: answers to their callers, news to the recording, until the rig's process is gone."""
        while True:
            try:
                message = self._control.recv()
            except (EOFError, OSError):
                break
            if isinstance(message, m.RecordingNews):
                if self._capture is not None:
                    self._capture.hear(message.state)
                continue
            if isinstance(message, m.Opening):
                self._awaited = message.what
                continue
            number = 0 if isinstance(message, m.Opened) else message.number
            pending = self._pending.pop(number, None)
            if pending is not None:  # else its caller has given up: a late answer is nobody's
                pending.answer = message
                pending.arrived.set()
        self._gone = True
        for pending in list(self._pending.values()):
            pending.arrived.set()
        if self._capture is not None:
            self._capture.finish_here()

    def _answer(self, number: int, pending: _Pending, seconds: float) -> Any:
        if not pending.arrived.wait(seconds):
            self._pending.pop(number, None)
            raise InstrumentError(f"The rig's process did not answer for {seconds:g} s.")
        match pending.answer:
            case m.Opened():
                return pending.answer
            case m.Answer(_, value):
                return value
            case m.Refusal(_, text, module, name):
                raise _error(module, name, text)
        raise self._lost()

    # -- the end

    def close(self) -> None:
        """Ramp down, finish a recording under way, close the rig, end the process."""
        if self._closed:
            return
        self.stop("the rig was closed")
        if self._capture is not None:
            self._capture.end()
        self._closed = True
        atexit.unregister(self.close)
        with contextlib.suppress(OSError, ValueError):
            self._control.send(m.Request(next(self._numbers), m.CloseRig()))
        deadline = time.monotonic() + CLOSING_SECONDS
        while self._process.is_alive() and time.monotonic() < deadline:
            self._drop_stream()
            self._process.join(0.02)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        try:
            if not self.page.closed:
                self.make_safe()
            self.page.remove()  # else it stays, for the second guard and `shakedown stop`
        finally:
            self._listener.join(END_SECONDS)  # sees the end of the process: nothing is closed under its hands
            held = self._receiving.acquire(timeout=END_SECONDS)
            self._data.close()
            if held:
                self._receiving.release()
            self._control.close()

    def _drop_stream(self) -> None:
        """A full pipe must not keep the process from ending; a reader that holds it empties it itself."""
        if not self._receiving.acquire(blocking=False):
            return
        try:
            while self._data.poll(0):
                self._data.recv()
        except (EOFError, OSError):
            pass
        finally:
            self._receiving.release()

    def make_safe(self) -> None:
        """Zero the outputs of a rig whose process died: each by itself, whatever became of the rest.

        The second guard does the same; twice is no harm, and one of the two may be unable.
        """
        word = self.page.guard_acted or "the rig's process ended"
        self.page.take_over(word)
        deadline = time.monotonic() + REACH_SECONDS
        while problems := _zero_problems(self.page.outputs):
            if self.page.zeroed:  # by the guard: of two that ask at once one hears the answer to both
                return
            if time.monotonic() > deadline:
                why = "; ".join(problems)
                raise InstrumentError(
                    f"The drive could not be reached ({why}): switch off the amplifier by hand."
                )
        self.page.take_over(word, zeroed=True)

    def _lost(self) -> LinkLost:
        if not self._closed:
            self._closed = self._gone = True
            atexit.unregister(self.close)
            self._process.join(0.5)
            if not self._process.is_alive():
                self.make_safe()
        return LinkLost(LOST)


def _zero_problems(outputs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Set each output to zero, whatever became of the others; why some could not be."""
    problems = []
    for how in outputs:
        try:
            zero_output(how)
        except ZeroingFailed as error:
            problems.append(str(error))
    return problems


def _new_page(about: Mapping[str, Any]) -> DrivePage:
    try:
        return DrivePage.create(new_page_path(), about)
    except OSError as error:  # without it nobody could stop the drive from elsewhere
        raise InstrumentError(
            f"The rig is not opened: {control_folder()}, where STOP finds its drive, cannot be written "
            f"({error.strerror or error})."
        ) from None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a number without a name
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"


class RemoteSource:
    """The source in the rig's process."""

    waits = False

    def __init__(self, link: RigLink, name: str, channels: tuple[Any, ...], rate: float) -> None:
        self._link = link
        self.name, self.channels, self.rate = name, channels, rate
        self._rest: Block | None = None
        self._running = False

    def start(self) -> None:
        self._link.start_stream()
        self._rest, self._running = None, True

    def read(self, into: Samples) -> Block:
        first = self._next()
        parts, count, wanted = [first], first.samples, into.shape[1]
        while count < wanted and not parts[-1].ended:
            following = self._next()
            if following.start_index != parts[-1].stop_index:
                self._rest = following  # a block ends before a gap
                break
            parts.append(following)
            count += following.samples
        if count > wanted:
            last = parts[-1]
            cut = last.samples - (count - wanted)
            at = last.start_index + cut
            self._rest = replace(
                last, start_index=at, data=last.data[:, cut:], overloads=(), missing=(), reason=""
            )
            parts[-1] = replace(last, data=last.data[:, :cut], ended=False)
        data = into[:, : min(count, wanted)]
        np.concatenate([p.data for p in parts], axis=1, out=data)
        overloads = tuple(o for p in parts for o in p.overloads)
        missing = tuple(m for p in parts for m in p.missing)
        return replace(first, data=data, overloads=overloads, missing=missing, ended=parts[-1].ended)

    def record(
        self, make_sink: Callable[[int], Any], length: int | None, trigger: Trigger | None, captures: int
    ) -> RemoteCapture:
        """Record in the rig's process. ``make_sink`` must be a value
        (``drivers.acquisition.capture.RecordingTo``).
        """
        names = [c.name for c in self.channels]
        if trigger is not None and trigger.channel not in names:
            raise InstrumentError(
                f"No channel '{trigger.channel}' for the trigger: there are {', '.join(names)}."
            )
        return self._link.record(m.Record(make_sink, length, trigger, captures))

    def null_bridge(self, channel: str) -> float:
        return float(_use(self._link, "source", "null_bridge", channel))

    def shunt_calibrate(self, channel: str, resistor: float) -> float:
        return float(_use(self._link, "source", "shunt_calibrate", channel, resistor))

    def counts(self) -> tuple[StreamCounts, float]:
        """What the rig's process has counted, and the time of the source (s) at its newest sample."""
        return self._link.counts, self._link.page.stream_seconds

    def stop(self) -> None:
        if self._running:
            self._running = False
            with contextlib.suppress(LinkLost):
                self._link.call(m.StopStream())
                self._drain()

    def close(self) -> None:
        self.stop()

    def _next(self) -> Block:
        rest, self._rest = self._rest, None
        if rest is not None:
            return rest
        while True:
            if not self._running:
                raise InstrumentError("The rig is not running.")
            message = self._link.receive(0.2)
            if message is None:
                continue
            if isinstance(message, m.StreamBlock):
                return message.block
            self._running = False
            raise InstrumentError(message.failure or "The source has ended.")

    def _drain(self) -> None:
        """Throw away what is still on its way, so that the next start begins clean."""
        while (message := self._link.receive(1.0)) is not None:
            if isinstance(message, m.StreamEnded):
                return


class RemoteCapture:
    """A recording that is made in the rig's process (see :class:`drivers.base.protocols.ActiveRecording`)."""

    def __init__(self, link: RigLink) -> None:
        self._link = link
        self._state = CaptureState()
        self._done = threading.Event()

    # -- what it says

    @property
    def done(self) -> bool:
        return self._done.is_set()

    @property
    def triggered(self) -> bool:
        return self._state.triggered

    @property
    def recorded(self) -> int:
        return self._state.recorded

    @property
    def failed(self) -> str:
        return self._state.failed

    @property
    def finished(self) -> tuple[Finished, ...]:
        return self._state.finished

    @property
    def drive_stop(self) -> DriveStop | None:
        """The first STOP or trip while this was recorded."""
        return self._state.drive_stop

    def backlog(self) -> tuple[float, float, str]:
        return self._state.lag, self._state.queue, self._state.failed

    def wait(self, seconds: float | None = None) -> bool:
        return self._done.wait(seconds)

    # -- what it is told

    def offer(self, block: Block) -> None:
        """The rig's process has had the block long ago."""

    def note(self, text: str, index: int) -> None:
        """How late a block is over here does not touch the recording."""

    def mark(self, number: int, text: str, index: int) -> int:
        """The rig's process knows better which sample is the newest one, and tells it."""
        return int(self._link.call(m.Mark(number, text)))

    def ask_to_end(self, failure: str = "") -> None:
        """No more blocks; does not wait."""
        if not self.done:
            with contextlib.suppress(ShakedownError):  # its process is gone: ``finish_here`` sees to it
                self._link.call(m.EndRecording(failure))

    def end(self, failure: str = "") -> None:
        """No more blocks; wait until the recording is a finished file."""
        self.ask_to_end(failure)
        self._done.wait()

    def hear(self, state: CaptureState) -> None:
        self._state = state
        if state.done:
            self._done.set()

    def finish_here(self) -> None:
        """The rig's process is gone: finish here what it left behind."""
        if self.done:
            return
        known = {finished.path for finished in self.finished}
        saved = []
        for journal in self._state.journals:
            with contextlib.suppress(ShakedownError):  # finished already, or it stays a journal
                saved.append(recover(journal))
        finished = (*self.finished, *(f for f in saved if f.path not in known))
        self._state = replace(self._state, failed=self.failed or LOST, finished=finished, lag=0.0, queue=0.0)
        self._done.set()


class RemoteExciter:
    """The exciter in the rig's process."""

    def __init__(self, link: RigLink, unit: str, limits: Limits) -> None:
        self._link, self.unit, self.limits = link, unit, limits
        self.latch = Latch()
        self.latch.watch(lambda: link.status.reason if link.status.latched else "")

    def play(self, waveform: Waveform) -> None:
        self._link.call(m.Play(waveform))

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        self._link.call(m.Change(frequency, amplitude))

    def stop(self, reason: str = "stopped") -> None:
        try:
            self._link.call(m.EndDrive(reason), END_SECONDS)
        except LinkLost:
            pass  # a rig that is gone has stopped; an instrument that is gone is tried again over there
        except InstrumentError:
            self._link.stop(reason)  # another command is under way: the way that never waits

    def request_stop(self, reason: str = "STOP") -> None:
        self._link.stop(reason)

    def arm(self) -> None:
        self._link.arm()

    def zeroing(self) -> Mapping[str, Any]:
        return {}  # the rig's process has its own guard

    def state(self) -> DriveState:
        return self._link.call(m.AskDriveState())

    def close(self) -> None:
        self.stop("closed")


class RemoteModulatedExciter(RemoteExciter):
    """An exciter in the rig's process that takes corrections of a control loop, which runs there too."""

    def control(self, controller: Any, reason: str = "") -> None:
        payload = None if controller is None else pickle.dumps(controller)
        self._link.call(m.Control(payload, reason), OPENING_SECONDS)  # its equations are compiled there

    def loop_status(self) -> LoopStatus:
        return self._link.call(m.AskLoop())


class RemoteController:
    """A sensor's controller in the rig's process."""

    def __init__(self, link: RigLink, name: str) -> None:
        self._link, self._name = link, name

    def identify(self) -> str:
        return str(_use(self._link, self._name, "identify"))

    def settings(self) -> Mapping[str, Setting]:
        return _use(self._link, self._name, "settings")

    def set(self, name: str, value: str) -> None:
        _use(self._link, self._name, "set", name, value)

    def signal_strength(self) -> float:
        return float(_use(self._link, self._name, "signal_strength"))

    def over_range(self) -> bool:
        return bool(_use(self._link, self._name, "over_range"))

    def sensitivity(self) -> tuple[float, str]:
        return _use(self._link, self._name, "sensitivity")

    def close(self) -> None:
        return


def _use(link: RigLink, name: str, method: str, *arguments: Any) -> Any:
    """A call that may take long: nothing else waits for it over there."""
    return link.call(m.UseInstrument(name, method, arguments), INSTRUMENT_SECONDS)


def _error(module: str, name: str, text: str) -> ShakedownError:
    """The error as it was raised over there."""
    if name:
        found = getattr(import_module(module), name, InstrumentError)
        if isinstance(found, type) and issubclass(found, ShakedownError):
            return found(text)
    return InstrumentError(text)
