"""Which parameters enter the right-hand side linearly, read off the graph of the equations."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.model.equations import System

_LINEAR = frozenset({"number", "truth", "symbol", "+", "-", "neg"})


def linear_parameters(system: System, candidates: Sequence[str]) -> tuple[str, ...]:
    """A set of candidates, as large as a greedy choice finds, in which the right-hand side is jointly affine.

    A parameter that enters other than linearly anywhere is out. Of two that are multiplied with each other
    only one can stay: those with the fewest such rivals are chosen first.
    """
    nonlinear, products = _structure(system, candidates)
    rivals = {i: 0 for i in range(len(candidates)) if not nonlinear >> i & 1}
    for left, right in products:
        for i in rivals:
            if left >> i & 1:
                rivals[i] |= right
            if right >> i & 1:
                rivals[i] |= left
    allowed = sum(1 << i for i in rivals)
    chosen: list[int] = []
    while rivals:
        best = min(rivals, key=lambda i: ((rivals[i] & allowed).bit_count(), i))
        chosen.append(best)
        dropped = rivals[best] | 1 << best
        allowed &= ~dropped
        rivals = {i: others for i, others in rivals.items() if not dropped >> i & 1}
    return tuple(candidates[i] for i in sorted(chosen))


def _structure(system: System, candidates: Sequence[str]) -> tuple[int, set[tuple[int, int]]]:
    """Candidates that enter nonlinearly, and which are multiplied with which. Sets are bits of a number."""
    graph = system.graph
    bits = {name: 1 << i for i, name in enumerate(candidates)}
    nonlinear = 0
    products: set[tuple[int, int]] = set()
    for s in system.solved:  # an unknown depends nonlinearly on all that its equation holds
        bits[s.name] = 0
        for name in graph.symbols([s.residual]):
            bits[s.name] |= bits.get(name, 0)
    used = graph.symbols(system.rhs)
    for s in system.solved:
        if s.name in used:
            nonlinear |= bits[s.name]
    depends: dict[int, int] = {}
    for node in graph.reachable(system.rhs):
        op = graph.ops[node]
        inner = [depends[arg] for arg in op.args]
        depends[node] = bits.get(str(op.value), 0) if op.kind == "symbol" else 0
        for one in inner:
            depends[node] |= one
        if op.kind == "*":
            if inner[0] and inner[1]:
                products.add((inner[0], inner[1]))
                nonlinear |= inner[0] & inner[1]
        elif op.kind == "/":
            nonlinear |= inner[1]
        elif op.kind == "where":
            nonlinear |= inner[0]
        elif op.kind not in _LINEAR:
            nonlinear |= depends[node]
    return nonlinear, products
