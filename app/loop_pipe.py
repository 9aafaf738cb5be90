"""The bench of a control loop over a pipe: a window has the rig, a process beside it computes.

The window's end answers requests in a thread. It ends the drive when the other end is gone, or asks for
nothing for longer than any honest step takes while the loop is in use, or for a moment once a person wants it
to end. A second thread looks at that: sending to an end that is suspended never comes back.
"""

from __future__ import annotations

import logging
import math
import pickle
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from analysis import Cancelled, ShakedownError
from drivers.base.protocols import InstrumentError

if TYPE_CHECKING:
    from analysis.holding.stretch import Stretch
    from app.loop_bench import RigBench
    from drivers.base.protocols import LoopStatus
    from drivers.base.waveform import Waveform

_log = logging.getLogger(__name__)

# s between two requests while the loop is in use. Regulators are computed meanwhile, on a busy machine for
# long; limits, STOP and the window's own signs of life do not wait for it.
LONGEST_STEP = 30.0
CANCEL_SECONDS = 1.0  # that the far end may take to notice that a person wants it to end; then the drive ends
STUCK_SECONDS = 5.0  # after which it is not expected to notice
LOOK_SECONDS = 0.05
CALLS = (
    "begin",
    "play",
    "drive",
    "record",
    "let_go",
    "seconds",
    "status",
)  # methods of LoopBench, as they are
WINDOW_GONE = "The window that has the rig is gone: the drive is off."


class Link(Protocol):
    """An end of a pipe; its class has another name on Windows."""

    def send(self, obj: Any, /) -> None: ...

    def recv(self) -> Any: ...

    def close(self) -> None: ...


class PipeBench:
    """The bench at the far end of a pipe (see :class:`app.loop_bench.LoopBench`)."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def _ask(self, name: str, *arguments: Any) -> Any:
        try:
            self._link.send((name, arguments))
            kind, answer = self._link.recv()
        except (EOFError, OSError):
            raise InstrumentError(WINDOW_GONE) from None
        if kind == "cancelled":
            raise Cancelled(answer)
        if kind == "refused":
            raise InstrumentError(answer)
        return answer

    def begin(self, channels: Sequence[str], frequency: float) -> None:
        self._ask("begin", tuple(channels), frequency)

    def play(self, waveform: Waveform) -> None:
        self._ask("play", waveform)

    def drive(self) -> None:
        self._ask("drive")

    def record(self) -> None:
        self._ask("record")

    def install(self, controller: Any) -> None:
        self._ask("install", pickle.dumps(controller))

    def let_go(self, reason: str) -> None:
        self._ask("let_go", reason)

    def seconds(self, duration: float) -> Stretch:
        stretch: Stretch = self._ask("seconds", duration)
        return stretch

    def status(self) -> LoopStatus:
        status: LoopStatus = self._ask("status")
        return status

    def tell(self, news: object) -> None:
        """Something for who watches at the window."""
        self._ask("tell", news)

    def end(self, reason: str) -> list[str]:
        """End the drive and the recording; the finished files. Nothing else can be asked for then."""
        files: list[str] = self._ask("end", reason)
        return files


class PickledController:
    """A controller on its way to the rig's process: it is made there, not in the window."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return pickle.loads, (self._content,)


class BenchServer:
    """Answers the requests of a :class:`PipeBench` until it ends, is gone, or hangs."""

    def __init__(
        self, link: Link, bench: RigBench, cancelled: Callable[[], bool],
        told: Callable[[object], object] = lambda news: None, heard: Callable[[], object] = lambda: None,
        longest: float = LONGEST_STEP, unpacked: Callable[[bytes], Any] = pickle.loads,
        stuck: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        """``told`` hears the news of the work. ``heard``: the far end has its end of the pipe. ``unpacked``
        makes a controller of its bytes, or :class:`PickledController` for a rig in a process of its own.
        ``stuck``: the far end was asked to end and hangs; the drive is off.
        """
        self._link, self._bench, self._cancelled, self._longest = link, bench, cancelled, longest
        self._told, self._heard, self._unpacked, self._stuck = told, heard, unpacked, stuck
        self._in_use = False  # the rig is read for this work, and perhaps driven
        self._using = threading.Lock()  # held by who uses the bench
        self._latest = time.monotonic()  # when the far end got, or should have got, its last answer
        self._given_up = ""  # why nothing more is done, in words
        self._over = threading.Event()

    def run(self) -> None:
        """Serve until the far end says that it is over, or is gone; the drive is off then."""
        threading.Thread(target=self._look, name="watch of the loop's work", daemon=True).start()
        try:
            while self._served():
                pass
        finally:
            self._over.set()
            try:
                self._link.close()  # who waits for an answer hears that none will come
            finally:
                with self._using:
                    self._bench.end("the work is over")

    def _look(self) -> None:
        """In a thread of its own: a far end that hangs must not leave the drive running."""
        asked = math.inf  # time.monotonic() since when a person wants it to end
        while not self._over.wait(LOOK_SECONDS):
            now = time.monotonic()
            asked = min(asked, now) if self._cancelled() else math.inf
            if not self._using.acquire(blocking=False):
                continue  # the rig is busy for it
            try:
                waited = now - max(asked, self._latest)  # since it was asked to end
                if now - self._latest > self._longest:
                    self._give_up(f"The computation beside the rig took more than {self._longest:g} s.")
                elif waited > CANCEL_SECONDS:
                    self._give_up("The computation beside the rig did not end when it was asked to.")
                if waited > STUCK_SECONDS:
                    self._stuck()
                    return
            finally:
                self._using.release()

    def _give_up(self, reason: str) -> None:
        if not self._in_use or self._given_up:
            return
        self._given_up = reason
        _log.warning("%s The drive is ended.", reason)
        self._bench.end(reason)

    def _served(self) -> bool:
        """Wait for a request and answer it; whether there may be more."""
        try:
            name, arguments = self._link.recv()
            self._heard()
            answer = self._answer(name, arguments)
            self._latest = time.monotonic()
            self._link.send(answer)
        except (EOFError, OSError):
            return False
        return bool(name != "end")

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
        try:
            with self._using:
                return "done", self._do(name, arguments)
        except Cancelled as error:
            return "cancelled", str(error)
        except ShakedownError as error:
            return "refused", str(error)
        except Exception as error:
            _log.exception("the bench of a control loop failed")
            return "refused", f"This should not happen: {type(error).__name__}: {error}."

    def _do(self, name: str, arguments: tuple[Any, ...]) -> Any:
        bench = self._bench
        if name == "end":
            bench.end(str(arguments[0]))
            return [str(path) for path in bench.files]
        if self._cancelled():
            raise Cancelled("Cancelled.")
        if self._given_up:
            raise InstrumentError(self._given_up)
        if name == "tell":
            self._told(*arguments)
            return None
        if name == "install":
            return bench.install(self._unpacked(*arguments))
        if name not in CALLS:
            raise InstrumentError(f"The bench has no '{name}'.")
        self._in_use = True
        return getattr(bench, name)(*arguments)
