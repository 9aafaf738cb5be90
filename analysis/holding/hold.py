"""Holding one orbit: wait, catch, correct the target until nothing is forced, hold, judge.

A hold is accepted only if the orbit was never lost, the mean correction is small against the drive and
against its own floor, and the corrections themselves are small: without the last bound a limit cycle of the
loop would pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.base.words import percent
from analysis.holding.correct import unforced
from analysis.holding.holder import OrbitHolder
from analysis.holding.linearise import Deviations, linearise
from analysis.holding.orbit_estimate import estimate_orbit, shown_of_corrections, shown_of_modes
from analysis.holding.outlook import MOST_CONTROL, outputs_and_slopes
from analysis.holding.plant import LoopPlant
from analysis.holding.regulator import regulate
from analysis.holding.stretch import LoopRig, Stretch, estimated, folded
from analysis.holding.target import Target, lower_period

Array = NDArray[np.float64]

LONGEST_WAIT = 400  # periods of the drive
SETTLE = 4  # cycles of the orbit after a catch or a new target
WARM = 2  # cycles of the orbit before the estimator's states are used
HALF = 12  # cycles in each half of an average of the correction; at least HALF_PERIODS of the drive
HALF_PERIODS = 24
CORRECTIONS = 5
TRIES = 12  # averages of the correction, at most
FEW = 4.0  # mean correction over its floor below which the next average is taken over a long stretch
LARGEST_STEP = 0.15  # rms displacement of the target in one correction, over the motion's spread
STUCK = 0.7  # mean correction over the one before, above which a step was no progress
DONE = 1.5  # mean correction over its floor below which the target is right
MEAN_CONTROL, FLOORS = 0.002, 3.0  # mean correction over the amplitude, and over its floor
SCATTER = 0.1  # rms of the motion about its mean cycle, over its spread
MOVED = 0.5  # rms displacement of the target, over the motion's spread, beyond which it is another orbit


@dataclass(frozen=True, eq=False)
class HeldOrbit:
    """What came of one orbit. Corrections are over the drive's amplitude."""

    target: Target  # at its last place
    verdict: str  # held | invasive | limit cycle | lost | not caught | another orbit
    reason: str
    wait: float = np.nan  # periods until it was caught
    periods: int = 0  # held and averaged
    corrections: int = 0  # Newton steps of the target
    mean_control: float = np.nan
    floor: float = np.nan  # of the mean control, from its two halves
    control: float = np.nan  # rms
    orbit: Array = field(default_factory=lambda: np.empty((0, 0)))  # [channels, J] what they show of it
    band: Array = field(default_factory=lambda: np.empty((0, 0)))  # its standard error
    averaged: Array = field(default_factory=lambda: np.empty((0, 0)))  # the same without the model's help
    averaged_band: Array = field(default_factory=lambda: np.empty((0, 0)))
    averaged_halves: tuple[Array, ...] = ()  # ``averaged`` of each half of the hold
    multipliers: NDArray[np.complex128] = field(default_factory=lambda: np.empty(0, np.complex128))
    multiplier_errors: Array = field(default_factory=lambda: np.empty(0))
    losses: int = 0

    @property
    def held(self) -> bool:
        return self.verdict == "held"


@dataclass(frozen=True, eq=False)
class _Look:
    """A stretch of holding: mean motion and correction at the nodes of the target."""

    states: Array  # [n, J] mean estimate
    outputs: Array  # [channels, cycles, J]
    command: Array  # [J] mean over the amplitude
    floor: float  # rms of half the difference between the halves' means
    control: float  # rms of the corrections
    scatter: float  # rms of the estimates about their mean, in spreads
    halves: tuple[tuple[Array, Array, Array], ...]  # of each half: mean states, outputs and command

    @property
    def mean(self) -> float:
        return float(np.sqrt(np.mean(self.command**2)))


