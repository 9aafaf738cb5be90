"""Nodes of the graph as statements of source text, and the search for implicitly defined unknowns.

No name of the model appears in the text. States are x0, x1, ..., measured inputs u0, ..., parameters p0, ...,
solved unknowns z0, ..., intermediate results v<node> and w<node>_<power>.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from analysis.model.equations import Equations, System
from analysis.model.graph import COMPARISONS, Graph, Solved

# Functions of our own for loops over samples: with the C library's these could not be vectorised.
VECTORISED = ("sin", "cos", "tan", "exp", "tanh")
_LONGEST_PRODUCT = 32  # x**n by multiplication up to this n
_LONGEST_LINE = 160

# The root of a residual in [lower, upper]: Newton's method inside a shrinking bracket, bisection where it is
# too slow. Without a change of sign a bound serves if the root lies beyond it by rounding only; else 64 parts
# are searched; without any change the answer is NaN: the model has left its range.
_SOLVE = """
@njit(error_model="numpy", nogil=True)
def solve_{k}({args}):
    low = {lower}
    high = {upper}
    at_low, slope_low = residual_{k}(low{more})
    at_high, slope_high = residual_{k}(high{more})
    if at_low == 0.0:
        return low
    if at_high == 0.0:
        return high
    if not ((at_low < 0.0 and at_high > 0.0) or (at_low > 0.0 and at_high < 0.0)):
        if abs(at_low) <= 1e-12*({width})*abs(slope_low):
            return low
        if abs(at_high) <= 1e-12*({width})*abs(slope_high):
            return high
        found = False
        at_left = at_low
        for i in range(1, 65):
            right = {lower} + i*({width}/64.0)
            at_right = residual_{k}(right{more})[0]
            if (at_left <= 0.0 and at_right >= 0.0) or (at_left >= 0.0 and at_right <= 0.0):
                found = True
                high = right
                break
            low = right
            at_left = at_right
        if not found:
            return math.nan
        at_low = at_left
    z = 0.5*(low + high)
    before = high - low
    for _ in range(200):
        f, slope = residual_{k}(z{more})
        if f == 0.0:
            return z
        if (f < 0.0) == (at_low < 0.0):
            low = z
        else:
            high = z
        step = f/slope
        if not (low < z - step < high and abs(2.0*step) <= abs(before)):
            step = z - 0.5*(low + high)
        before = step
        if z - step == z or abs(step) <= 1e-16*abs(z):
            return z
        z = z - step
    return z
