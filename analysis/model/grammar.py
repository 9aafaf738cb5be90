"""The expression language of a model: its own tokens and grammar, nothing of Python's evaluation.

An expression becomes a flat tuple of nodes in which every node stands after its arguments. Long or nested
expressions therefore need no recursion in any later step.

    condition:   or, and, not, < <= > >= == !=            (only as the first argument of where)
    arithmetic:  + -, * /, unary -, ** or ^ (binds to the right and tighter than unary minus, as in Python)
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

# Functions and how many arguments they take (least, most).
FUNCTIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"), (1, 1)),
    **dict.fromkeys(("exp", "log", "sqrt", "abs", "sign", "heaviside"), (1, 1)),
    "atan2": (2, 2),
    "min": (2, 64),
    "max": (2, 64),
    "where": (3, 3),
}
CONSTANTS = {"pi": math.pi}
WORDS = ("and", "or", "not")
RESERVED = frozenset({*FUNCTIONS, *CONSTANTS, *WORDS, "t"})

MAX_CHARACTERS = 20_000
MAX_DEPTH = 60  # brackets within brackets

# What people write who come from elsewhere, and what it is called here.
_FOREIGN_FUNCTIONS = {
    "ln": "log(x)",
    "log10": "log(x)/log(10)",
    "log2": "log(x)/log(2)",
    "pow": "x**y",
    "fabs": "abs(x)",
    "arcsin": "asin(x)",
    "arccos": "acos(x)",
    "arctan": "atan(x)",
    "arctan2": "atan2(y, x)",
    "sgn": "sign(x)",
    "step": "heaviside(x)",
    "if": "where(condition, a, b)",
    "piecewise": "where(condition, a, b)",
    "sec": "1/cos(x)",
    "cbrt": "sign(x)*abs(x)**(1/3)",
}
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_BINARY = {  # operator: (left, right) binding power
    "or": (1, 2),
    "and": (3, 4),
    **dict.fromkeys(_COMPARISONS, (7, 8)),
    "+": (9, 10),
    "-": (9, 10),
    "*": (11, 12),
    "/": (11, 12),
    "**": (16, 14),  # the right side may start with a unary minus and another power
}
_NOT_POWER = 5
_MINUS_POWER = 13

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>\*\*|<=|>=|==|!=|[-+*/^<>(),])"
)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class ExpressionError(Exception):
    """What is wrong in an expression, and at which character."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. ``kind``: number, name, call, neg, not, or the operator itself."""

    kind: str
    value: float | str
    args: tuple[int, ...]  # positions of the arguments in the expression
    offset: int  # character in the text

    @property
    def is_condition(self) -> bool:
        return self.kind in _COMPARISONS or self.kind in WORDS


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression: nodes in order of evaluation, the last one is the result."""

    text: str
    nodes: tuple[Node, ...]

    @property
    def names(self) -> dict[str, int]:
        """Names used, and where each is used first."""
        found: dict[str, int] = {}
        for node in self.nodes:
            if node.kind == "name":
                found.setdefault(str(node.value), node.offset)
        return found


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    offset: int


def parse(text: str) -> Expression:
    """Parse an expression; ExpressionError says what is wrong and where."""
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(
            f"the expression has {len(text)} characters, more than the {MAX_CHARACTERS} allowed; "
            "split it into definitions",
            0,
        )
    return _Parser(text).expression()


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(_unexpected_character(text[position]), position)
        kind = str(match.lastgroup)
        if kind != "space":
            word = "**" if match.group() == "^" else match.group()
            if kind == "name" and word in WORDS:
                kind = "operator"
            tokens.append(_Token(kind, word, position))
        position = match.end()
    tokens.append(_Token("end", "the end", len(text)))
    return tokens


def _unexpected_character(character: str) -> str:
    hints = {
        "=": "`=` has no place here; to compare, write `==` inside where(condition, a, b)",
        "[": "square brackets have no meaning here; use round ones",
        "{": "curly brackets have no meaning here; use round ones",
        ".": "a dot is only allowed inside a number",
        "!": "to negate a condition, write `not`",
        "&": "to join conditions, write `and`",
        "|": "to join conditions write `or`; for an absolute value write abs(x)",
        "'": "quotes have no meaning here; for a derivative, make it a state of its own",
        '"': "quotes have no meaning here",
        "·": "write `*` for a product",
        "×": "write `*` for a product",
        "−": "this is a typographic minus; write `-`",
    }
    if character in hints:
        return hints[character]
    if character.isalpha():
        return f"`{character}` is not allowed in a name; use plain letters, digits and `_` (alpha, omega)"
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return f"unexpected character `{shown}`"


class _Parser:
    """Precedence climbing (Pratt) over the tokens of one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.position = 0
        self.depth = 0
        self.nodes: list[Node] = []

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def expression(self) -> Expression:
        if self.next.kind == "end":
            raise ExpressionError("the expression is empty", 0)
        root = self.parse(0)
        token = self.next
        if token.kind != "end":
            raise ExpressionError(self.surprise(token), token.offset)
        self.number_wanted(root, "the expression")
        return Expression(self.text, tuple(self.nodes))

    def surprise(self, token: _Token) -> str:
        if token.text == ")":
            return "this `)` closes nothing"
        if token.text == ",":
            return "a comma is only allowed between the arguments of a function"
        before = self.tokens[self.position - 1]
        if before.text == ")" or before.kind in ("number", "name"):
            return f"an operator is missing: write `{before.text}*{token.text}` for a product"
        return f"unexpected `{token.text}`"

    def add(self, kind: str, value: float | str, args: tuple[int, ...], offset: int) -> int:
        self.nodes.append(Node(kind, value, args, offset))
        return len(self.nodes) - 1

    def advance(self) -> _Token:
        token = self.next
        self.position += 1
        return token

    def parse(self, least: int) -> int:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(
                f"brackets, powers or signs are nested more than {MAX_DEPTH} deep; split into definitions",
                self.next.offset,
            )
        left = self.prefix()
        while self.next.kind == "operator" and self.next.text in _BINARY:
            power = _BINARY[self.next.text]
            if power[0] < least:
                break
            left = self.binary(self.advance(), left, power[1])
        self.depth -= 1
        return left

    def binary(self, operator: _Token, left: int, least: int) -> int:
        right = self.parse(least)
        kind = operator.text
        if kind in ("and", "or"):
            self.condition_wanted(left, f"`{kind}`")
            self.condition_wanted(right, f"`{kind}`")
        elif kind in _COMPARISONS and (self.compares(left) or self.compares(right)):
            raise ExpressionError(
                "comparisons cannot be chained; write `a < b and b < c` for `a < b < c`", operator.offset
            )
        else:
            self.number_wanted(left, f"`{kind}`")
            self.number_wanted(right, f"`{kind}`")
        return self.add(kind, kind, (left, right), operator.offset)

    def prefix(self) -> int:
        token = self.advance()
        if token.kind == "number":
            return self.add("number", self.number(token), (), token.offset)
        if token.kind == "name":
            if self.next.text == "(":
                return self.call(token)
            return self.name(token)
        if token.text in ("-", "+"):
            operand = self.parse(_MINUS_POWER)
            self.number_wanted(operand, f"`{token.text}`")
            return operand if token.text == "+" else self.add("neg", "-", (operand,), token.offset)
        if token.text == "not":
            operand = self.parse(_NOT_POWER)
            self.condition_wanted(operand, "`not`")
            return self.add("not", "not", (operand,), token.offset)
        if token.text == "(":
            inner = self.parse(0)
            self.close(token)
            return inner
        if token.kind == "end":
            raise ExpressionError("the expression ends too early", token.offset)
        raise ExpressionError(f"a number, a name or `(` is expected before `{token.text}`", token.offset)

    def number(self, token: _Token) -> float:
        value = float(token.text)
        if not math.isfinite(value):
            raise ExpressionError(f"the number {token.text[:40]} is too large", token.offset)
        return value

    def name(self, token: _Token) -> int:
        if token.text in CONSTANTS:
            return self.add("number", CONSTANTS[token.text], (), token.offset)
        if token.text in FUNCTIONS:
            raise ExpressionError(f"`{token.text}` is a function: write {token.text}(...)", token.offset)
        return self.add("name", token.text, (), token.offset)

    def call(self, token: _Token) -> int:
        name = token.text
        if name not in FUNCTIONS:
            raise ExpressionError(unknown_function(name), token.offset)
        opening = self.advance()
        args: list[int] = []
        if self.next.text != ")":
            args.append(self.parse(0))
            while self.next.text == ",":
                self.advance()
                args.append(self.parse(0))
        self.close(opening)
        least, most = FUNCTIONS[name]
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"{least} or more"
            raise ExpressionError(
                f"{name} takes {wanted} argument{'s' if wanted != '1' else ''}, not {len(args)}", token.offset
            )
        for i, arg in enumerate(args):
            if name == "where" and i == 0:
                self.condition_wanted(arg, "where")
            else:
                self.number_wanted(arg, name)
        return self.add("call", name, tuple(args), token.offset)

    def close(self, opening: _Token) -> None:
        token = self.next
        if token.text != ")" or token.kind == "end":
            if token.kind == "end":
                raise ExpressionError("this `(` is never closed", opening.offset)
            raise ExpressionError(self.surprise(token), token.offset)
        self.advance()

    def compares(self, index: int) -> bool:
        return self.nodes[index].kind in _COMPARISONS

    def condition_wanted(self, index: int, by: str) -> None:
        if not self.nodes[index].is_condition:
            raise ExpressionError(f"{by} needs a condition here, such as `x > 0`", self.nodes[index].offset)

    def number_wanted(self, index: int, by: str) -> None:
        if self.nodes[index].is_condition:
            raise ExpressionError(
                f"{by} needs a number, not a condition; write where(condition, a, b)",
                self.nodes[index].offset,
            )


def unknown_function(name: str) -> str:
    """The sentence about a function that does not exist."""
    from difflib import get_close_matches

    if name.lower() in _FOREIGN_FUNCTIONS:
        return f"unknown function `{name}`: write {_FOREIGN_FUNCTIONS[name.lower()]}"
    close = get_close_matches(name.lower(), FUNCTIONS, 1, 0.6)
    if close:
        return f"unknown function `{name}`: did you mean `{close[0]}`?"
    return f"`{name}` is not a function (known: {', '.join(FUNCTIONS)}); for a product write `{name}*(...)`"
