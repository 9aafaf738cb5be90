"""Which parameters enter the right-hand side linearly, read off the graph of the equations."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.model.equations import System
from analysis.model.graph import Graph

Pairs = frozenset[frozenset[str]]


def linear_parameters(system: System, candidates: Sequence[str]) -> tuple[str, ...]:
    """A largest set of candidates (by a greedy choice) in which the right-hand side is jointly affine.

    Two parameters conflict when a product of both can occur, a parameter conflicts with itself when it enters
    other than linearly. Chosen are those that conflict with no other chosen one.
    """
    conflicts = _conflicts(system, frozenset(candidates))
    allowed = [name for name in candidates if frozenset((name,)) not in conflicts]
    rivals = {a: {b for b in allowed if b != a and frozenset((a, b)) in conflicts} for a in allowed}
    chosen: set[str] = set()
    while rivals:
        best = min(rivals, key=lambda name: (len(rivals[name]), candidates.index(name)))
        chosen.add(best)
        dropped = {best} | rivals[best]
        rivals = {a: others - dropped for a, others in rivals.items() if a not in dropped}
    return tuple(name for name in candidates if name in chosen)


def _conflicts(system: System, candidates: frozenset[str]) -> Pairs:
    """All conflicting pairs (a set of one name: in conflict with itself) of the right-hand side."""
    graph = system.graph
    unknowns = {s.name: s.residual for s in system.solved}
    depends: dict[int, frozenset[str]] = {}
    conflicts: dict[int, Pairs] = {}
    solved: dict[str, frozenset[str]] = {}
    for name, residual in unknowns.items():  # an unknown depends nonlinearly on all that its equation holds
        inside = graph.symbols([residual])
        own = frozenset(inside & candidates)
        solved[name] = own.union(*(solved[other] for other in inside if other in solved))
    for node in graph.reachable(system.rhs):
        op = graph.ops[node]
        if op.kind == "symbol":
            name = str(op.value)
            depends[node] = solved.get(name, frozenset({name}) & candidates)
            conflicts[node] = _products(depends[node], depends[node]) if name in solved else frozenset()
            continue
        depends[node] = frozenset[str]().union(*(depends[arg] for arg in op.args))
        inherited: Pairs = frozenset[frozenset[str]]().union(*(conflicts[arg] for arg in op.args))
        conflicts[node] = inherited | _own_conflicts(graph, node, depends)
    return frozenset[frozenset[str]]().union(*(conflicts[node] for node in system.rhs))


def _own_conflicts(graph: Graph, node: int, depends: dict[int, frozenset[str]]) -> Pairs:
    """The conflicts that an operation adds to those of its arguments."""
    op = graph.ops[node]
    if op.kind in ("number", "truth", "+", "-", "neg"):
        return frozenset()
    inner = [depends[arg] for arg in op.args]
    if op.kind == "*":
        return _products(inner[0], inner[1])
    if op.kind == "/":
        return _products(inner[0], inner[1]) | _products(inner[1], inner[1])
    if op.kind == "where":
        return _products(inner[0], depends[node])
    return _products(depends[node], depends[node])


def _products(a: frozenset[str], b: frozenset[str]) -> Pairs:
    return frozenset(frozenset((p, q)) for p in a for q in b)