"""


def symbol_names(equations: Equations, system: System) -> dict[str, str]:
    names = {"t": "t"}
    names.update({name: f"x{i}" for i, name in enumerate(equations.states)})
    names.update({name: f"u{i}" for i, name in enumerate(equations.measured)})
    names.update({name: f"p{i}" for i, name in enumerate(equations.parameters)})
    names.update({s.name: f"z{i}" for i, s in enumerate(system.solved)})
    return names


class Body:
    """Statements that compute nodes, each once, in order."""

    def __init__(
        self, graph: Graph, names: Mapping[str, str], wanted: Iterable[int], vectorised: bool = False
    ) -> None:
        self.graph = graph
        self.vectorised = vectorised
        self.text: dict[int, str] = {}
        self.lines: list[str] = []
        self.uses: Counter[int] = Counter()
        wanted = list(wanted)
        self.uses.update(wanted)
        for node in graph.reachable(wanted):
            op = graph.ops[node]
            self.uses.update(op.args)
            if op.kind == "number":
                value = float(op.value)  # type: ignore[arg-type]
                self.text[node] = repr(value) if value >= 0 else f"({value!r})"
            elif op.kind == "truth":
                self.text[node] = "True" if op.value else "False"
            elif op.kind == "symbol" and str(op.value) in names:
                self.text[node] = names[str(op.value)]

    def compute(self, nodes: Iterable[int]) -> None:
        for node in sorted(nodes):
            if node in self.text:
                continue
            op = self.graph.ops[node]
            text = self._operation(op.kind, op.args, node)
            simple = op.kind in ("+", "-", "*", "/", "neg")
            if simple and self.uses[node] == 1 and len(text) < _LONGEST_LINE:
                self.text[node] = f"({text})"
            else:
                self.lines.append(f"v{node} = {text}")
                self.text[node] = f"v{node}"

    def named(self, node: int) -> str:
        """The node as a plain name or number: a choice between names needs no branch in machine code."""
        text = self.text[node]
        if text.startswith("(") and self.graph.constant(node) is None:
            self.lines.append(f"v{node} = {text}")
            text = self.text[node] = f"v{node}"
        return text

    def _operation(self, kind: str, args: tuple[int, ...], node: int) -> str:
        if kind in ("+", "-", "*", "/"):
            return f"{self.text[args[0]]} {kind} {self.text[args[1]]}"
        if kind == "neg":
            return f"-{self.text[args[0]]}"
        if kind == "**":
            return self._power(args[0], args[1], node)
        if kind in COMPARISONS:
            return f"{self.named(args[0])} {kind} {self.named(args[1])}"
        a = [self.named(arg) for arg in args]
        if kind == "not":
            return f"not {a[0]}"
        if kind in ("and", "or"):
            return f"({a[0]}) {'&' if kind == 'and' else '|'} ({a[1]})"
        if kind == "where":
            return f"{a[1]} if {a[0]} else {a[2]}"
        if kind in ("min", "max"):
            return (
                f"{a[0]} if ({a[0]} {'<' if kind == 'min' else '>'} {a[1]}) | ({a[0]} != {a[0]}) else {a[1]}"
            )
        if kind == "sign":
            return f"1.0 if {a[0]} > 0.0 else (-1.0 if {a[0]} < 0.0 else {a[0]})"
        if kind == "heaviside":
            return f"1.0 if {a[0]} > 0.0 else (0.0 if {a[0]} < 0.0 else {a[0]} + 0.5)"
        if kind == "dpow":
            return f"0.0 if {a[0]} == 0.0 and 0.0 <= {a[1]} < 1.0 else {a[1]}*{a[0]}**({a[1]} - 1.0)"
        if kind == "powlog":
            return f"0.0 if {a[0]} == 0.0 else {a[0]}**{a[1]}*math.log(abs({a[0]}))"
        if kind == "abs":
            return f"abs({a[0]})"
        library = "" if self.vectorised and kind in VECTORISED else "math."
        return f"{library}{kind}({', '.join(a)})"

    def _power(self, base: int, exponent: int, node: int) -> str:
        n = self.graph.constant(exponent)
        x = self.named(base)
        if n is None or n != int(n) or abs(n) > _LONGEST_PRODUCT:
            if n is not None and n > 0 and n - 0.5 == int(n) and n < _LONGEST_PRODUCT:
                product = self._product(x, int(n), node)
                return f"{product} * math.sqrt({x})"
            return f"{x}**{self.named(exponent)}"
        product = self._product(x, int(abs(n)), node)
        return product if n > 0 else f"1.0 / ({product})"

    def _product(self, x: str, n: int, node: int) -> str:
        """x**n for n >= 1 by squaring; intermediate squares become variables."""
        factors: list[str] = []
        square, level = x, 0
        while n:
            if n & 1:
                factors.append(square)
            n >>= 1
            if n:
                level += 1
                self.lines.append(f"w{node}_{level} = {square} * {square}")
                square = f"w{node}_{level}"
        return " * ".join(factors)


def statements(
    system: System, names: Mapping[str, str], wanted: Sequence[int], vectorised: bool = False
) -> Body:
    """All statements for the wanted nodes, unknowns solved as soon as what they need is there."""
    graph = system.graph
    reach = graph.symbols(system.closure(wanted))
    unknowns = [(i, s) for i, s in enumerate(system.solved) if s.name in reach]
    inputs = {s.name: _boundary(graph, s) for _, s in unknowns}
    hidden = {s.name for _, s in unknowns}
    everything = [*wanted, *(node for nodes in inputs.values() for node in nodes)]
    body = Body(graph, {k: v for k, v in names.items() if k not in hidden}, everything, vectorised)
    for i, s in unknowns:
        body.compute(graph.reachable(inputs[s.name]))
        args = ", ".join(body.named(node) for node in inputs[s.name])
        body.lines.append(f"z{i} = solve_{i}({args})")
        body.text[graph.symbol(s.name)] = f"z{i}"
    body.compute(graph.reachable(wanted))
    return body


def _boundary(graph: Graph, s: Solved, *others: int) -> list[int]:
    """Nodes that the residual needs and that do not depend on the unknown: computed before the search."""
    inside = graph.reachable([s.residual, *others])
    moving: set[int] = {graph.symbol(s.name)}
    for node in inside:
        if moving.intersection(graph.ops[node].args):
            moving.add(node)
    needed = {arg for node in moving for arg in graph.ops[node].args} & set(inside)
    needed.update(node for node in (s.residual, *others) if node not in moving)
    return sorted(n for n in needed - moving if graph.ops[n].kind not in ("number", "truth"))


def solver(graph: Graph, k: int, s: Solved, slope: int) -> str:
    """The functions that find the unknown: its residual with slope, and the search."""
    inputs = _boundary(graph, s, slope)
    body = Body(graph, {s.name: "z"}, [s.residual, slope])
    arguments = [f"a{i}" for i in range(len(inputs))]
    body.text.update(zip(inputs, arguments, strict=True))
    body.compute(_between(graph, [s.residual, slope], set(inputs)))
    lines = [
        '\n@njit(error_model="numpy", nogil=True)',
        f"def residual_{k}({', '.join(['z', *arguments])}):",
        *(f"    {line}" for line in body.lines),
        f"    return {body.text[s.residual]}, {body.text[slope]}",
    ]
    more = "".join(f", {a}" for a in arguments)
    search = _SOLVE.format(
        k=k,
        args=", ".join(arguments),
        more=more,
        lower=repr(s.lower),
        upper=repr(s.upper),
        width=repr(s.upper - s.lower),
    )
    return "\n".join(lines) + "\n" + search


def _between(graph: Graph, roots: Iterable[int], stop: set[int]) -> list[int]:
    """Nodes that the roots need, without what lies behind the nodes to stop at."""
    needed = set(roots)
    for node in range(max(needed), -1, -1):
        if node in needed and node not in stop:
            needed.update(graph.ops[node].args)
    return sorted(needed - stop)


def loads(system: System, names: Mapping[str, str], wanted: Sequence[int]) -> list[str]:
    """The states, inputs and parameters that the wanted nodes need, by their names in the code."""
    used = system.graph.symbols(system.closure(wanted))
    return [names[name] for name in names if name in used and names[name][0] in "xup"]
