"""Where each check draws its lines: numbers just inside and just outside, and closed forms behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import norm, rice
from scipy.stats import t as t_distribution

from analysis.base.errors import DataError
from analysis.base.progress import SILENT
from analysis.base.record import Excitation, Record
from analysis.experiment.conditions import Conditions
from analysis.model import Model
from analysis.orbits.orbit import PeriodicOrbit
from analysis.reconstruct.exponents import LargestExponent
from analysis.signal.frequency_response import FrequencyResponse
from analysis.simulation.simulate import simulate
from analysis.validation import energy_distance, prepare_subject
from analysis.validation import orbits as orbits_module
from analysis.validation.bifurcation import (
    Setting,
    Sweep,
    _frequency_factor,
    _placed,
    _points,
    _ratio,
    check_bifurcation,
)
from analysis.validation.chance import judged_among, probability_among
from analysis.validation.check import Check, Status, graded
from analysis.validation.drive import scaled, toned
from analysis.validation.equilibria import check_equilibria, main_mode, rest_states
from analysis.validation.exponents import _judged
from analysis.validation.force import check_force
from analysis.validation.orbits import OrbitMatch, check_orbits
from analysis.validation.residuals import _cross, _stretches, check_residuals
from analysis.validation.response import _growth, predict_response
from analysis.validation.section import section_distance
from analysis.validation.subject import Subject
from analysis.validation.transfer import _both
from analysis.validation.verdict import judged

TURN = 2 * np.pi


def oscillator(force: str = "a*cos(w*t)") -> Model:
    return Model.from_equations(
        {"x": "v", "v": "-c*v - k*x + f"}, {"c": 0.2, "k": 4.0, "a": 1.0, "w": 1.5}, inputs={"f": force}
    )


def driven_record(
    amplitude: float = 1.0, frequency: float = 1.5, phase: float = 0.0, count: int = 3000
) -> Record:
    """The steady response of the oscillator, in closed form, 40 samples a period."""
    dt = TURN / frequency / 40
    t = dt * np.arange(count)
    gain = amplitude / (4.0 - frequency**2 + 0.2j * frequency)
    wave = gain * np.exp(1j * (frequency * t + phase))
    channels = {"x": wave.real, "v": (1j * frequency * wave).real}
    return Record.from_arrays(1 / dt, channels, excitation=Excitation(frequency / TURN, amplitude, phase))


@pytest.fixture(scope="module")
def subject() -> Subject:
    return prepare_subject(oscillator(), driven_record(), {})


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (0.0, "passed"),
        (0.1, "passed"),
        (0.11, "doubtful"),
        (0.3, "doubtful"),
        (0.31, "failed"),
        (np.nan, "failed"),
    ],
)
def test_given_a_number_that_should_be_small_then_it_is_graded_by_two_limits(
    value: float, status: str
) -> None:
    assert graded(value, 0.1, 0.3) == status


def checks(**counts: int) -> tuple[Check, ...]:
    return tuple(
        Check(f"{name}{i}", f"{name} {i}", cast(Status, name.replace("_", " ")), "")
        for name, count in counts.items()
        for i in range(count)
    )


def test_given_checks_then_doubts_prevail_when_they_are_as_many_as_what_passed() -> None:
    assert judged(checks(passed=3, doubtful=2, not_possible=4)).passed
    assert judged(checks(passed=3, doubtful=2, not_possible=4)).verdict == (
        "The model is validated: 3 of 5 checks passed, with doubts about doubtful 0 and doubtful 1."
    )
    assert not judged(checks(passed=2, doubtful=2)).passed
    assert judged(checks(passed=2, doubtful=2), stated=0.03).passed
    assert "beyond the 3 %" in judged(checks(passed=2, doubtful=2), stated=0.03).verdict
    assert not judged(checks(passed=9, failed=1), stated=0.03).passed
    assert judged(checks(passed=1)).verdict == "The model is validated: 1 of 1 checks passed."
    assert judged(checks(not_possible=2)).verdict == "Nothing could be checked."


def exponent(value: float, stderr: float, message: str = "") -> LargestExponent:
    return LargestExponent(value, stderr, "rosenstein", np.zeros(2), np.zeros(2), (0.0, 1.0), 1, message)


def test_given_exponents_then_they_agree_within_a_quarter_or_two_errors() -> None:
    sharp = exponent(0.10, 0.001)
    assert _judged(sharp, exponent(0.124, 0.001), 10.0)[0] == "passed"
    assert _judged(sharp, exponent(0.126, 0.001), 10.0)[0] == "doubtful"
    assert _judged(sharp, exponent(0.149, 0.001), 10.0)[0] == "doubtful"
    assert _judged(sharp, exponent(0.151, 0.001), 10.0)[0] == "failed"
    assert _judged(replace(sharp, message="noisy"), exponent(0.3, 0.001), 10.0)[0] == "doubtful"
    # two errors of sqrt(0.03^2 + 0.04^2) = 0.05 are 0.1
    assert _judged(exponent(0.10, 0.03), exponent(0.199, 0.04), 10.0)[0] == "passed"
    assert _judged(exponent(0.10, 0.03), exponent(0.201, 0.04), 10.0)[0] == "failed"
    # no motion parts by less than 0.02 nats a period: the gap is held against that
    assert _judged(exponent(1e-5, 0.0), exponent(4.9e-4, 0.0), 10.0)[0] == "passed"
    assert _judged(exponent(1e-5, 0.0), exponent(5.3e-4, 0.0), 10.0)[0] == "doubtful"


def test_given_numbers_of_many_records_then_one_more_is_judged_by_their_scatter() -> None:
    others = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    for value in (4.5, 9.0, -3.0):
        draws = t_distribution(7, loc=4.5, scale=np.std(others, ddof=1) * np.sqrt(9 / 8))
        assert probability_among(value, others) == pytest.approx(2 * draws.sf(4.5 + abs(value - 4.5)))
    assert judged_among(9.0, others, "failed", "no")[0] == "passed"
    assert judged_among(30.0, others, "failed", "no") == ("failed", "no")
    assert judged_among(30.0, others, "doubtful", "no") == ("doubtful", "no")
    assert judged_among(30.0, others[:4], "failed", "no")[0] == "doubtful"
    assert judged_among(1.0, np.ones(8), "failed", "no")[0] == "passed"
    assert judged_among(1.1, np.ones(8), "failed", "no")[0] == "failed"


def test_given_an_error_that_doubles_then_the_horizon_is_where_it_reaches_half_the_spread() -> None:
    """An error of 1/64 of the spread that doubles with each unit of time reaches a half after five."""
    length, dt, restarts = 80, 0.1, 5
    since = dt * np.arange(length)
    measured = np.tile(np.sin(np.arange(length * restarts)), (2, 1))
    error = np.tile(2.0 ** (since - 6.0), restarts) * np.array([[1.0], [0.25]])
    spread = np.array([3.0, 1.0])
    found, growth, horizon = _growth(
        measured, measured + spread[:, None] * error, spread, length, dt, restarts
    )
    np.testing.assert_allclose(found, since)
    np.testing.assert_allclose(growth, error[:, :length], rtol=1e-9)
    assert horizon == pytest.approx(5.1)  # the first sample beyond
    assert _growth(measured, measured + 0.4, np.ones(2), length, dt, restarts)[2] == np.inf
    lost = measured + 0.01
    lost[1, length + 30 : 2 * length] = np.nan  # a motion that ran away 3 units after a restart
    assert _growth(measured, lost, np.ones(2), length, dt, restarts)[2] == pytest.approx(3.0)
    short = _growth(measured[:, :50], measured[:, :50], np.ones(2), length, dt, restarts)
    assert len(short[0]) == 50 and short[2] == np.inf


def test_given_a_record_of_few_samples_then_no_response_is_predicted(subject: Subject) -> None:
    short = prepare_subject(oscillator(), driven_record(count=16), {})
    assert len(predict_response(short, 100.0).times) == 16
    with pytest.raises(DataError, match="too short"):
        predict_response(replace(short, record=short.record.cut(0, 15)), 100.0)


def test_given_points_apart_then_the_energy_distance_is_the_closed_form() -> None:
    assert energy_distance(np.zeros((1, 5)), np.full((1, 7), 3.0)) == pytest.approx(np.sqrt(6.0))
    two = np.array([[0.0, 1.0]])
    # 2 E|X - Y| - E|X - X'| - E|Y - Y'| = 2 * (0 + 1)/2 - 1/2
    assert energy_distance(two, np.zeros((1, 3))) == pytest.approx(np.sqrt(0.5))


def test_given_stretches_of_the_same_motion_then_the_record_lies_as_far_off_as_they_do() -> None:
    rng = np.random.default_rng(3)
    own = rng.normal(size=(2, 600))
    same, chance = section_distance(rng.normal(size=(2, 100)), own, 100)
    assert 0.4 < same / chance < 1.5
    far, chance = section_distance(rng.normal(size=(2, 100)) + [[1.0], [0.0]], own, 100)
    # differences of normals one spread apart are sqrt(2) times a Rice variable, 2 E|X - Y| - 2 E|X - X'|
    means = [np.sqrt(2) * rice.mean(b) for b in (np.sqrt(0.5), 0.0)]
    assert far == pytest.approx(np.sqrt(2 * (means[0] - means[1])), abs=0.12)
    assert far > 2 * chance
    # of six stretches one lies elsewhere: that far a record may lie, too
    own[0, 200:300] += 2.0
    assert section_distance(rng.normal(size=(2, 100)), own, 100)[1] > 0.5


def test_given_points_at_one_setting_then_their_distance_is_held_against_chance() -> None:
    rng = np.random.default_rng(4)
    cloud = rng.normal(size=200)
    assert _ratio(cloud, cloud, 1.0) == 0.0
    assert 0 < _ratio(cloud, cloud + 0.1, 1.0) < 1
    apart = cloud + 3.0
    parts = np.split(cloud, 4)
    chance = max(
        energy_distance(p[None], np.concatenate([q for q in parts if q is not p])[None]) for p in parts
    )
    far = energy_distance(cloud[None], apart[None]) / max(chance, 0.15)
    assert _ratio(cloud, apart, 1.0) == pytest.approx(far, rel=1e-9)
    assert _ratio(5 * cloud, 5 * apart, 5.0) == pytest.approx(far, rel=1e-9)
    assert _ratio(cloud, np.full(50, np.nan), 1.0) == np.inf
    assert _ratio(cloud[:7], cloud, 1.0) == np.inf
    assert np.isfinite(_ratio(cloud[:8], cloud, 1.0))  # two points in each of four parts tell their scatter


def test_given_a_transient_before_a_periodic_motion_then_its_end_alone_is_compared() -> None:
    rng = np.random.default_rng(5)
    chaos = rng.normal(size=(2, 200))
    rest = np.tile([[0.3, -0.4], [0.1, 0.2]], (1, 100)) + 1e-3 * rng.normal(size=(2, 200))
    ended = Setting(1.0, np.concatenate([chaos, rest], axis=1), 1.0)
    assert ended.repeats and np.ptp(ended.settled[0]) < 0.71
    endless = Setting(1.0, np.concatenate([rest, chaos], axis=1), 1.0)
    assert not endless.repeats and endless.settled.shape == (2, 400)


def test_given_the_drives_frequency_then_the_parameter_that_is_it_is_known() -> None:
    assert _frequency_factor(0.25, 4.0) == 1.0
    assert _frequency_factor(1.5, TURN / 1.5) == pytest.approx(TURN)
    assert _frequency_factor(0.3, 4.0) is None


def test_given_recordings_at_other_drives_then_each_stands_at_its_setting(subject: Subject) -> None:
    placed = _placed(subject, "a", 1.0, driven_record(amplitude=0.5, phase=1.0))
    points = placed.states
    assert placed.value == pytest.approx(0.5)
    assert placed.spread == pytest.approx(0.5 / abs(4.0 - 1.5**2 + 0.3j) / np.sqrt(2), rel=0.01)
    # once a period, when the model's time is a whole number of periods: all in one place
    gain = 1.0 / (4.0 - 1.5**2 + 0.3j)
    np.testing.assert_allclose(
        points[:, 2:-2].mean(axis=1), 0.5 * np.array([gain.real, (1.5j * gain).real]), atol=2e-3
    )
    assert np.ptp(points[0]) < 1e-3
    faster = _placed(subject, "w", 1.5, driven_record(frequency=1.8))
    assert faster.value == pytest.approx(1.8)
    gain = 1.0 / (4.0 - 1.8**2 + 0.36j)
    assert faster.states[0].mean() == pytest.approx(gain.real, abs=2e-3)
    with pytest.raises(DataError, match="do not tell which value of a"):
        _placed(subject, "a", 1.0, driven_record(frequency=1.8))
    assert _points(subject).shape[1] in (74, 75)


@pytest.mark.parametrize(("left", "tone"), [(0.02, True), (0.04, False)])
def test_given_an_input_then_three_per_cent_beside_its_tone_are_let_pass(left: float, tone: bool) -> None:
    """Left over: a line at 7.3 times the drive's frequency, which no harmonic takes up."""
    model = Model.from_equations({"x": "v", "v": "-0.2*v - k*x + f"}, {"k": 4.0}, inputs={"f": "measured"})
    t = 0.01 * np.arange(4000)
    row = 0.3 + 2.0 * np.cos(3 * t) + 0.5 * np.sin(6 * t)
    row = row + left * row.std() * np.sqrt(2) * np.cos(21.9 * t)
    record = Record.from_arrays(100.0, {"x": row, "f": row})
    if not tone:
        with pytest.raises(DataError, match="is no tone"):
            toned(model, record, t, 3 / TURN, 0.0)
        assert toned(model, record, t, 3 / TURN, 0.04).parameters  # so much is the sensor's noise
        return
    values = {n: p.value for n, p in toned(model, record, t, 3 / TURN, 0.0).parameters.items()}
    assert values["f_cos1"] == pytest.approx(2.0, abs=2e-3)
    assert values["f_sin2"] == pytest.approx(0.5, abs=2e-3)
    assert values["f_offset"] == pytest.approx(0.3, abs=2e-3)


