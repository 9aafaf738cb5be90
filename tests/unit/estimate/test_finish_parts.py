"""Small parts of the finish and of the weak form that decide something, numbers by hand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.base.errors import ModelError, ShakedownError
from analysis.base.identification import Estimate
from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.finish import errors, honest, jumping, path_engine, rivals, shooting_engine
from analysis.estimate.finish.autoregression import Autoregression, fit_autoregression
from analysis.estimate.finish.fit import fit, run_engine
from analysis.estimate.finish.fitted import Fitted, Piece
from analysis.estimate.finish.linearised import Regression, _stretch
from analysis.estimate.finish.smooth_curves import _beyond
from analysis.estimate.path.noise_levels import NoiseLevels
from analysis.estimate.path.problem import PathProblem
from analysis.estimate.path.substeps import choose_substeps, refine_substeps
from analysis.estimate.profile import Profile, trace_profile
from analysis.estimate.start import Start
from analysis.estimate.weak.system import _overlap
from analysis.experiment import Experiment
from analysis.experiment.noise_sharing import NoiseSharing
from analysis.model import Model

FREE = SimpleNamespace(free=["c"], name="m")
BOUNDS = {"lower": -np.inf, "upper": np.inf, "kind": "parameter"}


def about(**given: Any) -> Any:
    return SimpleNamespace(**given)


def fitted_of(**given: Any) -> Fitted:
    """A fit of which nothing but this is known."""
    return Fitted(**cast(Any, dict.fromkeys(Fitted.__dataclass_fields__) | given))


def piece_of(**given: Any) -> Piece:
    return Piece(**cast(Any, dict.fromkeys(Piece.__dataclass_fields__) | given))


def test_given_residuals_of_two_pieces_then_chi_square_is_their_sum_over_the_noise() -> None:
    pieces = (
        piece_of(record=0, residuals=np.array([[0.2, np.nan], [3.0, 0.0]])),
        piece_of(record=1, residuals=np.array([[0.4], [np.nan]])),
    )
    found = fitted_of(pieces=pieces).chi2_at(np.array([[0.1, 2.0], [0.2, 5.0]]))
    assert found == pytest.approx(2**2 + 1.5**2 + 2**2)
    # an output without noise counts beyond all others, but not as infinite
    assert np.isfinite(fitted_of(pieces=pieces[:1]).chi2_at(np.array([[0.1, 1e-100]])))


def test_given_a_start_then_it_says_which_engine_fits_which_experiment_and_how_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Any, ...]] = []
    for module, name in ((path_engine, "fit_path"), (shooting_engine, "fit_shooting")):
        monkeypatch.setattr(module, name, lambda *given, name=name: asked.append((name, *given)))
    monkeypatch.setattr(jumping, "as_one_motion", lambda found, *_: found)
    one, other = about(model=FREE), about(model=FREE)
    plain = Start("weak", np.zeros((1, 1)))
    shot = Start("shooting", np.zeros((1, 1)), engine="shooting", experiment=other)
    fit(one, plain)
    fit(one, shot, cuts=8, max_iterations=5)
    run_engine(one, plain)
    run_engine(one, shot)
    assert asked == [
        ("fit_path", one, plain, SILENT, 1, 60),
        ("fit_shooting", other, shot, SILENT, 8, 5),
        ("fit_path", one, plain, SILENT, 1, 60),
        ("fit_shooting", one, shot, SILENT, 1, 60),
    ]
    with pytest.raises(ModelError, match="m has no free parameter"):
        fit(about(model=about(free=[], name="m")), plain)


def burg(stretches: Sequence[np.ndarray], order: int) -> np.ndarray:
    """Reflection coefficients sample by sample (Burg 1975), pairs from all stretches together."""
    forward = [list(s) for s in stretches]
    backward = [list(s) for s in stretches]
    found = []
    for m in range(1, order + 1):
        pairs = [
            (s, n, forward[s][n], backward[s][n - 1])
            for s in range(len(stretches))
            for n in range(m, len(stretches[s]))
        ]
        k = -2 * sum(f * b for *_, f, b in pairs) / sum(f * f + b * b for *_, f, b in pairs)
        before = [list(row) for row in backward]
        for s, n, f, _ in pairs:
            forward[s][n] = f + k * before[s][n - 1]
            backward[s][n] = before[s][n - 1] + k * f
        found.append(k)
    return np.array(found)


def test_given_stretches_of_two_and_more_samples_then_every_pair_in_them_counts() -> None:
    rng = np.random.default_rng(3)
    e = np.zeros(220)
    for i in range(3, len(e)):
        e[i] = 1.2 * e[i - 1] - 0.9 * e[i - 2] + 0.3 * e[i - 3] + rng.standard_normal()
    stretches = [e[3:5], e[6:9], e[10:16], e[20:24], e[30:]]
    row = np.concatenate([np.append(s, np.nan) for s in stretches])
    found = fit_autoregression([row])
    assert found.order >= 3
    reflections = burg(stretches, found.order)
    assert found.coefficients[-1] == pytest.approx(reflections[-1], rel=1e-9)
    power = float(np.nanmean(row**2))
    assert found.variance == pytest.approx(power * np.prod(1 - reflections**2), rel=1e-9)


def test_given_one_output_of_coloured_noise_then_the_errors_are_not_ideal() -> None:
    white, red = (Autoregression(np.zeros(order), 1.0) for order in (0, 1))
    for processes, ideal in (([white, white], True), ([white, red], False), ([red, white], False)):
        assert errors._is_white(about(chi2=100.0, dof=100), about(processes=processes)) == ideal


def test_given_parts_and_records_then_each_test_has_its_own_degrees_of_freedom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three unknowns, two states a part: 7 of 20 samples are used up by two parts, 3 + 2 by the whole."""
    parts = [Regression(np.ones((1, 10)), np.ones((1, 10, 3)), record) for record in (0, 1)]
    whole = [Regression(np.ones((1, 10)), np.ones((1, 10, 3)), record) for record in (0, 1)]
    white = [Autoregression(np.zeros(0), 1.0)]
    asked: list[tuple[int, float]] = []
    chances = iter([0.5] * 10)

    def agreement(groups: Any, _: Any, freedom: float) -> honest.Test:
        asked.append((len(groups), freedom))
        return honest.Test(1.0, 1.0, next(chances))

    used: list[int] = []
    monkeypatch.setattr(errors, "agreement", agreement)
    monkeypatch.setattr(errors, "noise_processes", lambda _, count: used.append(count) or white)
    monkeypatch.setattr(errors, "shift_test", lambda *_: honest.Test(1.0, 1.0, 0.5))
    monkeypatch.setattr(errors, "sandwich", lambda *_: np.eye(3))
    monkeypatch.setattr(errors, "_parts", lambda *_: (parts, np.full(3, 9.0)))
    alone = (np.full(3, 7.0), honest.Errors(np.eye(3)))
    monkeypatch.setattr(errors, "_records_alone", lambda *_: alone)

    def bars(records: int, of_inputs: float = 0.0, hint: float = 2.2) -> errors.ErrorBars:
        fitted = fitted_of(
            estimate=np.zeros(3), information=np.eye(3), input_covariance=of_inputs * np.eye(3), chi2=15.0,
            dof=15, pieces=[about(states=np.zeros((2, 20)))],
            experiment=about(
                runs=[None] * records, noise_known=True, model=about(outputs=("x",))
            ),
        )  # fmt: skip
        missing = [about(t=-hint), about(t=1.0)]
        evidence = about(processes=white, regressions=whole, missing=missing, lacking=[], moves=[])
        return errors.error_bars(fitted, evidence, SILENT)

    assert bars(1).kind == "ideal" and used == [7]
    assert asked == [(2, 13), (2, 15)]
    assert "records" in bars(2).tests and asked[2:] == [(2, 13), (2, 15), (2, 15)]
    chances = iter([0.5, 0.5, 0.009])
    apart = bars(2)
    assert apart.kind == "records" and apart.estimate[0] == 7.0
    chances = iter([0.5, 0.5, 0.011])
    assert bars(2).kind == "ideal"
    chances = iter([0.5, 0.009])
    scatter = bars(1)
    assert scatter.kind == "scatter" and scatter.estimate[0] == 0.0
    chances = iter([0.5, 0.009])
    assert bars(1, hint=2.4).kind == "parts"  # two hints together
    chances = iter([0.5, 0.0009] * 2)
    spread = bars(1)
    assert spread.kind == "parts" and spread.estimate[0] == 9.0
    # what is unknown of the inputs moves all parts alike: their spread does not show it
    wider = bars(1, 0.25).errors.covariance - spread.errors.covariance
    assert wider == pytest.approx(0.25 * np.eye(3))
    chances = iter([0.5] * 2)
    assert bars(1, 0.25).errors.covariance == pytest.approx(1.25 * np.eye(3))


