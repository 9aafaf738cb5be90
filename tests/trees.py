"""Random expressions as trees: written as text for the model language, evaluated here without it.

The evaluation works on complex numbers too, so derivatives come from a complex step: the imaginary part of
f(x + ih), over h, is f'(x) to rounding. Non-smooth functions decide by the real part.
"""

from __future__ import annotations

import cmath
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from analysis.model import Model
from analysis.model.code import source

STEP = 1e-30


@dataclass(frozen=True)
class Tree:
    kind: str
    value: float | str | None = None
    args: tuple[Tree, ...] = ()


class Outside(Exception):
    """The point lies outside the domain of the expression, or within rounding of a corner or a pole."""


class Lenient:
    """Python's mathematics as compiled code does it: NaN or infinity instead of an exception."""

    nan = math.nan

    def __getattr__(self, name: str) -> Callable[..., float]:
        def function(*args: float) -> float:
            with np.errstate(all="ignore"):
                return np.float64(getattr(np, re.sub("^a(?=sin|cos|tan)", "arc", name))(*args))

        return function


def uncompiled(model: Model) -> ModuleType:
    """The generated source as ordinary Python: the same text that is compiled, at no compile time."""
    module = ModuleType("generated")
    text = re.sub(r"@njit\(.*\)", "", source(model.equations))
    exec(text, module.__dict__)
    module.__dict__["math"] = Lenient()
    for name, function in list(vars(module).items()):
        if name.endswith("_statements"):
            setattr(module, name.removesuffix("_statements"), function)
    return module


def _real(z: Any) -> float:
    return complex(z).real


def _away(z: Any, distance: float = 1e-6) -> Any:
    if abs(_real(z)) < distance:
        raise Outside
    return z


def _inside(z: Any, lower: float, upper: float) -> Any:
    if not lower < _real(z) < upper:
        raise Outside
    return z


def _sign(z: Any) -> float:
    return 1.0 if _real(_away(z)) > 0 else -1.0


def _power(a: Any, b: Any) -> Any:
    exponent = _real(b)
    if abs(exponent) > 20:
        raise Outside
    if complex(b).imag == 0 and exponent == int(exponent):
        result: Any = 1.0
        for _ in range(abs(int(exponent))):
            result = result * a
        return result if exponent >= 0 else 1 / _away(result, 1e-9)
    return cmath.exp(b * cmath.log(_inside(a, 1e-3, 1e6)))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": lambda z: cmath.sin(z) / _away(cmath.cos(z), 1e-2),
    "asin": lambda z: cmath.asin(_inside(z, -0.99, 0.99)),
    "acos": lambda z: cmath.acos(_inside(z, -0.99, 0.99)),
    "atan": cmath.atan,
    "sinh": lambda z: cmath.sinh(_inside(z, -30, 30)),
    "cosh": lambda z: cmath.cosh(_inside(z, -30, 30)),
    "tanh": lambda z: cmath.tanh(_inside(z, -300, 300)),
    "exp": lambda z: cmath.exp(_inside(z, -50, 50)),
    "log": lambda z: cmath.log(_inside(z, 1e-6, 1e12)),
    "sqrt": lambda z: cmath.sqrt(_inside(z, 1e-6, 1e12)),
    "abs": lambda z: z * _sign(z),
    "sign": _sign,
    "heaviside": lambda z: 0.5 + 0.5 * _sign(z),
    "min": lambda *a: min(a, key=_real) if _apart(*a) else 0,
    "max": lambda *a: max(a, key=_real) if _apart(*a) else 0,
    "atan2": lambda y, x: _atan2(y, x),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / _away(b, 1e-3),
    "**": _power,
}
CONDITIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: _apart(a, b) and _real(a) < _real(b),
    "<=": lambda a, b: _apart(a, b) and _real(a) <= _real(b),
    ">": lambda a, b: _apart(a, b) and _real(a) > _real(b),
    ">=": lambda a, b: _apart(a, b) and _real(a) >= _real(b),
    "!=": lambda a, b: _apart(a, b) and _real(a) != _real(b),
}
# Binding of the text forms, as documented for the model language.
STRENGTH = {"or": 1, "and": 2, "not": 3, **dict.fromkeys(CONDITIONS, 4), "+": 5, "-": 5, "*": 6, "/": 6}
STRENGTH |= {"neg": 7, "**": 8}


def _apart(*values: Any) -> bool:
    ordered = sorted(map(_real, values))
    if any(b - a < 1e-6 for a, b in pairwise(ordered)):
        raise Outside
    return True


def _atan2(y: Any, x: Any) -> Any:
    if abs(_real(x)) + abs(_real(y)) < 1e-3 or abs(_real(y)) < 1e-6:
        raise Outside
    return 2 * cmath.atan(y / (cmath.sqrt(x * x + y * y) + x))


def evaluate(tree: Tree, at: Mapping[str, Any]) -> Any:
    """The value of the tree where the names have the given values; Outside if it is not safely defined."""
    try:
        value = _evaluate(tree, at)
    except (OverflowError, ZeroDivisionError, ValueError):
        raise Outside from None
    if isinstance(value, bool):
        return value
    if not abs(value) < 1e8:
        raise Outside
    return value


