"""A model and the records it is to explain: the only place that interprets a record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.record import Record
from analysis.experiment.conditions import Conditions, InputKind
from analysis.experiment.drive_time import (
    DRIVE_TIME,
    check_sampling,
    clock_start,
    clock_words,
    other_frequency,
    recorded_time,
    search_words,
    takers_of_shift,
)
from analysis.experiment.hum import Hum
from analysis.experiment.initial import initial_bounds
from analysis.experiment.noise_sharing import NoiseSharing
from analysis.experiment.phase_scan import scanned_time
from analysis.experiment.run import Phase, Run, read_run
from analysis.experiment.states import start_states
from analysis.experiment.units import unit_words
from analysis.experiment.unknown import Kind, Unknown
from analysis.model import Model
from analysis.model.drive import drive_of
from analysis.model.model import Parameter

Array = NDArray[np.float64]


class Experiment:
    """Records as a model sees them: time and phase of the drive, gaps, noise, inputs, sensors.

    given       the model as it was written
    model       the model to be fitted; where a record does not know the drive's time and the equations hold
                t, with that time as a further free parameter ``drive_time``
    runs        the records on the model's time axis, in the model's order of channels
    conditions  what was said about the data
    unknowns    what a fit has to find: parameters, sensors' unknowns, unknown phases of the drive
    warnings    sentences about the data
    hum         tones that were taken out of the outputs, unknowns beside those of the model
    """

    hum: tuple[Hum, ...] = ()

    def __init__(
        self, model: Model, records: Record | Sequence[Record], conditions: Conditions | None = None
    ) -> None:
        conditions = conditions or Conditions()
        given = [records] if isinstance(records, Record) else list(records)
        if not given:
            raise DataError("There is no record to identify from.")
        given = [_part(record, conditions.part) for record in given]
        for record in given:
            check_sampling(model, record)
        self.given, self.conditions = model, conditions
        self.model, origins = _with_unknown_time(model, given, conditions)
        self.runs: tuple[Run, ...] = tuple(
            read_run(self.model, record, conditions, origin.first, origin.phase)
            for record, origin in zip(given, origins, strict=True)
        )
        starts = self._clock_starts()
        if starts and len(self.runs) == 1:  # of several, those that know their time have a shift of zero
            self.model = self.model.with_values({DRIVE_TIME: starts[0]})
        _check_names(model, conditions)
        words = [origin.words for origin in origins]
        words += [other_frequency(self.model, run) for run in self.runs]
        bounds = [initial_bounds(self.model, run) for run in self.runs]
        self.runs = tuple(
            replace(run, initial_lower=lower, initial_upper=upper)
            for run, (lower, upper, _) in zip(self.runs, bounds, strict=True)
        )
        words += [sentence for _, _, sentence in bounds]
        words += [sentence for run in self.runs for sentence in run.warnings]
        words += [sentence for run in self.runs for sentence in unit_words(model, run.record)]
        self.warnings: list[str] = list(dict.fromkeys(sentence for sentence in words if sentence))

    def parts(self, pieces: Sequence[tuple[int, int, int]], own_phases: bool) -> Experiment:
        """An experiment on pieces (run, first sample, the one after the last), each a run by itself.

        ``own_phases``: the drive's time is unknown in each of them.
        """
        if self.conditions.per_record:
            raise ModelError("Pieces of records share all parameters: none may differ by record.")
        other = copy(self)
        for kept in ("unknowns", "_scanned_times"):
            other.__dict__.pop(kept, None)
        phase: Phase | None = None
        if own_phases and self.given.equations.hold_time:
            other.model, phase = _shifted(self.given, self.records), "unknown"
        other.runs = tuple(self.runs[i].part(first, stop, phase) for i, first, stop in pieces)
        other.noise_sharing = self.noise_sharing.of_parts([i for i, _, _ in pieces])
        return other

    def with_noise(self, sigma: Array) -> Experiment:
        """The same experiment with the noise [records, q] of the outputs known where it is finite."""
        if np.shape(sigma) != (expected := (len(self.runs), len(self.model.outputs))):
            raise ValueError(f"The noise has the shape {np.shape(sigma)}; {expected} is one row a record.")
        other = copy(self)
        other.runs = tuple(replace(run, noise=np.array(s)) for run, s in zip(self.runs, sigma, strict=True))
        return other

    def holding(self, name: str, value: float, sigma: Array) -> Experiment:
        """The same experiment with one parameter known, and the noise [records, q] of the outputs, too."""
        other = self.with_noise(sigma)
        for kept in ("unknowns", "_scanned_times"):
            other.__dict__.pop(kept, None)
        free = [n for n in self.model.free if n != name]
        other.model = self.model.with_values({name: value}).with_free(free)
        return other

    def with_sensors(
        self, offsets: tuple[str, ...], delays: tuple[str, ...], drifts: tuple[str, ...]
    ) -> Experiment:
        """The same experiment with other offsets, delays and drifts of the outputs unknown."""
        other = copy(self)
        other.__dict__.pop("unknowns", None)
        other.conditions = replace(self.conditions, offsets=offsets, delays=delays, drifts=drifts)
        return other

    def with_inputs(self, kind: InputKind, denoise: bool) -> Experiment:
        """The same samples and stretches with the inputs read in another way between their samples."""
        said = replace(self.conditions, inputs=kind, denoise=denoise, part=())
        other = Experiment(self.given, self.records, said)
        pairs = zip(other.runs, self.runs, strict=True)
        other.runs = tuple(replace(new, outputs=run.outputs, spans=run.spans) for new, run in pairs)
        other.hum = self.hum
        return other

    def with_inputs_moved(self, amounts: Sequence[Array]) -> Experiment:
        """The same experiment with so much of each run's variants added to its inputs."""
        other = copy(self)
        pairs = zip(self.runs, amounts, strict=True)
        other.runs = tuple(run.with_inputs_moved(b) if len(b) else run for run, b in pairs)
        return other

    def without_hum(self, hum: Sequence[Hum]) -> Experiment:
        """The same experiment with these tones taken out of the outputs."""
        other = copy(self)
        outputs = [run.outputs.copy() for run in self.runs]
        for tone in hum:
            outputs[tone.run][tone.output] -= tone.values(self.runs[tone.run].times)
        other.runs = tuple(replace(r, outputs=rows) for r, rows in zip(self.runs, outputs, strict=True))
        other.hum = tuple(hum)
        return other

    def with_spans(self, number: int, spans: tuple[tuple[int, int], ...]) -> Experiment:
        """The same experiment with other unbroken stretches (first, stop) of a run."""
        other = copy(self)
        other.runs = tuple(
            replace(run, spans=spans) if i == number else run for i, run in enumerate(self.runs)
        )
        return other

    def with_nothing_free(self, sigma: Array) -> Experiment:
        """The same experiment with all parameters and sensors known: only the motion is left to find."""
        other = self.with_noise(sigma)
        for kept in ("unknowns", "_scanned_times"):
            other.__dict__.pop(kept, None)
        other.model = self.model.with_free([])
        other.conditions = replace(self.conditions, per_record=(), offsets=(), delays=(), drifts=())
        return other

    @property
    def about_time(self) -> list[str]:
        """A sentence for methods that cannot estimate the drive's time where a record does not know it."""
        if all(run.phase != "unknown" for run in self.runs):
            return []
        counted = "is the file's clock" if self._clock_starts() else "counts from its first sample"
        return [f"The record does not know the drive's time: the model's t {counted}."]

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(run.record for run in self.runs)

    @property
    def names(self) -> list[str]:
        """Names of the unknowns, in their order."""
        return [unknown.name for unknown in self.unknowns]

    @property
    def sigma(self) -> Array:
        """Known noise [records, q] of the outputs; nan where it is to be estimated."""
        return np.stack([run.noise for run in self.runs])

    @property
    def noise_known(self) -> bool:
        """Whether the noise of every output that was measured is known."""
        return all(bool(np.isfinite(run.noise[run.measured]).all()) for run in self.runs)

    @cached_property
    def noise_sharing(self) -> NoiseSharing:
        """Which records have one level of noise where it is to be estimated."""
        return NoiseSharing.of([run.outputs for run in self.runs], self.sigma)

    @cached_property
    def unknowns(self) -> tuple[Unknown, ...]:
        """Parameters, then offsets, delays and drifts of the outputs, each by record where it differs."""
        model, conditions, q = self.model, self.conditions, len(self.model.outputs)
        k = len(model.parameters)
        found: list[Unknown] = []
        for name in model.free:
            p, index = model.parameters[name], model.index(name)
            what: Kind = "phase" if name == DRIVE_TIME else "parameter"
            found += [
                Unknown(self._label(name, record), what, index, record, p.unit, p.lower, p.upper)
                for record in self._records_of(name)
            ]
        time = model.units.get("t", "s")
        sensors: tuple[tuple[Kind, tuple[str, ...]], ...] = (
            ("offset", conditions.offsets),
            ("delay", conditions.delays),
            ("drift", conditions.drifts),
        )
        for place, (kind, outputs) in enumerate(sensors):
            for output in sorted(outputs, key=model.outputs.index):
                index = k + place * q + model.outputs.index(output)
                unit = time if kind == "delay" else model.unit(output)
                unit = f"{unit}/{time}" if kind == "drift" and unit else unit
                for record in range(len(self.runs)) if kind == "drift" else (-1,):
                    label = self._label(f"{kind} {output}", record)
                    found.append(Unknown(label, kind, index, record, unit))
        return tuple(found)

    def _records_of(self, name: str) -> Sequence[int]:
        """Records in which a parameter has a value of its own; (-1,) for one that all share."""
        if name == DRIVE_TIME:
            return [i for i, run in enumerate(self.runs) if run.phase == "unknown"]
        return range(len(self.runs)) if name in self.conditions.per_record else (-1,)

    def _label(self, name: str, record: int) -> str:
        return name if record < 0 or len(self.runs) == 1 else f"{name}[{record + 1}]"

    def guesses(self) -> Array:
        """Parameters [records, k] as the model has them, inside their bounds.

        An unknown time of the drive starts where the model with its guesses follows the record best; that of
        a drive that never repeats, at the file's clock.
        """
        parameters = self.model.parameters.values()
        values = np.clip(self.model.values(), [p.lower for p in parameters], [p.upper for p in parameters])
        rows = np.tile(values, (len(self.runs), 1))
        for record, time in (self._scanned_times | self._clock_starts()).items():
            rows[record, self.model.index(DRIVE_TIME)] = time
        return rows

    @cached_property
    def _scanned_times(self) -> dict[int, float]:
        """By run, where the drive's time is unknown and the drive has a period."""
        unknown = [i for i, run in enumerate(self.runs) if run.phase == "unknown"]
        if not unknown or not math.isfinite(self.model.parameters[DRIVE_TIME].upper):
            return {}
        period, found = self.model.parameters[DRIVE_TIME].upper, {}
        for i in unknown:
            run = self.runs[i]
            states = start_states(self.model, run, self.model.values())
            found[i] = scanned_time(self.model, run, states, self.model.index(DRIVE_TIME), period)
        return found

    def _clock_starts(self) -> dict[int, float]:
        """By run, the drive's time by the file's clock, where it is unknown and the drive has no period."""
        if DRIVE_TIME not in self.model.free or math.isfinite(self.model.parameters[DRIVE_TIME].upper):
            return {}
        clocks = {
            i: clock_start(run.record)
            for i, run in enumerate(self.runs)
            if run.phase == "unknown" and recorded_time(run.record) is None
        }
        return {i: c - float(self.runs[i].times[0]) for i, c in clocks.items() if c is not None}

    def start_states(self, values: Array | None = None) -> tuple[Array, ...]:
        """A first path [n, N] for every run, read off the data with parameters ``values`` [records, k]."""
        rows = self.guesses() if values is None else np.atleast_2d(values)
        return tuple(
            start_states(self.model, run, rows[min(i, len(rows) - 1)]) for i, run in enumerate(self.runs)
        )


