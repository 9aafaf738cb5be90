"""One record as a model sees it: outputs, inputs as functions of the model's time, and their noise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.gaps import filled
from analysis.base.record import Record
from analysis.experiment.outliers import dropped_out, pressed_flat, spikes
from analysis.experiment.turns import counted_turns
from analysis.signal.bandlimited import without_dispersion
from analysis.signal.inputs import Inputs
from analysis.signal.smoothing import clean_input

if TYPE_CHECKING:
    from analysis.experiment.conditions import Conditions
    from analysis.model import Model

Array = NDArray[np.float64]
Phase = Literal["recorded", "unknown", "none"]

SPIKES = (
    "1 sample of {name} lies far off its neighbours (a spike): it counts as missing.",
    "{count} samples of {name} lie far off their neighbours (spikes): they count as missing.",
)
FLAT = (
    "1 sample of {name} stands at the limit of its range: it counts as missing.",
    "{count} samples of {name} stand at the limit of its range: they count as missing.",
)
OUT = (
    "",  # never a single one
    "{count} samples of {name} stand at one value between jumps (a loose plug?): they count as missing.",
)
TURNED = "{name} starts anew after each turn ({count} times): the turns were counted."
_EDGE = 10  # samples beside an end or a gap
_SHORTEST = 8  # samples below which a stretch holds nothing to identify


@dataclass(frozen=True, eq=False)
class Run:
    """One record in the model's order of outputs and inputs, on the model's own time axis.

    ``phase`` says where the time axis comes from: ``recorded`` the record knows the drive's time;
    ``unknown`` it does not, and the experiment's model has the drive's time at the first sample as a further
    parameter; ``none`` the model does not hold t, or its own free parameters cover a shift of t.
    """

    record: Record
    times: Array  # [N] the model's t at the samples
    outputs: Array  # [q, N]; nan where lost or clipped, and throughout for a channel that was not measured
    inputs: Inputs  # on the same time axis
    spans: tuple[tuple[int, int], ...]  # stretches (first, stop) in which every input is known
    variants: tuple[Inputs, ...] = ()  # inputs changed by one standard deviation of what is unknown of them
    fitted_variants: Array = field(default_factory=lambda: np.zeros(0))  # of each, how much a fit has added
    input_noise: Array = field(default_factory=lambda: np.zeros(0))  # [m] white noise on the inputs' samples
    noise: Array = field(
        default_factory=lambda: np.zeros(0)
    )  # [q] of the outputs, as known; nan: to be found
    phase: Phase = "none"
    warnings: tuple[str, ...] = ()  # what was found to be wrong with the samples
    initial_lower: Array = field(default_factory=lambda: np.zeros(0))  # [n] bounds of the first state ...
    initial_upper: Array = field(default_factory=lambda: np.zeros(0))  # ... equal where it is known

    @property
    def dt(self) -> float:
        return float(self.times[1] - self.times[0])

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Which outputs have samples."""
        return np.asarray(np.isfinite(self.outputs).any(axis=1))

    def with_inputs_moved(self, amounts: Array) -> Run:
        """The inputs with so much of each variant added, which then count from there."""
        given = self.inputs
        added = [v.coefficients - given.coefficients for v in self.variants]
        moved = given.coefficients + sum(b * a for b, a in zip(amounts, added, strict=True))
        return replace(
            self,
            inputs=replace(given, coefficients=moved),
            variants=tuple(replace(given, coefficients=moved + a) for a in added),
            fitted_variants=self.fitted_variants + amounts,
        )

    def part(self, first: int, stop: int, phase: Phase | None = None) -> Run:
        """The samples first to stop on the same time axis."""
        none = np.full(len(self.initial_lower), -np.inf)
        inside = ((max(a, first) - first, min(b, stop) - first) for a, b in self.spans)
        return replace(
            self,
            record=self.record.cut(first, stop),
            times=np.ascontiguousarray(self.times[first:stop]),
            outputs=np.ascontiguousarray(self.outputs[:, first:stop]),
            spans=tuple((a, b) for a, b in inside if b - a >= _SHORTEST),
            phase=phase or self.phase,
            initial_lower=self.initial_lower if first == 0 else none,
            initial_upper=self.initial_upper if first == 0 else -none,
        )

    @property
    def initial_known(self) -> NDArray[np.bool_]:
        """Which states are known at the first sample."""
        return self.initial_lower == self.initial_upper


