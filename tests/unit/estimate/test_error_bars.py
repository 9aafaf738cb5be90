"""How error bars and verdict are chosen from the evidence: each line from both sides, numbers by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import chi2, f, norm
from scipy.stats import t as student

from analysis import Model, Record, identify
from analysis.estimate.finish import errors as errors_module
from analysis.estimate.finish import honest
from analysis.estimate.finish.assemble import _residual
from analysis.estimate.finish.autoregression import Autoregression
from analysis.estimate.finish.errors import (
    ErrorBars,
    _by_record,
    _course,
    _cuts,
    _is_white,
    _quantile_freedom,
    _random_effects,
    error_bars,
    noiseless_bars,
)
from analysis.estimate.finish.evidence import Evidence, Figures, _excerpts, _white_part, lacking
from analysis.estimate.finish.honest import (
    Errors,
    _chance,
    _exceeded,
    _weights,
    agreement,
    noise_processes,
    shift_test,
    spread_between,
)
from analysis.estimate.finish.judge import (
    _at_bounds,
    _none_is_known,
    _undetermined,
    _unusable,
    _verdict,
    absurd,
)
from analysis.estimate.finish.linearised import Regression
from analysis.estimate.finish.rivals import _inflation, no_choice
from analysis.estimate.finish.score import Missing, Scores
from analysis.estimate.finish.sensor_noise import SensorNoise, sensor_noise

WHITE = Autoregression(np.zeros(0), 1.0)


class With(SimpleNamespace):
    """Any object with these attributes, and with others after ``|``."""

    def __or__(self, changed: dict[str, Any]) -> With:
        return With(**{**vars(self), **changed})


def about(**given: Any) -> Any:
    return With(**given)


def unknown(name: str, kind: str = "parameter", record: int = -1, index: int = 0, **given: Any) -> Any:
    return about(name=name, kind=kind, record=record, index=index, lower=-np.inf, upper=np.inf) | given


def regressions(
    rng: np.random.Generator, shifts: list[float], noise: float = 1.0, count: int = 100
) -> list[Regression]:
    """One unknown seen as it is; its value differs by ``shifts`` from stretch to stretch."""
    return [
        Regression((s + noise * rng.standard_normal(count))[None], np.ones((1, count, 1)), record)
        for record, s in enumerate(shifts)
    ]


@pytest.mark.parametrize(
    ("ratio", "order", "white"),
    [(1.0, 0, True), (1.41, 0, True), (1.44, 0, False), (0.5, 0, True), (1.0, 1, False)],
)
def test_given_residuals_then_they_count_as_the_noise_assumed_within_three_errors(
    ratio: float, order: int, white: bool
) -> None:
    """With 100 degrees of freedom the standard error of chi2/dof is sqrt(2/100)."""
    evidence = about(processes=[Autoregression(np.zeros(order), 1.0)])
    assert _is_white(about(chi2=100 * ratio, dof=100), cast(Any, evidence)) == white


def test_given_few_degrees_of_freedom_then_the_quantiles_are_students_unless_the_noise_is_given() -> None:
    def fitted(dof: int, **noise: float) -> Any:
        return about(
            dof=dof,
            experiment=about(noise_known=set(noise) == {"x", "y"}, model=about(outputs=("x", "y"))),
        )

    assert _quantile_freedom(fitted(99)) == 99
    assert _quantile_freedom(fitted(99, x=0.1)) == 99
    assert _quantile_freedom(fitted(99, x=0.1, y=0.1)) == np.inf
    assert _quantile_freedom(fitted(100)) == np.inf
    assert _quantile_freedom(fitted(-3)) == 1
    assert Errors(np.eye(1), 5.0).quantile == pytest.approx(student.ppf(0.975, 5))


def test_given_records_then_they_are_cut_into_eight_parts_and_short_ones_into_four() -> None:
    def fitted(*lengths: int) -> Any:
        return about(pieces=[about(times=np.zeros(n)) for n in lengths])

    assert _cuts(fitted(399)) == 4
    assert _cuts(fitted(400)) == 8
    assert _cuts(fitted(300, 300)) == 4
    assert _cuts(fitted(*[300] * 3)) == 3
    assert _cuts(fitted(*[300] * 20)) == 1


def test_given_a_course_of_residuals_then_the_parts_keep_their_order_and_their_record() -> None:
    rng = np.random.default_rng(1)
    whole = regressions(rng, [0.0, 0.0, 0.0], count=90)
    parts = _course(whole, 8)
    assert [len(p) for p in parts] == [1] * 9
    assert [p[0].errors.shape[1] for p in parts] == [30] * 9
    np.testing.assert_array_equal(
        np.hstack([p[0].errors for p in parts]), np.hstack([r.errors for r in whole])
    )
    assert [p[0].record for p in parts] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [[r.record for r in part] for part in _by_record([*whole, whole[1]])] == [[0], [1, 1], [2]]


def test_given_records_fitted_alone_then_mean_and_error_are_those_of_random_effects() -> None:
    means, variances = np.array([1.0, 2.0, 4.0]), np.array([0.04, 0.09, 0.25])
    joint = np.array([[0.01, 0.005, 0.0], [0.005, 0.04, 0.002], [0.0, 0.002, 0.09]])
    unknowns = [unknown("c"), unknown("k"), unknown("offset[1]", record=0)]
    fitted = about(estimate=np.array([1.5, 7.0, 9.0]), unknowns=unknowns)
    found = {
        "c": list(zip(means, variances, strict=True)),
        "k": [(6.9, 0.1), (7.0, 0.1), (7.1, 0.1)],  # they agree better than their errors: nothing between
        "offset[1]": [(0.0, 1.0)] * 3,
    }
    estimate, errors = _random_effects(fitted, found, Errors(joint), 3)
    between = np.var(means, ddof=1) - variances.mean()
    weights = 1 / (variances + between)
    assert estimate == pytest.approx([np.sum(weights * means) / np.sum(weights), 7.0, 9.0])
    assert errors.freedom == 2
    assert np.diag(errors.covariance) == pytest.approx([np.var(means, ddof=1), 0.04, 0.09])
    correlation = errors.covariance[0, 1] / np.sqrt(errors.covariance[0, 0] * errors.covariance[1, 1])
    assert correlation == pytest.approx(0.005 / np.sqrt(0.01 * 0.04))
    short = {"c": found["c"][:2], "k": [(6.0, np.inf), (7.0, 0.1), (8.0, 0.1)]}
    kept, same = _random_effects(fitted, short, Errors(joint), 3)
    assert kept == pytest.approx(fitted.estimate)  # one record could not tell
    np.testing.assert_array_equal(same.covariance, joint)


def test_given_a_record_without_noise_then_the_errors_are_those_of_a_noise_that_is_assumed() -> None:
    run = about(outputs=np.array([[3.0, -3.0, 3.0, -3.0], [1.0, -1.0, 1.0, -1.0]]))
    pieces = [about(run=run, first=0, stop=4)]
    information = np.diag([4.0, 25.0])
    fitted = about(
        sigma=np.array([[1e-6, 1e-6]]), pieces=pieces, information=information, estimate=np.array([1.0, 2.0])
    )
    bars = noiseless_bars(fitted)
    assert bars.kind == "rounding"
    assert bars.errors.covariance == pytest.approx(np.linalg.inv(information) * (1e-4 * 3.0 / 1e-6) ** 2)
    loud = noiseless_bars(fitted | {"sigma": np.array([[1.0, 1.0]])})  # never below the noise assumed
    assert loud.errors.covariance == pytest.approx(np.linalg.inv(information))


def bars_of(
    monkeypatch: pytest.MonkeyPatch, shifts: list[float], records: int = 1, **evidence: Any
) -> ErrorBars:
    """The bars of one unknown seen in eight parts of 100 samples, with noise of unit size."""
    rng = np.random.default_rng(2)
    between = regressions(rng, shifts)
    mean = np.mean([r.errors.mean() for r in between])
    between = [Regression(r.errors - mean, r.jacobian, r.record) for r in between]
    whole = [Regression(np.hstack([r.errors for r in between]), np.ones((1, 800, 1)))]
    errors = np.hstack([r.errors for r in between])
    fitted = about(
        estimate=np.array([3.0]), information=np.array([[800.0]]), input_covariance=np.zeros((1, 1)),
        dof=799, chi2=float(np.sum(errors**2)), pieces=[about(states=np.zeros((0, 1)), times=np.zeros(800))],
        experiment=about(runs=[None] * records, noise_known=False, model=about(outputs=("x",))),
    )  # fmt: skip
    monkeypatch.setattr(errors_module, "_parts", lambda *_: (between, np.array([3.0 + mean])))
    given = {
        "moves": [],
        "lacking": [],
        "missing": [],
        "processes": noise_processes(whole, 1),
        "regressions": whole,
    }
    return error_bars(fitted, cast(Any, about(**{**given, **evidence})), cast(Any, None))


def test_given_parts_that_agree_then_the_errors_are_ideal(monkeypatch: pytest.MonkeyPatch) -> None:
    bars = bars_of(monkeypatch, [0.0] * 8)
    assert bars.kind == "ideal" and bars.parts == 8
    assert bars.errors.covariance[0, 0] == pytest.approx(1 / 800)
    assert bars.errors.freedom == np.inf
    assert set(bars.tests) == {"parts", "course", "shift"}
    assert bars.against() == []
    assert "8 parts agree" in bars.supporting()[0]
    late = bars_of(monkeypatch, [0.0] * 8, moves=[about(shift=(0.5,))])
    assert late.errors.covariance[0, 0] == pytest.approx(1 / 800 + 0.25)


def test_given_parts_that_differ_then_the_error_is_their_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    shifts = [-0.9, 0.8, -0.3, 0.5, 0.2, -0.7, 0.9, -0.5]
    bars = bars_of(monkeypatch, shifts)
    assert bars.kind == "parts"
    assert bars.errors.freedom == 7
    assert bars.errors.stderr[0] == pytest.approx(np.std(shifts, ddof=1), rel=0.15)
    wanting = bars_of(monkeypatch, [0.0] * 8, lacking=[None])  # a term is missing: the parts tell the error
    assert wanting.kind == "parts"


def test_given_many_records_that_differ_then_they_are_not_fitted_one_by_one() -> None:
    experiment = about(runs=[None] * 21)
    assert (
        errors_module._records_alone(about(experiment=experiment), Errors(np.eye(1)), cast(Any, None)) is None
    )


def test_given_probabilities_then_a_part_speaks_against_from_one_in_a_thousand_on() -> None:
    tests = {"parts": honest.Test(1.0, 1.0, 0.0011), "shift": honest.Test(1.0, 1.0, 0.0009)}
    bars = ErrorBars(np.zeros(1), Errors(np.eye(1)), "ideal", tests, 8)
    assert bars.against() == ["The parameters move when the record is fitted in parts (p = 0.0009)."]
    assert bars.supporting() == ["8 parts agree on the parameters (p = 0.0009)."]
    assert bars.figures()["agreement"] == {"parts": 0.0011, "shift": 0.0009}


def test_given_two_unknowns_in_parts_then_variance_and_correlation_are_those_between_parts() -> None:
    rng = np.random.default_rng(3)
    parts = []
    for _ in range(6):
        own = rng.standard_normal() * np.array([1.0, -0.8]) + 0.1 * rng.standard_normal(2)
        parts.append(Regression(np.repeat(own, 50)[None], np.kron(np.eye(2), np.ones((50, 1)))[None]))
    noise = Autoregression(np.zeros(0), 0.04)
    found = spread_between(parts, [noise])
    values = np.array([[p.errors[0, 0], p.errors[0, 50]] for p in parts])
    spread = np.cov(values.T)
    assert np.diag(found.covariance) == pytest.approx(np.diag(spread), rel=1e-9)
    mixed = spread / 6 + np.eye(2) * 0.04 / 300
    correlation = found.covariance[0, 1] / np.sqrt(np.prod(np.diag(found.covariance)))
    assert correlation == pytest.approx(mixed[0, 1] / np.sqrt(mixed[0, 0] * mixed[1, 1]), rel=1e-9)
    loud = spread_between(parts, [Autoregression(np.zeros(0), 1e4)])  # a spread below that of the noise
    assert np.diag(loud.covariance) == pytest.approx(6 * 1e4 / 300 * np.ones(2))


def test_given_noise_of_few_samples_then_chance_is_that_of_f() -> None:
    assert _chance(9.0, 3.0, np.inf) == pytest.approx(chi2.sf(9.0, 3))
    assert _chance(9.0, 3.0, 1000.0) == pytest.approx(chi2.sf(9.0, 3))
    assert _chance(9.0, 3.0, 999.0) == pytest.approx(f.sf(3.0, 3, 999))
    assert _chance(9.0, 3.0, 10.0) == pytest.approx(f.sf(3.0, 3, 10))
    assert _chance(9.0, 3.0, -5.0) == pytest.approx(f.sf(3.0, 3, 1))
    fine, coarse = np.eye(2), 2.0 * np.eye(2)
    assert shift_test(np.array([3.0, 0.0]), coarse, fine, 10.0).probability == pytest.approx(f.sf(4.5, 2, 10))
    unknown_size = shift_test(np.array([3.0, 1e9]), np.diag([2.0, 1.0]), np.diag([1.0, np.inf]))
    assert unknown_size.probability == pytest.approx(chi2.sf(9.0, 1))
    assert shift_test(np.ones(1), np.eye(1), np.zeros((1, 1))).probability == 1.0
    assert shift_test(np.ones(1), np.eye(1), np.eye(1)).probability == 1.0


def test_given_weighted_squares_then_the_chance_of_their_sum_is_counted() -> None:
    rng = np.random.default_rng(4)
    weights = np.array([3.0, 1.0, 0.5, 0.2])
    drawn = rng.standard_normal((200_000, 4)) ** 2 @ weights
    for level in (0.5, 0.05, 0.005):
        assert _exceeded(float(np.quantile(drawn, 1 - level)), weights, np.inf) == pytest.approx(
            level, rel=0.1
        )
    assert _exceeded(7.0, np.ones(5), np.inf) == pytest.approx(chi2.sf(7.0, 5))
    assert _exceeded(1.0, np.zeros(0), np.inf) == 1.0
    assert sorted(_weights(np.array([[np.diag([2.0, 0.0])]]), np.diag([3.0, 1.0]))) == pytest.approx([6.0])
    rng = np.random.default_rng(5)
    parts = [[r] for r in regressions(rng, [0.0] * 4)]
    few, many = agreement(parts, [WHITE], 8.0), agreement(parts, [WHITE], 1e9)
    assert many.freedom == 3 and few.statistic == many.statistic
    scores = np.array([p[0].score[0] for p in parts])
    statistic = np.sum((scores - scores.mean()) ** 2) / 400
    assert many.statistic == pytest.approx(statistic)
    assert many.probability == pytest.approx(chi2.sf(4 * statistic, 3))
    assert few.probability == pytest.approx(f.sf(4 * statistic / 3, 3, 8))


def evidence_of(**changed: Any) -> Any:
    given = {
        "noiseless": False, "explained": 0.9, "missed": 0.1, "left": {"x": 0.1},
        "against": list, "supporting": lambda: ["good"], "notes": lambda: ["note"],
    }  # fmt: skip
    return about(**{**given, **changed})


BARS = about(against=list, supporting=lambda: ["parts agree"])


@pytest.mark.parametrize(
    ("changed", "unusable", "units", "verdict"),
    [
        ({}, [], [], "fits"),
        ({}, ["no"], [], "cannot tell"),
        ({}, [], ["mm"], "close"),
        ({"against": lambda: ["coloured"]}, [], [], "close"),
        ({"against": lambda: ["coloured"], "missed": 0.169}, [], [], "close"),
        ({"against": lambda: ["coloured"], "missed": 0.171}, [], [], "misses"),
        ({"explained": 0.049}, [], [], "cannot tell"),
        ({"explained": 0.051}, [], [], "fits"),
        ({"explained": 0.049, "against": lambda: ["coloured"]}, [], [], "misses"),
        ({"noiseless": True}, [], [], "fits"),
        ({"noiseless": True}, [], ["mm"], "close"),
    ],
)
def test_given_evidence_then_the_verdict_follows_from_it(
    changed: dict[str, Any], unusable: list[str], units: list[str], verdict: str
) -> None:
    assert _verdict(evidence_of(**changed), BARS, unusable, units, "")[0] == verdict


def test_given_a_motion_that_the_model_leaves_then_it_misses_unless_nothing_can_be_said() -> None:
    words = "run on, it dies out"
    assert _verdict(evidence_of(), BARS, [], [], words) == ("misses", [words])
    assert _verdict(evidence_of(), BARS, ["undetermined"], [], words)[0] == "cannot tell"


def model_of(*guesses: float) -> Any:
    parameters = {f"p{i}": about(value=g) for i, g in enumerate(guesses)}
    return about(parameters=parameters, equations=about(functions={}))


@pytest.mark.parametrize(
    ("kind", "error", "found"), [("parameter", 3e6, [1]), ("parameter", 1e6, []), ("offset", 3e6, [])]
)
def test_given_an_error_beyond_measure_then_a_parameter_is_undetermined(
    kind: str, error: float, found: list[int]
) -> None:
    """In sizes of 2; a sensor's offset may be as unknown as it likes."""
    fitted = about(
        estimate=np.array([1.0, 2.0]),
        unknowns=[unknown("a", index=0), unknown("b", index=1, kind=kind)],
        names=["a", "b"],
        information=np.diag([1.0, error**-2]),
        experiment=about(model=model_of(1.0, 2.0)),
    )
    assert _undetermined(fitted) == found


