"""Method ``path``: maximum likelihood from the model's own guesses; the work is the finish's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from analysis.base.progress import Progress
from analysis.estimate.start import Start
from analysis.experiment import Experiment


@dataclass(frozen=True)
class Path:
    """Options of the maximum-likelihood path: none of its own."""

    name: ClassVar[str] = "path"

    def start(self, experiment: Experiment, progress: Progress, alone: bool = False) -> Start:
        """The guesses as they are; the states as the data show them."""
        return Start("path", experiment.guesses())
