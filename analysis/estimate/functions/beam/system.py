"""The beam for given unknowns: reduced matrices, complex modes and their derivatives."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.beam.description import Beam
from analysis.estimate.functions.beam.galerkin import Space, spline_space
from analysis.estimate.functions.beam.response import Complex, Modes, complex_modes, real_modes, settled_modes
from analysis.estimate.functions.beam.unknowns import Block, Unknowns

Array = NDArray[np.float64]
SUSPENSION = 1e-4  # stiffness of the soft springs that hold a free end, in EI/L^3; see the method's page


@dataclass(frozen=True)
class State:
    """The beam at one value of the unknowns; ``basis`` holds the reduced shapes."""

    basis: Array  # [n, r]
    squared: Array  # undamped frequencies squared, rad^2 per unit time^2
    modes: Modes
    base_load: Array  # reduced load of unit base acceleration, [r]
    spread_load: Array  # reduced load of a unit distributed load, [r]
    # derivatives by unknown, filled when asked for
    dpoles: Complex = field(default_factory=lambda: np.zeros((0, 0), dtype=np.complex128))  # [P, K]
    dshapes: Complex = field(default_factory=lambda: np.zeros((0, 0, 0), dtype=np.complex128))  # [P, r, K]
    dmass: dict[int, Array] = field(default_factory=dict)  # reduced, only where the unknown moves the mass
    dbase_load: dict[int, Array] = field(default_factory=dict)


class BeamSystem:
    """Reduced Galerkin model of a beam with N elements; ``modes``: how many are kept (None: all up to 40)."""

    def __init__(
        self, beam: Beam, unknowns: Unknowns, elements: int | None = None, modes: int | None = None
    ) -> None:
        self.beam = beam
        self.unknowns = unknowns
        self.space: Space = spline_space(beam.length, elements or beam.elements, beam.left, beam.right)
        self.count = min(modes or 40, self.space.size)
        self.evaluations = 0
        x = self.space.points
        self._bases = {b.key: unknowns.basis(b, x) for b in unknowns.blocks if b.key in beam.profiles}
        self._tip = self.space.at(np.array([beam.length]))[0]
        self._suspension = self._soft_springs()

    @cached_property
    def rigid(self) -> int:
        """How many rigid-body motions the supports allow."""
        ends = (self.beam.left, self.beam.right)
        return 0 if "clamped" in ends else ends.count("free")

    def state(self, theta: Array, derivatives: bool = True) -> State:
        """Modes at ``theta``; with derivatives in every unknown if asked."""
        from scipy import sparse

        self.evaluations += 1
        space, unknowns = self.space, self.unknowns
        values = {key: unknowns.property_at(key, theta, space.points) for key in self.beam.profiles}
        tip_mass = unknowns.scalar("tip_mass", theta)
        mass = space.mass(values["mass"])
        if tip_mass:
            tip = sparse.csc_matrix(self._tip[None, :])
            mass = mass + tip_mass * (tip.T @ tip)
        stiffness = space.bending(values["stiffness"])
        if self._suspension is not None:
            stiffness = stiffness + self._suspension
        basis = real_modes(stiffness, mass, self.count)
        # The sums over Gauss points are the accurate ones: settle frequencies and scaling with them.
        shape, curvature = space.value @ basis, space.curvature @ basis
        tip_row = self._tip @ basis
        weight = space.weights
        reduced_mass = _gram(shape, weight * values["mass"]) + tip_mass * np.outer(tip_row, tip_row)
        reduced_stiffness = _gram(curvature, weight * values["stiffness"])
        if self._suspension is not None:
            reduced_stiffness += basis.T @ (self._suspension @ basis)
        squared, turn = settled_modes(reduced_stiffness, reduced_mass)
        basis, shape, curvature, tip_row = basis @ turn, shape @ turn, curvature @ turn, tip_row @ turn
        damping = None
        if "viscous" in values:
            damping = _gram(shape, weight * values["viscous"])
        if "kelvin_voigt" in values:
            internal = _gram(curvature, weight * values["kelvin_voigt"])
            damping = internal if damping is None else damping + internal
        modes = complex_modes(squared, damping)
        base_load = -(shape.T @ (weight * values["mass"]) + tip_mass * tip_row)
        state = State(basis, squared, modes, base_load, shape.T @ weight)
        if not derivatives:
            return state
        return self._differentiated(state, values, shape, curvature, tip_row, tip_mass)

    def _differentiated(
        self,
        state: State,
        values: dict[str, Array],
        shape: Array,
        curvature: Array,
        tip_row: Array,
        tip_mass: float,
    ) -> State:
        count, kept = self.unknowns.size, len(state.modes.kept)
        dpoles = np.zeros((count, kept), dtype=np.complex128)
        dshapes = np.zeros((count, shape.shape[1], kept), dtype=np.complex128)
        for block in self.unknowns.blocks:
            for offset in range(block.size):
                p = block.where.start + offset
                change: dict[str, Array] = {}
                if block.key == "tip_mass":
                    change["mass"] = tip_mass * np.outer(tip_row, tip_row)
                    state.dbase_load[p] = -tip_mass * tip_row
                elif block.key in values:
                    weight = self._slope(block, offset, values)
                    rows = np.flatnonzero(weight)
                    part = curvature if block.key in ("stiffness", "kelvin_voigt") else shape
                    change[_MATRIX[block.key]] = _gram(part[rows], weight[rows])
                    if block.key == "mass":
                        state.dbase_load[p] = -(shape[rows].T @ weight[rows])
                if not change:
                    continue  # the load moves no mode
                if "mass" in change:
                    state.dmass[p] = change["mass"]
                dpoles[p], dshapes[p] = state.modes.sensitivity(
                    change.get("mass"), change.get("damping"), change.get("stiffness")
                )
        return replace(state, dpoles=dpoles, dshapes=dshapes)

    def _slope(self, block: Block, offset: int, values: dict[str, Array]) -> Array:
        """Gauss weight times the derivative of the property in one coefficient."""
        slope = self._bases[block.key][:, offset] * self.space.weights
        return np.asarray(slope * values[block.key] if block.log else slope)

    def frequencies(self, state: State) -> tuple[Array, Array]:
        """Natural frequencies without rigid motions, Hz, and their derivatives [modes, P]."""
        poles = state.modes.poles[state.modes.kept]
        order = np.argsort(np.abs(poles))[self.rigid :]
        size = np.abs(poles[order])
        slopes = (np.conj(poles[order]) * state.dpoles[:, order]).real / size if state.dpoles.size else None
        jacobian = np.zeros((len(order), 0)) if slopes is None else slopes.T / (2 * np.pi)
        return size / (2 * np.pi), jacobian

    def _soft_springs(self) -> Any:
        """Soft unequal springs at free ends of a beam that could fly away, so that no pole is double."""
        from scipy import sparse

        beam = self.beam
        if self.rigid == 0:
            return None
        mean = float(np.mean(beam.profiles["stiffness"].shape(self.space.points)))
        rows = self.space.at(np.array([0.0, beam.length]))
        stiff = SUSPENSION * mean / beam.length**3 * np.array([1.0, 1.5])
        return sparse.csc_matrix((rows * stiff[:, None]).T @ rows)


_MATRIX = {"stiffness": "stiffness", "mass": "mass", "viscous": "damping", "kelvin_voigt": "damping"}


def _gram(rows: Array, weight: Array) -> Array:
    return np.asarray((rows * weight[:, None]).T @ rows)