def test_given_numbers_that_nobody_can_use_then_it_is_said_why() -> None:
    fitted = about(
        estimate=np.array([1.0, 2.0]),
        unknowns=[unknown("a", index=0), unknown("b", index=1)],
        names=["a", "b"],
        information=np.diag([121.0, 26.0]),
        dof=5,
        engine="path",
        start=about(rivals=()),
        experiment=about(model=model_of(1.0, 2.0)),
    )
    assert _unusable(fitted, True) == []
    assert "did not end" in _unusable(fitted, False)[0]
    # standard errors 1.1 and 2.1, both beyond the values
    worse = fitted | {"information": np.diag([1 / 1.21, 1 / 4.41])}
    assert _none_is_known(worse)
    assert "No parameter is known" in _unusable(worse, True)[0]
    assert not _none_is_known(fitted | {"information": np.diag([1 / 1.21, 1 / 3.61])})
    together = fitted | {"information": np.diag([1.21, 0.26])}  # chi-square 2.25 of two numbers
    assert "all parameters zero" in _unusable(together, True)[0]
    assert "no more samples" in _unusable(fitted | {"dof": 0}, True)[0]
    assert _unusable(fitted | {"dof": 1}, True) == []
    assert "not finite" in _unusable(fitted | {"estimate": np.array([np.nan, 1.0])}, True)[0]
    assert "do not determine b" in _unusable(fitted | {"information": np.diag([2.0, 0.0])}, True)[0]


