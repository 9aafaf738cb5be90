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
from analysis.estimate.functions.beam.unknowns import Block, UnknownProperties

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
    dspread_load: dict[int, Array] = field(default_factory=dict)


class BeamSystem:
    """Reduced Galerkin model of a beam with N elements; ``modes``: how many are kept (None: all up to 40)."""

    def __init__(
        self, beam: Beam, unknowns: UnknownProperties, elements: int | None = None, modes: int | None = None
    ) -> None:
        self.beam = beam
        self.unknowns = unknowns
        ends = [_space_end(beam, side) for side in ("left", "right")]
        self.space: Space = spline_space(beam.length, elements or beam.elements, *ends)
        self.count = min(modes or 40, self.space.size)
        self.evaluations = 0
        self._fixed_rows: dict[bytes, Array] = {}
        self._tip = self.space.at(np.array([beam.length]))[0]
        self._springs = {name: self._spring_row(name) for name in beam.supports}
        self._suspension = self._soft_springs()

    @cached_property
    def rigid(self) -> int:
        """How many rigid-body motions the supports allow."""
        sides, springs = ("left", "right"), ("translation", "rotation")
        return max(0, 2 - sum(self.beam.holds(side, spring) for side in sides for spring in springs))

    def stretch(self, theta: Array) -> float:
        """Factor of the length as described."""
        return self.unknowns.factor("length", theta)

    def rows(self, places: Array, theta: Array) -> tuple[Array, Array]:
        """Basis at places on the beam [S, n], and its derivative by the logarithm of the length."""
        if self.unknowns.block("length") is None:
            key = places.tobytes()
            if key not in self._fixed_rows:
                self._fixed_rows[key] = self.space.at(places)
            return self._fixed_rows[key], np.zeros((len(places), self.space.size))
        at = np.minimum(places / self.stretch(theta), self.beam.length)
        inside = at < self.beam.length
        return self.space.at(at), -(at * inside)[:, None] * self.space.at(at, 1)

    def state(self, theta: Array, derivatives: bool = True) -> State:
        """Modes at ``theta``; with derivatives in every unknown if asked."""
        from scipy import sparse

        self.evaluations += 1
        space = self.space
        density = self._densities(theta)
        tip_mass = self.unknowns.scalar("tip_mass", theta)
        mass = space.mass(density["mass"])
        if self._rotary:
            mass = mass + space.rotation(density["rotation"])
        if tip_mass:
            tip = sparse.csc_matrix(self._tip[None, :])
            mass = mass + tip_mass * (tip.T @ tip)
        stiffness = space.bending(density["stiffness"])
        springs = self._spring_rates(theta)
        for name, rate in springs.items():
            row = sparse.csc_matrix(self._springs[name][None, :])
            stiffness = stiffness + rate * (row.T @ row)
        if self._suspension is not None:
            stiffness = stiffness + self._suspension
        basis = real_modes(stiffness, mass, self.count)
        # The sums over Gauss points are the accurate ones: settle frequencies and scaling with them.
        parts = _Parts(self, basis, density, tip_mass, springs)
        reduced = parts.stiffness()
        if self._suspension is not None:
            reduced += basis.T @ (self._suspension @ basis)
        squared, turn = settled_modes(reduced, parts.mass())
        basis = basis @ turn
        parts = _Parts(self, basis, density, tip_mass, springs)
        modes = complex_modes(squared, parts.damping())
        state = State(basis, squared, modes, parts.base_load(), parts.spread_load(self.stretch(theta)))
        return self._differentiated(state, parts, theta) if derivatives else state

    def _densities(self, theta: Array) -> dict[str, Array]:
        """Properties at the Gauss points of the beam as described, scaled to its real length."""
        stretch = self.stretch(theta)
        powers = {"stiffness": -3, "kelvin_voigt": -3, "mass": 1, "viscous": 1}
        found = {
            key: self.unknowns.property_at(key, theta, self.space.points) * stretch ** powers[key]
            for key in self.beam.profiles
        }
        if self._rotary:
            found["rotation"] = self._rotary * found["mass"] * stretch**-2
        return found

    @cached_property
    def _rotary(self) -> float:
        """Rotary inertia over mass, m^2, with the shear's share; see the method's page."""
        return 0.0 if self.beam.shear is None else self.beam.gyration * (1.0 + self.beam.shear)

    def _spring_rates(self, theta: Array) -> dict[str, float]:
        """Springs of elastic ends, as they act on displacement and slope of the beam as described."""
        stretch = self.stretch(theta)
        return {
            name: self.unknowns.scalar(name, theta) * (stretch**-2 if name.endswith("rotation") else 1.0)
            for name in self.beam.supports
        }

    def _spring_row(self, name: str) -> Array:
        side, spring = name.split()
        end = np.array([0.0 if side == "left" else self.beam.length])
        return np.asarray(self.space.at(end, 1 if spring == "rotation" else 0)[0])

    def _differentiated(self, state: State, parts: _Parts, theta: Array) -> State:
        count, kept = self.unknowns.size, len(state.modes.kept)
        dpoles = np.zeros((count, kept), dtype=np.complex128)
        dshapes = np.zeros((count, state.basis.shape[1], kept), dtype=np.complex128)
        for block in self.unknowns.blocks:
            for offset, change in enumerate(parts.changes(block, theta)):
                p = block.where.start + offset
                if change.base_load is not None:
                    state.dbase_load[p] = change.base_load
                if change.spread_load is not None:
                    state.dspread_load[p] = change.spread_load
                if change.mass is not None:
                    state.dmass[p] = change.mass
                if change.moves:
                    dpoles[p], dshapes[p] = state.modes.sensitivity(
                        change.mass, change.damping, change.stiffness
                    )
        return replace(state, dpoles=dpoles, dshapes=dshapes)

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


