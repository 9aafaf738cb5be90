"""The process that owns the rig: source, drive, limits and recorder live here, apart from the window.

Whatever happens to the window, this process goes on, ramps the drive to zero and finishes the recording:

* STOP, from any thread of the window or from another process (``shakedown stop``);
* the window's heartbeat stays away, its process is killed, or the link breaks;
* a channel passes its limit, the source fails, or anything in here raises.

The window's side is :mod:`drivers.acquisition.guarded`. Reasons:
docs/decisions/0003-threads-and-processes.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from analysis.base.errors import ShakedownError
from drivers.acquisition.capture import Capture, Sink, queue_capacity
from drivers.base.clock import RealClock
from drivers.base.protocols import Block, InstrumentError
from drivers.base.trigger import Trigger
from drivers.rig.profile import Rig, RigProfile, open_rig

BLOCK_SECONDS = 0.01  # the pace of the limits' checks
WATCH_SECONDS = 0.004  # the pace of the watch over window and STOP
BACKLOG_SECONDS = 30.0  # samples kept for a window that does not take them
SILENCE_SECONDS = 3.0  # the most that ramping down at the end may take
NEWS_SECONDS = 0.05  # between two words about a recording under way
STOP_SECONDS = 5.0  # for the answer to STOP from another process; it is obeyed before
ORPHANED = "the window was gone"
HOST = "127.0.0.1"


@dataclass
class Links:
    """What connects the two processes. ``beat``: time of the window's last sign of life (0: none yet)."""

    control: Connection  # commands that are done at once, and their answers
    side: Connection  # commands that may take long: they must not keep STOP waiting
    data: Connection  # the samples, for the eye and for whoever computes with them live
    news: Connection  # how the recording is getting on
    stop: Any  # multiprocessing.Event
    beat: Any  # multiprocessing.Value("d")
    output: Any  # multiprocessing.Value("d"): the drive now, for the window's indicator