@pytest.mark.parametrize(
    ("value", "guess", "told"), [(0.9e6, 1.0, False), (-1.1e6, 1.0, True), (2e6, 0.0, False)]
)
def test_given_a_value_then_a_million_times_its_guess_is_no_estimate(
    value: float, guess: float, told: bool
) -> None:
    fitted = about(
        unknowns=[unknown("p0"), unknown("offset", kind="offset")],
        estimate=np.array([value, 1e9]),
        experiment=about(model=model_of(guess)),
    )
    assert len(absurd(fitted)) == told


@pytest.mark.parametrize(("beyond", "said"), [(1.9, 0), (2.1, 1), (-5.0, 0)])
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_given_a_value_on_its_bound_then_data_that_ask_for_two_errors_more_are_heard(
    side: str, beyond: float, said: int
) -> None:
    error = 0.1  # 100 samples of unit noise
    outward = beyond * error if side == "upper" else -beyond * error
    pull = Regression(np.full((1, 100), outward), np.ones((1, 100, 1)))
    fitted = about(estimate=np.array([0.0]), unknowns=[unknown("k", **{side: 2.0})])
    bars = about(estimate=np.array([2.0]), errors=Errors(np.array([[error**2]])), asked=None)
    words = _at_bounds(fitted, cast(Any, about(regressions=[pull])), bars)
    assert len(words) == said
    # where the numbers are those of the fit over parts, its own residuals ask
    parts = about(estimate=np.array([2.0]), errors=bars.errors, asked=np.array([outward]))
    assert _at_bounds(fitted, cast(Any, about(regressions=[])), parts) == words
    inside = about(estimate=np.array([1.9 if side == "upper" else 2.1]), errors=bars.errors, asked=None)
    assert _at_bounds(fitted, cast(Any, about(regressions=[pull])), inside) == []
    if said:
        assert "k lies on its bound 2; the data ask for a value 2.1 standard errors beyond it." in words[0]


