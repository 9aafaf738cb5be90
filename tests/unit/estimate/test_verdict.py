"""The verdict of a fit: what it is called when the model is right, lacks something, or cannot be judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter
from scipy.stats import norm

from analysis import identify
from analysis.base.record import Record
from analysis.estimate.finish.assemble import assemble
from analysis.estimate.finish.evidence import gather
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.judge import judge
from analysis.estimate.finish.linearised import joined, linearisations
from analysis.estimate.finish.missing_terms import Along
from analysis.estimate.finish.score import Missing, force_columns, with_limits
from analysis.estimate.finish.terms import candidate_terms
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model

DT, N = 0.05, 1000
TRUTH = {"c": 0.2, "k": 4.0, "k3": 3.0}
EQUATIONS = {"x": "v", "v": "f - c*v - k*x - k3*x**3"}


def duffing(equations: dict[str, str] = EQUATIONS, **changed: object) -> Model:
    parameters = {name: {"guess": 1.1 * value} for name, value in TRUTH.items()} | changed
    return Model.from_equations(equations, parameters, inputs={"f": "measured"}, outputs={"x": "x"})


def motion(k5: float = 0.0, friction: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Force [N] and states [2, N] of the oscillator with what the model may lack, from any phase."""
    rng = np.random.default_rng(seed)
    t = np.arange(N + 100) * DT
    frequencies, phases = rng.uniform(0.05, 0.8, 40), rng.uniform(0, 2 * np.pi, 40)
    f = 0.45 * np.cos(2 * np.pi * frequencies[:, None] * t + phases[:, None]).sum(axis=0)
    force = CubicSpline(t, f)

    def rates(t: float, z: np.ndarray) -> list[float]:
        lacking = k5 * z[0] ** 5 + friction * np.tanh(z[1] / 0.01)
        return [z[1], float(force(t)) - 0.2 * z[1] - 4.0 * z[0] - 3.0 * z[0] ** 3 - lacking]

    z = solve_ivp(rates, (0, t[-1]), [0.3, 0.0], t_eval=t, method="DOP853", rtol=1e-9, atol=1e-10).y
    return f[100:], z[:, 100:]


@pytest.fixture(scope="module")
def right() -> tuple[np.ndarray, np.ndarray]:
    return motion()


def fitted(
    model: Model, f: np.ndarray, z: np.ndarray, noise: np.ndarray, conditions: Conditions | None = None
) -> Fitted:
    record = Record.from_arrays(1 / DT, {"x": z[0] + 0.02 * z[0].std() * noise, "f": f})
    experiment = Experiment(model, record, conditions or Conditions(denoise=False))
    return fit(experiment, Start("test", experiment.guesses(), [z]))


