"""Harmonic balance in closed form: a linear oscillator's steady response, whose every row is known."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError
from analysis.base.progress import SILENT
from analysis.base.record import Excitation, Record
from analysis.estimate.balance.method import HarmonicBalance, _information, _phase_unknown, counted, disjoint
from analysis.estimate.balance.orbits import fits, given_orbits, orbit_rows
from analysis.estimate.balance.problem import Balance, Point, Solution
from analysis.estimate.balance.rows import OrbitRows, smoothing_operators
from analysis.estimate.balance.setting import Setting, _harmonics, read_setting
from analysis.estimate.methods import identify
from analysis.experiment import Experiment
from analysis.model import Model
from analysis.orbits.orbit import PeriodicOrbit

C, K, A, W = 0.3, 2.0, 1.5, 1.1
PERIOD, SAMPLES = 2 * np.pi / W, 40  # of the drive
MODEL = Model.from_equations(
    {"x": "v", "v": f"-c*v - k*x + {A}*cos({W}*t)"},
    {"c": {"guess": 0.4}, "k": {"guess": 1.8, "lower": 0.0, "upper": 10.0}},
)
STIFF = Model.from_equations(  # its damping known
    {"x": "v", "v": f"-{C}*v - k*x + {A}*cos({W}*t)"}, {"k": {"guess": 1.5, "lower": W**2, "upper": 9.0}}
)
TRUE = np.array([C, K])
GAIN = A / (K - W**2 + 1j * C * W)  # x = Re GAIN exp(i W t), v = Re i W GAIN exp(i W t)


def record(
    periods: int, noise: float = 0.0, rng: np.random.Generator | None = None, late: float = 0.0
) -> Record:
    """x and v, the first sample ``late`` after the drive's zero of time."""
    t = late + PERIOD / SAMPLES * np.arange(periods * SAMPLES)
    turning = GAIN * np.exp(1j * W * t)
    rows = np.array([turning.real, (1j * W * turning).real])
    if rng is not None:
        rows = rows + noise * rng.standard_normal(rows.shape)
    return Record.from_arrays(SAMPLES / PERIOD, {"x": rows[0], "v": rows[1]})


def setting(one: Record, noise: float, harmonics: int = 3) -> Setting:
    return Setting(one, ["x", "v"], {0: 0, 1: 1}, {1: 0}, PERIOD, 0.0, True, [noise, noise], harmonics)


def orbit(start: int, multiple: int = 1) -> PeriodicOrbit:
    return PeriodicOrbit(start, multiple * SAMPLES, multiple, 0.0, 0.0, np.array([start]))


def balance(
    one: Record, starts: list[int], multiple: int = 2, noise: float = 1e-3, model: Model = MODEL, **about: Any
) -> Balance:
    options = HarmonicBalance(offset=about.get("offset", False), plain=about.get("plain", False))
    at = setting(one, noise)
    rows = [orbit_rows(model, at, orbit(s, multiple), options, False) for s in starts]
    return Balance(model, rows, options, about.get("unknown_phase", False), about.get("repetitions", ()))


def test_given_the_exact_motion_then_every_row_vanishes_at_the_truth_alone() -> None:
    one = balance(record(8), [50, 130])
    truth = Point(TRUE, np.zeros(2), np.zeros(2))
    size = max(np.abs(one.piece(0, replace(truth, values=np.zeros(2)))[0]))
    for number in range(2):
        assert np.abs(one.piece(number, truth)[0]).max() < 1e-8 * size
    found = one.solve(SILENT)
    assert found.converged and found.point.values == pytest.approx(TRUE, rel=1e-7)


def test_given_any_unknown_when_it_moves_then_the_rows_follow_their_jacobian() -> None:
    one = balance(record(8), [50, 133], offset=True, unknown_phase=True)
    assert one.phases
    here = Point(np.array([0.5, 1.2]), np.array([0.1, -0.2]), np.array([0.3, 0.7]))
    assert one.unknowns(here) == pytest.approx([0.5, 1.2, 0.1, -0.2, 0.3, 0.7])
    assert list(one.lower[:2]) == [-np.inf, 0.0] and list(one.upper[:2]) == [np.inf, 10.0]
    assert np.all(one.lower[2:] == -np.inf) and np.all(one.upper[2:] == np.inf)
    h = 1e-6
    for number in range(2):
        jacobian = one.piece(number, here)[1]
        for i, step in enumerate(h * np.eye(6)):
            ahead, behind = (one.piece(number, one.moved(here, s * step))[0] for s in (1, -1))
            slope = (ahead - behind) / (2 * h)
            assert jacobian[:, i] == pytest.approx(slope, abs=1e-6 * max(np.abs(slope).max(), 1e-3))
    assert not np.any(one.piece(0, here)[1][:, 5])  # the second orbit's time is no matter of the first