def test_given_an_unknown_that_others_imitate_then_its_inflation_is_one_over_what_is_its_own() -> None:
    rho = 0.99
    fitted = about(
        information=np.array([[1.0, rho * 3, 0], [rho * 3, 9.0, 0], [0, 0, 1.0]]),
        unknowns=[unknown("c"), unknown("k"), unknown("d", record=0)],
        pieces=[about(residuals=np.array([[1.0, np.nan, 2.0]]))] * 100,
    )
    assert _inflation(fitted) == pytest.approx([1 / (1 - rho**2)] * 2 + [0.0])
    assert no_choice(fitted) == pytest.approx(2 * np.log(200) + 8)


def sensor(
    noise: float, size: float, count: int = 20_000, spikes: int = 0, given: bool = True
) -> SensorNoise:
    """A residual of unit size times ``size`` beside a sensor of that noise."""
    rng = np.random.default_rng(6)
    errors = rng.standard_normal(count) * size / 2.0
    errors[:spikes] = 7.0 * size / 2.0
    rows = noise * rng.standard_normal((1, count))
    experiment = about(
        model=about(outputs=("x",)),
        runs=[
            about(outputs=row, noise=np.array([noise if given else np.nan]))
            for row in (rows, np.full((1, 5), np.nan))
        ],
    )
    errors[-1] = np.nan
    fitted = about(experiment=experiment, sigma=np.full((2, 1), 2.0))
    found = sensor_noise(fitted, 0, [errors[:50], errors[50:]], [0, 0])
    assert found is not None
    return found


