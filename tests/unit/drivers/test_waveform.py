"""Waveforms: closed forms, phase continuity, bands; and the player that ramps them."""

from __future__ import annotations

import numpy as np
import pytest

from drivers.base.limits import STOP_RAMP, LimitError, Limits
from drivers.base.waveform import (
    WAVEFORMS,
    BurstRandom,
    Multisine,
    Part,
    RandomNoise,
    Segments,
    Sine,
    SteppedSine,
    Sweep,
    UserWaveform,
    Waveform,
    WaveformError,
    waveform_from,
)
from drivers.rig.player import Player

RATE = 2000.0
LIMITS = Limits(amplitude=5.0, lowest_frequency=0.5, highest_frequency=400.0, slew=20_000.0)
ALL: list[Waveform] = [
    Sine(1.5, 7.5, 0.3),
    SteppedSine(1.0, (5.0, 6.0, 7.0), 0.31),
    Sweep(1.0, 2.0, 50.0, 3.0),
    Sweep(1.0, 50.0, 2.0, 3.0, logarithmic=True),
    Multisine(2.0, 5.0, 100.0, 0.5),
    Multisine(2.0, 5.0, 100.0, 0.37, seed=3),
    RandomNoise(2.0, 10.0, 200.0, seed=4),
    BurstRandom(2.0, 10.0, 200.0, 0.5, seed=4),
    UserWaveform(1.0, tuple(np.sin(2 * np.pi * np.arange(64) / 64)), 512.0),
    Segments(
        2.0,
        (
            Part(Sine(2.0, 7.5), 1.2),
            Part(Sweep(1.0, 2.0, 50.0, 1.1), 1.1),
            Part(RandomNoise(1.5, 10.0, 200.0, seed=4), 1.3),
        ),
    ),
]


def names(w: Waveform) -> str:
    return w.kind


@pytest.mark.parametrize("waveform", ALL, ids=names)
def test_given_any_waveform_when_taken_in_pieces_then_same_samples_as_at_once(waveform: Waveform) -> None:
    whole = waveform.generator(RATE).take(5000)
    generator = waveform.generator(RATE)
    pieces = [generator.take(count) for count in (1, 7, 500, 492, 0, 2000, 1000, 1000)]
    assert np.allclose(np.concatenate(pieces), whole, atol=1e-9)


@pytest.mark.parametrize("waveform", ALL, ids=names)
def test_given_any_waveform_then_peak_and_slope_stay_within_what_it_declares(waveform: Waveform) -> None:
    samples = waveform.generator(RATE).take(40_000)
    assert np.abs(samples).max() <= waveform.amplitude * (1 + 1e-12)
    assert np.abs(samples).max() > 0.5 * waveform.amplitude
    assert np.abs(np.diff(samples)).max() * RATE <= waveform.slew() * 1.01


@pytest.mark.parametrize("waveform", ALL, ids=names)
def test_given_any_waveform_when_described_then_it_reads_back_equal(waveform: Waveform) -> None:
    assert waveform_from(waveform.describe()) == waveform
    assert waveform.kind in WAVEFORMS


def test_given_a_sine_over_7000_periods_then_phase_is_exact() -> None:
    generator = Sine(1.5, 7.5, 0.4).generator(187.5)
    for _ in range(7000):
        last = generator.take(25)
    n = 6999 * 25 + np.arange(25)
    assert np.abs(last - 1.5 * np.cos(2 * np.pi * n / 25 + 0.4)).max() < 1e-10
    assert generator.phase == pytest.approx(0.4, abs=1e-9)


def test_given_a_sine_when_frequency_and_amplitude_change_then_no_jump() -> None:
    generator = Sine(1.0, 7.5).generator(RATE)
    parts = [generator.take(333)]
    generator.change(12.0, None)
    parts.append(generator.take(100))
    generator.change(None, 2.0)
    parts.append(generator.take(5000))
    samples = np.concatenate(parts)
    assert generator.frequency == 12.0 and generator.amplitude == 2.0
    assert np.abs(np.diff(samples)).max() < 2 * np.pi * 12 * 2 / RATE * 1.1
    tail = samples[-2000:]
    n = np.arange(2000)
    start = generator.phase - 2 * np.pi * 12 * 2000 / RATE
    assert np.allclose(tail, 2 * np.cos(start + 2 * np.pi * 12 * n / RATE), atol=1e-9)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_given_a_sweep_then_phase_is_the_integral_of_the_frequency(logarithmic: bool) -> None:
    sweep = Sweep(1.0, 2.0, 50.0, 5.0, logarithmic)
    t = np.linspace(0, 5, 200_001)
    f = np.array([sweep.frequency_at(x) for x in t[::100]])
    slope = np.gradient(sweep.phase_at(t), t)[::100] / (2 * np.pi)
    assert np.allclose(slope[1:-1], f[1:-1], rtol=1e-6)
    # the published sweep of the engine mount: 4 pi 5/ln 25 (25^(t/5) - 1)
    if logarithmic:
        published = 4 * np.pi * 5 / np.log(25) * (25 ** (t / 5) - 1)
        assert np.allclose(sweep.phase_at(t), published, rtol=1e-12)


