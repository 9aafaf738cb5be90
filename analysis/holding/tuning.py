"""The plant from a record: scale, noise, the force of the drive, and how far the model can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.words import percent
from analysis.estimate.methods import identify
from analysis.holding.holder import Estimator
from analysis.holding.mode_tones import record_without_modes
from analysis.holding.plant import ActuatorPath, LoopPlant
from analysis.signal.noise import noise_of
from analysis.signal.tone import tone_basis
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

HARMONICS = 3  # of the drive's force
TRIED = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # of the model's gaps
LOOKED_AT = 6000  # samples from which the gaps are estimated
LARGEST_GAP = 0.06  # a model that needs more than this does not describe the specimen
SURPRISE = 4.0  # mean squared miss over its expected size, above which the estimate cannot be trusted


def plant_from_record(
    subject: Subject, channels: Sequence[str], rate: float, amplitude: float, path: ActuatorPath
) -> LoopPlant:
    """The plant at a rig of ``rate`` Hz, driven with ``amplitude`` volts as in the record.

    DataError where the model does not follow the record: then it is of no use in a loop.
    """
    model, record = subject.model, subject.record
    theta = subject.times / subject.base * 2 * np.pi
    row = record[model.inputs[0]]
    good = np.isfinite(row)
    force, *_ = np.linalg.lstsq(tone_basis(theta[good] / (2 * np.pi), 1.0, HARMONICS), row[good], rcond=None)
    rows = [model.outputs.index(name) for name in channels]
    data = subject.data.outputs[rows]
    noise = np.array([max(noise_of(r[np.isfinite(r)]), 1e-9 * np.nanstd(r)) for r in data])
    plant = LoopPlant(
        model, tuple(channels), noise, 1.0 / subject.base, record.rate, amplitude, np.asarray(force), path,
        np.std(subject.states, axis=1),
    )  # fmt: skip
    return tuned_to_record(replace(plant, rate=rate), subject)


def tuned_to_record(plant: LoopPlant, subject: Subject) -> LoopPlant:
    """The plant with the gaps of its model as the record shows them, once more when modes have been found."""
    theta = subject.times / subject.base * 2 * np.pi
    rows = [plant.model.outputs.index(name) for name in plant.channels]
    data = subject.data.outputs[rows]
    at_record = replace(plant, rate=subject.record.rate)
    tuned, surprise = _tuned(at_record, data[:, :LOOKED_AT], theta[:LOOKED_AT])
    if tuned.process > LARGEST_GAP or surprise > SURPRISE:
        raise DataError(
            f"{plant.model.name} with these values does not follow the record ({_how_far(tuned, surprise)}): "
            "it cannot hold an orbit of this specimen."
        )
    return replace(tuned, rate=plant.rate)


def refitted(plant: LoopPlant, subject: Subject) -> LoopPlant:
    """The plant once modes have been found: its model, which was fitted to the record with them, fitted anew
    to the record without them where that follows better."""
    tuned = tuned_to_record(plant, subject)
    try:
        fit = identify(subject.model, record_without_modes(subject, plant), "weak", finish=False)
        own = {n: v for n, v in fit.values().items() if n in plant.model.parameters}
        again = tuned_to_record(replace(plant, model=plant.model.with_values(own)), subject)
    except ShakedownError:
        return tuned
    return min(tuned, again, key=lambda one: one.process)


def gap_of(plant: LoopPlant, subject: Subject, added: Array | float = 0.0) -> float:
    """What the plant's model misses on the record without what is ``added`` to its channels (see LoopPlant);
    as before where that cannot be said."""
    theta = subject.times / subject.base * 2 * np.pi
    rows = [plant.model.outputs.index(name) for name in plant.channels]
    data = subject.data.outputs[rows] - added
    try:
        tuned, _ = _tuned(replace(plant, rate=subject.record.rate), data[:, :LOOKED_AT], theta[:LOOKED_AT])
    except DataError:
        return plant.process
    return min(tuned.process, plant.process)


def _how_far(tuned: LoopPlant, surprise: float) -> str:
    if surprise > SURPRISE:
        return (
            f"its predictions from one sample to the next miss by {np.sqrt(surprise):.1f} times what noise "
            "explains"
        )
    return (
        f"in a radian of the drive it drifts off the record by {percent(tuned.process)} of the motion, "
        f"{percent(LARGEST_GAP)} is the most that can be corrected"
    )


def _tuned(plant: LoopPlant, data: Array, theta: Array) -> tuple[LoopPlant, float]:
    """The plant with the gaps of the model that make the record most likely, and the surprise left."""
    every = plant.every
    samples, phase = data[:, ::every], theta[::every]
    best: tuple[float, LoopPlant, float] | None = None
    for process in TRIED:
        trial = replace(plant, process=process)
        _, likelihood, misses = Estimator(trial).follow(samples, phase % (2 * np.pi), np.zeros(len(phase)))
        if np.isfinite(likelihood) and (best is None or likelihood < best[0]):
            best = (likelihood, trial, misses)
    if best is None:
        raise DataError(f"{plant.model.name} with these values does not follow the record.")
    return best[1], best[2]
