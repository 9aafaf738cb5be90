"""Model files: what they may say, and the sentence for everything else."""

from __future__ import annotations

import math
import pickle
import re

import pytest

from analysis.base.errors import ModelError
from analysis.model import Initial, Model, Parameter

BEAM = """\
name = "Two-well  beam"
description = "A beam between magnets."
[states]
x = "v"
v = "(-c*v - k1*x - k3*x**3 + f + g)/m"
[inputs]
f = "a*cos(2*pi*freq*t)"
g = "measured"
[parameters]
m = { value = 1.0, unit = "kg" }
c = { guess = 0.1, lower = 0, upper = 10, unit = "N s/m" }
k1 = { guess = -1 }
k3 = { guess = 1 }
a = 0.3
freq = 1
[initial]
v = { guess = 0.5, lower = -1 }
x = 0.1
[definitions]
energy = "k1*x**2/2 + root"
root = { solve = "root + root**3 - x", lower = -10, upper = 10 }
[outputs]
strain = "2*x"
x = "x"
power = "energy*v"
[units]
x = "mm"
strain = "um/m"
g = "N"
"""


def test_given_full_model_when_read_then_everything_is_there() -> None:
    model = Model.from_toml(BEAM, "beam.toml")
    assert model.name == "Two-well beam"
    assert model.states == ("x", "v")
    assert model.inputs == ("g",)
    assert model.outputs == ("strain", "x", "power")
    assert model.free == ("c", "k1", "k3")
    assert model.parameters["c"] == Parameter(0.1, 0.0, 10.0, "N s/m", True)
    assert model.parameters["a"] == Parameter(0.3)
    assert model.initial == {"x": Initial(0.1), "v": Initial(0.5, True, -1.0)}
    assert model.values().tolist() == [1.0, 0.1, -1.0, 1.0, 0.3, 1.0]
    assert model.values({"k3": 7}).tolist() == [1.0, 0.1, -1.0, 7.0, 0.3, 1.0]
    assert model.index("k3") == 3
    assert (model.unit("m"), model.unit("strain"), model.unit("v")) == ("kg", "um/m", "")
    assert model.text == BEAM


def test_given_no_outputs_when_read_then_the_states_are_seen() -> None:
    assert Model.from_toml('[states]\nx = "v"\nv = "-x"').outputs == ("x", "v")


def test_given_model_when_written_and_read_then_equal() -> None:
    model = Model.from_toml(BEAM, "beam.toml")
    again = Model.from_toml(model.to_toml(), "other.toml")
    assert again == model
    assert again.to_toml() == model.to_toml()


def test_given_model_when_pickled_then_equal_and_without_the_graph() -> None:
    model = Model.from_toml(BEAM)
    content = pickle.dumps(model)
    assert pickle.loads(content) == model
    assert len(content) < 20_000


def test_given_model_when_values_and_free_change_then_only_they_change() -> None:
    model = Model.from_toml(BEAM)
    other = model.with_values({"c": 20.0, "a": 0.5}).with_free(["a"])
    assert other.parameters["c"] == Parameter(20.0, 0.0, 20.0, "N s/m", False)
    assert other.parameters["a"] == Parameter(0.5, free=True)
    assert other.free == ("a",)
    assert other.equations is model.equations
    assert model.free == ("c", "k1", "k3")
    assert Model.from_toml(other.text) == other
    assert model.with_initial({"v": 2.0}).initial == {"x": Initial(0.1), "v": Initial(2.0)}


def test_given_unknown_or_bad_values_when_set_then_one_sentence() -> None:
    model = Model.from_toml(BEAM)
    with pytest.raises(ModelError, match="has no parameter `K1`: did you mean `k1`"):
        model.with_values({"K1": 1.0})
    with pytest.raises(ModelError, match="not a finite number"):
        model.values({"k1": math.nan})
    with pytest.raises(ModelError, match="has no state"):
        model.with_initial({"c": 1.0})
    with pytest.raises(ModelError, match="has no parameter `nothing`; it has m, c"):
        model.index("nothing")


