"""The acquisition server: the process that owns the rig, apart from the window.

Its main thread only watches (:class:`Watch`): the STOP byte of the shared page, the window's sign of life,
the ends of the links, signals. It never calls an instrument and never waits for anything. Commands are done
by workers, each a thread; other threads read the source, send blocks and publish the drive's status.
Whatever happens to the window, the drive ramps to zero and the recording is finished:

* STOP, from any thread of the window or from another process (``shakedown stop``);
* the window's sign of life stays away, its process is killed or suspended, or the link breaks;
* the computer wakes up from sleep, in which nobody watched;
* a signal (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP) asks this process to end;
* a channel passes its limit, the source fails, or anything in here raises.

If this process itself is frozen or killed, the second guard (:mod:`drivers.acquisition.second_guard`) zeroes
the output. The window's side is :mod:`drivers.acquisition.guarded`. Reasons:
docs/decisions/0003-threads-and-processes.md.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import queue
import signal
import sys
import threading
import time
from collections import deque
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from analysis import ShakedownError
from drivers.acquisition import messages as m
from drivers.acquisition.block_reading import read_block
from drivers.acquisition.capture import Capture, DriveStop, queue_capacity
from drivers.acquisition.counting import StreamCounter
from drivers.acquisition.guard_process import GuardProcess
from drivers.acquisition.keeping_awake import KeepAwake
from drivers.acquisition.stall import Stall
from drivers.base import system
from drivers.base.clock import RealClock
from drivers.base.drive_page import DrivePage, DriveStatus, is_ending, process_state
from drivers.base.foreign_error import in_words
from drivers.base.garbage import collect_little, settle_memory
from drivers.base.latch import DriveLatched
from drivers.base.logs import begin_log
from drivers.base.protocols import (
    NOT_MODULATED,
    Block,
    DriveState,
    InstrumentError,
    LoopStatus,
    Losable,
    Modulated,
    status_of,
)
from drivers.base.zeroing import action_of
from drivers.rig import registry
from drivers.rig.profile import Rig, RigProfile, open_rig

_log = logging.getLogger(__name__)

BLOCK_SECONDS = 0.01  # the pace of the limits' checks
WATCH_SECONDS = 0.002  # the pace of the watch over window and STOP
PARENT_SECONDS = 0.01  # between two looks whether the window's process was suspended or killed
SLEPT_SECONDS = 0.1  # of the computer: more between two looks means that it has slept
STATUS_SECONDS = 0.01  # between two words about the drive
BACKLOG_SECONDS = 30.0  # samples kept for a window that does not take them
SILENCE_SECONDS = 3.0  # the most that ramping down at the end may take
JOIN_SECONDS = 3.0  # for a source that is asked to stop; one that hangs is left behind
CLOSE_SECONDS = 10.0  # for the instruments to be let go; then the second guard zeroes the output
MEANT_SECONDS = 5.0  # after a STOP: whoever begins a recording then did not know of it
NEWS_SECONDS = 0.05  # between two words about a recording under way
SWITCH_SECONDS = 0.001  # the interpreter's: no thread keeps the watch waiting for long
WINDOW_GONE = "the window is gone"
TOO_LATE = "The drive took so long to begin that whoever asked for it had given it up: nothing plays."
NO_GUARD = (
    "The second guard has not started (the log may say why): if the rig's process fails, nobody else sets "
    "the output to zero."
)
_ENDING_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP")


def run(profile: RigProfile, links: m.Links, seed: int, patience: float, log: Path | None) -> None:
    """The process: open the rig, serve the window until it closes or dies, leave the drive at zero."""
    system.lead_session()  # a closed terminal and its keys are the window's affair
    system.set_priority(-10)  # where it is allowed: before fits and plots
    system.fine_timers()
    sys.setswitchinterval(SWITCH_SECONDS)
    collect_little()
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # what a driver prints is no part of the results that the window's process prints
    page = DrivePage.open(links.page)
    page.claim(os.getpid())
    server = RigServer(profile, links, page, seed, log)
    begin_log("rig", on_crash=server.note_crash)
    watch = Watch(server, page, patience)
    for name in _ENDING_SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), watch.note_signal)
    server.start()
    watch.run()
    os._exit(0)  # a thread that hangs in an instrument must not keep the process


class Watch:
    """The main thread: sees what must end the drive, within milliseconds, and calls nothing that can wait."""

    def __init__(self, server: RigServer, page: DrivePage, patience: float) -> None:
        self._server, self._page, self._patience = server, page, patience
        self._signal = ""
        self._parent = os.getppid()
        self._parent_looked = 0.0
        self._asleep = system.seconds_asleep()[1]

    def note_signal(self, number: int, frame: object) -> None:
        self._signal = signal.Signals(number).name

    def run(self) -> None:
        """Watch until the server has ended."""
        while not self._server.over.is_set():
            now = time.monotonic()
            self._page.rig_beat = now
            if self._page.stop_requested and self._server.opened:
                self._obey_stop()
            if self._server.driving:
                self._check_window(now)
            self._check_sleep()
            if self._signal:
                self._server.end(f"the rig's process was asked to end ({self._signal})")
            elif self._server.window_link_closed or os.getppid() != self._parent:
                self._server.end(WINDOW_GONE)
            time.sleep(WATCH_SECONDS)

    def _obey_stop(self) -> None:
        """Latch first, then take the byte back: a STOP that comes in between is part of this one.

        Where the driver did not take it the byte stays: the second guard acts then.
        """
        if self._server.stop_drive(self._page.stop_word or "STOP", "stop"):
            self._page.clear_stop()

    def _check_sleep(self) -> None:
        """A lid that was closed: a generator has played on meanwhile, and nobody expects it any more."""
        least, most = system.seconds_asleep()
        if least - self._asleep > SLEPT_SECONDS and self._server.driving:
            self._server.stop_drive(f"the computer slept for {least - self._asleep:.1f} s", "trip")
        self._asleep = most

    def _check_window(self, now: float) -> None:
        beat = self._page.window_beat
        if beat and now - beat > self._patience:
            self._server.stop_drive(f"the window did not answer for {self._patience:g} s", "trip")
        if now - self._parent_looked > PARENT_SECONDS:
            self._parent_looked = now
            if process_state(self._parent) == "T":
                self._server.stop_drive("the window's process was suspended", "trip")
            elif is_ending(self._parent):
                self._server.end(WINDOW_GONE)


class RigServer:
    """Owns the rig and everything that is counted and said about it."""

    def __init__(
        self, profile: RigProfile, links: m.Links, page: DrivePage, seed: int, log: Path | None
    ) -> None:
        self._profile, self._links, self._page, self._seed = profile, links, page, seed
        self._log = None if log is None else log.open("a", encoding="utf-8")
        self._rig: Rig | None = None
        self._rate: float | None = None  # of the source, as it was opened and told
        self._exciter: Any = None
        self._guard: GuardProcess | None = None
        self._counter: StreamCounter | None = None
        self._reading = threading.Event()
        self._reader: threading.Thread | None = None
        self._ready = threading.Condition()
        self._backlog: deque[Block] = deque()
        self._stream_ended = False
        self._ended: StreamCounter | None = None  # of the last stream whose end was told
        self._stall: Stall | None = None  # None: a virtual source, which may compile its equations first
        self._failure = ""
        self._limits: list[tuple[int, str, float, str]] = []
        self._capture: Capture | None = None
        self._alarmed: Capture | None = None
        self._sending = threading.Lock()
        self._requests: dict[str, queue.Queue[m.Request]] = {}
        self._stop_kind = ""  # of the STOP that holds the latch
        self._latest_stop: tuple[float, DriveStop] | None = None  # time.monotonic() and what was stopped
        self._ending = ""  # why the process ends
        self._out_of_reach = False  # the output could not be set to zero: left to the second guard
        self._publishing = threading.Lock()
        self._stop_numbers = itertools.count(1)
        self._drove = ""  # what plays, or played when the latch was set; empty: nothing
        self.driving = False  # as last seen, or about to: read by the watch
        self.window_link_closed = False  # the window's end of the link is gone
        self.opened = False  # a STOP that comes before waits for the rig, and is then obeyed first
        self.over = threading.Event()

    def start(self) -> None:
        """Open the rig and serve, in threads; returns at once."""
        threading.Thread(target=self._open, name="opening", daemon=True).start()

    # -- for the watch: nothing here may wait

    def stop_drive(self, reason: str, kind: str, values: dict[str, float] | None = None) -> bool:
        """Ramp down and latch; from any thread, in no time. Never raises.

        False if the driver did not take it: then STOP is on the page, and the second guard acts.
        """
        exciter = self._exciter
        if exciter is None:
            return True
        first = not exciter.latch.is_set
        if not first and kind == "trip":
            return True
        exciter.latch.set(reason)  # whatever the driver makes of it: nothing new plays
        taken = self._request_stop(exciter, reason)
        if taken or first:
            self._page.stops = next(self._stop_numbers)
        if first:
            _log.info("drive stopped (%s): %s", kind, reason)
            self._stop_kind = kind
            self._mark_recording(reason, kind, values or {})
        return taken

    def _request_stop(self, exciter: Any, reason: str) -> bool:
        try:
            exciter.request_stop(reason)
        except BaseException as error:  # SystemExit of a driver, too: it would end the watch
            self._fail(f"The drive did not take STOP ({in_words(error)}): switch off the amplifier by hand.")
            self._page.request_stop(reason)
            return False
        return True

    def note_crash(self, error: BaseException) -> None:
        """Something failed that nobody caught, in any thread."""
        self.stop_drive(f"the rig's process failed ({in_words(error)})", "trip")

    def _stopped_outside(self) -> str:
        """The drivers look at the page themselves: not one more sample or command goes up after STOP."""
        page = self._page
        return page.guard_acted or (page.stop_word or "STOP" if page.stop_requested else "")

    def _mark_recording(self, reason: str, kind: str, values: dict[str, float]) -> None:
        capture, counter = self._capture, self._counter
        if not self._drove:
            return
        moment = datetime.now().astimezone().isoformat(timespec="milliseconds")
        sample = 0 if counter is None else counter.expected
        stop = DriveStop(reason, kind, moment, sample, self._drove, values)
        self._latest_stop = (time.monotonic(), stop)
        if capture is not None and not capture.done:
            capture.mark_stop(stop)

    def end(self, reason: str) -> None:
        """Ramp down and end the process; the work is done in a thread."""
        if self._ending:
            return
        self._ending = reason
        self.stop_drive(reason, "trip")
        _log.info("ends: %s", reason)
        threading.Thread(target=self._end, name="ending", daemon=True).start()

    # -- opening

    def _open(self) -> None:
        try:
            rig = open_rig(self._profile, RealClock(), self._seed, lambda what: self._send(m.Opening(what)))
            self._guard_output(rig)
        except BaseException as error:  # whatever a driver raises: the window waits for an answer
            _log.warning("%s could not be opened", self._profile.key, exc_info=error)
            self._send(_refusal(0, error))
            self._page.closed = True
            self._page.remove()
            self.over.set()
            return
        self._rig, self._exciter = rig, rig.exciter
        self._rate = rate = rig.source.rate
        self._block = max(1, round(BLOCK_SECONDS * rate))
        if not self._profile.virtual:
            self._stall = Stall(self._block / rate)
        self._backlog = deque(maxlen=max(2, round(BACKLOG_SECONDS * rate / self._block)))
        self._limits = [
            (i, c.name, c.limit, c.unit) for i, c in enumerate(rig.profile.channels) if c.limit is not None
        ]
        self.opened = self._page.served = True
        self._publish()
        for name, work in (
            ("requests", self._receive),
            ("sender", self._send_blocks),
            ("drive status", self._tell_drive),
        ):
            threading.Thread(target=work, name=name, daemon=True).start()
        self._send(
            m.Opened(
                (rig.source.name, rig.source.channels, rate),
                None
                if rig.exciter is None
                else (rig.exciter.unit, rig.exciter.limits, isinstance(rig.exciter, Modulated)),
                tuple(rig.controllers),
                rig.specimen is not None,
                tuple(rig.notices),
            )
        )

    def _guard_output(self, rig: Rig) -> None:
        """Let the drivers look at the page, and the second guard know how the output is set to zero."""
        exciter = rig.exciter
        if exciter is None:
            return
        try:
            exciter.latch.watch(self._stopped_outside, lambda: self._page.guard_acted)
            how = dict(exciter.zeroing())
            action_of(how)
            self._page.set_about({**self._page.about, "outputs": [how]})
            self._guard = GuardProcess(self._page)
            if not self._guard.watches:
                rig.notices.append(NO_GUARD)
        except Exception as error:
            with contextlib.suppress(Exception):
                rig.close()
            raise InstrumentError(
                f"The rig is not opened: the driver of its shaker does not say how the output is set to zero "
                f"from outside ({error})."
            ) from None

    # -- the window's commands

    def _receive(self) -> None:
        """Hand requests to their workers; the end of the link is noted for the watch."""
        while True:
            try:
                request = self._links.control.recv()
            except (EOFError, OSError):
                self.window_link_closed = True
                return
            worker = request.command.worker
            if worker not in self._requests:
                self._requests[worker] = queue.Queue()
                threading.Thread(
                    target=self._work, args=(worker,), name=f"{worker} commands", daemon=True
                ).start()
            self._requests[worker].put(request)

    def _work(self, worker: str) -> None:
        while True:
            request = self._requests[worker].get()
            try:
                answer: Any = m.Answer(request.number, self._do_in_time(request))
            except BaseException as error:  # the worker goes on whatever a driver raises
                if not isinstance(error, ShakedownError):
                    _log.exception("command %s failed", type(request.command).__name__)
                if not isinstance(error, ShakedownError) and worker == "drive":
                    self.stop_drive(f"a command failed ({error})", "trip")
                answer = _refusal(request.number, error)
            self._send(answer)

    def _do_in_time(self, request: m.Request) -> Any:
        """A drive that nobody waits for any more is not begun, and ended if it took too long to begin."""
        if not isinstance(request.command, m.Play | m.Change | m.Control):
            return self._do(request.command)
        if time.monotonic() > request.until:
            raise InstrumentError(TOO_LATE)
        answer = self._do(request.command)
        if time.monotonic() > request.until:
            self._exciter.stop(TOO_LATE)
            raise InstrumentError(TOO_LATE)
        return answer

    def _do(self, command: m.Command) -> Any:
        rig = self._rig
        assert rig is not None
        match command:
            case m.Play() | m.Change() | m.EndDrive() | m.Arm() | m.AskDriveState():
                return self._drive(command)
            case m.Control() | m.AskLoop():
                return self._control(command)
            case m.StartStream():
                return self._start()
            case m.StopStream():
                return self._stop_stream()
            case m.TapSpecimen(strength):
                return None if rig.specimen is None else rig.specimen.tap(strength)
            case m.Record():
                return self._record(command)
            case m.EndRecording(failure):
                return None if self._capture is None else self._capture.ask_to_end(failure)
            case m.Mark(number, text):
                return self._mark(number, text)
            case m.UseInstrument():
                return self._use_instrument(command)
            case m.CloseRig():
                return self.end("the rig was closed")
        raise InstrumentError(f"The rig's process does not know the command {type(command).__name__}.")

    def _drive(self, command: m.Command) -> DriveState | None:
        exciter = self._exciter
        if exciter is None:
            raise InstrumentError("This rig has no shaker.")
        match command:
            case m.Play(waveform):
                self._before_drive()
                exciter.play(waveform)
            case m.Change(frequency, amplitude):
                self._before_drive()
                exciter.change(frequency, amplitude)
            case m.EndDrive(reason):
                exciter.stop(reason)
            case m.Arm(seen):
                self._arm(seen)
            case _:
                return exciter.state()
        self._publish()
        return None

    def _control(self, command: m.Control | m.AskLoop) -> LoopStatus:
        exciter = self._exciter
        if not isinstance(exciter, Modulated):
            raise InstrumentError(NOT_MODULATED)
        if isinstance(command, m.Control):
            controller = None if command.controller is None else pickle.loads(command.controller)
            if controller is not None:
                self._before_drive()
            exciter.control(controller, command.reason)
        return exciter.loop_status()

    def _before_drive(self) -> None:
        if self._ending:
            raise DriveLatched(f"The rig is being closed ({self._ending}): nothing can play.")
        self._exciter.latch.check()
        if not self.driving:
            settle_memory()
        self.driving = True  # the watch and the second guard look from now on

    def _arm(self, seen: int) -> None:
        """A person has seen ``seen`` stops and wants to go on; one that came since wins."""
        if self._ending or self._page.stop_requested or self._page.stops != seen:
            raise DriveLatched("STOP was pressed again meanwhile: look, then arm once more.")
        if self._exciter.state().playing:
            raise DriveLatched("The drive is still ramping down: arm it when it is silent.")
        self._stop_kind = ""
        self._page.hand_back()
        self._exciter.arm()

    def _use_instrument(self, command: m.UseInstrument) -> Any:
        assert self._rig is not None
        of_source = command.name == "source"
        target: Any = self._rig.source if of_source else self._rig.controllers[command.name]
        if of_source and self._reading.is_set():
            raise InstrumentError("Stop the stream first: a calibration needs the converter.")
        if not hasattr(target, command.method):
            raise InstrumentError("These instruments cannot do that.")
        return getattr(target, command.method)(*command.arguments)

    def _send(self, message: Any) -> None:
        with self._sending, contextlib.suppress(OSError, ValueError):
            self._links.control.send(message)  # a window that is gone is noticed where requests come in

    # -- the stream

    def _start(self) -> None:
        assert self._rig is not None
        self._stop_stream()
        with self._ready:
            self._backlog.clear()
            self._stream_ended, self._failure = False, ""
        try:
            self._rig.source.start()
        except ShakedownError:
            raise
        except Exception as error:
            _log.warning("the source did not start", exc_info=error)
            raise InstrumentError(self._source_failed(error)) from None
        try:
            self._check_rate()
        except InstrumentError:
            self._stop_source()
            raise
        self._counter = StreamCounter(self._rig.source)
        self._reading.set()
        self._reader = threading.Thread(target=self._read, args=(self._counter,), name="source", daemon=True)
        self._reader.start()

    def _stop_stream(self) -> None:
        self._reading.clear()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.join(JOIN_SECONDS)

    def _read(self, counter: StreamCounter) -> None:
        assert self._rig is not None
        source = self._rig.source
        try:
            while self._reading.is_set():
                block = read_block(source, self._block)
                if counter is self._ended:
                    return  # given up meanwhile
                self._check_rate()
                self._publish()  # first: what is shown of a virtual drive is not older than its samples
                if not (block.samples or block.ended):
                    continue  # brings nothing, for ten seconds at most: see _check_stall
                self._check_limits(block)
                _, late = counter.count(block)
                self._page.counts, self._page.stream_seconds = counter.counts, counter.seconds
                self._keep(block, late)
                self._queue(block)
                if block.ended:
                    break
        except BaseException as error:  # SystemExit, too, would leave the drive without anybody who looks
            _log.warning("the source failed", exc_info=error)
            if counter is self._ended:
                return
            text = str(error) if isinstance(error, ShakedownError) else self._source_failed(error)
            self._fail(text)
            if self.driving:
                self.stop_drive(text, "trip")
        self._end_capture()
        self._stop_source()
        self._reading.clear()
        self._end_capture()  # one that was asked for meanwhile
        self._end_stream(counter)

    def _check_rate(self) -> None:
        """The rate must stay what it was when the rig was opened: recordings and drives count by that one."""
        assert self._rig is not None
        rate = self._rig.source.rate
        if self._rate is not None and rate != self._rate:
            raise InstrumentError(
                f"{self._driver} has changed its rate from {self._rate:g} to {rate:g} Hz: open the rig anew, "
                "with the rate that it has."
            )

    def _stop_source(self) -> None:
        assert self._rig is not None
        try:
            self._rig.source.stop()
        except Exception as error:
            self._fail(f"The source did not stop ({in_words(error)}).")

    def _end_stream(self, counter: StreamCounter) -> None:
        """Tell the window, once for each stream."""
        with self._ready:
            if counter is not self._ended:
                self._ended, self._stream_ended = counter, True
                self._ready.notify_all()

    def _check_stall(self, stall: Stall) -> None:
        """Give a source up that hangs, and end a drive that nobody sees: no channel could pass its limit."""
        counter = self._counter
        if counter is None or not self._reading.is_set():
            if stall.silent(self.driving, time.monotonic()) > stall.blind and self.driving:
                self._trip_unseen(f"{self._driver} has not been read for {stall.blind:.0f} s")
            return
        silent = stall.silent((counter, counter.counts), time.monotonic())
        if silent > stall.patience:
            self._give_source_up(counter, stall.patience)
        elif silent > stall.blind and self.driving and counter.counts.samples:
            self._trip_unseen(f"{self._driver} has given no samples for {stall.blind:.0f} s")

    def _trip_unseen(self, why: str) -> None:
        self.stop_drive(f"{why}, so nobody saw whether a channel passes its limit", "trip")

    def _give_source_up(self, counter: StreamCounter, seconds: float) -> None:
        text = f"{self._driver} has given no samples for {seconds:.0f} s: the acquisition was ended."
        _log.warning(text)
        self._fail(text)
        if self.driving:
            self.stop_drive(text, "trip")
        self._end_stream(counter)
        self._reading.clear()
        self._end_capture()
        threading.Thread(target=self._stop_source, name="stopping the source", daemon=True).start()

    @property
    def _driver(self) -> str:
        return registry.called("sources", self._profile.instruments["source"]["driver"])

    def _source_failed(self, error: BaseException) -> str:
        return f"{self._driver} failed ({in_words(error)})."

    def _end_capture(self) -> None:
        if self._capture is not None:
            early = "" if self._ending in ("", "the rig was closed") else self._ending
            self._capture.ask_to_end(self._failure or early)

    def _check_limits(self, block: Block) -> None:
        for row, name, limit, unit in self._limits:
            peak = float(np.abs(block.data[row]).max(initial=0.0))
            if not peak <= limit and self.driving:
                reached, allowed = f"{peak:.4g} {unit}".strip(), f"{limit:g} {unit}".strip()
                self.stop_drive(
                    f"{name} reached {reached}, beyond its limit of {allowed}", "trip", {name: peak}
                )

    def _keep(self, block: Block, late: float) -> None:
        """To the recorder, which never drops anything; if it fails the drive is stopped, once."""
        capture = self._capture
        if capture is None or not block.samples:
            return
        if late:
            capture.note(f"block came {late:.2f} s late", block.start_index)
        capture.offer(block)
        if capture.failed and capture is not self._alarmed:
            self._alarmed = capture
            if self.driving:
                self.stop_drive(capture.failed, "trip")

    def _queue(self, block: Block) -> None:
        recording = self._capture is not None and not self._capture.done
        with self._ready:
            full = len(self._backlog) == self._backlog.maxlen
            if full and recording:  # the recorder has them all: only the window misses some
                self._backlog.popleft()
                missed = self._backlog.popleft()
                self._backlog.appendleft(replace(missed, reason="the window did not look"))
            if not full or recording:
                self._backlog.append(block)
                self._ready.notify_all()
        if full and not recording:
            raise ShakedownError(
                f"The window took no samples for {BACKLOG_SECONDS:g} s, so the acquisition was stopped; "
                "everything up to there is kept."
            )

    def _send_blocks(self) -> None:
        """Hand blocks to the window as fast as it takes them."""
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._backlog or self._stream_ended)
                block = self._backlog.popleft() if self._backlog else None
                if block is None:
                    self._stream_ended = False
            message: Any = m.StreamEnded(self._failure) if block is None else m.StreamBlock(block)
            try:
                self._links.data.send(message)
            except (OSError, ValueError):
                return  # the window is gone; the watch sees it too

    def _fail(self, text: str) -> None:
        self._failure = self._failure or text

    # -- the recording

    def _record(self, order: m.Record) -> None:
        if self._capture is not None and not self._capture.done:
            raise InstrumentError("A recording is being made already: stop it first.")
        if not self._reading.is_set() or self._rig is None or self._counter is None:
            raise InstrumentError(self._failure or "The rig is not running: there is nothing to record.")
        source = self._rig.source
        self._capture = Capture(
            source, order.make_sink, order.length, order.trigger, order.captures, queue_capacity(source),
            self._counter.clock, not self._profile.virtual,
        )  # fmt: skip
        self._mark_late_recording(self._capture, self._counter.expected)
        threading.Thread(
            target=self._tell_recording, args=(self._capture,), name="recording news", daemon=True
        ).start()
        if not self._reading.is_set():  # the stream has ended meanwhile
            self._end_capture()

    def _mark(self, number: int, text: str) -> int:
        if self._capture is None or self._capture.done or self._counter is None:
            raise InstrumentError("Nothing is being recorded: there is nothing to mark.")
        return self._capture.mark(number, text, self._counter.expected)

    def _mark_late_recording(self, capture: Capture, sample: int) -> None:
        """A recording that was asked for while the drive was being stopped was meant for that drive."""
        if self._latest_stop is None or not self._exciter.latch.is_set:
            return
        moment, stop = self._latest_stop
        if time.monotonic() - moment < MEANT_SECONDS:
            capture.mark_stop(replace(stop, sample=sample))

    def _tell_recording(self, capture: Capture) -> None:
        """Keep the window informed until the recording is a finished file."""
        while not capture.wait(NEWS_SECONDS):
            self._send(m.RecordingNews(capture.state()))
        self._send(m.RecordingNews(capture.state()))

    # -- the drive's status

    def _tell_drive(self) -> None:
        awake = KeepAwake() if any(how["kind"] != "virtual" for how in self._page.outputs) else None
        while not self.over.is_set():
            self._publish()
            if awake is not None:
                awake.hold(self.driving)
            if self._stall is not None:
                self._check_stall(self._stall)
            if isinstance(self._exciter, Losable) and self._exciter.lost:
                self.stop_drive(self._exciter.lost, "trip")
            self._keep_guard()
            time.sleep(STATUS_SECONDS)

    def _keep_guard(self) -> None:
        if self._guard is None or self._page.closed:
            return
        try:
            self._guard.keep_alive()
        except OSError as error:  # no memory, no processes left: this thread must go on telling of the drive
            self.stop_drive(f"the second guard cannot be started ({error.strerror or error})", "trip")

    def _publish(self) -> None:
        """Show the drive on the page, and keep a trace of it if asked. What nobody can tell of is stopped."""
        with self._publishing:
            try:
                self._publish_now()
            except BaseException as error:
                self.stop_drive(f"the driver cannot tell the state of its drive ({in_words(error)})", "trip")

    def _publish_now(self) -> None:
        exciter, page = self._exciter, self._page
        if exciter is None:
            page.publish(DriveStatus("off", at=time.monotonic()))
            return
        taken = page.guard_acted
        status = status_of(exciter, tripped=bool(taken) or self._stop_kind != "stop")
        self.driving = bool(status.waveform)
        if not status.latched:
            self._drove = status.text if self.driving else ""
        whole = status.level * (status.amplitude + status.correction)  # a tracked drive is the loop's alone
        page.output = whole if self.driving and not taken else 0.0
        page.publish(status)
        if self._log is not None:
            self._log.write(f"{time.monotonic():.4f} {page.output:.6g} {status.reason}\n")
            self._log.flush()

    # -- the end

    def _end(self) -> None:
        """Wait until the drive is silent, let go of the instruments, finish the recording."""
        self._await_silence()
        self._stop_stream()
        closing = threading.Thread(target=self._close_rig, name="closing", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        if not closing.is_alive() and not self._out_of_reach:
            self._publish()
            self._page.closed = True
            self._page.remove()
        if self._capture is not None:
            self._capture.wait()  # finishing has limits of its own
        self.over.set()

    def _close_rig(self) -> None:
        if self._rig is not None:
            try:
                self._rig.close()
            except Exception as error:
                _log.warning("the rig did not close: %s", error)
                self._out_of_reach = self._exciter is not None and self._may_play(self._exciter)

    def _may_play(self, exciter: Any) -> bool:
        try:
            return bool(exciter.state().playing)
        except Exception:
            return True  # nobody knows

    def _await_silence(self) -> None:
        """Wait for the end of the ramp and a block behind it, so that the recording shows the silence."""
        counter = self._counter
        deadline = time.monotonic() + SILENCE_SECONDS
        last = 0 if counter is None else counter.counts.samples
        while self._reading.is_set() and counter is not None and time.monotonic() < deadline:
            if self.driving:
                last = counter.counts.samples + 2 * self._block  # the next one may hold the end of the ramp
            elif counter.counts.samples >= last:
                return
            time.sleep(WATCH_SECONDS)


def _refusal(number: int, error: BaseException) -> m.Refusal:
    if isinstance(error, ShakedownError):
        return m.Refusal(number, str(error), type(error).__module__, type(error).__name__)
    return m.Refusal(number, f"The rig's process failed ({in_words(error)}).")