def test_given_a_residual_beside_the_sensors_noise_then_a_sixth_more_counts_if_it_is_sure() -> None:
    assert sensor(1.0, 1.0).ratio == pytest.approx(1.0, abs=0.03)
    assert not sensor(1.0, 1.12).significant
    assert sensor(1.0, 1.19).significant
    assert not sensor(1.0, 1.19, count=200).significant  # four errors of 1.17/sqrt(400) are 28 %
    assert sensor(1.0, 1.6, count=200).significant
    differences = sensor(1.0, 1.5, given=False)
    assert differences.source == "differences" and differences.noise == pytest.approx(1.0, abs=0.05)
    assert differences.significant
    assert sensor(1.0, 1.0, spikes=3).outliers == 3
    assert sensor(1.0, 1.0).outliers == 0
    none = about(experiment=about(), sigma=np.ones((1, 1)))
    assert sensor_noise(none, 0, [np.full(3, np.nan)], [0]) is None


def test_given_scores_then_t_coefficients_and_joint_statistic_are_those_of_their_covariance() -> None:
    covariance = np.array([[4.0, 1.0, 0.0], [1.0, 9.0, 0.0], [0.0, 0.0, 1.0]])
    found = Scores(
        np.array([3.0, -6.0, 5.0]), np.diag([2.0, 3.0, 1.0]), covariance, np.array([True, True, False]),
        np.zeros((1, 3)), 1e6,
    )  # fmt: skip
    assert found.t_values() == pytest.approx([1.5, -2.0, 0.0])
    coefficients, errors = found.coefficients()
    assert coefficients == pytest.approx([1.5, -2.0, 0.0]) and errors == pytest.approx([1.0, 1.0, 0.0])
    statistic, freedom = found.joint()
    part = np.array([3.0, -6.0])
    assert freedom == 2
    assert statistic == pytest.approx(part @ np.linalg.solve(covariance[:2, :2], part))
    few = Scores(found.score, found.information, covariance, found.own, found.along, 5.0).t_values()
    assert few[:2] == pytest.approx([norm.isf(student.sf(1.5, 5)), -norm.isf(student.sf(2.0, 5))])
    assert Scores(
        found.score, found.information, covariance, np.zeros(3, bool), found.along, 5.0
    ).joint() == (0.0, 0)


