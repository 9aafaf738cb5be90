"""The parts that the searches are made of, each against a closed form or an independent computation."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import chi2

from analysis.base.record import Record
from analysis.estimate.balance.orbits import choose
from analysis.estimate.balance.problem import _pooled_variance, _whitening
from analysis.estimate.balance.rows import TestFunctions as Functions
from analysis.estimate.balance.setting import _above_noise, by_drive_clock, samples_of
from analysis.estimate.homotopy.coupled import CLASSICAL, LUTHER, Scheme, tangent_growth
from analysis.estimate.homotopy.observer import Linearised, _room_of_zero
from analysis.estimate.shooting import search as search_module
from analysis.estimate.shooting.evidence import Evidence, evidence, white_chance
from analysis.estimate.shooting.grow import grow
from analysis.estimate.shooting.input_noise import _largest_ratio, _not_imitated
from analysis.estimate.shooting.search import Search, from_elsewhere
from analysis.estimate.shooting.starts import hypercube, scan, without_effect
from analysis.estimate.shooting.windows import _cuts
from analysis.estimate.weak.plain import _splined
from analysis.estimate.weak.recursive import RecursiveWeak
from analysis.estimate.weak.system import nodes
from analysis.model import Model
from analysis.orbits.orbit import PeriodicOrbit
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate

Functions.__test__ = False  # type: ignore[attr-defined]


def integrated(scheme: Scheme, rate: Callable[[float, np.ndarray], np.ndarray], steps: int) -> np.ndarray:
    """The scheme as its tables say, from t = 0 to 2."""
    z, h = np.array([1.0, 0.5]), 2.0 / steps
    for n in range(steps):
        k: list[np.ndarray] = []
        for i in range(len(scheme.weights)):
            inner = sum((scheme.stages[i, j] * k[j] for j in range(i)), np.zeros(2))
            k.append(rate(h * (n + scheme.times[i]), z + h * inner))
        z = z + h * sum(w * one for w, one in zip(scheme.weights, k, strict=True))
    return z


@pytest.mark.parametrize(("scheme", "order"), [(CLASSICAL, 4), (LUTHER, 6)], ids=["classical", "Luther"])
def test_given_half_the_step_then_the_error_falls_by_the_schemes_order(scheme: Scheme, order: int) -> None:
    from scipy.integrate import solve_ivp

    def rate(t: float, z: np.ndarray) -> np.ndarray:
        return np.array([z[1], -(z[0] ** 3) - 0.2 * z[1] + np.cos(2 * t)])

    exact = solve_ivp(rate, (0, 2), [1.0, 0.5], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    coarse, fine = (np.linalg.norm(integrated(scheme, rate, n) - exact) for n in (12, 24))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.35)


def test_given_constant_slopes_then_tangents_grow_with_the_largest_eigenvalue() -> None:
    slope = np.array([[0.3, 1.0], [0.0, -2.0]])
    along = np.ascontiguousarray(np.repeat(slope[:, :, None], 400, axis=2))
    # from (1, 1) the growing direction takes over within one unit of time
    assert tangent_growth(along, 0.1) == pytest.approx(0.3, abs=0.02)
    assert tangent_growth(5 * along, 0.1) == pytest.approx(1.5, abs=0.02)
    swing = np.array([[0.0, 1.0], [-1.0, 0.0]])
    turned = np.ascontiguousarray(np.repeat(swing[:, :, None], 400, axis=2))
    assert tangent_growth(turned, 0.1) == pytest.approx(0.0, abs=0.001)
    same = np.ascontiguousarray(np.repeat(0.3 * np.eye(2)[:, :, None], 20, axis=2))
    assert tangent_growth(same, 0.1) == pytest.approx(0.3, abs=1e-6)  # however short the stretch


def test_given_a_scalar_observer_then_its_gain_is_that_of_kalman_and_bucy_in_any_units() -> None:
    """dx/dt = a x + w, y = c x + v: K = (a + sqrt(a^2 + c^2 g / r)) / c."""
    a, c, g, r = 0.7, 2.0, 3.0, 0.5
    exact = (a + np.sqrt(a**2 + c**2 * 4.0 * g / r)) / c
    for size, reach, dt in ((1.0, 1.0, 1.0), (20.0, 3.0, 0.01)):
        one = Linearised(
            np.array([[a]]), np.array([[g]]), np.array([[c]]), np.array([[r]]), np.array([size]),
            np.array([reach]), dt,
        )  # fmt: skip
        found = one.gain(4.0)
        assert found is not None
        assert found[0][0, 0] == pytest.approx(exact, rel=1e-6)
        assert found[1] == pytest.approx(abs(a - exact * c), rel=1e-6)


def test_given_a_parameter_whose_guess_is_zero_then_it_may_be_off_by_what_moves_the_rates() -> None:
    rates = np.array([np.sin(np.arange(100.0)), 5 * np.cos(np.arange(100.0))])
    slopes = np.zeros((2, 2, 100))
    slopes[0, 0], slopes[1, 0] = 2.0, 50.0
    room = _room_of_zero(rates, slopes)
    assert room[0] == pytest.approx(min(rates[0].std() / 2.0, rates[1].std() / 50.0))
    assert room[1] == 1.0  # without any effect


def test_given_residuals_of_a_search_then_their_colour_is_that_of_ljung_and_box() -> None:
    rng = np.random.default_rng(1)
    row = rng.standard_normal(400)
    r = np.array([row[k:] @ row[:-k] for k in range(1, 11)]) / (row @ row)
    by_hand = chi2.sf(400 * 402 * np.sum(r**2 / (400 - np.arange(1, 11))), 10)
    assert white_chance([row], 10) == pytest.approx(by_hand, rel=1e-6)
    coloured = row[1:] + 0.6 * row[:-1]
    assert white_chance([coloured], 10) < 1e-6
    struck = coloured.copy()
    struck[50] = 1e4  # one outlier does not hide the colour of the rest
    assert white_chance([struck], 10) < 1e-6
    gappy = row.copy()
    gappy[100:150] = np.nan
    halves = white_chance([row[:100], row[150:]], 10)
    assert white_chance([gappy], 10) == pytest.approx(halves, rel=0.6)
    assert white_chance([np.zeros(50)], 10) == 1.0
    assert white_chance([row[:3]], 10) == 1.0
    # a quarter of the samples is the most that is looked over
    assert white_chance([row[:40]], 100) == pytest.approx(white_chance([row[:40]], 10))


@pytest.mark.parametrize(
    ("ratio", "p", "samples", "good"),
    [
        (1.16, 0.5, 10_000, True),
        (1.17, 0.5, 10_000, False),
        (1.29, 0.5, 100, True),
        (1.31, 0.5, 100, False),
        (1.0, 2e-6, 100, True),
        (1.0, 0.9e-6, 100, False),
    ],
)
def test_given_a_candidate_then_it_is_good_within_the_noise_and_white(
    ratio: float, p: float, samples: int, good: bool
) -> None:
    assert Evidence(ratio, p, 0.9, samples).good is good


def test_given_two_outputs_then_the_worse_one_judges_the_candidate() -> None:
    rng = np.random.default_rng(2)
    left = rng.standard_normal((2, 2000)) * np.array([[0.1], [0.6]])
    left[1, 900:1000] = np.nan
    signal = np.stack([np.sin(0.03 * np.arange(2000)), 2 * np.cos(0.03 * np.arange(2000)) + 5])
    found = evidence(
        [signal[:, :1200], signal[:, 1200:]], [left[:, :1200], left[:, 1200:]], 2 * [np.array([0.1, 0.3])]
    )
    assert found.ratio == pytest.approx(2.0, rel=0.08)
    assert found.samples == 1900
    assert found.r2 == pytest.approx(
        1 - np.nansum(left[1] ** 2) / np.sum((signal[1] - signal[1].mean()) ** 2)
    )
    assert found.whiteness > 1e-4 and not found.good
    slow = left.copy()
    slow[0] += 0.05 * np.sin(2 * np.pi * np.arange(2000) / 300)  # shows over 80 lags, hardly over 40
    assert evidence([signal], [slow], [np.array([0.1, 0.6])]).whiteness < 1e-6


def descent(cost: float, motions: int = 1) -> Any:
    return SimpleNamespace(
        cost=cost, iterations=3, history=[cost], evaluation=SimpleNamespace(motions=[None] * motions)
    )


def search_of(judgements: list[Evidence]) -> Search:
    problem = SimpleNamespace(
        stretches=[SimpleNamespace(outputs=np.zeros((1, 5)))], residuals=lambda e: [], work=0.0
    )
    found = Search(cast(Any, problem), np.ones(1))
    found.judge = lambda problem, descent: judgements.pop(0)  # type: ignore[method-assign,assignment]
    return found


def test_given_fits_then_the_least_cost_is_kept_and_three_that_agree_end_the_search() -> None:
    fair, poor = Evidence(3.0, 0.0, 0.9, 100), Evidence(3.0, 0.0, 0.7, 100)
    found = search_of([fair] * 9)
    assert found.cost == np.inf and not found.agreed
    assert not found.take("grow", descent(5.0))
    assert not found.take("lost", descent(np.inf))
    assert not found.take("half", descent(1.0, motions=2))  # not a fit of the whole
    assert found.cost == 5.0
    found.take("a", descent(4.0))
    found.take("b", descent(4.1))
    found.take("c", descent(4.003))
    assert found.cost == 4.0 and not found.agreed
    found.take("d", descent(4.004))
    assert found.agreed
    assert found.iterations == 21 and len(found.history) == 7
    wrong = search_of([poor] * 9)
    for _ in range(3):
        wrong.take("a", descent(4.0))
    assert not wrong.agreed  # agreement on what explains little proves nothing


def test_given_windows_then_the_longest_that_follow_are_kept_and_the_whole_is_taken() -> None:
    good, bad = Evidence(1.0, 0.5, 0.99, 100), Evidence(3.0, 0.0, 0.9, 100)

    def level(share: float, pieces: int) -> Any:
        part = SimpleNamespace(stretches=[None] * pieces)
        return SimpleNamespace(share=share, problem=part, descent=descent(2.0 / share))

    found = search_of([good, good, bad, bad])
    assert not found.take_levels("windows", [level(0.05, 20), level(0.15, 7), level(1.0, 1)])
    assert found.windowed is not None and found.windowed.share == 0.15
    assert found.cost == 2.0
    found = search_of([good, good])
    assert not found.take_levels("windows", [level(0.05, 20), level(0.15, 7)])
    assert found.cost == np.inf
    assert [t.cost for t in found.trials] == [np.inf]
    assert search_of([good, good]).take_levels("windows", [level(1.0, 1)])
    assert not search_of([]).take_levels("windows", [])


def test_given_starts_elsewhere_then_ways_alternate_until_one_is_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways: list[str] = []
    monkeypatch.setattr(search_module, "hypercube", lambda *_: iter(range(8)))
    monkeypatch.setattr(search_module, "grow", lambda *_: ways.append("grow") or descent(1.0))
    monkeypatch.setattr(search_module, "windows", lambda *_: ways.append("windows") or [])
    monkeypatch.setattr(search_module, "without_effect", lambda *_: [])
    bad, good = Evidence(3.0, 0.0, 0.1, 100), Evidence(1.0, 0.5, 0.99, 100)
    found = search_of([bad, good, bad])
    from_elsewhere(found, cast(Any, None), [], cast(Any, None), 8)
    assert ways == ["grow", "windows", "grow"]
    assert [t.name for t in found.trials] == ["start 1, grow", "start 2, windows", "start 3, grow"]
    ways.clear()
    found = search_of([bad] * 9)
    found.problem.work = 4e8  # enough was spent
    from_elsewhere(found, cast(Any, None), [], cast(Any, None), 8)
    assert ways == ["grow"]


def two_unknowns(moved: list[np.ndarray]) -> Any:
    """A positive unknown at 4 and one of either sign at -2; moves are kept."""
    items = [(0, -1), (1, -1)]
    unknowns = SimpleNamespace(items=items, current=lambda values: values[0].copy())

    class Known(SimpleNamespace):
        def __len__(self) -> int:
            return 2

    known = Known(**vars(unknowns))

    def evaluate(point: Any, derivatives: bool) -> Any:
        return SimpleNamespace(cost=float(abs(np.log(point.values[0, 0] / 1.0))))

    return SimpleNamespace(
        unknowns=known, logarithmic=np.array([True, False]), index=np.array([0, 1]),
        scale=np.array([0.0, 5.0]), lower=np.array([0.1, -np.inf]), upper=np.array([8.0, np.inf]),
        evaluate=evaluate, moved=lambda point, step, initials: moved.append(step),
    )  # fmt: skip


def test_given_a_latin_hypercube_then_each_stratum_is_tried_once_within_a_factor_of_three() -> None:
    moved: list[np.ndarray] = []
    problem = two_unknowns(moved)
    guess = SimpleNamespace(values=np.array([[4.0, -2.0]]), initials=())
    list(hypercube(problem, cast(Any, guess), 8, np.random.default_rng(3)))
    steps = np.array(moved)
    for column, reach in ((0, np.log(3.0)), (1, 5.0)):
        strata = np.floor((steps[:, column] / reach + 1) * 4).astype(int)
        assert sorted(strata) == list(range(8))


def test_given_an_unknown_without_effect_then_other_values_of_it_are_tried() -> None:
    problem = two_unknowns([])
    values = np.array([[4.0, -2.0]])
    point = SimpleNamespace(values=values, initials=())
    # effects: 0.9 for a factor e, and 5 times 0.21 for a change by its size
    here = SimpleNamespace(point=point, hessian=np.diag([0.81, 0.21**2]), cost=np.log(4.0))
    assert without_effect(problem, cast(Any, here)) == [0]
    here.hessian = np.diag([1.21, 0.19**2])
    assert without_effect(problem, cast(Any, here)) == [1]
    found = [p.values[0, 0] for p in scan(problem, cast(Any, here), 0)]
    # the grid is 0.01 to 10 times 4 in 60 steps of a factor 1.124, clipped to the bounds; the best is 1
    grid = 4.0 * np.geomspace(0.01, 10.0, 60)
    nearest = grid[np.argsort(np.abs(np.log(grid)))[:4]]
    assert found == pytest.approx(nearest)
    assert all(p.values[0, 1] == -2.0 for p in scan(problem, cast(Any, here), 0))


@pytest.mark.parametrize(("record", "others_move"), [(-1, True), (0, False), (1, False)])
def test_given_two_records_then_a_shared_unknown_is_tried_in_both_and_an_own_one_in_its_own(
    record: int, others_move: bool
) -> None:
    problem = two_unknowns([])
    problem.unknowns.items = [(0, record), (1, -1)]
    own = max(record, 0)
    problem.evaluate = lambda point, derivatives: SimpleNamespace(
        cost=float(abs(np.log(point.values[own, 0])))
    )
    point = SimpleNamespace(values=np.array([[4.0, -2.0], [4.0, -2.0]]), initials=())
    tried = scan(problem, cast(Any, SimpleNamespace(point=point, cost=np.log(4.0))), 0)
    assert tried and all(p.values[own, 0] != 4.0 for p in tried)
    assert all(bool(p.values[1 - own, 0] != 4.0) == others_move for p in tried)
    assert np.all(point.values[:, 0] == 4.0)


def test_given_samples_then_windows_are_even_and_cover_them() -> None:
    assert _cuts(100, 30) == [(0, 33), (33, 66), (66, 100)]
    assert _cuts(100, 80) == [(0, 100)]
    assert _cuts(100, 500) == [(0, 100)]


def test_given_stretches_then_windows_grow_from_some_samples_a_state_to_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from analysis.estimate.shooting import windows as windows_module

    seen: list[list[int]] = []

    def level(problem: Any, values: Any, paths: Any, lengths: list[int], *_: Any) -> Any:
        seen.append(lengths)
        ended = SimpleNamespace(evaluation=SimpleNamespace(point=SimpleNamespace(values=values)))
        return SimpleNamespace(descent=ended, states=paths)

    monkeypatch.setattr(windows_module, "_level", level)
    problem = SimpleNamespace(states=3, stretches=[range(1000), range(40), range(7)])
    start = SimpleNamespace(values=np.zeros(1))
    assert len(windows_module.windows(cast(Any, problem), cast(Any, start), [])) == len(seen)
    first, *_, last = (np.array(lengths) for lengths in seen)
    assert first[0] == 50 and 4 * problem.states <= first[1] < 40  # a twentieth, or enough to tell a state
    assert all(np.all(np.diff(by_stretch) >= 0) for by_stretch in np.transpose(seen))
    assert list(last) == [1000, 40, 7] and len({tuple(lengths) for lengths in seen}) == len(seen)


def test_given_a_guess_then_growing_begins_with_enough_samples_and_ends_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from analysis.estimate.shooting import grow as grow_module

    seen: list[tuple[list[int], float, int]] = []
    ends: list[float] = []

    class Part(SimpleNamespace):
        def on(self, stretches: list[Any]) -> Part:
            return Part(**{**vars(self), "stretches": stretches})

        def settle_substeps(self, *_: object) -> None: ...

        def evaluate(self, point: object, derivatives: bool = True) -> Any:
            return SimpleNamespace(cost=1.0, point=point)

        def follow(self, part: object) -> None: ...

    class Samples(np.ndarray):
        def cut(self, first: int, stop: int) -> Any:
            return self[first:stop]

    def minimise(part: Any, here: Any, tolerance: float, steps: int, enough: float, watch: object) -> Any:
        seen.append(([len(s) for s in part.stretches], tolerance, steps))
        ends.append(enough)
        return SimpleNamespace(evaluation=here, converged=True, iterations=2, history=[], cost=1.0)

    monkeypatch.setattr(grow_module, "minimise", minimise)
    problem = Part(
        stretches=[np.zeros(1000).view(Samples), np.zeros(60).view(Samples)],
        unknowns=[0] * 3,
        states=2,
        samples=1060,
    )
    found = grow(cast(Any, problem), cast(Any, None), enough=0.5)
    assert ends == [530.0] * 4
    assert [lengths for lengths, *_ in seen] == [[50, 20], [150, 20], [400, 24], [1000, 60]]
    assert [t for _, t, _ in seen] == [1e-3, 1e-3, 1e-3, 1e-6]
    assert [s for *_, s in seen] == [30, 30, 30, 60]
    assert found.iterations == 8 and found.converged


def test_given_repetitions_then_the_variance_of_each_row_is_pooled_over_its_neighbours() -> None:
    rng = np.random.default_rng(4)
    size = np.concatenate([[9.0], np.ones(30), [9.0], 2 * np.ones(30)])  # means first, two equations
    rows = size * rng.standard_normal((400, 62))
    found = _pooled_variance(rows, 2)
    assert found == pytest.approx(size**2, rel=0.25)
    own = rows.var(axis=0, ddof=1)
    assert found[0] == own[0] and found[31] == own[31]
    assert found[15] == pytest.approx(own[6:25].mean())  # nine rows on either side
    assert found[1] == pytest.approx(own[1:11].mean())


def test_given_a_covariance_then_its_whitening_makes_rows_independent() -> None:
    rng = np.random.default_rng(5)
    root = rng.standard_normal((6, 6)) + 3 * np.eye(6)
    covariance = root @ root.T
    w = _whitening(covariance.copy())
    assert w @ covariance @ w.T == pytest.approx(np.eye(6), abs=1e-8)


def test_given_test_functions_then_their_derivatives_are_those_of_differences() -> None:
    period, h = 5.0, 1e-4
    middle = np.linspace(0.5, 4.5, 40)
    step = middle[1] - middle[0]
    made = [
        Functions.tapered(middle + shift, period, np.arange(4.0), 2.5).rows(slice(0, 7))
        for shift in (-h, 0, h)
    ]
    value, slope, bend = made[1]
    assert slope == pytest.approx((made[2][0] - made[0][0]) / (2 * h), abs=1e-6)
    assert bend == pytest.approx((made[2][0] - 2 * value + made[0][0]) / h**2, abs=1e-5)
    taper = np.sin(np.pi * middle / period) ** 4
    assert value[0] == pytest.approx(step * taper, abs=1e-12)
    assert value[4] == pytest.approx(step * taper * np.sin(2 * np.pi * 2 * middle / period), abs=1e-12)
    functions = Functions.tapered(middle, period, np.arange(4.0), 2.5)
    assert functions.harmonic == pytest.approx([0, 0.5, 0.5, 1.0, 1.0, 1.5, 1.5])
    outside = Functions.plain(np.array([-1.0, 0.0, 1.0, 5.0, 6.0]), period, np.array([0.0]), 5.0).rows(
        slice(0, 1)
    )
    assert outside[0][0] == pytest.approx([0, 1, 1, 1, 0])


def test_given_a_period_then_it_is_a_whole_number_of_samples_but_for_rounding() -> None:
    assert samples_of(40.0 * 0.1 * (1 + 1e-11), 0.1) == 40.0
    assert samples_of(4.00001, 0.1) == pytest.approx(40.0001, rel=1e-12)


def test_given_a_converter_whose_clock_is_off_then_the_drives_line_sets_the_rate() -> None:
    true_rate, said = 50.0, 50.0 * (1 - 2e-4)
    t = np.arange(90_000) / true_rate
    record = Record.from_arrays(said, {"x": np.cos(2 * np.pi * 1.25 * t) + 0.3 * np.cos(2 * np.pi * 2.5 * t)})
    assert by_drive_clock(record, "x", 1.25).rate == pytest.approx(true_rate, rel=2e-6)
    short = record.cut(0, 70_000)  # fewer than two thousand periods
    assert by_drive_clock(short, "x", 1.25) is short


def test_given_harmonics_in_noise_then_the_highest_that_stands_out_is_found() -> None:
    rng = np.random.default_rng(6)
    t = np.arange(8000)
    clean = sum(
        a * np.cos(2 * np.pi * k * t / 50.0 + k) for k, a in ((1, 1.0), (3, 0.3), (5, 0.05), (7, 1e-3))
    )
    assert _above_noise(clean + 0.01 * rng.standard_normal(8000), 0.01, 50.0) == 5
    assert _above_noise(clean, 0.0, 50.0) == 7
    assert _above_noise(np.cos(2 * np.pi * t * 12 / 50.0), 0.0, 50.0) <= 10  # too fast to be balanced


def test_given_orbits_then_the_best_of_each_period_comes_first() -> None:
    def orbit(multiple: int | None, closure: float) -> PeriodicOrbit:
        return PeriodicOrbit(0, 10.0, multiple, closure, 0.0, np.zeros(1, np.int64))

    made = [orbit(1, 0.01), orbit(1, 0.02), orbit(2, 0.05), orbit(3, 0.03), orbit(2, 0.06)]
    chosen = choose(cast(Any, SimpleNamespace(orbits=made)), cast(Any, SimpleNamespace(most_orbits=4)))
    assert [o.closure for o in chosen] == [0.01, 0.03, 0.05, 0.02]
    free = [orbit(None, c) for c in (0.3, 0.1, 0.2)]
    chosen = choose(cast(Any, SimpleNamespace(orbits=free)), cast(Any, SimpleNamespace(most_orbits=2)))
    assert [o.closure for o in chosen] == [0.1, 0.2]


def test_given_cubics_then_the_published_weak_form_integrates_them_exactly() -> None:
    """Against the uniform B-spline of SciPy: values, slopes and integrals with a cubic state."""
    from scipy.integrate import quad
    from scipy.interpolate import BSpline

    h, N = 0.2, 14
    times = 1.0 + h * np.arange(N)
    line = 0.5 + 2.0 * (times - 1.0)  # a natural spline keeps straight lines
    nodes, probes = _splined(times, line[None], np.zeros((0, N)))
    assert nodes.states[0] == pytest.approx(0.5 + 2.0 * (nodes.times - 1.0), abs=1e-12)
    assert len(probes.first) == N - 6
    i = 3  # its spline spans t_1 to t_5
    spline = BSpline.basis_element(times[i - 2 : i + 3])
    where = slice(int(probes.first[0]), int(probes.first[0]) + 16)
    inside = nodes.times[where]
    exact = quad(lambda t: spline(t) * (0.5 + 2.0 * (t - 1.0)), times[i - 2], times[i + 2])[0]
    assert probes.value[0] @ nodes.states[0, where] == pytest.approx(exact, rel=1e-9)
    slope = quad(lambda t: spline.derivative()(t) * (t - 1.0) ** 2, times[i - 2], times[i + 2])[0]
    assert probes.slope[0] @ (inside - 1.0) ** 2 == pytest.approx(slope, rel=1e-9)


DECAY = Model.from_equations({"x": "-k*x + a*cos(1.3*t)"}, {"k": {"guess": 0.5}, "a": {"guess": 0.5}})


def decay_stream(seed: int, count: int = 3000) -> np.ndarray:
    clean = simulate(
        DECAY.with_values({"k": 0.8, "a": 1.5}), 2.0 + 0.05 * np.arange(count), np.array([1.0])
    ).states
    return clean + 0.02 * np.random.default_rng(seed).standard_normal(clean.shape)


def test_given_a_sample_that_is_not_a_number_then_the_stream_goes_on_behind_it() -> None:
    """The same as a stream with a gap: the drive's time must not slip."""
    rows = decay_stream(0)
    broken = rows.copy()
    broken[0, [700, 1400]] = np.nan
    one = RecursiveWeak(DECAY, 20.0, ["x"], drive_time=2.0)
    other = RecursiveWeak(DECAY, 20.0, ["x"], drive_time=2.0)
    one.update(broken[:, :1400])
    one.update(broken[:, 1400:])  # the second one is the first sample of its block
    for first, stop in ((0, 700), (701, 1400), (1401, 3000)):
        other.update(rows[:, first:stop], start=first)
    for name in ("k", "a"):
        found = one.estimate().parameters[name]
        assert found.value == pytest.approx(other.estimate().parameters[name].value, rel=1e-9)
    assert one.estimate().parameters["a"].value == pytest.approx(1.5, rel=0.02)


