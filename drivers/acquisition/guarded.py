"""A rig whose instruments live in a process of their own: same protocols, and the drive outlives nothing.

Recordings are made over there too: they are finished even when this process is killed.

``open_guarded`` gives a :class:`~drivers.rig.profile.Rig` like ``open_rig``. Call ``rig.beat()`` from the
window's
event loop a few times a second: when the beats stay away the drive ramps down. See
:mod:`drivers.acquisition.safety`.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from analysis.base.errors import ShakedownError
from drivers.acquisition.capture import CaptureState
from drivers.acquisition.safety import Links, run
from drivers.base.limits import Limits
from drivers.base.protocols import Block, DriveState, InstrumentError, LinkLost, Samples, Setting
from drivers.base.trigger import Trigger
from drivers.base.waveform import Waveform
from drivers.recording import Finished, recover
from drivers.rig.profile import Rig, RigProfile, open_rig

PATIENCE = 1.0  # s without a beat after which the drive is stopped
OPENING_SECONDS = 180.0  # compiling a new model's equations takes a while, on a busy machine a long one
ANSWER_SECONDS = 10.0
SILENCING_SECONDS = 30.0  # for a fresh process to reach the output of a rig whose own process died
CLOSING_SECONDS = 10.0
SIDE_SECONDS = 60.0  # a serial instrument that is asked again, a calibration that averages
LOST = "The rig's process ended unexpectedly; the drive is off and what was recorded is safe."


class GuardedRig(Rig):
    """A rig in its own process."""

    guard: Guard

    def beat(self) -> None:
        self.guard.beat()

    def emergency_stop(self) -> None:
        self.guard.stop()

    def close(self) -> None:
        self.guard.close()


def open_guarded(
    profile: RigProfile, seed: int = 0, patience: float = PATIENCE, log: Path | None = None
) -> GuardedRig:
    """Open a rig in a process of its own. ``log`` keeps a trace of the drive for inspection."""
    guard = Guard(profile, seed, patience, log)
    shape = guard.shape
    rig = GuardedRig(profile, RemoteSource(guard, *shape["source"]))
    rig.guard = guard
    if shape["exciter"] is not None:
        rig.exciter = RemoteExciter(guard, *shape["exciter"])
    rig.controllers = {name: RemoteController(guard, name) for name in shape["controllers"]}
    if shape["specimen"]:
        rig.specimen = guard
    return rig


class Guard:
    """The window's end of the links to the rig's process."""

    def __init__(self, profile: RigProfile, seed: int, patience: float, log: Path | None) -> None:
        self._profile = profile
        context = multiprocessing.get_context("spawn")
        self._control, control = context.Pipe()
        self._side, side = context.Pipe()
        self._data, data = context.Pipe(duplex=False)
        self._news, news = context.Pipe(duplex=False)
        self._stop = context.Event()
        self._beat = context.Value("d", 0.0, lock=False)
        self._output = context.Value("d", 0.0, lock=False)
        links = Links(control, side, data, news, self._stop, self._beat, self._output)
        self._lock, self._side_lock = threading.Lock(), threading.Lock()
        self._capture: RemoteCapture | None = None
        self._closed = False
        self._process = context.Process(
            target=run, args=(profile, links, seed, patience, log), name="rig", daemon=True
        )
        self._process.start()
        for theirs in (control, side, data, news):
            theirs.close()  # ours are copies: with them open the end of the process would not be seen
        atexit.register(self.close)  # a window that ends with an exception still ramps down
        try:
            self.shape = self._answer(OPENING_SECONDS)
        except ShakedownError:
            self._process.join(5)
            raise
        threading.Thread(target=self._listen, name="news", daemon=True).start()

    # -- safety

    def stop(self) -> None:
        """STOP: seen by the rig's process within milliseconds, whatever this one is doing."""
        self._stop.set()

    def beat(self) -> None:
        """A sign of life of the window."""
        self._beat.value = time.monotonic()

    @property
    def output(self) -> float:
        """The drive's level now, as the rig's process sees it."""
        return float(self._output.value)

    @property
    def pid(self) -> int | None:
        return self._process.pid

    # -- calls

    def call(self, name: str, *args: Any, seconds: float = ANSWER_SECONDS) -> Any:
        """Have the rig's process do something and wait for its answer."""
        with self._lock:
            try:
                self._control.send((name, args))
            except OSError:
                raise self._lost() from None
            return self._answer(seconds)

    def ask(self, name: str, *args: Any) -> Any:
        """Like ``call``, for what may take long: nothing else waits for it over there."""
        with self._side_lock:
            try:
                while self._side.poll(0):
                    self._side.recv()  # an answer that came after we had given it up
                self._side.send((name, args))
            except (EOFError, OSError):
                raise self._lost() from None
            return self._answer(SIDE_SECONDS, self._side)

    def try_call(self, name: str, *args: Any) -> bool:
        """Like ``call``, but False at once if another call is under way; a rig that is gone is done."""
        if not self._lock.acquire(timeout=0.01):
            return False
        try:
            self._control.send((name, args))
            self._answer(ANSWER_SECONDS)
        except (OSError, LinkLost):
            pass
        finally:
            self._lock.release()
        return True

    def tap(self, strength: float = 1.0) -> None:
        self.call("tap", strength)

    def receive(self, seconds: float) -> Any:
        """The next message of the stream, None if none came in time."""
        try:
            return self._data.recv() if self._data.poll(seconds) else None
        except (EOFError, OSError):
            raise self._lost() from None

    def record(self, *order: Any) -> RemoteCapture:
        """Have the rig's process record; see ``Engine.record``."""
        if self._capture is not None and not self._capture.done:
            raise InstrumentError("A recording is being made already: stop it first.")
        self._capture = capture = RemoteCapture(self)  # before the first news can come
        try:
            self.call("record", *order)
        except ShakedownError:
            self._capture = None
            raise
        return capture

    def _listen(self) -> None:
        """In a thread: what the rig's process tells about its recording, until it is gone."""
        while True:
            try:
                state = self._news.recv()
            except (EOFError, OSError, TypeError):  # TypeError: closed by us in this very moment
                break
            if self._capture is not None:
                self._capture.hear(state)
        if self._capture is not None:
            self._capture.bereave()

    def close(self) -> None:
        """Ramp down, finish a recording under way, close the rig, end the process."""
        if self._closed:
            return
        if self._capture is not None:
            self._stop.set()
            self._capture.end()
        self._closed = True
        atexit.unregister(self.close)
        self._stop.set()
        with contextlib.suppress(OSError):
            self._control.send(("close", ()))
        drain = time.monotonic() + CLOSING_SECONDS
        while self._process.is_alive() and time.monotonic() < drain:
            with contextlib.suppress(EOFError, OSError):
                while self._data.poll(0):
                    self._data.recv()  # a full pipe must not keep the process from ending
            self._process.join(0.02)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
            self.make_safe()
        for link in (self._control, self._side, self._data, self._news):
            link.close()

    def make_safe(self) -> None:
        """Silence the drive of a rig whose process died: opening an exciter zeroes it."""
        if self._profile.virtual:
            return
        context = multiprocessing.get_context("spawn")
        helper = context.Process(target=_silence, args=(self._profile,), daemon=True)
        helper.start()
        helper.join(SILENCING_SECONDS)
        if helper.exitcode != 0:
            raise InstrumentError(
                "The rig's process died and the drive could not be reached: switch off the amplifier by hand."
            )

    def _answer(self, seconds: float, link: Connection | None = None) -> Any:
        link = link or self._control
        try:
            if not link.poll(seconds):
                raise InstrumentError(f"The rig's process did not answer for {seconds:g} s.")
            kind, *content = link.recv()
        except (EOFError, OSError):
            raise self._lost() from None
        if kind == "error":
            raise _error(*content)
        return content[0]

    def _lost(self) -> LinkLost:
        if not self._closed:
            self._closed = True
            self.make_safe()
        return LinkLost(LOST)


