"""Profile likelihood: closed form, an asymmetric interval checked by an independent fit, open intervals."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.optimize import least_squares

from analysis.base.errors import Cancelled, DataError, ModelError
from analysis.base.identification import Identification
from analysis.base.progress import Progress, Step
from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.estimate.profiling import profile_of
from analysis.model import Model
from analysis.simulation.simulate import simulate
from drivers.library import load_model

STRAIGHT = """
name = "Ramp"
[states]
x = "a + b*t"
[parameters]
a = { guess = 1.0 }
b = { guess = 1.0 }
[initial]
x = 0.0
"""
SETTLED = """
name = "Fast rise"
[states]
x = "1"
[parameters]
k = {{ guess = 5.0, lower = 0.1, upper = {upper} }}
c = {{ guess = 0.5 }}
[initial]
x = 0.0
[outputs]
y = "c*(1 - exp(-k*x))"
"""


@pytest.mark.parametrize("method", ["homotopy", "path"])
def test_given_a_linear_problem_then_the_profile_is_the_closed_form_interval(
    method: str, rng: np.random.Generator
) -> None:
    t = np.arange(400) / 40.0
    columns = np.stack([t, 0.5 * t**2])
    x = np.array([2.0, -0.3]) @ columns + 0.2 * rng.normal(size=len(t))
    options = {"denoise": False} if method == "path" else {}
    model = Model.from_toml(STRAIGHT if method == "homotopy" else STRAIGHT.replace("x = 0.0", ""))
    if method == "path":  # the path knows no exact initial value: it is a third unknown
        columns = np.vstack([columns, np.ones_like(t)])
    result = identify(
        model, Record.from_arrays(40.0, {"x": x}, drive_time=0.0), method, profile=("all",), **options
    )
    best, (chi2,), *_ = np.linalg.lstsq(columns.T, x, rcond=None)
    covariance = np.linalg.inv(columns @ columns.T) * chi2 / (len(t) - len(columns))
    for i, name in enumerate(("a", "b")):
        half = 1.959964 * np.sqrt(covariance[i, i])
        tolerance = (0.002 if method == "homotopy" else 0.02) * half
        assert result.parameters[name].lower == pytest.approx(best[i] - half, abs=tolerance)
        assert result.parameters[name].upper == pytest.approx(best[i] + half, abs=tolerance)
    curve = result.curves["profile of a"]
    assert curve.x == sorted(curve.x)
    assert min(curve.y) == 0.0 and curve.y[0] > 3.8 and curve.y[-1] > 3.8
    assert Identification.from_json(result.to_json()) == result


def test_given_little_data_then_the_interval_is_lopsided_and_ends_where_an_independent_fit_says() -> None:
    printed = load_model("van_der_pol_duffing_double_hump")
    model = Model.from_toml(
        re.sub(r"lower = [-.\d]+, upper = [-.\d]+", "lower = -20, upper = 20", printed.text)
    )
    times = np.arange(251) / 100.0
    clean = simulate(model, times, rtol=1e-12, atol=1e-14)["x"]
    noise = np.random.default_rng(0).normal(size=len(clean))
    x = clean + 0.2 * np.sqrt(np.mean(clean**2)) * noise
    result = identify(
        model, Record.from_arrays(100.0, {"x": x}, drive_time=0.0), "homotopy", profile=("alpha",)
    )
    alpha = result.parameters["alpha"]
    below, above = alpha.value - alpha.lower, alpha.upper - alpha.value
    assert above / below > 1.05
    free = np.sum((simulate(model, times, values=result.values(), rtol=1e-9)["x"] - x) ** 2)
    for end in (alpha.lower, alpha.upper):

        def residual(p: np.ndarray, end: float = end) -> np.ndarray:
            values = {"alpha": end, "beta": p[0], "mu": p[1]}
            return simulate(model, times, values=values, rtol=1e-9)["x"] - x

        start = [result.values()["beta"], result.values()["mu"]]
        held = least_squares(residual, start, xtol=1e-12, ftol=1e-12)
        rise = (2 * held.cost / free - 1) * result.residual.dof
        assert rise == pytest.approx(1.959964**2, rel=0.005)


@pytest.mark.parametrize(("upper", "word"), [("1e9", "no upper limit"), ("20.0", "within its bound 20")])
def test_given_a_rise_faster_than_the_samples_then_only_a_lower_limit_is_claimed(
    upper: str, word: str, rng: np.random.Generator
) -> None:
    t = np.arange(60.0)
    y = np.where(t > 0, 1.0, 0.0) + 0.01 * rng.normal(size=60)
    record = Record.from_arrays(1.0, {"y": y}, drive_time=0.0)
    result = identify(Model.from_toml(SETTLED.format(upper=upper)), record, "homotopy", profile=("k",))
    assert 2.0 < result.parameters["k"].lower < 6.0  # exp(-k) is about the mean's error
    (sentence,) = [s for s in result.undetermined if s.startswith("k is at least")]
    assert word in sentence
    assert not result.parameters["k"].upper < 20.0


def test_given_a_single_unknown_then_its_profile_is_the_closed_form_interval(
    rng: np.random.Generator,
) -> None:
    t = np.arange(400) / 40.0
    x = 2.0 * t + 0.2 * rng.normal(size=len(t))
    model = Model.from_toml(STRAIGHT).with_values({"b": 0.0}).with_free(["a"])
    a = identify(
        model, Record.from_arrays(40.0, {"x": x}, drive_time=0.0), "homotopy", profile=("a",)
    ).parameters["a"]
    best = (t @ x) / (t @ t)
    half = 1.959964 * np.sqrt(np.sum((x - best * t) ** 2) / (len(t) - 1) / (t @ t))
    assert (a.lower, a.upper) == pytest.approx((best - half, best + half), rel=1e-4)


def test_given_a_chaotic_record_then_the_whole_path_follows_the_profiled_parameter(
    rng: np.random.Generator,
) -> None:
    model = load_model("van_der_pol_duffing_double_well").with_values({"g": 0.3, "w": 1.2})
    times = np.arange(4000) / 20.0
    x = simulate(model, times, rtol=1e-12, atol=1e-14)["x"]
    record = Record.from_arrays(20.0, {"x": x + 0.01 * rng.normal(size=len(x))}, drive_time=0.0)
    result = identify(model, record, "homotopy", profile=("mu",))
    assert any("chaotic" in warning for warning in result.warnings)
    mu = result.parameters["mu"]
    assert (mu.upper - mu.lower) / (2 * 1.96 * mu.stderr) == pytest.approx(1.0, abs=0.05)


def test_given_a_wrong_name_or_no_noise_then_one_sentence_says_so() -> None:
    model = load_model("van_der_pol_duffing_single_well")
    times = np.arange(2001) / 100.0
    clean = simulate(model, times, rtol=1e-12, atol=1e-14)["x"]
    record = Record.from_arrays(100.0, {"x": clean}, drive_time=0.0)
    with pytest.raises(ModelError, match="no free parameter `gamma`"):
        identify(model, record, "homotopy", profile=("gamma",))
    result = identify(model, record, "homotopy", profile=("mu",))
    assert any("no noise" in warning for warning in result.warnings)
    assert not result.curves


def _ramp(rng: np.random.Generator) -> tuple[Model, Record]:
    t = np.arange(400) / 40.0
    x = 2.0 * t - 0.15 * t**2 + 0.2 * rng.normal(size=len(t))
    return Model.from_toml(STRAIGHT), Record.from_arrays(40.0, {"x": x}, drive_time=0.0)


def test_given_a_fit_of_before_then_its_profile_is_that_of_the_fit_and_comes_point_by_point(
    rng: np.random.Generator,
) -> None:
    model, record = _ramp(rng)
    before = Identification.from_json(identify(model, record, "homotopy").to_json())
    steps: list[Step] = []
    found = profile_of(before, record, "b", Progress(steps.append))
    at_once = identify(model, record, "homotopy", profile=("b",)).parameters["b"]
    assert (found.parameters["b"].lower, found.parameters["b"].upper) == pytest.approx(
        (at_once.lower, at_once.upper), rel=1e-3
    )
    assert found.parameters["a"] == before.parameters["a"] and found.verdict == before.verdict
    points = {step.values["value"] for step in steps if "rise" in step.values}
    assert points == set(found.curves["profile of b"].x) - {at_once.value, before.parameters["b"].value}
    fractions = [step.fraction for step in steps if "rise" in step.values]
    assert fractions[-1] == pytest.approx(1.0, abs=0.01) and min(fractions) >= 0.8


def test_given_a_profile_when_cancelled_then_it_ends_at_once(rng: np.random.Generator) -> None:
    model, record = _ramp(rng)
    before = identify(model, record, "homotopy")
    points: list[Step] = []
    watch = Progress(
        lambda step: points.append(step) if "rise" in step.values else None, lambda: len(points) > 1
    )
    with pytest.raises(Cancelled):
        profile_of(before, record, "b", watch)
    assert len(points) == 2


def test_given_a_model_that_is_close_then_its_profile_is_as_wide_as_its_error_bar(
    rng: np.random.Generator,
) -> None:
    """The profile counted the noise alone, and took the widening of the error bars back."""
    t = np.arange(400) / 40.0
    left = 0.15 * np.sin(1.5 * t) + 0.02 * rng.normal(size=len(t))  # what the straight line misses
    record = Record.from_arrays(40.0, {"x": 2.0 * t - 0.15 * t**2 + left}, drive_time=0.0)
    before = identify(Model.from_toml(STRAIGHT), record, "homotopy")
    b = before.parameters["b"]
    assert b.stderr > 1.5 * b.stderr_ideal
    after = profile_of(before, record, "b").parameters["b"]
    assert after.upper - after.lower == pytest.approx(2 * 1.96 * b.stderr, rel=0.02)
    assert after.stderr_ideal == b.stderr_ideal


def test_given_a_record_of_another_motion_then_no_profile_is_claimed_for_the_fit(
    rng: np.random.Generator,
) -> None:
    model, record = _ramp(rng)
    before = identify(model, record, "homotopy")
    other = Record.from_arrays(40.0, {"x": 1.1 * record["x"]}, drive_time=0.0)
    with pytest.raises(DataError, match="came to a = "):
        profile_of(before, other, "b")
    with pytest.raises(ModelError, match="own parameters"):
        profile_of(before, record, "x(0)")
