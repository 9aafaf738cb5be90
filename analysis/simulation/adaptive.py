"""An adaptive run: explicit steps of order 8, implicit ones where the model turns out to be stiff."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.model import Model
from analysis.model.kernels import JAC_TYPE, RHS_TYPE
from analysis.signal.inputs import Inputs
from analysis.simulation.integrate import (
    ADAPTIVE_ROWS,
    DIVERGED,
    FINISHED,
    MAX_STEPS,
    NO_SURFACES,
    STIFF,
    UNFINISHED,
    adaptive,
)
from analysis.simulation.radau import implicit, radau_table, stages_for, workspace
from analysis.simulation.rounding import slope_noise
from analysis.simulation.slope import PAIR_TYPE, system_of

Array = NDArray[np.float64]

LONG = 20_000  # steps after which a model's own step is worth its compilation
TRIAL = 30  # implicit steps after which their length is compared with that of the explicit ones
WORTH = 10.0  # times an explicit step that an implicit one must be long, because it costs that much more
EARLY = (30, 300, 3000)  # steps after which the sizes of the states are looked at again


@dataclass
class AdaptiveRun:
    """States (``columns`` None) or states with sensitivities to the parameters ``columns``, from ``y``."""

    model: Model
    times: Array
    parameters: Array
    inputs: Inputs
    y: Array  # states, then sensitivities row by row; the state reached when the run ends
    out: Array  # [len(y), len(times)]
    rtol: float
    atol: float  # of every state, added to the relative tolerance
    bound: float
    columns: NDArray[np.int64] | None = None
    most_steps: int = MAX_STEPS
    column: int = 0  # the next one to be filled
    t: float = 0.0
    h: float = 0.0
    steps: int = 0
    _work: Array = field(default_factory=lambda: np.empty((0, 0)))
    _noise: Array = field(default_factory=lambda: np.empty(0))

    def run(self, stiff: bool) -> tuple[int, float, int]:
        """Columns filled, time reached and number of steps; ``stiff``: implicit steps from the start."""
        self.t, self.y = float(self.times[0]), self.y.copy()
        self._work = np.zeros((ADAPTIVE_ROWS, len(self.y)))
        how = STIFF if stiff else UNFINISHED
        watched = True
        while True:
            self._look_at_rounding()
            if how == STIFF:
                how = self._implicit(self.most_steps) if stiff else self._implicit_if_longer()
                watched = False
            else:
                how = self._explicit(watched)
            if how in (FINISHED, DIVERGED) or self.steps >= self.most_steps:
                return self.column, self.t, self.steps

    def _look_at_rounding(self) -> None:
        """Rounding errors of the slopes for states as large as they have been so far."""
        n = len(self.model.states)
        peak = np.maximum(self._work[3, :n], np.abs(self.y[:n]))
        u = self.inputs.values(np.array([self.t]))[:, 0].copy()
        rhs = self.model.kernels().rhs
        span = float(self.times[-1] - self.times[0])
        found = slope_noise(rhs, self.t, self.y[:n], peak, u, self.parameters, span)
        self._noise = np.maximum(self._noise, found) if len(self._noise) else found

    def _explicit(self, watched: bool) -> int:
        """Start with the common integrator; a long run of a small model goes on with the model's own step,
        which takes two seconds to compile when it is first used."""
        kernels, n = self.model.kernels(), len(self.model.states)
        own_step = self.columns is None and kernels.has_own_step
        kernel_type: Any = RHS_TYPE if self.columns is None else JAC_TYPE
        left = self.most_steps - self.steps
        own, budget = None, min(next((steps for steps in EARLY if steps > self.steps), left), left)
        f = kernels.rhs if self.columns is None else kernels.jac
        if (
            own_step and self.steps >= LONG
        ):  # whatever is compiled already: the same run gives the same digits
            kernel_type, own = PAIR_TYPE, kernels.dop853
        elif own_step:
            budget = min(budget, LONG)
        self.column, self.t, self.h, taken, how = adaptive(kernel_type)(
            f, own, *NO_SURFACES, self._system(), self.t, self.h, self.column, self.times, self.y, n,
            self.inputs.breaks, self.rtol, self.atol, self._noise, self.bound, self.most_steps, budget,
            int(watched), self._work, self.out,
        )  # fmt: skip
        self.steps += taken
        self.y = self._work[0].copy()
        return int(how)

    def _system(self) -> tuple[Any, ...]:
        return system_of(len(self.model.states), self.parameters, self.inputs, self.columns)

    def _implicit_if_longer(self) -> int:
        """Go on with implicit steps if they pay; UNFINISHED: they do not, or fail."""
        before, explicit = (self.column, self.t, self.h, self.y.copy()), self.h
        how = self._implicit(TRIAL)
        if how == UNFINISHED and self.t - before[1] > WORTH * TRIAL * explicit:
            how = self._implicit(self.most_steps)
        if how == FINISHED:
            return FINISHED
        if how == DIVERGED:  # perhaps at a corner that explicit steps can pass
            self.column, self.t, self.h, self.y = before
        self.h = min(self.h, explicit)
        return UNFINISHED

    def _implicit(self, budget: int) -> int:
        kernels, n = self.model.kernels(), len(self.model.states)
        m = 0 if self.columns is None else len(self.columns)
        self.column, self.t, self.h, taken, how = implicit()(
            kernels.jac, self._system(), self.t, self.h, self.column, self.times, self.y, n,
            self.inputs.breaks, self.rtol, self.atol, self._noise, self.bound, self.most_steps, budget,
            tuple(radau_table(stages_for(n))), workspace(n, m), self._work[3], self.out,
        )  # fmt: skip
        self.steps += taken
        return int(how)
