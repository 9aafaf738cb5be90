"""The player: turns waveforms into the samples that go to the converter. Ramps always, never steps.

One player stands in front of every converter (virtual shaker, analogue output). Whatever is asked of it, in
any order and from any thread, what leaves it has gone through the :class:`~drivers.base.limits.Limiter`.
After STOP the envelope only falls: the latch is looked at before every piece that is given out.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers.base.latch import Latch
from drivers.base.limits import STOP_RAMP, Limiter, Limits
from drivers.base.protocols import DriveState
from drivers.base.waveform import SampleGenerator, Waveform

SOFT_START = 0.5  # s
SWING_SECONDS = 0.2  # over which the largest correction that is told falls


@dataclass(frozen=True)
class PlayerMark:
    """Where a player stood before some samples were taken, so that STOP can replace them."""

    count: int  # samples given out before
    generator: SampleGenerator | None
    kind: str
    level: float
    speed: float
    ramp_from: float
    ramp_count: int
    played: int
    output: float


class Player:
    """Plays one waveform at a time at ``rate`` samples a second; silent until told otherwise."""

    def __init__(self, limits: Limits, rate: float, soft_start: float = SOFT_START) -> None:
        self.limits = limits
        self.rate = rate
        self._limiter = Limiter(limits, rate)
        self._soft = 1.0 / max(soft_start, STOP_RAMP)  # level per second
        self._lock = threading.Lock()
        self._generator: SampleGenerator | None = None
        self._kind = "none"
        self._pending: tuple[SampleGenerator, str] | None = None
        self._level, self._speed = 0.0, 0.0  # of the ramp: 0 to 1, and per second
        self._ramp_from, self._ramp_count = 0.0, 0  # where it began, and samples since
        self._count = 0
        self._played = 0  # samples of the waveform so far
        self._reason = "not started"
        self._correction = 0.0  # of a control loop, as it was last added
        self._swing = 0.0  # its largest size lately
        self.latch = Latch()

    @property
    def output(self) -> float:
        """The value at the converter now."""
        return self._limiter.output

    def play(self, waveform: Waveform) -> None:
        """Start a waveform softly, after ramping down what plays; LimitError if it may not."""
        self.limits.check_frequency(*waveform.band)
        self.limits.check_amplitude(waveform.amplitude)
        self.limits.check_rate(waveform.band[1], self.rate)
        self.limits.check_slew(waveform.slew())
        waveform.check()
        generator = waveform.generator(self.rate)
        with self._lock:
            self.latch.check()
            self._reason = ""
            if self._generator is None:
                self._begin(generator, waveform.kind)
            else:
                self._pending = (generator, waveform.kind)
                self._ramp(min(self._speed, -self._soft))

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        """Change the sine that plays without a phase jump."""
        with self._lock:
            self.latch.check()
            target = self._pending[0] if self._pending else self._generator
            if target is None:
                return
            f = target.target[0] if frequency is None else frequency
            a = target.target[1] if amplitude is None else amplitude
            self.limits.check_frequency(f)
            self.limits.check_rate(f, self.rate)
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
        if self._generator is None:
            self._reason = self._reason or reason
            return
        if self._speed != -1.0 / STOP_RAMP:
            self._reason = reason
            self._generator.hold()  # a change to a larger amplitude that is under way ends here
        self._ramp(-1.0 / STOP_RAMP)

    def state(self) -> DriveState:
        """What comes next; ``index`` counts the samples given out so far."""
        with self._lock:
            self._obey_latch()
            return self._state()

    def _state(self) -> DriveState:
        generator = self._generator
        if generator is None:
            return DriveState(self._count, reason=self._reason)
        steady = generator.steady and self._level >= 1 and self._speed >= 0
        return DriveState(
            self._count, True, self._kind, generator.frequency, generator.amplitude,
            _smooth(self._level), generator.phase, steady, self._reason,
            np.nan if self._kind == "sine" else self._played / self.rate, self._swing,
        )  # fmt: skip

    def take(self, count: int, correction: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The next samples for the converter, with the ``correction`` [count] of a control loop if any.

        The correction passes the same envelope and limits as the drive: where nothing plays there is none,
        and while a drive ramps down it stands still.
        """
        with self._lock:
            self._obey_latch()
            return self._next(count, correction)

    def take_with_state(self, count: int) -> tuple[PlayerMark, DriveState, NDArray[np.float64]]:
        """Where it stands, the state of the drive there, and the next samples: at one moment."""
        with self._lock:
            self._obey_latch()
            return self._mark(), self._state(), self._next(count)

    def take_last(self, count: int, correction: float) -> float:
        """The last of the next ``count`` samples, for a converter that came too late for those before it.

        It still stands at its value of before: from there one sample's step of the slew limit is allowed.
        """
        with self._lock:
            self._obey_latch()
            stands = self._limiter.output
            self._next(count - 1, np.full(count - 1, correction))
            self._limiter.output = stands
            return float(self._next(1, np.full(1, correction))[0])

    def _next(self, count: int, correction: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        out = np.zeros(count)
        done = 0
        while done < count and self._generator is not None:
            done += self._fill(out[done:], None if correction is None else correction[done:])
        self._count += count
        return self._limiter(out)

    def mark(self) -> PlayerMark:
        """Where it stands now."""
        with self._lock:
            return self._mark()

    def _mark(self) -> PlayerMark:
        return PlayerMark(
            self._count, copy.copy(self._generator), self._kind, self._level, self._speed, self._ramp_from,
            self._ramp_count, self._played, self._limiter.output,
        )  # fmt: skip

    def return_to(self, mark: PlayerMark) -> None:
        """Stand where it stood: the samples given out since were not played."""
        with self._lock:
            self._return_to(mark)

    def _return_to(self, mark: PlayerMark) -> None:
        self._count, self._generator, self._kind = mark.count, copy.copy(mark.generator), mark.kind
        self._level, self._speed, self._played = mark.level, mark.speed, mark.played
        self._ramp_from, self._ramp_count = mark.ramp_from, mark.ramp_count
        self._limiter.output = mark.output

    def silence(self, reason: str) -> None:
        """Nothing plays from here on: what was given out and not played has been dropped behind its back."""
        with self._lock:
            self._pending = self._generator = None
            self._kind, self._level, self._reason = "none", 0.0, reason
            self._correction = self._swing = 0.0
            self._ramp(0.0)
            self._limiter.output = 0.0

    def fall_from(self, mark: PlayerMark, skip: int, count: int) -> tuple[DriveState, NDArray[np.float64]]:
        """STOP in samples that were given out: those from ``skip`` after the mark on, falling to zero.

        With them the state of the drive at the first of them.
        """
        with self._lock:
            self._return_to(mark)
            self._next(skip)
            self._ramp_down(self.latch.reason or "STOP")
            return self._state(), self._next(count)

    def _begin(self, generator: SampleGenerator, kind: str) -> None:
        self._generator, self._kind = generator, kind
        self._level, self._played = 0.0, 0
        self._ramp(self._soft)

    def _ramp(self, speed: float) -> None:
        """Go up or down from here. Counting samples makes the ramp independent of the sizes taken."""
        if speed != self._speed:
            self._speed, self._ramp_from, self._ramp_count = speed, self._level, 0

    def _fill(self, out: NDArray[np.float64], correction: NDArray[np.float64] | None) -> int:
        """Fill from the generator until the end of the array or of the ramp down; give the number filled."""
        assert self._generator is not None
        count = len(out)
        if self._speed < 0:
            whole = int(np.ceil(self._ramp_from * self.rate / -self._speed))
            count = min(count, whole - self._ramp_count)
        if count:
            passed = self._ramp_count + np.arange(count + 1)
            level = np.clip(self._ramp_from + self._speed * passed / self.rate, 0.0, 1.0)
            wave = self._generator.take(count) + self._corrected(correction, count)
            out[:count] = np.sin(0.5 * np.pi * level[:-1]) ** 2 * wave
            self._level = float(level[-1])
            self._ramp_count += count
            self._played += count
        if self._speed < 0 and self._level <= 1e-12:
            self._silence()
        elif self._level >= 1 and self._speed > 0:
            self._ramp(0.0)
        if self._generator is not None and self._generator.ended and self._speed >= 0:
            self._reason = "finished"
            self._ramp(-self._soft)
        return count

    def _corrected(self, correction: NDArray[np.float64] | None, count: int) -> NDArray[np.float64] | float:
        """The correction; on the way down the one that stood when it began, so that only the ramp acts."""
        if self._speed < 0:
            return self._correction
        if correction is None:
            self._correction = self._swing = 0.0
            return 0.0
        usable = np.nan_to_num(correction[:count], nan=0.0, posinf=0.0, neginf=0.0)
        self._correction = float(usable[-1])
        kept = max(0.0, 1.0 - count / (SWING_SECONDS * self.rate))
        self._swing = max(kept * self._swing, float(np.abs(usable).max()))
        return usable

    def _silence(self) -> None:
        self._generator, self._kind, self._level = None, "none", 0.0
        self._correction = self._swing = 0.0
        self._ramp(0.0)
        if self._pending is not None:
            generator, kind = self._pending
            self._pending = None
            self._begin(generator, kind)


class PlayedOutput:
    """What exciters have in common whose converter is fed by a player."""

    unit = "V"
    _player: Player

    @property
    def limits(self) -> Limits:
        return self._player.limits

    @property
    def latch(self) -> Latch:
        return self._player.latch

    def change(self, frequency: float | None = None, amplitude: float | None = None) -> None:
        self._player.change(frequency, amplitude)

    def arm(self) -> None:
        self._player.arm()


def _smooth(level: float) -> float:
    """Ramp without corners: sin^2."""
    return float(np.sin(0.5 * np.pi * level) ** 2)