def test_given_delays_of_two_channels_that_are_the_same_to_the_data_then_the_late_one_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from analysis.estimate.finish import evidence as evidence_module

    def first(late: float) -> str:
        found = [
            Missing("delay", "f", -20.0, -0.5, 0.1, 0.1),
            Missing("delay", "x", late, 0.5, 0.1, 0.1),
            Missing("x^3", "dv/dt", 3.0, 0.5, 0.1, 0.1),
            Missing("x^5", "dv/dt", 0.0, 0.5, 0.1, 0.1),
        ]
        monkeypatch.setattr(evidence_module, "missing_terms", lambda *_: found[2:])
        monkeypatch.setattr(evidence_module, "channel_faults", lambda *_: found[:2])
        monkeypatch.setattr(evidence_module, "dispersion", lambda *_: [])
        ranked = lacking(cast(Any, None), [], [])
        assert [m.name for m in ranked][2] == "x^3" and len(ranked) == 3
        return ranked[0].place

    assert first(18.5) == "x"
    assert first(17.5) == "f"


def test_given_a_very_long_record_then_four_excerpts_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    from analysis.estimate.finish import evidence as evidence_module

    def cut(_: object, cuts: int) -> list[Any]:
        return [about(N=300_000 // cuts, regression=lambda i=i: i) for i in range(cuts)]

    monkeypatch.setattr(evidence_module, "linearisations", cut)
    short = [cast(Any, about(N=50_000))] * 2
    assert _excerpts(cast(Any, None), short, [])[0] is short
    parts, found = _excerpts(cast(Any, None), cast(Any, [about(N=300_000)]), [])
    assert found == [0, 3, 7, 11]
    assert sum(p.N for p in parts) == 100_000


def test_given_shares_and_a_prediction_then_the_worst_of_them_is_missed() -> None:
    given = dict.fromkeys(Evidence.__dataclass_fields__, None) | {
        "left": {"x": 0.2, "y": 0.1}, "r2": {"x": 0.96, "y": 0.99}, "shares": {"x": 0.03, "y": 0.05},
        "prediction": about(r2={"x": 0.95, "y": 0.995}, rms={}),
    }  # fmt: skip
    found = Evidence(**cast(Any, given))
    assert found.explained == 0.96
    assert not found.noiseless
    assert found.missed == pytest.approx(np.hypot(0.03, 0.1))  # sqrt(0.96 - 0.95) beyond the fit
    alone = Evidence(**cast(Any, given | {"prediction": None, "left": {"x": 0.9e-5, "y": 0.0}}))
    assert alone.missed == 0.05
    assert alone.noiseless
    errors = [np.array([3.0, np.nan, 1.0])]
    assert _white_part(WHITE, errors) == pytest.approx(5.0)
    assert _white_part(Autoregression(np.zeros(1), 2.0), errors) == 2.0
    assert _white_part(Autoregression(np.zeros(1), 9.0), errors) == pytest.approx(5.0)


def test_given_an_output_with_gaps_then_its_residual_is_that_of_the_samples_there() -> None:
    left = np.array([[1.0, np.nan, -1.0, 1.0], [np.nan] * 4])
    run = about(outputs=np.array([[5.0, 99.0, 1.0, 3.0], [np.nan] * 4]))
    fitted = about(
        experiment=about(model=about(outputs=("x", "y"))),
        pieces=[about(residuals=left, run=run, record=0, first=0, stop=4)],
        sigma=np.array([[0.9, 1.0]]), chi2=3.3, dof=2,
    )  # fmt: skip
    found = _residual(fitted, Figures(0.25, {"x": 0.75}))
    assert found.rms == {"x": 1.0} and found.noise == {"x": 0.9}
    assert found.r2["x"] == pytest.approx(1 - 1 / np.var([5.0, 1.0, 3.0]))
    assert (found.missed, found.held_out_r2) == (0.25, {"x": 0.75})


def test_given_a_regression_then_one_infinite_error_spoils_it_and_a_missing_one_does_not() -> None:
    errors, jacobian = np.zeros((1, 4)), np.ones((1, 4, 2))
    errors[0, 1] = np.nan
    assert Regression(errors, jacobian).finite
    errors[0, 2] = np.inf
    assert not Regression(errors, jacobian).finite
    jacobian[0, 0, 1] = np.nan
    assert not Regression(np.zeros((1, 4)), jacobian).finite


def test_given_parts_of_a_right_fit_that_scatter_by_chance_then_the_errors_grow_by_that_scatter_alone() -> (
    None
):
    """A ring-down in closed form, drawn such that its parts differ at p = 0.003: one right fit in thirty.

    The spread between parts, most of which hold little motion, would be 17 and 21 times the ideal errors.
    """
    rng = np.random.default_rng(30)
    c, k = rng.uniform(0.05, 0.4), rng.uniform(2, 8)
    t = np.arange(1000) * 0.05
    x = np.exp(-c / 2 * t) * np.cos(np.sqrt(k - c * c / 4) * t + rng.uniform(0, 6.28))
    x += 0.02 * x.std() * rng.standard_normal(len(t))
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.3}, "k": {"guess": 5.0}}, outputs={"x": "x"}
    )
    result = identify(model, Record.from_arrays(20.0, {"x": x}))
    assert result.verdict == "fits" and result.extra["errors"] == "scatter"
    for name, truth in (("c", c), ("k", k)):
        estimate = result.parameters[name]
        assert estimate.stderr_ideal <= estimate.stderr < 2.5 * estimate.stderr_ideal
        assert abs(estimate.value - truth) < 2 * estimate.stderr


def test_given_a_chance_colour_of_few_residuals_then_no_error_is_below_that_of_white_noise() -> None:
    """B of A -> B -> C in white noise, in closed form; what this draw leaves passes for coloured noise."""
    t = np.arange(300) * 0.1
    b = 1.5 * (np.exp(-0.2 * t) - np.exp(-0.6 * t))
    b += 0.02 * b.std() * np.random.default_rng(1).standard_normal(len(t))
    model = Model.from_equations(
        {"A": "-k1*A", "B": "k1*A - k2*B"},
        {"k1": {"guess": 0.5, "lower": 0.4}, "k2": {"guess": 0.3, "upper": 0.4}},
        outputs={"B": "B"},
    )
    result = identify(model, Record.from_arrays(10.0, {"B": b}), "shooting")
    for found in (result.parameters[name] for name in ("k1", "k2")):
        assert found.stderr >= 0.999 * found.stderr_ideal