def test_given_white_noise_then_chi_square_is_the_degrees_of_freedom_and_the_errors_are_the_scatter() -> None:
    rng, sigma = np.random.default_rng(3), 0.02
    squares, pulls = [], []
    for _ in range(40):
        one = balance(record(8, sigma, rng), [50, 150], noise=sigma)
        found = one.solve(SILENT)
        squares.append(found.chi2 / found.dof)
        covariance = np.linalg.inv(found.information)
        pulls.append((found.point.values - TRUE) / np.sqrt(np.diag(covariance)))
    assert found.dof == 2 * len(one.rows[0].tests) - 2
    assert np.mean(squares) == pytest.approx(1.0, abs=5 * np.sqrt(2 / found.dof / 40))
    assert 0.75 < np.sqrt(np.mean(np.square(pulls))) < 1.25


def test_given_a_misfit_then_it_widens_weighted_errors_and_scales_those_of_the_plain_method() -> None:
    jacobian, residual = np.eye(10, 2), np.full(10, 3.0)
    for plain, size, expected in (
        (False, 3.0, True),
        (False, 0.1, False),
        (True, 3.0, True),
        (True, 0.1, True),
    ):
        one = balance(record(8), [50], plain=plain)
        found = SimpleNamespace(
            point=one.start, squares=float(size**2 * 10), information=jacobian.T @ jacobian, residual=residual
        )
        solution = one._solution(cast(Any, found), 3, True, [])
        variance = size**2 * 10 / one._dof
        assert solution.chi2 == size**2 * 10 and solution.dof == one._dof
        assert solution.information == pytest.approx(np.eye(2) / (variance if expected else 1.0))
        assert one.drive_period() == pytest.approx(PERIOD)  # of a single orbit, too


def test_given_an_unknown_phase_then_each_orbit_finds_its_own() -> None:
    """One size of the response tells one parameter: the stiffness, on the known side of the resonance."""
    late, noise = 1.7, 1e-4
    noisy = record(8, noise, np.random.default_rng(1), late)
    one = balance(noisy, [50, 133], noise=noise, model=STIFF, unknown_phase=True)
    assert one.drive_period() == pytest.approx(PERIOD)
    found = one.solve(SILENT)
    assert found.point.values[0] == pytest.approx(K, rel=3e-3) and found.rivals == []
    off = (found.point.shifts - late + 0.5 * PERIOD) % PERIOD - 0.5 * PERIOD
    assert np.abs(off).max() < 0.01
    spacing = 0.5  # of the rows of two drive periods: those within 2.5 of it from the drive's line see it
    harmonic = one.rows[0].tests.harmonic
    assert list(one._away(one.rows[0])) == [abs(h - 1.0) > 2.5 * spacing for h in harmonic]


def test_given_an_unknown_phase_then_all_of_a_period_is_tried_and_it_is_told_as_an_angle() -> None:
    late = 0.6 * PERIOD
    found = identify(
        STIFF, record(8, 1e-4, np.random.default_rng(1), late), "balance", finish=False, phase="orbit",
        frequency=W / (2 * np.pi), orbits=(1,), starts=(50,),
    )  # fmt: skip
    (told,) = found.extra["orbits"]
    assert told["phase"] == pytest.approx(W * late, abs=0.01)
    noisy = record(8, 1e-4, np.random.default_rng(1), late)
    starts = balance(noisy, [50], noise=1e-4, model=STIFF, unknown_phase=True)._by_longest_orbit(
        Point(STIFF.values(), np.zeros(2), np.zeros(1))
    )
    shifts = np.array([start.shifts[0] for start in starts])
    assert np.abs((shifts - late + 0.5 * PERIOD) % PERIOD - 0.5 * PERIOD).min() < PERIOD / 30
    one = balance(record(8), [50], model=STIFF, unknown_phase=True)
    tried: list[float] = []

    def residual(model: Model, values: Any, offsets: Any, shift: float) -> np.ndarray:
        tried.append(shift)
        return np.array([np.cos(2 * np.pi * (shift / PERIOD - 0.25)) - 1.0])

    row: Any = SimpleNamespace(residual=residual)
    best = one._best_shift(row, Point(TRUE, np.zeros(2), np.zeros(1)), PERIOD)
    assert best == pytest.approx(0.25 * PERIOD, abs=0.5 * PERIOD / len(tried))
    steps = np.diff([*tried, PERIOD])
    assert tried[0] == 0.0 and steps == pytest.approx(steps[0])