def test_given_a_tone_in_place_of_an_input_then_the_model_moves_as_under_the_input() -> None:
    model = Model.from_equations({"x": "v", "v": "-0.2*v - k*x + f"}, {"k": 4.0}, inputs={"f": "measured"})
    t = 0.01 * np.arange(2000)
    force = 0.3 + 2.0 * np.cos(3 * t) + 0.5 * np.sin(6 * t) - 0.4 * np.cos(9 * t)
    alone = toned(model, Record.from_arrays(100.0, {"x": force, "f": force}), t, 3 / TURN, 0.0)
    written = Model.from_equations(
        {"x": "v", "v": "-0.2*v - 4*x + 0.3 + 2*cos(3*t) + 0.5*sin(6*t) - 0.4*cos(9*t)"}, {}
    )
    start = np.array([0.1, 0.0])
    one, other = simulate(alone, t, start).states, simulate(written, t, start).states
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_given_a_drive_among_the_inputs_then_a_factor_scales_it_and_nothing_else() -> None:
    strong = scaled(oscillator())
    assert strong is not None
    t = np.linspace(0, 10, 50)
    start = np.array([0.3, 0.0])
    doubled = simulate(strong.with_values({"drive_scale": 2.0}), t, start).states
    np.testing.assert_allclose(
        doubled, simulate(oscillator().with_values({"a": 2.0}), t, start).states, atol=1e-7
    )
    assert scaled(oscillator("measured")) is None
    assert scaled(Model.from_equations({"x": "v", "v": "-k*x + cos(t)"}, {"k": 1.0})) is None


