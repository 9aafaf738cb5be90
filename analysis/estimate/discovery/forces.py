"""What the terms of a fitted set make along its motion, and other terms that make nearly the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.discovery.quadratic import Subset
from analysis.estimate.discovery.scene import term_values

if TYPE_CHECKING:
    from analysis.estimate.discovery.trials import Trial
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_SAMPLES = 4000  # of a run that are looked at


class Forces:
    """The terms of a library along the motion of a fit, and their sums in it."""

    def __init__(self, experiment: Experiment, trial: Trial) -> None:
        model = experiment.model
        self.values = trial.values
        self._rows, self._places = np.asarray(model.kernels().pattern_p)
        own = model.with_values(dict(zip(model.parameters, trial.values[0].tolist(), strict=False)))
        parts = [
            term_values(own, run.times, states, run.inputs, _SAMPLES)
            for run, states in zip(experiment.runs, trial.states, strict=True)
        ]
        self._terms, self._rates = (np.hstack([part[i] for part in parts]) for i in (0, 1))

    def like(self, subset: Subset, candidates: Subset) -> Array:
        """Values [records, k + 3q] with which the terms of a set come nearest to the same sums."""
        values = self.values.copy()
        values[:, sorted(candidates)] = 0.0
        for state in np.unique(self._rows):
            sought = [i for i, j in self._entries(state) if j in candidates]
            force = self.values[0, self._places[sought]] @ self._terms[sought]
            chosen = [i for i in sought if self._places[i] in subset]
            if not chosen:
                continue
            columns = self._terms[chosen]
            size = np.linalg.norm(columns, axis=1)
            size[size == 0] = 1.0
            found = np.linalg.lstsq((columns / size[:, None]).T, force, rcond=1e-10)[0]
            values[:, self._places[chosen]] = found / size
        return values

    def widths(self) -> Array:
        """Sizes [k] at which each term alone makes the whole rate of its state; 0 of what is no term."""
        found = np.zeros(self.values.shape[1])
        rates = np.sqrt(np.mean(self._rates**2, axis=1))
        sizes = np.sqrt(np.mean(self._terms**2, axis=1))
        for row, place, size in zip(self._rows, self._places, sizes, strict=True):
            found[place] = rates[row] / size if size > 0 else 0.0
        return found

    def _entries(self, state: int) -> list[tuple[int, int]]:
        return [(i, int(self._places[i])) for i in np.flatnonzero(self._rows == state).tolist()]
