"""One parameter of a model's text changed in place."""

import math

import pytest

from analysis import Model, ModelError, Parameter, with_parameter

TEXT = """# my rig
name = "Oscillator"
[states]
x = "v"
v = "-c*v - k*x  # not a comment"
[parameters]
c = 0.1      # damping, read off the decay
k = { guess = 4, lower = 0, unit = "N/m" } # stiffness
""".replace("  # not a comment", "")


def test_given_a_parameter_then_only_its_value_changes_and_comments_stay():
    text = with_parameter(TEXT, "c", Parameter(0.25, 0.0, 3.5, "N s/m", True))
    assert 'c = { guess = 0.25, lower = 0, upper = 3.5, unit = "N s/m" }      # damping, read off' in text
    assert text.replace('{ guess = 0.25, lower = 0, upper = 3.5, unit = "N s/m" }', "0.1") == TEXT
    assert Model.from_toml(text).parameters["c"] == Parameter(0.25, 0.0, 3.5, "N s/m", True)


@pytest.mark.parametrize("value", [1e-9, 0.1, 1 / 3, -2e12, 123456.0, 40000.0])
def test_given_any_number_then_it_reads_back_exactly(value: float):
    text = with_parameter(TEXT, "k", Parameter(value, unit='"odd" unit', free=False))
    assert Model.from_toml(text).parameters["k"] == Parameter(value, -math.inf, math.inf, '"odd" unit')


def test_given_a_table_of_its_own_then_the_model_is_written_anew():
    apart = TEXT.replace(
        'k = { guess = 4, lower = 0, unit = "N/m" } # stiffness\n', "[parameters.k]\nguess = 4\n"
    )
    text = with_parameter(apart, "k", Parameter(5.0, free=True))
    assert Model.from_toml(text).parameters["k"].value == 5.0


def test_given_a_guess_outside_its_bounds_then_refused():
    with pytest.raises(ModelError, match="outside its bounds"):
        with_parameter(TEXT, "k", Parameter(-1.0, 0.0, 10.0, free=True))