def test_given_a_measured_force_then_there_is_no_phase_to_be_found() -> None:
    forced = Model.from_equations(
        {"x": "v", "v": "-k*x + f"}, {"k": {"guess": 1.0}}, inputs={"f": "measured"}
    )
    one = record(8)
    one = one.with_channels(f=np.cos(W * np.arange(len(one)) * one.dt))
    rows = [orbit_rows(forced, setting(one, 1e-3), orbit(50), HarmonicBalance(), True)]
    assert not Balance(forced, rows, HarmonicBalance(), True).phases
    assert rows[0].inputs == pytest.approx(one["f"][None, 50 : 50 + SAMPLES + 1])


def test_given_two_solutions_then_they_differ_from_three_standard_errors_on() -> None:
    one = balance(record(8), [50])

    def solution(c: float) -> Solution:
        point = Point(np.array([c, K]), np.zeros(2), np.zeros(1))
        return Solution(point, np.diag([1e4, 1e4]), 10.0, 10, 1, True)

    assert not one._different(solution(0.3), solution(0.3 + 0.029))
    assert one._different(solution(0.3), solution(0.3 - 0.031))


def test_given_fewer_than_four_repetitions_then_the_noise_is_taken_from_the_sensors() -> None:
    starts = [50, 90, 130, 170]
    one = balance(record(8), starts, 1, repetitions=[[0, 1, 2, 3]])
    assert one.repetitions == [[0, 1, 2, 3]]
    assert balance(record(8), starts, 1, repetitions=[[0, 1, 2]]).repetitions == []


def test_given_an_orbit_then_its_segment_with_padding_must_lie_inside_the_record() -> None:
    at, options = setting(record(5), 1e-3), HarmonicBalance()  # 200 samples; padding of one drive period
    inside = [start for start in range(200) if fits(at, orbit(start), options)]
    assert inside == list(range(40, 200 - 41 - 40 + 1))
    plain = HarmonicBalance(plain=True)
    assert [s for s in range(200) if fits(at, orbit(s), plain)] == list(range(200 - 40 + 1))


def test_given_an_orbit_then_rows_reach_the_harmonics_asked_for_and_know_their_samples() -> None:
    one = record(8)
    rows = orbit_rows(MODEL, replace(setting(one, 1e-3), t0=5.0), orbit(60, 2), HarmonicBalance(), True)
    assert rows.tests.harmonic[-1] == pytest.approx(3.0) and len(rows.tests) == 1 + 2 * 6  # sub-harmonics
    assert rows.times[0] == pytest.approx(5.0 + 60 * one.dt)
    assert len(rows.times) == 81 and rows.first == 40
    assert rows.data[0] == pytest.approx(one["x"][20 : 60 + 81 + 40])
    assert rows.equations == [1] and rows.measured == [0, 1]
    plain = HarmonicBalance(plain=True)
    known = orbit_rows(MODEL, setting(one, 1e-3), orbit(60, 2), plain, False)
    assert np.unique(known.tests.harmonic) == pytest.approx([0.0, 1.0, 2.0, 3.0])
    unknown = orbit_rows(MODEL, setting(one, 1e-3), orbit(60, 2), plain, True)
    assert np.unique(unknown.tests.harmonic) == pytest.approx([0.0, 2.0, 3.0])  # the drive's own is left out


@pytest.mark.parametrize(("share", "smoothed"), [(0.9e-5, False), (1.1e-5, True)])
def test_given_samples_without_noise_to_speak_of_then_they_are_taken_as_they_are(
    share: float, smoothed: bool
) -> None:
    one = record(8)
    noise = share * float(np.ptp(one["x"]))
    at = replace(setting(one, 0.0), noise=[noise, 0.0])
    operator = orbit_rows(MODEL, at, orbit(60), HarmonicBalance(), False).sources[0][1]
    assert (operator.response is not None) == smoothed


