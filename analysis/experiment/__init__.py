"""One experiment, one meaning: the only place that interprets a record for a model (see experiment.py)."""

from analysis.experiment.conditions import Conditions
from analysis.experiment.experiment import Experiment
from analysis.experiment.run import Run
from analysis.experiment.unknown import Unknown

__all__ = ["Conditions", "Experiment", "Run", "Unknown"]
