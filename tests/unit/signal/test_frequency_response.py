"""Frequency responses: against SciPy's spectra, a filter known in closed form, and a nonlinear one."""

from pathlib import Path

import numpy as np
import pytest
from scipy import signal

from analysis import (
    DataError,
    Excitation,
    Record,
    ResponseAverager,
    frequency_response,
    linear_approximation,
    resonances,
)
from drivers.formats import read

RATE = 1000.0
DATA = Path(__file__).parents[2] / "data"
MODES = ((40.0, 0.02), (110.0, 0.01))  # Hz, damping


def specimen() -> tuple[np.ndarray, np.ndarray]:
    """Two modes, as a filter that a zero-order hold makes exact."""
    b, a = np.zeros(1), np.ones(1)
    for frequency, damping in MODES:
        w = 2 * np.pi * frequency
        own = np.array([w**2]), np.array([1, 2 * damping * w, w**2])
        b, a = np.polyadd(np.polymul(b, own[1]), np.polymul(own[0], a)), np.polymul(a, own[1])
    numerator, denominator, _ = signal.cont2discrete((b, a), 1 / RATE, "zoh")
    return numerator.ravel(), denominator


def measured(noise_in: float = 0.0, noise_out: float = 0.0, seconds: float = 120.0) -> Record:
    rng = np.random.default_rng(3)
    n = int(seconds * RATE)
    u = rng.standard_normal(n)
    y = signal.lfilter(*specimen(), u)
    return Record.from_arrays(
        RATE,
        {
            "f": u + noise_in * rng.standard_normal(n),
            "x": y + noise_out * y.std() * rng.standard_normal(n),
        },
        {"f": "N", "x": "mm"},
    )


def test_given_a_record_when_averaged_then_as_scipy_has_it():
    record = measured(noise_out=0.2, seconds=10)
    found = frequency_response(record, "f", "x", lines=256)
    f, cross = signal.csd(record["f"], record["x"], RATE, nperseg=512)
    _, power = signal.welch(record["f"], RATE, nperseg=512)
    _, coherence = signal.coherence(record["f"], record["x"], RATE, nperseg=512)
    there = np.searchsorted(f, found.frequency)
    assert found.response == pytest.approx((cross / power)[there], rel=1e-9)
    assert found.coherence == pytest.approx(coherence[there], rel=1e-9)
    assert (found.unit, found.input, found.output) == ("mm/N", "f", "x")


def test_given_a_stream_in_blocks_of_any_size_then_the_same_numbers():
    record = measured(seconds=10)
    data = np.stack([record["f"], record["x"]])
    averager = ResponseAverager(2, RATE, 256)
    at = 0
    for size in (1, 700, 33, 4000, 5266):
        averager.add(data[:, at : at + size])
        at += size
    whole = frequency_response(record, "f", "x", lines=256)
    assert averager.segments == whole.segments
    assert averager.response(1).response == pytest.approx(whole.response, rel=1e-12)


def test_given_noise_where_each_estimator_expects_it_then_it_is_right_and_the_others_biased():
    f = np.array([20.0, 60.0, 90.0])
    _, truth = signal.freqz(*specimen(), worN=f, fs=RATE)
    for estimator, noise in (("h1", (0.0, 0.5)), ("h2", (0.5, 0.0))):
        record = measured(*noise)
        sizes = {}
        for name in ("h1", "h2", "hv"):
            found = frequency_response(record, "f", "x", name, lines=1000)
            near = np.abs(found.frequency[:, None] - f).argmin(axis=0)
            # The mean over a few lines: the scatter of one is larger than the bias looked for.
            ratio = [np.mean(np.abs(found.response[k - 3 : k + 4])) for k in near] / np.abs(truth)
            sizes[name] = float(np.mean(ratio))
        assert sizes[estimator] == pytest.approx(1.0, abs=0.03)
        assert sizes["h1"] < sizes["hv"] < sizes["h2"]


def test_given_many_records_then_the_scatter_is_the_error_stated():
    rng = np.random.default_rng(8)
    sizes, stated = [], []
    for _ in range(60):
        u = rng.standard_normal(20_000)
        y = signal.lfilter(*specimen(), u)
        record = Record.from_arrays(RATE, {"f": u, "x": y + 0.5 * y.std() * rng.standard_normal(len(u))})
        found = frequency_response(record, "f", "x", lines=100)
        sizes.append(np.abs(found.response[10:40]))
        stated.append(found.stderr[10:40])
    ratio = np.std(sizes, axis=0).mean() / np.mean(stated)
    assert 0.85 < ratio < 1.2