def test_given_two_modes_then_frequency_and_damping_of_the_higher_peak_are_found() -> None:
    f = np.linspace(0.5, 20.0, 2000)
    s = 2j * np.pi * f
    main = 1 / (s**2 + 2 * 0.02 * TURN * 5 * s + (TURN * 5) ** 2)
    other = 3 / (s**2 + 2 * 0.03 * TURN * 14 * s + (TURN * 14) ** 2)
    coherence = np.ones(len(f))
    frequency, damping = main_mode(FrequencyResponse(f, main + other, coherence))
    assert frequency == pytest.approx(5 * np.sqrt(1 - 0.02**2), rel=1e-3)
    assert damping == pytest.approx(0.02, rel=0.02)
    coherence[(f > 4) & (f < 6)] = 0.4  # there the transfer function says nothing
    frequency, damping = main_mode(FrequencyResponse(f, main + other, coherence))
    assert frequency == pytest.approx(14 * np.sqrt(1 - 0.03**2), rel=1e-3)
    assert damping == pytest.approx(0.03, rel=0.03)


@pytest.mark.parametrize(
    ("factor", "status"), [(1.028, "passed"), (1.032, "doubtful"), (1.10, "doubtful"), (1.12, "failed")]
)
def test_given_a_measured_mode_then_its_frequency_is_graded(
    subject: Subject, factor: float, status: str
) -> None:
    rests = rest_states(subject)
    assert len(rests) == 1
    natural = 2.0 * factor  # sqrt(k) = 2; the damped frequency hardly differs
    f = np.linspace(0.1, 0.6, 800)
    s = 2j * np.pi * f
    measured = FrequencyResponse(f, 1 / (s**2 + 0.2 * factor * s + natural**2), np.ones(len(f)))
    found = check_equilibria(subject, rests, measured)
    assert found.status == status
    assert found.numbers["measured_damping_ratio"] == pytest.approx(0.05, rel=1e-6)
    assert found.numbers["damping_ratio"] == pytest.approx(0.05, rel=1e-6)
    assert found.rows[0]["x"] == 0.0 and found.rows[0]["v"] == 0.0
    assert check_equilibria(subject, [], measured).status == "not possible"


