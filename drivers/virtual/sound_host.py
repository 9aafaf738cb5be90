"""A stand-in for the module sounddevice: a card whose output is wired to its inputs, in real time.

Its streams call back from a thread of their own, block by block, as PortAudio does. ``delay``: samples from
output to input; ``lose(samples)``: the driver misses so many before the next block.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


class LoopbackHost:
    """Every input hears output 0 after ``delay`` samples, times ``gain``."""

    def __init__(self, delay: int = 480, gain: float = 0.5, rates: tuple[float, ...] = (48000.0,)) -> None:
        self.delay, self.gain, self._rates = delay, gain, rates
        self.missed = 0
        self.tone = (100.0, 0.0)  # frequency (Hz) and amplitude of what the inputs hear besides
        self.bend = 0.0  # of the inputs: a cubic, as of a stage that is overdriven
        self.output = 0.0  # the last sample that was played

    def lose(self, samples: int) -> None:
        self.missed = samples

    def check_input_settings(self, **asked: Any) -> None:
        if asked["samplerate"] not in self._rates:
            raise ValueError("Invalid sample rate")

    check_output_settings = check_input_settings

    def Stream(self, **settings: Any) -> LoopbackStream:
        return LoopbackStream(self, settings["channels"], settings)

    def InputStream(self, **settings: Any) -> LoopbackStream:
        return LoopbackStream(self, (settings["channels"], 0), settings)


class LoopbackStream:
    """One stream: ``start``, ``abort``, ``close``."""

    def __init__(self, host: LoopbackHost, channels: tuple[int, int], settings: dict[str, Any]) -> None:
        self._host, self._channels = host, channels
        self._rate, self._frames = float(settings["samplerate"]), int(settings["blocksize"])
        self._callback: Callable[..., None] = settings["callback"]
        self._finished: Callable[[], None] = settings["finished_callback"]
        self._ending = threading.Event()
        self._line: deque[float] = deque([0.0] * host.delay)
        self._thread = threading.Thread(target=self._run, name="sound card", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def abort(self) -> None:
        self._ending.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._host.output = 0.0

    def close(self) -> None:
        self._ending.set()

    def _run(self) -> None:
        begun, position, frames = time.monotonic(), 0, self._frames
        while not self._ending.is_set():
            lost, self._host.missed = self._host.missed, 0
            position += lost
            for _ in range(lost):
                self._line.append(0.0)
                self._line.popleft()
            time.sleep(max(0.0, begun + (position + frames) / self._rate - time.monotonic()))
            heard = np.array([self._line.popleft() for _ in range(min(frames, len(self._line)))])
            heard = np.concatenate([heard, np.zeros(frames - len(heard))])
            frequency, amplitude = self._host.tone
            times = (position + np.arange(frames)) / self._rate
            heard = self._host.gain * heard + amplitude * np.sin(2 * np.pi * frequency * times)
            heard -= self._host.bend * heard**3
            inputs = np.tile(heard[:, None], (1, self._channels[0])).astype(np.float32)
            outputs = np.zeros((frames, max(self._channels[1], 1)), np.float32)
            stamps = SimpleNamespace(inputBufferAdcTime=begun + position / self._rate)
            status = SimpleNamespace(input_overflow=lost > 0)
            if self._channels[1]:
                self._callback(inputs, outputs, frames, stamps, status)
            else:
                self._callback(inputs, frames, stamps, status)
            self._line.extend(outputs[:, 0].tolist())
            self._host.output = float(outputs[-1, 0])
            position += frames
        self._finished()