def z_values(estimate: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    return (estimate - np.array(list(TRUTH.values()))) / np.sqrt(np.diag(covariance))


def test_given_a_right_model_and_white_noise_then_it_fits_with_the_ideal_errors(right):
    off = []
    for seed in range(6):
        found = fitted(duffing(), *right, np.random.default_rng(seed).standard_normal(N))
        judged = judge(found)
        assert judged.verdict == "fits", judged.reasons
        assert assemble(found, judged, {}).residual.r2["x"] == pytest.approx(1 - 0.02**2, abs=1e-4)
        assert judged.figures.held_out_r2["x"] == pytest.approx(1 - 0.02**2, abs=2e-4)
        assert judged.covariance == pytest.approx(np.linalg.inv(found.information), rel=0.15)
        off.append(z_values(judged.estimate, judged.covariance))
    assert 0.5 < np.sqrt(np.mean(np.square(off))) < 1.5


def test_given_a_fit_then_its_regression_has_the_information_and_stands_at_the_optimum(right):
    found = fitted(duffing(), *right, np.random.default_rng(1).standard_normal(N))
    parts = [part.regression() for part in linearisations(found)]
    information, score = joined(parts)
    assert information == pytest.approx(found.information, rel=1e-2)
    assert np.all(
        np.abs(np.linalg.solve(information, score)) < 0.1 * np.sqrt(np.diag(np.linalg.inv(information)))
    )
    assert np.nanvar(parts[0].errors) == pytest.approx(1.0, abs=0.02)


def test_given_a_candidate_then_its_column_is_the_sensitivity_of_a_model_that_holds_it(right):
    wide = duffing({"x": "v", "v": "f - c*v - k*x - k3*x**3 - k5*x**5"}, k5={"guess": 0.0})
    found = fitted(wide, *right, np.random.default_rng(1).standard_normal(N))
    part = linearisations(found)[0]
    own = part.regression().jacobian[0, :, 3]
    terms = [t for t in candidate_terms(wide, np.ones(len(wide.states))) if t.name == "x^5"]
    along = Along(wide, part)
    column = -force_columns(part, terms, along.rates, along.inputs)[0, :, 0]
    assert np.linalg.norm(column - own) < 0.01 * np.linalg.norm(own)


@pytest.mark.parametrize(
    ("lacking", "term", "share"), [({"k5": 0.05}, "x^5", 0.02), ({"friction": 0.2}, "sign(v)", 0.03)]
)
def test_given_a_term_of_two_per_cent_is_missing_then_it_is_named_with_its_share(lacking, term, share):
    f, z = motion(**lacking, seed=3)
    found = fitted(duffing(), f, z, np.random.default_rng(2).standard_normal(N))
    judged = judge(found)
    assert judged.verdict == "close"
    first = judged.findings["missing terms"][0]
    assert (first["term"], first["in"]) == (term, "dv/dt")
    assert abs(first["t"]) > 6
    assert share / 2.5 < first["share"] < 2.5 * share
    assert any(f"A term {term} in dv/dt" in words for words in judged.reasons)
    assert any(f"most like {term}" in words for words in judged.reasons)
    assert set(judged.curves) == {"missing in dv/dt over x", "missing in dv/dt over v"}
    if "k5" in lacking:
        curve = judged.curves["missing in dv/dt over x"]
        assert any("odd in x" in words for words in judged.reasons)
        beyond = np.array([a > 0 or b < 0 for a, b in zip(curve.lower, curve.upper, strict=True)])
        assert 0.3 < beyond.mean() < 1.0
    ideal = np.sqrt(np.diag(np.linalg.inv(found.information)))
    assert np.all(np.sqrt(np.diag(judged.covariance)) > 1.5 * ideal)
    assert judged.quantile[0] == pytest.approx(2.3646, abs=1e-3)  # eight parts
    assert np.all(np.abs(z_values(judged.estimate, judged.covariance))[0] < 4)


def test_given_more_terms_tried_then_each_must_be_further_from_zero():
    tried = [Missing("x^5", "dv/dt", 3.2, 1.0, 0.3, 0.01, common=True)] * 6
    tried += [Missing("1", "dv/dt", 3.2, 1.0, 0.3, 0.01)] * 8
    few = with_limits(tried)
    assert few[0].limit == pytest.approx(norm.isf(0.001), abs=1e-6)  # 1.2 % over six, two-sided
    assert few[0].speaks_against and not few[-1].speaks_against
    assert few[-1].limit == pytest.approx(norm.isf(0.0017 / 16), abs=1e-6)
    assert not with_limits(tried * 4)[0].speaks_against
    assert with_limits(tried[:1])[0].limit == few[0].limit


def test_given_coloured_noise_then_it_is_said_and_the_errors_follow_the_colour(right):
    off, ideal = [], []
    for seed in range(8):
        e = lfilter([np.sqrt(1 - 0.81)], [1, -0.9], np.random.default_rng(seed).standard_normal(N + 200))
        found = fitted(duffing(), *right, e[200:])
        judged = judge(found)
        assert judged.verdict == "close"
        assert any("not white" in words for words in judged.reasons)
        off.append(z_values(judged.estimate, judged.covariance))
        ideal.append(z_values(found.estimate, np.linalg.inv(found.information)))
    assert 0.4 < np.sqrt(np.mean(np.square(off))) < 1.5
    assert np.sqrt(np.mean(np.square(ideal))) > 2


def test_given_a_pair_that_cannot_be_split_then_nothing_can_be_told(right):
    split = duffing({"x": "v", "v": "f - c*v - (k + k2)*x - k3*x**3"}, k={"guess": 2.0}, k2={"guess": 2.0})
    judged = judge(fitted(split, *right, np.random.default_rng(1).standard_normal(N)))
    assert judged.verdict == "cannot tell"
    assert "k, k2" in judged.reasons[0] or "k2, k" in judged.reasons[0]
    assert np.isinf(np.diag(judged.covariance)).sum() == 2


def test_given_a_bound_that_the_data_want_to_cross_then_nothing_can_be_told(right):
    held = duffing(k={"guess": 3.0, "upper": 3.5})
    judged = judge(fitted(held, *right, np.random.default_rng(1).standard_normal(N)))
    assert judged.verdict == "cannot tell"
    assert any("k lies on its bound 3.5" in words for words in judged.reasons)


def test_given_a_linear_model_of_a_nonlinear_motion_then_it_misses(right):
    linear = duffing({"x": "v", "v": "f - c*v - k*x - 0*k3"}, k3=0.0, k={"guess": 8.0}, c={"guess": 0.5})
    judged = judge(fitted(linear, *right, np.random.default_rng(1).standard_normal(N)))
    assert judged.verdict in ("misses", "cannot tell")
    assert judged.figures.missed > 0.17


def test_given_the_noise_is_known_and_smaller_then_the_residual_is_held_against_it(right):
    known = Conditions(denoise=False, noise={"x": 0.01 * float(right[1][0].std())})
    found = fitted(duffing(), *right, np.random.default_rng(1).standard_normal(N), known)
    judged = judge(found)
    assert judged.verdict == "close"
    assert any("times the noise given" in words for words in judged.reasons)
    assert np.diag(judged.covariance) == pytest.approx(
        4 * np.diag(np.linalg.inv(found.information)), rel=0.15
    )


def test_given_uniform_noise_as_of_quantisation_then_its_size_is_not_overrated(right):
    """A median deviation of uniform noise, taken as that of a normal variable, is 28 % above its size."""
    uniform = np.sqrt(3.0) * np.random.default_rng(3).uniform(-1, 1, N)
    size = 0.02 * right[1][0].std()
    judged = judge(fitted(duffing(), *right, uniform, Conditions(denoise=False, noise={"x": size})))
    assert judged.verdict == "fits", judged.reasons
    assert judged.figures.over_noise["x"] == pytest.approx(1.0, abs=0.06)


def test_given_units_that_contradict_then_the_verdict_knows(right):
    f, z = right
    noisy = z[0] + 0.02 * z[0].std() * np.random.default_rng(1).standard_normal(N)
    model = replace(duffing(), units={"x": "m"})
    for unit, verdict in (("m", "fits"), ("V", "close"), ("mm", "cannot tell")):
        experiment = Experiment(
            model,
            Record.from_arrays(1 / DT, {"x": noisy, "f": f}, {"x": unit, "f": ""}),
            Conditions(denoise=False),
        )
        judged = judge(fit(experiment, Start("test", experiment.guesses(), [z])))
        assert judged.verdict == verdict, judged.reasons
        assert sum("not converted" in words for words in judged.reasons) == (verdict != "fits")


def test_given_no_noise_then_the_errors_hold_what_rounding_does(right):
    found = fitted(duffing(), *right, np.zeros(N))
    judged = judge(found)
    assert judged.verdict == "fits", judged.reasons
    assert "no noise" in judged.reasons[0]
    assert np.all(np.abs(z_values(judged.estimate, judged.covariance)) < 1)
    noise = float(found.sigma[0, 0]) / (1e-4 * right[1][0].std())
    assert judged.covariance == pytest.approx(np.linalg.inv(found.information) / noise**2, rel=1e-6)


def test_given_few_samples_then_nothing_is_missing_by_chance_and_the_intervals_are_students(right):
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.3}, "k": {"guess": 5.0}}, outputs={"x": "x"}
    )
    t, covered = np.arange(12) * 0.3, []
    for seed in range(30):
        noise = 0.01 * np.random.default_rng(seed).standard_normal(len(t))
        experiment = Experiment(
            model, Record.from_arrays(1 / 0.3, {"x": np.exp(-0.1 * t) * np.cos(2 * t + 0.3) + noise})
        )
        judged = judge(fit(experiment, Start("test", experiment.guesses())))
        assert judged.verdict == "fits", judged.reasons
        assert judged.quantile[0] == pytest.approx(2.3060, abs=1e-3)  # 12 samples less 4 unknowns
        errors = np.sqrt(np.diag(judged.covariance))
        covered += list(np.abs(judged.estimate - [0.2, 4.01]) < judged.quantile * errors)
    assert np.mean(covered) > 0.88