class Holding:
    """One orbit on a rig."""

    def __init__(
        self, rig: LoopRig, plant: LoopPlant, target: Target, draws: Sequence[Array] = (),
        longest_wait: float = LONGEST_WAIT, progress: Progress = SILENT,
    ) -> None:  # fmt: skip
        self._rig, self._plant, self._target, self._first = rig, plant, target, target
        self._draws, self._longest, self._progress = draws, longest_wait, progress
        self._dev: Deviations | None = None
        self._cycle = target.multiple
        self._wait, self._corrections, self._losses = np.nan, 0, 0

    def run(self, periods: int) -> HeldOrbit:
        """Hold for ``periods`` of the drive; the rig is left with the loop watching, not correcting."""
        try:
            return self._run(periods)
        finally:
            self._install(active=False)

    def _run(self, periods: int) -> HeldOrbit:
        self._install()
        if not self._catch(self._longest):
            return self._failed("not caught", f"the motion did not come near it in {self._longest:g} periods")
        look = self._settled_look(periods)
        return look if isinstance(look, HeldOrbit) else self._judged(look)

    def _failed(self, verdict: str, reason: str) -> HeldOrbit:
        return HeldOrbit(
            self._target, verdict, reason, self._wait, corrections=self._corrections, losses=self._losses
        )

    def _install(self, active: bool = True) -> None:
        self._dev = linearise(self._plant, self._target.states)
        self._rig.install(OrbitHolder(self._plant, self._target, regulate(self._dev), active))

    def _catch(self, longest: float) -> bool:
        """Wait until it is caught and has stayed so for a while."""
        waited, piece = 0.0, float(max(2, self._cycle))
        while waited < longest:
            self._progress.report(waited / longest, "waiting for the motion to come near")
            stretch = self._rig.run(piece)
            waited += piece
            if stretch.holding[-1]:
                first = piece - (stretch.phase[-1] - stretch.phase[np.argmax(stretch.holding)]) / (2 * np.pi)
                caught = waited - piece + max(first, 0.0)
                self._progress.report(waited / longest, "caught: the loop settles")
                if self._rig.run(SETTLE * self._cycle).held:
                    self._wait = caught if np.isnan(self._wait) else self._wait
                    return True
                self._losses += 1
                waited += SETTLE * self._cycle
        return False

    def _look(self, cycles: int) -> _Look | None:
        """Hold for an even number of cycles and average; None if the orbit was lost."""
        plant, k = self._plant, self._cycle
        parts: Stretch | None = None
        piece = 8 * k
        total = (cycles + WARM + 1) * k
        done = 0
        while done < total:
            self._progress.report(done / total, "holding")
            stretch = self._rig.run(min(piece, total - done))
            done += piece
            parts = stretch if parts is None else parts.joined(stretch)
            if not stretch.held:
                self._losses += 1
                return None
        assert parts is not None
        ticks, states = estimated(plant, parts, self._target)
        rows = np.concatenate([states, ticks.samples, ticks.command[None, :] / plant.amplitude])
        keep = ticks.phase >= ticks.phase[0] + WARM * k * 2 * np.pi
        cut = folded(rows[:, keep], ticks.phase[keep], k, plant.nodes)
        cut = cut[:, : cut.shape[1] - cut.shape[1] % 2][:, -cycles:]
        n = len(states)
        shift = _shift(cut[:n].mean(axis=1), self._target.states, plant.scale, plant.nodes)
        cut = np.roll(cut, shift, axis=2)
        half = cut.shape[1] // 2
        first, second = cut[:, :half].mean(axis=1), cut[:, half:].mean(axis=1)
        mean = cut.mean(axis=1)
        off = (cut[:n] - mean[:n, None]) / plant.scale[:, None, None]
        return _Look(
            mean[:n], cut[n:-1], mean[-1], float(np.sqrt(np.mean((first[-1] - second[-1]) ** 2)) / 2),
            float(np.sqrt(np.mean(cut[-1] ** 2))), float(np.sqrt(np.mean(off**2))),
            tuple((half[:n], half[n:-1], half[-1]) for half in (first, second)),
        )  # fmt: skip

    def _settled_look(self, periods: int) -> _Look | HeldOrbit:
        """Look, move the target, look again for longer, until the mean correction is lost in its floor.

        The last look, over all the periods asked for; a verdict where the orbit does not stay.
        """
        short = 2 * max(HALF, -(-HALF_PERIODS // self._cycle))
        whole = max(4, -(-periods // self._cycle))
        whole += whole % 2
        look: _Look | None = None
        long, before = False, np.inf
        for _ in range(TRIES):
            look = self._look(whole if long else min(short, whole))
            if look is None:
                if not self._catch(self._longest):
                    return self._failed("lost", "it was lost and did not come back")
                continue
            self._progress.report(1.0, "held and averaged", mean_control=look.mean, floor=look.floor)
            finished = long or short >= whole
            quiet = look.mean < DONE * look.floor
            stuck = look.mean < 0.5 * MEAN_CONTROL and look.mean > STUCK * before
            if finished and (quiet or stuck or self._corrections >= CORRECTIONS):
                return look
            before = look.mean if finished else np.inf
            if not quiet or finished:
                refused = self._correct(look)
                if refused is not None:
                    return refused
            long = long or quiet or look.mean < FEW * look.floor
        return look or self._failed("lost", "it was lost again and again")

    def _correct(self, look: _Look) -> HeldOrbit | None:
        """Move the target to where no correction would be needed; a verdict if that fails."""
        self._progress.report(1.0, "correcting the target")
        plant = self._plant
        assert self._dev is not None
        delta = unforced(self._dev, look.command) * plant.scale[:, None]
        step = float(np.sqrt(np.mean((delta / plant.scale[:, None]) ** 2)))
        self._target = replace(
            self._target, states=look.states + min(1.0, LARGEST_STEP / max(step, 1e-12)) * delta
        )
        away = (self._target.states - self._first.states) / plant.scale[:, None]
        if not np.sqrt(np.mean(away**2)) < MOVED:
            return self._failed("another orbit", "the correction led far away from it")
        self._corrections += 1
        try:
            self._install()
        except DataError as error:
            return self._failed("lost", str(error))
        if not self._rig.run(SETTLE * self._cycle).held:
            self._losses += 1
            if not self._catch(self._longest):
                return self._failed("lost", "it was lost after a correction of the target")
        return None

    def _judged(self, look: _Look) -> HeldOrbit:
        plant = self._plant
        assert self._dev is not None
        orbit, band, states, halves = self._orbit(look)
        averaged, plain_band = self._averaged(look)
        verdict, reason = verdict_of(look.mean, look.floor, look.control, look.scatter)
        if verdict == "held" and lower_period(states, plant.scale, self._cycle, plant.nodes):
            verdict, reason = "another orbit", "the motion that was held has a shorter period"
        multipliers, errors = multipliers_on(plant, states, halves, self._first.multipliers, self._draws)
        return HeldOrbit(
            replace(self._target, states=states), verdict, reason, self._wait,
            look.outputs.shape[1] * self._cycle, self._corrections, look.mean, look.floor, look.control,
            orbit, band, averaged, plain_band,
            tuple(self._plain(x, y, c) for x, y, c in look.halves),
            multipliers, errors, self._losses,
        )  # fmt: skip

    def _averaged(self, look: _Look) -> tuple[Array, Array]:
        """The channels' plain averages and standard errors: data that owe nothing to the model, but for the
        part that the mean correction forces, which is taken off."""
        mean, band = mean_and_error(look.outputs)
        return self._plain(look.states, mean, look.command), band

    def _plain(self, states: Array, mean: Array, command: Array) -> Array:
        """A mean of the channels without the part that the mean correction forces."""
        plant, k = self._plant, self._cycle
        assert self._dev is not None
        free = unforced(self._dev, command) * plant.scale[:, None]
        with_it, without = (outputs_and_slopes(plant, s, k)[0] for s in (states, states + free))
        return mean + without - with_it - shown_of_corrections(plant, command, k)

    def _orbit(self, look: _Look) -> tuple[Array, Array, Array, tuple[Array, Array]]:
        """What each channel shows of the orbit without corrections, its standard error, the states, and
        those of the two halves of the hold by themselves."""
        plant, k = self._plant, self._cycle
        mean, band = mean_and_error(look.outputs)
        typical = np.sqrt(np.mean(band**2, axis=1))
        states, errors = self._free(look.states, mean, typical, look.command)
        first, second = (self._free(x, y, np.sqrt(2) * typical, c)[0] for x, y, c in look.halves)
        if plant.modes:  # how much of them the channels show is known to some percent only
            return mean, band, states, (first, second)
        shown = outputs_and_slopes(plant, states, k)[0]
        apart = outputs_and_slopes(plant, first, k)[0] - outputs_and_slopes(plant, second, k)[0]
        return shown, widened(errors, apart), states, (first, second)

    def _free(self, states: Array, mean: Array, errors: Array, command: Array) -> tuple[Array, Array]:
        """States of the motion as it would be without corrections, and the errors of the channels."""
        plant = self._plant
        assert self._dev is not None
        free = unforced(self._dev, command) * plant.scale[:, None]
        theta = 2 * np.pi * self._cycle * np.arange(mean.shape[1]) / mean.shape[1]
        own = mean - shown_of_modes(plant, theta) - shown_of_corrections(plant, command, self._cycle)
        found = estimate_orbit(plant, states, own, errors, command, self._cycle)
        return found.states + free, found.errors


def widened(errors: Array, apart: Array) -> Array:
    """Errors [channels, J] of an orbit, not below what its two halves differ by (``apart``): those know what
    the model's errors do not."""
    seen = np.sqrt(np.mean(apart**2, axis=1) / 4)
    wider = np.maximum(1.0, seen / np.sqrt(np.mean(errors**2, axis=1)))
    return errors * wider[:, None]


def verdict_of(mean: float, floor: float, control: float, scatter: float) -> tuple[str, str]:
    """held, or what it was instead, with the reason in words."""
    if not (control < MOST_CONTROL and scatter < SCATTER):
        return "limit cycle", (
            f"the corrections are {percent(control)} of the drive and the motion scatters by "
            f"{percent(scatter)} of its spread: the loop moves the specimen"
        )
    allowed = max(MEAN_CONTROL, FLOORS * floor)
    if not mean < allowed:
        return "invasive", (
            f"a mean correction of {percent(mean)} of the drive stays (at most {percent(allowed)} "
            "would pass): the specimen has no such orbit by itself"
        )
    return "held", f"mean correction {percent(mean)} of the drive, floor {percent(floor)}"


def mean_and_error(cycles: Array) -> tuple[Array, Array]:
    """Mean [channels, J] over cycles [channels, cycles, J] and its standard error, cycles correlated."""
    count = cycles.shape[1]
    mean = cycles.mean(axis=1)
    off = cycles - mean[:, None]
    variance = (off**2).sum(axis=1) / max(count - 1, 1)
    total = (off**2).sum(axis=(1, 2))
    correlation = (off[:, 1:] * off[:, :-1]).sum(axis=(1, 2)) / np.maximum(total, 1e-300)
    correlation = np.clip(correlation, 0.0, 0.9)
    inflation = (1 + correlation) / (1 - correlation)
    return mean, np.sqrt(variance / count * inflation[:, None])


def multipliers_on(
    plant: LoopPlant,
    states: Array,
    halves: Sequence[Array],
    beside: NDArray[np.complex128],
    draws: Sequence[Array],
) -> tuple[NDArray[np.complex128], Array]:
    """Multipliers of the model linearised on a measured orbit, and their standard errors.

    The errors hold those of the parameters (``draws`` of them), of the orbit (its two halves), and of the
    model: how far those that another one gives (``beside``) lie from them.
    """
    found = linearise(plant, states).multipliers
    by_half = [linearise(plant, half).multipliers for half in halves]
    variance = np.abs(by_half[0] - by_half[1]) ** 2 / 4 + np.abs(found - beside) ** 2
    if len(draws):
        drawn = np.array([linearise(plant, states, values=values).multipliers for values in draws])
        variance = variance + np.mean(np.abs(drawn - found) ** 2, axis=0)
    return found, np.sqrt(variance)


def _shift(states: Array, target: Array, scale: Array, nodes: int) -> int:
    """By how many columns the mean motion must be turned to lie on its target."""
    shifts = range(0, target.shape[1], nodes)
    away = [np.mean(((np.roll(states, s, axis=1) - target) / scale[:, None]) ** 2) for s in shifts]
    return int(list(shifts)[int(np.argmin(away))])