def test_given_a_first_state_that_is_known_then_only_the_stretch_that_begins_there_knows_it() -> None:
    run = about(
        initial_known=np.array([True, False]), inputs=about(count=0), outputs=np.zeros((1, 30)),
        times=np.arange(30.0), input_noise=np.zeros(0),
    )  # fmt: skip
    fitted = fitted_of(
        unknowns=[about(index=3, record=-1), about(index=1, record=0), about(index=0, record=1)],
        values=np.arange(10.0).reshape(2, 5), sigma=np.ones((2, 1)), pieces=(),
    )  # fmt: skip

    def spread(first: int, part: slice) -> np.ndarray:
        piece = piece_of(
            run=run, record=0, first=first, stop=30, times=np.arange(first, 30.0),
            states=np.zeros((2, 30 - first)),
        )  # fmt: skip
        stretch = _stretch(fitted, piece, part, np.array([5.0, 5.0]))
        assert stretch.free.tolist() == [1, 3] and stretch.columns.tolist() == [1, 0]
        assert stretch.times[0] == first + part.start
        return stretch.spread

    known = spread(0, slice(0, 10))
    assert known[0] < 0.01 and known[1] == 5.0
    assert spread(0, slice(10, 20)).tolist() == spread(10, slice(0, 10)).tolist() == [5.0, 5.0]


