"""The rig in motion: dither test, then one orbit after the other."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis import DataError, Progress, ShakedownError, Step
from app.holding.study import Study, pairs

if TYPE_CHECKING:
    from analysis.holding.completed import CompletedModel
    from analysis.holding.dither_fit import DitherResult
    from analysis.holding.hold import HeldOrbit
    from analysis.holding.plant import LoopPlant
    from analysis.holding.stretch import Stretch
    from app.loop_bench import LoopBench
    from drivers.base.protocols import LoopStatus

DITHER = 0.03  # rms of the dither test, of the drive's amplitude
REST_SECONDS = 3.0  # for a specimen to come to rest, and REST_PERIODS of the drive at least
REST_PERIODS = 20
LOOK_SECONDS = 0.5  # with the drive off, for a loop that runs to measure its delay
LEAST_PERIODS = 20  # of the drive, held and averaged
TEST_SECONDS = 15.0  # coming to rest, dither test and rise of the drive, about
NEARLY = 0.97  # of an orbit's time: more than it was expected to take says nothing about its end


@dataclass(frozen=True)
class HoldRequest:
    """What is asked for, checked."""

    periods: int = 200  # of the drive, held and averaged
    wait: float = 400.0  # longest, in periods

    def __post_init__(self) -> None:
        if self.periods < LEAST_PERIODS or not self.wait > 0:
            raise DataError(
                f"An orbit is held for {LEAST_PERIODS} periods at least, and the wait is positive."
            )


@dataclass(frozen=True)
class HoldState:
    """What goes on, for who watches. Corrections are over the drive's amplitude."""

    doing: str = ""  # in words
    orbit: int = 0  # its number; 0: none yet
    expected_wait: float = math.nan  # periods
    control: float = math.nan  # rms of the corrections of the last look
    mean_control: float = math.nan  # that stays, and its floor
    floor: float = math.nan
    loop: LoopStatus | None = None


UNCHECKED = "held, not checked"  # until the completed model has been asked whether it is the specimen's
UNASKED = "no completed model could be computed to tell whether it is the specimen's own orbit"
NO_LOOP = "with this model and these sensors no loop is quick enough for it: a better fit may help"
NO_ANSWER = (ShakedownError, np.linalg.LinAlgError)  # of a computation that must not cost what was held
ELSEWHERE = (
    "no motion of the model, completed by what the record shows it to miss, looks like the one that was held"
)


