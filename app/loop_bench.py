"""What holding and tracking ask of a rig with a control loop: the rig in this process's hands, or at the end
of a pipe, where a window has the rig and a process beside it computes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from analysis import ShakedownError
from drivers.base.protocols import InstrumentError

if TYPE_CHECKING:
    from analysis.holding.stretch import Stretch
    from app.loop_rig import EngineLoop
    from drivers.acquisition.engine import Engine
    from drivers.base.protocols import ActiveRecording, LoopStatus
    from drivers.base.waveform import Waveform
    from drivers.rig.profile import Rig

SETTLE = 0.1  # s at least for a drive that has risen
FALL_SECONDS = 0.3  # of samples taken after the drive was told to end


class LoopBench(Protocol):
    """A rig whose drive takes corrections. Every method may raise what ended the drive, in words."""

    def begin(self, channels: Sequence[str], frequency: float) -> None:
        """Read the rig: the loop looks at ``channels`` at this frequency (Hz). Nothing moves yet."""
        ...

    def play(self, waveform: Waveform) -> None: ...

    def drive(self) -> None:
        """Start the rig's own drive and let it rise and settle."""
        ...

    def record(self) -> None:
        """Record from now on, with target, correction and state of the loop."""
        ...

    def install(self, controller: Any) -> None: ...

    def let_go(self, reason: str) -> None: ...

    def seconds(self, duration: float) -> Stretch:
        """Let time pass; everything since the last look."""
        ...

    def status(self) -> LoopStatus: ...


class RigBench:
    """A rig that this process has opened, read by an engine (see :class:`LoopBench`)."""

    def __init__(
        self, rig: Rig, engine: Engine, start_recording: Callable[[], ActiveRecording],
        watch: Callable[[], None],
    ) -> None:  # fmt: skip
        """``watch`` is called several times a second while time passes; it may raise."""
        self._rig, self._engine, self._watch = rig, engine, watch
        self._start_recording = start_recording
        self._loop: EngineLoop | None = None
        self.capture: ActiveRecording | None = None
        self._ended = False

    def begin(self, channels: Sequence[str], frequency: float) -> None:
        from app.loop_rig import EngineLoop, modulated

        modulated(self._rig)
        if not self._engine.status.running:
            self._engine.start(held=True)
        self._loop = EngineLoop(self._rig, self._engine, channels, frequency, self._watch)

    @property
    def loop(self) -> EngineLoop:
        if self._loop is None:
            raise InstrumentError("The loop is not begun.")
        return self._loop

    def play(self, waveform: Waveform) -> None:
        self._watch()
        assert self._rig.exciter is not None
        self._rig.exciter.play(waveform)

    def drive(self) -> None:
        from drivers.acquisition.rise import advance_until_risen

        self._watch()
        self._rig.play()
        advance_until_risen(self._rig, self._engine, lambda _: self._watch())
        self._engine.advance(max(self._rig.profile.settle, SETTLE), lambda _: self._watch())
        self.loop.forget()

    def record(self) -> None:
        self.capture = self._start_recording()

    def install(self, controller: Any) -> None:
        self.loop.install(controller)

    def let_go(self, reason: str) -> None:
        self.loop.let_go(reason)

    def seconds(self, duration: float) -> Stretch:
        return self.loop.seconds(duration)

    def status(self) -> LoopStatus:
        from app.loop_rig import modulated

        return modulated(self._rig).loop_status()

    def end(self, reason: str, beat: Callable[[], None] = lambda: None) -> None:
        """Ramp down, finish the recording; ``beat`` is called meanwhile. The second time nothing is left."""
        if self._ended:
            return
        self._ended = True
        if self._rig.exciter is not None and self._engine.status.running:
            with contextlib.suppress(ShakedownError):
                self._rig.exciter.stop(reason)
                self._engine.advance(FALL_SECONDS, lambda _: beat())
        if self.capture is not None:
            self.capture.ask_to_end()
            while not self.capture.wait(0.05):
                beat()

    @property
    def files(self) -> list[Path]:
        """The finished recordings."""
        return [] if self.capture is None else [f.path for f in self.capture.finished]
