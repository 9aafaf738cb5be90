"""Equations as a graph in which equal sub-expressions are one node, and its exact derivatives.

Nodes are numbered so that arguments come before what uses them; every pass is one loop over the numbers.
Equal nodes are made once, so common sub-expressions are shared by construction, between the right-hand side
and all of its derivatives.

Conventions at the corners: the derivative of sign, heaviside and of a condition is 0; of abs at 0 it is 0; of
a power u**p (also sqrt) at u = 0 it is 0 where the true one is infinite (0 < p < 1), so that a product such
as abs(z)**p*z stays finite; u**p*log|u| counts as 0 at u = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.base.errors import ModelError

MAX_OPERATIONS = 12_000  # with derivatives; beyond this the compiler would work for minutes
# Operations beyond the grammar's: dpow(u, p) = d(u**p)/du and powlog(u, p) = u**p log|u|, finite at u = 0.
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_COMMUTATIVE = frozenset({"+", "*", "min", "max", "and", "or"})

_UNARY: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "abs": abs,
    "sign": lambda x: float((x > 0) - (x < 0)),
    "heaviside": lambda x: 0.5 * (1 + (x > 0) - (x < 0)),
}


class NotFinite(ArithmeticError):
    """A constant part of an expression has no finite value."""


@dataclass(frozen=True, slots=True)
class Op:
    """A node: a constant ("number", value), a symbol ("symbol", name) or an operation on other nodes."""

    kind: str
    value: float | str | None
    args: tuple[int, ...]


class Graph:
    """A growing set of nodes; the methods below simplify what is trivially simple."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self._known: dict[Op, int] = {}
        self.zero = self.number(0.0)
        self.one = self.number(1.0)

    def _make(self, kind: str, value: float | str | None, *args: int) -> int:
        if kind in _COMMUTATIVE:
            args = tuple(sorted(args))
        return self._node(Op(kind, value, args))

    def _node(self, op: Op) -> int:
        found = self._known.get(op)
        if found is None:
            if len(self.ops) >= MAX_OPERATIONS:
                raise ModelError(
                    f"The model is too large: more than {MAX_OPERATIONS} operations with its derivatives."
                )
            found = self._known[op] = len(self.ops)
            self.ops.append(op)
        return found

    def number(self, value: float) -> int:
        if not math.isfinite(value):
            raise NotFinite
        return self._make("number", float(value) + 0.0)  # + 0.0: one zero, not two

    def symbol(self, name: str) -> int:
        return self._make("symbol", name)

    def constant(self, node: int) -> float | None:
        op = self.ops[node]
        return op.value if op.kind == "number" else None  # type: ignore[return-value]

    def add(self, a: int, b: int) -> int:
        x, y = self.constant(a), self.constant(b)
        if x is not None and y is not None:
            return self.number(x + y)
        if x == 0:
            return b
        if y == 0:
            return a
        if self.ops[b].kind == "neg":
            return self.sub(a, self.ops[b].args[0])
        if self.ops[a].kind == "neg":
            return self.sub(b, self.ops[a].args[0])
        return self._make("+", None, a, b)

    def sub(self, a: int, b: int) -> int:
        x, y = self.constant(a), self.constant(b)
        if x is not None and y is not None:
            return self.number(x - y)
        if a == b:
            return self.zero
        if y == 0:
            return a
        if x == 0:
            return self.neg(b)
        if self.ops[b].kind == "neg":
            return self.add(a, self.ops[b].args[0])
        return self._make("-", None, a, b)

    def neg(self, a: int) -> int:
        x = self.constant(a)
        if x is not None:
            return self.number(-x)
        if self.ops[a].kind == "neg":
            return self.ops[a].args[0]
        if self.ops[a].kind == "-":
            return self._make("-", None, *reversed(self.ops[a].args))
        return self._make("neg", None, a)

    def mul(self, a: int, b: int) -> int:
        x, y = self.constant(a), self.constant(b)
        if x is not None and y is not None:
            return self.number(x * y)
        if y is not None:
            a, b, x = b, a, y
        if x is not None:
            if x == 0:
                return self.zero
            if x == 1:
                return b
            if x == -1:
                return self.neg(b)
            inner = self.ops[b]
            if inner.kind == "*":  # a constant stands first, see below: 2*(3*x) is 6*x
                z = self.constant(inner.args[0])
                if z is not None:
                    return self.mul(self.number(x * z), inner.args[1])
        if self.ops[a].kind == "neg" and self.ops[b].kind == "neg":
            return self.mul(self.ops[a].args[0], self.ops[b].args[0])
        if self.ops[a].kind == "neg":
            return self.neg(self.mul(self.ops[a].args[0], b))
        if self.ops[b].kind == "neg":
            return self.neg(self.mul(a, self.ops[b].args[0]))
        if x is not None:
            return self._node(Op("*", None, (a, b)))  # not sorted: the constant stays first
        return self._make("*", None, a, b)

    def div(self, a: int, b: int) -> int:
        x, y = self.constant(a), self.constant(b)
        if y == 0:
            raise NotFinite
        if x is not None and y is not None:
            return self.number(x / y)
        if x == 0:
            return self.zero
        if y is not None:
            return self.mul(self.number(1 / y), a) if _exact_reciprocal(y) else self._make("/", None, a, b)
        if a == b:
            return self.one
        if self.ops[a].kind == "neg":
            return self.neg(self.div(self.ops[a].args[0], b))
        if self.ops[b].kind == "neg":
            return self.neg(self.div(a, self.ops[b].args[0]))
        return self._make("/", None, a, b)

    def power(self, a: int, b: int) -> int:
        x, y = self.constant(a), self.constant(b)
        if x is not None and y is not None:
            return self.number(_fold(lambda: math.pow(x, y)))
        if y == 0:
            return self.one
        if y == 1:
            return a
        if y == 0.5:
            return self.call("sqrt", a)
        if y == 2 and self.ops[a].kind == "abs":
            return self.power(self.ops[a].args[0], b)
        return self._make("**", None, a, b)

    def call(self, name: str, *args: int) -> int:
        values = [self.constant(a) for a in args]
        if name in _UNARY and values[0] is not None:
            x = values[0]
            return self.number(_fold(lambda: _UNARY[name](x)))
        if name in ("min", "max"):
            return self._extreme(name, args)
        if name == "atan2" and values[0] is not None and values[1] is not None:
            return self.number(math.atan2(values[0], values[1]))
        if name == "abs" and self.ops[args[0]].kind in ("abs", "neg"):
            inner = self.ops[args[0]]
            return args[0] if inner.kind == "abs" else self.call("abs", inner.args[0])
        return self._make(name, None, *args)

    def _extreme(self, name: str, args: tuple[int, ...]) -> int:
        choose = min if name == "min" else max
        result = args[0]
        for other in args[1:]:
            x, y = self.constant(result), self.constant(other)
            if x is not None and y is not None:
                result = self.number(choose(x, y))
            elif result != other:
                result = self._make(name, None, result, other)
        return result

    def where(self, condition: int, a: int, b: int) -> int:
        op = self.ops[condition]
        if op.kind == "truth":
            return a if op.value else b
        return a if a == b else self._make("where", None, condition, a, b)

    def compare(self, kind: str, a: int, b: int) -> int:
        x, y = self.constant(a), self.constant(b)
        if x is not None and y is not None:
            held = {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}
            return self.truth(held[kind])
        return self._make(kind, None, a, b)

    def truth(self, value: bool) -> int:
        return self._make("truth", float(value))

    def logic(self, kind: str, *args: int) -> int:
        ops = [self.ops[a] for a in args]
        if kind == "not":
            return self.truth(not ops[0].value) if ops[0].kind == "truth" else self._make("not", None, *args)
        for i in (0, 1):
            if ops[i].kind == "truth":
                if kind == "and":
                    return args[1 - i] if ops[i].value else args[i]
                return args[i] if ops[i].value else args[1 - i]
        return self._make(kind, None, *args)

    def apply(self, op: Op, args: Sequence[int]) -> int:
        """An operation of another graph on nodes of this one."""
        binary = {"+": self.add, "-": self.sub, "*": self.mul, "/": self.div, "**": self.power}
        if op.kind == "number":
            return self.number(float(op.value))  # type: ignore[arg-type]
        if op.kind == "truth":
            return self.truth(bool(op.value))
        if op.kind == "symbol":
            return self.symbol(str(op.value))
        if op.kind in COMPARISONS:
            return self.compare(op.kind, *args)
        if op.kind in ("and", "or", "not"):
            return self.logic(op.kind, *args)
        if op.kind == "where":
            return self.where(*args)
        if op.kind in binary:
            return binary[op.kind](*args)
        return self.neg(*args) if op.kind == "neg" else self.call(op.kind, *args)

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """The nodes that the roots need, themselves included, arguments first."""
        needed = set(roots)
        for node in range(max(needed, default=-1), -1, -1):
            if node in needed:
                needed.update(self.ops[node].args)
        return sorted(needed)

    def symbols(self, roots: Iterable[int]) -> set[str]:
        """Names of the symbols that the roots depend on."""
        return {str(self.ops[i].value) for i in self.reachable(roots) if self.ops[i].kind == "symbol"}

    def derivatives(self, roots: Iterable[int]) -> dict[int, dict[str, int]]:
        """For each node that the roots need, its derivative in every symbol on which it depends."""
        result: dict[int, dict[str, int]] = {}
        for node in self.reachable(roots):
            op = self.ops[node]
            if op.kind == "symbol":
                result[node] = {str(op.value): self.one}
                continue
            inner: dict[str, None] = {}
            for arg in op.args:
                inner.update(dict.fromkeys(result[arg]))
            slopes: dict[str, int] = {}
            for name in inner:
                slope = self._derivative(node, op, [result[arg].get(name, self.zero) for arg in op.args])
                if slope != self.zero:
                    slopes[name] = slope
            result[node] = slopes
        return result

    def _derivative(self, node: int, op: Op, d: list[int]) -> int:
        kind, args = op.kind, op.args
        if kind == "+":
            return self.add(d[0], d[1])
        if kind == "-":
            return self.sub(d[0], d[1])
        if kind == "neg":
            return self.neg(d[0])
        if kind == "*":
            return self.add(self.mul(d[0], args[1]), self.mul(args[0], d[1]))
        if kind == "/":
            return self.div(self.sub(d[0], self.mul(node, d[1])), args[1])
        if kind == "**":
            return self._derivative_of_power(args, d)
        if kind in ("min", "max"):
            first = self.compare("<=" if kind == "min" else ">=", *args)
            return self.where(first, d[0], d[1])
        if kind == "where":
            return self.where(args[0], d[1], d[2])
        if kind == "atan2":
            y, x = args
            square = self.add(self.power(x, self.number(2)), self.power(y, self.number(2)))
            return self.div(self.sub(self.mul(x, d[0]), self.mul(y, d[1])), square)
        if kind in _UNARY:
            return self.mul(self._slope(node, kind, args[0]), d[0])
        return self.zero  # comparisons and their combinations: constant in pieces

    def _derivative_of_power(self, args: tuple[int, ...], d: list[int]) -> int:
        base, exponent = args
        n = self.constant(exponent)
        if n is not None and (n >= 1 or n == int(n)):
            slope = self.mul(exponent, self.power(base, self.number(n - 1)))
        else:
            slope = self._make("dpow", None, base, exponent)
        result = self.mul(slope, d[0])
        if d[1] == self.zero:
            return result
        return self.add(result, self.mul(self._make("powlog", None, base, exponent), d[1]))

    def _slope(self, node: int, kind: str, u: int) -> int:
        """d(function)/d(argument), reusing the function's own value where that is cheaper."""
        two = self.number(2)
        square = self.power(u, two)
        rules = {
            "sin": lambda: self.call("cos", u),
            "cos": lambda: self.neg(self.call("sin", u)),
            "tan": lambda: self.add(self.one, self.power(node, two)),
            "asin": lambda: self.div(self.one, self.call("sqrt", self.sub(self.one, square))),
            "acos": lambda: self.neg(self.div(self.one, self.call("sqrt", self.sub(self.one, square)))),
            "atan": lambda: self.div(self.one, self.add(self.one, square)),
            "sinh": lambda: self.call("cosh", u),
            "cosh": lambda: self.call("sinh", u),
            "tanh": lambda: self.sub(self.one, self.power(node, two)),
            "exp": lambda: node,
            "log": lambda: self.div(self.one, u),
            "sqrt": lambda: self.where(
                self.compare("==", u, self.zero), self.zero, self.div(self.number(0.5), node)
            ),
            "abs": lambda: self.call("sign", u),
            "sign": lambda: self.zero,
            "heaviside": lambda: self.zero,
        }
        return rules[kind]()


