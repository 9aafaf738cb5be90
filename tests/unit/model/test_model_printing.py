"""The model as text, as a model file and as mathematics."""

from __future__ import annotations

import pytest

from analysis.model import Model
from analysis.model.grammar import parse
from analysis.model.latex import formula, symbol
from drivers.library import load_model, model_files


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x", "x"),
        ("alpha", r"\alpha"),
        ("thetaA", r"\theta_{A}"),
        ("k1", "k_{1}"),
        ("X0", "X_{0}"),
        ("aB", "a_{B}"),
        ("omega_n", r"\omega_{n}"),
        ("k_lin", r"k_{\mathrm{lin}}"),
        ("freq", r"\mathrm{freq}"),
        ("C1_rho", r"C_{1,\rho}"),
        ("d_H2", r"d_{\mathrm{H2}}"),
        ("Omega", r"\Omega"),
        ("eta", r"\eta"),
        ("beta", r"\beta"),
        ("_", r"\_"),
    ],
)
def test_given_name_when_typeset_then_symbol_with_index(name: str, expected: str) -> None:
    assert symbol(name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-k*x", r"-k \, x"),
        ("2*pi*f*t", r"2 \, \pi \, f \, t"),
        ("x*3", r"x \cdot 3"),
        ("a - (b + c)", r"a - \left(b + c\right)"),
        ("a - (b - c)", r"a - \left(b - c\right)"),
        ("a - -b", r"a - \left(-b\right)"),
        ("(a + b)*c", r"\left(a + b\right) \, c"),
        ("(a + b)/c", r"\dfrac{a + b}{c}"),
        ("x + a/b", r"x + \frac{a}{b}"),
        ("(a/b)**2", r"{\left(\frac{a}{b}\right)}^{2}"),
        ("x**2**y", r"{x}^{{2}^{y}}"),
        ("(x**2)**y", r"{\left({x}^{2}\right)}^{y}"),
        ("(-x)**2", r"{\left(-x\right)}^{2}"),
        ("-x**2", r"-{x}^{2}"),
        ("sin(x)**2", r"\sin^{2}\left(x\right)"),
        ("sqrt(abs(x))", r"\sqrt{\left|x\right|}"),
        ("log(x)", r"\ln\left(x\right)"),
        ("1e-3*x", r"0.001 \, x"),
        ("1e-7*x", r"10^{-7} \, x"),
        ("2.5e20*x", r"2.5 \times 10^{20} \, x"),
        ("where(x > 0, a, b)", r"\left\{a\ \mathrm{if}\ x > 0,\ b\ \mathrm{otherwise}\right\}"),
        ("atan2(y, x)", r"\mathrm{atan2}\left(y, x\right)"),
    ],
)
def test_given_expression_when_typeset_then_as_written(text: str, expected: str) -> None:
    assert formula(parse(text)) == expected


@pytest.mark.parametrize("name", model_files())
def test_given_library_model_when_printed_then_mathtext_draws_it_and_the_file_reads_back(name: str) -> None:
    from matplotlib.mathtext import MathTextParser

    model = load_model(name)
    parser = MathTextParser("path")
    for line in model.latex_equations():
        parser.parse(f"${line}$")
    assert model.to_latex().count("\n") == len(model.latex_equations()) - 1
    for state in model.states:
        assert f"d{state}/dt " in model.to_text()
    assert Model.from_toml(model.to_toml()) == model


def test_given_model_when_printed_as_text_then_aligned_and_complete() -> None:
    model = Model.from_equations(
        {"x": "v", "v": "-k*x   + F + u - z"},
        {"k": 1.0},
        inputs={"F": "sin(t)", "u": "measured"},
        definitions={"z": {"solve": "z**3 - x", "lower": -2, "upper": 2}},
        outputs={"y": "2*x"},
    )
    assert model.to_text().splitlines() == [
        "dx/dt = v",
        "dv/dt = -k*x + F + u - z",
        "F     = sin(t)",
        "u     = measured",
        "z     = the root of z**3 - x = 0 in -2 <= z <= 2",
        "y     = 2*x",
    ]
