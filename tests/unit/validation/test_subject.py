"""How a record is read beside a model before anything is checked, and what is said of what is left."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.signal import cont2discrete
from scipy.stats import chi2, norm

from analysis.base.errors import ModelError
from analysis.base.progress import SILENT
from analysis.base.record import Excitation, Record
from analysis.experiment import Conditions
from analysis.experiment.drive_time import DRIVE_TIME
from analysis.model import Model
from analysis.validation import prepare_subject
from analysis.validation import residuals as residuals_module
from analysis.validation import subject as subject_module
from analysis.validation.drive import tone_of
from analysis.validation.exponents import thinned
from analysis.validation.reading import read_subject
from analysis.validation.residuals import _residuals, _stretches, autocorrelation, check_residuals, ljung_box
from analysis.validation.subject import Subject
from tests.unit.validation.test_grades import TURN, driven_record, oscillator

FREE = Model.from_equations({"x": "v", "v": "-c*v - k*x"}, {"c": 0.02, "k": 4.0})
PUSHED = Model.from_equations(
    {"x": "v", "v": "-c*v - k*x + f"}, {"c": 0.2, "k": 4.0}, inputs={"f": "measured"}
)


@pytest.fixture(scope="module")
def subject() -> Subject:
    return prepare_subject(oscillator(), driven_record(), {})


def pushed_record(frequency: float = 1.5, count: int = 3000, **added: np.ndarray) -> Record:
    """The oscillator's record with its force measured."""
    record = driven_record(frequency=frequency, count=count)
    force = np.cos(frequency * record.dt * np.arange(count))
    channels = {"x": record["x"], "v": record["v"], "f": force, **added}
    return Record.from_arrays(record.rate, channels)


def test_given_a_drive_then_its_period_is_the_records_or_the_models_own(subject: Subject) -> None:
    assert subject.forced and subject.driven is subject.model
    assert subject.base == pytest.approx(TURN / 1.5)
    assert prepare_subject(oscillator(), driven_record(), {}, frequency=0.3).base == pytest.approx(1 / 0.3)
    silent = replace(driven_record(), excitation=Excitation(0.0, 1.0, 0.0), drive_time=0.0)
    assert prepare_subject(oscillator(), silent, {"w": 1.5}).base == pytest.approx(TURN / 1.5)
    endless = Model.from_equations({"x": "v", "v": "-0.2*v - 4*x + cos(0.1*t**2)"}, {})
    found = prepare_subject(endless, silent, {})
    assert not found.forced and found.driven is None and "give the frequency" in found.reason
    assert found.base == pytest.approx(TURN / 1.5, rel=0.05)  # a mean turn of its motion


def test_given_no_drive_then_a_turn_of_the_motion_is_the_measure() -> None:
    t = 0.05 * np.arange(2000)
    record = Record.from_arrays(20.0, {"x": np.cos(2 * t), "v": -2 * np.sin(2 * t)})
    found = prepare_subject(FREE, record, {})
    assert not found.forced and found.driven is found.model and found.reason == ""
    assert found.base == pytest.approx(np.pi, rel=0.01)


def test_given_a_measured_drive_then_it_counts_if_there_are_five_periods_of_a_tone() -> None:
    found = prepare_subject(PUSHED, pushed_record(), {})
    assert found.forced and found.driven is not None and not found.reason
    assert found.base == pytest.approx(TURN / 1.5, rel=1e-3)
    assert found.driven.parameters["f_cos1"].value == pytest.approx(1.0, abs=1e-3)
    slow = np.cos(TURN * np.arange(3000) / 3000)
    few = prepare_subject(PUSHED, pushed_record(f=slow), {}, frequency=4.9 / 3000 * 40 * 1.5 / TURN)
    assert not few.forced and "several periods" in few.reason and few.driven is None
    quiet = prepare_subject(PUSHED, pushed_record(f=np.zeros(3000)), {})
    assert not quiet.forced and "several periods" in quiet.reason
    broad = prepare_subject(PUSHED, pushed_record(f=np.random.default_rng(1).normal(size=3000)), {})
    assert not broad.forced and broad.driven is None and "no tone" in broad.reason
    poor = np.cos(TURN * np.arange(3000) / 40) + 0.15 * np.random.default_rng(1).normal(size=3000)
    assert prepare_subject(PUSHED, pushed_record(f=poor), {}).forced  # so much is a poor sensor
    said = prepare_subject(PUSHED, pushed_record(), {}, frequency=1.5 / TURN)
    assert said.base == pytest.approx(TURN / 1.5, rel=1e-12)