@pytest.mark.parametrize(
    ("samples", "length"), [(1999, 0), (2000, 1000), (10_000, 2000), (200_000, 20_000), (39_999, 7999)]
)
def test_given_a_long_record_then_a_fifth_of_it_may_exclude_a_rival(
    monkeypatch: pytest.MonkeyPatch, samples: int, length: int
) -> None:
    """Between a thousand and twenty thousand samples, no more than half of the record."""
    seen: list[Fitted] = []
    monkeypatch.setattr(rivals, "_held_fit", lambda excerpt, *_: seen.append(excerpt) or excerpt)
    monkeypatch.setattr(rivals, "_rise", lambda *_: 1e9)
    parts: list[Any] = []

    def cut(places: Any, own_phases: bool) -> Any:
        parts.extend(places)
        return about(runs=["part"])

    times = np.arange(float(samples))
    piece = piece_of(
        record=1, first=7, stop=7 + samples, times=times, states=times[None], residuals=times[None]
    )
    short = piece_of(
        record=0, first=0, stop=5, times=times[:5], states=times[None, :5], residuals=times[None, :5]
    )
    experiment = about(conditions=about(per_record=()), parts=cut)
    fitted = fitted_of(
        experiment=experiment, unknowns=[about(record=-1, **BOUNDS)], pieces=(short, piece),
        values=np.array([[1.0], [2.0], [9.0]]), sigma=np.array([[3.0], [4.0], [9.0]]),
    )  # fmt: skip
    assert rivals._fails_on_an_excerpt(fitted, 0, np.ones(1), SILENT) is (length > 0)
    if length:
        (look,) = seen
        assert parts == [(1, 7, 7 + length)] and look.values.tolist() == [[2.0]]
        assert look.sigma.tolist() == [[4.0]]  # the noise of the record that is looked at
        (one,) = look.pieces
        assert (one.run, one.record, one.first, one.stop) == ("part", 0, 0, length)
        assert len(one.times) == one.states.shape[1] == one.residuals.shape[1] == length
    own = fitted_of(**{**vars(fitted), "unknowns": [about(record=0, **BOUNDS)]})
    assert not rivals._fails_on_an_excerpt(own, 0, np.ones(1), SILENT)


