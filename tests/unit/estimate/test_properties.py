"""Properties that hold whatever the numbers: units, parts that make up a whole, floors, what counts where."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError
from analysis.base.identification import Identification
from analysis.base.progress import SILENT
from analysis.base.record import Channel, Record
from analysis.estimate.auto import _Candidate
from analysis.estimate.descent import bordered_step, bounded_step, promised_decrease
from analysis.estimate.finish import path_engine, rivals, shooting_engine
from analysis.estimate.finish.input_reading import _later
from analysis.estimate.functions.energetic.whitening import Whitening
from analysis.estimate.methods import identify
from analysis.estimate.path.estimate import estimate_path
from analysis.estimate.path.iteration import _in_standard_errors
from analysis.estimate.path.noise_levels import NoiseLevels
from analysis.estimate.path.segment import PathSegment
from analysis.estimate.profile import Profile
from analysis.estimate.shooting import windows
from analysis.estimate.shooting.build import noise_from_differences, problem_of, start_point
from analysis.estimate.shooting.evidence import evidence, white_chance
from analysis.estimate.start import Start
from analysis.estimate.weak.system import Equation, Nodes, WeakSystem
from analysis.experiment import Experiment
from analysis.model import Model
from analysis.validation import orbits


def about(**given: Any) -> Any:
    return SimpleNamespace(**given)


# steps


def definite(rng: np.random.Generator, size: int) -> np.ndarray:
    root = rng.standard_normal((size, size + 2))
    return np.asarray(root @ root.T)


@pytest.mark.parametrize("seed", range(4))
def test_given_unknowns_in_other_units_then_a_step_is_as_many_standard_errors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    information, step, sizes = definite(rng, 4), rng.standard_normal(4), np.abs(rng.standard_normal(4))
    expected = np.max(np.abs(step) / np.sqrt(np.diag(np.linalg.inv(information))))
    for unit in (1e-7 * np.ones(4), np.array([1e-5, 1.0, 1e5, 1e2])):
        found = _in_standard_errors(unit * step, information / np.outer(unit, unit), unit * sizes)
        assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_given_bounds_then_what_would_leave_is_set_on_them_and_the_rest_solved_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    information, gradient, here = definite(rng, 4), 4.0 * rng.standard_normal(4), rng.standard_normal(4)
    low, high = here - 1.5 * rng.random(4), here + 1.5 * rng.random(4)
    for damping in (0.0, 0.7):
        matrix = information + damping * np.diag(np.diag(information))
        found = bounded_step(information, gradient, here, low, high, damping)
        assert np.all(here + found >= low) and np.all(here + found <= high)
        on = (found <= low - here) | (found >= high - here)
        free = np.ix_(~on, ~on)
        rest = gradient[~on] - information[np.ix_(~on, on)] @ found[on]
        assert found[~on] == pytest.approx(np.linalg.solve(matrix[free], rest), abs=1e-9)
        wide = np.full(4, np.inf)
        alone = bounded_step(information, gradient, here, -wide, wide, damping)
        assert alone == pytest.approx(np.linalg.solve(matrix, gradient))
        out = (here + alone < low) | (here + alone > high)
        assert np.all(on[out]) and (on.any() == out.any())


@pytest.mark.parametrize("seed", range(3))
def test_given_unknowns_of_stretches_then_elimination_gives_the_step_of_all_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shared, own = 3, (2, 2)
    J = [rng.standard_normal((12, shared + m)) for m in own]
    r = [rng.standard_normal(12) for _ in own]
    here: Any = about(
        gradient=sum(j[:, :shared].T @ e for j, e in zip(J, r, strict=True)),
        hessian=sum(j[:, :shared].T @ j[:, :shared] for j in J),
        local=[
            (j[:, shared:].T @ e, j[:, shared:].T @ j[:, shared:], j[:, :shared].T @ j[:, shared:])
            for j, e in zip(J, r, strict=True)
        ],
    )
    wide = np.full(shared, np.inf)
    step, parts = bordered_step(here, -wide, wide, 0.0)
    whole = np.zeros((24, shared + 4))
    whole[:12, : shared + 2], whole[12:, :shared], whole[12:, shared + 2 :] = J[0], J[1][:, :3], J[1][:, 3:]
    right = np.concatenate(r)
    expected = np.linalg.lstsq(whole, right, rcond=None)[0]
    assert np.concatenate([step, *parts]) == pytest.approx(expected, rel=1e-6)
    gain = 0.5 * (right @ right - np.sum((right - whole @ expected) ** 2))
    assert promised_decrease(here, step, parts) == pytest.approx(gain, rel=1e-6)
    held = [np.array([True, False]), np.array([True, True])]
    some, kept = bordered_step(here, -wide, wide, 0.0, held)
    left = np.delete(whole, [3, 5, 6], axis=1)
    expected = np.linalg.lstsq(left, right, rcond=None)[0]
    assert np.concatenate([some, kept[0][1:]]) == pytest.approx(expected, rel=1e-6)
    assert kept[0][0] == 0.0 and not kept[1].any()


# parts of records


@pytest.mark.parametrize(("cuts", "length"), [(1, 0), (3, 0), (8, 0), (50, 0), (1, 20), (1, 33), (1, 4000)])
def test_given_stretches_then_their_parts_make_them_up_without_gap_or_overlap(cuts: int, length: int) -> None:
    spans = [(0, 5), (7, 100), (100, 117), (130, 400)]
    parts = path_engine._pieces(about(spans=spans), cuts, length)
    for a, b in spans:
        own = [(c, d) for c, d in parts if a <= c and d <= b]
        assert [own[0][0], *(d for _, d in own)] == [*(c for c, _ in own), b] and own[0][0] == a
        wanted = round((b - a) / length) if length else cuts
        assert len(own) == max(1, min(wanted, (b - a) // 8))
        sizes = [d - c for c, d in own]
        assert max(sizes) - min(sizes) <= 1
    assert sum(d - c for c, d in parts) == sum(b - a for a, b in spans)
    if not length:
        again = shooting_engine._cut([(2, a, b) for a, b in spans], cuts)
        assert again == [(2, c, d) for c, d in parts]


def test_given_states_of_some_records_then_the_others_have_those_of_the_data() -> None:
    model = Model.from_equations({"x": "-k*x"}, {"k": {"guess": 0.5}})
    rows = [np.exp(-0.05 * np.arange(40.0)), 2.0 * np.exp(-0.04 * np.arange(50.0))]
    experiment = Experiment(model, [Record.from_arrays(10.0, {"x": row}) for row in rows])
    known = np.full((1, 40), 7.0)
    for given in ([known, None], [None, 7.0 * np.ones((1, 50))]):
        start = Start("test", experiment.guesses(), given)
        found, places = path_engine.segments_of(experiment, start)
        assert places == [(0, 0, 40), (1, 0, 50)]
        for segment, row, own in zip(found, rows, given, strict=True):
            assert segment.states[0] == pytest.approx(row if own is None else 7.0, abs=0.02)
    free = shooting_engine.fit_shooting(
        experiment, Start("test", experiment.guesses(), [known, None]), SILENT
    )
    assert free.estimate[0] == pytest.approx(0.45, abs=0.06)


@pytest.mark.parametrize("samples", [1, 2, 3, 6])
def test_given_a_segment_of_two_samples_or_more_then_a_path_is_found_through_it(samples: int) -> None:
    model = Model.from_equations({"x": "-k*x"}, {"k": {"guess": 0.5}})
    long, short = (np.exp(-0.04 * np.arange(float(count)))[None] for count in (40, samples))
    segments = [
        PathSegment(0.1 * np.arange(row.shape[1]), row, row, None, 0) for row in (long, short)
    ]  # fmt: skip
    if samples == 1:
        with pytest.raises(DataError, match="two samples or more"):
            estimate_path(model.kernels(), segments, np.array([[0.5]]), [0], sigma=np.array([0.01]))
        return
    found = estimate_path(model.kernels(), segments, np.array([[0.5]]), [0], sigma=np.array([0.01]))
    assert found.estimate[0] == pytest.approx(0.4, abs=1e-4)
    assert found.dof == 40 + samples - 1 - 2  # a number, and a first state for each segment


# floors


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6])
def test_given_samples_without_noise_then_the_least_noise_is_a_share_of_their_size(unit: float) -> None:
    rows = unit * np.stack([3.0 + np.arange(30.0) / 29.0, np.full(30, 4.0), np.zeros(30)])
    segment: Any = about(outputs=rows, record=0)
    levels = NoiseLevels.of([segment], None)
    assert levels.floor == pytest.approx([1e-9 * unit, 4e-9 * unit, 1e-9])  # range; value; neither
    assert np.all(levels.sigma >= levels.floor)
    model = Model.from_equations({"x": "-k*x"}, {"k": {"guess": 0.5}})
    experiment = Experiment(model, Record.from_arrays(10.0, {"x": rows[0]}))
    assert noise_from_differences(experiment)[0, 0] == pytest.approx(1e-6 * np.std(rows[0]), rel=1e-6)


# weak form


def polynomial(times: np.ndarray) -> np.ndarray:
    return np.asarray(0.3 + 0.5 * times - 0.4 * times**2 + 0.1 * times**3)


def slope(times: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 - 0.8 * times + 0.3 * times**2)


PARAMETERS = {"a": {"guess": 0.6}, "b": {"guess": -0.8}}
FALL = Model.from_equations({"x": "v", "v": "a*t + b"}, PARAMETERS)
PULLED = Model.from_equations(
    {"x": "v", "v": "a*t + b + x - (0.3 + 0.5*t - 0.4*t**2 + 0.1*t**3)"}, PARAMETERS
)  # with the same motion, but the place counts


def weak(states: np.ndarray, equations: list[Equation], model: Model = FALL, spacing: int = 2) -> WeakSystem:
    times = np.asarray(1.0 + 0.1 * np.arange(states.shape[1]), dtype=np.float64)
    data = Nodes(times, states, np.zeros((0, len(times))), np.zeros(1, dtype=np.int64), 1.0)
    return WeakSystem(model.kernels(), data, spacing, equations, 2)


def test_given_a_state_and_its_rate_then_the_second_order_form_needs_the_state_alone() -> None:
    times = 1.0 + 0.1 * np.arange(40)
    rng = np.random.default_rng(1)
    states = np.stack([polynomial(times), rng.standard_normal(40)])  # the rate is not known at all
    second = weak(states, [Equation(1, of=0)])
    scale = np.abs(second.left).max()
    truth = np.array([0.6, -0.8])
    assert np.abs(second.residual(truth)).max() < 1e-6 * scale
    assert np.abs(second.residual(truth + [0.0, 0.1])).max() > 0.01 * scale
    states[1] = slope(times)
    first = weak(states, [Equation(0), Equation(1)])
    assert np.abs(first.residual(truth)).max() < 1e-6 * np.abs(first.left).max()
    assert first.residual(truth + [0.0, 0.1])[1] == pytest.approx(
        second.residual(truth + [0.0, 0.1])[0], abs=1e-9
    )


def test_given_sensors_with_offset_delay_and_drift_then_the_rows_are_those_of_the_true_states() -> None:
    times = 1.0 + 0.1 * np.arange(60)
    late, offset, drift = 0.037, 0.2, 0.05
    shown = np.stack(
        [polynomial(times - late) + offset, slope(times) + drift * (times - 1.0)]
    )  # what the sensors say
    system = weak(shown, [Equation(0), Equation(1)], PULLED)
    truth = np.array([0.6, -0.8, offset, 0.0, late, 0.0, 0.0, drift])
    assert np.abs(system.residual(truth)).max() < 2e-5 * np.abs(system.left).max()
    for i in (2, 4, 7):
        wrong = truth.copy()
        wrong[i] *= 1.5
        assert np.abs(system.residual(wrong)).max() > 1e-3 * np.abs(system.left).max()


@pytest.mark.parametrize("every", [1, 2, 5])
def test_given_every_nth_test_function_then_its_rows_are_those_of_the_whole(every: int) -> None:
    rng = np.random.default_rng(3)
    system = weak(rng.standard_normal((2, 60)), [Equation(0), Equation(1, of=0)])
    few = system.thinned(every)
    values = np.array([0.4, -0.3])
    assert few.residual(values) == pytest.approx(system.residual(values)[:, ::every], abs=1e-12)
    free = [0, 1]
    _, derivatives = few.linearised(values, free)
    assert derivatives == pytest.approx(system.linearised(values, free)[1][:, :, ::every], abs=1e-12)


def test_given_rows_then_their_normal_equations_are_those_of_the_linearised_rows() -> None:
    rng = np.random.default_rng(4)
    system = weak(rng.standard_normal((2, 60)), [Equation(0), Equation(1)])
    values, weights = np.array([0.4, -0.3]), np.array([2.0, 0.5])
    residual, derivatives = system.linearised(values, [0, 1])
    H, g, cost = system.normal(values, [0, 1], weights)
    J = (weights[None, :, None] * derivatives).reshape(2, -1)
    r = (weights[:, None] * residual).ravel()
    assert cost == pytest.approx(r @ r)
    assert pytest.approx(J @ J.T) == H
    assert g == pytest.approx(-J @ r)
    step = 1e-6
    for i in range(2):
        moved = values + step * np.eye(2)[i]
        difference = (system.residual(moved) - system.residual(values)) / step
        assert derivatives[i] == pytest.approx(difference, abs=1e-6)


# noise of a force


def test_given_noise_of_force_and_sensors_then_innovations_are_white_and_of_unit_size() -> None:
    """Against the Cholesky factor of the covariance of all samples, written out; some were not measured."""
    rng = np.random.default_rng(8)
    N, step = 12, np.array([[1.0, 0.1], [-0.3, 0.95]])
    turned = np.empty((2, N, 2))
    turned[:, 0] = np.eye(2)
    for n in range(1, N):
        turned[:, n] = step @ turned[:, n - 1]
    pushes, noise = rng.uniform(0.05, 0.4, N), np.array([0.2, 0.5])
    there = rng.random((2, N)) < 0.8
    found = Whitening.prepare(turned, pushes, there, noise)
    moved = np.zeros((2, 2))  # covariance of the state, and of it with those before
    states = np.zeros((N, 2, N, 2))
    for n in range(N):
        states[n, :, n, :] = moved
        for m in range(n):
            states[n, :, m, :] = step @ states[n - 1, :, m, :]
            states[m, :, n, :] = states[n, :, m, :].T
        moved = step @ moved @ step.T + np.diag([0.0, pushes[n] ** 2])
    total = states.reshape(2 * N, 2 * N) + np.diag(np.tile(noise**2, N))
    seen = there.T.ravel()
    root = np.linalg.cholesky(total[np.ix_(seen, seen)])
    rows = rng.standard_normal((2, N, 3))
    expected = np.linalg.solve(root, (rows * noise[:, None, None]).transpose(1, 0, 2).reshape(2 * N, 3)[seen])
    innovations = found.applied(rows)
    assert innovations.transpose(1, 0, 2).reshape(2 * N, 3)[seen] == pytest.approx(expected, rel=1e-9)
    assert innovations[~there] == pytest.approx(rows[~there])


# what counts where


def test_given_fits_then_a_good_one_goes_first_then_one_that_converged_then_the_least_that_is_left() -> None:
    def candidate(converged: bool, good: bool, left: float) -> _Candidate:
        pieces = [about(residuals=left * np.array([[1.0, -1.0, np.nan], [2.0, 0.0, 2.0]]))] * 2
        model = about(parameters={})
        fitted: Any = about(
            converged=converged, pieces=pieces, sigma=np.ones((1, 2)), experiment=about(model=model),
            unknowns=[], estimate=[],
        )  # fmt: skip
        return _Candidate("", fitted, cast(Any, about(good=good)))

    order = [
        candidate(True, True, 1.0), candidate(True, True, 2.0), candidate(True, False, 0.1),
        candidate(True, False, 0.2), candidate(False, True, 0.01), candidate(False, False, 0.02),
    ]  # fmt: skip
    for i, j in combinations(range(len(order)), 2):
        assert order[i].rank < order[j].rank
    assert [c.good for c in order] == [True, True, False, False, False, False]
    # the logarithm of each output's rms, times its samples
    assert order[0].rank[2] == pytest.approx(4 * np.log(1.0) + 6 * np.log(np.sqrt(8 / 3)))


@pytest.mark.parametrize(("least", "told"), [(-0.04, False), (-0.06, True)])
def test_given_a_fall_along_a_profile_then_it_is_told_from_a_twentieth_on(least: float, told: bool) -> None:
    profile = Profile("k", "", 1.0, [0.9, 1.0, 1.1], [least, 0.0, 3.0], 0.8, 1.2, False, False)
    assert ("k = 0.9" in profile.better()) == told


@pytest.mark.parametrize(("length", "pieces"), [(0.5, 2), (1.0, 4), (2.0, 8), (3.1, 12)])
def test_given_an_orbit_of_several_turns_then_it_is_sought_in_four_pieces_a_turn(
    length: float, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def periodic_orbit(*_: Any, segments: int, along: np.ndarray, **__: Any) -> Any:
        asked.append(segments)
        places = (10 + 20 * length * np.arange(segments) / segments) % 1000
        assert along[0] == pytest.approx(places)
        return about(converged=False)

    monkeypatch.setattr(orbits, "periodic_orbit", periodic_orbit)
    states = np.arange(100.0)[None]
    subject: Any = about(states=states, dt=0.1, origin=0.0, base=2.0, forced=True)
    orbit: Any = about(start=10, period=20.0 * length)
    orbits._closed(subject, None, orbit)  # type: ignore[arg-type]
    assert asked == [pieces]


@pytest.mark.parametrize("inputs", ["hold", "linear"])
def test_given_inputs_that_were_held_then_smooth_ones_act_half_a_sample_earlier(inputs: str) -> None:
    start = Start("test", np.zeros((1, 1)), sensors=np.array([[1.0, 2.0, 0.1, 0.2, 5.0, 6.0]]))
    fitted: Any = about(
        as_start=lambda: start,
        experiment=about(conditions=about(inputs=inputs, delays=("v",)), model=about(outputs=["x", "v"])),
        pieces=[about(run=about(dt=0.4))],
    )
    moved = _later(fitted).sensors
    assert moved is not None
    assert moved[0] == pytest.approx([1.0, 2.0, 0.1, 0.4 if inputs == "hold" else 0.2, 5.0, 6.0])


def test_given_windows_then_those_of_the_whole_record_are_fitted_to_the_end_and_others_loosely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model.from_equations({"x": "-k*x"}, {"k": {"guess": 0.5}})
    row = 2.0 * np.exp(-0.04 * np.arange(200.0)) + 0.01 * np.random.default_rng(1).standard_normal(200)
    experiment = Experiment(model, Record.from_arrays(10.0, {"x": row}))
    asked: list[tuple[int, bool, float, int]] = []
    minimise = windows.minimise

    def watched(problem: Any, here: Any, tolerance: float, most: int, **given: Any) -> Any:
        asked.append((len(problem.stretches), given.get("initial_only", False), tolerance, most))
        return minimise(problem, here, tolerance, most, **given)

    monkeypatch.setattr(windows, "minimise", watched)
    paths = [row[None]]
    problem = problem_of(experiment)
    levels = windows.windows(problem, start_point(experiment, experiment.guesses(), paths), paths)
    assert [level.share for level in levels] == [0.05, 0.15, 0.4, 1.0]
    states, fits = asked[::2], asked[1::2]
    assert all(only for _, only, _, _ in states) and not any(only for _, only, _, _ in fits)
    assert [count for count, *_ in fits] == [count for count, *_ in states] == [20, 7, 2, 1]
    assert [tolerance for _, _, tolerance, _ in fits] == [1e-3, 1e-3, 1e-3, 1e-6]
    assert fits[-1][3] == 60 and all(most < 60 for *_, most in fits[:-1])
    for level in levels:  # joined again, the windows cover the record
        assert level.states[0].shape == (1, 200) and np.isfinite(level.states[0]).all()
    values = levels[-1].descent.evaluation.point.values
    assert values[0, 0] == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize("late", [3, 100])
def test_given_long_stretches_then_colour_is_looked_for_over_forty_lags_and_over_a_25th(late: int) -> None:
    rng = np.random.default_rng(late)
    row = rng.standard_normal(4000 + late)
    row = row[late:] + 0.2 * row[:-late]
    parts = [row[:1500][None], row[1500:][None]]
    found = evidence(parts, parts, [np.array([1.0])] * 2)
    near, far = (white_chance([part[0] for part in parts], lags) for lags in (40, 160))
    assert (near < far) == (late == 3) and found.whiteness == min(near, far) < 1e-3
    assert found.ratio == pytest.approx(1.0, abs=0.06) and found.samples == 4000


# other numbers that follow a record as well


def held_open(estimate: float, error: float, samples: int) -> Any:
    """A fit of which the first unknown is open beside the second, and known to ``error``."""
    rho = 0.995  # variance 100 times that with the other known
    covariance = np.array([[error**2, rho * error], [rho * error, 1.0]])
    return about(
        estimate=np.array([estimate, 1.0]), information=np.linalg.inv(covariance),
        unknowns=[about(kind="parameter", record=-1)] * 2, pieces=[about(residuals=np.zeros((1, samples)))],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("error", "samples", "tried"),
    [
        (0.5, 900, [-4.0, -2.32, -2.0, 2.0, 3.28, 8.0]),  # four errors are 2
        (1e-3, 900, [-0.004, 0.004, -4.0, -2.32, -1.28, 1.52, 3.28, 8.0]),
        (1e-3, 30_000, [-0.004, 0.004, -4.0, 8.0]),  # of a long record the longest steps alone
    ],
)
def test_given_an_open_unknown_then_steps_by_shares_of_it_or_four_errors_are_tried(
    error: float, samples: int, tried: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def held_at(_: Any, held: int, change: float, __: Any) -> tuple[float, Any]:
        asked.append(change)
        rise = rises.get(round(change, 6), np.inf)
        return rise, None if rise == np.inf else round(change, 6)

    monkeypatch.setattr(rivals, "_held_at", held_at)
    monkeypatch.setattr(rivals, "_described", lambda *given: given[1:])
    fitted = held_open(8.0, error, samples)
    rises: dict[float, float] = {}
    assert rivals.rival(fitted) is None and asked == pytest.approx(tried)
    rises = {tried[-1]: 2.0, tried[-2]: 1.0}
    other, held, open_, rise = cast(Any, rivals.rival(fitted))
    assert (other, held, rise) == (tried[-2], 0, 1.0) and open_.tolist() == [True, True]
    if error < 0.1:  # so near only a fall counts
        rises = {tried[0]: -0.5, tried[1]: 0.5}
        assert rivals.rival(fitted) is None
        rises = {tried[0]: -1.5, tried[1]: -3.0}
        other, held, open_, rise = cast(Any, rivals.rival(fitted))
        assert (other, held, rise) == (tried[1], 0, -3.0) and open_.tolist() == [True, True]
    asked.clear()
    fitted.information = np.diag([1.0, 2.0])
    assert rivals.rival(fitted) is None and not asked


@pytest.mark.parametrize(
    ("rise", "converges", "kept", "looks"),
    [(1.0, True, True, [6]), (1.0, False, True, [6, 60]), (1e5, False, None, [6]), (20.0, True, False, [6])],
)
def test_given_other_numbers_then_they_are_a_rival_if_the_rise_is_no_choice_and_less_than_promised(
    rise: float, converges: bool, kept: bool | None, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two log 900 and 8 are 21.6; a change by five errors promises 25, of which a third must be there."""
    asked: list[int] = []
    moved: list[np.ndarray] = []

    def held_fit(_: Any, __: int, there: np.ndarray, ___: Any, iterations: int) -> Any:
        asked.append(iterations)
        moved.append(there)
        return about(converged=converges, defect=defect)

    defect: float | None = None
    monkeypatch.setattr(rivals, "_fails_on_an_excerpt", lambda *_: False)
    monkeypatch.setattr(rivals, "_held_fit", held_fit)
    monkeypatch.setattr(rivals, "_rise", lambda *_: rise)
    fitted = held_open(8.0, 0.5, 900)
    found, other = rivals._held_at(fitted, 0, 2.5, SILENT)
    assert asked == looks and (other is not None) == bool(kept)
    assert found == (np.inf if kept is None else rise)
    for there in moved:  # the other unknown follows the covariance
        assert there == pytest.approx([10.5, 1.0 + 2.5 * 0.995 * 0.5 / 0.25])
    for edge, rival in ((8.3, True), (8.4, False)):
        rise = edge
        assert (rivals._held_at(fitted, 0, 2.5, SILENT)[1] is not None) == rival
    rise = 1.0
    for edge, rival in ((0.0099, True), (0.0101, False)):  # a path off its equations is no motion
        defect = edge
        assert (rivals._held_at(fitted, 0, 2.5, SILENT)[1] is not None) == rival
    monkeypatch.setattr(rivals, "_fails_on_an_excerpt", lambda *_: True)
    assert rivals._held_at(fitted, 0, 2.5, SILENT) == (np.inf, None)