def test_given_a_measured_drive_about_a_distant_mean_with_lost_samples_then_its_tone_is_found() -> None:
    force = 50.0 + np.cos(TURN * np.arange(3000) / 40)
    force[1000:1200] = np.nan
    pulled = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x + f - 50"}, {"c": 0.2, "k": 4.0}, inputs={"f": "measured"}
    )
    found = prepare_subject(pulled, pushed_record(f=force), {})
    assert found.forced and found.base == pytest.approx(40 * found.dt, rel=1e-3)


def test_given_two_measured_inputs_then_the_poorer_sensor_tells_the_noise_of_the_drive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares: list[float] = []

    def toned(model: Model, record: Record, times: np.ndarray, frequency: float, noise: float) -> Model:
        shares.append(noise)
        return model

    monkeypatch.setattr(subject_module, "toned", toned)
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x + f + g"}, {"c": 0.2, "k": 4.0}, inputs=dict.fromkeys("fg", "measured")
    )
    tone, noise = np.cos(TURN * np.arange(3000) / 40), np.random.default_rng(1).normal(size=(2, 3000))
    for f, g in ((0.01, 0.1), (0.1, 0.01)):
        given = pushed_record(f=tone + f * noise[0], g=tone + g * noise[1])
        prepare_subject(model, given, {}, frequency=given.rate / 40)
    assert shares == pytest.approx([0.1 / np.sqrt(0.51)] * 2, rel=0.05)


def test_given_values_of_several_records_then_the_first_ones_count_and_offsets_are_taken_out() -> None:
    values = {"k[1]": 3.0, "k[2]": 9.0, "c": 0.1, "offset x": 0.25, "x(0)": 7.0}
    record = driven_record()
    found = prepare_subject(oscillator(), record, values)
    assert found.model.parameters["k"].value == 3.0 and found.model.parameters["c"].value == 0.1
    np.testing.assert_allclose(found.record["x"], record["x"] - 0.25)
    np.testing.assert_allclose(found.record["v"], record["v"])


@pytest.mark.parametrize("name", [DRIVE_TIME, f"{DRIVE_TIME}[1]"])
def test_given_a_record_that_does_not_know_its_phase_then_the_time_that_was_identified_counts(
    name: str,
) -> None:
    record = replace(driven_record(phase=1.2), excitation=None)
    assert prepare_subject(oscillator(), record, {name: 0.8}).origin == pytest.approx(0.8)
    known = driven_record(phase=1.2)  # of which it is recorded: 1.2 = 1.5 t
    assert prepare_subject(oscillator(), known, {name: 9.9}).origin == pytest.approx(0.8)
    assert prepare_subject(FREE, replace(record, drive_time=None), {name: 5.0}).origin == 0.0


def test_given_starts_along_the_record_then_they_are_whole_periods_apart(subject: Subject) -> None:
    places = subject.places(8)
    assert list(places) == [40 * n for n in (0, 9, 18, 28, 37, 46, 56, 65)]  # (3000 - 3) / 8 / 40 = 9.37
    free = replace(subject, forced=False)
    assert list(free.places(3)) == [0, 999, 1998]


def test_given_a_model_that_escapes_then_it_has_no_run() -> None:
    runaway = Model.from_equations({"x": "v", "v": "x**3 - 0.1*v + a*cos(1.5*t)"}, {"a": 1.0})
    found = prepare_subject(runaway, driven_record(amplitude=4.0), {})
    assert found.run is None and found.escapes and found.twin is None
    assert not found.state_noise.any() and found.other_twins == ()


