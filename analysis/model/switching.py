"""The surfaces at which the right-hand side of a model jumps, and the smooth equations on either side.

``sign``, ``heaviside`` and ``where`` switch where an expression g(t, x, u, p) passes zero. Each such surface
gets a side s = +1 or -1 as a further parameter, so that the equations of one side go on smoothly beyond the
surface; g itself becomes an output. Where both sides push towards the surface the motion slides along it
(A. F. Filippov, Differential Equations with Discontinuous Righthand Sides, 1988):
x' = ((1 + w) f(+1) + (1 - w) f(-1))/2 with the w that keeps g at zero, and 1 - w^2 takes the place of g:
sliding ends where it passes zero. Kinks, where the slope is continuous, are left to the control of the steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from analysis.base.errors import ModelError
from analysis.model.equations import Equations, System
from analysis.model.graph import COMPARISONS, Graph, NotFinite

if TYPE_CHECKING:
    from analysis.model.kernels import Kernels

_TRIALS = 12  # points of a surface at which the two sides are compared
_EQUAL = 1e-9  # relative difference of the two sides below which the slope is continuous there
_SWITCHES = ("sign", "heaviside", "<", "<=", ">", ">=")


@dataclass(frozen=True, eq=False)
class Switching:
    """The equations with a side for each of the surfaces (nodes of the original graph)."""

    equations: Equations
    surfaces: tuple[int, ...]

    @property
    def sides(self) -> tuple[str, ...]:
        return tuple(f"side_{k}" for k in range(len(self.surfaces)))

    def kernels(self, sliding: frozenset[int]) -> Kernels:
        """Kernels with the parameters p, then the sides; outputs: g of each surface, 1 - w^2 if it slides."""
        return _kernels(self, sliding)


def switching_of(equations: Equations, values: Mapping[str, float]) -> Switching | None:
    """The surfaces at which the slope jumps for these values; None if there are none."""
    system = equations.system
    if "switching candidates" not in system.memory:
        system.memory["switching candidates"] = _candidates(equations)
    candidates: list[int] = system.memory["switching candidates"]
    jumping = tuple(s for s in candidates if _jumps(equations, values, s, candidates))
    if not jumping:
        return None
    found: Switching = system.memory.setdefault(jumping, Switching(equations, jumping))
    return found


def _candidates(equations: Equations) -> list[int]:
    """Nodes that are zero where something in the right-hand side may jump."""
    system = equations.system
    found: list[int] = []
    if system.solved:  # what an unknown jumps to is not known before it is solved for
        return found
    graph, moving = system.graph, {"t", *equations.states, *equations.measured}
    for node in graph.reachable(system.rhs):
        if graph.ops[node].kind in _SWITCHES:
            surface = _surface(graph, node)
            if surface not in found and moving & graph.symbols([surface]):
                found.append(surface)
    return found


def _surface(graph: Graph, node: int) -> int:
    """The node that is zero where this one switches."""
    op = graph.ops[node]
    return graph.sub(*op.args) if op.kind in COMPARISONS else op.args[0]


def _copy(
    source: Graph, target: Graph, roots: list[int], known: dict[int, int], sides: dict[int, int]
) -> None:
    """Copy what the roots need into another graph; ``known`` maps nodes, ``sides`` those of surfaces."""
    for node in source.reachable(roots):
        if node in known:
            continue
        op = source.ops[node]
        a = [known[arg] for arg in op.args]
        side = None
        if op.kind in _SWITCHES:
            side = sides.get(_surface(source, node))
        if side is not None:
            known[node] = _switched(target, op.kind, side)
        else:
            known[node] = target.apply(op, a)


def _switched(graph: Graph, kind: str, side: int) -> int:
    if kind == "sign":
        return side
    if kind == "heaviside":
        return graph.mul(graph.number(0.5), graph.add(graph.one, side))
    return graph.compare("<" if kind in ("<", "<=") else ">", side, graph.zero)


def _jumps(equations: Equations, values: Mapping[str, float], surface: int, candidates: list[int]) -> bool:
    """Whether the slope differs on the two sides, at random points of the surface.

    The other surfaces are on random sides too, wherever the point lies: a jump may be felt only beyond one.
    """
    system, rng = equations.system, np.random.default_rng(1)
    graph = system.graph
    names = sorted({"t", *equations.states, *equations.measured} & graph.symbols([surface]))

    def value(point: Mapping[str, float], roots: list[int], fixed: Mapping[int, float]) -> list[float] | None:
        target = Graph()
        known = {
            node: target.number(point[str(op.value)])
            for node, op in enumerate(graph.ops)
            if op.kind == "symbol"
        }
        sides = {which: target.number(side) for which, side in fixed.items()}
        try:
            _copy(graph, target, roots, known, sides)
        except NotFinite:
            return None
        found = [target.constant(known[root]) for root in roots]
        return None if None in found else found  # type: ignore[return-value]

    compared = 0
    for _ in range(20 * _TRIALS):
        point = {name: float(rng.normal()) for name in ("t", *equations.states, *equations.measured)}
        point |= {name: values[name] for name in equations.parameters}
        if not _move_to(point, str(rng.choice(names)), lambda p: value(p, [surface], {})):
            continue
        sides = {which: float(rng.choice([-1.0, 1.0])) for which in candidates}
        above = value(point, system.rhs, {**sides, surface: 1.0})
        below = value(point, system.rhs, {**sides, surface: -1.0})
        if above is None or below is None:
            continue
        compared += 1
        if any(abs(a - b) > _EQUAL * (abs(a) + abs(b)) for a, b in zip(above, below, strict=True)):
            return True
        if compared == _TRIALS:
            return False
    return True  # nothing could be compared: better to look for it


def _move_to(point: dict[str, float], name: str, height: object) -> bool:
    """Move one symbol by the secant method until the surface is met."""
    first, second = point[name], point[name] + 0.1
    at_first = height(point)  # type: ignore[operator]
    for _ in range(60):
        point[name] = second
        at_second = height(point)  # type: ignore[operator]
        if at_first is None or at_second is None or not math.isfinite(second):
            return False
        if at_second[0] == 0.0 or abs(second - first) < 1e-15 * abs(second):
            return True
        if at_second[0] == at_first[0]:
            return False
        step = at_second[0] * (second - first) / (at_second[0] - at_first[0])
        first, at_first, second = second, at_second, second - step
    return abs(at_second[0]) < 1e-12


@lru_cache(maxsize=64)
def _kernels(switching: Switching, sliding: frozenset[int]) -> Kernels:
    from analysis.model.kernels import kernels_of

    original = switching.equations
    graph = Graph()
    sides = {k: graph.symbol(name) for k, name in enumerate(switching.sides)}
    builder = _Builder(switching, graph)
    rhs, shares = builder.fields(sides, sorted(sliding))
    outputs = []
    for k in range(len(switching.surfaces)):
        share = shares.get(k)
        height = builder.height(k, sides)
        outputs.append(height if share is None else graph.sub(graph.one, graph.mul(share, share)))
    changed = replace(
        original,
        parameters=(*original.parameters, *switching.sides),
        outputs=dict.fromkeys(switching.sides),  # type: ignore[arg-type]
    )
    changed.__dict__["system"] = System(graph, rhs, outputs)
    try:
        return kernels_of(changed)
    except NotFinite:
        raise ModelError("The equations have no finite value where the motion slides.") from None


@dataclass(frozen=True)
class _Builder:
    switching: Switching
    graph: Graph

    def height(self, k: int, sides: dict[int, int]) -> int:
        return self._copied([self.switching.surfaces[k]], sides)[0]

    def _copied(self, roots: list[int], sides: dict[int, int]) -> list[int]:
        known: dict[int, int] = {}
        given = {self.switching.surfaces[k]: side for k, side in sides.items()}
        _copy(self.switching.equations.system.graph, self.graph, roots, known, given)
        return [known[root] for root in roots]

    def fields(self, sides: dict[int, int], sliding: list[int]) -> tuple[list[int], dict[int, int]]:
        """Slopes with these sides, sliding along some surfaces; and the share w of each of those."""
        if not sliding:
            return self._copied(self.switching.equations.system.rhs, sides), {}
        graph, k = self.graph, sliding[-1]
        above, above_shares = self.fields({**sides, k: graph.one}, sliding[:-1])
        below, below_shares = self.fields({**sides, k: graph.number(-1.0)}, sliding[:-1])
        slopes = graph.derivatives([self.height(k, sides)])[self.height(k, sides)]

        def rate(field: list[int]) -> int:
            total = slopes.get("t", graph.zero)
            for name, slope in zip(self.switching.equations.states, field, strict=True):
                if name in slopes:
                    total = graph.add(total, graph.mul(slopes[name], slope))
            return total

        up, down = rate(above), rate(below)
        share = graph.neg(graph.div(graph.add(up, down), graph.sub(up, down)))

        def mixed(a: int, b: int) -> int:
            half = graph.number(0.5)
            difference = graph.mul(half, graph.sub(a, b))
            return graph.add(graph.mul(half, graph.add(a, b)), graph.mul(share, difference))

        shares = {other: mixed(above_shares[other], below_shares[other]) for other in above_shares}
        return [mixed(a, b) for a, b in zip(above, below, strict=True)], {**shares, k: share}
