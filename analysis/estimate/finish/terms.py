"""Terms that an equation of motion may lack, and what each would add along a fitted motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]
Motion = Callable[[Array, Array], Array]  # states [n, N], inputs [m, N] -> [N]

_MOST_STATES = 4  # of an equation that its candidates are made of; more would give hundreds of terms
_MOST_TERMS = 160  # in all equations together


@dataclass(frozen=True, eq=False)
class Term:
    """A term added to the equation of one state."""

    name: str  # such as x^5
    equation: int  # of the state whose derivative it is added to
    values: Motion
    common: bool = False  # odd in one state: what restoring forces and damping lack most often
    of_input: bool = False  # made of an input: without meaning where the noise of that input counts


def candidate_terms(model: Model) -> list[Term]:
    """Polynomial, damping and friction terms in every equation that holds forces, and its inputs."""
    system = model.equations.system
    velocities = {_symbol_of(model, i) for i in range(len(model.states))} - {None}
    terms: list[Term] = []
    for i in range(len(model.states)):
        if _symbol_of(model, i) is not None:
            continue  # x' = v holds by definition
        names = system.graph.symbols(system.closure([system.rhs[i]]))
        driving = [j for j, name in enumerate(model.inputs) if name in names]
        terms += _terms_of(model, i, own_states(model, i), driving, velocities)
    return terms[:_MOST_TERMS]


def own_states(model: Model, equation: int) -> list[int]:
    """The states that an equation holds, its own included."""
    system = model.equations.system
    names = system.graph.symbols(system.closure([system.rhs[equation]])) | {model.states[equation]}
    return [j for j, name in enumerate(model.states) if name in names][:_MOST_STATES]


def _symbol_of(model: Model, equation: int) -> str | None:
    """The state that this equation names as the derivative and nothing else: v in x' = v."""
    graph, node = model.equations.system.graph, model.equations.system.rhs[equation]
    op = graph.ops[node]
    if op.kind == "*" and graph.constant(op.args[0]) is not None:
        op = graph.ops[op.args[1]]
    name = str(op.value)
    return name if op.kind == "symbol" and name in model.states else None


def _terms_of(
    model: Model, equation: int, own: list[int], driving: list[int], velocities: set[str | None]
) -> Iterator[Term]:
    yield Term("1", equation, lambda X, U: np.ones(X.shape[1]))
    for j in own:
        name = model.states[j]
        yield Term(name, equation, lambda X, U, j=j: X[j])  # type: ignore[misc]
        yield Term(f"{name}|{name}|", equation, lambda X, U, j=j: X[j] * np.abs(X[j]), True)  # type: ignore[misc]
        yield Term(f"{name}^3", equation, lambda X, U, j=j: X[j] ** 3, True)  # type: ignore[misc]
        if name in velocities:
            yield Term(f"sign({name})", equation, lambda X, U, j=j: np.sign(X[j]), True)  # type: ignore[misc]
        else:
            yield Term(f"{name}^2", equation, lambda X, U, j=j: X[j] ** 2)  # type: ignore[misc]
            yield Term(f"{name}^5", equation, lambda X, U, j=j: X[j] ** 5, True)  # type: ignore[misc]
    for j, i in combinations(own, 2):
        a, b = model.states[j], model.states[i]
        yield Term(f"{a} {b}", equation, lambda X, U, j=j, i=i: X[j] * X[i])  # type: ignore[misc]
        yield Term(f"{a}^2 {b}", equation, lambda X, U, j=j, i=i: X[j] ** 2 * X[i])  # type: ignore[misc]
        yield Term(f"{a} {b}^2", equation, lambda X, U, j=j, i=i: X[j] * X[i] ** 2)  # type: ignore[misc]
    for j in driving:
        name = model.inputs[j]
        yield Term(name, equation, lambda X, U, j=j: U[j], of_input=True)  # type: ignore[misc]