def test_given_rests_beyond_the_visited_range_then_those_within_its_length_count() -> None:
    """Rests at 0, 1 and 4; the record swings from 0.2 to 1.8 and back."""
    model = Model.from_equations({"x": "v", "v": "-0.1*v - x*(x - 1)*(x - 4) + a*cos(t)"}, {"a": 0.1})
    t = 0.05 * np.arange(1000)
    record = Record.from_arrays(20.0, {"x": 1 + 0.8 * np.cos(t), "v": -0.8 * np.sin(t)})
    opened = Model.from_equations(
        {"x": "v", "v": "-0.1*v - x*(x - 1)*(x - 4) + f"}, {"a": 0.1}, inputs={"f": "a*cos(t)"}
    )
    assert rest_states(prepare_subject(model, record, {})) == []  # its drive cannot be taken out
    found = rest_states(prepare_subject(opened, record, {}))
    assert sorted(round(float(e.state[0]), 6) for e in found) == [0.0, 1.0]


def test_given_residuals_that_are_the_input_delayed_then_the_correlation_peaks_at_that_lag() -> None:
    rng = np.random.default_rng(6)
    rows = [rng.normal(size=500) for _ in range(4)]
    inputs = iter([np.roll(r, -3) for r in rows])  # u[t - 3] = r[t]
    about = SimpleNamespace(data=SimpleNamespace(inputs=SimpleNamespace(values=lambda times: [next(inputs)])))
    segments = [SimpleNamespace(times=None) for _ in rows]
    own = np.zeros(40)
    lags, cross, band = _cross(cast(Any, about), cast(Any, segments), rows, own)
    assert list(lags) == list(range(-40, 41))
    assert cross[43] == pytest.approx(1.0, abs=0.02)
    rest = np.delete(cross, 43)
    assert np.all(np.abs(rest) < band)
    each = 1 - 0.999 ** (1 / 81)  # Sidak: at none of the 81 lags that are drawn
    assert band == pytest.approx(norm.isf(each / 2) / np.sqrt(2000), rel=1e-9)