def test_given_lost_samples_then_their_segments_are_left_out():
    record = measured(seconds=20)
    holed = record["x"].copy()
    holed[5000:5100] = np.nan
    found = frequency_response(record.with_channels(x=holed), "f", "x", lines=256)
    whole = frequency_response(record, "f", "x", lines=256)
    assert found.segments < whole.segments
    assert np.isfinite(found.response).all()


def test_given_peaks_then_frequency_and_damping_within_their_errors():
    found = frequency_response(measured(noise_out=0.05, seconds=240), "f", "x", lines=8000)
    modes = resonances(found)
    assert len(modes) == 2
    for mode, (frequency, damping) in zip(modes, MODES, strict=True):
        assert abs(mode.frequency - frequency) < 5 * mode.frequency_stderr + 2e-4 * frequency
        assert mode.damping == pytest.approx(damping, abs=5 * mode.damping_stderr + 0.03 * damping)
        assert mode.damping_stderr < 0.1 * damping
        assert not mode.warning


def test_given_lines_too_far_apart_then_the_peak_says_so():
    modes = resonances(frequency_response(measured(), "f", "x", lines=200))
    assert any("too high" in mode.warning for mode in modes)


def test_given_noise_alone_then_no_peak():
    rng = np.random.default_rng(0)
    record = Record.from_arrays(RATE, {"f": rng.standard_normal(50_000), "x": rng.standard_normal(50_000)})
    assert resonances(frequency_response(record, "f", "x")) == []


@pytest.mark.parametrize("seed", range(3))
def test_given_modes_under_a_held_random_force_then_they_alone_are_found_with_their_damping(
    seed: int,
) -> None:
    """Held values delay the response by half a sample; a stronger mode stands beside the second one."""
    modes, rate = ((40.0, 0.01, 1.0), (120.0, 0.01, 3.0), (200.0, 0.02, 10.0)), 1000.0
    rng = np.random.default_rng(100 + seed)
    force = rng.standard_normal(60_000)
    motion = np.zeros(60_000)
    for natural, damping, gain in modes:
        w = 2 * np.pi * natural
        parts = ([[0, 1], [-w * w, -2 * damping * w]], [[0], [gain]], [[1, 0]], [[0]])
        held = signal.cont2discrete(tuple(np.array(part, dtype=float) for part in parts), 1 / rate)
        motion += signal.dlsim(held, force)[1][:, 0]
    motion += 0.02 * motion.std() * rng.standard_normal(60_000)
    record = Record.from_arrays(rate, {"f": force, "x": motion})
    found = resonances(frequency_response(record, "f", "x"))
    assert len(found) == 3  # and no line of the 4600 that noise has raised
    for mode, (natural, damping, _) in zip(found, modes, strict=True):
        assert mode.frequency == pytest.approx(natural, abs=4 * mode.frequency_stderr)
        # The first is 7 lines wide: the window widens it by 2 %, and the warning says so.
        allowed = 4 * mode.damping_stderr + (0.02 * damping if mode.warning else 0.0)
        assert mode.damping == pytest.approx(damping, abs=allowed)
        assert mode.damping_stderr < 0.02 * damping
    assert [bool(mode.warning) for mode in found] == [True, False, False]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": "q"}, "No channel 'q'"),
        ({"source": "x"}, "two channels"),
        ({"window": "round"}, "No window"),
        ({"estimator": "h7"}, "No estimator"),
        ({"lines": 100_000}, "fewer lines"),
        ({"overlap": 1.0}, "overlap"),
    ],
)
def test_given_what_makes_no_sense_then_one_sentence(change: dict, words: str):
    wanted = {"source": "f", "output": "x", **change}
    with pytest.raises(DataError, match=words):
        frequency_response(measured(seconds=2), **wanted)


# -- multisines


