"""What a record under a drive would tell: simulated motions, their information, and the limits they keep.

The information of a record is that of its maximum-likelihood path (analysis/estimate/finish/linearised.py):
the initial state is unknown, noise of measured inputs is counted, and the forward sweep along the motion
keeps it finite where the motion is chaotic and plain sensitivities grow without bound.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.estimate.finish.linearised import Linearisation, Regression, Stretch
from analysis.planning.knowledge import Knowledge
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import Trajectory, simulate

Array = NDArray[np.float64]

_SAMPLES_A_PERIOD = 20  # of the highest frequency of the drive: more of them are counted, not computed
_ACCURATE = 1e-3  # of a state's range: two step sizes that differ by less are small enough
_MOST_SUBSTEPS = 64
_DIFFUSE = 30.0  # spread of the unknown first state, in ranges of that state


@dataclass(frozen=True)
class Bound:
    """What a signal of the model must not exceed on this rig, and why, in words."""

    name: str  # a state, output or measured input
    lower: float
    upper: float
    why: str = ""

    def within(self, margin: float) -> Bound:
        """The same, tighter by a share of its width."""
        cut = 0.5 * margin * (self.upper - self.lower)
        return replace(self, lower=self.lower + cut, upper=self.upper - cut)


@dataclass(frozen=True, eq=False)
class Prospect:
    """A rig as the model sees it: sample rate, noise of its sensors and of measured inputs, and bounds."""

    knowledge: Knowledge
    rate: float
    noise: Mapping[str, float]  # standard deviation by output that the rig measures
    input_noise: Array  # [m], 0: exact
    highest: float  # Hz, of the drive
    bounds: tuple[Bound, ...] = ()
    initial: Array = field(default_factory=lambda: np.zeros(0))
    substeps: int = 1

    def __post_init__(self) -> None:
        model = self.knowledge.model
        if not any(name in self.noise for name in model.outputs):
            raise DataError(
                f"The rig measures none of the outputs {', '.join(model.outputs)} of {model.name}."
            )
        if not len(self.initial):
            start = [model.initial[n].value if n in model.initial else 0.0 for n in model.states]
            object.__setattr__(self, "initial", np.array(start))

    @property
    def thinning(self) -> int:
        """Samples that one computed sample stands for."""
        return max(1, int(self.rate / (_SAMPLES_A_PERIOD * self.highest)))

    def with_fine_steps(self, drive: Array) -> Prospect:
        """The same with as many integration steps a sample as the motion under this drive [m, N] needs."""
        inputs, values = drive[:, : round(self.rate * 40 / self.highest) + 8], self.knowledge.values
        steps = 1
        coarse = replace(self, substeps=steps).motion(inputs, values)
        while steps < _MOST_SUBSTEPS:
            fine = replace(self, substeps=2 * steps).motion(inputs, values)
            if coarse is not None and fine is not None:
                reach = np.ptp(fine.states, axis=1, keepdims=True) + 1e-300
                if np.max(np.abs(fine.states - coarse.states) / reach) < _ACCURATE:
                    break
            coarse, steps = fine, 2 * steps
        return replace(self, substeps=steps)

    def at_rest(self, seconds: float) -> Prospect:
        """The same from where the specimen comes to rest without a drive, if it does within that time."""
        still = np.zeros((len(self.knowledge.model.inputs), max(2, round(seconds * self.rate))))
        run = self.motion(still, self.knowledge.values)
        if run is None:
            return self
        late = run.states[:, -max(2, len(run.times) // 10) :]
        settled = np.ptp(late, axis=1) <= 0.05 * np.ptp(run.states, axis=1) + 1e-12
        return replace(self, initial=run.states[:, -1].copy()) if settled.all() else self

    def motion(self, drive: Array, values: Array) -> Trajectory | None:
        """The motion under inputs drive[m, N] sampled at the rate, from rest; None if it diverges."""
        k = len(self.knowledge.model.parameters)
        parameters = np.ascontiguousarray(self.knowledge.vector(values)[:k])
        times = np.arange(drive.shape[1]) / self.rate
        inputs = Inputs.from_samples(0.0, 1 / self.rate, drive, "cubic") if len(drive) else None
        run = simulate(
            self.knowledge.model, times, self.initial, parameters, inputs, "rk4", substeps=self.substeps
        )
        return None if run.diverged_at is not None else run

    def broken(self, run: Trajectory | None, drive: Array, margin: float = 0.0) -> Bound | None:
        """The first bound, tightened by the margin, that a motion does not keep; None if it keeps all."""
        if run is None:
            return Bound("", -np.inf, np.inf, "the motion grows without bound")
        for bound in self.bounds:
            tight, signal = bound.within(margin), self._signal(run, drive, bound.name)
            if signal.min() < tight.lower or signal.max() > tight.upper:
                return bound
        return None

    def first_break(self, run: Trajectory | None, drive: Array) -> int:
        """The first sample beyond a bound; the last one of all where none is."""
        found = [drive.shape[1] - 1]
        if run is None:
            return found[0]
        for bound in self.bounds:
            signal = self._signal(run, drive, bound.name)
            out = np.flatnonzero((signal < bound.lower) | (signal > bound.upper))
            found += [int(k) for k in out[:1]]
        return min(found)

    def resonances(self) -> list[float]:
        """Frequencies of small motions about rest, in cycles per unit of time, ascending."""
        return sorted(float(w.imag) / (2 * np.pi) for w in self._eigenvalues() if w.imag > 0)

    def memory(self) -> float:
        """Time in which the slowest small motion about rest falls to 1/e; 0 where nothing turns or falls."""
        falling = [-w.real for w in self._eigenvalues() if w.imag > 0 and w.real < 0]
        return float(1 / min(falling)) if falling else 0.0

    def _eigenvalues(self) -> NDArray[np.complex128]:
        model = self.knowledge.model
        n, k = len(model.states), len(model.parameters)
        slope, by_state, by_parameter = np.empty(n), np.empty((n, n)), np.empty((n, k))
        p = np.ascontiguousarray(self.knowledge.vector(self.knowledge.values)[:k])
        u = np.zeros(len(model.inputs))
        model.kernels().jac(0.0, self.initial.copy(), u, p, slope, by_state, by_parameter)
        if not np.isfinite(by_state).all():
            return np.zeros(0, dtype=np.complex128)
        return np.linalg.eigvals(by_state).astype(np.complex128)

    def _signal(self, run: Trajectory, drive: Array, name: str) -> Array:
        inputs = self.knowledge.model.inputs
        return np.asarray(drive[inputs.index(name)] if name in inputs else run[name])

    def information(self, run: Trajectory, values: Array, without: Collection[str] = ()) -> Array:
        """Information [U, U] that a record of this motion holds about the unknowns.

        Divided by the squares of the widening: coloured noise and model errors stay what they are.
        ``without``: outputs that are not measured.
        """
        return np.asarray(self.course(run, values, 1, without)[0])

    def course(self, run: Trajectory, values: Array, parts: int, without: Collection[str] = ()) -> Array:
        """The same of consecutive parts [parts, U, U] of the record, each beside those before it."""
        seen = np.array([n in self.noise and n not in without for n in run.model.outputs])
        whole = self.regression(run, values, np.where(seen[:, None], run.outputs, np.nan))
        found = np.array([part.information for part in whole.split(parts)])
        return np.asarray(found / np.outer(self.knowledge.widening, self.knowledge.widening))

    def regression(self, run: Trajectory, values: Array, outputs: Array) -> Regression:
        """Outputs [q, N] (nan: not measured) beside this path, and their sensitivities to the unknowns.

        A path that does not obey the equations has defects, which the errors show.
        """
        model, every = self.knowledge.model, self.thinning
        sigma = np.array([self.noise.get(n, 1.0) for n in model.outputs]) / np.sqrt(every)
        spread = _DIFFUSE * np.ptp(run.states, axis=1)
        order = np.arange(len(self.knowledge.names), dtype=np.int64)
        stretch = Stretch(
            np.ascontiguousarray(run.times[::every]),
            np.ascontiguousarray(run.states[:, ::every]),
            np.ascontiguousarray(outputs[:, ::every]),
            self.knowledge.vector(values),
            self.knowledge.indices,
            order,
            sigma,
            run.inputs if run.inputs.count else None,
            self.input_noise / np.sqrt(every),
            np.where(spread > 0, spread, _DIFFUSE),
            0.0,
        )
        steps = every * self.substeps
        return Linearisation(model.kernels(), stretch, len(order), steps, obeys=False).regression()


def stderr_after(information: Array, prior: Array) -> Array:
    """Median over the draws [D, U, U] of the standard errors that the information leaves."""
    total = prior + information
    scale = 1.0 / np.sqrt(np.maximum(np.einsum("dii->di", total), 1e-300))
    inverse = np.linalg.pinv(total * scale[:, :, None] * scale[:, None, :], hermitian=True)
    return np.asarray(np.median(np.sqrt(np.maximum(np.einsum("dii->di", inverse), 0.0)) * scale, axis=0))