class HoldWork:
    """Holds orbits of a study on a rig. What it found by the time it ended is in ``result``."""

    def __init__(
        self, bench: LoopBench, study: Study, request: HoldRequest, progress: Progress,
        shown: Callable[[HoldState], object] = lambda state: None,
        finished: Callable[[dict[str, Any]], object] = lambda orbit: None,
    ) -> None:  # fmt: skip
        """``shown`` hears of every step, ``finished`` of every orbit that is through."""
        self._bench, self._study, self._request, self._progress = bench, study, request, progress
        self._shown, self._finished = shown, finished
        self._state = HoldState()
        self._loop: LoopStatus | None = None  # as it was last
        self._dither: DitherResult | None = None
        self._plant: LoopPlant = study.plant
        self._done: list[dict[str, Any]] = []
        self._held: dict[int, HeldOrbit] = {}  # what came of each orbit, by its number
        self._waits: dict[int, float] = {}  # expected, of each chosen orbit, in periods
        self._planned: list[float] = []  # s that each chosen orbit should take
        self._place, self._passed = 0, 0.0  # the one that is held, and s since it was begun

    def run(self, chosen: Sequence[int]) -> None:
        """Hold the orbits of these places in the study's list, one after the other."""
        bench = self._bench
        self._check_room()
        self._expect(chosen)
        bench.begin((*self._plant.channels, self._study.model.inputs[0]), self._plant.frequency)
        if self._too_slow_for_all(chosen):
            return
        self._test()
        bench.record()
        self._show(doing="the drive rises and settles")
        bench.drive()
        for place, number in enumerate(chosen):
            self._place, self._passed = place, 0.0
            told = self._one(number)
            self._done.append(told)
            self._loop = bench.status()
            self._finished(told)

    def _expect(self, chosen: Sequence[int]) -> None:
        """How long it should take, for who waits."""
        self._waits = {number: self._study.wait(self._study.targets[number]) for number in chosen}
        periods = [min(self._waits[n], self._request.wait) + self._request.periods for n in chosen]
        self._planned = [p / self._plant.frequency for p in periods]

    def _show(self, **changed: Any) -> None:
        self._state = replace(self._state, **changed)
        self._shown(self._state)

    def _check_room(self) -> None:
        from analysis.holding.holder import BOUND

        plant, limits = self._plant, self._study.profile.limits
        if plant.amplitude * (1 + 0.2 * BOUND) > limits.peak:
            raise DataError(
                f"The drive of {plant.amplitude:g} leaves no room for corrections below the limit of "
                f"{limits.peak:g}."
            )

    def _too_slow_for_all(self, chosen: Sequence[int]) -> bool:
        """Whether the loop is known to be too slow before anything has moved; each orbit is told then.

        A loop that runs while the drive is off measures the delay of its calls; the dither test finds what
        the rest of the path adds.
        """
        self._bench.seconds(LOOK_SECONDS)
        self._loop = loop = self._bench.status()
        if not loop.delay > 0:
            return False
        from analysis.holding.outlook import longest_delay

        limits = [longest_delay(self._plant, self._study.targets[number]) for number in chosen]
        if any(loop.delay < limit for limit in limits):
            return False
        for number, limit in zip(chosen, limits, strict=True):
            told = self._described(number) | _not_tried(limit, loop.delay)
            self._done.append(told)
            self._finished(told)
        return True

    def _test(self) -> None:
        """Dither at rest: the loop's delay, the gain of its path, modes that only the sensors see."""
        from analysis.holding.dither import REPEATS, Dither, dither_sequence, response
        from analysis.holding.dither_fit import read_dither
        from analysis.holding.plant import ActuatorPath
        from analysis.holding.tuning import refitted
        from drivers.base.waveform import Sine

        plant, bench = self._plant, self._bench
        sequence = dither_sequence(plant.frequency, plant.rate, DITHER * plant.amplitude)
        self._show(doing="the specimen comes to rest")
        bench.play(Sine(0.0, plant.frequency))  # no drive: only the corrections pass
        still = bench.seconds(max(REST_SECONDS, REST_PERIODS / plant.frequency))
        self._show(doing="dither test")
        bench.install(Dither((*plant.channels, self._study.model.inputs[0]), sequence))
        length = len(sequence)
        bench.seconds(1.0 + length / plant.rate)  # the first answer is no steady one
        seen = bench.seconds(REPEATS * length / plant.rate)
        self._loop = bench.status()
        bench.let_go("the dither test is over")
        bench.seconds(0.2)
        found = response(seen.samples, seen.command, sequence, plant.rate)
        states = self._at_rest(still.samples[:-1, -max(20, length // 4) :].mean(axis=1))
        start = ActuatorPath(plant.path.gain, 0.0, self._loop.delay, self._loop.jitter)
        self._dither = read_dither(
            found, plant.model, plant.channels, states, 1 / plant.rate, start, plant.scale
        )
        self._plant = replace(plant, path=self._dither.path, modes=self._dither.modes)
        if self._dither.modes:  # what the model alone could not follow
            self._plant = refitted(self._plant, self._study.subject)
        if not np.isfinite(self._plant.path.delay):
            raise DataError("The dither test gave no delay.")
        self._show(loop=replace(self._loop, delay=self._plant.path.delay))

    def _at_rest(self, outputs: np.ndarray[Any, Any]) -> Any:
        """The model's equilibrium that looks as the specimen does at rest."""
        from analysis import driven_by_a_tone, equilibria

        model, plant = self._study.model, self._plant
        spans = {
            name: (float(row.min() - np.ptp(row)), float(row.max() + np.ptp(row)))
            for name, row in zip(model.states, self._study.subject.states, strict=True)
        }
        free = driven_by_a_tone(model, plant.frequency, 0.0)
        found = [e.state for e in equilibria(free, spans)]
        if not found:
            raise DataError(f"{model.name} has no state of rest: the dither test cannot be read.")
        y = np.empty(len(model.outputs))
        kernels = model.kernels()

        def away(state: Any) -> float:
            kernels.out(0.0, np.ascontiguousarray(state), np.zeros(1), model.values(), y)
            seen = y[plant.rows]
            return float(np.sum((seen - outputs) ** 2))

        return min(found, key=away)

    def _described(self, number: int) -> dict[str, Any]:
        """What is known of an orbit before it is held."""
        target = self._study.targets[number]
        return {
            "number": number + 1,
            "periods": target.multiple,
            "model_multipliers": pairs(target.multipliers),
            "expected_wait": self._waits[number],
        }

    def _one(self, number: int) -> dict[str, Any]:
        from analysis.holding.hold import Holding
        from analysis.holding.outlook import MOST_CONTROL, expected_control, longest_delay

        target, told = self._study.targets[number], self._described(number)
        wait = told["expected_wait"]
        self._show(
            orbit=number + 1, expected_wait=wait, control=math.nan, mean_control=math.nan, floor=math.nan
        )
        control = expected_control(self._plant, target)
        if control > MOST_CONTROL:
            return told | _not_tried(longest_delay(self._plant, target), self._plant.path.delay)
        held = Holding(
            _Sensors(self._bench, self._plant, self._looked), self._plant, target, self._study.draws(),
            self._request.wait, Progress(self._stepped, self._progress.cancelled),
        ).run(self._request.periods)  # fmt: skip
        self._held[number + 1] = held
        verdict = {"verdict": UNCHECKED} if held.held else {}
        return told | {"expected_control": control} | _held_in_words(held, self._plant) | verdict

    def _stepped(self, step: Step) -> None:
        own = min(self._passed, NEARLY * self._planned[self._place])
        done = TEST_SECONDS + sum(self._planned[: self._place]) + own
        self._progress.report(done / (TEST_SECONDS + sum(self._planned)), step.message)
        self._show(doing=step.message, **step.values)

    def _looked(self, stretch: Stretch) -> None:
        """What the corrections were in the stretch that has just passed."""
        self._passed += stretch.samples.shape[1] / self._plant.rate
        control = float(np.sqrt(np.mean(stretch.command**2)) / self._plant.amplitude)
        self._show(control=control, loop=self._bench.status())

    def complete(self) -> None:
        """With the rig at rest: the orbits and their multipliers by the model with what the record shows it
        to miss.
        """
        from analysis.holding.completed import completed_models

        held = {number: orbit for number, orbit in self._held.items() if orbit.held}
        with contextlib.suppress(*NO_ANSWER):
            completed = completed_models(self._study.subject, self._plant) if held else []
            for told in self._done:
                if told["number"] in held and completed:
                    with contextlib.suppress(*NO_ANSWER):
                        told |= self._completed(held[told["number"]], completed)
        for told in self._done:
            if told["verdict"] == UNCHECKED:  # what the model misses is not known: the averages do not ask it
                told |= {"verdict": "held", "reason": UNASKED, "orbit": told["averaged"]}

    def _completed(self, held: HeldOrbit, completed: Sequence[CompletedModel]) -> dict[str, Any]:
        """What the completed models say of an orbit that was held."""
        from analysis.holding.completed import FARTHEST, completed_orbit

        found = completed_orbit(self._plant, held, completed)
        if not found.away < FARTHEST:
            return {"verdict": "another orbit", "reason": ELSEWHERE}
        told: dict[str, Any] = {
            "verdict": "held",
            "multipliers": pairs(found.multipliers),
            "multiplier_errors": found.multiplier_errors,
            "states": dict(zip(self._study.model.states, found.states, strict=True)),
        }
        if not self._plant.modes:  # else the channels show those too
            told["orbit"] = _in_channels(self._plant, found.shown, found.band)
        return told

    def result(self, files: Sequence[str], problem: str) -> dict[str, Any]:
        """What is written to the result's file; ``problem``: why it ended early, in words."""
        path, loop = self._plant.path, self._loop
        return {
            "rig": self._study.profile.key,
            "model": self._study.model.name,
            "channels": self._plant.channels,
            "drive": {"frequency": self._plant.frequency, "amplitude": self._plant.amplitude},
            "files": list(files),
            "loop": None if loop is None else dict(vars(loop)),
            "path": None
            if self._dither is None
            else {"gain": path.gain, "lag": path.lag, "delay": path.delay, "jitter": path.jitter},
            "modes": [
                {"frequency": m.frequency / (2 * math.pi), "damping": m.damping} for m in self._plant.modes
            ],
            "orbits": self._done,
            "offered": len(self._done),
            "held": sum(o["verdict"] == "held" for o in self._done),
            "problem": problem or None,
        }  # fmt: skip


class _Sensors:
    """The loop as holding needs it: without the channel of the force; who watches hears of each stretch."""

    def __init__(self, bench: LoopBench, plant: LoopPlant, looked: Callable[[Stretch], object]) -> None:
        self._bench, self._plant, self._looked = bench, plant, looked

    def install(self, controller: Any) -> None:
        self._bench.install(controller)

    def run(self, periods: float) -> Stretch:
        stretch = self._bench.seconds(periods / self._plant.frequency)
        self._looked(stretch)
        return replace(stretch, samples=stretch.samples[: len(self._plant.channels)])


def _not_tried(limit: float, delay: float) -> dict[str, Any]:
    needs = f"this orbit needs less than {1e3 * limit:.3g} ms; the loop has {1e3 * delay:.3g} ms"
    return {"verdict": "not tried", "reason": needs if limit > 0 else NO_LOOP}


def _in_channels(plant: LoopPlant, means: Any, bands: Any) -> dict[str, Any]:
    return {
        name: {"mean": row, "stderr": band}
        for name, row, band in zip(plant.channels, means, bands, strict=False)
    }


def _held_in_words(held: HeldOrbit, plant: LoopPlant) -> dict[str, Any]:
    from analysis.holding.holder import base_forces

    names = plant.model.states
    count = held.target.states.shape[1]
    phase = 2 * np.pi * held.target.multiple * np.arange(count) / count
    return {
        "verdict": held.verdict,
        "reason": held.reason,
        "wait": held.wait,
        "averaged_periods": held.periods,
        "corrections": held.corrections,
        "losses": held.losses,
        "mean_control": held.mean_control,
        "floor": held.floor,
        "control": held.control,
        "phase": phase.tolist(),
        "orbit": _in_channels(plant, held.orbit, held.band),
        "averaged": _in_channels(plant, held.averaged, held.averaged_band),
        "input": {plant.model.inputs[0]: base_forces(plant, phase)},
        "states": dict(zip(names, held.target.states, strict=True)),
        "multipliers": pairs(held.multipliers),
        "multiplier_errors": held.multiplier_errors,
    }