def _part(record: Record, part: tuple[int, ...]) -> Record:
    if not part:
        return record
    if len(part) != 2 or not 0 <= part[0] < min(part[1], len(record)):
        raise DataError(
            f"The part to be used must be two sample numbers within the {len(record)} samples, the first "
            f"below the second, not {', '.join(map(str, part))}."
        )
    return record.cut(*part)


@dataclass(frozen=True)
class _Origin:
    """The model's t at the first sample of a record, where it comes from, and what is to be said of it."""

    phase: Phase
    first: float = 0.0
    words: str = ""


def _with_unknown_time(
    model: Model, records: Sequence[Record], conditions: Conditions
) -> tuple[Model, list[_Origin]]:
    """The model to be fitted and what is known of each record's time."""
    if not model.equations.hold_time or model.equations.functions_of_time:  # these move with any origin of t
        return model, [_Origin("none", recorded_time(r) or 0.0) for r in records]
    times = [recorded_time(record) for record in records]
    if None not in times:
        return model, [_Origin("recorded", time) for time in times if time is not None]
    shifted = _shifted(model, records)
    repeats = math.isfinite(shifted.parameters[DRIVE_TIME].upper)
    origins: list[_Origin] = []
    for i, (record, time) in enumerate(zip(records, times, strict=True)):
        if time is not None:
            origins.append(_Origin("recorded", time))
            continue
        # The shared parameters cover one common shift; the other records keep their own.
        common = i == 0 and not any(t is not None for t in times)
        takers = takers_of_shift(shifted, record, conditions, model.free) if common else None
        if takers is None and conditions.per_record:
            takers = takers_of_shift(shifted, record, conditions, conditions.per_record)
        origins.append(_covered(record, takers) if takers is not None else _looked_for(record, repeats))
    return (shifted if any(o.phase == "unknown" for o in origins) else model), origins


