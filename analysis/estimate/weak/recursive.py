"""The weak form over a stream: block by block, at a cost that does not grow with the record.

For models linear in their parameters the normal equations of the weak form are sums over test functions, so
each block adds those that it completes. The estimate equals that of the whole record at once. Error bars
come from the scatter of the score between stretches of the stream, which asks nothing of the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Identification, Residual
from analysis.estimate.finish.assemble import write_start
from analysis.estimate.identifiability import covariance_of, pseudo_inverse
from analysis.estimate.start import OwnEstimate, Start
from analysis.estimate.weak.system import Equation, Nodes, WeakSystem
from analysis.experiment.drive_time import DRIVE_TIME, takers_of_shift_at
from analysis.model.model import Parameter
from analysis.signal.splines import DEGREE, Probes, make_probes

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

_SAMPLES_EACH = 3  # for each free parameter, of the data that decide whether a model needs the drive's time
_STRETCHES = 64  # sums kept apart for the error bars; beyond this neighbours are merged


@dataclass
class _Sums:
    """Normal equations of some test functions, for each equation of the model apart."""

    information: Array  # [equations, p, p]
    gradient: Array  # [equations, p]
    power: Array  # [equations], sum of squares of the left-hand side
    rows: float

    @classmethod
    def zero(cls, equations: int, p: int) -> _Sums:
        return cls(np.zeros((equations, p, p)), np.zeros((equations, p)), np.zeros(equations), 0.0)

    def add(self, other: _Sums) -> None:
        self.information += other.information
        self.gradient += other.gradient
        self.power += other.power
        self.rows += other.rows

    def fade(self, factor: float) -> None:
        self.information *= factor
        self.gradient *= factor
        self.power *= factor
        self.rows *= factor


class RecursiveWeak:
    """Parameters of a model from a stream of samples of all its states (and measured inputs).

    channels     names of the rows of each block; every state and every measured input must be among them
    spacing      samples between the knots of the test functions (support six times as wide)
    memory       time constant in seconds after which old data count 1/e; None: everything counts
    drive_time   the drive's time at sample 0 of the stream, the model's t there; None: unknown, which is
                 refused if the model needs it
    """

    def __init__(
        self,
        model: Model,
        rate: float,
        channels: Sequence[str],
        spacing: int = 4,
        memory: float | None = None,
        drive_time: float | None = None,
    ) -> None:
        if not model.is_linear or not model.free:
            raise ModelError(
                f"{model.name} is not linear in its free parameters, so it cannot run on a stream."
            )
        missing = [name for name in (*model.states, *model.inputs) if name not in channels]
        if missing:
            raise DataError(
                f"The stream lacks {', '.join(missing)}, which the weak form of {model.name} needs."
            )
        self.model, self.rate, self.spacing, self.memory = model, float(rate), spacing, memory
        self.drive_time = drive_time
        self._needs_time = model.equations.hold_time  # until the equations and the data show otherwise
        self._rows = [list(channels).index(name) for name in (*model.states, *model.inputs)]
        self._free = [model.index(name) for name in model.free]
        self._equations = [Equation(i) for i in range(len(model.states))]
        grid = np.arange((DEGREE + 1) * spacing + 1) / self.rate
        self._shape = make_probes(grid, np.zeros(1, dtype=np.int64), spacing)
        self._pending = np.zeros((len(self._rows), 0))
        self._next = 0  # index in the stream of the first pending sample
        self._stretches: list[_Sums] = []
        self._merge = 1  # blocks in each stretch
        self._fill = 0

    def update(self, block: Array, start: int | None = None) -> int:
        """Take a block [channels, samples]; returns how many test functions it completed.

        ``start``: index of its first sample in the stream. A gap, or a sample that is not a number, ends the
        test functions that would reach over it.
        """
        rows = np.asarray(block, dtype=np.float64)[self._rows]
        expected = self._next + self._pending.shape[1]
        first = expected if start is None else start
        if first != expected:
            self._pending, self._next = np.zeros((len(self._rows), 0)), first
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=0))
        edges = [-1, *bad.tolist(), rows.shape[1]]
        total = 0
        for before, after in pairwise(edges):
            if before >= 0:
                self._pending, self._next = np.zeros((len(self._rows), 0)), first + before + 1
            total += self._take(rows[:, before + 1 : after])
        return total

    def _take(self, rows: Array) -> int:
        self._pending = np.concatenate([self._pending, rows], axis=1)
        count = (self._pending.shape[1] - 1) // self.spacing - DEGREE
        if count < 1:
            return 0
        used = (count + DEGREE) * self.spacing + 1
        n = len(self.model.states)
        times = (self.drive_time or 0.0) + (self._next + np.arange(used)) / self.rate
        data = Nodes(
            times, np.ascontiguousarray(self._pending[:n, :used]),
            np.ascontiguousarray(self._pending[n:, :used]), np.zeros(1, dtype=np.int64),
        )  # fmt: skip
        if self.drive_time is None and self._needs_time:
            self._check_time(data)
        shape = self._shape
        first = shape.first[0] + np.arange(count, dtype=np.int64) * self.spacing
        probes = Probes(first, shape.value, shape.slope, shape.curvature)
        system = WeakSystem(
            self.model.kernels(), data, self.spacing, self._equations, len(self.model.parameters), probes
        )
        self._add(system)
        self._pending = self._pending[:, count * self.spacing :]
        self._next += count * self.spacing
        return count

    def _check_time(self, data: Nodes) -> None:
        """Refuse a model that needs the drive's time; with cosine and sine of unknown size it does not."""
        if len(data.times) < _SAMPLES_EACH * len(self._free):
            return  # too few to tell: asked again with the next block
        shifted = self.model.with_time_shift(DRIVE_TIME, Parameter(0.0, free=True))
        if takers_of_shift_at(shifted, data.times, data.states, data.inputs, self.model.free) is None:
            raise DataError(
                f"{self.model.name} depends on the drive's time t, which the stream does not tell: wait "
                "until the drive plays a steady sine of known phase, or write the model with the measured "
                "drive as an input."
            )
        self._needs_time = False

    def _add(self, system: WeakSystem) -> None:
        """Rows are linear: left side minus the terms at zero parameters equals derivatives times
        parameters.
        """
        p = self.model.values()
        p[self._free] = 0.0
        residual, derivatives = system.linearised(p, self._free)
        A = -derivatives.transpose(1, 0, 2)  # [equations, p, K]
        sums = _Sums(
            A @ A.transpose(0, 2, 1),
            np.einsum("epk,ek->ep", A, residual),
            np.sum(system.left**2, axis=1),
            float(residual.shape[1]),
        )
        if self.memory is not None:
            factor = float(np.exp(-residual.shape[1] * self.spacing / self.rate / self.memory))
            for old in self._stretches:
                old.fade(factor)
        if self._fill == 0:
            self._stretches.append(_Sums.zero(len(A), A.shape[1]))
        self._stretches[-1].add(sums)
        self._fill = (self._fill + 1) % self._merge
        if len(self._stretches) > _STRETCHES and self._fill == 0:
            for i in range(0, len(self._stretches) - 1, 2):
                self._stretches[i].add(self._stretches[i + 1])
            self._stretches = self._stretches[::2]
            self._merge *= 2

    def estimate(self) -> Identification:
        """Parameters from all that has come so far."""
        names = list(self.model.free)
        if not self._stretches or (self.drive_time is None and self._needs_time):
            raise DataError("The stream is too short yet for a single test function.")
        total = _Sums.zero(len(self._equations), len(names))
        for stretch in self._stretches:
            total.add(stretch)
        weight = np.where(total.power > 0, total.rows / np.where(total.power > 0, total.power, 1.0), 1.0)
        information = np.einsum("e,epq->pq", weight, total.information)
        theta = pseudo_inverse(information) @ np.einsum("e,ep->p", weight, total.gradient)
        scores = np.array(
            [np.einsum("e,ep->p", weight, s.gradient - s.information @ theta) for s in self._stretches]
        )
        inverse = pseudo_inverse(information)
        count = len(scores)
        meat = scores.T @ scores * (count / max(count - len(names), 1)) if count > len(names) else np.inf
        covariance = inverse @ meat @ inverse if count > len(names) else np.full_like(inverse, np.inf)
        infinite = ~np.isfinite(np.diag(covariance_of(information)))
        covariance[np.diag_indices(len(names))] = np.where(infinite, np.inf, np.diag(covariance))
        own = OwnEstimate(
            names,
            theta,
            information,
            covariance,
            Residual(other={"functions": total.rows}),
            {n: self.model.unit(n) for n in names},
        )
        found = Start("weak", self.model.values(), iterations=1, own=own)
        said = {"recursive": True, "spacing": self.spacing, "memory": self.memory}
        return write_start(found, self.model.name, self.model.text, said)