def test_given_a_filter_then_it_passes_half_at_its_edge_and_differentiates_below_it() -> None:
    count, pad, dt, edge = 400, 100, 0.05, 2.0
    t = dt * np.arange(-pad, count + pad)
    smooth, slope = smoothing_operators(count, pad, dt, edge)
    inner = slice(50, 350)
    for frequency, share in ((0.8, 1.0), (edge, 0.5), (3.2, 0.0)):
        wave = np.cos(2 * np.pi * frequency * t)
        passed = smooth.apply(wave)[inner]
        assert np.abs(passed).max() == pytest.approx(share, abs=0.02)
        sine = -np.sin(2 * np.pi * frequency * t[pad : pad + count][inner])
        turned = slope.apply(wave)[inner]
        assert turned == pytest.approx(share * 2 * np.pi * frequency * sine, abs=0.04 * 2 * np.pi * frequency)
    assert smooth.of_constant[inner] == pytest.approx(1.0, abs=1e-3)
    # no edge, or one that lies higher: a slope fades towards half the rate, where it has no sign
    for highest in (None, 30.0):
        slope = smoothing_operators(count, pad, dt, highest)[1]
        wave = np.sin(2 * np.pi * 9.0 * t)  # 0.45 cycles a sample
        turned = slope.apply(wave)[inner]
        cosine = np.cos(2 * np.pi * 9.0 * t[pad : pad + count][inner])
        assert turned == pytest.approx(0.5 * 2 * np.pi * 9.0 * cosine, abs=0.02 * 2 * np.pi * 9.0)


def test_given_known_segments_then_each_is_repeated_by_whole_periods() -> None:
    at = setting(record(8), 1e-3)
    options = HarmonicBalance(starts=(45, 50), orbits=(1, 2), recurrences=3)
    made = given_orbits(at, options)
    assert [(o.start, o.period, o.multiple) for o in made] == [(45, 40.0, 1), (50, 80.0, 2)]
    assert [list(o.starts) for o in made] == [[45, 85, 125], [50, 130, 210]]
    for wrong in (replace(options, orbits=(1,)),):
        with pytest.raises(DataError, match="for each start"):
            given_orbits(at, wrong)
    with pytest.raises(DataError, match="drive frequency"):
        given_orbits(replace(at, forced=False), options)


def test_given_a_record_then_as_many_harmonics_are_balanced_as_stand_out_between_three_and_twelve() -> None:
    one = record(40)

    def count(orders: int, options: HarmonicBalance) -> int:
        t = np.arange(len(one))
        x = sum(np.cos(2 * np.pi * k * t / 100 + k) for k in range(1, orders + 1))
        return _harmonics(one.with_channels(x=x), ["x"], [1e-4], 100 * one.dt, options)

    assert [count(n, HarmonicBalance()) for n in (1, 5, 18)] == [3, 5, 12]
    assert count(18, HarmonicBalance(starts=(1,))) == 18
    assert count(18, HarmonicBalance(harmonics=7)) == 7
    assert count(18, HarmonicBalance(plain=True)) == 5


def test_given_a_drive_then_its_period_and_time_are_those_of_the_record_unless_said() -> None:
    one = record(8)
    driven = replace(one, excitation=Excitation(W / (2 * np.pi), A, 0.5 * np.pi))
    run = Experiment(MODEL, driven).runs[0]
    at = read_setting(MODEL, run, HarmonicBalance(harmonics=4))
    assert at.forced and at.base == pytest.approx(PERIOD) and at.harmonics == 4
    assert at.t0 == pytest.approx(0.25 * PERIOD)
    assert at.sources == {0: 0, 1: 1} and at.pairs == {1: 0}
    other = read_setting(MODEL, run, HarmonicBalance(harmonics=4, frequency=2.0))
    assert other.base == pytest.approx(0.5)
    alone = read_setting(MODEL, Experiment(MODEL, one).runs[0], HarmonicBalance(harmonics=4))
    assert not alone.forced and alone.base == pytest.approx(PERIOD, rel=0.05)
    assert _phase_unknown(Experiment(STIFF, one), HarmonicBalance())
    assert not _phase_unknown(Experiment(STIFF, driven), HarmonicBalance())
    assert _phase_unknown(Experiment(STIFF, driven), HarmonicBalance(phase="orbit"))
    assert not _phase_unknown(Experiment(STIFF, one), HarmonicBalance(phase="recorded"))


