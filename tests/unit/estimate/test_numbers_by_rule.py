"""Numbers, bands and words of the estimates beside the rule that they follow, worked out another way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError
from analysis.base.record import Excitation, Record
from analysis.estimate.balance.method import HarmonicBalance, _described, _phase_unknown
from analysis.estimate.balance.orbits import choose_confirmed
from analysis.estimate.balance.problem import Balance
from analysis.estimate.discovery.quadratic import Quadratic
from analysis.estimate.evaluation import Point
from analysis.estimate.finish import laws, running_on
from analysis.estimate.finish.linearised import Linearisation
from analysis.estimate.finish.smooth_curves import _with_band
from analysis.estimate.finish.terms import candidate_terms
from analysis.estimate.functions.beam import other_beams
from analysis.estimate.functions.energetic import _combination, _curve, _inside, _spread
from analysis.estimate.functions.energetic.ends import _ends, _Known
from analysis.estimate.functions.energetic.recovery import BEYOND
from analysis.estimate.functions.energetic.shooting import shooter
from analysis.estimate.functions.energetic.splines import Grid, KnownValue
from analysis.estimate.methods import identify
from analysis.estimate.path.substeps import refine_substeps
from analysis.estimate.shooting.rests import rests
from analysis.estimate.shooting.run import Motion
from analysis.experiment import Conditions, Experiment
from analysis.model import Model


def about(**given: Any) -> Any:
    return SimpleNamespace(**given)


# terms that a model may lack


def test_given_a_candidate_term_then_its_values_are_those_of_its_text_in_the_model_language() -> None:
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - x + w + f", "w": "x*v - w"}, {"c": 0.3}, inputs={"f": "measured"}
    )
    rng = np.random.default_rng(5)
    states, inputs = rng.uniform(-2.0, 2.0, (3, 40)), rng.uniform(-1.0, 1.0, (1, 40))
    terms = candidate_terms(model, np.array([1.0, 3.0, 1.0]))
    assert {term.equation for term in terms} == {1, 2}  # x' = v holds by definition
    for term in terms:
        saturating = "{s}" in term.text
        text = term.text.format(s=term.scale) if saturating else term.text
        own = Model.from_equations({"x": "0*x", "v": "0*v", "w": f"0*w + {text}"}, inputs={"f": "measured"})
        rates = np.empty((3, 40))
        own.kernels().rhs_many(np.zeros(40), states, inputs, np.empty(0), rates)
        values = np.asarray(term.values(states, inputs))
        if term.name.startswith("sign"):  # dry friction; smooth at a twentieth of the speed when it is fitted
            assert np.array_equal(values, np.sign(states[1])) and term.scale == pytest.approx(0.15)
        else:
            np.testing.assert_allclose(values, rates[2], rtol=1e-12, err_msg=term.name)
        assert term.of_input == (term.text == "f")
        assert term.apart == (saturating and not term.name.startswith("sign"))
    scales = {term.scale for term in terms if term.apart}
    assert scales == {1.5}  # half of the speed's rms
    odd = {t.name for t in terms if t.common and t.equation == 1}
    assert {"x|x|", "v|v|", "w|w|", "x^3", "v^3", "w^3", "x^5", "w^5", "sign(v)"} == odd


# functions of the energy balance


def covariance(size: int) -> np.ndarray:
    root = np.random.default_rng(size).standard_normal((size, size))
    return np.asarray(0.01 * root @ root.T)


def test_given_coefficients_then_curves_and_numbers_have_the_errors_of_their_covariance() -> None:
    known, theta = covariance(5), np.arange(1.0, 6.0)
    fit, where = about(theta=theta, covariance=known), slice(1, 4)
    rows = np.array([[1.0, 0.0, 0.0], [0.5, -0.2, 2.0]])
    block = known[1:4, 1:4]
    expected = [float(np.sqrt(row @ block @ row)) for row in rows]
    assert max(expected) < 1.0
    assert _spread(rows, block) == pytest.approx(expected)
    curve, spread = _curve(np.array([0.0, 1.0]), rows, fit, where, "x", "H")
    assert spread == pytest.approx(expected)
    middle = [2.0, 0.5 * 2 - 0.2 * 3 + 2 * 4]
    assert curve.y == pytest.approx(middle)
    assert np.subtract(curve.upper, curve.y) == pytest.approx(1.959964 * np.array(expected), rel=1e-6)
    assert np.subtract(curve.y, curve.lower) == pytest.approx(1.959964 * np.array(expected), rel=1e-6)
    number = _combination(rows[1], fit, where)
    assert (number.value, number.stderr) == (pytest.approx(middle[1]), pytest.approx(expected[1]))
    y, width = _with_band(rows, theta[1:4], block)
    assert y == pytest.approx(middle) and width == pytest.approx(1.959964 * np.array(expected), rel=1e-6)


def test_given_a_grid_then_the_visited_range_lies_within_the_room_that_was_left_around_it() -> None:
    low, high = -2.0, 6.0
    room = BEYOND * (high - low)
    assert _inside(Grid(low - room, high + room, 4)) == pytest.approx([low, high])


@pytest.mark.parametrize("shape", [(7, 1), (6, 5)])
def test_given_splines_then_the_segments_and_their_derivatives_are_those_of_another_integrator(
    shape: tuple[int, int],
) -> None:
    rng = np.random.default_rng(2)
    c = 0.2 + 0.05 * rng.standard_normal(6)
    h = rng.standard_normal(shape) * 0.3
    model = Model.from_equations({"x": "v", "v": "-0.7*x - 0.1*v + 0.3*cos(1.1*t)"})
    times, starts, initial = np.linspace(0.0, 3.0, 16), np.array([0, 9]), np.array([[0.4, -0.3], [0.1, 0.5]])
    grids = Grid(0.0, 3.0, 3), Grid(-2.0, 2.0, shape[0] - 3), Grid(-2.0, 2.0, max(shape[1] - 3, 1))

    def basis(grid: Grid, at: float) -> np.ndarray:
        return np.asarray(grid.basis(np.array([at]))[0])

    def rates(t: float, z: np.ndarray, c: np.ndarray, h: np.ndarray) -> list[float]:
        damping = float(basis(grids[0], t) @ c)
        along = basis(grids[2], z[1]) if shape[1] > 1 else np.ones(1)
        force = float(basis(grids[1], z[0]) @ h @ along)
        return [z[1], -0.7 * z[0] - 0.1 * z[1] + 0.3 * np.cos(1.1 * t) - damping * z[1] - force]

    def run(initial: np.ndarray, c: np.ndarray, h: np.ndarray) -> np.ndarray:
        parts = []
        for first, last, begin in ((0, 9, initial[:, 0]), (9, 16, initial[:, 1])):
            t = times[first:last]
            found = solve_ivp(rates, (t[0], t[-1]), begin, t_eval=t, args=(c, h), rtol=1e-10, atol=1e-12)
            parts.append(found.y)
        return np.hstack(parts)

    count = 2 + c.size + h.size
    X, S = np.zeros((2, 16)), np.zeros((2, 16, count))
    described = [grid.row() for grid in grids]
    empty = np.zeros((0, 1, 4))
    steps, limit = 40, np.full(2, 10.0)
    done = shooter()(
        model.kernels().jac, np.empty(0), times, 0.0, 1.0, empty, starts, initial, described[0], c,
        described[1], described[2], h, steps, limit, True, X, S,
    )  # fmt: skip
    assert done
    np.testing.assert_allclose(X, run(initial, c, h), atol=3e-6)
    step = 1e-5

    def differences(change: Callable[[float], np.ndarray]) -> np.ndarray:
        return np.asarray((change(step) - change(-step)) / (2 * step))

    for i in range(c.size):
        one = np.eye(c.size)[i]
        expected = differences(lambda e, one=one: run(initial, c + e * one, h))  # type: ignore[misc]
        np.testing.assert_allclose(S[:, :, 2 + i], expected, atol=2e-5)
    for place in rng.choice(h.size, 6, replace=False):
        one = np.zeros(h.size)
        one[place] = 1.0
        expected = differences(lambda e, one=one: run(initial, c, h + e * one.reshape(shape)))  # type: ignore[misc]
        np.testing.assert_allclose(S[:, :, 2 + c.size + place], expected, atol=2e-5)
    for i in range(2):
        one = np.zeros((2, 2))
        one[i] = 1.0
        expected = differences(lambda e, one=one: run(initial + e * one, c, h))  # type: ignore[misc]
        np.testing.assert_allclose(S[:, :, i], expected, atol=2e-5)


def test_given_known_ends_then_values_and_slopes_are_taken_at_the_ends_alone() -> None:
    first, last = 1.0, 3.0
    known = tuple(
        KnownValue(at, derivative, value)
        for at, derivative, value in (
            (1.0 + 1e-6, 0, 5.0),
            (3.0 - 1e-6, 0, 7.0),
            (1.0, 1, 0.5),
            (3.0, 1, 0.25),
        )
    )
    found = _ends(known, first, last, 2.0, 4.0)
    assert (found.first, found.last, found.first_slope, found.last_slope) == (5.0, 7.0, 1.0, 1.0)
    off = (KnownValue(1.0 + 1e-3, 0, 5.0), *known[1:])
    with pytest.raises(DataError, match="both ends"):
        _ends(off, first, last, 2.0, 4.0)


def test_given_a_model_then_its_known_part_is_taken_apart_into_force_damping_and_potential() -> None:
    model = Model.from_equations({"x": "v", "v": "f - 0.4*v - 2.0*x - 0.6*x**3"}, inputs={"f": "measured"})
    times = np.linspace(1.0, 3.0, 21)
    inputs = np.sin(times)[None]
    known = _Known(model, times, inputs, 0.5)
    at = np.array([0.1, 0.77, 1.9])
    assert known.damping(at) == pytest.approx(0.4)
    assert known.force(at) == pytest.approx(np.sin(1.0 + at) - 2.0 * 0.5 - 0.6 * 0.125, abs=1e-5)

    def potential(x: float) -> float:  # of the restoring force over its value at the start
        return -(1.0 * x**2 + 0.15 * x**4) + (2.0 * 0.5 + 0.6 * 0.125) * x

    ends = about(first=0.5, last=2.0)
    assert known.potential(ends) == pytest.approx(potential(2.0) - potential(0.5), rel=1e-9)


# what the finish says and decides


@pytest.mark.parametrize(
    ("ratios", "said"),
    [([2.0, 3.0], "grows beyond it"), ([0.1, 0.4], "dies out"), ([0.1, 3.0], "leaves it"), ([1.0], "leaves")],
)
def test_given_sizes_after_the_record_then_the_sentence_says_how_the_model_leaves(
    ratios: list[float], said: str
) -> None:
    words = running_on._words("x", np.array(ratios))
    assert f"{said}" in words and f"from {len(ratios)} states" in words


def test_given_several_laws_that_would_do_then_the_one_that_costs_least_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model.from_equations({"x": "v", "v": "-c*v - x"}, {"c": {"guess": 0.2}})
    names = [t.name for t in candidate_terms(model, np.ones(2)) if t.common and t.equation == 1]
    rises = {name: 3.0 + i for i, name in enumerate(reversed(names))} | {"x^3": 0.2, names[0]: -1.0}
    moved = {name: {0: 2.0} for name in rises} | {"x^3": {}}  # one that moves nothing says nothing

    def exchanged(fitted: Any, scored: Any, j: int, t: int, term: Any, errors: Any) -> Any:
        return laws.OtherLaw(j, term, rises[term.name], moved[term.name])

    monkeypatch.setattr(laws, "_laws", lambda *_: [(0, 1, np.ones(4))])
    monkeypatch.setattr(laws, "_along", lambda motions, term: np.array([1.0, 1.0, 1.0, 0.8]))
    monkeypatch.setattr(laws, "_exchanged", exchanged)
    for name in ("tested", "state_sizes"):
        monkeypatch.setattr(laws, name, lambda *_: np.ones(2))
    fitted = cast(Any, about(experiment=about(model=model)))
    (found,) = laws.other_laws(fitted, cast(Any, about(linear=[], excerpts=[])), np.ones(1))
    assert found.term.name == names[0] and found.rise == -1.0
    rises[names[0]] = 1e6  # no longer as well
    (found,) = laws.other_laws(fitted, cast(Any, about(linear=[], excerpts=[])), np.ones(1))
    assert found.term.name == min((n for n in names if n != "x^3"), key=lambda n: rises[n])
    monkeypatch.setattr(laws, "_along", lambda motions, term: np.array([1.0, 1.0, 1.0, -9.0]))
    assert laws.other_laws(fitted, cast(Any, about(linear=[], excerpts=[])), np.ones(1)) == []


def test_given_sub_steps_then_they_are_halved_only_where_their_error_moves_an_unknown() -> None:
    """The error of the flow moves the unknown by the inverse of the information times its gradient."""
    # an error of the fourth order falls by 16 at each halving: beyond 1.6 standard errors one would not do
    for shift, steps in ((0.0, 4), (0.09, 4), (0.11, 8), (-0.11, 8), (1.59, 8), (1.61, 16), (-1.61, 16)):
        sigma = 0.5

        def eliminate(slack: Any, errors: list[np.ndarray], sigma: float = sigma) -> tuple[Any, Any]:
            return np.array([[sigma**-2]]), np.array([sigma**-2 * float(errors[0][0, 0])])

        coarse, finer = np.full((1, 1), 7.0), np.full((1, 1), 7.0 + shift * sigma)
        problem = about(
            fine=4, accepted=([coarse], None), n=1, sizes=np.ones(1), paths=None, values=None,
            evaluate=lambda paths, values, steps, finer=finer: ([finer], steps), eliminate=eliminate,
        )  # fmt: skip
        assert refine_substeps(problem) is (steps > 4)
        assert problem.fine == steps


def test_given_no_inputs_then_what_a_change_of_them_does_is_nothing_of_the_right_shape() -> None:
    stretch = about(inputs=None)
    part = about(stretch=stretch, N=7, n=2, q=3)
    pushes, shifts = Linearisation.changed_inputs(part, lambda row, dt: row, 1.0)
    assert pushes.shape == (6, 2, 1) and shifts.shape == (7, 3, 1)
    assert not pushes.any() and not shifts.any()


def test_given_a_law_in_the_place_of_another_then_the_other_numbers_follow_by_least_squares() -> None:
    """Of a linear regression: so much of another column that nothing of the first is left."""
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((60, 4))
    rows[:, 3] = rows[:, 0] + 0.2 * rng.standard_normal(60)  # the other law
    y = rows[:, :3] @ np.array([2.0, -1.0, 0.5]) + 0.1 * rng.standard_normal(60)
    known, other = rows[:, :3], rows[:, 3]
    inverse = np.linalg.inv(known.T @ known)
    estimate = inverse @ known.T @ y
    along = inverse @ known.T @ other  # of the unknowns, for one of the new column
    left = other - known @ along
    scored = about(
        along=along[:, None],
        information=np.array([[left @ left]]),
        score=np.array([left @ (y - known @ estimate)]),
    )
    unknowns = [about(kind="parameter"), about(kind="parameter"), about(kind="offset")]
    fitted = cast(Any, about(estimate=estimate, unknowns=unknowns))
    size = estimate[0] / along[0]  # of the new column that leaves nothing of the law
    there = inverse @ known.T @ (y - size * other)
    assert there[0] == pytest.approx(0.0, abs=1e-9)
    rise = np.sum((y - size * other - known @ there) ** 2) - np.sum((y - known @ estimate) ** 2)
    far = abs(there[1] - estimate[1])
    for error, moved in ((0.99 * far / laws._OTHER, {1: there[1]}), (1.01 * far / laws._OTHER, {})):
        found = laws._exchanged(fitted, cast(Any, scored), 0, 0, cast(Any, None), np.full(3, error))
        assert found is not None
        assert found.rise == pytest.approx(rise) and found.moved == pytest.approx(moved)
    scored.along[0, 0] = 0.0  # nothing of the law that is put out
    assert laws._exchanged(fitted, cast(Any, scored), 0, 0, cast(Any, None), np.ones(3)) is None


@pytest.mark.parametrize(
    ("reached", "last", "lost"), [(5, 1.0, False), (4, 1.0, True), (5, np.nan, True), (5, np.inf, True)]
)
def test_given_a_motion_then_it_is_lost_where_it_ended_early_or_is_no_number(
    reached: int, last: float, lost: bool
) -> None:
    outputs = np.ones((1, 5))
    outputs[0, -1] = last
    assert Motion(outputs, outputs, np.zeros((1, 0, 5)), reached).diverged is lost


def test_given_a_global_search_then_it_counts_its_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    from analysis.estimate.search import global_search

    seen = []
    objective = global_search.objective
    monkeypatch.setattr(global_search, "objective", lambda *given: seen.append(1) or objective(*given))
    model = Model.from_equations(
        {"x": "-a*x"}, {"a": {"guess": 1.0, "lower": 0.0, "upper": 3.0}}, initial={"x": 1.0}
    )
    record = Record.from_arrays(10.0, {"x": np.exp(-0.17 * np.arange(30.0))})
    for population, few in ((0, 10), (7, 7)):
        seen.clear()
        result = identify(model, record, "global", finish=False, generations=6, population=population)
        assert result.evaluations == len(seen) >= 6 * few
        assert result.parameters["a"].value == pytest.approx(1.7, abs=0.05)
        assert any("generations" in words for words in result.warnings)


# balance


def steady(samples: int, periods: int) -> tuple[Model, Record]:
    drive = 1.1

    def rate(t: float, z: np.ndarray) -> list[float]:
        return [z[1], -0.3 * z[1] - 1.5 * z[0] - 0.8 * z[0] ** 3 + 1.2 * np.cos(drive * t)]

    t = 2 * np.pi / drive / samples * np.arange(periods * samples + samples)
    z = solve_ivp(rate, (-60 * np.pi / drive, t[-1]), [0.4, -0.2], t_eval=t, rtol=1e-9, atol=1e-11).y
    z = z + 0.01 * np.random.default_rng(1).standard_normal(z.shape)
    model = Model.from_equations(
        {"x": "v", "v": f"-c*v - k*x - q*x**3 + 1.2*cos({drive}*t)"},
        {"c": {"guess": 0.4}, "k": {"guess": 1.2}, "q": {"guess": 1.0}},
    )
    excitation = Excitation(drive / (2 * np.pi), 1.2, 0.0)
    return model, Record.from_arrays(
        samples * drive / (2 * np.pi), {"x": z[0], "v": z[1]}, excitation=excitation
    )


def test_given_the_thesis_method_then_it_is_one_ordinary_least_squares_of_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, record = steady(60, 4)
    made: list[Balance] = []
    whole = Balance.__init__

    def kept(self: Balance, *given: Any) -> None:
        whole(self, *given)
        made.append(self)

    monkeypatch.setattr(Balance, "__init__", kept)
    result = identify(model, record, "balance", finish=False, plain=True, orbits=(1,), starts=(60,))
    (problem,) = made
    residual, jacobian = problem.piece(0, problem.start)
    step, squares, *_ = np.linalg.lstsq(jacobian, -residual, rcond=None)
    found = np.array([result.parameters[n].value for n in model.free])
    assert found == pytest.approx([0.4, 1.2, 1.0] + step, rel=1e-6)
    variance = squares[0] / (len(residual) - 3)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(jacobian.T @ jacobian)))
    assert [result.parameters[n].stderr for n in model.free] == pytest.approx(errors.tolist(), rel=1e-5)


def test_given_an_orbit_then_its_period_is_told_in_the_records_time() -> None:
    orbit = about(start=12, period=40.0, multiple=2, closure=0.01, count=3)
    told = _described(orbit, cast(Any, about(record=about(dt=0.25))))
    assert told == {"start": 12, "period": 10.0, "multiple": 2, "closure": 0.01, "count": 3}


def test_given_orbits_then_unconfirmed_ones_are_taken_only_where_that_was_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from analysis.estimate.balance import orbits

    asked: list[int] = []
    good, bad = (about(confirmed=c, doubt="" if c else "far", multipliers=[2.0]) for c in (True, False))
    monkeypatch.setattr(orbits, "_ranked", lambda found: list(found))
    monkeypatch.setattr(orbits, "_views", lambda *_: [])
    monkeypatch.setattr(orbits, "_confirmed", lambda setting, some, views: asked.append(len(some)) or some)
    found = cast(Any, [good, bad, bad])
    taken, words = choose_confirmed(cast(Any, None), found, HarmonicBalance(unconfirmed=True))
    assert taken == [good, bad, bad] and words == [] and not asked
    taken, words = choose_confirmed(cast(Any, None), found, HarmonicBalance(unconfirmed=False))
    assert taken == [good] and asked == [3] and "2" in " ".join(words)
    assert choose_confirmed(cast(Any, None), cast(Any, []), HarmonicBalance(unconfirmed=False)) == ([], [])


@pytest.mark.parametrize(
    ("phases", "option", "unknown"),
    [
        (("recorded", "recorded"), "auto", False),
        (("recorded", "unknown"), "auto", True),
        (("unknown", "unknown"), "recorded", False),
        (("recorded", "recorded"), "orbit", True),
    ],
)
def test_given_records_then_phases_are_sought_if_one_of_them_is_unknown_or_that_was_asked(
    phases: tuple[str, str], option: Any, unknown: bool
) -> None:
    experiment = cast(Any, about(runs=[about(phase=phase) for phase in phases]))
    assert _phase_unknown(experiment, HarmonicBalance(phase=option)) is unknown


# where searches begin


def test_given_many_rests_then_three_of_them_are_other_starts_of_the_hidden_states() -> None:
    model = Model.from_equations({"x": "v", "v": "-0.3*v - sin(2*x)"}, outputs={"v": "v"})
    record = Record.from_arrays(10.0, {"v": 0.01 * np.sin(0.3 * np.arange(40.0))})
    experiment = Experiment(model, [record], Conditions())
    start = Point(np.zeros((1, len(experiment.model.parameters))), (np.array([0.0, 0.0]),))
    found = rests(experiment, start)
    assert len(found) == 3
    for point in found:
        x, v = point.initials[0]
        turns = x / np.pi
        assert abs(turns - round(turns)) < 1e-6 and round(turns) != 0 and abs(v) < 1e-9


# subsets of a library


def test_given_a_library_then_the_leading_sets_are_the_best_of_their_size() -> None:
    rng = np.random.default_rng(11)
    rows = rng.standard_normal((200, 6))
    rows[:, 3] = rows[:, 0] + 0.1 * rng.standard_normal(200)  # hides the first
    y = rows @ np.array([1.0, 0.0, 0.4, 0.0, 0.0, 0.2]) + rng.standard_normal(200)
    price = 4.0
    problem = Quadratic(rows.T @ rows, rows.T @ y, frozenset({5}), price)

    def misfit(subset: frozenset[int]) -> float:
        columns = rows[:, sorted({5, *subset})]
        left = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
        return float(left @ left - y @ y)

    for size in range(1, 5):
        for chosen in combinations(range(5), size):
            subset = frozenset(chosen)
            assert problem.criterion(subset) == pytest.approx(misfit(subset) + price * size, abs=1e-6)
            own, values, covariance = problem.estimate(subset)
            columns = rows[:, own]
            assert values == pytest.approx(np.linalg.lstsq(columns, y, rcond=None)[0], abs=1e-6)
            assert np.allclose(covariance, np.linalg.inv(columns.T @ columns), rtol=1e-6)
    for size, sets in enumerate(problem.leading(4, 3), start=1):
        assert sets == sorted((frozenset(c) for c in combinations(range(5), size)), key=misfit)[:3]


# beams


@dataclass
class Block:
    where: slice
    symbol: str
    size: int = 1
    prior: Any = None


def test_given_another_beam_then_its_numbers_are_told_and_no_functions_of_place() -> None:
    blocks = [
        Block(slice(0, 1), "k"),
        Block(slice(1, 4), "EI", 3),
        Block(slice(4, 5), "m"),
        Block(slice(5, 6), "c", 1, 1),
    ]
    theta = np.log(np.array([20.0, 1.0, 1.0, 1.0, 0.5, 3.0]))
    task = cast(Any, about(unknowns=about(blocks=blocks)))
    assert "frequencies: k = 20, m = 0.5. Fix" in other_beams._words(task, theta)
