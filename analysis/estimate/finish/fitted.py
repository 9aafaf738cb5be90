"""What maximum likelihood found, in the form in which it is judged: residuals and projected Jacobians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.start import Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment, Run, Unknown

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Piece:
    """A stretch of a record with an initial state of its own.

    The Jacobian is the derivative of the fitted outputs in the unknowns when the piece's initial state (and
    with it the whole path) follows them at its best: the initial state is projected out. Divided by the
    noise, such that the information of the unknowns is the sum of J'J over all pieces and samples.
    """

    run: Run
    record: int  # number of the run in the experiment
    first: int  # samples of the run: first (included) to stop (excluded)
    stop: int
    times: Array  # [N] the model's t
    states: Array  # [n, N]
    residuals: Array  # [q, N] measured minus fitted, in the outputs' own units; nan where missing
    jacobian: Array  # [q, N, P] over the noise; 0 where missing
    initial_slope: Array  # [n, P] d (state at the first sample) / d unknown
    initial_information: Array  # [n, n] of that state, the unknowns given
    input_residuals: Array = field(
        default_factory=lambda: np.zeros((0, 0))
    )  # [m, N] over their noise, if the
    input_jacobian: Array = field(default_factory=lambda: np.zeros((0, 0, 0)))  # inputs were estimated, too


@dataclass(frozen=True, eq=False)
class Fitted:
    """The maximum-likelihood fit of an experiment (white noise, the model right)."""

    experiment: Experiment
    start: Start
    engine: Literal["path", "shooting"]
    unknowns: Sequence[Unknown]  # P of them
    estimate: Array  # [P]
    values: Array  # [records, k + 3q]: all parameters, then offsets, delays and drifts of the outputs
    information: Array  # [P, P] Fisher information for white noise; singular where undetermined
    input_covariance: Array  # [P, P] what the unknown of the inputs adds to the covariance
    sigma: Array  # [records, q] noise of the outputs, given or estimated
    chi2: float
    dof: int
    converged: bool
    iterations: int
    evaluations: int
    history: list[dict[str, float]]
    message: str
    pieces: tuple[Piece, ...]
    steps: int = 1  # of the integration in each sample interval
    defect: float | None = None  # by which the path misses the equations, relative; None: they hold exactly
    segments: int = 1  # each with an initial state of its own

    @property
    def names(self) -> list[str]:
        return [unknown.name for unknown in self.unknowns]

    @property
    def findings(self) -> dict[str, float]:
        """Of the engine, as a result lists them."""
        found = {"steps": float(self.steps), "segments": float(self.segments)}
        return found if self.defect is None else {**found, "defect": self.defect}

    @property
    def inputs_estimated(self) -> bool:
        """Whether the noise of the inputs mattered, so that their samples were unknowns, too."""
        return any(len(piece.input_residuals) for piece in self.pieces)

    def chi2_at(self, sigma: Array) -> float:
        """Sum of squared residuals over the noise ``sigma`` [records, q]."""
        return float(
            sum(
                np.nansum((piece.residuals / np.maximum(sigma[piece.record], 1e-300)[:, None]) ** 2)
                for piece in self.pieces
            )
        )

    def as_start(self) -> Start:
        """A start for another fit from here, such as one in more pieces."""
        k = len(self.experiment.model.parameters)
        runs, n = self.experiment.runs, len(self.experiment.model.states)
        paths = [np.full((n, len(run.times)), np.nan) for run in runs]
        for piece in self.pieces:
            paths[piece.record][:, piece.first : piece.stop] = piece.states
        for path in paths:  # what no piece covers is never used: any finite state will do
            path[:] = np.where(np.isnan(path), np.nanmean(path, axis=1, keepdims=True), path)
        return Start(
            self.start.method,
            self.values[:, :k],
            paths,
            self.values[:, k:],
            engine=self.engine,
            steps=self.steps if self.engine == "path" else 0,
        )
