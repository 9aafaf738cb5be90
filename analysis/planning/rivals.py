"""Which drive tells two models apart: what one cannot explain of the other's motion (T-optimality).

If one model is true, the other is fitted to its motion as well as it can be: with the first state free and
its parameters moved from the present fit, whose covariance counts. What it leaves, in units of the noise, is

    chi2 = sum e'e - g' (M0 + G)^-1 g,        G = sum J'J,  g = sum J'e

with e and J the innovations and their sensitivities along the other's path (Atkinson and Fedorov 1975,
linearised). Where both have the same states the path of the true one is taken for both, so that chaos does
not pull them apart; states of its own the rival moves by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.planning.prospect import Prospect
from analysis.simulation.simulate import Trajectory

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Misfit:
    """What a rival leaves of a motion, in parts that add up over segments."""

    left: float  # e'e
    score: Array  # J'e
    information: Array  # J'J

    def __add__(self, other: Misfit) -> Misfit:
        return Misfit(self.left + other.left, self.score + other.score, self.information + other.information)

    def chi2(self, prior: Array) -> float:
        """What is left after the rival's parameters have moved."""
        scale = 1.0 / np.sqrt(np.diag(prior))
        total = (prior + self.information) * np.outer(scale, scale)
        moved = np.linalg.lstsq(total, scale * self.score, rcond=None)[0]
        return max(self.left - float((scale * self.score) @ moved), 0.0)


def misfit(run: Trajectory, rival: Prospect, drive: Array) -> Misfit | None:
    """What the rival leaves of another model's motion under the same drive; None if its own diverges."""
    values = rival.knowledge.values
    own = rival.motion(drive, values)
    if own is None:
        return None
    model = rival.knowledge.model
    shared = [name for name in model.states if name in run.model.states]
    states = own.states.copy()
    for name in shared:
        states[model.states.index(name)] = run.states[run.model.states.index(name)]
    measured = [name for name in model.outputs if name in run.model.outputs and name in rival.noise]
    if not measured:
        raise DataError(f"{model.name} and {run.model.name} have no output in common that the rig measures.")
    outputs = np.full((len(model.outputs), len(run.times)), np.nan)
    for name in measured:
        outputs[model.outputs.index(name)] = run[name]
    found = rival.regression(
        Trajectory(model, run.times, states, own.parameters, own.inputs), values, outputs
    )
    if not found.finite:
        return None
    return Misfit(float(np.nansum(found.errors**2)), found.score, found.information)


def choose_separating(misfits: list[list[Misfit]], priors: list[Array], slots: int) -> list[int]:
    """Candidates for each slot that make the mean of log(1 + chi2) over the draws largest, by exchange.

    ``misfits[c]`` holds those of candidate c: one for each draw of each direction, as ``priors`` has them.
    """

    def merit(parts: list[Misfit]) -> float:
        return float(np.mean([np.log1p(p.chi2(prior)) for p, prior in zip(parts, priors, strict=True)]))

    def summed(chosen: list[int]) -> list[Misfit]:
        rows = [misfits[c] for c in chosen]
        return [sum(column[1:], column[0]) for column in zip(*rows, strict=True)]

    chosen: list[int] = []
    for _ in range(slots):
        chosen.append(max(range(len(misfits)), key=lambda c: merit(summed([*chosen, c]))))
    for place in range(slots):
        rest = chosen[:place] + chosen[place + 1 :]
        chosen[place] = max(range(len(misfits)), key=lambda c: merit(summed([*rest, c])))
    return sorted(chosen)
