"""What is under test: a model with its values, a record, and both in the same terms.

The model is put beside the record like with like: its long run passes the same sensors, with the same noise
and the same smoothing, before anything is counted or measured on it. So a bias of an estimator is in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.record import Channel, Excitation, Record
from analysis.estimate.finish.fit import fit
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment, Run
from analysis.experiment.drive_time import DRIVE_TIME, recorded_time
from analysis.experiment.states import start_states, state_samples
from analysis.model import Model
from analysis.signal.drive import drive_frequency
from analysis.signal.inputs import Inputs
from analysis.signal.noise import noise_of
from analysis.signal.smoothing import BROADBAND
from analysis.simulation.simulate import simulate
from analysis.validation.drive import drive_period, toned

Array = NDArray[np.float64]

LONGEST = 60_000  # samples that are used
SMOOTH = Conditions()  # inputs go on smoothly between their samples, unless these are plateaus
TWINS = 8  # runs of the model that stand for as many records of the same motion
_COARSE = 1.5  # what smoothing takes away, over the noise, beyond which samples are used as they are
# Ratio of the spreads in quarters of a record up to which its motion counts as steady, and where they only
# grow or only fall.
_STEADY, _TREND = 2.0, 1.2


@dataclass(frozen=True, eq=False)
class Subject:
    """The model, the record, and what is known of the drive."""

    model: Model  # with the values under test
    record: Record
    data: Run
    states: Array  # [n, N] as the sensors show them, smoothed
    hidden: tuple[str, ...]  # states that nothing shows
    base: float  # period of the drive, or mean turn, in the record's unit of time
    forced: bool
    driven: Model | None  # the model as a system by itself: without measured inputs, or those as tones
    reason: str  # why there is none
    conditions: Conditions = SMOOTH  # how the inputs are read between their samples

    @property
    def origin(self) -> float:
        """The model's time at the first sample."""
        return float(self.data.times[0])

    @property
    def dt(self) -> float:
        return self.record.dt

    @property
    def inputs(self) -> Inputs | None:
        return self.data.inputs if self.data.inputs.count else None

    @property
    def shown(self) -> NDArray[np.intp]:
        """Outputs that were measured."""
        return np.flatnonzero(self.data.measured)

    @property
    def spread(self) -> Array:
        """Standard deviation of each measured output."""
        return np.maximum(np.nanstd(self.data.outputs[self.shown], axis=1), 1e-300)

    @property
    def times(self) -> Array:
        """The model's time at the samples."""
        return self.data.times

    @property
    def unit(self) -> str:
        """Of time: seconds, unless the model has it otherwise."""
        return self.model.units.get("t", "s")

    def label(self, name: str) -> str:
        channel = self.record.channels.get(name)
        unit = (channel.unit if channel is not None else "") or self.model.unit(name)
        return f"{name} [{unit or '–'}]"

    @cached_property
    def noise(self) -> Array:
        """Noise of each measured output, from its high-order differences: no model is needed for it."""
        return np.array([noise_of(row) for row in self.data.outputs[self.shown]])

    @cached_property
    def run(self) -> Array | None:
        """States [n, N] of the model left to itself from the first measured state; None if it escapes."""
        return self._run_from(0)

    def _run_from(self, place: int) -> Array | None:
        """The model's run over the times of the record from the state that was measured at ``place``."""
        if self.driven is None:
            return None
        found = simulate(self.driven, self.times, self.states[:, place], rtol=1e-8)
        whole = found.diverged_at is None and bool(np.isfinite(found.states).all())
        return found.states if whole else None

    def places(self, count: int) -> NDArray[np.int64]:
        """Samples spread over the record from which the model is started, whole periods of a drive apart.

        One long run would not do: a motion that is chaotic for the length of the record may still end on a
        periodic one.
        """
        period = self.base / self.dt if self.forced else 1.0
        apart = (self.states.shape[1] - 3) / count / period
        return np.round(period * np.floor(apart * np.arange(count))).astype(np.int64)

    @cached_property
    def fading(self) -> str:
        """Why the motion has no exponents, dimension or section: it dies away or grows; empty if steady."""
        spreads = [float(np.std(part)) for part in np.array_split(self.states[0], 4)]
        trend = spreads == sorted(spreads) or spreads == sorted(spreads, reverse=True)
        if max(spreads) <= (_TREND if trend else _STEADY) * min(spreads):
            return ""
        change = max(spreads) / max(min(spreads), 1e-300)
        return f"The motion is not steady (its spread changes by a factor of {change:.3g} within the record)."

    @property
    def escapes(self) -> bool:
        return self.driven is not None and self.run is None

    @cached_property
    def twin(self) -> Array | None:
        """States of the model's run as the record's sensors and smoothing would show them."""
        return None if self.run is None else self._seen(self.run, 0)

    @cached_property
    def other_twins(self) -> tuple[Array, ...]:
        """More of them, from other states of the record: how far two records of one motion differ."""
        runs = ((number, self._run_from(int(place))) for number, place in enumerate(self.places(TWINS)))
        return tuple(self._seen(run, number) for number, run in runs if number and run is not None)

    @cached_property
    def state_noise(self) -> Array:
        """[n] rms error of the states that the sensors show, from the twin, whose true states are known."""
        if self.twin is None or self.run is None:
            return np.zeros(len(self.states))
        return np.asarray(np.sqrt(np.mean((self.twin - self.run) ** 2, axis=1)))

    def _seen(self, run: Array, seed: int) -> Array:
        assert self.driven is not None
        outputs = np.empty((len(self.model.outputs), run.shape[1]))
        none = np.zeros((len(self.driven.inputs), run.shape[1]))
        self.driven.kernels().out_many(self.times, run, none, self.driven.values(), outputs)
        rng = np.random.default_rng(seed)  # any draw of the noise will do
        channels = dict(self.record.channels)
        for i, level in zip(self.shown, self.noise, strict=True):
            name = self.model.outputs[i]
            channels[name] = Channel(outputs[i] + level * rng.normal(size=outputs.shape[1]))
        twin = Experiment(self.model, replace(self.record, channels=channels), self.conditions)
        return start_states(twin.model, twin.runs[0], twin.model.values())


