"""The rig in motion: linear test, then the branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import DataError
from app.tracking.request import BEGIN, TrackChannels, TrackRequest

if TYPE_CHECKING:
    from analysis import Progress
    from analysis.tracking.linear_test import LinearPlant
    from analysis.tracking.tracking import Plan, TrackedBranch, TrackedPoint
    from app.loop_bench import LoopBench
    from drivers.base.protocols import LoopStatus
    from drivers.rig.profile import RigProfile

ROOM = 0.95  # of the largest drive that the limits allow
BACK = 1.6  # points of the way out and back, over those of the way out


class TrackWork:
    """Tracks one branch. What it found by the time it ended is in ``branch``."""

    def __init__(
        self, bench: LoopBench, profile: RigProfile, channels: TrackChannels, request: TrackRequest,
        progress: Progress, seen: Callable[[TrackedPoint], object] = lambda point: None,
        looked: Callable[[str, LoopStatus], object] = lambda doing, status: None,
    ) -> None:  # fmt: skip
        """``seen`` hears of every point, ``looked`` of what goes on."""
        self._bench, self._profile, self._channels, self._request = bench, profile, channels, request
        self._progress, self._seen_by, self._looked = progress, seen, looked
        self._points: list[TrackedPoint] = []
        self.plant: LinearPlant | None = None
        self.loop: LoopStatus | None = None
        self.branch: TrackedBranch | None = None

    def run(self) -> None:
        from analysis.tracking.tracking import Tracking
        from drivers.base.waveform import Sine

        bench, profile, limits = self._bench, self._profile, self._profile.limits
        near = self._request.nearby(profile)
        limits.check_frequency(near)
        bench.begin(self._channels.names, near)
        band = (limits.lowest_frequency, limits.highest_frequency)
        peak = ROOM * min(limits.peak, limits.slew / (2 * np.pi * min(2.5 * near, limits.highest_frequency)))
        tracking = Tracking(
            _Rig(bench, self._look), self._channels.names, profile.rate, peak, band, self._channels.sees,
            self._seen,
        )  # fmt: skip
        bench.record()
        bench.play(Sine(0.0, near))  # no drive of its own: all of it is the loop's
        self._progress.report(0.0, "linear test")
        bench.seconds(1.0)
        self.plant = plant = tracking.test(near)
        self._too_slow(plant.delay, plant.frequency)
        self._progress.report(0.0, "on the way to the first point")
        self.branch = tracking.track(self._plan(plant), plant, np.random.default_rng(self._request.seed))
        self.loop = bench.status()

    def _look(self, status: LoopStatus) -> None:
        self.loop = status
        if self.plant is None:
            doing = "linear test"
        elif not self._points:
            doing = "on the way to the first point"
        else:
            doing = "on the way back, at half the speed" if self._back else "on the way out"
        self._looked(doing, status)

    @property
    def _back(self) -> bool:
        return len(self._points) >= self._request.points

    def _seen(self, point: TrackedPoint) -> None:
        self._points.append(point)
        p = point.point
        self._progress.report(
            min(0.99, len(self._points) / (BACK * self._request.points)),
            f"{p.frequency.value:.5g} Hz, amplitude {p.amplitude.value:.4g}, force {p.force.value:.4g}",
        )
        self._seen_by(point)

    @staticmethod
    def _too_slow(delay: float, frequency: float) -> None:
        from analysis.tracking.tracker import LONGEST_DELAY

        if delay * frequency > LONGEST_DELAY:
            raise DataError(
                f"This branch needs a delay below {1e3 * LONGEST_DELAY / frequency:.2g} ms; the loop has "
                f"{1e3 * delay:.2g} ms."
            )

    def _plan(self, plant: LinearPlant) -> Plan:
        from analysis.tracking.tracking import Plan, phases_through

        asked = self._request
        begin = asked.begin if asked.begin is not None else BEGIN * asked.to
        amplitudes = tuple(float(a) for a in np.linspace(begin, asked.to, asked.points))
        if asked.kind == "frequency":
            return Plan("frequency", phases_through(plant, asked.points), asked.at, asked.to)
        return Plan(asked.kind, amplitudes, asked.at)


class _Rig:
    """The loop as tracking needs it (see analysis.tracking.tracking.TrackingRig)."""

    def __init__(self, bench: LoopBench, looked: Callable[[LoopStatus], object]) -> None:
        self._bench, self._looked = bench, looked
        self.install, self.let_go = bench.install, bench.let_go

    def seconds(self, duration: float) -> Any:
        stretch = self._bench.seconds(duration)
        self._looked(self._bench.status())
        return stretch

    def why_open(self) -> str:
        status = self._bench.status()
        return str(status.reason) if status.state in ("open", "letting go") else ""