def test_given_random_drive_then_power_lies_in_the_band() -> None:
    samples = RandomNoise(4.0, 50.0, 200.0, seed=1).generator(RATE).take(200_000)
    power = np.abs(np.fft.rfft(samples * np.hanning(len(samples)))) ** 2
    f = np.fft.rfftfreq(len(samples), 1 / RATE)
    inside = power[(f > 49) & (f < 201)].sum() / power.sum()
    assert inside > 0.999
    assert samples.std() == pytest.approx(1.0, rel=0.03)
    low, high = power[(f > 60) & (f < 100)].mean(), power[(f > 150) & (f < 190)].mean()
    assert low == pytest.approx(high, rel=0.1)


@pytest.mark.parametrize("band", [(1.0, 5.0), (2.0, 90.0)])
def test_given_a_random_drive_then_it_is_the_same_at_any_rate(band: tuple[float, float]) -> None:
    drive = Segments(1.0, (Part(RandomNoise(1.0, *band, seed=3), 4.285), Part(Sine(1.0, 7.0), 8.145)))
    coarse, fine = (drive.generator(rate).take(round(24 * rate)) for rate in (200.0, 4000.0))
    assert np.abs(fine[::20] - coarse).max() < 0.05  # windows of segments lie half a sample beside each other


@pytest.mark.parametrize("spacing", [0.5, 0.37, np.pi / 7])
def test_given_a_multisine_then_it_is_the_sum_of_its_lines(spacing: float) -> None:
    """One period, many or none in a whole number of samples."""
    multisine = Multisine(1.0, 5.0, 100.0, spacing)
    generator = multisine.generator(RATE)
    samples = np.concatenate([generator.take(count) for count in (1, 700, 2099)])
    lines, angles, each = multisine.spectrum()
    assert lines[0] == np.ceil(5.0 / spacing) and lines[-1] == np.floor(100.0 / spacing)
    phase = 2 * np.pi * spacing * np.arange(2800) / RATE
    expected = sum(each * np.cos(k * phase + a) for k, a in zip(lines, angles, strict=True))
    np.testing.assert_allclose(samples, expected, atol=1e-10)


def test_given_a_schroeder_multisine_then_lines_equal_and_crest_factor_low() -> None:
    samples = Multisine(1.0, 5.0, 100.0, 0.5).generator(RATE).take(4000)
    spectrum = np.abs(np.fft.rfft(samples)) / 2000
    lines = spectrum[10:201]
    assert np.ptp(lines) / lines.mean() < 1e-9
    assert spectrum[:10].max() < 1e-12 and spectrum[201:].max() < 1e-12
    assert np.abs(samples).max() / samples.std() < 1.9


@pytest.mark.parametrize(
    "description",
    [
        {"kind": "square", "amplitude": 1.0},
        {"kind": "sine", "amplitude": 1.0},
        {"kind": "sine", "amplitude": 1.0, "frequency": 5.0, "colour": 3},
        {"kind": "sweep", "amplitude": 1.0, "start": 0.0, "stop": 5.0, "seconds": 1.0},
        {"kind": "user", "amplitude": 1.0, "samples": [0.0, 0.0], "sample_rate": 10.0},
    ],
)
def test_given_a_description_without_sense_then_one_sentence(description: dict[str, object]) -> None:
    with pytest.raises(WaveformError) as error:
        waveform_from(description)
    assert str(error.value).endswith(".")


def test_given_a_player_when_started_then_silent_and_ramps_softly() -> None:
    player = Player(LIMITS, RATE)
    assert not player.take(100).any()
    player.play(Sine(2.0, 7.5))
    first = player.take(2000)
    assert np.abs(first[:50]).max() < 0.1  # soft start
    assert np.abs(first[1000:]).max() == pytest.approx(2.0, rel=1e-3)
    state = player.state()
    assert state.playing and state.level == 1.0 and state.index == 2100
    again = player.take(10)
    assert np.allclose(again, 2.0 * np.cos(state.phase + 2 * np.pi * 7.5 * np.arange(10) / RATE), atol=1e-9)