def test_given_a_stream_then_its_error_bars_are_the_scatter_of_its_estimates() -> None:
    off = []
    for seed in range(40):
        live = RecursiveWeak(DECAY, 20.0, ["x"], drive_time=2.0)
        rows = decay_stream(seed, 2000)
        for block in np.split(rows, 40, axis=1):
            live.update(block)
        found = live.estimate().parameters
        off.append([(found[n].value - v) / found[n].stderr for n, v in (("k", 0.8), ("a", 1.5))])
    scatter = np.std(off, axis=0)
    assert np.all((scatter > 0.7) & (scatter < 1.4))


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_given_a_held_input_in_any_unit_then_each_jump_is_a_node_of_two_values(unit: float) -> None:
    steps = np.array([0.0, 0.0, 1.0, 1.0, 1.0, -2.0, -2.0, -2.0, -2.0, -2.0, -2.0, -2.0])
    times, valid = 0.5 * np.arange(12), np.ones(12, dtype=bool)
    held = Inputs.from_samples(0.0, 0.5, unit * steps[None], "hold")
    (found,) = nodes(times, times[None], held, valid)
    assert found.times == pytest.approx(np.sort([*times, times[2], times[5]]))
    assert found.inputs[0] == pytest.approx(unit * np.insert(steps, [2, 5], [0.0, 1.0]))
    assert list(found.pieces) == [0, 3, 7]
    smooth = Inputs.from_samples(0.0, 0.5, unit * np.cos(times)[None])
    (found,) = nodes(times, times[None], smooth, valid)
    assert len(found.times) == 12
    valid[9] = False
    (part,) = nodes(times, times[None], smooth, valid)  # what lies behind is too short
    assert len(part.times) == 9


