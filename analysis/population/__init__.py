"""Many estimates of the same quantity: mean and spread between specimens, outliers, changes over time."""

from analysis.population.change import ChangePoint, change_points
from analysis.population.control import Control, control
from analysis.population.random_effects import RandomEffects, random_effects
from analysis.population.rivals import DRIFT, WANDERING

__all__ = [
    "DRIFT",
    "WANDERING",
    "ChangePoint",
    "Control",
    "RandomEffects",
    "change_points",
    "control",
    "random_effects",
]