class RemoteSource:
    """The source in the rig's process."""

    waits = False

    def __init__(self, guard: Guard, name: str, channels: tuple[Any, ...], rate: float) -> None:
        self._guard = guard
        self.name, self.channels, self.rate = name, channels, rate
        self._rest: Block | None = None
        self._running = False

    def start(self) -> None:
        self._guard.call("start", seconds=OPENING_SECONDS)  # a simulated device compiles its plant first
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
        return self._guard.record(make_sink, length, trigger, captures)

    def null_bridge(self, channel: str) -> float:
        return float(self._guard.ask("source.null_bridge", channel))

    def shunt_calibrate(self, channel: str, resistor: float) -> float:
        return float(self._guard.ask("source.shunt_calibrate", channel, resistor))

    def stop(self) -> None:
        if self._running:
            self._running = False
            with contextlib.suppress(LinkLost):
                self._guard.call("stop source")
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
            message = self._guard.receive(0.2)
            if message is None:
                continue
            if message[0] == "block":
                return message[1]
            self._running = False
            raise InstrumentError(message[1] or "The source has ended.")

    def _drain(self) -> None:
        """Throw away what is still on its way, so that the next start begins clean."""
        while (message := self._guard.receive(1.0)) is not None:
            if message[0] == "ended":
                return