def test_given_sensors_with_noise_then_the_models_run_is_shown_as_they_would(subject: Subject) -> None:
    assert subject.run is not None and subject.twin is not None and not subject.escapes
    np.testing.assert_allclose(subject.run, subject.states, atol=5e-3)
    np.testing.assert_allclose(subject.twin, subject.run, atol=5e-3)
    noisy = replace(subject)
    noisy.__dict__["noise"] = 0.1 * subject.spread
    left = noisy.twin - noisy.run  # type: ignore[operator]
    assert np.all(noisy.state_noise == pytest.approx(np.sqrt(np.mean(left**2, axis=1))))
    assert np.all(noisy.state_noise > 0.005 * subject.spread)
    assert np.all(noisy.state_noise < 0.101 * subject.spread)  # smoothing takes away part of it
    assert subject.spread == pytest.approx(np.std(subject.data.outputs, axis=1))
    assert len(subject.other_twins) == 7


def test_given_coarse_samples_then_they_are_used_as_they_are() -> None:
    """Four samples a period without noise: a local cubic would cut the peaks off."""
    n = np.arange(400)
    x = np.cos(TURN * n / 4.3)
    coarse = prepare_subject(FREE, Record.from_arrays(1.0, {"x": x, "v": np.sin(TURN * n / 4.3)}), {})
    np.testing.assert_array_equal(coarse.states[0], x)
    noisy = np.cos(TURN * n / 60) + 0.1 * np.random.default_rng(2).normal(size=400)
    fine = prepare_subject(FREE, Record.from_arrays(1.0, {"x": noisy, "v": np.sin(TURN * n / 60)}), {})
    assert np.std(fine.states[0] - np.cos(TURN * n / 60)) < 0.08


def test_given_many_samples_a_period_then_forty_are_kept_in_units_of_their_spread(subject: Subject) -> None:
    dense = replace(subject, base=subject.base * 3.4)
    part, dt = thinned(dense, np.vstack([5.0 * subject.states[0], np.full(3000, 2.0)]))
    assert dt == pytest.approx(3 * subject.dt) and part.shape == (2, 1000)
    assert np.std(part[0]) == pytest.approx(1.0) and np.all(part[1] == 2.0)
    assert thinned(subject, subject.states)[1] == subject.dt
    assert thinned(replace(subject, base=subject.base / 9), subject.states)[1] == subject.dt
    assert thinned(subject, np.ones((2, 30_000)))[0].shape == (2, 25_000)


def test_given_a_tone_with_gaps_then_its_parts_and_what_it_leaves_are_those_of_least_squares() -> None:
    t = 0.3 + 0.01 * np.arange(3000)
    clean = 0.3 + 2.0 * np.cos(3 * t) - 0.5 * np.sin(6 * t)
    row = clean + 0.02 * clean.std() * np.sqrt(2) * np.cos(21.9 * t)
    row[500:700] = np.nan
    found = tone_of(row, t, 3 / TURN)
    assert found.offset == pytest.approx(0.3, abs=5e-3)
    assert found.cosines == pytest.approx((2.0, 0.0, 0.0), abs=5e-3)
    assert found.sines == pytest.approx((0.0, -0.5, 0.0), abs=5e-3)
    assert found.miss == pytest.approx(0.02, rel=0.05)


def test_given_residuals_then_the_bound_is_passed_at_any_lag_once_in_a_thousand() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.normal(size=300), rng.normal(size=150)]
    lags, values, band = autocorrelation(rows)
    assert list(lags) == list(range(1, 41))
    each = 1 - 0.999 ** (1 / 40)
    assert band == pytest.approx(norm.isf(each / 2) / np.sqrt(450))
    by_hand = [sum(r[k:] @ r[:-k] for r in rows) / sum(r @ r for r in rows) for k in range(1, 41)]
    assert values == pytest.approx(by_hand)
    pairs = 450 - 2 * np.arange(1, 41)
    statistic = 450 * 452 * np.sum(np.array(by_hand) ** 2 / pairs)
    assert ljung_box(rows, lags) == pytest.approx(chi2.sf(statistic, 40))
    assert len(autocorrelation([rows[0], rows[1][:60]])[0]) == 20  # a third of the shortest
    assert np.all(np.abs(values) < band)