def test_given_a_rival_then_what_differs_by_four_errors_is_named_and_what_is_open_concerned() -> None:
    names = ("a", "b", "c", "d")
    unknowns = [about(name=n, index=3 - i, record=-1, **BOUNDS) for i, n in enumerate(names)]
    fitted = fitted_of(
        unknowns=unknowns, estimate=np.array([1.0, 2.0, 3.0, 4.0]), information=np.diag([100.0] * 4)
    )  # errors of 0.1
    other = fitted_of(
        unknowns=[unknowns[i] for i in (1, 2, 3)], estimate=np.array([2.39, 3.41, 4.0]),
        values=np.array([[0.0, 0.0, 0.0, 8.0], [0.0, 0.0, 0.0, 9.0]]),
    )  # fmt: skip
    found = rivals._described(fitted, other, 0, np.array([False, False, False, True]), -0.75)
    assert found.better is None  # no better, but as good
    assert found.concerned == (0, 2, 3)
    assert found.words.startswith("With a = 8 and c = 3.41 the model follows") and "-0.8" in found.words


def test_given_test_functions_then_their_overlap_counts_those_that_share_nodes() -> None:
    assert _overlap(np.array([0, 5, 10, 15]), 12) == 2
    assert _overlap(np.array([0, 5, 10, 15]), 5) == 0


def test_given_noisy_inputs_then_each_output_pays_for_the_samples_that_came_as_no_news() -> None:
    """Half of a sample of the first output was known before, one and a half of the second; 60 are taken."""
    problem = about(
        noise=about(measured=np.array([[100, 100]])), q=2, m=1, dof=150, input_errors=None,
        input_cost=lambda _: 10.0, work=[about(s=np.array([[2.0, 4.0], [0.0, 4.0]]))],
    )  # fmt: skip
    assert PathProblem._shares(problem) == pytest.approx([85.0, 55.0])
    problem.work[0].s = np.array([[1.0, 4.0]])  # one output pays for all, but keeps a tenth of its samples
    problem.dof = 1
    assert PathProblem._shares(problem) == pytest.approx([100.0, 10.0])
    problem.m, problem.noise.measured = 0, np.array([[60, 300], [40, 0]])
    problem.dof = 200
    assert PathProblem._shares(problem) == pytest.approx([50.0, 150.0])


