"""How the equations of a model depend on t, read off their graph: not at all, periodically, or otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from analysis.model.equations import ResolutionError, System

if TYPE_CHECKING:
    from analysis.model.model import Model

_PERIODIC = ("sin", "cos", "tan")
_HIGHEST = 1000  # harmonic of the common frequency that a drive may be
_SAME = 1e-9  # relative difference of two frequencies that count as equal


@dataclass(frozen=True)
class Drive:
    """Angular frequencies (per unit time) at which t enters the right-hand side.

    ``periodic`` is False where t enters other than through sines of a steady angle.
    """

    rates: frozenset[float] = frozenset()
    periodic: bool = True

    @property
    def present(self) -> bool:
        return bool(self.rates) or not self.periodic

    @property
    def period(self) -> float | None:
        """The shortest time after which the drive repeats; None without a drive, or if it does not."""
        rates = sorted(self.rates)
        if not self.periodic or not rates:
            return None
        ratios = [Fraction(rate / rates[0]).limit_denominator(_HIGHEST) for rate in rates]
        if any(abs(float(q) * rates[0] - rate) > _SAME * rate for q, rate in zip(ratios, rates, strict=True)):
            return None
        common = Fraction(
            math.gcd(*(q.numerator for q in ratios)), math.lcm(*(q.denominator for q in ratios))
        )
        return 2 * math.pi / (rates[0] * float(common))


def drive_of(model: Model) -> Drive:
    """The drive in the model's own equations, for its values: what is multiplied by zero is none."""
    values = {name: p.value for name, p in model.parameters.items()}
    try:
        system = System.build(model.equations, values)
    except ResolutionError:  # a constant is not finite for these values
        system = model.equations.system
    found: dict[str, Drive] = {}
    for solved in system.solved:
        found[solved.name] = _combined(_drives(system, [solved.residual], found))
    return _combined(_drives(system, system.rhs, found))


def _drives(system: System, roots: list[int], solved: dict[str, Drive]) -> list[Drive]:
    """The drive in each root, given that of the unknowns that are solved for."""
    graph = system.graph
    nodes = graph.reachable(roots)
    slopes = graph.derivatives(roots)
    steady: dict[int, float] = {}  # nodes that grow with t at a constant rate
    drives: dict[int, Drive] = {}
    for node in nodes:
        op = graph.ops[node]
        slope = slopes[node].get("t") if node in slopes else None
        rate = graph.constant(slope) if slope is not None else None
        if op.kind == "symbol":
            drives[node] = solved.get(str(op.value), Drive(periodic=op.value != "t"))
        else:
            drives[node] = _combined(drives[arg] for arg in op.args)
        if rate and not any(drives[arg].rates for arg in op.args):
            steady[node] = rate
        elif op.kind in _PERIODIC and op.args[0] in steady:
            drives[node] = Drive(frozenset({abs(steady[op.args[0]])}))
    return [drives[root] for root in roots]


def _combined(parts: Iterable[Drive]) -> Drive:
    parts = list(parts)
    rates: frozenset[float] = frozenset().union(*(part.rates for part in parts))
    return Drive(rates, all(part.periodic for part in parts))
