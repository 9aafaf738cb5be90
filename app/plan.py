"""A plan of the next record: the drive that tells most, made from a fit and a rig's profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import (
    SILENT,
    Bound,
    Criterion,
    DataError,
    Identification,
    Knowledge,
    Model,
    Progress,
    Prospect,
    choose_segments,
    knowledge_of,
    seconds_needed,
    stderr_after,
)
from drivers.base.waveform import Part, Segments, Sweep, Waveform
from drivers.rig.profile import ChannelProfile, RigError, RigProfile
from drivers.rig.shaker_path import ShakerPath, shaker_path
from drivers.rig.shapes import check_plays, multisine, shapes, working_band

Array = NDArray[np.float64]

SLOTS = 8  # segments of a plan, at most
SHORTEST = 2.5  # s, of a segment
DRAWS = 10  # of what the truth may be, for choosing
CHECKED = 100  # of them, for the limits
BROKEN = 0.02  # share of those in which a limit may be broken
MARGIN = 0.1  # by which the limits are kept while choosing
LOWER = 0.8  # factor between two amplitudes that are tried
LEVELS = (1.0, 0.6, 0.35)  # of the largest amplitude that keeps the limits
_TRIES = 30


@dataclass(frozen=True, eq=False)
class Plan:
    """The drive, what it is predicted to tell, and what a multisine over the band would."""

    rig: str
    knowledge: Knowledge
    criterion: Criterion
    seconds: float
    drive: Segments
    predicted: Array  # [U] standard errors after the plan's record and the present ones together
    alone: Array  # [U] from the plan's record alone
    by_multisine: Array  # [U] from a low-crest multisine of the same length and limits, alone
    broken: float  # share of the draws in which a limit is broken
    bounds: tuple[Bound, ...]
    without: dict[str, Array] = field(default_factory=dict)  # by sensor: ``predicted`` if it is left out
    needed: float | None = None  # s of this drive for the target; None: no target was given
    target: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.knowledge.names


@dataclass(frozen=True, eq=False)
class Bench:
    """A rig with a model on it: drives in, information out."""

    profile: RigProfile
    path: ShakerPath
    prospect: Prospect
    prior: Array
    draws: Array

    def inputs(self, drive: Waveform, seconds: float) -> Array:
        samples = drive.generator(self.profile.rate).take(round(seconds * self.profile.rate))
        return self.path.inputs_of(self.prospect.knowledge.model.inputs, samples, self.profile.rate)

    def information(self, drive: Waveform, seconds: float, without: Sequence[str] = ()) -> Array | None:
        """Information [D, U, U] by draw; None where a motion grows without bound."""
        inputs, found = self.inputs(drive, seconds), []
        for values in self.draws:
            run = self.prospect.motion(inputs, values)
            if run is None:
                return None
            found.append(self.prospect.information(run, values, without=without))
        whole = np.array(found)
        return whole if np.isfinite(whole).all() else None

    def keeps(self, drive: Waveform, seconds: float, margin: float) -> bool:
        """Whether the limits are kept with that margin in every draw."""
        inputs = self.inputs(drive, seconds)
        return all(
            self.prospect.broken(self.prospect.motion(inputs, values), inputs, margin) is None
            for values in self.draws
        )

    def largest(self, shape: Waveform, seconds: float) -> Waveform | None:
        """The shape at the largest amplitude that keeps the limits; None if none of those tried does."""
        for _ in range(_TRIES):
            if self.keeps(_played(shape, seconds), seconds, MARGIN):
                return shape
            shape = replace(shape, amplitude=LOWER * shape.amplitude)
        return None


def make_plan(
    model: Model,
    fit: Identification,
    profile: RigProfile,
    seconds: float = 60.0,
    criterion: Criterion = "D",
    target: float | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Plan:
    """The drive of that length which shrinks the error bars of the fit most; an error where there is none."""
    if not (np.isfinite(seconds) and seconds >= SHORTEST):
        raise DataError(f"A plan lasts at least {SHORTEST:g} s, not {seconds:g}.")
    check_plays(profile)
    knowledge, rng = knowledge_of(model, fit), np.random.default_rng(seed)
    bench, warnings = _bench(knowledge, profile, rng)
    resonances = bench.prospect.resonances()
    band = working_band(profile.limits, profile.rate, resonances)
    slots = int(np.clip(seconds / SHORTEST, 1, SLOTS))
    each = seconds / slots
    default = bench.largest(multisine(profile.limits, band, seconds), seconds)
    candidates = _candidates(bench, shapes(profile.limits, band, resonances, each), each, progress)
    if not candidates:
        raise RigError(
            f"No drive that '{profile.key}' can play moves the specimen within its limits in "
            f"{DRAWS} draws of the present uncertainty."
        )
    table = np.array([found for _, found in candidates])
    chosen = choose_segments(table, bench.prior, slots, criterion)
    drive = _assembled([candidates[c][0] for c in chosen], each)
    drive, broken = _kept(bench, drive, seconds, rng, progress)
    best = bench.information(drive, seconds)
    plain = None if default is None else bench.information(_played(default, seconds), seconds)
    if best is None or (plain is not None and _merit(plain, bench) > _merit(best, bench)):
        assert default is not None and plain is not None
        drive, broken = _kept(bench, _played(default, seconds), seconds, rng, progress)
        best = plain
    nothing = np.zeros_like(bench.prior)
    sensors = [name for name in model.outputs if name in bench.prospect.noise]
    without = {}
    for name in sensors if len(sensors) > 1 else ():
        less = bench.information(drive, seconds, without=(name,))
        if less is not None:
            without[name] = stderr_after(less, bench.prior)
    needed = None
    if target is not None:
        needed = seconds_needed(knowledge.values, best, seconds, target, bench.prior)
    progress.report(1.0, "planned")
    return Plan(
        profile.key,
        knowledge,
        criterion,
        seconds,
        drive,
        stderr_after(best, bench.prior),
        stderr_after(best, nothing),
        np.full(len(knowledge.names), np.nan) if plain is None else stderr_after(plain, nothing),
        broken,
        bench.prospect.bounds,
        without,
        needed,
        target,
        tuple(warnings),
    )


def _merit(information: Array, bench: Bench) -> float:
    return float(np.linalg.slogdet(bench.prior + information)[1].mean())


def _bench(knowledge: Knowledge, profile: RigProfile, rng: np.random.Generator) -> tuple[Bench, list[str]]:
    model = knowledge.model
    if not model.inputs:
        raise DataError(
            f'{model.name} has no measured input: a plan needs the drive as one (f = "measured").'
        )
    path, warnings = shaker_path(profile), []
    channels = {c.name: c for c in profile.channels}
    noise: dict[str, float] = {}
    for name in model.outputs:
        if name not in channels:
            continue
        known = knowledge.noise.get(name) or _channel_noise(profile, channels[name])
        if known > 0:
            noise[name] = known
        else:
            warnings.append(f"The noise of {name} is not known: the plan does not count on it.")
    exact = np.array([_channel_noise(profile, channels[n]) if n in channels else 0.0 for n in model.inputs])
    prospect = Prospect(
        knowledge,
        profile.rate,
        noise,
        exact,
        min(profile.limits.highest_frequency, 0.2 * profile.rate),
        _bounds(profile, path, model),
    )
    prospect = prospect.with_fine_steps(
        path.inputs_of(
            model.inputs,
            0.3 * profile.limits.peak * np.cos(2 * np.pi * prospect.highest * np.arange(4000) / profile.rate),
            profile.rate,
        )
    )
    prospect = prospect.at_rest(2000 / prospect.highest)
    draws = knowledge.draws(DRAWS, rng)
    return Bench(profile, path, prospect, knowledge.information, draws), warnings


def _channel_noise(profile: RigProfile, channel: ChannelProfile) -> float:
    """Standard deviation in the channel's unit, as the profile states it: noise and the converter's steps."""
    bits = profile.instruments["source"].get("bits")
    step = 2 * channel.range / 2.0**bits if isinstance(bits, int) else 0.0
    if not channel.noise:
        return 0.0
    return float(np.hypot(channel.noise, step / np.sqrt(12)) / abs(channel.sensitivity))


def _bounds(profile: RigProfile, path: ShakerPath, model: Model) -> tuple[Bound, ...]:
    """Trip levels and ranges of the channels, the shaker's travel, and the specimen's end stops."""
    known = {*model.outputs, *model.states, *model.inputs}
    found: list[Bound] = []
    for c in profile.channels:
        if c.name not in known:
            continue
        info = c.info()
        found.append(Bound(c.name, info.lower, info.upper, "the range of its sensor"))
        if c.limit is not None:
            found.append(Bound(c.name, -abs(c.limit), abs(c.limit), "its limit in the profile"))
    for name, kind in path.inputs.items():
        if kind == "table" and name in model.inputs and np.isfinite(path.travel):
            reach = abs(path.scale.get(name, 1.0)) * path.travel
            found.append(Bound(name, -reach, reach, "the shaker's travel"))
    stop = profile.instruments["source"].get("specimen", {}).get("stop") if profile.virtual else None
    if stop and stop.get("position") in known:
        found.append(Bound(str(stop["position"]), -stop["at"], stop["at"], "the specimen's end stop"))
    return tuple(found)


def _played(shape: Waveform, seconds: float) -> Segments:
    return Segments(shape.amplitude, (Part(shape, seconds),))


def _candidates(
    bench: Bench, all_shapes: list[Waveform], seconds: float, progress: Progress
) -> list[tuple[Waveform, Array]]:
    """Each shape at some amplitudes within the limits, with its information by draw."""
    found: list[tuple[Waveform, Array]] = []
    for i, shape in enumerate(all_shapes):
        progress.report(0.85 * i / len(all_shapes), f"trying a {shape.kind}")
        largest = bench.largest(shape, seconds)
        for level in LEVELS if largest is not None else ():
            assert largest is not None
            tried = replace(largest, amplitude=level * largest.amplitude)
            if level == 1.0 or bench.keeps(_played(tried, seconds), seconds, MARGIN):
                information = bench.information(_played(tried, seconds), seconds)
                if information is not None:
                    found.append((tried, information))
    return found


def _assembled(chosen: list[Waveform], each: float) -> Segments:
    """The chosen segments, from the weakest to the strongest, equal ones as one without edges between."""
    parts: list[Part] = []
    for waveform in sorted(chosen, key=lambda w: (w.amplitude, w.kind, w.band)):
        if parts and parts[-1].waveform == waveform and not isinstance(waveform, Sweep):
            parts[-1] = Part(waveform, parts[-1].seconds + each)
        else:
            parts.append(Part(waveform, each))
    return _segments(parts)


def _segments(parts: list[Part]) -> Segments:
    return Segments(max(p.waveform.amplitude for p in parts), tuple(parts))


def _kept(
    bench: Bench, drive: Segments, seconds: float, rng: np.random.Generator, progress: Progress
) -> tuple[Segments, float]:
    """The drive with those parts made smaller that break a limit in more than BROKEN of many draws."""
    draws = bench.prospect.knowledge.draws(CHECKED, rng)
    for attempt in range(_TRIES):
        progress.report(0.85 + 0.1 * attempt / _TRIES, "checking the limits")
        inputs, guilty = bench.inputs(drive, seconds), np.zeros(len(drive.parts), dtype=int)
        broken = 0
        for values in draws:
            run = bench.prospect.motion(inputs, values)
            if bench.prospect.broken(run, inputs) is not None:
                broken += 1
                guilty[_part_at(bench.prospect.first_break(run, inputs) / bench.profile.rate, drive)] += 1
        if broken <= BROKEN * len(draws):
            return drive, broken / len(draws)
        parts = list(drive.parts)
        worst = int(np.argmax(guilty))
        shape = parts[worst].waveform
        parts[worst] = replace(parts[worst], waveform=replace(shape, amplitude=LOWER * shape.amplitude))
        drive = _segments(parts)
    raise RigError(f"No drive was found on '{bench.profile.key}' that keeps the limits in {CHECKED} draws.")


def _part_at(time: float, drive: Segments) -> int:
    ends = np.cumsum([p.seconds for p in drive.parts])
    return min(int(np.searchsorted(ends, time, side="right")), len(drive.parts) - 1)


def plan_table(plan: Plan) -> dict[str, Any]:
    """The plan as its TOML file holds it: what `acquire --drive` plays, as long as the target needs."""
    longer = plan.needed is not None and 0 < plan.needed < np.inf
    return {
        "name": f"Plan for {plan.knowledge.model.name}",
        "rig": plan.rig,
        "seconds": float(np.ceil(plan.needed)) if plan.needed and longer else plan.seconds,
        "drive": _without_none(plan.drive.describe()),
    }


def _without_none(table: Any) -> Any:
    """What TOML can hold: a number that is not given is left out."""
    if isinstance(table, dict):
        return {k: _without_none(v) for k, v in table.items() if v is not None}
    return [_without_none(v) for v in table] if isinstance(table, list) else table