# verdicts


def springs(length: float, time: float) -> tuple[Model, list[Record]]:
    """Two driven records, the first with a gap, of a spring that hardens; and a model without that."""
    rate, count = 8.0, 480
    records = []
    for number, first in enumerate((2.0, 9.0)):
        times = first + np.arange(count) / rate

        def rates(t: float, z: np.ndarray) -> list[float]:
            return [z[1], -0.3 * z[1] - 1.5 * z[0] - 0.15 * z[0] ** 3 + 1.2 * np.cos(1.1 * t)]

        clean = solve_ivp(rates, (times[0], times[-1]), [0.4, -0.2], t_eval=times, rtol=1e-9, atol=1e-11).y
        x, v = clean + 0.01 * np.random.default_rng(number).standard_normal(clean.shape)
        one = Record.from_arrays(
            rate / time, {"x": length * x, "v": length / time * v}, drive_time=first * time
        )
        if number == 0:
            lost = (np.arange(count) > 200) & (np.arange(count) < 230)
            one = replace(
                one, channels={n: Channel(np.where(lost, np.nan, c.data)) for n, c in one.channels.items()}
            )
        records.append(one)
    force = f"{1.2 * length / time**2!r}*cos({1.1 / time!r}*t)"
    free = {"c": {"guess": 0.36 / time}, "k": {"guess": 1.8 / time**2}}
    return Model.from_equations({"x": "v", "v": f"-c*v - k*x + {force}"}, free), records