def test_given_coloured_residuals_and_input_then_the_band_is_that_of_bartlett() -> None:
    rng = np.random.default_rng(7)
    waves = [np.convolve(rng.normal(size=600), 0.9 ** np.arange(80), "valid") for _ in range(4)]
    about = SimpleNamespace(
        data=SimpleNamespace(inputs=SimpleNamespace(values=lambda number: [waves[number]]))
    )
    segments = [SimpleNamespace(times=i) for i in range(4)]
    rows = [rng.normal(size=len(w)) for w in waves]
    white = _cross(cast(Any, about), cast(Any, segments), rows, np.zeros(40))[2]
    wide = _cross(cast(Any, about), cast(Any, segments), rows, 0.9 ** np.arange(1.0, 41.0))[2]
    # 1 + 2 sum r1(k) r2(k) = 1 + 2 sum 0.81^k = 9.5 for lags from 1 on
    assert wide / white == pytest.approx(np.sqrt(9.5), rel=0.12)


def test_given_a_record_then_stretches_of_five_periods_are_looked_at(subject: Subject) -> None:
    pieces = _stretches(subject)
    assert [len(p.times) for p in pieces] == [200] * 15
    assert pieces[1].times[0] - pieces[0].times[0] == pytest.approx(5 * TURN / 1.5)
    coarse = replace(subject, base=subject.base / 30)  # no fewer than 40 samples
    assert {len(p.times) for p in _stretches(coarse)} == {40}
    assert len(_stretches(replace(subject, base=subject.base / 2))) == 30


