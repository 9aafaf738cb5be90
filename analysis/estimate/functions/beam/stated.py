"""What the description states and the fit takes as exact: do the data bear out the length and the mass?

One more evaluation with the logarithms of length and mass among the unknowns tells how well the data know
them, how the stiffness follows them, and by a score test whether other values would fit better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.beam.fit import Problem, smooths_of
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import layout
from analysis.estimate.functions.penalised import Fit, inverted, penalty_matrix

Array = NDArray[np.float64]

_KNOWN = 0.02  # standard error up to which the data know a number by themselves
_SURE = 4.0  # standard errors by which a stated number must be off
_SMALLEST = 1e-3  # that is called: below it stand the splines' own errors in records without noise
_MATTERS = 0.1  # per cent of EI by which one per cent of a number must move it
_SETTING = {"length": "length_error in [beam]", "density": "error in [mass]"}
_NAME = {"length": "length", "density": "mass"}


@dataclass(frozen=True)
class Stated:
    """One number of the description, seen by the data."""

    key: str
    error: float  # relative, from the data alone
    shift: float  # of its logarithm that the data would prefer
    moves: float  # relative change of EI for a relative change of it

    @property
    def doubted(self) -> bool:
        """The data know it and want another value."""
        return self.error < _KNOWN and abs(self.shift) > max(_SURE * self.error, _SMALLEST)

    @property
    def unchecked(self) -> bool:
        return self.error >= _KNOWN and abs(self.moves) > _MATTERS

    def words(self) -> str:
        name = _NAME[self.key]
        if self.doubted:
            return (
                f"The data want a {name} that is {100 * self.shift:+.2g} % off the stated one "
                f"({abs(self.shift) / self.error:.0f} standard errors)."
            )
        return (
            f"The data cannot check the stated {name}: each per cent of it moves EI by {self.moves:+.2g} %, "
            f"which the intervals do not count. State its error ({_SETTING[self.key]})."
        )


def stated_numbers(task: Problem, fit: Fit) -> list[Stated]:
    """Length and known mass where they are taken as exact and the stiffness is sought."""
    beam, old = task.system.beam, task.unknowns
    block = old.block("stiffness")
    exact = {
        "length": beam.length_error == 0,
        "density": beam.mass_error == 0 and not beam.profiles["mass"].free,
    }
    keys = [key for key, held in exact.items() if held]
    if block is None or not block.log or not keys:
        return []
    free = replace(
        beam,
        length_error=1.0 if "length" in keys else beam.length_error,
        mass_error=1.0 if "density" in keys else beam.mass_error,
    )
    unknowns = layout(free, intervals={b.key: b.intervals for b in old.blocks if b.intervals})
    unknowns = unknowns.with_losses(unknowns.start, [fit.theta[b.where] for b in old.losses])
    theta = unknowns.start.copy()
    for own in old.blocks:
        new = unknowns.block(own.key)
        assert new is not None
        theta[new.where] = fit.theta[own.where]
    system = BeamSystem(free, unknowns, task.system.space.elements, task.system.count)
    found = Problem(system, task.observations, task.noise).misfit(theta)
    matrix = found.hessian + penalty_matrix(smooths_of(unknowns), fit.weights, len(theta))
    added = [unknowns.block(key) for key in keys]
    places = [b.where.start for b in added if b is not None]
    inner = np.array([i for i in range(len(theta)) if i not in places])
    stiffness = unknowns.block("stiffness")
    assert stiffness is not None
    mean = np.zeros(len(theta))
    x = system.space.points
    mean[stiffness.where] = system.space.weights @ unknowns.basis(stiffness, x) / beam.length
    inverse = inverted(matrix[np.ix_(inner, inner)])
    out = []
    for key, i in zip(keys, places, strict=True):
        follow = inverse @ matrix[inner, i]
        left = max(float(matrix[i, i] - matrix[i, inner] @ follow) - 1.0, 1e-12)  # without the prior of 1
        slope = float(found.gradient[i])
        out.append(Stated(key, left**-0.5, -slope / left, -float(mean[inner] @ follow)))
    return out