def test_given_a_long_record_then_stretches_all_over_it_are_looked_at(subject: Subject) -> None:
    long = prepare_subject(oscillator(), driven_record(count=12_000), {})
    pieces = _stretches(long)
    assert len(pieces) == 30 and {len(p.times) for p in pieces} == {200}
    assert pieces[0].times[0] == long.times[0] and pieces[-1].times[-1] == long.times[-1]
    whole = _stretches(replace(long, base=long.base * 30))  # no more than 2000 samples
    assert {len(p.times) for p in whole} == {2000} and len(whole) == 3
    short = prepare_subject(oscillator(), driven_record(count=150), {})
    assert _stretches(short) == []
    assert check_residuals(short, SILENT).status == "not possible"


def test_given_a_path_that_misses_its_equations_then_it_is_sought_three_times(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    defects: list[float] = []
    seen: list[Any] = []

    def path(kernels: Any, segments: Any, values: Any, free: Any, *, sigma: Any, **_: Any) -> Any:
        seen.append((segments, sigma))
        left = np.array([[1.0, np.nan], [2.0, 3.0]])
        states = [s.states + 1.0 for s in segments]
        return SimpleNamespace(defect=defects.pop(0), states=states, residuals=[left] * len(segments))

    monkeypatch.setattr(residuals_module, "estimate_path", path)
    known = replace(subject)
    known.__dict__["noise"] = np.array([0.5, 1e-9])
    segments = _stretches(subject)[:2]
    for said, turns in (([1e-7], 1), ([1e-5, 1e-7], 2), ([1e-5] * 3, 3)):
        defects[:], seen[:] = said, []
        found = _residuals(known, segments, SILENT)
        assert len(seen) == turns and not defects
        np.testing.assert_allclose(seen[-1][0][1].states, segments[1].states + turns - 1)
    np.testing.assert_array_equal(found[0], [[1.0, 0.0], [2.0, 3.0]])
    assert seen[0][1] == pytest.approx([0.5, 1e-4 * subject.spread[1]])


def test_given_a_measured_input_then_its_correlation_is_drawn_over_lags_of_both_signs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = prepare_subject(PUSHED, pushed_record(), {})
    rng = np.random.default_rng(4)
    count = len(_stretches(known))
    length = len(_stretches(known)[0].times)
    rows = list(rng.normal(size=(count, 2, length)) * known.spread[:, None] * np.array([[0.1], [0.3]]))
    monkeypatch.setattr(residuals_module, "_residuals", lambda *_: rows)
    known.__dict__["noise"] = 0.01 * known.spread
    found = check_residuals(known, SILENT)
    own, cross = found.panels
    lags = np.arange(1, 41)
    np.testing.assert_allclose(own.traces[0].x, lags * known.dt)
    np.testing.assert_allclose(own.traces[1].x, [0.0, 40 * known.dt])
    np.testing.assert_allclose(cross.traces[0].x, np.arange(-40, 41) * known.dt)
    np.testing.assert_allclose(cross.traces[1].x, [-40 * known.dt, 40 * known.dt])
    assert own.traces[1].y[0] == -own.traces[2].y[0] > 0
    assert found.numbers["rms"] == pytest.approx(0.3 * known.spread[1], rel=0.03)  # the worse of both
    assert found.numbers["noise"] == pytest.approx(0.01 * known.spread[1])
    assert found.numbers["systematic_of_spread"] == pytest.approx(np.sqrt(0.09 - 1e-4), rel=0.03)
    assert found.numbers["largest_cross_correlation"] == pytest.approx(np.max(np.abs(cross.traces[0].y)))
    assert found.status == "failed" and "in v" in found.sentence
    assert "white noise" in found.sentence


def held_record(stiffness: float = 4.0, noise: float = 0.01) -> Record:
    """The oscillator under a white force that a converter holds: exact from sample to sample."""
    rng = np.random.default_rng(5)
    dt, count = 0.05, 1500
    A, B = np.array([[0.0, 1.0], [-stiffness, -0.2]]), np.array([[0.0], [1.0]])
    step, gain, *_ = cont2discrete((A, B, np.eye(2), np.zeros((2, 1))), dt)
    force, z = 2.0 * rng.normal(size=count), np.zeros((2, count))
    for n in range(count - 1):
        z[:, n + 1] = step @ z[:, n] + gain[:, 0] * force[n]
    z += noise * z.std(axis=1, keepdims=True) * rng.normal(size=z.shape)
    return Record.from_arrays(1 / dt, {"x": z[0], "v": z[1], "f": force})


def test_given_a_white_force_that_a_converter_holds_then_the_right_model_is_validated() -> None:
    held = read_subject(PUSHED, held_record(), {})
    assert held.conditions.inputs == "hold" and not held.forced
    found = check_residuals(held, SILENT)
    assert found.status == "passed", found.sentence
    assert "read as held" in found.sentence
    smoothed = check_residuals(prepare_subject(PUSHED, held_record(), {}), SILENT)
    assert smoothed.status != "passed"  # a smooth curve through the samples is not the force
    stated = Conditions(inputs="bandlimited", denoise=False)  # what was said of the channels is not overruled
    assert read_subject(PUSHED, held_record(), {}, None, stated).conditions is stated
    wrong = read_subject(PUSHED, held_record(stiffness=4.4), {})  # no reading makes it fit
    assert check_residuals(wrong, SILENT).status == "failed"
    smooth = read_subject(PUSHED, pushed_record(), {})
    assert smooth.conditions.inputs == "auto"
    assert "held" not in check_residuals(smooth, SILENT).sentence
    free = Record.from_arrays(20.0, {"x": np.cos(0.1 * np.arange(400)), "v": -np.sin(0.1 * np.arange(400))})
    assert read_subject(FREE, free, {}).conditions.inputs == "auto"


LATE = 0.83  # of the drive's time at the first sample


def late_record(noise: float = 0.01) -> Record:
    """The steady answer of x'' + 0.2 x' + 4 x = cos(1.5 t) from t = 0.83 on, by its closed form."""
    t = LATE + 0.1 * np.arange(600)
    answer = np.exp(1.5j * t) / (4.0 - 1.5**2 + 0.3j)
    rng = np.random.default_rng(4)
    x, v = answer.real, (1.5j * answer).real
    channels = {"x": x + noise * rng.standard_normal(600), "v": v + noise * rng.standard_normal(600)}
    return Record.from_arrays(10.0, channels)


@pytest.mark.parametrize("search", ["ends", "fails", "does not end"])
def test_given_no_phase_of_the_drive_then_it_is_fitted_to_what_the_noise_allows_or_as_scanned(
    search: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model.from_equations({"x": "v", "v": "-0.2*v - 4*x + cos(1.5*t)"})
    if search == "fails":

        def fail(*_: object) -> None:
            raise ModelError("no")

        monkeypatch.setattr(subject_module, "fit", fail)
    if search == "does not end":
        lost = SimpleNamespace(converged=False, values=np.full((1, 1), 55.0))
        monkeypatch.setattr(subject_module, "fit", lambda *_: lost)
    found = prepare_subject(model, late_record(), {})
    off = (found.record.drive_time or 0.0) - LATE
    off -= TURN / 1.5 * round(off / (TURN / 1.5))
    # 1200 samples of 0.01 beside an amplitude of 0.6 know it to 0.0007; the scan has steps of a 32nd or so
    assert abs(off) < (0.004 if search == "ends" else 0.2)
    assert found.forced and found.base == pytest.approx(TURN / 1.5)


def test_given_a_drive_time_that_was_identified_or_recorded_then_no_other_is_sought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subject_module, "_fitted_time", lambda _: pytest.fail("sought"))
    model = Model.from_equations({"x": "v", "v": "-0.2*v - 4*x + cos(1.5*t)"})
    assert prepare_subject(model, late_record(), {DRIVE_TIME: 0.31}).record.drive_time == 0.31
    assert prepare_subject(model, late_record(), {f"{DRIVE_TIME}[1]": 0.32}).record.drive_time == 0.32
    known = replace(late_record(), drive_time=0.5)
    assert prepare_subject(model, known, {DRIVE_TIME: 0.31}).record.drive_time == 0.5
