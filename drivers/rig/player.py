"""The player: turns waveforms into the samples that go to the converter. Ramps always, never steps.

One player stands in front of every converter (virtual shaker, analogue output). Whatever is asked of it, in
any order and from any thread, what leaves it has gone through the :class:`~drivers.base.limits.Limiter`.
After STOP the envelope only falls: the latch is looked at before every piece that is given out.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from drivers.base.latch import Latch
from drivers.base.limits import STOP_RAMP, Limiter, Limits
from drivers.base.protocols import DriveState
from drivers.base.waveform import Voice, Waveform

SOFT_START = 0.5  # s


class Player:
    """Plays one waveform at a time at ``rate`` samples a second; silent until told otherwise."""

    def __init__(self, limits: Limits, rate: float, soft_start: float = SOFT_START) -> None:
        self.limits = limits
        self.rate = rate
        self._limiter = Limiter(limits, rate)
        self._soft = 1.0 / max(soft_start, STOP_RAMP)  # level per second
        self._lock = threading.Lock()
        self._voice: Voice | None = None
        self._kind = "none"
        self._pending: tuple[Voice, str] | None = None
        self._level, self._speed = 0.0, 0.0  # of the ramp: 0 to 1, and per second
        self._ramp_from, self._ramp_count = 0.0, 0  # where it began, and samples since
        self._count = 0
        self._played = 0  # samples of the voice so far
        self._reason = "not started"
        self.latch = Latch()

    @property
    def output(self) -> float:
        """The value at the converter now."""
        return self._limiter.output

    def play(self, waveform: Waveform) -> None:
        """Start a waveform softly, after ramping down what plays; LimitError if it may not."""
        self.limits.check_frequency(*waveform.band)
        self.limits.check_amplitude(waveform.amplitude)
        self.limits.check_slew(waveform.slew())
        voice = waveform.voice(self.rate)
        with self._lock:
            self.latch.check()
            self._reason = ""
            if self._voice is None:
                self._begin(voice, waveform.kind)
            else:
                self._pending = (voice, waveform.kind)
                self._ramp(min(self._speed, -self._soft))

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        """Change the sine that plays without a phase jump."""
        with self._lock:
            self.latch.check()
            target = self._pending[0] if self._pending else self._voice
            if target is None:
                return
            f = target.target[0] if frequency is None else frequency
            a = target.target[1] if amplitude is None else amplitude
            self.limits.check_frequency(f)
            self.limits.check_amplitude(a)
            self.limits.check_slew(2 * np.pi * f * a)
            target.change(frequency, amplitude, self.limits.ramp)

    def stop(self, reason: str = "stopped") -> None:
        """Ramp to zero within STOP_RAMP seconds, whatever is going on."""
        with self._lock:
            self._ramp_down(reason)

    def request_stop(self, reason: str = "STOP") -> None:
        """STOP: latches and returns at once; the next samples that are taken begin the ramp."""
        self.latch.set(reason)

    def arm(self) -> None:
        """Release the latch; what was stopped stays silent until something is played."""
        with self._lock:
            self._obey_latch()
            self.latch.release()

    def _obey_latch(self) -> None:
        if reason := self.latch.reason:
            self._ramp_down(reason)

    def _ramp_down(self, reason: str) -> None:
        self._pending = None
        if self._voice is None:
            self._reason = self._reason or reason
            return
        if self._speed != -1.0 / STOP_RAMP:
            self._reason = reason
            self._voice.hold()  # a change to a larger amplitude that is under way ends here
        self._ramp(-1.0 / STOP_RAMP)

    def state(self) -> DriveState:
        """What comes next; ``index`` counts the samples given out so far."""
        with self._lock:
            self._obey_latch()
            voice = self._voice
            if voice is None:
                return DriveState(self._count, reason=self._reason)
            steady = voice.steady and self._level >= 1
            return DriveState(
                self._count, True, self._kind, voice.frequency, voice.amplitude,
                _smooth(self._level), voice.phase, steady, self._reason,
                np.nan if self._kind == "sine" else self._played / self.rate,
            )  # fmt: skip

    def take(self, count: int) -> NDArray[np.float64]:
        """The next samples for the converter."""
        with self._lock:
            self._obey_latch()
            out = np.zeros(count)
            done = 0
            while done < count and self._voice is not None:
                done += self._sound(out[done:])
            self._count += count
            return self._limiter(out)

    def _begin(self, voice: Voice, kind: str) -> None:
        self._voice, self._kind = voice, kind
        self._level, self._played = 0.0, 0
        self._ramp(self._soft)

    def _ramp(self, speed: float) -> None:
        """Go up or down from here. Counting samples makes the ramp independent of the sizes taken."""
        if speed != self._speed:
            self._speed, self._ramp_from, self._ramp_count = speed, self._level, 0

    def _sound(self, out: NDArray[np.float64]) -> int:
        """Fill from the voice until the end of the array or of the ramp down; give the number filled."""
        assert self._voice is not None
        count = len(out)
        if self._speed < 0:
            whole = int(np.ceil(self._ramp_from * self.rate / -self._speed))
            count = min(count, whole - self._ramp_count)
        if count:
            passed = self._ramp_count + np.arange(count + 1)
            level = np.clip(self._ramp_from + self._speed * passed / self.rate, 0.0, 1.0)
            out[:count] = np.sin(0.5 * np.pi * level[:-1]) ** 2 * self._voice.take(count)
            self._level = float(level[-1])
            self._ramp_count += count
            self._played += count
        if self._speed < 0 and self._level <= 1e-12:
            self._silence()
        elif self._level >= 1 and self._speed > 0:
            self._ramp(0.0)
        if self._voice is not None and self._voice.ended and self._speed >= 0:
            self._reason = "finished"
            self._ramp(-self._soft)
        return count

    def _silence(self) -> None:
        self._voice, self._kind, self._level = None, "none", 0.0
        self._ramp(0.0)
        if self._pending is not None:
            voice, kind = self._pending
            self._pending = None
            self._begin(voice, kind)


def _smooth(level: float) -> float:
    """Ramp without corners: sin^2."""
    return float(np.sin(0.5 * np.pi * level) ** 2)