def prepare_subject(
    model: Model,
    record: Record,
    values: Mapping[str, float],
    frequency: float | None = None,
    conditions: Conditions = SMOOTH,
) -> Subject:
    """Read the record as the model sees it, and find out how it is driven."""
    known = model.with_values(_own(model, values))
    record = _without_offsets(known, record, values).cut(0, LONGEST)
    if frequency is not None:
        drive = record.excitation or Excitation(frequency)
        record = replace(record, excitation=replace(drive, frequency=frequency))
    record = _with_drive_time(known, record, values)
    (data,) = Experiment(known, record, conditions).runs
    samples = state_samples(known, data, known.values(), smoothed=False)
    hidden = tuple(s for i, s in enumerate(known.states) if not samples.seen[i] and i not in samples.derived)
    states = start_states(known, data, known.values())
    for i in np.flatnonzero(samples.seen):  # coarse sampling: local cubics would miss more than the noise
        raw = samples.values[i]
        if np.std(raw - states[i]) > _COARSE * noise_of(raw):
            states[i] = raw
    subject = Subject(known, record, data, states, hidden, 1.0, False, None, "", conditions)
    return _with_drive(subject)


def _with_drive_time(model: Model, record: Record, values: Mapping[str, float]) -> Record:
    """The record with the drive's time at its first sample: recorded, identified, or looked for."""
    if not model.equations.hold_time or recorded_time(record) is not None:
        return record
    identified = [v for name, v in values.items() if name.split("[")[0] == DRIVE_TIME]
    if identified:
        return replace(record, drive_time=identified[0])
    experiment = Experiment(model, record)
    if DRIVE_TIME not in experiment.model.parameters:  # the model's own parameters tell the phase
        return replace(record, drive_time=float(experiment.runs[0].times[0]))
    return replace(record, drive_time=_fitted_time(Experiment(model.with_free([]), record)))


def _fitted_time(experiment: Experiment) -> float:
    """The drive's time at the first sample, the only unknown: from the phases tried to what noise allows."""
    place = experiment.model.index(DRIVE_TIME)
    scanned = float(experiment.guesses()[0, place])
    try:
        found = fit(experiment, Start("validate", experiment.guesses()))
    except ShakedownError:
        return scanned
    return float(found.values[0, place]) if found.converged else scanned


def _period(model: Model, record: Record) -> float | None:
    """Period of a drive that the equations hold, from the record or from the model's parameters."""
    drive = record.excitation
    if drive is not None and drive.frequency > 0:
        return 1.0 / drive.frequency
    return drive_period(model)


def _own(model: Model, values: Mapping[str, float]) -> dict[str, float]:
    """Values of the model's parameters; of those that differ by record, the first record's."""
    first = {n.removesuffix("[1]"): v for n, v in values.items() if n.endswith("[1]")}
    return {n: v for n, v in {**first, **values}.items() if n in model.parameters}


def _without_offsets(model: Model, record: Record, values: Mapping[str, float]) -> Record:
    """The record with the sensors' offsets, where they were identified, taken out."""
    for name in model.outputs:
        offset = values.get(f"offset {name}", 0.0)
        if offset and name in record:
            record = record.with_channels(**{name: record[name] - offset})
    return record


def _with_drive(subject: Subject) -> Subject:
    """Drive and period."""
    model, record = subject.model, subject.record
    drive = record.excitation
    frequency = drive.frequency if drive is not None and drive.frequency > 0 else None
    if model.inputs:
        return _with_measured_drive(subject, frequency)
    if not model.equations.hold_time:
        return replace(subject, base=_turn(subject), driven=model)
    period = _period(model, record)
    if period is None:
        return replace(
            subject,
            base=_turn(subject),
            reason="The model is driven, but neither the record nor its parameters tell the drive's period: "
            "give the frequency.",
        )
    return replace(subject, base=period, forced=True, driven=model)


def _with_measured_drive(subject: Subject, frequency: float | None) -> Subject:
    record, model = subject.record, subject.model
    row = record[model.inputs[0]]
    moves = np.isfinite(row).any() and np.nanmax(row) > np.nanmin(row)
    if frequency is None and moves and len(row) >= 64:
        frequency = drive_frequency(row) * record.rate
    if frequency is None or frequency * record.duration < 5:
        reason = "The measured input shows no drive of which there are several periods."
        return replace(subject, base=_turn(subject), reason=reason)
    shares = (noise_of(record[n]) / max(float(np.nanstd(record[n])), 1e-300) for n in model.inputs)
    try:
        noise = max(share if share < BROADBAND else 0.0 for share in shares)
        driven = toned(model, record, subject.times, frequency, noise)
    except DataError as error:
        return replace(subject, base=_turn(subject), reason=str(error))
    return replace(subject, base=1.0 / frequency, forced=True, driven=driven)


def _turn(subject: Subject) -> float:
    from analysis.orbits.autonomous import mean_turn

    return float(mean_turn(subject.states)) * subject.dt
