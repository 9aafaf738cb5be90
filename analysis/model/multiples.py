"""Which single symbol a part of the equations is a known multiple of, read off their graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.model.graph import Graph, NotFinite

Multiple = tuple[str, float]  # a symbol, "" for a number alone, and the factor before it


def multiples(graph: Graph, roots: Sequence[int], values: Mapping[str, float]) -> list[Multiple | None]:
    """For each root the symbol that it is a multiple of; None where it is anything else.

    ``values``: symbols that count as numbers.
    """
    target = Graph()
    known: dict[int, int] = {}  # nodes by those of the other graph; missing: not a finite number
    for node in graph.reachable(roots):
        op = graph.ops[node]
        if op.kind == "symbol" and op.value in values:
            known[node] = target.number(values[str(op.value)])
        elif all(arg in known for arg in op.args):
            try:
                known[node] = target.apply(op, [known[arg] for arg in op.args])
            except (NotFinite, ArithmeticError):
                continue
    found: dict[int, Multiple | None] = {}
    for node in target.reachable(known.values()):
        op = target.ops[node]
        number = target.constant(node)
        if number is not None:
            found[node] = ("", number)
        elif op.kind == "symbol":
            found[node] = (str(op.value), 1.0)
        else:
            found[node] = _joined(op.kind, [found[arg] for arg in op.args])
    return [found[known[root]] if root in known else None for root in roots]


def _joined(kind: str, parts: Sequence[Multiple | None]) -> Multiple | None:
    """What an operation makes of the multiples that it is applied to."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if kind == "neg":
        return known[0][0], -known[0][1]
    if kind not in ("+", "-", "*", "/"):
        return None
    (first, a), (second, b) = known
    if kind == "*":
        return None if first and second else (first or second, a * b)
    if kind == "/":
        return None if second or b == 0.0 else (first, a / b)
    if a != 0.0 and b != 0.0 and first != second:
        return None
    return first if a != 0.0 else second, a + b if kind == "+" else a - b
