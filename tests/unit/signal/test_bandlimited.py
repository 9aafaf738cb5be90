"""Band-limited signals against closed forms: tones, whose values and phases are known everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from analysis import DataError, Inputs
from analysis.signal.bandlimited import third_rate, without_dispersion

DT = 0.01
TIMES = DT * np.arange(400)
NYQUIST = np.pi / DT


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.9])
def test_given_a_tone_then_its_values_between_the_samples_are_known(share: float) -> None:
    omega = share * NYQUIST
    inputs = Inputs.from_samples(0.0, DT, [np.sin(omega * TIMES + 0.3), np.cos(omega * TIMES)], "bandlimited")
    between = np.linspace(0.0, TIMES[-1], 2777)
    values = inputs.values(between)
    # The first and the last samples rest on a prediction of what lies beyond them.
    inside = (between > 1.0) & (between < 3.0)
    assert np.abs(values[0] - np.sin(omega * between + 0.3))[inside].max() < 1e-4
    assert np.abs(values[1] - np.cos(omega * between))[inside].max() < 1e-4
    assert np.abs(values[0] - np.sin(omega * between + 0.3)).max() < 2e-2
    assert np.allclose(inputs.values(TIMES)[0], np.sin(omega * TIMES + 0.3), atol=1e-12)


def test_given_other_kinds_beside_it_then_each_channel_keeps_its_own() -> None:
    row = np.sin(40.0 * TIMES)
    mixed = Inputs.from_samples(0.0, DT, [row, row, row], ["cubic", "hold", "bandlimited"])
    alone = Inputs.from_samples(0.0, DT, [row, row], ["cubic", "hold"])
    between = np.linspace(0.5, 3.5, 999)
    assert np.allclose(mixed.values(between)[:2], alone.values(between), atol=1e-14)
    assert np.abs(mixed.values(between)[2] - np.sin(40.0 * between)).max() < 1e-4


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_given_a_filter_of_cubic_phase_then_tones_come_back_before_it(share: float) -> None:
    omega = share * NYQUIST
    dispersion = 0.4 / omega**3
    behind = 2.0 + np.sin(omega * TIMES - 0.4)
    before = without_dispersion(behind, DT, dispersion)
    off = np.abs(before - 2.0 - np.sin(omega * TIMES))
    assert off[50:-50].max() < 3e-3 and off.max() < 2e-2
    assert np.allclose(without_dispersion(behind, DT, 0.0), behind)


def test_given_a_filter_that_would_smear_a_record_over_itself_then_it_is_refused() -> None:
    with pytest.raises(DataError, match="dispersion"):
        without_dispersion(np.sin(TIMES), DT, 1e-3)


def test_given_a_tone_then_its_third_derivative_is_minus_the_cube_of_its_frequency() -> None:
    omega = 0.6 * NYQUIST
    found = third_rate(np.sin(omega * TIMES), DT)[60:-60]
    assert (
        np.abs(found + omega**3 * np.cos(omega * TIMES)[60:-60]).max() < 5e-3 * omega**3
    )  # what its weighing allows


def test_given_a_constant_or_two_samples_then_nothing_is_made_up() -> None:
    assert np.allclose(Inputs.from_samples(0.0, DT, [[3.0, 3.0, 3.0]], "bandlimited").values(TIMES[:3]), 3.0)
    assert np.allclose(without_dispersion(np.full(5, 2.0), DT, 1e-6), 2.0)
    two = Inputs.from_samples(0.0, 1.0, [[1.0, 2.0]], "bandlimited").values(np.array([0.0, 1.0]))
    assert np.allclose(two, [[1.0, 2.0]])


@pytest.mark.parametrize("samples", [4.3, 8.3, 13.1])
def test_given_tones_that_a_spline_would_take_from_then_they_are_read_as_band_limited(samples: float) -> None:
    """A spline takes 7e-5 of a tone of 13 samples a period: small, and yet ten errors of a long record."""
    times = DT * np.arange(1000)
    omega = 2 * np.pi / (samples * DT)
    inputs = Inputs.from_samples(0.0, DT, [np.sin(omega * times) + np.sin(0.1 * omega * times)])
    between = times[200:-200] + 0.5 * DT
    true = np.sin(omega * between) + np.sin(0.1 * omega * between)
    assert np.abs(inputs.values(between)[0] - true).max() < 3e-5


def test_given_noise_on_a_slow_signal_then_it_does_not_pass_for_what_a_spline_takes_away(
    rng: np.random.Generator,
) -> None:
    times = DT * np.arange(2000)
    slow = np.sin(2 * np.pi * times / (40 * DT))
    for level in (1e-6, 1e-3, 3e-3):
        noisy = Inputs.from_samples(0.0, DT, [slow + level * rng.standard_normal(2000)])
        assert noisy.coefficients.shape[2] == 4  # a cubic
