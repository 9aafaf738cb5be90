"""A rig with a model on it: drives in, information and limits out, and the drives worth a choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from analysis import (
    Bound,
    DataError,
    Knowledge,
    Model,
    Progress,
    Prospect,
)
from drivers.base.waveform import Part, Segments, Sweep, Waveform
from drivers.rig.player import SOFT_START
from drivers.rig.profile import ChannelProfile, RigError, RigProfile
from drivers.rig.shaker_path import ShakerPath, shaker_path
from drivers.rig.shapes import bands, check_plays, multisine, rig_band, rounded_down, shapes, working_band

Array = NDArray[np.float64]

SLOTS = 8  # segments of a plan, at most
SHORTEST = 2.5  # s, of a segment
MEMORIES = 4.0  # of the specimen's memory that a segment lasts at least
DRAWS = 10  # of what the truth may be, for choosing
FIRST_DRAWS = 2  # for a first look at all candidates
PIECES = 40  # of a drive, between which what it tells is taken to grow evenly
CHECKED = 100  # of them, for the limits
BROKEN = 0.02  # share of those in which a limit may be broken
MARGIN = 0.1  # by which the limits are kept while choosing
LOWER = 0.8  # factor between two amplitudes that are tried
LEVELS = (1.0, 0.5)  # of the largest amplitude that keeps the limits
_TRIES = 30


@dataclass(frozen=True, eq=False)
class Bench:
    """A rig with a model on it: drives in, information out."""

    profile: RigProfile
    path: ShakerPath
    prospect: Prospect
    prior: Array
    draws: Array

    def inputs(self, drive: Waveform, seconds: float, begins: bool = False) -> Array:
        """The model's inputs [m, N]; ``begins``: with the soft start of a drive that is played alone."""
        samples = drive.generator(self.profile.rate).take(round(seconds * self.profile.rate))
        if begins:
            level = np.minimum(np.arange(len(samples)) / (SOFT_START * self.profile.rate), 1.0)
            samples = samples * np.sin(0.5 * np.pi * level) ** 2
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

    def course(self, drive: Waveform, seconds: float) -> Array:
        """Information [parts, D, U, U] of consecutive parts of a drive that can be followed."""
        inputs = self.inputs(drive, seconds, begins=True)
        runs = [(self.prospect.motion(inputs, values), values) for values in self.draws]
        return np.stack([self.prospect.course(r, v, PIECES) for r, v in runs if r is not None], axis=1)

    def with_few_draws(self) -> Bench:
        """The same for a first look: fewer draws, inputs taken as exact."""
        exact = replace(self.prospect, input_noise=np.zeros_like(self.prospect.input_noise))
        return replace(self, prospect=exact, draws=self.draws[:FIRST_DRAWS])

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
            if self.keeps(played(shape, seconds), seconds, MARGIN):
                return shape
            shape = replace(shape, amplitude=rounded_down(LOWER * shape.amplitude))
        return None


def bench_of(knowledge: Knowledge, profile: RigProfile, rng: np.random.Generator) -> tuple[Bench, list[str]]:
    model = knowledge.model
    check_plays(profile)
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


def played(shape: Waveform, seconds: float) -> Segments:
    """One waveform as the whole of a drive."""
    return Segments(shape.amplitude, (Part(shape, seconds),))


T = TypeVar("T")


def candidates(
    benches: Sequence[Bench], seconds: float, tell: Callable[[Segments], T | None], progress: Progress
) -> list[tuple[Waveform, T]]:
    """Drives of a segment at some amplitudes within the limits, with what ``tell`` says of each."""
    profile, resonances = benches[0].profile, benches[0].prospect.resonances()
    band = working_band(profile.limits, profile.rate, resonances)
    whole = multisine(profile.limits, rig_band(profile.limits, profile.rate), seconds)
    tried = [*shapes(profile.limits, band, resonances, seconds), whole]
    found: list[tuple[Waveform, T]] = []
    for i, shape in enumerate(tried):
        progress.report(0.85 * i / len(tried), f"trying a {shape.kind}")
        for one in _amplitudes(benches, shape, seconds):
            told = tell(played(one, seconds))
            if told is not None:
                found.append((one, told))
    if not found:
        raise RigError(
            f"No drive that '{profile.key}' can play moves the specimen within its limits in "
            f"{DRAWS} draws of the present uncertainty."
        )
    return found


def _largest(benches: Sequence[Bench], shape: Waveform, seconds: float) -> Waveform | None:
    found: Waveform | None = shape
    for bench in benches:
        found = None if found is None else bench.largest(found, seconds)
    return found


def _amplitudes(benches: Sequence[Bench], shape: Waveform, seconds: float) -> list[Waveform]:
    largest = _largest(benches, shape, seconds)
    if largest is None:
        return []
    others = [replace(largest, amplitude=rounded_down(level * largest.amplitude)) for level in LEVELS]
    return [
        one for one in others
        if one == largest or all(b.keeps(played(one, seconds), seconds, MARGIN) for b in benches)
    ]  # fmt: skip


def usual_drive(benches: Sequence[Bench], seconds: float) -> Segments | None:
    """A low-crest multisine over the rig's band, as large as the limits allow, to compare plans with."""
    profile = benches[0].profile
    shape = multisine(profile.limits, rig_band(profile.limits, profile.rate), seconds)
    found = _largest(benches, shape, seconds)
    return None if found is None else played(found, seconds)


def whole_drives(bench: Bench, seconds: float) -> list[Segments]:
    """Multisines of the whole length over several bands: without the pauses between segments."""
    profile, resonances = bench.profile, bench.prospect.resonances()
    band = working_band(profile.limits, profile.rate, resonances)
    tried = [
        _largest([bench], multisine(profile.limits, one, seconds, seed), seconds)
        for one in bands(band, resonances)
        for seed in (None, 0)
    ]
    return [played(one, seconds) for one in tried if one is not None]


def segments_in(seconds: float, memory: float = 0.0) -> tuple[int, float]:
    """How many segments a plan of that length has, and how long each is: some memories of the specimen."""
    if not (np.isfinite(seconds) and seconds >= SHORTEST):
        raise DataError(f"A plan lasts at least {SHORTEST:g} s, not {seconds:g}.")
    slots = int(np.clip(seconds / max(SHORTEST, MEMORIES * memory), 1, SLOTS))
    return slots, seconds / slots


def assembled(chosen: list[Waveform], each: float) -> Segments:
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


def kept(
    benches: Sequence[Bench], drive: Segments, seconds: float, rng: np.random.Generator, progress: Progress
) -> tuple[Segments, float]:
    """The drive with those parts made smaller that break a limit in more than BROKEN of many draws."""
    share = 0.0
    for bench in benches:
        drive, broken = _kept_on(bench, drive, seconds, rng, progress)
        share = max(share, broken)
    return drive, share


def _kept_on(
    bench: Bench, drive: Segments, seconds: float, rng: np.random.Generator, progress: Progress
) -> tuple[Segments, float]:
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
        parts[worst] = replace(
            parts[worst], waveform=replace(shape, amplitude=rounded_down(LOWER * shape.amplitude))
        )
        drive = _segments(parts)
    raise RigError(f"No drive was found on '{bench.profile.key}' that keeps the limits in {CHECKED} draws.")


def _part_at(time: float, drive: Segments) -> int:
    ends = np.cumsum([p.seconds for p in drive.parts])
    return min(int(np.searchsorted(ends, time, side="right")), len(drive.parts) - 1)