def test_given_a_noisy_sine_as_input_then_both_engines_know_what_it_leaves_open() -> None:
    """A force that is known to a per cent lets the stiffness be known no better than that."""
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x + f"}, {"c": {"guess": 0.3}, "k": {"guess": 1.5}},
        inputs={"f": "measured"}, outputs={"x": "x"},
    )  # fmt: skip
    times, rng = np.arange(600) / 8, np.random.default_rng(5)
    steady = np.exp(1.1j * times) / (1.5 - 1.1**2 + 0.3j * 1.1)
    noise = 0.05 * rng.standard_normal(600)
    channels = {"x": steady.real + 0.005 * rng.standard_normal(600), "f": np.cos(1.1 * times) + noise}
    experiment = Experiment(model, Record.from_arrays(8.0, channels))
    assert experiment.runs[0].variants
    values, path = np.array([[0.3, 1.5]]), np.stack([steady.real, -1.1 * steady.imag])
    start = Start("path", values, [path])
    by_path = path_engine.fit_path(experiment, start, SILENT)
    by_shooting = shooting_engine.fit_shooting(experiment, start, SILENT)
    assert by_shooting.input_covariance == pytest.approx(by_path.input_covariance, rel=0.02)
    own = np.diag(np.linalg.inv(by_shooting.information))
    assert np.all(np.diag(by_shooting.input_covariance) > own)


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("unit", [1e-9, 1e6])
def test_given_an_estimate_without_an_error_then_its_profile_is_the_same_in_any_unit(
    unit: float, logarithmic: bool
) -> None:
    """Chi-square rises by one at three tenths of the estimate; nothing else says how far to step."""

    def profile(unit: float) -> Profile:
        def follow(value: float, _: None) -> tuple[float, None]:
            return 7.0 + ((value / unit - 2.0) / 0.6) ** 2, None

        free = (0.0 if logarithmic else -np.inf, np.inf)
        found = Estimate(2.0 * unit, np.inf)
        with np.errstate(divide="ignore"):  # the logarithm of a bound of zero
            return trace_profile("k", found, follow, None, 7.0, free, logarithmic)

    plain, other = profile(1.0), profile(unit)
    assert np.array(other.values) / unit == pytest.approx(np.array(plain.values), rel=1e-6)
    assert [plain.lower, plain.upper] == pytest.approx([2.0 - 1.959964 * 0.6, 2.0 + 1.959964 * 0.6], rel=1e-2)
    assert min(abs(v - 2.0) for v in plain.values if v != 2.0) < 0.5


def test_given_residuals_then_the_levels_that_are_estimated_follow_them_and_no_others() -> None:
    """Four outputs: estimated, given, one sample only, and never measured."""
    levels = NoiseLevels(
        np.ones((1, 4)), np.array([[True, False, True, True]]), np.array([[4, 4, 1, 0]]), np.full(4, 0.5),
        NoiseSharing.whole(1, 4), [0, 0],
    )  # fmt: skip
    residuals = [np.array([[2.0, 9.0, 3.0, np.nan], [2.0, 9.0, np.nan, np.nan]]),
                 np.array([[-2.0, 9.0, np.nan, np.nan], [2.0, 9.0, np.nan, np.nan]])]  # fmt: skip
    assert levels.update(residuals, np.array([1.0, 4.0, 1.0, 1.0])) == pytest.approx(3.0)
    assert levels.sigma[0] == pytest.approx([4.0, 1.0, 3.0, 1.0])
    assert residuals[0][0, :3] == pytest.approx([0.5, 9.0, 1.0])
    assert levels.update([np.zeros((2, 4)), np.zeros((2, 4))], np.ones(4)) == pytest.approx(1 - 0.5 / 4)
    assert levels.sigma[0] == pytest.approx([0.5, 1.0, 0.5, 1.0])


def test_given_a_flow_that_never_settles_then_sub_steps_end_at_256() -> None:
    asked: list[int] = []

    def evaluate(_: Any, __: Any, steps: int) -> tuple[list[np.ndarray], None]:
        asked.append(steps)
        return [np.full((3, 1), 1.0 / np.log2(2.0 * steps))], None

    problem = about(paths=[np.arange(4.0)[None]], values=None, evaluate=evaluate, scale=np.ones(1), fine=256)
    with pytest.raises(ShakedownError, match="too stiff"):
        choose_substeps(problem)
    assert max(asked) == 512
    assert refine_substeps(problem) is False


def test_given_a_curve_that_the_motion_visits_in_part_then_the_sentence_has_the_range() -> None:
    """Six knots from 10 on, 0.5 apart; the second to the fourth piece hold data in all their four splines."""
    spline: Any = about(knots=6, ends=(10.0, 12.5), step=0.5, argument="x")
    information = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    (words,) = _beyond("H", spline, information)
    assert words.startswith("The motion visits x from 10.5 to 12: beyond, H is a straight")
    assert _beyond("H", spline, np.ones(8)) == []
    assert _beyond("H", spline, np.eye(8)[3]) == []
