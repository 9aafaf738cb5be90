"""A rig with a control loop, as holding an orbit needs it: install a controller, let periods pass, look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from analysis import DataError
from analysis.holding.stretch import Stretch
from drivers.acquisition.engine import Engine
from drivers.base.protocols import NOT_MODULATED, Block, InstrumentError, Modulated
from drivers.rig.loop import HOLDING
from drivers.rig.profile import Rig, RigProfile

QUEUE_SECONDS = 120.0  # of blocks between two looks


def with_loop_channels(profile: RigProfile) -> RigProfile:
    """The profile with target, correction and state of the loop among the recorded channels."""
    from dataclasses import replace

    source = dict(profile.instruments["source"])
    if "loop" in source:
        source["loop"] = {**source["loop"], "channels": True}
    return replace(profile, instruments={**profile.instruments, "source": source})


def modulated(rig: Rig) -> Modulated:
    """The exciter of a rig whose drive takes corrections; one sentence where it does not."""
    exciter: Any = rig.exciter
    if not isinstance(exciter, Modulated):
        raise InstrumentError(NOT_MODULATED)
    exciter.loop_status()  # says where a loop is missing
    return exciter


class EngineLoop:
    """The loop of a rig that an engine reads (see analysis.holding.stretch.LoopRig)."""

    def __init__(
        self, rig: Rig, engine: Engine, channels: Sequence[str], frequency: float, watch: Callable[[], None]
    ) -> None:
        self._exciter = modulated(rig)
        self._engine, self._watch = engine, watch
        self._names = [c.name for c in rig.source.channels]
        self._rows = [self._names.index(name) for name in channels]
        self._rate, self._frequency = rig.source.rate, frequency
        self._queue = engine.subscribe(QUEUE_SECONDS)

    def install(self, controller: Any) -> None:
        self._watch()
        self._exciter.control(controller)

    def let_go(self, reason: str) -> None:
        self._exciter.control(None, reason)

    def forget(self) -> None:
        """Drop what has not been looked at."""
        self._queue.read()

    def run(self, periods: float) -> Stretch:
        return self.seconds(periods / self._frequency)

    def seconds(self, duration: float) -> Stretch:
        """Let some seconds pass; everything since the last look."""
        self._engine.advance(duration, lambda _: self._watch())
        blocks = self._queue.read()
        self._check(blocks)
        data = np.concatenate([b.data for b in blocks], axis=1)
        first = blocks[0]
        assert first.drive is not None
        turn = 2 * np.pi * self._frequency / self._rate
        offset = (first.drive.phase - turn * first.drive.index) % (2 * np.pi)
        phase = offset + turn * (first.start_index + np.arange(data.shape[1]))
        return Stretch(
            data[self._rows], np.asarray(phase, dtype=np.float64), data[self._names.index("correction")],
            data[self._names.index("loop")] == HOLDING,
        )  # fmt: skip

    def _check(self, blocks: list[Block]) -> None:
        if not blocks or any(b.lost for b in blocks):
            raise DataError("Samples were lost while the loop was closed: an orbit cannot be averaged so.")