def run(profile: RigProfile, links: Links, seed: int, patience: float, log: Path | None) -> None:
    """The process: open the rig, serve the window until it closes or dies, leave the drive at zero."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the window's to handle; its end is noticed here
    with contextlib.suppress(OSError, AttributeError):
        os.nice(-10)  # where it is allowed: before fits and plots
    try:
        rig = open_rig(profile, RealClock(), seed)
    except Exception as error:
        _reply(links.control, error)
        return
    keeper = Keeper(rig, links, patience, log)
    signal.signal(signal.SIGTERM, lambda *_: keeper.terminate())
    with contextlib.suppress(OSError):
        links.control.send(("opened", _shape(rig)))
    try:
        with StopPort(lambda: keeper.halt("STOP from another process")):
            keeper.serve()
    finally:
        keeper.end()


class Keeper:
    """Reads the source, watches everything, obeys the window."""

    def __init__(self, rig: Rig, links: Links, patience: float, log: Path | None) -> None:
        self._rig, self._links, self._patience = rig, links, patience
        self._log = None if log is None else log.open("a", encoding="utf-8")
        rate = rig.source.rate
        self._block = max(1, round(BLOCK_SECONDS * rate))
        self._backlog: deque[Block] = deque(maxlen=max(2, round(BACKLOG_SECONDS * rate / self._block)))
        self._ready = threading.Condition()
        self._reading = threading.Event()
        self._blocks = 0  # read so far
        self._ended = False
        self._terminated = False
        self._failure = ""
        self._limits = [
            (i, c.name, c.limit, c.unit) for i, c in enumerate(rig.profile.channels) if c.limit is not None
        ]
        self._reader: threading.Thread | None = None
        self._capture: Capture | None = None
        self._alarmed: Capture | None = None
        self._farewell = ""  # why a recording ends before its time
        threading.Thread(target=self._send, name="sender", daemon=True).start()
        threading.Thread(target=self._serve_side, name="instruments", daemon=True).start()

    # -- the watch

    def serve(self) -> None:
        """Obey commands and watch the window until it closes the rig or is gone."""
        while not self._terminated:
            if self._links.stop.is_set():
                self._links.stop.clear()
                self.halt("STOP")
            self._check_heartbeat()
            try:
                if self._links.control.poll(WATCH_SECONDS) and not self._obey(*self._links.control.recv()):
                    return
            except (EOFError, OSError):
                self._farewell = ORPHANED
                self.halt("the window is gone")
                return

    def _serve_side(self) -> None:
        """Obey what may take long: a controller on a serial line, a calibration."""
        side = self._links.side
        while True:
            try:
                name, args = side.recv()
                part, method = name.split(".")
                try:
                    target: Any = self._rig.source if part == "source" else self._rig.controllers[part]
                    if part == "source" and self._reading.is_set():
                        raise InstrumentError("Stop the stream first: a calibration needs the converter.")
                    if not hasattr(target, method):
                        raise InstrumentError("These instruments cannot do that.")
                    result = getattr(target, method)(*args)
                except Exception as error:
                    _reply(side, error)
                else:
                    side.send(("done", result))
            except (EOFError, OSError):
                return  # the window is gone; the watch sees it too

    def terminate(self) -> None:
        """Asked to end by the system: ramp down first."""
        self._farewell = "the program was asked to end"
        self._terminated = True

    def _check_heartbeat(self) -> None:
        beat = self._links.beat.value
        if beat and time.monotonic() - beat > self._patience and self._playing():
            self.halt(f"the window did not answer for {self._patience:g} s")

    def halt(self, reason: str) -> None:
        """Ramp the drive down. Never raises."""
        try:
            if self._rig.exciter is not None:
                self._rig.exciter.stop(reason)
        except Exception as error:
            self._fail(f"The drive did not take STOP ({error}): switch off the amplifier by hand.")

    def _playing(self) -> bool:
        return self._rig.exciter is not None and self._rig.exciter.state().playing

    # -- the window's commands

    def _obey(self, name: str, args: tuple[Any, ...]) -> bool:
        if name == "close":
            return False
        try:
            result = self._command(name, args)
        except Exception as error:
            if not isinstance(error, ShakedownError):
                self.halt(f"a command failed ({error})")
            _reply(self._links.control, error)
        else:
            self._links.control.send(("done", result))
        return True

    def _command(self, name: str, args: tuple[Any, ...]) -> Any:
        rig = self._rig
        if name == "start":
            return self._start()
        if name == "stop source":
            return self._stop_source()
        if name == "tap":
            return rig.specimen.tap(*args) if rig.specimen is not None else None
        if name == "record":
            return self._record(*args)
        if name == "end recording":
            return self._capture.ask_to_end(*args) if self._capture is not None else None
        method = name.removeprefix("exciter.")
        result = getattr(rig.exciter, method)(*args)
        if method == "stop" and not self._reading.is_set():
            self._publish()
        return result

    def _start(self) -> None:
        self._stop_source()
        with self._ready:
            self._backlog.clear()
            self._ended, self._failure = False, ""
        self._rig.source.start()
        self._reading.set()
        self._reader = threading.Thread(target=self._read, name="source", daemon=True)
        self._reader.start()

    def _stop_source(self) -> None:
        self._reading.clear()
        if self._reader is not None:
            self._reader.join()
            self._reader = None

    # -- the recording

    def _record(
        self, make_sink: Callable[[int], Sink], length: int | None, trigger: Trigger | None, captures: int
    ) -> None:
        if self._capture is not None and not self._capture.done:
            raise InstrumentError("A recording is being made already: stop it first.")
        if not self._reading.is_set():
            raise InstrumentError("The rig is not running: there is nothing to record.")
        source = self._rig.source
        capture = Capture(source, make_sink, length, trigger, captures, queue_capacity(source))
        self._capture = capture
        threading.Thread(target=self._tell, args=(capture,), name="news", daemon=True).start()

    def _tell(self, capture: Capture) -> None:
        """Keep the window informed until the recording is a finished file."""
        try:
            while not capture.wait(NEWS_SECONDS):
                self._links.news.send(capture.state())
            self._links.news.send(capture.state())
        except (OSError, ValueError):
            return  # nobody is there to be told; the recording goes on

    def _keep(self, block: Block) -> None:
        """To the recorder, which never drops anything; if it fails the drive is stopped, once."""
        capture = self._capture
        if capture is None or not block.samples:
            return
        capture.offer(block)
        if capture.failed and capture is not self._alarmed:
            self._alarmed = capture
            self.halt(capture.failed)

    # -- the source

    def _read(self) -> None:
        source = self._rig.source
        try:
            while self._reading.is_set():
                block = source.read(np.empty((len(source.channels), self._block)))
                self._check_limits(block)
                self._publish()
                self._keep(block)
                self._queue(block)
                self._blocks += 1
                if block.ended:
                    break
        except Exception as error:
            text = str(error) if isinstance(error, ShakedownError) else f"The source failed ({error})."
            self._fail(text)
            self.halt(text)
        if self._capture is not None:
            self._capture.ask_to_end(self._failure or self._farewell)
        try:
            source.stop()
        except Exception as error:
            self._fail(f"The source did not stop ({error}).")
        self._reading.clear()
        with self._ready:
            self._ended = True
            self._ready.notify_all()

    def _check_limits(self, block: Block) -> None:
        for row, name, limit, unit in self._limits:
            peak = float(np.abs(block.data[row]).max(initial=0.0))
            if not peak <= limit and self._playing():
                self.halt(
                    f"{name} reached {peak:.4g} {unit}, beyond its limit of {limit:g} {unit}".replace(
                        " ,", ","
                    )
                )

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

    def _send(self) -> None:
        """Hand blocks to the window as fast as it takes them."""
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._backlog or self._ended)
                block = self._backlog.popleft() if self._backlog else None
                if block is None:
                    self._ended = False
                    message: Any = ("ended", self._failure)
                else:
                    message = ("block", block)
            try:
                self._links.data.send(message)
            except (OSError, ValueError):
                return  # the window is gone; the watch sees it too

    def _fail(self, text: str) -> None:
        with self._ready:
            self._failure = self._failure or text

    def _publish(self) -> None:
        """Show the drive to the window, and keep a trace of it if asked."""
        if self._rig.exciter is None:
            return
        state = self._rig.exciter.state()
        level = state.level * state.amplitude if state.playing else 0.0
        self._links.output.value = level
        if self._log is not None:
            self._log.write(f"{time.monotonic():.4f} {level:.6g} {state.reason}\n")
            self._log.flush()

    # -- the end

    def end(self) -> None:
        """Ramp down, wait until the drive is silent, let go of the instruments."""
        self.halt("the rig was closed")
        self._await_silence()
        self._stop_source()
        with contextlib.suppress(ShakedownError):
            self._rig.close()
        if self._capture is not None:
            self._capture.wait()  # finishing has limits of its own
        self._publish_silence()

    def _await_silence(self) -> None:
        """Wait for the end of the ramp and a block behind it, so that the recording shows the silence."""
        deadline, last = time.monotonic() + SILENCE_SECONDS, self._blocks
        while self._reading.is_set() and time.monotonic() < deadline:
            if self._playing():
                last = self._blocks + 2  # the next one may hold the end of the ramp
            elif self._blocks >= last:
                return
            time.sleep(WATCH_SECONDS)

    def _publish_silence(self) -> None:
        with contextlib.suppress(Exception):
            self._publish()
            self._links.control.send(("closed", self._failure))


class StopPort:
    """Lets any process of this machine stop the drive: a port on the loopback, its number kept in a file."""

    def __init__(self, halt: Any) -> None:
        self._halt = halt
        self._server = socket.create_server((HOST, 0))
        folder = stop_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = folder / str(os.getpid())
        unseen = folder / f".{os.getpid()}"  # renamed when complete: nobody takes half a file for a dead rig
        unseen.write_text(json.dumps({"port": self._server.getsockname()[1]}), encoding="utf-8")
        unseen.replace(self._file)
        threading.Thread(target=self._listen, name="stop port", daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._server.accept()
            except OSError:
                return
            with caller:
                self._halt()
                with contextlib.suppress(OSError):
                    caller.sendall(b"stopped\n")

    def __enter__(self) -> StopPort:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.close()
        self._file.unlink(missing_ok=True)


def stop_folder() -> Path:
    """Where running rigs leave the number of their stop port."""
    owner = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"shakedown-drives-{owner}"


def stop_all() -> int:
    """STOP every drive that runs on this machine; how many answered."""
    called = []
    for file in stop_folder().glob("[0-9]*"):
        try:
            port = json.loads(file.read_text(encoding="utf-8"))["port"]
            called.append(socket.create_connection((HOST, port), timeout=STOP_SECONDS))
        except (ConnectionRefusedError, ValueError, KeyError):
            file.unlink(missing_ok=True)  # its process is gone
        except OSError:
            continue  # too busy to be reached; it can be tried again
    stopped = 0
    for link in called:  # all have been told before any answer is waited for
        with link, contextlib.suppress(OSError):
            stopped += link.recv(16) == b"stopped\n"
    return stopped


def _shape(rig: Rig) -> dict[str, Any]:
    """What the window needs to know to look like the rig."""
    return {
        "source": (rig.source.name, rig.source.channels, rig.source.rate),
        "exciter": None if rig.exciter is None else (rig.exciter.unit, rig.exciter.limits),
        "controllers": list(rig.controllers),
        "specimen": rig.specimen is not None,
    }


def _reply(control: Connection, error: Exception) -> None:
    known = isinstance(error, ShakedownError)
    text = str(error) if known else f"The rig's process failed ({type(error).__name__}: {error})."
    with contextlib.suppress(OSError):
        control.send(("error", (type(error).__module__, type(error).__name__) if known else None, text))
