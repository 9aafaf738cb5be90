"""The expression language: precedence, what is refused, and with which words."""

from __future__ import annotations

import time

import pytest

from analysis.model.grammar import MAX_CHARACTERS, Expression, ExpressionError, parse


def bracketed(expression: Expression) -> str:
    """The expression with every bracket written, so that precedence shows."""
    done: list[str] = []
    for node in expression.nodes:
        args = [done[i] for i in node.args]
        if node.kind == "number":
            done.append(f"{node.value:g}")
        elif node.kind == "name":
            done.append(str(node.value))
        elif node.kind == "call":
            done.append(f"{node.value}({', '.join(args)})")
        elif len(args) == 1:
            done.append(f"({node.value} {args[0]})")
        else:
            done.append(f"({args[0]} {node.kind} {args[1]})")
    return done[-1]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1 - 2 - 3", "((1 - 2) - 3)"),
        ("a/b/c*d", "(((a / b) / c) * d)"),
        ("a + b*c", "(a + (b * c))"),
        ("-x**2", "(- (x ** 2))"),
        ("-x*y", "((- x) * y)"),
        ("2**-x", "(2 ** (- x))"),
        ("2**-x**2", "(2 ** (- (x ** 2)))"),
        ("a^b^c", "(a ** (b ** c))"),
        ("a**b*c", "((a ** b) * c)"),
        ("--x", "(- (- x))"),
        ("+x - -y", "(x - (- y))"),
        ("(a + b)*c", "((a + b) * c)"),
        ("1e-3*x + .5 + 2. + 3.5E+2", "((((0.001 * x) + 0.5) + 2) + 350)"),
        ("min(a, b, c)", "min(a, b, c)"),
        (
            "where(a < b and not c > 1 or x == y, 1, 2)",
            "where((((a < b) and (not (c > 1))) or (x == y)), 1, 2)",
        ),
        ("where(a + 1 <= 2*b, a, b)", "where(((a + 1) <= (2 * b)), a, b)"),
        ("\n a +\n b ", "(a + b)"),
        ("lambda_*None_1", "(lambda_ * None_1)"),
    ],
)
def test_given_expression_when_parsed_then_binds_like_python(text: str, meaning: str) -> None:
    assert bracketed(parse(text)) == meaning


@pytest.mark.parametrize(
    ("text", "offset", "words"),
    [
        ("", 0, "empty"),
        ("   ", 0, "empty"),
        ("x +", 3, "ends too early"),
        ("* x", 0, "expected before `*`"),
        ("2x", 1, "write `2*x`"),
        ("(a)(b)", 3, "operator is missing"),
        ("x y", 2, "write `x*y`"),
        ("((x)", 0, "never closed"),
        ("x)", 1, "closes nothing"),
        ("a, b", 1, "comma"),
        ("(a, b)", 2, "comma"),
        ("sin", 0, "write sin(...)"),
        ("sin x", 0, "write sin(...)"),
        ("sin(a, b)", 0, "takes 1 argument, not 2"),
        ("sin()", 0, "takes 1 argument, not 0"),
        ("atan2(x)", 0, "takes 2 arguments, not 1"),
        ("min(x)", 0, "2 or more"),
        ("where(x > 0, 1)", 0, "takes 3 arguments, not 2"),
        ("where(x, 1, 2)", 6, "needs a condition"),
        ("where(x > 0, x > 1, 2)", 15, "needs a number"),
        ("x > 0", 2, "needs a number"),
        ("1 + (x > 0)", 7, "needs a number"),
        ("where(1 < x < 2, 1, 0)", 12, "cannot be chained"),
        ("where(x and y > 0, 1, 0)", 6, "needs a condition"),
        ("x = 1", 2, "`==`"),
        ("ln(x)", 0, "write log(x)"),
        ("arctan(x)", 0, "write atan(x)"),
        ("tnah(x)", 0, "did you mean `tanh`?"),
        ("eval(x)", 0, "is not a function"),
        ("__import__('os').system('x')", 11, "quotes"),
        ("__import__(os)", 0, "is not a function"),
        ("x.__class__", 1, "dot"),
        ("x[0]", 1, "square brackets"),
        ("lambda: 0", 6, "unexpected character"),
        ("x if y else z", 2, "operator is missing"),
        ("1e999", 0, "too large"),
        ("α*x", 0, "plain letters"),
        ("a − b", 2, "typographic minus"),
        ("x; y", 1, "unexpected character"),
        ("x\x00", 1, "U+0000"),
        ("|x|", 0, "abs(x)"),
    ],
)
def test_given_bad_expression_when_parsed_then_place_and_fix_are_named(
    text: str, offset: int, words: str
) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert words in caught.value.message
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "x" + ")" * 5000,
        "-" * 10_000 + "x",
        "sin(" * 4000 + "x",
        "2**" * 6000 + "x",
        "x" * (MAX_CHARACTERS + 1),
        "x+" * 10_000_000,
        "not " * 4000 + "x",
    ],
    ids=["brackets", "signs", "calls", "powers", "long name", "20 MB", "nots"],
)
def test_given_monster_when_parsed_then_refused_at_once(text: str) -> None:
    start = time.thread_time()
    with pytest.raises(ExpressionError):
        parse(text)
    assert time.thread_time() - start < 2


def test_given_long_sum_when_parsed_then_no_depth_limit_applies() -> None:
    assert len(parse(" + ".join(["x"] * 4000)).nodes) == 7999
