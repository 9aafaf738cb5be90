"""Decisions at the end of a search, and what sensors make of a motion: each set up by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.progress import SILENT
from analysis.estimate import profile
from analysis.estimate.finish import held_out, input_reading
from analysis.estimate.path import details, iteration
from analysis.estimate.path.iteration import _Iteration, _Proposal
from analysis.estimate.shooting import method as shooting_method
from analysis.estimate.shooting.problem import Problem
from analysis.estimate.shooting.run import Motion


def searching(damping: float, soft: bool, monkeypatch: pytest.MonkeyPatch, sizes: list[float]) -> _Iteration:
    """An iteration that proposes steps of these sizes, none of which lowers the merit."""
    problem: Any = SimpleNamespace(soft=soft, unknowns=[], linearise=lambda: None, n=1, accepted=None)
    found = _Iteration(problem, np.array([0.1 if soft else 0.0]), damping=damping)
    proposals = iter(sizes)
    monkeypatch.setattr(_Iteration, "_propose", lambda _: _Proposal(np.zeros(1), 1.0, 0.0, next(proposals)))
    monkeypatch.setattr(_Iteration, "_take", lambda *_: (0.0, []))
    return found


def test_given_steps_that_never_help_then_the_search_ends_once_the_damping_is_at_its_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = searching(0.0, False, monkeypatch, 40 * [5.0])
    outcome = search.run(40, SILENT)
    assert not outcome.converged and outcome.message == "No step lowers the misfit."
    # 0, then 1e-3 times 1, 10, ... until it lies above 1e6
    assert len(outcome.history) == 12 and search.damping == pytest.approx(1e7)


def test_given_equations_that_are_still_loose_then_they_are_bound_where_no_step_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = searching(1e7, True, monkeypatch, [5.0, 5.0])
    outcome = search.run(2, SILENT)
    assert not outcome.message and [step["slack"] for step in outcome.history] == [0.1, 0.0]
    assert search.damping == iteration._FIRST_DAMPING and not search.slack.any()


@pytest.mark.parametrize(("slow", "size", "ends"), [(1, 0.9, True), (1, 1.1, False), (0, 0.9, False)])
def test_given_kinks_then_a_step_below_one_standard_error_that_does_not_help_ends_the_search(
    monkeypatch: pytest.MonkeyPatch, slow: int, size: float, ends: bool
) -> None:
    search = searching(0.0, False, monkeypatch, [size])
    search.slow = slow
    outcome = search.run(1, SILENT)
    assert outcome.converged == ends and ("kinks" in outcome.message) == ends


def test_given_a_path_then_its_details_are_counted_in_the_noise_of_the_inputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n, q, m = 2, 1, 2
    asked: dict[str, Any] = {}

    def backward(
        carried: Any, seen: Any, unit: Any, S: Any, M: Any, K: Any, s: Any, E: Any, dX: Any, L: Any
    ) -> None:
        assert not M[..., -1].any() and not E[..., -1].any() and M[..., 0].all()
        dX[:] = np.arange(12.0).reshape(4, 3) * (1 + int(np.flatnonzero(unit)[0]))

    def information(carried: Any, seen: Any, R: Any, trifle: np.ndarray) -> np.ndarray:
        asked["trifle"] = trifle
        return np.arange(16.0).reshape(4, 4)

    monkeypatch.setattr(details.solver, "backward", backward)
    monkeypatch.setattr(details.solver, "initial_information", information)
    work = SimpleNamespace(
        R=np.array([[0.1], [np.nan], [0.3]]), M=np.ones((2, 4, 3)), E=np.ones((2, 4, 3)),
        D=np.full((3, 1, 2), 7.0),
        seen=np.ones((3, 1, 4)), dX=np.zeros((4, 3)), carried=None, S=None, K=None, s=None, L=None,
    )  # fmt: skip
    problem: Any = SimpleNamespace(
        segments=[SimpleNamespace(noise_of_inputs=np.array([0.5, 0.0, 9.0]), record=0)], work=[work], n=n,
        q=q, m=m, unknowns=Columns([1, 0]), free=[0, 1],
        input_errors=[np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])], scale=np.array([10.0, 1000.0]),
        eliminate=lambda slack: None,
    )  # fmt: skip
    (found,) = details.segment_details(problem)
    assert asked["trifle"] == pytest.approx([1e-14, 1e-10, 0.25, 0.0])
    moved = np.arange(12.0).reshape(4, 3)
    for unknown, place in ((1, 0), (0, 1)):
        expected = 7.0 + moved.sum(axis=0) * (1 + place)
        expected[1] = 0.0  # where nothing was measured
        assert found.jacobian[0, :, unknown] == pytest.approx(expected)
        assert found.input_jacobian[0, :, unknown] == pytest.approx(moved[2] * (1 + place) / 0.5)
        assert not found.input_jacobian[1].any()  # an input without noise does not move
        assert found.initial_slope[:, unknown] == pytest.approx(moved[:2, 0] * (1 + place))
    assert found.input_residuals == pytest.approx(np.array([[-2.0, -4.0, -6.0], [0.0, 0.0, 0.0]]))
    assert found.initial_information == pytest.approx(np.array([[0.0, 1.0], [4.0, 5.0]]))


class Columns(list[int]):
    """Two unknowns that a record has in this order."""

    def columns(self, record: int) -> np.ndarray:
        return np.array(self)


def descent(value: float, good: bool | None = None) -> Any:
    point = SimpleNamespace(values=np.array([[value, 0.5]]))
    motion = SimpleNamespace(states=np.full((1, 4), value))
    return SimpleNamespace(evaluation=SimpleNamespace(point=point, motions=[motion]), converged=value > 1.5)


@pytest.mark.parametrize(
    ("judged", "windowed", "engine"),
    [(None, False, "shooting"), (None, True, "path"), (False, True, "path"), (True, True, "shooting")],
)
def test_given_a_whole_motion_that_is_good_then_it_is_the_start_and_windows_are_not(
    monkeypatch: pytest.MonkeyPatch, judged: bool | None, windowed: bool, engine: str
) -> None:
    monkeypatch.setattr(shooting_method, "stretches_of", lambda _: [(0, 1, 5)])
    model = SimpleNamespace(parameters=("k",))
    experiment: Any = SimpleNamespace(model=model, start_states=lambda values: [np.zeros((1, 6))])
    windows = SimpleNamespace(descent=descent(2.0), states=[np.full((1, 4), 2.0)])
    search: Any = SimpleNamespace(
        best=descent(1.0), judged=None if judged is None else SimpleNamespace(good=judged),
        windowed=windows if windowed else None, iterations=3,
        problem=SimpleNamespace(evaluations=4), history=[],
        trials=[SimpleNamespace(words="guess")],
    )  # fmt: skip
    start = shooting_method.start_of(experiment, search, "output-error")
    value = 1.0 if engine == "shooting" else 2.0
    assert start.engine == engine and start.converged == (value > 1.5)
    assert start.values.tolist() == [[value]]
    assert start.sensors is not None and start.sensors.tolist() == [[0.5]]
    assert np.array(start.states[0]).tolist() == [[0.0, *4 * [value], 0.0]]


def test_given_sensors_with_offset_delay_and_drift_then_the_motion_and_its_slopes_are_the_closed_form() -> (
    None
):
    t: Any = 5.0 + 0.02 * np.arange(400.0)
    k, q = 1, 2
    problem: Any = SimpleNamespace(
        parameters=k, outputs=q, states=1, free=[0, 1, 3, 4, 6]  # k, offset 0, both delays, drift 1
    )  # fmt: skip
    values = np.array([9.0, 0.3, -0.2, 0.05, 0.0, 0.1, 0.4])
    slopes = np.array(
        [[np.cos(3 * t), np.sin(t)], [np.sin(2 * t), np.cos(t)]]
    )  # by parameter and first state
    motion = Motion(np.zeros((1, 400)), np.array([np.sin(2 * t), np.cos(t)]), slopes, t)
    stretch: Any = SimpleNamespace(times=t, origin=4.0)
    found = Problem._sensed(problem, stretch, values, motion, np.array([0]))
    late = t - 0.05
    middle = slice(10, -10)
    assert found.outputs[0, middle] == pytest.approx(
        (0.3 + np.sin(2 * late) + 0.1 * (t - 4))[middle], abs=1e-6
    )
    assert found.outputs[1] == pytest.approx(-0.2 + np.cos(t) + 0.4 * (t - 4))
    none = np.zeros(400)
    expected = [
        [np.cos(3 * late), np.ones(400), -2 * np.cos(2 * late), none, none, np.sin(late)],
        [np.sin(2 * t), none, none, np.sin(t), t - 4, np.cos(t)],
    ]
    assert found.slopes[:, :, middle] == pytest.approx(np.array(expected)[:, :, middle], abs=1e-4)
    on_time = replace(motion)
    problem.free = [0]
    same = Problem._sensed(problem, stretch, np.zeros(7), on_time, np.array([0]))
    assert same.outputs == pytest.approx(motion.outputs) and same.slopes == pytest.approx(slopes)
    fixed = Problem._sensed(problem, stretch, values, motion, np.array([0]))  # a delay that is known
    assert fixed.outputs[0, middle] == pytest.approx(found.outputs[0, middle])
    problem.free = [0, 3]
    first = Problem._sensed(
        problem, stretch, np.zeros(7), motion, np.array([0])
    )  # one that is not, from zero on
    assert first.slopes[0, 1] == pytest.approx(-2 * np.cos(2 * t), abs=1e-4)


@pytest.mark.parametrize(
    ("costs", "taken", "fits"),
    [
        ([100.0], 100.0, 1),  # the motion was not lost: the second fit is not made
        ([300.0, 120.0], 120.0, 2),
        ([300.0, 400.0], 300.0, 2),
        ([None, 130.0], 130.0, 2),
        ([None, None], None, 2),
    ],
)
def test_given_a_motion_that_is_lost_between_readings_then_the_better_of_two_fits_counts(
    monkeypatch: pytest.MonkeyPatch, costs: list[float | None], taken: float | None, fits: int
) -> None:
    made: list[str] = []

    def fit(experiment: Any, start: Any, progress: Any) -> Any:
        made.append(start)
        cost = costs[len(made) - 1]
        if cost is None:
            raise DataError("lost")
        return SimpleNamespace(converged=True, names=("k",), estimate=np.ones(1), chi2_at=lambda sigma: cost)

    monkeypatch.setattr(input_reading, "fit", fit)
    monkeypatch.setattr(input_reading, "_later", lambda _: "later")
    monkeypatch.setattr(input_reading, "replace", lambda start, engine: f"{start} by {engine}")
    given: Any = SimpleNamespace(conditions=SimpleNamespace(inputs="auto", denoise=True))
    fitted: Any = SimpleNamespace(
        experiment=SimpleNamespace(
            conditions=SimpleNamespace(inputs="hold"), with_inputs=lambda *_: "smooth"
        ),
        as_start=lambda: "as is", names=("k",), sigma=None, chi2_at=lambda sigma: 95.0,
    )  # fmt: skip
    found = input_reading._smooth(given, fitted, SILENT)
    assert (None if found is None else found.chi2_at(np.ones(1))) == taken
    assert made == ["as is", "later by path"][:fits]


def test_given_defects_then_the_merit_is_their_chi_square_over_the_slack_and_without_it_a_penalty() -> None:
    defects = [np.array([[0.1, -0.4], [0.3, 0.0]]), np.array([[0.0, 0.2]])]
    loose = iteration._Merit(np.array([0.1, 0.2]), np.array([1.0, 2.0]), 3.0)
    assert loose(defects) == pytest.approx(0.5 * (1 + 4 + 9 + 1))
    exact = iteration._Merit(np.zeros(2), np.array([1.0, 2.0]), 3.0)
    assert exact(defects) == pytest.approx(3.0 * (0.1 + 0.2 + 0.3 + 0.1))
    work = [SimpleNamespace(C=rows) for rows in defects]
    problem: Any = SimpleNamespace(work=work, scale=np.array([1.0, 2.0]))
    assert iteration._first_slack(problem) == pytest.approx(np.sqrt(np.array([0.10, 0.20]) / 3))
    followed = [SimpleNamespace(C=np.array([[0.1, 0.0, 0.4], [-0.1, 0.0, -0.4]]))]
    problem = SimpleNamespace(work=followed, scale=np.array([2.0, 30.0, 4.0]))
    assert iteration._first_slack(problem) == pytest.approx([0.1, 1.5, 0.4])
    problem.work = [SimpleNamespace(C=np.zeros((2, 3)))]
    assert not iteration._first_slack(problem).any()


def test_given_a_step_then_it_is_counted_in_standard_errors_or_in_the_rounding_of_the_unknown() -> None:
    information = np.diag([100.0, 4.0, 0.0])
    sizes = np.array([1.0, 1.0, 1e13])
    count = iteration._in_standard_errors
    assert count(np.array([0.03, -0.2, 0.0]), information, sizes) == pytest.approx(0.4)
    assert count(np.array([0.0, 0.0, 2.0]), information, sizes) == pytest.approx(2.0)  # of the rounding
    assert count(np.array([0.0, 0.0, 2.0]), information, np.array([1.0, 1.0, 0.0])) == 0.0  # without effect


@pytest.mark.parametrize(
    ("taken", "slack", "after"),
    [
        (1.0, [4.0, 8.0], [0.4, 0.8]),
        (0.5, [4.0, 8.0], [2.0, 4.0]),
        (1.0, [0.19, 0.3], [0.019, 0.03]),  # one still counts beside the noise
        (1.0, [0.19, 0.15], [0.0, 0.0]),
    ],
)
def test_given_a_step_then_the_equations_are_held_tighter_until_their_slack_is_lost_in_the_noise(
    taken: float, slack: list[float], after: list[float]
) -> None:
    spread = np.zeros(
        (2, 3, 4)
    )  # two nodes, two states and an input: rows of a square root of the covariance
    spread[:, 0, :2], spread[0, 1], spread[1, 1] = [1.2, 1.6], 1.0, [np.sqrt(2), 0, 0, np.sqrt(2)]
    problem: Any = SimpleNamespace(n=2, work=[SimpleNamespace(S=spread)], soft=True, accepted=1)
    search = _Iteration(problem, np.array(slack))
    search._tighten(taken)
    assert search.slack == pytest.approx(np.array(after))
    assert problem.soft == any(after)


@pytest.mark.parametrize(
    ("sizes", "takens", "changes", "settled", "steps", "remembered"),
    [
        ([0.09], [1.0], [0.01], True, 3, True),
        ([0.11], [1.0], [0.01], False, 3, True),
        ([0.09], [1.0], [0.03], False, 3, True),  # the noise is another one
        ([0.09], [0.3], [0.0], False, 3, False),  # after a short step it is not looked at
        ([0.09], [1.0], [0.06], False, 3, False),  # merits of before do not compare
        ([4.0, 1.9, 0.9], [1.0] * 3, [0.0] * 3, False, 3, True),  # each less than half of the one before
        ([4.0, 2.1, 1.2], [1.0] * 3, [0.0] * 3, False, 8, True),  # finer sub-steps, at most those of the flow
        ([0.4] * 6, [1.0] * 6, [0.0] * 6, True, 8, True),  # at kinks half a standard error is enough
        ([0.4] * 5, [1.0] * 5, [0.0] * 5, False, 8, True),
    ],
)
def test_given_steps_then_the_search_has_settled_once_they_and_the_noise_change_little(
    sizes: list[float], takens: list[float], changes: list[float], settled: bool, steps: int, remembered: bool
) -> None:
    left = iter(changes)
    problem: Any = SimpleNamespace(steps=3, fine=8, update_noise=lambda residuals: next(left))
    search = _Iteration(problem, np.zeros(1), recent=[1.0])
    answers = [search._settled(size, taken, []) for size, taken in zip(sizes, takens, strict=True)]
    assert answers == [False] * (len(sizes) - 1) + [settled]
    assert problem.steps == steps and bool(search.recent) == remembered


def held_out_parts(counts: list[int], length: float, again: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the last fifths are predicted with: the values that come out."""
    run = SimpleNamespace(times=3.0 + np.arange(200.0), outputs=np.arange(400.0).reshape(2, 200), inputs=())
    run.inputs = SimpleNamespace(count=0)
    pieces = [
        SimpleNamespace(
            run=run, record=i, first=7, stop=7 + count, times=10.0 + np.arange(float(count)),
            states=np.arange(float(count))[None],
        )
        for i, count in enumerate(counts)
    ]  # fmt: skip
    fitted: Any = SimpleNamespace(
        pieces=pieces, experiment=SimpleNamespace(model=SimpleNamespace(equations=SimpleNamespace())),
    )  # fmt: skip
    fitted.experiment.model.equations.functions_of_time = ()
    monkeypatch.setattr(held_out, "linearisations", lambda _, parts: parts * len(pieces) * [None])
    monkeypatch.setattr(held_out, "_step", lambda *_: (np.ones(2), length))
    monkeypatch.setattr(held_out, "_moved", lambda *_: "moved")
    monkeypatch.setattr(held_out, "_again", lambda _: again)
    monkeypatch.setattr(held_out, "_predicted", lambda fitted, last, values: (last, values))
    return held_out.held_out(fitted)


