"""What can be chosen in a search for terms, and what a term costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analysis.estimate.discovery.quadratic import Subset

if TYPE_CHECKING:
    from analysis.estimate.discovery.trials import Trial
    from analysis.experiment import Experiment


@dataclass(frozen=True)
class Choice:
    """What can be chosen, as indices of the library model's parameters, and the price of a term."""

    candidates: Subset
    always: Subset
    price: float
    shapes: Mapping[int, Subset]  # numbers inside terms, and the candidates that hold them
    samples: int
    noisy: bool = False  # the inputs have noise that matters

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        candidates: Subset,
        always: Subset,
        shapes: Mapping[int, Subset],
        noisy: bool = False,
    ) -> Choice:
        """Extended information criterion: ln(samples) + 2 ln(terms) for each term (Chen and Chen 2008), and
        the same for each number inside the terms."""
        samples = sum(int(np.isfinite(run.outputs).sum()) for run in experiment.runs)
        price = math.log(samples) + 2 * math.log(len(candidates - always))
        return cls(candidates, always, price, shapes, samples, noisy)

    def criterion(self, trial: Trial) -> float:
        """The lower, the likelier; infinite where the misfit is not that of the equations."""
        if not trial.held:
            return math.inf
        inside = sum(bool(users & trial.subset) for users in self.shapes.values())
        return trial.misfit + self.price * (len(trial.subset - self.always) + inside)

    @property
    def unsettled(self) -> Subset:
        """What comes and goes with a choice: terms that do not always stay, and numbers inside terms."""
        return (self.candidates | frozenset(self.shapes)) - self.always

    @property
    def bound(self) -> dict[int, Subset]:
        """The shapes of each candidate that has some."""
        users = frozenset(i for own in self.shapes.values() for i in own)
        return {i: frozenset(s for s, own in self.shapes.items() if i in own) for i in users}
