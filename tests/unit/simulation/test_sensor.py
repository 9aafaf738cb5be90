"""The virtual sensor chain, stage by stage."""

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.simulation.sensor import Sensor, spans

RATE = 1000.0
SINE = 2.0 * np.sin(2 * np.pi * 7 * np.arange(50_000) / RATE)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_given_defaults_when_measured_then_nothing_changes() -> None:
    assert np.array_equal(Sensor().measure(SINE, RATE, rng()).data, SINE)


@pytest.mark.parametrize(
    ("sensor", "level"),
    [
        (Sensor(snr_db=20), np.sqrt(2) / 10),
        (Sensor(snr_db=20, offset=5.0), np.sqrt(2) / 10),  # against the variance: an offset does not count
        (Sensor(noise_percent=3), 0.03 * np.sqrt(2)),
        (Sensor(noise=0.25), 0.25),
        (Sensor(snr_db=20, gain=4.0), 4 * np.sqrt(2) / 10),
    ],
)
def test_given_a_noise_level_when_measured_then_the_noise_has_it(sensor: Sensor, level: float) -> None:
    noise = sensor.measure(SINE, RATE, rng()).data - sensor.gain * SINE - sensor.offset
    assert np.std(noise) == pytest.approx(level, rel=0.02)
    assert abs(np.mean(noise)) < 4 * level / np.sqrt(len(noise))


def test_given_the_same_seed_when_measured_twice_then_the_data_are_the_same() -> None:
    sensor = Sensor(snr_db=10, jitter=1e-4, gaps=3)
    first, second, other = (sensor.measure(SINE, RATE, rng(seed)).data for seed in (4, 4, 5))
    assert np.array_equal(first, second, equal_nan=True)
    assert not np.array_equal(first, other, equal_nan=True)


def test_given_a_converter_when_measured_then_codes_are_whole_and_in_range() -> None:
    channel = Sensor(bits=12, limit=1.5).measure(SINE, RATE, rng())
    codes = channel.data / 1.5 * 2048
    assert np.allclose(codes, np.round(codes))
    assert codes.min() == -2048
    assert codes.max() == 2047
    flagged = np.zeros(len(SINE), dtype=bool)
    for start, stop in channel.clipped:
        flagged[start:stop] = True
    assert np.array_equal(flagged, np.abs(SINE * 2048 / 1.5 + 0.5) > 2048)
    inside = ~flagged
    assert np.abs(channel.data - SINE)[inside].max() <= 1.5 / 4096 * (1 + 1e-9)


def test_given_no_range_when_converted_then_nothing_clips() -> None:
    channel = Sensor(bits=8).measure(SINE, RATE, rng())
    assert channel.clipped == ()
    assert np.abs(channel.data - SINE).max() <= 1.05 * 2 / 256 * (1 + 1e-9)


def test_given_saturation_when_measured_then_flat_tops_are_flagged() -> None:
    channel = Sensor(limit=1.0).measure(SINE, RATE, rng())
    assert np.abs(channel.data).max() == 1.0
    assert not channel.valid()[np.abs(SINE) > 1].any()
    assert channel.valid()[np.abs(SINE) < 1].all()


def test_given_drift_and_offset_when_measured_then_a_line_is_added() -> None:
    added = Sensor(offset=0.5, drift=-0.01).measure(SINE, RATE, rng()).data - SINE
    assert np.allclose(added, 0.5 - 0.01 * np.arange(len(SINE)) / RATE)


def test_given_a_filter_when_measured_then_it_passes_low_and_stops_high_frequencies() -> None:
    fine = np.arange(80_000) / (8 * RATE)
    low, high = np.sin(2 * np.pi * 20 * fine), np.sin(2 * np.pi * 900 * fine)
    sensor = Sensor(cutoff=200.0)
    passed = sensor.measure(low, RATE, rng(), oversampling=8).data[1000:]
    stopped = sensor.measure(high, RATE, rng(), oversampling=8).data[1000:]
    assert np.std(passed) == pytest.approx(np.sqrt(0.5), rel=1e-3)
    assert np.std(stopped) < 2e-4  # Butterworth of order 6: (200/900)^6
    aliased = Sensor().measure(high, RATE, rng(), oversampling=8).data
    assert np.std(aliased) > 0.5  # without the filter 900 Hz appears at 100 Hz


def test_given_a_constant_when_filtered_then_there_is_no_transient() -> None:
    assert np.allclose(Sensor(cutoff=50.0).measure(np.full(1000, 3.0), RATE, rng()).data, 3.0)


def test_given_jitter_when_measured_then_the_error_is_slope_times_jitter() -> None:
    error = Sensor(jitter=1e-4).measure(SINE, RATE, rng()).data - SINE
    assert np.std(error) == pytest.approx(1e-4 * 2 * np.pi * 7 * np.sqrt(2), rel=0.03)


def test_given_a_slow_clock_when_measured_then_the_phase_runs_away() -> None:
    data = Sensor(clock_ppm=100.0).measure(SINE, RATE, rng()).data
    t = np.arange(len(SINE)) / RATE
    truth = 2.0 * np.sin(2 * np.pi * 7 * t * (1 + 1e-4))
    assert np.abs(data - truth)[:-10].max() < 1e-4


def test_given_gaps_when_measured_then_lost_samples_are_flagged_and_not_numbers() -> None:
    channel = Sensor(gaps=5, gap_samples=30).measure(SINE, RATE, rng())
    lost = np.zeros(len(SINE), dtype=bool)
    for start, stop in channel.gaps:
        lost[start:stop] = True
    assert np.array_equal(lost, np.isnan(channel.data))
    assert 30 < lost.sum() <= 150


def test_given_flags_when_made_into_spans_then_they_come_back() -> None:
    assert spans(np.array([True, True, False, True])) == ((0, 2), (3, 4))
    assert spans(np.zeros(3, dtype=bool)) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"snr_db": 10, "noise": 0.1},
        {"bits": 0},
        {"limit": -1.0},
        {"noise": -1.0},
        {"jitter": -1e-3},
        {"gap_samples": 0},
    ],
)
def test_given_an_impossible_sensor_then_one_sentence_says_so(wrong: dict) -> None:
    with pytest.raises(DataError):
        Sensor(**wrong)


def test_given_a_filter_beyond_the_signal_when_measured_then_one_sentence_says_so() -> None:
    with pytest.raises(DataError, match="oversampling"):
        Sensor(cutoff=600.0).measure(SINE, RATE, rng())


def test_given_a_filter_that_rounding_would_destroy_then_it_is_refused() -> None:
    with pytest.raises(DataError, match="never settles"):
        Sensor(cutoff=1e-308)._filtered(np.ones(100), 20.0)
    assert np.allclose(Sensor(cutoff=1e-4)._filtered(np.ones(100), 20.0), 1.0)
