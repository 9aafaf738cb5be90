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
_SOFT, _SHARP = 0.5, 0.05  # scales of saturating damping and of dry friction, in rms of the velocity


@dataclass(frozen=True, eq=False)
class Term:
    """A term added to the equation of one state."""

    name: str  # such as x^5
    equation: int  # of the state whose derivative it is added to
    values: Motion
    common: bool = False  # odd in one state: what restoring forces and damping lack most often
    of_input: bool = False  # made of an input: without meaning where the noise of that input counts
    text: str = ""  # in the model language; {s} stands for the scale of the term
    scale: float = 0.0  # of the state, where the term has one: fitted, too, when the term is added
    apart: bool = False  # so like the others that together with them nothing would be told


def candidate_terms(model: Model, sizes: Array) -> list[Term]:
    """Polynomial, damping and friction terms in every equation that holds forces, and its inputs.

    ``sizes`` [n]: rms of each state along the motion.
    """
    system = model.equations.system
    velocities = {_symbol_of(model, i) for i in range(len(model.states))} - {None}
    terms: list[Term] = []
    for i in range(len(model.states)):
        if _symbol_of(model, i) is not None:
            continue  # x' = v holds by definition
        names = system.graph.symbols(system.closure([system.rhs[i]]))
        driving = [j for j, name in enumerate(model.inputs) if name in names]
        terms += _terms_of(model, i, own_states(model, i), driving, velocities, sizes)
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
    model: Model,
    equation: int,
    own: list[int],
    driving: list[int],
    velocities: set[str | None],
    sizes: Array,
) -> Iterator[Term]:
    yield Term("1", equation, lambda X, U: np.ones(X.shape[1]), text="1")
    for j in own:
        name = model.states[j]
        yield Term(name, equation, lambda X, U, j=j: X[j], text=name)  # type: ignore[misc]
        yield Term(
            f"{name}|{name}|",
            equation,
            lambda X, U, j=j: X[j] * np.abs(X[j]),  # type: ignore[misc]
            True,
            text=f"{name}*abs({name})",
        )
        yield _power(model, equation, j, 3, True)
        if name in velocities:
            yield _saturating(model, equation, j, 0.0, _SHARP * float(sizes[j]))
            yield _saturating(model, equation, j, _SOFT * float(sizes[j]))
        else:
            yield _power(model, equation, j, 2)
            yield _power(model, equation, j, 5, True)
    for j, i in combinations(own, 2):
        a, b = model.states[j], model.states[i]
        yield Term(f"{a} {b}", equation, lambda X, U, j=j, i=i: X[j] * X[i], text=f"{a}*{b}")  # type: ignore[misc]
        yield Term(
            f"{a}^2 {b}",
            equation,
            lambda X, U, j=j, i=i: X[j] ** 2 * X[i],  # type: ignore[misc]
            text=f"{a}**2*{b}",
        )
        yield Term(
            f"{a} {b}^2",
            equation,
            lambda X, U, j=j, i=i: X[j] * X[i] ** 2,  # type: ignore[misc]
            text=f"{a}*{b}**2",
        )
    for j in driving:
        name = model.inputs[j]
        yield Term(name, equation, lambda X, U, j=j: U[j], of_input=True, text=name)  # type: ignore[misc]


def _power(model: Model, equation: int, j: int, power: int, common: bool = False) -> Term:
    name = model.states[j]
    return Term(
        f"{name}^{power}", equation, lambda X, U: X[j] ** power, common, text=f"{name}**{power}"
    )  # fmt: skip


def _saturating(model: Model, equation: int, j: int, scale: float, fitted: float = 0.0) -> Term:
    """Damping that grows no further beyond a velocity; with a scale of zero dry friction.

    ``fitted``: the scale with which it starts when it is fitted, where it has none of its own.
    """
    name = model.states[j]

    def values(X: Array, U: Array) -> Array:
        return np.asarray(X[j] / np.hypot(X[j], scale) if scale > 0 else np.sign(X[j]))

    shown = f"{name}/sqrt({name}^2 + {scale:.2g}^2)" if scale > 0 else f"sign({name})"
    text = f"{name}/sqrt({name}**2 + {{s}}**2)"
    return Term(
        shown, equation, values, scale == 0.0, text=text, scale=scale or fitted, apart=scale > 0.0
    )  # fmt: skip