def _exact_reciprocal(y: float) -> bool:
    """Whether dividing by y and multiplying by 1/y are the same: y is a power of two."""
    return abs(math.frexp(y)[0]) == 0.5 and abs(math.frexp(y)[1]) < 1000


def _fold(value: Callable[[], float]) -> float:
    try:
        return float(value())
    except (ArithmeticError, ValueError):
        raise NotFinite from None


@dataclass(frozen=True)
class Solved:
    """An implicit definition: the symbol ``name`` is the root of ``residual`` in [lower, upper]."""

    name: str
    residual: int
    lower: float
    upper: float


def total_derivatives(
    graph: Graph, roots: Iterable[int], solved: Iterable[Solved]
) -> tuple[dict[int, dict[str, int]], dict[str, int]]:
    """Derivatives of the roots when the solved unknowns follow what they depend on.

    By the implicit function theorem d(unknown)/dv = -F_v/F_unknown for the residual F. Unknowns come in an
    order in which each may depend on earlier ones only. Also returns F_unknown of each.
    """
    roots, solved = list(roots), list(solved)
    raw = graph.derivatives([*roots, *(s.residual for s in solved)])
    follow: dict[str, dict[str, int]] = {}
    slopes: dict[str, int] = {}
    for s in solved:
        own = dict(raw[s.residual])
        slopes[s.name] = own.pop(s.name, graph.zero)
        total = _chain(graph, own, follow)
        if slopes[s.name] == graph.zero:
            continue
        follow[s.name] = {v: graph.neg(graph.div(d, slopes[s.name])) for v, d in total.items()}
    return {root: _chain(graph, raw[root], follow) for root in roots}, slopes


def _chain(
    graph: Graph, partial: Mapping[str, int], follow: Mapping[str, Mapping[str, int]]
) -> dict[str, int]:
    total = {name: node for name, node in partial.items() if name not in follow}
    for unknown, inner in follow.items():
        if unknown in partial:
            for name, slope in inner.items():
                term = graph.mul(partial[unknown], slope)
                total[name] = graph.add(total.get(name, graph.zero), term)
    return {name: node for name, node in total.items() if node != graph.zero}