def test_given_unknown_times_then_what_is_left_of_the_information_is_that_of_the_marginal_errors() -> None:
    root = np.random.default_rng(2).standard_normal((9, 5))
    whole = root.T @ root
    solution = Solution(Point(TRUE, np.zeros(2), np.zeros(2)), whole, 1.0, 1, 1, True)
    marginal = np.linalg.inv(np.linalg.inv(whole)[:3, :3])
    assert _information(solution, 3) == pytest.approx(marginal, rel=1e-9)
    assert _information(solution, 5) is whole


def test_given_a_parameter_without_effect_then_the_rows_do_not_see_it_in_any_unit() -> None:
    for unit in (1e-9, 1.0, 1e6):
        model = Model.from_equations(
            {"x": "v", "v": f"-k*x - {unit}*s*(x - x)"}, {"k": {"guess": 1.0}, "s": {"guess": 1.0}}
        )
        rows: OrbitRows = orbit_rows(model, setting(record(8), 1e-3), orbit(50), HarmonicBalance(), False)
        seen = rows.visible(model, model.values(), np.zeros(2), 0.0, [0, 1])
        assert list(seen) == [True, False]


def test_given_segments_that_overlap_then_each_sample_is_fitted_once() -> None:
    """The closest comes first and stays whole; of others 30 samples or half must be left."""
    places = [(0, 100, 300), (0, 50, 200), (0, 260, 329), (0, 0, 500), (1, 100, 300), (0, 120, 180)]
    found = [(s.segment, s.run, s.first, s.stop) for s in disjoint(places)]
    assert found == [(0, 0, 100, 300), (1, 0, 50, 100), (3, 0, 0, 50), (3, 0, 300, 500), (4, 1, 100, 300)]
    assert [(s.first, s.stop) for s in disjoint([(0, 0, 12), (0, 11, 23), (0, 40, 52)])] == [
        (0, 12),
        (12, 23),
        (40, 52),
    ]  # periods that share a sample


def test_given_segments_then_their_variance_grows_by_how_often_each_sample_is_in_them() -> None:
    assert counted([(0, 10, 60), (1, 10, 60), (0, 60, 100)]) == 1.0
    assert counted([(0, 5, 25), (0, 5, 25)]) == 2.0  # the same twice tells no more than once
    # 10 samples once, 10 twice, 20 three times
    assert counted([(3, 0, 40), (3, 10, 40), (3, 20, 40)]) == pytest.approx((10 + 40 + 180) / (10 + 20 + 60))


def test_given_a_short_chaotic_record_then_the_right_model_fits_and_no_noise_is_counted_twice() -> None:
    """Orbits of 3 to 10 periods in 29 of the drive overlap; the truth comes from SciPy."""
    times = 0.05 * np.arange(4000)
    motion = solve_ivp(
        lambda t, z: [z[1], -0.25 * z[1] + z[0] - z[0] ** 3 + 0.3 * np.cos(1.2 * t)],
        (0, times[-1]), (0.5, 0.0), t_eval=times, rtol=1e-10, atol=1e-12,
    ).y[:, 1000:]  # fmt: skip
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x - q*x**3 + 0.3*cos(1.2*t)"},
        {"c": {"guess": 0.2}, "k": {"guess": -0.8}, "q": {"guess": 0.8}},
    )
    noisy = motion + 0.01 * np.random.default_rng(60419).standard_normal(motion.shape)
    drive = Excitation(1.2 / (2 * np.pi), 0.3, 1.2 * times[1000])
    record = Record.from_arrays(20.0, {"x": noisy[0], "v": noisy[1]}, excitation=drive)
    start = HarmonicBalance().start(Experiment(model, record), SILENT)
    assert start.experiment is not None
    counted = np.concatenate([np.rint(20 * run.times).astype(int) for run in start.experiment.runs])
    assert len(np.unique(counted)) == len(counted) > 1500
    lengths = [len(run.times) for run in start.experiment.runs]
    assert [states.shape[1] for states in start.states if states is not None] == lengths
    found = identify(model, record, "balance")
    assert not any("not white" in reason for reason in found.reasons), found.reasons
    truth = {"c": 0.25, "k": -1.0, "q": 1.0}
    assert all(abs(found.parameters[n].value - v) < 4 * found.parameters[n].stderr for n, v in truth.items())