def _covered(record: Record, takers: tuple[str, ...]) -> _Origin:
    """Free parameters take a shift of t up: they are given by the file's own clock."""
    if not takers:  # t has no effect
        return _Origin("none")
    return _Origin("none", clock_start(record) or 0.0, clock_words(record, takers))


def _looked_for(record: Record, repeats: bool) -> _Origin:
    return _Origin("unknown", words="" if repeats else search_words(record))


def _shifted(model: Model, records: Sequence[Record]) -> Model:
    """The model with the drive's time at the first sample as a further unknown, within a period."""
    if DRIVE_TIME in model.parameters:
        raise ModelError(
            f"`{DRIVE_TIME}` is the name of the unknown time of the drive: rename the parameter."
        )
    frequency = next((r.excitation.frequency for r in records if r.excitation is not None), 0.0)
    period = 1.0 / frequency if frequency > 0 else drive_of(model).period
    reach = math.inf if period is None else period  # either way: the best phase is never at a bound
    unit = model.units.get("t", "s")
    return model.with_time_shift(DRIVE_TIME, Parameter(0.0, -reach, reach, unit, free=True))


def _check_names(model: Model, conditions: Conditions) -> None:
    for name in conditions.per_record:
        if name not in model.free:
            raise ModelError(f"{model.name} has no free parameter `{name}` that could differ by record.")
    for name in (*conditions.offsets, *conditions.delays, *conditions.drifts, *conditions.noise):
        if name not in model.outputs:
            raise ModelError(f"{model.name} has no output `{name}`; it has {', '.join(model.outputs)}.")