def test_given_spikes_and_a_gap_then_they_are_counted_and_crossed(right):
    noise = np.random.default_rng(1).standard_normal(N)
    noise[[200, 700]] = 7.0  # too small to be seen before the fit
    noise[400:460] = np.nan
    evidence = gather(fitted(duffing(), *right, noise))
    assert evidence.noise["x"].outliers == 2
    assert evidence.white["x"].probability > 1e-3
    assert evidence.notes() == ["2 samples of x lie far outside the rest."]


def ring_downs(rates: tuple[float, ...]) -> Fitted:
    """Decaying oscillations, each with a damping of its own, fitted with a common one."""
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.5}, "k": {"guess": 40.0}}, outputs={"x": "x"}
    )
    t = np.arange(300) * 0.02
    rng = np.random.default_rng(5)
    records = []
    for i, c in enumerate(rates):
        w = np.sqrt(40.0 - c**2 / 4)
        x = np.exp(-c * t / 2) * np.cos(w * t + i) + 0.005 * rng.standard_normal(len(t))
        records.append(Record.from_arrays(50.0, {"x": x}))
    experiment = Experiment(model, records)
    return fit(experiment, Start("test", experiment.guesses()))


def test_given_records_that_disagree_then_the_error_is_their_spread():
    judged = judge(ring_downs((0.551, 0.533, 0.513)))
    assert judged.verdict == "close"
    assert any("records ask for different parameters" in words for words in judged.reasons)
    error = float(np.sqrt(judged.covariance[0, 0]))
    assert judged.estimate[0] == pytest.approx(0.532, abs=0.01)
    assert 0.015 < error < 0.03
    assert judged.quantile[0] == pytest.approx(4.3027, abs=1e-3)  # three records
    same = judge(ring_downs((0.53, 0.53, 0.53)))
    assert same.verdict == "fits"
    assert np.sqrt(same.covariance[0, 0]) < 0.005


def test_given_a_constant_that_an_unknown_start_takes_up_then_it_is_undetermined() -> None:
    """w + d and b + d make the same motion: no record of x tells b, not even one that is not followed."""
    t = np.arange(600) * 0.1
    rng = np.random.default_rng(5)
    x = np.cos(0.9 * t) + 0.2 * np.cos(2.7 * t) + 0.01 * rng.standard_normal(len(t))
    model = Model.from_equations(
        {"x": "b - w", "w": "e*(x + a)"},
        {"e": {"guess": 0.7}, "a": {"guess": 0.1}, "b": {"guess": 0.4, "lower": 0.0}},
        outputs={"x": "x"},
    )
    result = identify(model, Record.from_arrays(10.0, {"x": x}))
    assert result.verdict == "cannot tell" and not np.isfinite(result.parameters["b"].stderr)
    assert any("do not determine b" in words for words in result.reasons)
