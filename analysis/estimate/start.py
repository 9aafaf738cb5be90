"""What every method has in common: an experiment in, a good start for the maximum likelihood out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Curve, Estimate, Residual
from analysis.base.progress import Progress

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted
    from analysis.experiment import Experiment

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OwnEstimate:
    """Parameters with the error bars that a method gives by itself, before any maximum likelihood."""

    names: Sequence[str]  # of unknowns of the experiment, or of what else the method has found
    estimate: Array  # [P]
    information: Array | None = None  # [P, P] inverse covariance; singular: undetermined; None: no error bars
    covariance: Array | None = None  # [P, P] where it is not the inverse of the information
    residual: Residual = field(default_factory=Residual)
    units: Mapping[str, str] = field(default_factory=dict)
    quantile: Array | None = None  # [P] half width of the 95 % intervals in standard errors; None: normal
    ideal: Array | None = (
        None  # [P, P] covariance if the noise were white and the model right; None: the same
    )


@dataclass(frozen=True)
class OtherReading:
    """How else inputs can be read between their samples, and what the unknowns move by to that."""

    kind: str
    shift: Sequence[float] | None  # None: the data prove the other one


@dataclass(frozen=True, eq=False)
class Start:
    """Where a method has come to: parameters and states to start the maximum likelihood from."""

    method: str
    values: Array  # [records, k] parameters of the experiment's model; one row: the same for all records
    states: Sequence[Array | None] = ()  # [n, N] for each run, where the method knows better than the data
    sensors: Array | None = None  # [records, 3q] or [3q]: offsets, delays, drifts of the outputs
    converged: bool = True
    iterations: int = 0
    evaluations: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    undetermined: list[str] = field(default_factory=list)  # sentences beyond those that the information tells
    own: OwnEstimate | None = None  # shown when the maximum likelihood is left out
    parameters: Mapping[str, Estimate] = field(default_factory=dict)  # likewise, of what no fit seeks
    residual: Residual = field(default_factory=Residual)  # likewise
    experiment: Experiment | None = None  # what is to be finished, if it is not the one that was given
    finishable: bool = True  # False: the method found that maximum likelihood would make no sense
    verdict: str | None = None  # of a method that judges by itself, for ``reasons``; None: it does not
    reasons: list[str] = field(default_factory=list)
    chosen: str = ""  # why this method, where that was left to the program
    rivals: Sequence[str] = ()  # sentences on other numbers that follow the record as well
    jumps: Sequence[float] = ()  # times at which the record was cut
    other_reading: OtherReading | None = None  # of the inputs, that was left for a better one
    findings: dict[str, Any] = field(default_factory=dict)  # what else was found, JSON values only
    curves: dict[str, Curve] = field(default_factory=dict)
    references: Sequence[str] = ()
    engine: Literal["path", "shooting"] = "path"  # the maximum likelihood that suits the start
    steps: int = 0  # sub-steps of a sample interval for a path's flow, from a fit close by; 0: not known
    fitted: Fitted | None = None  # made already while choosing


class Method(Protocol):
    """An identification method: a frozen dataclass whose fields are its options."""

    name: ClassVar[str]

    def start(self, experiment: Experiment, progress: Progress, alone: bool = False) -> Start:
        """Where the method comes to; ``alone``: no maximum likelihood follows, its own errors count."""
        ...
