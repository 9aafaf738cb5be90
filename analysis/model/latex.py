"""The equations as mathematics: TeX in the subset that matplotlib's mathtext also draws."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from analysis.model.equations import Implicit
from analysis.model.grammar import Expression, Node, parse

if TYPE_CHECKING:
    from analysis.model.model import Model

_GREEK = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "zeta",
    "eta",
    "theta",
    "iota",
    "kappa",
    "lambda",
    "mu",
    "nu",
    "xi",
    "pi",
    "rho",
    "sigma",
    "tau",
    "upsilon",
    "phi",
    "chi",
    "psi",
    "omega",
    "Gamma",
    "Delta",
    "Theta",
    "Lambda",
    "Xi",
    "Pi",
    "Sigma",
    "Upsilon",
    "Phi",
    "Psi",
    "Omega",
]
# A letter or a Greek name, then what reads as an index: digits, a capital, or both.
_INDEXED = re.compile(rf"({'|'.join(sorted(_GREEK, key=len, reverse=True))}|[A-Za-z])([A-Z]?[0-9]*)\Z")

_FUNCTIONS = {
    **{name: rf"\{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "min", "max")},
    "asin": r"\arcsin",
    "acos": r"\arccos",
    "atan": r"\arctan",
    "atan2": r"\mathrm{atan2}",
    "log": r"\ln",
    "exp": r"\exp",
    "sign": r"\mathrm{sgn}",
    "heaviside": r"\mathrm{H}",
}
_RELATIONS = {"<": "<", "<=": r"\leq", ">": ">", ">=": r"\geq", "==": "=", "!=": r"\neq"}
_OR, _AND, _NOT, _RELATION, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)


@dataclass(frozen=True)
class _Piece:
    """Part of a formula, how tightly it holds together, and for f(x) the two sides of a power of f."""

    text: str
    strength: int
    function: tuple[str, str] | None = None

    def inside(self, least: int) -> str:
        return self.text if self.strength >= least else rf"\left({self.text}\right)"


def equations(model: Model) -> list[str]:
    """One formula for each state, input, definition and output."""
    e = model.equations
    lines = [rf"\dot{{{symbol(name)}}} = {formula(rhs)}" for name, rhs in e.states.items()]
    lines += [f"{symbol(name)} = {formula(given)}" for name, given in e.driven.items()]
    lines += [rf"{symbol(name)}\left(t\right)\ \mathrm{{measured}}" for name in e.measured]
    for name, item in e.definitions.items():
        if name in e.functions:
            argument = ", ".join(formula(parse(axis.argument)) for axis in e.functions[name].axes)
            lines.append(rf"{symbol(name)} = {symbol(name)}\left({argument}\right)\ \mathrm{{unknown}}")
        else:
            lines.append(_definition(name, item))
    shown = [(name, out) for name, out in e.outputs.items() if out.text.strip() != name]
    return lines + [f"{symbol(name)} = {formula(out)}" for name, out in shown]


def _definition(name: str, item: Expression | Implicit) -> str:
    if not isinstance(item, Implicit):
        return f"{symbol(name)} = {formula(item)}"
    bounds = rf"{_number(item.lower).text} \leq {symbol(name)} \leq {_number(item.upper).text}"
    return rf"{formula(item.residual)} = 0,\quad {bounds}"


def symbol(name: str) -> str:
    """A name as a symbol: thetaA is theta with index A, k1 is k with index 1, freq stays a word."""
    head, _, index = name.strip("_").partition("_")
    match = _INDEXED.match(head)
    if match:
        letter, own = match.groups()
        head = rf"\{letter}" if letter in _GREEK else letter
        index = ",".join(part for part in (own, index) if part)
    elif head:
        head = rf"\mathrm{{{head}}}"
    else:
        head = r"\_"
    if not index:
        return head
    parts = [p if len(p) <= 1 or p.isdigit() else _index(p) for p in re.split("[_,]+", index) if p]
    return rf"{head}_{{{','.join(parts)}}}"


def _index(word: str) -> str:
    return rf"\{word}" if word in _GREEK else rf"\mathrm{{{word}}}"


def formula(expression: Expression) -> str:
    """The expression as it was written, typeset."""
    pieces: list[_Piece] = []
    for node in expression.nodes:
        pieces.append(_piece(node, [pieces[i] for i in node.args]))
    text = pieces[-1].text
    return "\\d" + text[1:] if text.startswith(r"\frac") else text  # a fraction by itself in full size


def _piece(node: Node, args: Sequence[_Piece]) -> _Piece:
    kind = node.kind
    if kind == "number":
        return _number(float(node.value))
    if kind == "name":
        return _Piece(symbol(str(node.value)), _ATOM)
    if kind == "call":
        return _call(str(node.value), args)
    if kind == "neg":
        return _Piece(f"-{args[0].inside(_PRODUCT)}", _SIGN if args[0].strength > _PRODUCT else _SUM)
    if kind == "not":
        return _Piece(rf"\neg {args[0].inside(_ATOM)}", _NOT)
    return _binary(kind, args[0], args[1])


def _binary(kind: str, a: _Piece, b: _Piece) -> _Piece:
    if kind == "+":
        return _Piece(f"{a.inside(_SUM)} + {_after_sign(b, _PRODUCT)}", _SUM)
    if kind == "-":
        return _Piece(f"{a.inside(_SUM)} - {_after_sign(b, _PRODUCT)}", _SUM)
    if kind == "*":
        left, right = a.inside(_PRODUCT), _after_sign(b, _PRODUCT)
        sign = r" \cdot " if right[0].isdigit() else r" \, "
        return _Piece(left + sign + right, _PRODUCT)
    if kind == "/":
        return _Piece(rf"\frac{{{a.text}}}{{{b.text}}}", _POWER)
    if kind == "**":
        if a.function and b.text.isdigit():
            return _Piece(f"{a.function[0]}^{{{b.text}}}{a.function[1]}", _POWER)
        return _Piece(f"{{{a.inside(_ATOM)}}}^{{{b.text}}}", _POWER)
    if kind in _RELATIONS:
        return _Piece(f"{a.text} {_RELATIONS[kind]} {b.text}", _RELATION)
    word, strength = (r"\wedge", _AND) if kind == "and" else (r"\vee", _OR)
    return _Piece(f"{a.inside(strength)} {word} {b.inside(strength)}", strength)


def _after_sign(piece: _Piece, least: int) -> str:
    """An operand that follows another sign: one that starts with a minus needs brackets."""
    return rf"\left({piece.text}\right)" if piece.text.startswith("-") else piece.inside(least)


def _call(name: str, args: Sequence[_Piece]) -> _Piece:
    if name == "sqrt":
        return _Piece(rf"\sqrt{{{args[0].text}}}", _ATOM)
    if name == "abs":
        return _Piece(rf"\left|{args[0].text}\right|", _ATOM)
    if name == "where":
        condition, a, b = (arg.text for arg in args)
        text = rf"\left\{{{a}\ \mathrm{{if}}\ {condition},\ {b}\ \mathrm{{otherwise}}\right\}}"
        return _Piece(text, _ATOM)
    inner = rf"\left({', '.join(arg.text for arg in args)}\right)"
    head = _FUNCTIONS[name]
    return _Piece(head + inner, _POWER, (head, inner))


def _number(value: float) -> _Piece:
    if value == math.pi:
        return _Piece(r"\pi", _ATOM)
    mantissa, _, exponent = f"{value:.10g}".partition("e")
    if not exponent:
        return _Piece(mantissa, _ATOM if value >= 0 else _SIGN)
    power = f"10^{{{int(exponent)}}}"
    return _Piece(power if mantissa == "1" else rf"{mantissa} \times {power}", _PRODUCT)
