"""Does the identified model move as the specimen does? Checks, one to a file, and a verdict.

A chaotic model cannot be judged by its trajectory alone; it is judged by what is invariant (Yuan 1995,
section 4.7), by forecasts over a few Lyapunov times, and by what it leaves unexplained.
"""

from analysis.validation.bifurcation import Sweep
from analysis.validation.check import Check, Panel, Trace
from analysis.validation.section import energy_distance
from analysis.validation.subject import Subject, prepare_subject
from analysis.validation.verdict import Validation, validate

__all__ = [
    "Check",
    "Panel",
    "Subject",
    "Sweep",
    "Trace",
    "Validation",
    "energy_distance",
    "prepare_subject",
    "validate",
]