def test_given_equations_in_code_when_built_then_as_from_a_file() -> None:
    model = Model.from_equations(
        {"x": "v", "v": "-k*x + f"},
        {"k": Parameter(2.0, 0.0, unit="N/m", free=True), "a": {"guess": 1.0}, "b": 3},
        inputs={"f": "a*sin(t) + b"},
        initial={"x": Initial(1.0), "v": {"guess": 0.0}},
        name="spring",
    )
    assert model.free == ("k", "a")
    assert model.parameters["k"].unit == "N/m"
    assert Model.from_toml(model.text) == model


def test_given_definitions_in_any_order_when_read_then_resolved() -> None:
    text = '[states]\nx = "A"\n[definitions]\nA = "B + 1"\nB = "C*2"\nC = "x"'
    assert Model.from_toml(text).states == ("x",)


def test_given_thousands_of_chained_definitions_when_read_then_no_recursion_limit() -> None:
    chain = "\n".join(f'd{i} = "d{i + 1} + x"' for i in range(1500))
    assert Model.from_toml(f'[states]\nx = "d0"\n[definitions]\n{chain}\nd1500 = "x"').states == ("x",)


def replaced(old: str, new: str) -> str:
    assert old in BEAM
    return BEAM.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a model needs a [states] table"),
        ("[states]", "a model needs a [states] table"),
        ("name = 3\n[states]\nx = 'x'", "line 1, column 1: `name` must be a text"),
        ("states = 3", "line 1, column 1: `states` must be a table"),
        (
            "[states]\nx = 'gama*x'\n[parameters]\ngamma = 1",
            "line 2, column 6: unknown name `gama`: did you mean",
        ),
        ("[states]\nx = '1 + e*x'", "line 2, column 10: unknown name `e`; write exp(1)"),
        (replaced("k1*x -", "K1*x -"), "line 5, column 14: unknown name `K1`: did you mean `k1`?"),
        (replaced('"v"', '"v'), "line 4, column "),
        (replaced('x = "v"', "x = v"), "write expressions in quotes"),
        (replaced("k3 = {", "k1 = {"), "line 13, column "),
        (replaced("[outputs]", "[inputs]"), "opened twice"),
        (
            replaced("[outputs]", "[output]"),
            "line 22, column 1: unknown table `output`: did you mean `outputs`?",
        ),
        (
            replaced('name = "Two', 'nmae = "Two'),
            "line 1, column 1: unknown key `nmae`: did you mean `name`?",
        ),
        (
            replaced("upper = 10,", "uper = 10,"),
            "line 11, column 31: unknown key `uper`: did you mean `upper`?",
        ),
        (
            replaced("guess = 0.1, lower = 0", "guess = -0.1, lower = 0"),
            "line 11, column 7: guess = -0.1 is outside",
        ),
        (replaced("upper = 10,", "upper = -10,"), "lower = 0 must be below upper = -10"),
        (
            replaced("value = 1.0", "value = 1.0, guess = 2"),
            "line 10, column 1: `m` has both value and guess",
        ),
        (replaced("value = 1.0, ", ""), "`m` has neither value nor guess"),
        (replaced("a = 0.3", "a = nan"), "line 14, column 1: `a` is not a finite number"),
        (replaced("a = 0.3", "a = inf"), "`a` is not a finite number"),
        (replaced("a = 0.3", f"a = 1{'0' * 400}"), "`a` is not a finite number"),
        (replaced("a = 0.3", "a = true"), "`a` must be a number"),
        (replaced("a = 0.3", 'a = "0.3"'), "`a` must be a number"),
        (replaced("a = 0.3", "a = [1, 2]"), "`a` must be a number"),
        (replaced("a = 0.3", "a = 1979-05-27"), "`a` must be a number"),
        (replaced('unit = "kg"', "unit = 3"), "`unit` must be a text"),
        (replaced("x = 0.1", "y = 0.1"), "line 18, column 1: `y` is not a state"),
        (replaced("x = 0.1", "x = inf"), "`x` is not a finite number"),
        (replaced("a = 0.3", "x = 0.3"), "line 14, column 1: `x` is already in [states]"),
        (replaced("a = 0.3", "sin = 0.3"), "`sin` has a meaning of its own"),
        (replaced("a = 0.3", "t = 0.3"), "`t` has a meaning of its own"),
        (replaced("a = 0.3", "pi = 0.3"), "`pi` has a meaning of its own"),
        (replaced("a = 0.3", '"a b" = 0.3'), "`a b` is not a name"),
        (replaced("a = 0.3", "a-b = 0.3"), "`a-b` is not a name"),
        (replaced('"a*cos(2*pi*freq*t)"', '"a*x"'), "line 7, column 1: the input `f` uses `x`"),
        (replaced('"a*cos(2*pi*freq*t)"', '"energy"'), "the input `f` uses"),
        (replaced('"a*cos(2*pi*freq*t)"', '"f + 1"'), "`f` is defined by itself"),
        (replaced('"k1*x**2/2 + root"', '"power + 1"'), "unknown name `power`"),
        (replaced('"root + root**3 - x"', '"x**3"'), "does not contain it"),
        (replaced('"root + root**3 - x"', '"root + )"'), "line 21, column 26: a number, a name or `(`"),
        (replaced("lower = -10, upper = 10", "lower = 10, upper = -10"), "lower = 10 must be below"),
        (replaced("lower = -10, upper = 10", "lower = -10"), "needs { solve"),
        (replaced("lower = -10, upper = 10", "lower = -10, upper = 'x'"), "`upper` must be a number"),
        (replaced('"v"', "[1]"), "must be an expression in quotes"),
        (replaced('"v"', "true"), "must be an expression in quotes"),
        (replaced('"v"', "{a = 1}"), "must be an expression in quotes"),
        (replaced('"v"', '"v/0"'), "line 4, column 7: this part of the expression has no finite value"),
        (replaced('"v"', '"v*10**400"'), "no finite value"),
        (replaced('"v"', '"v*log(0)"'), "no finite value"),
        (replaced('x = "mm"', "x = 1"), "the unit of `x` must be a text"),
        (replaced('x = "mm"', 'y = "mm"'), "unknown name `y`"),
        (replaced('x = "mm"', 'm = "mm"'), "belongs to its entry in [parameters]"),
        (
            '[states]\nx = "A"\n[definitions]\nA = "B"\nB = "C"\nC = "A"',
            "cyclic definition: A -> B -> C -> A",
        ),
        (
            '[states]\nx = "a"\n[definitions]\n'
            'a = { solve = "a - b", lower = 0, upper = 1 }\nb = { solve = "b - a", lower = 0, upper = 1 }',
            "the unknowns a and b depend on each other",
        ),
        ('[states]\nx = """\nv +\nw"""\n[parameters]\nv = 1', "line 4, column 1: unknown name `w`"),
        ("[states]\nx = '\\'", "unexpected character"),
        ("\ufeff[states]\r\nx = 'y'", "line 2, column 6: unknown name `y`"),
        ("[" * 50_000, "line 1"),
        ("x = " + "[" * 19_000, "nested too deeply"),
        ("x = " + "1" * 10_000, "4300 digits"),
        ("a" * 10_000_000, "too long"),
        ("[states]\nx = '" + "1+" * 15_000 + "1'", "too long"),
        ("\x00\x01", "line 1"),
        ("\n" + "a." * 9000 + "b = 1", "line 2, column 1: A key has too many dots"),
    ],
)
def test_given_bad_model_when_read_then_one_sentence_with_place_and_fix(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        Model.from_toml(text, "beam.toml")
    sentence = str(caught.value)
    assert message in sentence
    assert sentence.startswith("beam.toml")
    assert sentence[-1] in ".?" and "\n" not in sentence
    assert len(sentence) < 400


def test_given_error_in_string_with_escapes_when_read_then_the_value_is_named() -> None:
    with pytest.raises(ModelError, match=re.escape("m, line 2, column 6: unknown name `y`")):
        Model.from_toml('[states]\nx = "\\u0079"', "m")
