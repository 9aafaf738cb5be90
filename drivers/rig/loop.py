"""The control loop of a rig: from the samples of a moment to a correction of the drive, beside the limiter.

It runs where the samples are read, once for each of them. What it gives is added to the drive before the
limits, the slew limit and the envelope of STOP: nothing that a controller does gets past those. It lets go of
the drive softly, and says why, when the correction stays at its bound, when deadlines or samples are missed,
and when the controller fails; the drive itself goes on.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from drivers.base.converter import check_bits
from drivers.base.protocols import InstrumentError, LoopStatus

_log = logging.getLogger(__name__)

LET_GO_SECONDS = 0.05  # over which a correction falls to zero
MISSED_IN_A_ROW = 5  # deadlines or samples
SATURATED_TURNS = 1.0  # of the drive, at the bound without a break
CHANNELS = (("target", ""), ("correction", "V"), ("loop", ""))  # recorded beside those of the sensors
OPEN, WATCHING, HOLDING, LETTING_GO = range(4)  # what the channel "loop" shows
TWO_PI = 2 * math.pi
_WORDS = ("open", "watching", "holding", "letting go")


class Controller(Protocol):
    """Samples in, correction out: once for every sample, compiled, without allocating."""

    @property
    def channels(self) -> Sequence[str]:
        """The channels that it wants, in this order."""
        ...

    @property
    def bound(self) -> float:
        """Its largest correction, in the exciter's unit."""
        ...

    def step(self, samples: NDArray[np.float64], phase: float, applied: float) -> float:
        """The correction from the samples of this moment, at this phase of the drive.

        ``applied``: the correction that went out the last time, which a bound or a missed deadline may have
        made another one. A sample that was lost is no number.
        """
        ...

    @property
    def shown(self) -> float:
        """What it wants the first of its channels to be now."""
        ...

    @property
    def holding(self) -> bool:
        """Whether it corrects; else it only watches."""
        ...

    def adopt(self, other: object) -> None:
        """Go on where the controller before it stands, as far as that is possible."""
        ...


@dataclass(frozen=True)
class LoopTiming:
    """The delay of a virtual loop, and the converter that makes its drive."""

    delay: float  # s from a sample to the correction that it leads to: at least one sample
    jitter: float = 0.0  # s, mean of an exponential delay on top
    missed: float = 0.0  # share of deadlines that are missed: the correction before it stays
    bits: int = 24  # of the converter that makes the drive
    channels: bool = False  # record target, correction and state of the loop

    def __post_init__(self) -> None:
        if not 0 <= self.jitter < math.inf:
            raise InstrumentError(f"The loop's jitter must be at least 0 s, not {self.jitter:g}.")
        if not 0 <= self.missed <= 1:
            raise InstrumentError(f"The share of missed deadlines lies between 0 and 1, not {self.missed:g}.")
        check_bits("The converter of the drive", self.bits)


