"""A source that counts: channel c holds sample index + c/1024, so every lost sample can be proven.

Faults can be asked for, to see that each is detected, stored and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drivers.base.clock import Clock, RealClock
from drivers.base.protocols import Block, ChannelInfo, ChannelSpan, InstrumentError, Samples


@dataclass(frozen=True)
class Fault:
    """What goes wrong at a sample: ``gap`` and ``overload`` last ``samples``, ``late`` lasts ``seconds``."""

    kind: str  # gap, overload, late, error
    index: int
    samples: int = 0
    seconds: float = 0.0


class CounterSource:
    """Counts on every channel at ``rate``, in real time unless another clock is given."""

    name = "counter"

    def __init__(
        self,
        channels: int = 8,
        rate: float = 51200.0,
        clock: Clock | None = None,
        faults: Sequence[Fault] = (),
    ) -> None:
        self.channels = tuple(ChannelInfo(f"c{i}", "count", sensor="counter") for i in range(channels))
        self.rate = rate
        self._clock = clock or RealClock()
        self._all_faults = tuple(sorted(faults, key=lambda f: f.index))
        self._offsets = np.arange(channels)[:, None] / 1024
        self._running = False

    @property
    def waits(self) -> bool:
        return self._clock.waits

    def start(self) -> None:
        self._next, self._faults, self._running = 0, list(self._all_faults), True
        self._zero = self._clock.now()

    def read(self, into: Samples) -> Block:
        if not self._running:
            raise InstrumentError("The counter is not running.")
        start, reason, overloads = self._next, "", []
        stop = start + into.shape[1]
        while self._faults and self._faults[0].index < stop:
            fault = self._faults[0]
            if fault.kind == "gap" and fault.index > start:
                stop = fault.index  # a block ends before a gap
                break
            self._faults.pop(0)
            if fault.kind == "gap":
                start, stop = start + fault.samples, stop + fault.samples
                reason = "injected"
            elif fault.kind == "overload":
                overloads.append(ChannelSpan(0, fault.index, fault.index + fault.samples))
            elif fault.kind == "late":
                self._clock.wait_until(self._clock.now() + fault.seconds)
            else:
                raise InstrumentError("The counter broke, as it was asked to.")
        self._clock.wait_until(self._zero + stop / self.rate)
        data = into[:, : stop - start]
        np.add(np.arange(start, stop), self._offsets, out=data)
        self._next = stop
        return Block(start, data, tuple(overloads), reason=reason)

    def stop(self) -> None:
        self._running = False

    def close(self) -> None:
        self.stop()


def miscounted(data: Samples, start_index: int) -> int:
    """How many samples of a counter's recording are not what they must be."""
    expected = np.arange(start_index, start_index + data.shape[1]) + np.arange(len(data))[:, None] / 1024
    return int(np.count_nonzero(data != expected))