def _space_end(beam: Beam, side: str) -> str:
    """What the splines themselves must satisfy at an end; springs do the rest."""
    end = beam.left if side == "left" else beam.right
    if end != "elastic":
        return end
    return "free" if f"{side} translation" in beam.supports else "hinged"


@dataclass(frozen=True, eq=False)
class Change:
    """Derivatives of the reduced matrices and loads by one unknown; None: it does not move them."""

    mass: Array | None = None
    damping: Array | None = None
    stiffness: Array | None = None
    base_load: Array | None = None
    spread_load: Array | None = None

    @property
    def moves(self) -> bool:
        """Whether a mode changes."""
        return any(m is not None for m in (self.mass, self.damping, self.stiffness))


class _Parts:
    """Reduced matrices from the values of a basis at the Gauss points."""

    def __init__(
        self,
        system: BeamSystem,
        basis: Array,
        density: dict[str, Array],
        tip_mass: float,
        springs: dict[str, float],
    ) -> None:
        space = system.space
        self.system, self.density, self.tip_mass, self.springs = system, density, tip_mass, springs
        self.weights = space.weights
        self.shape, self.curvature = space.value @ basis, space.curvature @ basis
        self.slope = space.slope @ basis if "rotation" in density else None
        self.tip = system._tip @ basis
        self.rows = {name: row @ basis for name, row in system._springs.items()}

    def spread_mass(self) -> Array:
        return _gram(self.shape, self.weights * self.density["mass"])

    def rotary(self) -> Array:
        none = np.zeros((self.shape.shape[1], self.shape.shape[1]))
        return none if self.slope is None else _gram(self.slope, self.weights * self.density["rotation"])

    def mass(self) -> Array:
        return self.spread_mass() + self.rotary() + self.tip_mass * np.outer(self.tip, self.tip)

    def bending(self) -> Array:
        return _gram(self.curvature, self.weights * self.density["stiffness"])

    def spring(self, name: str) -> Array:
        return np.asarray(self.springs[name] * np.outer(self.rows[name], self.rows[name]))

    def stiffness(self) -> Array:
        return np.asarray(self.bending() + sum((self.spring(name) for name in self.springs), start=0.0))

    def damped(self, key: str) -> Array | None:
        if key not in self.density:
            return None
        rows = self.curvature if key == "kelvin_voigt" else self.shape
        return _gram(rows, self.weights * self.density[key])

    def damping(self) -> Array | None:
        found = [m for m in (self.damped("viscous"), self.damped("kelvin_voigt")) if m is not None]
        return np.asarray(sum(found)) if found else None

    def spread_base(self) -> Array:
        return np.asarray(-(self.shape.T @ (self.weights * self.density["mass"])))

    def base_load(self) -> Array:
        return self.spread_base() - self.tip_mass * self.tip

    def spread_load(self, stretch: float) -> Array:
        return np.asarray(self.shape.T @ self.weights * stretch)

    def changes(self, block: Block, theta: Array) -> list[Change]:
        """By each unknown of a block."""
        if block.key == "length":
            return [self._stretched(theta)]
        if block.key == "tip_mass":
            return [
                Change(mass=self.tip_mass * np.outer(self.tip, self.tip), base_load=-self.tip_mass * self.tip)
            ]
        if block.key in self.springs:
            return [Change(stiffness=self.spring(block.key))]
        if block.key == "load":
            return [Change()]  # moves no mode
        return self._along(block, theta)

    def _along(self, block: Block, theta: Array) -> list[Change]:
        """By the coefficients of a property along the beam."""
        key = "stiffness" if block.local else "mass" if block.key == "density" else block.key
        unknowns, points = self.system.unknowns, self.system.space.points
        columns = unknowns.slopes(block, theta, points, self.density[key]) * self.weights[:, None]
        if not block.log and not block.local:  # a spline of the property itself, which the length scales
            columns = columns * self.system.stretch(theta) ** (-3 if key in _BENT else 1)
        out = []
        for column in columns.T:
            used = np.flatnonzero(column)
            rows = self.curvature if key in _BENT else self.shape
            matrix = _gram(rows[used], column[used])
            if key == "stiffness":
                out.append(Change(stiffness=matrix))
            elif key == "mass":
                if self.slope is not None:
                    matrix = matrix + self.system._rotary * _gram(self.slope[used], column[used]) / (
                        self.system.stretch(theta) ** 2
                    )
                out.append(Change(mass=matrix, base_load=-(self.shape[used].T @ column[used])))
            else:
                out.append(Change(damping=matrix))
        return out

    def _stretched(self, theta: Array) -> Change:
        """By the logarithm of the length."""
        bent = self.damped("kelvin_voigt")
        spread = self.damped("viscous")
        damping = None if bent is None and spread is None else np.zeros_like(self.bending())
        if damping is not None and spread is not None:
            damping = damping + spread
        if damping is not None and bent is not None:
            damping = damping - 3.0 * bent
        turned = [-2.0 * self.spring(name) for name in self.springs if name.endswith("rotation")]
        return Change(
            mass=self.spread_mass() - self.rotary(),
            damping=damping,
            stiffness=-3.0 * self.bending() + sum(turned, start=0.0),
            base_load=self.spread_base(),
            spread_load=self.spread_load(self.system.stretch(theta)),
        )


_BENT = ("stiffness", "kelvin_voigt")


def _gram(rows: Array, weight: Array) -> Array:
    return np.asarray((rows * weight[:, None]).T @ rows)
