"""What makes a search for terms senseless, each said in one sentence before any work is done."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.gaps import filled
from analysis.estimate.discovery.scene import term_values
from analysis.experiment.states import direct_states, scaled_derivatives
from analysis.signal.smoothing import is_rate, rate_factor

if TYPE_CHECKING:
    from analysis.estimate.discovery.library import Library
    from analysis.estimate.discovery.scene import Scene
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_COPY = 1e-6  # of the spread: what may be left of a channel that is a copy of another
_SAME = 1e-8  # sine of the angle between two terms that are one
_SAMPLES_A_TERM = 5  # that a search needs at least
_NEARLY_ALIKE = 0.999999  # correlation from which on two terms are looked at closely


def check_channels(experiment: Experiment) -> None:
    """Refuse channels that are constant or copies of each other."""
    for run in experiment.runs:
        names = [n for n, seen in zip(experiment.model.outputs, run.measured, strict=True) if seen]
        rows = {n: filled(run.outputs[experiment.model.outputs.index(n)]) for n in names}
        for name, row in rows.items():
            if np.ptp(row) == 0:
                raise DataError(f"The channel {name} is constant: it shows no motion.")
        if run.inputs.count:
            driving = zip(experiment.model.inputs, run.inputs.values(run.times), strict=True)
            rows |= {name: row for name, row in driving if np.ptp(row) > 0}
        for a, b in combinations(rows, 2):
            if _residual_share(rows[a], rows[b]) < _COPY:
                raise DataError(
                    f"The channel {b} is a copy of {a}, up to a factor and an offset: it tells nothing "
                    "of its own, and no equation for both can be found."
                )


def check_rates(experiment: Experiment) -> None:
    """Refuse a measured rate in another unit than the state it is to be the rate of."""
    model = experiment.model
    names, shown = list(model.states), {j: i for i, j in direct_states(model).items()}
    for rate, (state, factor) in scaled_derivatives(model).items():
        for run in experiment.runs:
            if not all(place in shown and run.measured[shown[place]] for place in (rate, state)):
                continue
            of, own = (filled(run.outputs[shown[place]]) for place in (state, rate))
            if not is_rate(of, own * factor, run.dt):
                found = sum(rate_factor(of, own * factor, run.dt)) / 2
                raise DataError(
                    f"The channel {names[rate]} is {found:.3g} times the rate of change of "
                    f"{names[state]}: calibrate it, or leave it out."
                )


def _residual_share(a: Array, b: Array) -> float:
    """What a straight line in ``a`` leaves of ``b``, over the spread of ``b``."""
    a, b = a - a.mean(), b - b.mean()
    rest = b - (a @ b) / (a @ a) * a
    return float(np.linalg.norm(rest) / np.linalg.norm(b))


def check_terms(experiment: Experiment, scene: Scene) -> list[str]:
    """Refuse terms that the record cannot tell apart or evaluate; sentences on those that may mislead."""
    model, library = experiment.model, scene.library
    samples = sum(int(np.isfinite(run.outputs).sum()) for run in experiment.runs)
    if samples < _SAMPLES_A_TERM * len(library.candidates):
        raise DataError(
            f"The library has {len(library.candidates)} terms and the record {samples} samples: a search "
            f"needs at least {_SAMPLES_A_TERM} samples a term."
        )
    names, pattern = list(model.parameters), np.asarray(model.kernels().pattern_p)
    values = _term_values(experiment, scene)
    warnings, columns = [], {}
    for entry, (_, place) in enumerate(pattern.T):
        name = names[place]
        if name not in library.candidates:
            continue
        candidate, row = library.candidates[name], values[entry]
        if not np.isfinite(row).all():
            raise ModelError(f"The term {candidate} has no finite value at some samples of the record.")
        if not row.any():
            warnings.append(f"The term {candidate} is zero all along the record: it is left out.")
            continue
        columns[name] = row / np.linalg.norm(row)
    for state in {c.state for c in library.candidates.values()}:
        own = [n for n in columns if library.candidates[n].state == state]
        _refuse_twins(library, own, np.array([columns[n] for n in own]))
    if all(c.term != "1" for c in library.candidates.values()):
        warnings.append(
            "The library has no constant: an offset or a mean force would be given to other terms."
        )
    return warnings


def _term_values(experiment: Experiment, scene: Scene) -> Array:
    """Terms along the smoothed motion [entries of the pattern, samples of all runs]."""
    given = zip(experiment.runs, scene.motions(experiment.model), strict=True)
    rows = [term_values(experiment.model, run.times, motion.smooth, run.inputs)[0] for run, motion in given]
    return np.hstack(rows)


def _refuse_twins(library: Library, names: list[str], columns: Array) -> None:
    if not len(columns):
        return
    alike = np.abs(columns @ columns.T)
    for i, j in combinations(range(len(names)), 2):
        if alike[i, j] > _NEARLY_ALIKE:
            sine = float(np.linalg.norm(columns[j] - np.sign(columns[i] @ columns[j]) * columns[i]))
            if sine < _SAME:
                a, b = library.candidates[names[i]], library.candidates[names[j]]
                raise ModelError(
                    f"The terms {a.term} and {b.term} in d{a.state}/dt are the same along this record, "
                    "up to a factor: leave one of them out."
                )