def test_given_more_blocks_than_are_kept_apart_then_nothing_is_lost_or_counted_twice() -> None:
    rows = decay_stream(1)
    whole, blocks = (RecursiveWeak(DECAY, 20.0, ["x"], drive_time=2.0) for _ in range(2))
    whole.update(rows)
    for block in np.split(rows, 300, axis=1):
        blocks.update(block)
    one, many = whole.estimate(), blocks.estimate()
    assert many.residual.other["functions"] == one.residual.other["functions"]
    for name in ("k", "a"):
        assert many.parameters[name].value == pytest.approx(one.parameters[name].value, rel=1e-9)
    sizes = [sums.rows for sums in blocks._stretches[:-1]]  # one that was left over holds half
    assert max(sizes) < 2.1 * min(sizes)
    # merged in pairs the scores of stretches scatter as before
    few = RecursiveWeak(DECAY, 20.0, ["x"], drive_time=2.0)
    for block in np.split(rows, 50, axis=1):
        few.update(block)
    assert many.parameters["k"].stderr == pytest.approx(few.estimate().parameters["k"].stderr, rel=0.5)


def test_given_a_memory_then_old_blocks_fade_with_its_time() -> None:
    rows = decay_stream(2, 2001)
    live = RecursiveWeak(DECAY, 20.0, ["x"], memory=15.0, drive_time=2.0)
    counts = [live.update(block) for block in np.split(rows[:, :2000], 10, axis=1)]
    spans = 0.05 * 4 * np.array(counts)  # time that each block's functions advance
    later = np.concatenate([np.cumsum(spans[::-1])[::-1][1:], [0.0]])
    expected = float(np.sum(np.array(counts) * np.exp(-later / 15.0)))
    assert live.estimate().residual.other["functions"] == pytest.approx(expected, rel=1e-9)