def wordings(result: Identification) -> list[str]:
    """The sentences without the numbers in them."""
    return ["".join(c for c in words if not c.isdigit()) for words in result.reasons]


def test_given_a_model_that_lacks_a_term_then_verdict_reasons_and_errors_are_the_same_in_any_unit() -> None:
    length, time = 1e-6, 1e-3
    here = identify(*springs(1.0, 1.0), "weak")
    there = identify(*springs(length, time), "weak")
    assert here.verdict == there.verdict and here.verdict in ("close", "misses")
    assert any("x^3" in words for words in here.reasons)
    assert [words.split("(")[0] for words in wordings(here)][:3] == [
        words.split("(")[0] for words in wordings(there)
    ][:3]
    assert here.extra["errors"] == there.extra["errors"]
    for name, factor in {"c": 1 / time, "k": 1 / time**2}.items():
        a, b = here.parameters[name], there.parameters[name]
        assert abs(b.value / factor - a.value) < 0.2 * a.stderr
        assert b.stderr / factor == pytest.approx(a.stderr, rel=0.1)
    assert there.residual.chi2 == pytest.approx(here.residual.chi2, rel=1e-3)
    for name, unit in {"x": length, "v": length / time}.items():
        assert there.residual.rms[name] / unit == pytest.approx(here.residual.rms[name], rel=1e-3)