class ControlLoop:
    """Runs one controller at a time. ``step`` from the reading thread, the rest from any."""

    def __init__(self, rate: float, names: Sequence[str]) -> None:
        self._rate, self._names = rate, list(names)
        self._lock = threading.Lock()
        self._pending: Controller | None = None
        self._controller: Controller | None = None
        self._rows: list[int] = []
        self._samples = np.empty(0)
        self._applied = 0.0
        self._fading = 0.0  # what is left of the correction that is let go: 1 to 0
        self._let_go_from = 0.0
        self._reason = ""
        self._ended = False  # the drive was stopped: no controller of before acts again
        self._phase = math.nan
        self._saturated = 0.0  # rad of the drive at the bound
        self._missed_now = self._lost_now = 0
        self._missed = self._ticks = self._clipped = self._sent = 0
        self._delay_sum = self._delay_squares = self._delay_most = 0.0

    @property
    def busy(self) -> bool:
        """Whether there is a correction to be computed or to be let go."""
        return self._controller is not None or self._pending is not None or self._applied != 0.0

    @property
    def deciding(self) -> bool:
        """Whether a controller computes what goes out; letting go is the output's own and misses nothing."""
        return self._controller is not None

    def close(self, controller: Controller) -> None:
        """Let a controller decide from the next sample on."""
        missing = [c for c in controller.channels if c not in self._names]
        if missing:
            raise InstrumentError(f"The rig has no channel '{missing[0]}', which the controller needs.")
        prepare = getattr(controller, "prepare", None)
        if prepare is not None:
            prepare()
        with self._lock:
            self._obey_end()
            self._pending = controller

    def end(self) -> None:
        """The drive is being stopped: whatever decides now never acts again. Waits for nobody."""
        self._pending = None
        self._ended = True

    def _obey_end(self) -> None:
        if self._ended:
            self._ended, self._pending = False, None
            self._let_go("the drive was stopped")
            self._applied = self._let_go_from = 0.0

    def let_go(self, reason: str) -> None:
        """Bring the correction to zero softly; the drive goes on."""
        with self._lock:
            self._pending = None
            self._let_go(reason)

    def _let_go(self, reason: str) -> None:
        if self._controller is not None:
            _log.info("the loop lets go: %s", reason)
            self._controller, self._reason = None, reason
            self._fading, self._let_go_from = 1.0, self._applied

    def step(self, samples: NDArray[np.float64], phase: float, room: float, playing: bool) -> float:
        """The correction that follows from these samples; ``room``: what the limits leave for it."""
        with self._lock:
            self._obey_end()
            self._take_over()
            if not playing:
                self._let_go("the drive ended")
                self._applied = self._let_go_from = 0.0
                return 0.0
            turned = (phase - self._phase) % TWO_PI if math.isfinite(self._phase) else 0.0
            self._phase = phase
            if self._controller is None:
                return self._fade()
            wanted = self._ask(self._controller, samples, phase)
            if self._controller is None:
                return self._fade()
            return self._bounded(wanted, min(self._controller.bound, max(room, 0.0)), turned)

    def _take_over(self) -> None:
        if self._pending is not None:
            new, old = self._pending, self._controller
            self._pending = None
            if old is not None:
                new.adopt(old)
            self._controller, self._reason = new, ""
            self._rows = [self._names.index(c) for c in new.channels]
            self._samples = np.empty(len(self._rows))
            self._saturated, self._missed_now, self._lost_now = 0.0, 0, 0

    def _ask(self, controller: Controller, samples: NDArray[np.float64], phase: float) -> float:
        self._ticks += 1
        total = 0.0
        for place, row in enumerate(self._rows):  # few: quicker than NumPy's calls
            self._samples[place] = value = samples[row]
            total += value
        whole = math.isfinite(total)
        self._lost_now = 0 if whole else self._lost_now + 1
        if self._lost_now > MISSED_IN_A_ROW:
            self._let_go(f"{self._lost_now} samples in a row were lost")
            return 0.0
        try:
            wanted = float(controller.step(self._samples, phase, self._applied))
        except Exception as error:
            _log.exception("the controller failed")
            self._let_go(f"the controller failed ({type(error).__name__}: {error})")
            return 0.0
        if not math.isfinite(wanted):
            self._let_go("the controller gave no number")
            return 0.0
        return wanted

    def _bounded(self, wanted: float, bound: float, turned: float) -> float:
        inside = min(max(wanted, -bound), bound)
        at_bound = abs(wanted) >= bound * (1 - 1e-9) and wanted != 0.0
        self._clipped += at_bound
        self._saturated = self._saturated + turned if at_bound else 0.0
        if self._saturated > SATURATED_TURNS * TWO_PI:
            self._let_go("the correction stayed at its bound for a period of the drive")
            return self._fade()
        return inside

    def _fade(self) -> float:
        self._fading = max(0.0, self._fading - 1.0 / (LET_GO_SECONDS * self._rate))
        return self._let_go_from * self._fading

    def went_out(self, correction: float, delay: float) -> None:
        """The correction reached the converter ``delay`` s after its sample."""
        with self._lock:
            self._applied, self._missed_now = correction, 0
            self._sent += 1
            self._delay_sum += delay
            self._delay_squares += delay * delay
            self._delay_most = max(self._delay_most, delay)

    def missed_deadline(self) -> None:
        """The correction came too late and the one before it stays."""
        with self._lock:
            self._missed += 1
            self._missed_now += 1
            if self._missed_now > MISSED_IN_A_ROW:
                self._let_go(f"{self._missed_now} deadlines in a row were missed")

    @property
    def shown(self) -> tuple[float, float, float]:
        """Target, correction and state at this moment, as they are recorded."""
        controller = self._controller
        if controller is None:
            return 0.0, self._applied, float(LETTING_GO if self._applied else OPEN)
        return controller.shown, self._applied, float(HOLDING if controller.holding else WATCHING)

    def status(self) -> LoopStatus:
        with self._lock:
            sent = max(1, self._sent)
            mean = self._delay_sum / sent
            jitter = np.sqrt(max(self._delay_squares / sent - mean * mean, 0.0))
            return LoopStatus(
                _WORDS[int(self.shown[2])], self._reason, mean, float(jitter), self._delay_most, self._ticks,
                self._missed, self._clipped,
            )  # fmt: skip