def periodic(even: float, odd: float, noise: float, seed: int = 0, periods: int = 6) -> Record:
    """A filter followed by x + even x² + odd x³, in its steady state, with white noise on the output.

    The lines are the same for every ``seed``, their phases and the noise are not.
    """
    draw = np.random.default_rng(77).integers(0, 4, 36)
    rng = np.random.default_rng(seed)
    size = 2000  # lines every 0.5 Hz
    driven = np.delete(np.arange(11, 300, 2), np.arange(0, 144, 4) + draw)
    spectrum = np.zeros(size // 2 + 1, dtype=complex)
    spectrum[driven] = np.exp(2j * np.pi * rng.uniform(size=len(driven)))
    _, h = signal.freqz(*specimen(), worN=np.arange(size // 2 + 1) * RATE / size, fs=RATE)
    u, y = np.fft.irfft(spectrum), np.fft.irfft(spectrum * h)
    u, y = u / u.std(), y / y.std()
    y = np.tile(y + even * y**2 + odd * y**3, periods)
    y += noise * rng.standard_normal(len(y))
    return Record.from_arrays(
        RATE, {"f": np.tile(u, periods), "x": y}, excitation=Excitation(0.5, 1.0, 0.0, "odd multisine")
    )


@pytest.mark.parametrize(
    ("even", "odd", "kinds"), [(0.0, 0.0, set()), (0.05, 0.0, {"even"}), (0.0, 0.02, {"odd"})]
)
def test_given_a_nonlinear_specimen_then_its_kind_is_told(even: float, odd: float, kinds: set[str]):
    found = linear_approximation([periodic(even, odd, 0.01)], "f", "x")
    assert {d.kind for d in found.distortions if d.clear} == kinds
    assert ("nonlinear:" in found.verdict) == bool(kinds)
    # white noise of 1 %: over the lines looked at, averaged over six periods
    looked = len(found.lines) / 1000
    assert found.noise_share == pytest.approx(0.01 * np.sqrt(looked / 6), rel=0.1)


def test_given_a_quadratic_term_then_the_even_share_is_its_variance():
    found = linear_approximation([periodic(0.05, 0.0, 1e-4)], "f", "x")
    (even,) = (d for d in found.distortions if d.kind == "even")
    clean, bent = periodic(0.0, 0.0, 0.0), periodic(0.05, 0.0, 0.0)
    assert even.share == pytest.approx((bent["x"] - clean["x"]).std(), rel=0.05)


def test_given_realisations_then_noise_and_distortion_of_the_response_are_told_apart():
    def found(odd: float, noise: float):
        return linear_approximation([periodic(0.0, odd, noise, seed) for seed in range(12)], "f", "x")

    linear, bent, noisy = found(0.0, 0.01), found(0.02, 1e-6), found(0.02, 0.01)
    rms = lambda values: float(np.sqrt(np.mean(values**2)))  # noqa: E731
    # Twelve realisations of a linear specimen: what is left as distortion is a rest of the noise.
    assert rms(linear.distortion) < 0.7 * rms(linear.noise)
    assert rms(bent.distortion) > 100 * rms(bent.noise)
    # The noise does not change what is told of the distortion, nor the distortion what is told of the noise.
    assert rms(noisy.distortion) == pytest.approx(rms(bent.distortion), rel=0.15)
    assert rms(noisy.noise) == pytest.approx(rms(linear.noise), rel=0.15)
    # For a static cubic behind a filter and a Gaussian-like drive the approximation is H (1 + 3 odd).
    assert np.abs(bent.response / linear.response).mean() == pytest.approx(1.06, abs=0.01)


def test_given_a_transient_then_it_is_left_out_and_said():
    record = periodic(0.0, 0.0, 0.001)
    x = record["x"].copy()
    x[:2000] += np.exp(-np.arange(2000) / 300)
    found = linear_approximation([record.with_channels(x=x)], "f", "x")
    assert found.periods == 5
    assert any("transient" in words for words in found.messages)


def test_given_the_measured_silverbox_then_its_cubic_spring_shows_beside_the_hum_of_the_mains():
    """Wigren & Schoukens 2013: an electronic Duffing oscillator, driven at odd lines of 0.596 Hz."""
    record = read(DATA / "silverbox_schroeder_excerpt.mat", 610.3515625)
    found = linear_approximation([record], "V1", "V2", period=1024 / 610.3515625)
    assert len(found.frequency) == 168
    shares = {d.kind: d for d in found.distortions}
    assert shares["even"].clear  # weakly asymmetric, and the hum
    assert any("50.07 Hz" in words for words in found.messages)
    assert any("Every odd line" in words for words in found.messages)


def test_given_a_period_of_no_whole_samples_then_one_sentence():
    with pytest.raises(DataError, match="whole number"):
        linear_approximation([periodic(0, 0, 0)], "f", "x", period=2.0003)