class RemoteCapture:
    """A recording that is made in the rig's process (see :class:`drivers.base.protocols.Taking`)."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
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

    def backlog(self) -> tuple[float, float, str]:
        return self._state.lag, self._state.queue, self._state.failed

    def wait(self, seconds: float | None = None) -> bool:
        return self._done.wait(seconds)

    # -- what it is told

    def offer(self, block: Block) -> None:
        """The rig's process has had the block long ago."""

    def note(self, text: str, index: int) -> None:
        """How late a block is over here does not touch the recording."""

    def end(self, failure: str = "") -> None:
        """No more blocks; wait until the recording is a finished file."""
        if not self.done:
            with contextlib.suppress(ShakedownError):  # its process is gone: ``bereave`` sees to it
                self._guard.call("end recording", failure)
        self._done.wait()

    def hear(self, state: CaptureState) -> None:
        self._state = state
        if state.done:
            self._done.set()

    def bereave(self) -> None:
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

    def __init__(self, guard: Guard, unit: str, limits: Limits) -> None:
        self._guard, self.unit, self.limits = guard, unit, limits

    def play(self, waveform: Waveform) -> None:
        self._guard.call("exciter.play", waveform)

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        self._guard.call("exciter.change", frequency, amplitude)

    def stop(self, reason: str = "stopped") -> None:
        if not self._guard.try_call("exciter.stop", reason):
            self._guard.stop()  # another call is under way: the way that never waits

    def state(self) -> DriveState:
        return self._guard.call("exciter.state")

    def close(self) -> None:
        self.stop("closed")


class RemoteController:
    """A sensor's controller in the rig's process."""

    def __init__(self, guard: Guard, name: str) -> None:
        self._guard, self._name = guard, name

    def identify(self) -> str:
        return str(self._guard.ask(f"{self._name}.identify"))

    def settings(self) -> Mapping[str, Setting]:
        return self._guard.ask(f"{self._name}.settings")

    def set(self, name: str, value: str) -> None:
        self._guard.ask(f"{self._name}.set", name, value)

    def signal_strength(self) -> float:
        return float(self._guard.ask(f"{self._name}.signal_strength"))

    def over_range(self) -> bool:
        return bool(self._guard.ask(f"{self._name}.over_range"))

    def sensitivity(self) -> tuple[float, str]:
        return self._guard.ask(f"{self._name}.sensitivity")

    def close(self) -> None:
        return


def _silence(profile: RigProfile) -> None:
    open_rig(profile).close()


def _error(kind: tuple[str, str] | None, text: str) -> ShakedownError:
    """The error as it was raised over there."""
    if kind is not None:
        found = getattr(import_module(kind[0]), kind[1], InstrumentError)
        if isinstance(found, type) and issubclass(found, ShakedownError):
            return found(text)
    return InstrumentError(text)