def test_given_records_then_their_last_fifths_are_set_aside_with_the_time_of_their_first_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last, values = held_out_parts([100, 150], 1.0, "again", monkeypatch)
    assert values == "moved"
    for segment, count in zip(last, (100, 150), strict=True):
        first = count // 5 * 4
        assert segment.times.tolist() == (10.0 + np.arange(first, count)).tolist()
        assert segment.outputs[0].tolist() == list(range(7 + first, 7 + count))
        assert segment.outputs[1, 0] == 207 + first and segment.states[0, 0] == first
        assert segment.origin == 3.0 and segment.inputs is None
    assert last[1].record == 1
    assert held_out_parts([100, 99], 1.0, "again", monkeypatch) is not None
    assert held_out_parts([100, 94], 1.0, "again", monkeypatch) is None  # a fifth of 19 samples


@pytest.mark.parametrize(
    ("length", "again", "values"),
    [(7.9, "again", "moved"), (8.1, "again", "again"), (8.1, None, "moved")],
)
def test_given_a_long_step_then_the_four_fifths_are_fitted_again(
    monkeypatch: pytest.MonkeyPatch, length: float, again: str | None, values: str
) -> None:
    assert held_out_parts([100], length, again, monkeypatch)[1] == values


def test_given_a_step_then_it_is_that_of_four_fifths_and_ends_on_the_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parts = [SimpleNamespace(regression=lambda i=i: i) for i in range(10)]
    taken: list[int] = []

    def joined(rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        taken.extend(rows)
        return np.diag([4.0, 2.0]), np.array([2.0, 6.0])

    monkeypatch.setattr(held_out, "joined", joined)
    step, length = held_out._step(None, parts)  # type: ignore[arg-type]
    assert taken == [0, 1, 2, 3, 5, 6, 7, 8]
    assert step == pytest.approx([0.5, 3.0]) and length == pytest.approx(1.0 + 18.0)
    unknowns = [
        SimpleNamespace(record=-1, index=0, lower=-np.inf, upper=np.inf),
        SimpleNamespace(record=1, index=2, lower=0.0, upper=7.0),
    ]
    fitted: Any = SimpleNamespace(values=np.array([[1.0, 2.0, 3.0], [1.0, 5.0, 6.0]]), unknowns=unknowns)
    moved = held_out._moved(fitted, step)
    assert moved.tolist() == [[1.5, 2.0, 3.0], [1.5, 5.0, 7.0]]


def test_given_residuals_then_the_prediction_is_their_rms_beside_the_spread_of_the_whole_records() -> None:
    rows = np.array([[1.0, 5.0, np.nan, 3.0, 7.0, 99.0], 6 * [2.0], 6 * [np.nan]])
    pieces = [
        SimpleNamespace(run=SimpleNamespace(outputs=rows), first=0, stop=3),
        SimpleNamespace(run=SimpleNamespace(outputs=rows), first=3, stop=5),
    ]
    outputs = ("x", "still", "unseen")
    fitted: Any = SimpleNamespace(
        pieces=pieces, experiment=SimpleNamespace(model=SimpleNamespace(outputs=outputs))
    )
    found = held_out._prediction(fitted, np.array([[0.3, np.nan, -0.4], 3 * [0.1], 3 * [np.nan]]))
    assert set(found.rms) == set(found.r2) == {"x"}
    assert found.rms["x"] == pytest.approx(np.sqrt(0.125))
    assert found.r2["x"] == pytest.approx(1 - 0.125 / 5.0)  # of 1, 5, 3 and 7


@pytest.mark.parametrize(
    ("root", "end", "most"),
    [
        (lambda x: 2.0 * x, 0.98, 1),  # straight: the first guess is right
        (lambda x: x**2, 1.4, 6),
        (lambda x: 1.2 * x**12, (1.96 / 1.2) ** (1 / 12), 12),  # a wall: straight lines alone would creep
        (lambda x: 3.0 * x**0.1, (1.96 / 3.0) ** 10, 20),
        (lambda x: x if x < 1.3 else np.nan, 1.3, 40),  # beyond there is no motion
    ],
)
@pytest.mark.parametrize("unit", [1.0, -1e-9])
def test_given_a_rise_then_its_crossing_is_found_from_both_sides_in_few_fits(
    root: Any, end: float, most: int, unit: float
) -> None:
    asked: list[float] = []

    def root_at(value: float) -> float:
        asked.append(value / unit)
        return float(root(value / unit))

    inside, outside = 0.0, 1.5
    high = float(root(outside))
    found = profile._crossing(root_at, inside, 0.0, outside * unit, high if np.isfinite(high) else 3.0)
    if end == 1.3:
        assert 1.29 < max(x for x in asked if x < 1.3) < 1.3
    else:
        assert float(root(found / unit)) == pytest.approx(1.96, abs=0.03)
    assert len(asked) <= most
