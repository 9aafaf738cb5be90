"""The device's clock beside the computer's: when a sample was taken, how late a block came, their drift.

A block arrives some time after its last sample; never before it. So the smallest differences between the
arrival and the samples' own time follow the true relation of the two clocks, whatever the machine was busy
with in between. Their slope is the drift: a device whose clock is 50 ppm slow falls behind by 0.18 s an hour.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from statistics import median

WINDOW_SECONDS = 2.0  # of the samples' time: one smallest difference is kept of each
MOST_WINDOWS = 512  # then neighbours are joined: a week's stream needs no more memory than an hour's
RECENT_WINDOWS = 5  # lateness is judged against these
FEWEST_WINDOWS = 10  # for a drift with an error
LATE_WIDTHS = 8.0  # above the line by so many median deviations: all blocks of the window were late
LATE_SECONDS = 0.5  # a block that comes later than its samples by this much is reported
FALSE_RATE = 1e-3  # relative; no quartz is off by a tenth of it
FALSE_SIGMAS = 6.0
WRONG_RATE = "the source gives"  # begins the note about it
FALSE_RATE_EARLY, EARLY_WINDOWS = 0.02, 6  # a short stream shows a rate that is far off


@dataclass(frozen=True)
class ClockDrift:
    """How much faster the device's clock runs than the computer's."""

    ppm: float
    error: float  # standard error, ppm
    seconds: float  # over which it was seen

    def contradicts(self) -> bool:
        """Whether the device's rate cannot be what it says."""
        least = FALSE_RATE if self.seconds >= (FEWEST_WINDOWS - 1) * WINDOW_SECONDS else FALSE_RATE_EARLY
        return abs(self.ppm) > max(1e6 * least, FALSE_SIGMAS * self.error)


class StreamClock:
    """Follows a stream of ``rate`` samples a second from its start."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._now = rate, now
        self._windows: list[tuple[float, float]] = []  # samples' time (s), smallest difference (s)
        self._width = WINDOW_SECONDS
        self._open: tuple[float, float] | None = None
        self._forgiven = 0.0  # s of delay that has been reported

    def arrived(self, stop_index: int) -> float:
        """A block that ends before ``stop_index`` has come; by how many seconds it is late (0: it is not)."""
        at = stop_index / self._rate
        behind = self._now() - at
        if self._open is None or behind < self._open[1]:
            self._open = (at, behind)
        earliest = self._earliest()
        lateness = behind - earliest - self._forgiven
        if at >= (self._windows[-1][0] if self._windows else 0.0) + self._width:
            self._keep()
        if lateness <= LATE_SECONDS:
            self._forgiven = max(0.0, min(self._forgiven, behind - earliest))
            return 0.0
        self._forgiven += lateness  # once per delay, not once per block behind it
        return lateness

    def moment(self, index: int) -> str:
        """When a sample was taken, as the time of day with its zone."""
        taken = index / self._rate + self._earliest() if self._open or self._windows else self._now()
        return datetime.fromtimestamp(time.time() - (self._now() - taken)).astimezone().isoformat(
            timespec="milliseconds"
        )  # fmt: skip

    def drift(self) -> ClockDrift | None:
        """How the two clocks run; None while too little was seen."""
        return self._slope(FEWEST_WINDOWS)

    def doubt(self) -> str:
        """A sentence where the samples do not come at the rate that their source tells; else empty."""
        found = self._slope(EARLY_WINDOWS)
        if found is None or not found.contradicts():
            return ""
        true = self._rate * (1 + 1e-6 * found.ppm)
        return (
            f"{WRONG_RATE} {true:.6g} samples a second by the computer's clock and says {self._rate:g} Hz: "
            "times and frequencies of this recording are off by as much"
        )

    def _slope(self, fewest: int) -> ClockDrift | None:
        """That of the smallest differences, by least squares.

        Windows in which every block came late (the machine was busy) lie above the rest and are left out.
        """
        kept = _without_late(self._windows)
        n = len(kept)
        if n < fewest:
            return None
        mean_t = sum(t for t, _ in kept) / n
        mean_d = sum(d for _, d in kept) / n
        spread = sum((t - mean_t) ** 2 for t, _ in kept)
        slope = sum((t - mean_t) * (d - mean_d) for t, d in kept) / spread
        rest = sum((d - mean_d - slope * (t - mean_t)) ** 2 for t, d in kept) / (n - 2)
        seconds = kept[-1][0] - kept[0][0]
        return ClockDrift(-1e6 * slope / (1 + slope), 1e6 * math.sqrt(rest / spread), seconds)

    def _earliest(self) -> float:
        recent = [d for _, d in self._windows[-RECENT_WINDOWS:]]
        if self._open is not None:
            recent.append(self._open[1])
        return min(recent, default=0.0)

    def _keep(self) -> None:
        assert self._open is not None
        self._windows.append(self._open)
        self._open = None
        if len(self._windows) > MOST_WINDOWS:
            pairs = zip(self._windows[::2], self._windows[1::2], strict=False)
            self._windows = [min(pair, key=lambda w: w[1]) for pair in pairs]
            self._width *= 2


def _without_late(windows: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The windows near the line through most of them (Theil and Sen's: the median of all slopes)."""
    if len(windows) < 3:
        return windows
    slope = median((d - c) / (t - s) for (s, c), (t, d) in combinations(windows, 2))
    above = [d - slope * t for t, d in windows]
    middle = median(above)
    width = median(abs(a - middle) for a in above)
    return [w for w, a in zip(windows, above, strict=True) if a - middle <= LATE_WIDTHS * width]