def _evaluate(tree: Tree, at: Mapping[str, Any]) -> Any:
    if tree.kind == "number":
        return tree.value
    if tree.kind == "name":
        return at[str(tree.value)]
    args = [evaluate(arg, at) for arg in tree.args]
    if tree.kind == "neg":
        return -args[0]
    if tree.kind == "not":
        return not args[0]
    if tree.kind in ("and", "or"):
        return all(args) if tree.kind == "and" else any(args)
    if tree.kind == "where":
        return args[1] if args[0] else args[2]
    table: Mapping[str, Callable[..., Any]] = {**BINARY, **CONDITIONS, **FUNCTIONS}
    return table[tree.kind](*args)


def derivative(tree: Tree, at: Mapping[str, float], name: str) -> float:
    """By the complex step."""
    return complex(evaluate(tree, {**at, name: complex(at[name], STEP)})).imag / STEP


def text(tree: Tree, draw: random.Random) -> str:
    """The tree as an expression, sometimes with more brackets and spaces than needed."""
    return _text(tree, draw)[0]


def _text(tree: Tree, draw: random.Random) -> tuple[str, int]:
    kind = tree.kind
    if kind == "number":
        return repr(tree.value), 10
    if kind == "name":
        return str(tree.value), 10
    if kind in FUNCTIONS or kind == "where":
        return f"{kind}({', '.join(_text(arg, draw)[0] for arg in tree.args)})", 10
    own = STRENGTH[kind]
    if kind in ("neg", "not"):
        sign = "-" if kind == "neg" else "not "
        return sign + _bracketed(tree.args[0], own, draw), own
    space = draw.choice(("", " "))
    operator = draw.choice(("**", "^")) if kind == "**" else kind
    if kind in ("and", "or"):
        space = " "
    # left-associative: the right side needs brackets at equal strength; the power is the other way round
    left, right = (own + 1, 7) if kind == "**" else (own, own + 1)
    if kind in CONDITIONS:
        left = own + 1
    a, b = _bracketed(tree.args[0], left, draw), _bracketed(tree.args[1], right, draw)
    return f"{a}{space}{operator}{space}{b}", own


def _bracketed(tree: Tree, least: int, draw: random.Random) -> str:
    inner, strength = _text(tree, draw)
    return f"({inner})" if strength < least or draw.random() < 0.1 else inner


def random_tree(draw: random.Random, names: tuple[str, ...], depth: int) -> Tree:
    """A tree over the names; at most ``depth`` operations deep."""
    if depth == 0 or draw.random() < 0.1:
        if draw.random() < 0.7:
            return Tree("name", draw.choice(names))
        return Tree("number", draw.choice((0.0, 1.0, 2.0, 3.0, 0.5, 1e-3, round(draw.uniform(0, 5), 3))))
    sort = draw.random()
    if sort < 0.55:
        kind = draw.choice(("+", "-", "*", "*", "/"))
        return Tree(kind, None, _subtrees(draw, names, depth, 2))
    if sort < 0.62:
        return Tree("neg", None, _subtrees(draw, names, depth, 1))
    if sort < 0.72:
        base = random_tree(draw, names, depth - 1)
        exponent = Tree("number", float(draw.choice((0, 1, 2, 3, 4, 5, 7, 0.5, 1.5, 2.5))))
        if draw.random() < 0.2:
            exponent = Tree("neg", None, (exponent,))
        if draw.random() < 0.2:
            exponent = Tree("name", draw.choice(names))
        if draw.random() < 0.2:
            exponent = Tree("**", None, (exponent, Tree("number", draw.choice((2.0, 3.0)))))
        return Tree("**", None, (base, exponent))
    if sort < 0.8:
        condition = _condition(draw, names, depth - 1)
        return Tree("where", None, (condition, *_subtrees(draw, names, depth, 2)))
    kind = draw.choice(list(FUNCTIONS))
    count = {"atan2": 2, "min": draw.choice((2, 3)), "max": draw.choice((2, 3))}.get(kind, 1)
    return Tree(kind, None, _subtrees(draw, names, depth, count))


def _subtrees(draw: random.Random, names: tuple[str, ...], depth: int, count: int) -> tuple[Tree, ...]:
    return tuple(random_tree(draw, names, depth - 1) for _ in range(count))


def _condition(draw: random.Random, names: tuple[str, ...], depth: int) -> Tree:
    sort = draw.random()
    if depth > 0 and sort < 0.15:
        return Tree("not", None, (_condition(draw, names, depth - 1),))
    if depth > 0 and sort < 0.35:
        kind = draw.choice(("and", "or"))
        return Tree(kind, None, (_condition(draw, names, depth - 1), _condition(draw, names, depth - 1)))
    return Tree(draw.choice(list(CONDITIONS)), None, _subtrees(draw, names, max(depth, 1), 2))
