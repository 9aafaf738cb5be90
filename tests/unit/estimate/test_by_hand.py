"""Small parts of the estimates whose numbers can be written down by hand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.balance.orbits import _views
from analysis.estimate.balance.setting import Setting, _harmonics
from analysis.estimate.discovery import scene, selection
from analysis.estimate.finish import evidence, path_engine
from analysis.estimate.finish.tones import _own_lines
from analysis.estimate.functions.beam import local_search
from analysis.estimate.functions.beam.fit import Problem as BeamProblem
from analysis.estimate.functions.energetic.splines import Grid
from analysis.estimate.functions.energetic.start import WeakTask
from analysis.estimate.identifiability import _power_sentence, _powers
from analysis.estimate.path import problem as path_problem
from analysis.estimate.path.estimate import estimate_path
from analysis.estimate.path.problem import PathProblem
from analysis.estimate.start import Start
from analysis.estimate.weak import plain as weak_plain
from analysis.estimate.weak import system as weak_system
from analysis.experiment import Conditions, Experiment
from analysis.model import Model


@pytest.mark.parametrize(
    ("moves", "powers", "words"),
    [
        ([0.2, -0.2], [1, -1], "a and b only appear as a product."),
        ([0.2, 0.2], [1, 1], "a and b only appear as a ratio."),
        ([0.1, 0.2], [Fraction(1, 2), 1], "multiplying a by s^0.5 and b by s, whatever s is"),
        ([-0.1, 0.2], [Fraction(-1, 2), 1], "multiplying a by s^0.5 and b by s^-1, whatever s is"),
        ([0.2, -0.2, 0.1], [1, -1, Fraction(1, 2)], "a by s, b by s^-1 and c by s^0.5, whatever s is"),
        ([0.2, 0.1234], None, ""),  # no small whole ratio
        ([0.2, 0.1009], [1, Fraction(1, 2)], "whatever s is"),
        ([0.2, 0.102], None, ""),  # a hundredth off a half
        ([0.2, 1e-9], None, ""),  # one that does not move is not scaled
    ],
)
def test_given_relative_changes_in_whole_ratios_then_the_sentence_says_what_is_scaled(
    moves: list[float], powers: list[Fraction] | None, words: str
) -> None:
    found = _powers(np.array(moves))
    assert found == powers
    if powers is not None:
        names = ["a", "b", "c"][: len(moves)]
        assert words in _power_sentence("a and b", powers, names)


def test_given_one_channel_then_orbits_are_confirmed_in_delay_spaces_of_two_dimensions() -> None:
    x = np.sin(0.3 * np.arange(400.0))
    x[7] = np.nan
    setting = Setting(Record.from_arrays(1.0, {"x": x}), ["x"], {0: 0}, {}, 32.0, 0.0, True, [0.1], 3)
    views = _views(setting, SimpleNamespace(scale=np.array([2.0]), noise=np.array([0.1])))  # type: ignore[arg-type]
    assert [len(view.points) for view in views] == [4, 5]  # the thesis takes four
    for view in views:
        rows, columns = view.points.shape
        assert columns == 400 - 2 * (rows - 1)  # the delay is a sixteenth of the period
        assert view.points[1, 3] == x[5] and np.isfinite(view.points).all()
        assert view.scale.tolist() == rows * [2.0] and view.noise.tolist() == rows * [0.1]
        assert view.points[1, 5] == pytest.approx(np.nanmean(x[2 : columns + 2]))


def test_given_channels_that_show_different_harmonics_then_as_many_are_balanced_as_the_richer_one_shows() -> (
    None
):
    t = 2 * np.pi * np.arange(8000) / 50.0
    noise = 1e-3 * np.random.default_rng(3).standard_normal((2, 8000))
    plain, rich = np.cos(t) + noise[0], np.cos(t) + 0.1 * np.cos(7 * t) + noise[1]
    options: Any = SimpleNamespace(harmonics=None, plain=False, starts=())
    for rows in ({"x": plain, "v": rich}, {"x": rich, "v": plain}):
        record = Record.from_arrays(1.0, rows)
        assert _harmonics(record, ["x", "v"], [1e-3, 1e-3], 50.0, options) == 7


def stretch(count: int, of: int = 1) -> Any:
    return SimpleNamespace(N=count, regression=lambda: f"{of} of {count}", number=of)


def test_given_a_long_record_then_four_parts_from_its_first_to_its_last_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = evidence._MOST_TESTED
    asked: list[int] = []

    def cut(fitted: Any, cuts: int) -> list[Any]:
        asked.append(cuts)
        return [stretch(most // 4, number) for number in range(10)]

    monkeypatch.setattr(evidence, "linearisations", cut)
    short, regressions = [stretch(most // 2), stretch(most // 2)], ["a", "b"]
    assert evidence._excerpts(None, short, regressions) == (short, regressions)  # type: ignore[arg-type]
    assert not asked
    parts, tested = evidence._excerpts(None, [stretch(most), stretch(2 * most)], [])  # type: ignore[arg-type]
    assert asked == [6]  # twelve quarters of what is tested at the most, in two stretches
    assert [part.number for part in parts] == [0, 3, 6, 9]  # type: ignore[attr-defined]
    assert tested == [f"{number} of {most // 4}" for number in (0, 3, 6, 9)]


def test_given_two_lines_then_each_is_found_once_at_its_place_and_its_shoulders_are_none() -> None:
    n = np.arange(4000)
    noise = 1e-3 * np.random.default_rng(1).standard_normal(4000)
    row = np.cos(2 * np.pi * 200.25 * n / 4000) + 0.5 * np.cos(2 * np.pi * 611.5 * n / 4000) + noise
    assert _own_lines(row) == pytest.approx([200.25, 611.5], abs=0.13)


def test_given_normal_equations_then_the_misfit_is_that_of_the_rows_and_the_noise_what_they_leave() -> None:
    rng = np.random.default_rng(5)
    rows, values, theta = rng.standard_normal((30, 3)), rng.standard_normal(30), np.array([0.3, -1.0, 2.0])
    task = WeakTask(rows.T @ rows, rows.T @ values, float(values @ values), 30)
    variance = float(values @ values) / 30
    for _ in range(2):
        left = values - rows @ theta
        found = task.misfit(theta)
        assert found.cost == pytest.approx(0.5 * left @ left / variance)
        assert found.gradient == pytest.approx(-rows.T @ left / variance)
        assert found.hessian == pytest.approx(rows.T @ rows / variance)
        change = task.set_noise([np.array([left @ left])], 3.0)
        assert change == pytest.approx(0.5 * abs(np.log(left @ left / 27 / variance)), abs=1e-12)
        variance = float(left @ left) / 27


def test_given_cubic_splines_then_they_sum_to_one_and_reproduce_a_straight_line_with_its_slope() -> None:
    grid = Grid(-1.0, 3.0, 5)
    x = np.linspace(-2.0, 4.0, 61)
    knots = grid.lower + grid.width * (np.arange(grid.size) - 1.0)  # Greville's points
    assert grid.width == pytest.approx(0.8) and grid.size == 8
    assert grid.basis(x).sum(axis=1) == pytest.approx(np.ones(61))
    assert grid.basis(x, 1).sum(axis=1) == pytest.approx(np.zeros(61), abs=1e-12)
    assert grid.basis(x) @ knots == pytest.approx(x)
    assert grid.basis(x, 1) @ knots == pytest.approx(np.ones(61))
    inside = np.linspace(-0.9, 2.9, 20)
    weights = np.sin(np.arange(8.0))
    slope = (grid.basis(inside + 1e-6) - grid.basis(inside - 1e-6)) @ weights / 2e-6
    assert grid.basis(inside, 1) @ weights == pytest.approx(slope, abs=1e-8)


def test_given_multipliers_then_the_largest_behind_the_first_node_counts_in_the_ranges_of_the_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def spaces(*multipliers: list[float]) -> Any:
        names = ("carried", "seen", "S", "M", "K", "s", "E", "dX")
        return SimpleNamespace(**dict.fromkeys(names), L=np.array(multipliers))

    monkeypatch.setattr(path_problem.solver, "backward", lambda *_: None)
    problem: Any = SimpleNamespace(
        segments=[SimpleNamespace(record=0)] * 3,
        work=[
            spaces([90.0, 90.0, 0.0], [1.0, -4.0, 80.0], [3.0, 2.0, 80.0]),  # the last column: an input
            spaces([-5.0, 0.0, 0.0], [0.5, -0.1, 0.0]),
            spaces([70.0, 70.0, 0.0]),
        ],
        unknowns=SimpleNamespace(own=lambda record, step: step),
        scale=np.array([10.0, 2.0]),
        n=2,
    )
    assert PathProblem.step_path(problem, np.zeros(1)) == 30.0


def trial(misfit: float, subset: set[int], value: float) -> Any:
    return SimpleNamespace(misfit=misfit, subset=frozenset(subset), values=np.array([[value]]))


def test_given_fitted_sets_then_those_within_odds_of_150_to_1_are_rivals_and_the_best_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best, near, far = trial(10.0, {1}, 1.0), trial(13.0, {2}, 2.0), trial(40.0, {3}, 3.0)
    evidence = {best.subset: 25.0, near.subset: 29.5, far.subset: 36.0}
    gaps: list[float] = []
    monkeypatch.setattr(selection, "advice", lambda scene, kept, other, gap, price: gaps.append(gap))
    model: Any = SimpleNamespace(parameters={"k": None}, with_values=lambda values: values)
    scene: Any = SimpleNamespace(
        experiment=SimpleNamespace(model=model),
        library=SimpleNamespace(model=lambda terms, values, hidden: (terms, values)),
        hidden=(),
    )
    choice = SimpleNamespace(price=1.0, always=frozenset({0}))
    found: Any = SimpleNamespace(choice=choice, best=best, ranking=[best, near, far], evidence=evidence)
    rivals = selection._rivals(scene, found, {0: "x", 1: "x^3", 2: "x^5", 3: "x^7"})
    assert [(rival.terms, rival.criterion) for rival in rivals] == [(("x", "x^5"), 4.5)]
    assert gaps == [3.0]


@pytest.mark.parametrize("losses", [[], ["at 0.3"]])
def test_given_many_numbers_then_a_loss_found_in_few_of_them_is_fitted_to_all(
    monkeypatch: pytest.MonkeyPatch, losses: list[str]
) -> None:
    block = SimpleNamespace(intervals=40, log=True, where=slice(0, 2))
    task: Any = SimpleNamespace(unknowns=SimpleNamespace(block=lambda name: block), observations="all")
    smooth: Any = SimpleNamespace(
        covariance=np.eye(2), hessian=9 * np.eye(2), converged=True, theta=0, weights=0
    )
    thin = SimpleNamespace(system="thin")
    seen = local_search.Choice(
        SimpleNamespace(unknowns=SimpleNamespace(losses=losses), system="beam"),  # type: ignore[arg-type]
        SimpleNamespace(theta="place and depth", weights="w"),  # type: ignore[arg-type]
        [],
    )
    asked: list[Any] = []
    monkeypatch.setattr(local_search, "_thinned", lambda _: thin)
    monkeypatch.setattr(local_search, "_searched", lambda *_: seen)
    monkeypatch.setattr(local_search, "problem", lambda system, observations: (system, observations))
    monkeypatch.setattr(local_search, "_likelier", lambda plain, found: found)

    def fitted(task: Any, theta: Any, **_: Any) -> Any:
        asked.append((task, theta))
        return "fit"

    monkeypatch.setattr(local_search, "fit_from", fitted)
    found = local_search.with_local_losses(task, smooth, 2, SILENT)
    if losses:
        assert asked[-1] == (("beam", "all"), "place and depth")
        assert found.task == ("beam", "all")
    else:
        assert found.fit is smooth and found.task is task


@pytest.mark.parametrize(("noise", "columns"), [([0.0, 0.0], 2), ([0.1, 0.0], 4), ([0.1, 0.2], 4), ([], 2)])
def test_given_inputs_of_which_one_is_noisy_then_the_rows_see_the_noise_of_inputs(
    monkeypatch: pytest.MonkeyPatch, noise: list[float], columns: int
) -> None:
    """Two states of which the second has an equation of its own, two inputs, three nodes."""

    def jacobian(t: Any, x: Any, u: Any, p: Any, dX: Any, Vx: np.ndarray, Vp: Any) -> None:
        Vx[:] = np.array([[1.0], [2.0], [3.0]])

    def input_terms(kernel: Any, t: Any, x: Any, u: Any, p: Any, Ju: np.ndarray) -> None:
        Ju[:] = np.array([[10.0, 20.0], [30.0, 40.0]])[:, :, None]

    monkeypatch.setattr(weak_system, "_input_terms", input_terms)
    system: Any = SimpleNamespace(
        data=SimpleNamespace(times=np.arange(3.0), inputs=np.zeros((2, 3))),
        pattern_x=np.array([[0, 1, 1], [1, 0, 1]]), pattern_p=np.zeros((2, 1), dtype=int), rows=[1],
        kernels=SimpleNamespace(jac_sparse_many=jacobian, jac_u=None),
    )  # fmt: skip
    sigma = np.array([0.5, 0.5, *noise])
    found = weak_system.WeakSystem.noise_terms(system, np.zeros(1), np.zeros((2, 3)), sigma)
    assert found.shape == (1, columns, 3)
    assert found[0, :, 1].tolist() == [2.0, 3.0, 30.0, 40.0][:columns]


def test_given_gaps_then_the_published_weak_form_uses_stretches_from_twelve_samples_on() -> None:
    model = Model.from_equations({"x": "-k*x"}, {"k": {"guess": 0.5}})
    x = np.exp(-0.5 * 0.1 * np.arange(70.0))
    x[[40, 52, 65]] = np.nan  # stretches of 40, 11, 12 and 4 samples
    experiment = Experiment(model, Record.from_arrays(10.0, {"x": x}), Conditions())
    found = weak_plain._systems(model, experiment.runs[0])
    starts = [system.data.times.min() for system in found]
    assert len(found) == 2 and starts[0] < 0.1 and 5.3 < starts[1] < 5.4


@dataclass(frozen=True)
class Part:
    states: np.ndarray
    initial: np.ndarray | None = None
    initial_spread: np.ndarray | None = None


def test_given_first_states_that_left_their_bounds_then_they_are_held_at_them_within_a_trifle() -> None:
    run = SimpleNamespace(
        initial_lower=np.array([0.0, -np.inf, 1.0]), initial_upper=np.array([2.0, np.inf, 1.0])
    )
    experiment: Any = SimpleNamespace(runs=[run])

    def held(first: list[float], at: int = 0, before: np.ndarray | None = None) -> Any:
        path = np.array([[x, x + 4.0, x - 4.0] for x in first])
        path[2] = first[2]  # a state at rest: a millionth of its size is a trifle
        found: Any = SimpleNamespace(states=[path])
        return path_engine._held_initials(experiment, [Part(path, before)], [(0, at, 9)], found)  # type: ignore[list-item]

    assert held([0.5, -30.0, 1.0]) is None
    assert held([-7e-6, -30.0, 1.0 + 9e-7]) is None  # a millionth of the range of 8
    assert held([-9.0, 0.0, 7.0], at=3) is None  # a later stretch begins where it may
    (part,) = held([-9e-6, -30.0, 1.0])
    assert part.initial[0] == 0.0 and np.isnan(part.initial[1:]).all()
    assert part.initial_spread == pytest.approx([8e-7, 3e-6, 1e-7])
    (part,) = held([2.1, -30.0, 0.0], before=np.array([np.nan, -30.0, np.nan]))
    assert part.initial.tolist() == [2.0, -30.0, 1.0]
    assert part.initial_spread[2] == 1e-6  # of a state that is zero throughout


def test_given_numbers_with_stated_errors_then_each_counts_once_and_a_complex_one_twice() -> None:
    beam = SimpleNamespace(
        shapes=SimpleNamespace(values=np.zeros((3, 5))), frequencies=[1.0, 2.0], total_mass=0.3,
        responses=[SimpleNamespace(frequencies=range(7))] * 2,
    )  # fmt: skip
    blocks = [SimpleNamespace(prior=True), SimpleNamespace(prior=False), SimpleNamespace(prior=True)]
    task: Any = SimpleNamespace(system=SimpleNamespace(beam=beam), unknowns=SimpleNamespace(blocks=blocks))
    # two frequencies, twelve values of shapes beside their scale, 28 of responses, a mass and two priors
    assert BeamProblem.stated.fget(task) == 2 + 12 + 28 + 1 + 2  # type: ignore[attr-defined]
    beam.shapes, beam.total_mass = None, None
    assert BeamProblem.stated.fget(task) == 2 + 28 + 2  # type: ignore[attr-defined]


def test_given_numbers_that_make_a_difference_then_the_bounds_lie_around_them_on_their_side_of_zero() -> None:
    assert scene._ends(np.array([0.3, 1.0, 6.0])) == pytest.approx((0.1, 18.0))
    assert scene._ends(np.array([-6.0, -1.0, -0.3])) == pytest.approx((-18.0, -0.1))
    assert scene._ends(np.array([-1.0, 0.0, 4.0])) == pytest.approx((-1.5, 4.5))
    assert scene._minima(np.array([3.0, 1.0, 2.0, 0.5, 0.7, 0.4])) == [5, 3, 1]


def test_given_a_path_then_chi_square_is_the_sum_over_its_samples_and_noise_and_its_degrees_are_counted() -> (
    None
):
    model = Model.from_equations({"x": "-k*x"}, {"k": {"guess": 0.5}})
    noisy = np.exp(-0.05 * np.arange(60.0)) + 0.01 * np.random.default_rng(2).standard_normal(60)
    noisy[[7, 30]] = np.nan
    experiment = Experiment(model, Record.from_arrays(10.0, {"x": noisy}), Conditions())
    start = Start("test", experiment.guesses(), [np.exp(-0.05 * np.arange(60.0))[None]])
    segments, _ = path_engine.segments_of(experiment, start)
    found = estimate_path(model.kernels(), segments, experiment.guesses(), [0], sigma=np.array([0.02]))
    assert found.chi2 == pytest.approx(np.nansum((found.residuals[0] / 0.02) ** 2), rel=1e-9)
    assert found.chi2 == pytest.approx(58 / 4, rel=0.3)  # the noise was said to be twice as large
    assert found.dof == 56