def test_given_what_noisy_inputs_do_then_it_is_held_against_what_is_left() -> None:
    rng = np.random.default_rng(7)
    left = rng.standard_normal((2, 500)) * np.array([[1.0], [0.2]])
    moved = rng.standard_normal((2, 500)) * np.array([[0.5], [0.3]])
    left[1, 100:200] = np.nan
    ratio = _largest_ratio([moved[:, :300], moved[:, 300:]], [left[:, :300], left[:, 300:]])
    seen = np.isfinite(left[1])
    assert ratio == pytest.approx(np.sqrt(np.mean(moved[1, seen] ** 2) / np.mean(left[1, seen] ** 2)))
    assert _largest_ratio([moved], [np.full((2, 500), np.nan)]) == 0.0


def test_the_part_of_an_effect_that_unknowns_imitate_is_left_out_where_something_was_measured() -> None:
    """Orthogonal functions of time: what is along the slopes goes, what is across them stays."""
    t = 2 * np.pi * np.arange(400) / 400
    slopes = np.stack([[np.sin(t), np.zeros(400)], [2 * np.sin(t), np.zeros(400)]])
    across = np.stack([np.cos(3 * t), np.cos(2 * t)])
    effect = np.stack([5 * np.sin(t), 10 * np.sin(t)]) + across
    residuals = np.stack([np.cos(5 * t), np.cos(7 * t)])
    assert _not_imitated(effect, slopes, residuals) == pytest.approx(across, abs=1e-12)
    residuals[1] = np.nan  # not measured: only the first output says how far the unknown moves
    found = _not_imitated(effect, slopes, residuals)
    assert found[0] == pytest.approx(across[0], abs=1e-12) and not found[1].any()