def test_given_a_player_when_stopped_then_zero_within_the_ramp_and_says_why() -> None:
    player = Player(LIMITS, RATE)
    player.play(Sine(5.0, 7.5))
    player.take(3000)
    player.stop("STOP pressed")
    tail = player.take(400)
    assert not tail[int(STOP_RAMP * RATE) + 1 :].any()
    assert np.abs(np.diff(tail)).max() * RATE <= LIMITS.slew * (1 + 1e-9)
    assert player.state().reason == "STOP pressed" and not player.state().playing


def test_given_a_waveform_that_plays_when_another_is_asked_for_then_ramp_down_and_up() -> None:
    player = Player(LIMITS, RATE)
    player.play(Sine(3.0, 10.0))
    player.take(3000)
    player.play(Multisine(3.0, 5.0, 100.0, 0.5))
    samples = player.take(4000)
    assert np.abs(samples[980:1020]).max() < 0.05  # silence between them
    assert player.state().waveform == "multisine"


def test_given_a_finite_waveform_when_over_then_ramps_down_by_itself() -> None:
    player = Player(LIMITS, RATE)
    player.play(Sweep(2.0, 5.0, 20.0, 1.0))
    player.take(2000)
    player.take(2000)
    assert player.output == 0.0 and player.state().reason == "finished"


def test_given_requests_beyond_the_limits_then_refused_and_nothing_changes() -> None:
    limits = Limits(5.0, 1.0, 100.0, slew=1000.0, displacement=4.0, travel=2.0)
    player = Player(limits, RATE)
    for bad in (Sine(2.5, 10.0), Sine(1.0, 0.5), Sine(1.0, 120.0), Sine(2.0, 99.0), Sine(np.nan, 9.0)):
        with pytest.raises(LimitError):
            player.play(bad)
    assert not player.take(100).any()
    player.play(Sine(1.0, 10.0))
    player.take(2000)
    with pytest.raises(LimitError, match="displacement"):
        player.change(amplitude=2.2)
    assert player.state().amplitude == 1.0


def test_given_a_slew_limit_too_slow_for_stop_then_the_limits_themselves_are_refused() -> None:
    with pytest.raises(LimitError, match="100 ms"):
        Limits(10.0, slew=100.0)


def test_given_a_sweep_after_a_sine_then_its_time_counts_from_its_own_beginning() -> None:
    player = Player(LIMITS, RATE)
    player.play(Sine(1.0, 20.0))
    player.take(round(RATE))
    assert np.isnan(player.state().time)  # told by the phase
    player.play(Sweep(1.0, 10.0, 50.0, 30.0))
    for _ in range(round(2 * RATE)):
        player.take(1)
        if player.state().waveform == "sweep":
            break
    begun = player.state()
    player.take(777)
    assert player.state().time == pytest.approx(begun.time + 777 / RATE, abs=1e-12)
    assert 0 <= begun.time <= 1 / RATE


def test_given_segments_when_the_player_goes_back_then_the_same_samples_come_again() -> None:
    parts = (Part(Sine(2.0, 7.5), 1.2), Part(Sweep(1.0, 2.0, 50.0, 1.1), 1.1))
    player = Player(LIMITS, RATE)
    player.play(Segments(2.0, parts))
    player.take(2000)
    mark = player.mark()
    once = player.take(900)  # over the border between the parts
    player.return_to(mark)
    assert np.array_equal(player.take(900), once)


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ([], "parts"),
        ([{"kind": "sine", "amplitude": 1.0, "frequency": 5.0}], "seconds"),
        ([{"kind": "sine", "amplitude": 1.0, "frequency": 5.0, "seconds": 0.5}], "more than 1 s"),
        ([{"kind": "sine", "amplitude": 3.0, "frequency": 5.0, "seconds": 5}], "larger"),
        ([{"kind": "segments", "amplitude": 1.0, "parts": [], "seconds": 5}], "parts of segments"),
        ([7], "seconds"),
    ],
)
def test_given_segments_that_make_no_sense_then_one_sentence(parts: list[object], word: str) -> None:
    with pytest.raises(WaveformError, match=word):
        waveform_from({"kind": "segments", "amplitude": 2.0, "parts": parts})