def read_run(model: Model, record: Record, conditions: Conditions, t0: float, phase: Phase) -> Run:
    """What a record holds of the model's outputs and inputs, its first sample at the model's time ``t0``.

    Unless ``denoise`` is off, a periodic drive is replaced by its harmonics; of other inputs the noise is
    measured, for the methods that weigh it. Steps stay steps.
    """
    _check(model, record)
    warnings: list[str] = []
    outputs = np.full((len(model.outputs), len(record)), np.nan)
    for i, name in enumerate(model.outputs):
        if name in record:
            channel = record.channels[name]
            outputs[i] = np.where(channel.valid(), channel.data, np.nan)
            outputs[i], turns = counted_turns(model, i, outputs[i])
            warnings += [TURNED.format(name=name, count=turns)] if turns else []
            spoilt = spoilt_samples(outputs[i])
            before = without_dispersion(filled(outputs[i]), record.dt, conditions.dispersion)
            outputs[i] = np.where(np.isnan(outputs[i]), np.nan, before)
            for which, words in zip(spoilt, (OUT, FLAT, SPIKES), strict=True):
                outputs[i, which] = np.nan
                if count := int(which.sum()):
                    warnings.append(words[int(count > 1)].format(count=count, name=name))
    known = np.ones(len(record), dtype=bool)
    samples = np.zeros((len(model.inputs), len(record)))
    noise = np.zeros(len(model.inputs))
    modes: list[tuple[int, Array]] = []
    for i, name in enumerate(model.inputs):
        channel = record.channels[name]
        valid = channel.valid()
        known &= valid
        samples[i] = filled(np.where(valid, channel.data, np.nan))
        samples[i] = without_dispersion(samples[i], record.dt, conditions.dispersion)
        if conditions.denoise:
            clean = clean_input(samples[i], record.dt, record.excitation)
            samples[i], noise[i] = clean.samples, clean.noise
            modes += [(i, mode) for mode in clean.modes]
    kind = "cubic" if conditions.inputs == "auto" else conditions.inputs
    inputs = Inputs.from_samples(t0, record.dt, samples, kind) if len(samples) else Inputs.none()
    variants = []
    for i, mode in modes:
        changed = samples.copy()
        changed[i] += mode
        variants.append(Inputs.from_samples(t0, record.dt, changed, kind))
    if kind == "bandlimited" or conditions.dispersion:
        known = _far_from_the_unknown(known)
    times = t0 + record.times
    return Run(
        record,
        times,
        outputs,
        inputs,
        _stretches(known),
        tuple(variants),
        np.zeros(len(variants)),
        noise,
        known_noise(model, record, conditions),
        phase,
        tuple(warnings),
    )


def known_noise(model: Model, record: Record, conditions: Conditions) -> Array:
    """Noise [q] of the outputs as it was said, else as the record's own channels say it; nan: nobody did."""
    levels = np.full(len(model.outputs), np.nan)
    for i, name in enumerate(model.outputs):
        own = record.channels[name].noise if name in record else None
        level = conditions.noise.get(name, own)
        levels[i] = np.nan if level is None else level
    return levels


def spoilt_samples(row: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Which samples a loose plug, the limit of the range or spikes have spoilt, each counted once."""
    out = dropped_out(row)
    rest = np.where(out, np.nan, row)
    flat = pressed_flat(rest)
    return out, flat, spikes(rest) & ~flat


def _check(model: Model, record: Record) -> None:
    if len(record) < _SHORTEST:
        raise DataError(f"The record has {len(record)} samples: too few to identify anything.")
    if not any(name in record for name in model.outputs):
        raise DataError(
            f"The record holds none of the outputs {', '.join(model.outputs)} of {model.name}: it has "
            f"{', '.join(record.names)}. Name the channels that stand for them."
        )
    measured = [record.channels[name] for name in model.outputs if name in record]
    if all(np.ptp(c.data[c.valid()]) == 0 for c in measured if c.valid().any()):
        raise DataError(
            f"{', '.join(name for name in model.outputs if name in record)} never changes: a specimen at "
            "rest, or a dead sensor, has nothing to identify."
        )
    missing = [name for name in model.inputs if name not in record]
    if missing:
        raise DataError(
            f"{model.name} needs the measured input {', '.join(missing)}, but the record has "
            f"{', '.join(record.names)}."
        )


def _far_from_the_unknown(known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Samples that lie so far from the ends and from lost samples that what is unknown there hardly matters:
    a band-limited signal depends on all of its samples."""
    if len(known) < 10 * _EDGE:
        return known
    lost = np.pad(~known, _EDGE, constant_values=True)
    return np.convolve(lost, np.ones(2 * _EDGE + 1), "valid") == 0


def _stretches(known: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(int)))
    return tuple((int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= _SHORTEST)