def leaving(
    subject: Subject, noise: np.ndarray, residuals: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> Subject:
    """The subject with sensors of this noise, of which the model leaves these residuals."""
    monkeypatch.setattr("analysis.validation.residuals._residuals", residuals)
    known = replace(subject)
    known.__dict__["noise"] = noise
    return known


@pytest.mark.parametrize(
    ("missed", "stated", "status"),
    [
        (0.004, 0.0, "passed"),
        (0.008, 0.0, "doubtful"),
        (0.013, 0.0, "failed"),
        (0.013, 0.012, "doubtful"),
        (0.013, 0.009, "failed"),
    ],
)
def test_given_a_systematic_part_then_it_is_graded_by_its_share(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, missed: float, stated: float, status: str
) -> None:
    """A residual of a known share of the spread, beside the noise that the sensor has."""
    rng = np.random.default_rng(8)
    noise = 0.002 * subject.spread

    def residuals(*_: object) -> list[np.ndarray]:
        rows = rng.normal(size=(15, 2, 200))
        rows /= rows.std(axis=(0, 2), keepdims=True)
        return list(rows * np.hypot(noise, missed * subject.spread)[:, None])

    found = check_residuals(leaving(subject, noise, residuals, monkeypatch), cast(Any, None), stated)
    assert found.numbers["systematic_of_spread"] == pytest.approx(missed, rel=0.01)
    assert found.status == status


@pytest.mark.parametrize(
    ("size", "colour", "status"),
    [(1.19, 0.0, "passed"), (1.21, 0.0, "doubtful"), (1.19, 0.5, "doubtful"), (1.0, 0.5, "passed")],
)
def test_given_residuals_near_the_noise_then_white_ones_are_chance(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, size: float, colour: float, status: str
) -> None:
    rng = np.random.default_rng(9)
    noise = 0.03 * subject.spread

    def residuals(*_: object) -> list[np.ndarray]:
        white = rng.normal(size=(15, 2, 201))
        rows = white[:, :, 1:] + colour * white[:, :, :-1]
        return list(rows * (size * noise)[:, None] / rows.std(axis=(0, 2))[:, None])

    known = leaving(subject, noise, residuals, monkeypatch)
    assert check_residuals(known, cast(Any, None)).status == status


@pytest.mark.parametrize(
    ("share", "status"), [(6, "passed"), (5, "doubtful"), (3, "doubtful"), (2, "failed")]
)
def test_given_a_share_of_the_records_orbits_then_the_model_is_graded_by_it(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, share: int, status: str
) -> None:
    """Of twelve orbits the model has as many as are said."""
    lengths = [1 + i % 3 for i in range(14)]
    starts, multipliers = np.zeros(1, np.int64), np.array([-3.0 + 0j])
    made = [PeriodicOrbit(0, 40.0 * n, n, 0.01 * i, 0.0, starts, multipliers) for i, n in enumerate(lengths)]
    monkeypatch.setattr(orbits_module, "_extracted", lambda *_: tuple(made))

    def match(_: object, model: object, one: PeriodicOrbit) -> OrbitMatch:
        number = made.index(one)
        here = np.zeros((2, 3))
        return OrbitMatch(one, number < share, 0.02, 2.5, here, here)

    monkeypatch.setattr(orbits_module, "_match", match)
    found = check_orbits(subject, SimpleNamespace(part=lambda *_: None, report=lambda *_: None))  # type: ignore[arg-type]
    assert found.status == status
    assert found.numbers == {"compared": 12.0, "found": float(share), "distance": pytest.approx(0.02)}
    assert found.rows[0]["measured_multiplier"] == 3.0
    assert found.rows[-1]["length"] == pytest.approx(3 * TURN / 1.5)
    assert [p.title.split(",")[0] for p in found.panels] == ["Period 1"] * 2 + ["Period 2"] * 2 + [
        "Period 3"
    ] * 2


@pytest.mark.parametrize(("stiffness", "status"), [(4.0, "passed"), (4.8, "doubtful"), (6.5, "failed")])
def test_given_a_stiffness_then_the_restoring_force_is_graded_by_its_difference(
    subject: Subject, stiffness: float, status: str
) -> None:
    """A straight force over displacements spread as a sine: the rms is |dk| rms(x), the range k ptp(x)."""
    found = check_force(replace(subject, model=subject.model.with_values({"k": stiffness})))
    expected = abs(stiffness - 4.0) / (4.0 * 2 * np.sqrt(2))
    assert found.numbers["miss_of_range"] == pytest.approx(expected, rel=0.05, abs=0.01)
    assert found.status == status


@pytest.mark.parametrize(
    ("sizes", "steady"),
    [
        ((1.0, 1.9, 1.0, 1.5), True),
        ((1.0, 2.1, 1.0, 1.5), False),
        ((1.0, 1.05, 1.1, 1.18), True),
        ((1.0, 1.05, 1.1, 1.22), False),
        ((1.22, 1.1, 1.05, 1.0), False),
    ],
)
def test_given_a_spread_that_changes_then_a_trend_is_borne_less_than_a_wander(
    subject: Subject, sizes: tuple[float, ...], steady: bool
) -> None:
    wave = np.cos(TURN * np.arange(1000) / 50)
    states = np.tile(np.concatenate([size * wave for size in sizes]), (2, 1))
    found = replace(subject, states=states).fading
    assert (found == "") is steady
    if not steady:
        assert f"factor of {max(sizes) / min(sizes):.3g} " in found


def test_given_an_undriven_model_then_its_diagram_is_drawn_on_a_section(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Van der Pol's oscillator: dx/dt where x passes its mean is largest on the limit cycle."""
    monkeypatch.setattr("analysis.validation.bifurcation._VALUES", 12)
    model = Model.from_equations({"x": "v", "v": "mu*(1 - x**2)*v - x"}, {"mu": 0.5})
    states = simulate(model, 0.05 * np.arange(1200), [1.0, 0.0]).states[:, 400:]
    record = Record.from_arrays(20.0, {"x": states[0], "v": states[1]})
    found = check_bifurcation(prepare_subject(model, record, {}), Sweep("mu", 0.4, 0.6), [], SILENT)
    assert found.status == "not possible" and "other settings" in found.sentence
    drawn = found.panels[0].traces[0]
    assert drawn.x.min() == 0.4 and drawn.x.max() == 0.6
    assert np.all((drawn.y > 1.9) & (drawn.y < 2.6))


def test_given_residuals_that_are_not_noise_then_only_what_was_stated_is_let_pass() -> None:
    fine = Check("section", "Stroboscopic section", "passed", "")
    orbits = Check("orbits", "Periodic orbits", "passed", "")
    left = Check("residuals", "Residuals", "doubtful", "", {"systematic_of_spread": 0.008})
    found = judged((fine, orbits, left))
    assert not found.passed and "it is close, but its residuals hold 0.8 %" in found.verdict
    assert judged((fine, orbits)).verdict == "The model is validated: 2 of 2 checks passed."
    stated = judged((fine, orbits, left), stated=0.008)
    assert stated.passed and stated.verdict == (
        "The model is close, as identified: nothing failed beyond the 0.8 % that it misses, "
        "with doubts about residuals."
    )
    unknown = judged((fine, orbits), stated=0.0).verdict
    assert unknown == "The model is close, as identified: nothing failed here."


def test_given_a_model_that_escapes_on_the_way_then_no_transfer_function_is_made_of_the_rest() -> None:
    model = Model.from_equations({"x": "x**2 + f"}, {}, inputs={"f": "measured"})
    t = np.arange(400) / 100.0  # from x = 1 it is infinite at t = 1
    record = Record.from_arrays(100.0, {"x": np.cos(0.1 * t), "f": 1e-3 * np.sin(t)})
    with pytest.raises(DataError, match="escapes"):
        _both(model, record, Conditions())
