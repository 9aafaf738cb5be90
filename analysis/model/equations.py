"""The equations of a model: names resolved, every expression a node of one graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

from analysis.base.errors import ModelError
from analysis.model.functions import Function
from analysis.model.grammar import Expression, parse
from analysis.model.graph import COMPARISONS, Graph, NotFinite, Solved

if TYPE_CHECKING:
    from analysis.model.kernels import Kernels

MAX_OPERATIONS = 10_000  # as written; with derivatives, graph.py has the limit


@dataclass(frozen=True)
class Implicit:
    """A definition by an equation: its own name is the unknown, sought between the bounds."""

    residual: Expression
    lower: float
    upper: float


@dataclass(frozen=True)
class Equations:
    """What the kernels are made from. Values, bounds and units play no part in it."""

    states: Mapping[str, Expression]
    measured: tuple[str, ...]
    driven: Mapping[str, Expression]  # inputs given as expressions of t
    parameters: tuple[str, ...]
    definitions: Mapping[str, Expression | Implicit]
    outputs: Mapping[str, Expression]
    time_shift: str = ""  # parameter that is added to t wherever the equations hold it; empty: none
    functions: Mapping[str, Function] = field(
        default_factory=dict
    )  # definitions that are to be found as curves

    @property
    def functions_of_time(self) -> tuple[str, ...]:
        """Unknown functions of t: forces that nobody recorded."""
        return tuple(name for name, spline in self.functions.items() if spline.argument == "t")

    @cached_property
    def system(self) -> System:
        return System.build(self)

    @cached_property
    def kernels(self) -> Kernels:
        from analysis.model.kernels import kernels_of

        for name, spline in self.functions.items():
            if spline.open:
                raise ModelError(
                    f"The unknown function {name} has no range: give it lower and upper, or identify it from "
                    f"a record that measures {spline.argument}."
                )

        return kernels_of(self)

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key not in ("system", "kernels")}

    @property
    def hold_time(self) -> bool:
        """Whether the right-hand side or the outputs depend on t explicitly."""
        system = self.system
        return "t" in system.graph.symbols(system.closure([*system.rhs, *system.outputs]))

    def named(self) -> dict[str, Expression | Implicit]:
        """Everything that a name may stand for besides symbols."""
        return {**self.driven, **self.definitions}

    def helpers(self) -> dict[str, tuple[str, Expression]]:
        """Expressions that the texts of unknown functions hold: by name, of which function and what."""
        return {
            helper: (name, parse(text))
            for name, function in self.functions.items()
            for helper, text in function.helpers(name).items()
        }


class ResolutionError(Exception):
    """What cannot be resolved: in which table and item, and at which character of its expression."""

    def __init__(self, place: tuple[str, ...], message: str, offset: int) -> None:
        super().__init__(message)
        self.place, self.message, self.offset = place, message, offset


@dataclass
class System:
    """The equations in one graph: right-hand side and outputs, unknowns in order of solution."""

    graph: Graph
    rhs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    solved: list[Solved] = field(default_factory=list)
    nodes: dict[str, int] = field(default_factory=dict)  # definitions and inputs by name
    memory: dict[Any, Any] = field(default_factory=dict)  # what others have found out about these equations

    def closure(self, roots: Iterable[int]) -> list[int]:
        """The roots and the residuals of all unknowns that they depend on, directly or through others."""
        found = list(roots)
        for s in reversed(self.solved):
            if s.name in self.graph.symbols(found):
                found.append(s.residual)
        return found

    @classmethod
    def build(cls, equations: Equations, values: Mapping[str, float] | None = None) -> System:
        """Resolve all names; ResolutionError on an unknown name, a cycle or a constant that is not finite.

        With ``values`` the parameters are numbers instead of symbols.
        """
        builder = _Builder(equations, values or {})
        builder.resolve_all()
        system = builder.system
        system.rhs = [builder.lower(("states", name), e) for name, e in equations.states.items()]
        system.outputs = [builder.lower(("outputs", name), e) for name, e in equations.outputs.items()]
        return system


class _Builder:
    def __init__(self, equations: Equations, values: Mapping[str, float]) -> None:
        self.equations = equations
        helpers = equations.helpers()
        self.items = {**equations.named(), **{name: text for name, (_, text) in helpers.items()}}
        self.owner = {name: owner for name, (owner, _) in helpers.items()}
        self.system = System(Graph())
        graph = self.system.graph
        self.symbols = {
            name: graph.number(values[name]) if name in values else graph.symbol(name)
            for name in ("t", *equations.states, *equations.measured, *equations.parameters)
        }
        if equations.time_shift:
            self.symbols["t"] = graph.add(self.symbols["t"], self.symbols[equations.time_shift])
        self.operations = 0

    def resolve_all(self) -> None:
        """Depth first without recursion; unknowns first: a definition may use the one it helps to find."""
        order = sorted(self.items, key=lambda name: not isinstance(self.items[name], Implicit))
        for root in order:
            if root not in self.system.nodes:
                self._resolve(root)

    def _resolve(self, root: str) -> None:
        path = [root]  # in progress, each waiting for the next
        while path:
            name = path[-1]
            missing = self._first_missing(name, path)
            if missing is None:
                self._finish(name)
                path.pop()
            else:
                path.append(missing)

    def _first_missing(self, name: str, path: list[str]) -> str | None:
        for used, offset in self._expression(name).names.items():
            if used not in self.items or used in self.system.nodes:
                continue
            if used not in path:
                return used
            loop = path[path.index(used) :]
            unknowns = [n for n in loop if isinstance(self.items[n], Implicit)]
            if unknowns != [used]:
                raise ResolutionError(self._place(name), self._cycle(loop, unknowns), offset)
        return None

    def _cycle(self, loop: list[str], unknowns: list[str]) -> str:
        if len(unknowns) > 1:
            return (
                f"the unknowns {' and '.join(unknowns)} depend on each other; "
                "only unknowns that can be solved one after the other are possible"
            )
        if len(loop) == 1:
            return (
                f"`{loop[0]}` is defined by itself; if it is an unknown, write "
                f'{loop[0]} = {{ solve = "...", lower = ..., upper = ... }}'
            )
        return "cyclic definition: " + " -> ".join([*loop, loop[0]])

    def _expression(self, name: str) -> Expression:
        item = self.items[name]
        return item.residual if isinstance(item, Implicit) else item

    def _place(self, name: str) -> tuple[str, ...]:
        table = "inputs" if name in self.equations.driven else "definitions"
        item, name = self.items[name], self.owner.get(name, name)
        return (table, name, "solve") if isinstance(item, Implicit) else (table, name)

    def _finish(self, name: str) -> None:
        item, place = self.items[name], self._place(name)
        if not isinstance(item, Implicit):
            self.system.nodes[name] = self.lower(place, item)
            return
        unknown = self.system.graph.symbol(name)
        residual = self.lower(place, item.residual)
        if name not in self.system.graph.symbols([residual]):
            raise ResolutionError(place, f"the equation to solve for `{name}` does not contain it", 0)
        self.system.solved.append(Solved(name, residual, item.lower, item.upper))
        self.system.nodes[name] = unknown

    def lower(self, place: tuple[str, ...], expression: Expression) -> int:
        """The expression as a node of the graph."""
        graph = self.system.graph
        built: list[int] = []
        for node in expression.nodes:
            self.operations += 1
            if self.operations > MAX_OPERATIONS:
                raise ResolutionError(place, f"the model has more than {MAX_OPERATIONS} operations", 0)
            args = [built[i] for i in node.args]
            try:
                built.append(self._node(graph, place, node.kind, node.value, args, node.offset))
            except NotFinite:
                message = (
                    "this part of the expression has no finite value (division by zero, overflow or domain)"
                )
                raise ResolutionError(place, message, node.offset) from None
        return built[-1]

    def _node(
        self,
        graph: Graph,
        place: tuple[str, ...],
        kind: str,
        value: float | str,
        args: list[int],
        offset: int,
    ) -> int:
        if kind == "number":
            return graph.number(float(value))
        if kind == "name":
            return self._name(place, str(value), offset)
        if kind == "call":
            return graph.where(*args) if value == "where" else graph.call(str(value), *args)
        if kind in COMPARISONS:
            return graph.compare(kind, *args)
        if kind in ("and", "or", "not"):
            return graph.logic(kind, *args)
        operation = {
            "+": graph.add,
            "-": graph.sub,
            "*": graph.mul,
            "/": graph.div,
            "**": graph.power,
            "neg": graph.neg,
        }[kind]
        return operation(*args)  # type: ignore[operator]

    def _name(self, place: tuple[str, ...], name: str, offset: int) -> int:
        if name in self.symbols:
            return self.symbols[name]
        if name in self.system.nodes:
            return self.system.nodes[name]
        if name in self.items:  # in progress, and allowed: the unknown inside its own equation
            return self.system.graph.symbol(name)
        raise ResolutionError(place, self._unknown(name), offset)

    def _unknown(self, name: str) -> str:
        known = [*self.symbols, *self.items, "pi"]
        return f"unknown name `{name}`" + suggestion(name, known) + _constant_hint(name)


def suggestion(name: str, known: Iterable[str]) -> str:
    """ ": did you mean ...?" if something close is known."""
    known = list(known)
    same = [k for k in known if k.lower() == name.lower()]
    close = same or get_close_matches(name, known, 1, 0.6)
    return f": did you mean `{close[0]}`?" if close else ""


def _constant_hint(name: str) -> str:
    return "; write exp(1) for Euler's number" if name == "e" else ""
