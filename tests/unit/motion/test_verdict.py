"""The verdict on a motion: regular, chaotic, noise or drifting, each from records that are known to be so."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.signal import butter, filtfilt, lfilter

from analysis.base.errors import DataError
from analysis.motion.determinism import NeighbourTest, Space, neighbour_test
from analysis.motion.dimension import dimension_of_all
from analysis.motion.exponent import Exponent
from analysis.motion.sameness import sameness
from analysis.motion.verdict import Motion, examine, judged
from analysis.signal.far_correlation import far_correlation
from tests.chaotic import DUFFING_PERIOD, duffing, lorenz, roessler

GOLDEN = (np.sqrt(5) - 1) / 2
T = 2 * np.pi * np.arange(8000) / 25
RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("kind", "samples"),
    [
        ("periodic", np.exp(np.sin(T)) + 0.2 * np.cos(T / 3)),
        ("quasi-periodic", np.sin(T) + 0.5 * np.sin(GOLDEN * T)),
        ("quasi-periodic", np.exp(np.sin(T) + 0.5 * np.sin(GOLDEN * T)) * np.cos(np.sqrt(3) * T)),
        ("drifting", np.cumsum(RNG.standard_normal(8000))),
        ("drifting", np.exp(-T / 500) * np.cos(T)),
        ("drifting", np.cos(T * (1 + T / 20_000))),
        ("noise", lfilter([1], [1, -1.9, 0.96], RNG.standard_normal(8000))),
    ],
    ids=["harmonics", "2-torus", "3-torus", "random walk", "decay", "sweep", "resonance"],
)
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_given_what_is_not_chaos_then_it_gets_its_name(kind: str, samples: np.ndarray, noise: float) -> None:
    noisy = samples + noise * samples.std() * np.random.default_rng(1).standard_normal(len(samples))
    found = examine(noisy, 0.01)
    assert found.kind == kind
    assert found.exponent is None
    assert found.reasons


def test_given_lorenz_then_it_is_chaotic_and_the_error_holds_the_variational_exponent() -> None:
    found = examine(lorenz(12_000, 0.03)[0], 0.03)
    assert found.kind == "chaotic"
    assert found.deterministic
    assert found.zero_one > 0.9
    assert found.exponent is not None
    assert found.exponent.lower < 0.9057 < found.exponent.upper
    assert found.exponent.stderr < 0.2
    assert found.exponent.estimates.keys() == {"kantz", "maps", "rosenstein", "wolf"}
    assert found.recurrence is not None
    assert found.recurrence.determinism > 0.9


def test_given_a_driven_record_then_cycles_in_another_order_are_refuted_too() -> None:
    x = duffing(12_000, 25.0)[0]
    found = examine(x, DUFFING_PERIOD / 25, period=25.0)
    assert found.kind == "chaotic"
    assert [test.rejected for test in found.surrogates] == [True, True]
    assert "another order" in found.surrogates[1].kind
    assert found.surrogates[0].level == pytest.approx(0.05)


def test_given_a_response_with_noise_about_it_then_it_is_not_chaos() -> None:
    rng = np.random.default_rng(2)
    rest = lfilter([1], [1, -1.8, 0.9], rng.standard_normal(8000))
    found = examine(np.cos(T) + 0.5 * rest / rest.std(), 0.01, period=25.0)
    assert found.kind == "noise"


def test_given_one_channel_of_a_forced_system_then_the_phase_gives_the_dimension_of_the_motion() -> None:
    """Duffing: Kaplan-Yorke 2.42 in the extended phase space."""
    x = duffing(20_000, 25.0)[0]
    found = dimension_of_all(x, 6, 3, 25, 0.0, 25.0, np.random.default_rng(0))
    assert found.value == pytest.approx(2.42, abs=0.15)
    assert found.lower < 2.42 < found.upper
    assert found.stderr < 0.25


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_given_a_folded_band_then_the_error_holds_the_dimension_that_slopes_do_not_reach(
    noise: float,
) -> None:
    """Roessler: Kaplan-Yorke 2.013, while the slope of 400 000 states is 1.84 to 1.89 down to 0.4 %."""
    x = roessler(20_000, 0.2)[0]
    level = noise * x.std()
    x = x + level * np.random.default_rng(4).standard_normal(len(x))
    found = dimension_of_all(x, 6, 3, 30, level, None, np.random.default_rng(0))
    assert max(found.estimates) < 1.95
    assert found.value == pytest.approx(2.013, abs=0.1)
    assert found.lower < 2.013 < found.upper
    flow = dimension_of_all(x, 6, 3, 30, level, None, np.random.default_rng(0), least=2.0)
    assert 2.0 <= flow.value == pytest.approx(2.013, abs=0.1)
    assert flow.lower < 2.013 < flow.upper
    assert flow.stderr < found.stderr


def test_given_too_little_then_one_sentence_says_so() -> None:
    with pytest.raises(DataError, match="at least 1000"):
        examine(np.zeros(10), 0.01)
    with pytest.raises(DataError, match="not constant"):
        examine(np.zeros(2000), 0.01)


def test_given_chaos_of_a_narrow_band_then_it_is_not_called_regular() -> None:
    """Forced van der Pol, 5 (1 - x²) v: spectral lines foretell 99 % of it, far from all that noise would."""

    def rates(t: float, z: np.ndarray) -> list[float]:
        return [z[1], 5 * (1 - z[0] ** 2) * z[1] - z[0] + 5 * np.cos(2.463 * t)]

    times = np.arange(200.0, 1400.0, 0.1)
    x = solve_ivp(rates, (0, times[-1]), [0.5, 0.0], t_eval=times, rtol=1e-8, atol=1e-9).y[0]
    for noise in (0.0, 0.01):
        noisy = x + noise * x.std() * np.random.default_rng(3).standard_normal(len(x))
        found = examine(noisy, 0.1, period=2 * np.pi / 2.463 / 0.1)
        assert found.kind in ("chaotic", "cannot tell")


def test_given_a_tone_whose_size_wanders_then_it_is_not_called_chaotic() -> None:
    rng = np.random.default_rng(8)
    slow = lfilter([0.002], [1, -0.998], rng.standard_normal(8000))
    found = examine(np.cos(T) * (1 + 0.05 * slow / slow.std()), 0.01)
    assert found.kind in ("cannot tell", "periodic", "drifting", "noise")


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_given_a_limit_cycle_whose_phase_wanders_then_it_is_not_called_chaotic(noise: float) -> None:
    """It beats every surrogate of linear noise, but more neighbours foretell it no better."""
    rng = np.random.default_rng(1)
    phase = 2 * np.pi / 33 * np.arange(16_000) + 0.03 * np.cumsum(rng.standard_normal(16_000))
    x = np.sin(phase) + 0.4 * np.sin(2 * phase + 1.0) + 0.2 * np.cos(3 * phase)
    found = examine(x + noise * rng.standard_normal(len(x)), 1.0)
    assert found.kind == "cannot tell"
    assert found.deterministic
    assert found.neighbours is not None
    assert found.neighbours.pushed
    assert found.exponent is None


def test_given_lorenz_then_more_neighbours_foretell_it_better() -> None:
    x = lorenz(8192, 0.03)[0]
    found = neighbour_test(x, Space(3, 5, 25, 12, None), 0.0)
    assert found is not None
    assert found.gain > 2.0  # by the distance of neighbours, 4 ** (2 / 2.06) = 3.8, less at the rim
    assert not found.pushed
    assert neighbour_test(x[:400], Space(3, 5, 25, 12, None), 0.0) is None


def test_given_a_tone_that_grows_a_little_then_it_is_periodic_and_said_to_change() -> None:
    """Lines closer than the record can tell apart stand for the growth: they are no second frequency."""
    growing = (1 + 0.05 * T / T[-1]) * (np.sin(T) + 0.3 * np.sin(2 * T))
    found = examine(growing + 0.01 * np.random.default_rng(6).standard_normal(len(T)), 0.01)
    assert found.kind == "periodic"
    assert any("changes slowly" in words for words in found.reasons)
    steady = examine(np.sin(T) + 0.3 * np.sin(2 * T), 0.01)
    assert not any("changes slowly" in words for words in steady.reasons)


def test_given_two_tones_that_the_record_cannot_tell_apart_then_it_is_not_called_periodic() -> None:
    """Less than two beats in the record: neither one frequency nor two can be shown."""
    t = np.arange(20_000)
    found = examine(np.sin(0.2 * t) + 0.8 * np.sin(0.2006 * t), 1.0)
    assert found.kind in ("cannot tell", "quasi-periodic")
    assert "nearly coincide" in found.reasons[0]


@pytest.mark.parametrize("curve", [lambda u: u + 0.3 * u**3, lambda u: u + 0.5 * u**2])
def test_given_slow_noise_through_a_curve_then_it_is_not_called_chaotic(
    curve: Callable[[np.ndarray], np.ndarray],
) -> None:
    """It beats the surrogates, since a narrow band holds few independent amplitudes."""
    band = filtfilt(*butter(2, [0.072, 0.088], "band"), np.random.default_rng(1).standard_normal(12_000))
    found = examine(curve(band / band.std()), 1.0)
    assert found.kind in ("cannot tell", "noise")


def test_given_noise_then_local_maps_of_the_right_length_keep_the_exponent() -> None:
    """Roessler with 1 % noise: variational exponent 0.0714."""
    x = roessler(20_000, 0.2)[0]
    found = examine(x + 0.01 * x.std() * np.random.default_rng(4).standard_normal(len(x)), 0.2)
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(0.0714, rel=0.1)
    assert found.exponent.lower < 0.0714 < found.exponent.upper
    assert found.exponent.stderr < 0.2 * 0.0714


def test_given_chaos_after_a_tone_then_no_exponent_is_told_and_the_change_is_named() -> None:
    chaos = lorenz(12_000, 0.03)[0]
    both = np.r_[np.std(chaos) * np.sin(0.25 * np.arange(2400)), chaos[2400:]]
    found = examine(both + 0.05 * np.random.default_rng(2).standard_normal(len(both)), 0.03)
    assert found.kind == "cannot tell"
    assert found.exponent is None
    assert "more than one motion" in found.reasons[0]


def test_given_one_motion_throughout_then_every_stretch_comes_again_and_of_two_motions_none_does() -> None:
    first, second = lorenz(8000, 0.03)[0], roessler(8000, 0.25)[0]
    space = Space(3, 4, 60, 12, None)
    assert sameness(first, space).share > 0.7
    found = sameness(np.r_[first[:5000] / first.std(), second[:3000] / second.std()], space)
    assert found.changes
    assert (found.begin, found.end) in {(0.0, 0.625), (0.625, 1.0)}


DISAGREE = {"kantz": (0.09, 0.1), "maps": (0.02, 0.025), "rosenstein": (0.1,), "wolf": (0.06,)}


def _evidence(
    estimates: dict[str, tuple[float, ...]] = DISAGREE,
    stderr: float = 0.02,
    gain: float = 1.8,
    walk: float = 0.99,
    far: float = 0.2,
) -> Motion:
    """What is left when a record is neither regular nor noise."""
    exponent = Exponent(0.03, stderr, 0.003, stderr, estimates)
    neighbours = NeighbourTest(0.05, 0.01, gain)
    return Motion("cannot tell", (), None, (), neighbours, walk, exponent, far_correlation=far)


def test_given_estimates_that_disagree_then_chaos_is_told_without_a_number() -> None:
    found = judged(_evidence())
    assert (found.kind, found.told) == ("chaotic", None)
    assert "not told" in found.reasons[0]
    agreed = judged(_evidence(stderr=0.009))
    assert (agreed.kind, agreed.told) == ("chaotic", agreed.exponent)


@pytest.mark.parametrize(
    "doubtful",
    [{"gain": 1.5}, {"walk": 0.7}, {"far": 0.5}, {"estimates": DISAGREE | {"wolf": (0.005,)}}],
    ids=["neighbours", "0-1 test", "comes back", "no growth"],
)
def test_given_any_doubt_beside_estimates_that_disagree_then_it_cannot_tell(doubtful: dict[str, Any]) -> None:
    found = judged(_evidence(**doubtful))
    assert (found.kind, found.told) == ("cannot tell", None)


def test_given_a_torus_of_more_lines_than_are_fitted_then_it_is_not_called_chaotic() -> None:
    """Its neighbours part in six dimensions and the 0-1 test is near 1, but it comes back as a whole."""
    t = 2 * np.pi / 27.3 * np.arange(12_000)
    found = examine(np.sin(t + 3 * np.sin(0.0618 * t) + 2 * np.sin(0.1414 * t)), 1.0)
    assert found.kind == "cannot tell"
    assert found.far_correlation > 0.6


def test_given_a_period_then_the_record_comes_back_and_given_lorenz_or_noise_it_does_not() -> None:
    assert far_correlation(np.sin(2 * np.pi * np.arange(4000) / 50)) == pytest.approx(1.0, abs=1e-9)
    # A tone of half the variance under noise: its share.
    rng = np.random.default_rng(3)
    mixed = np.sqrt(2) * np.sin(2 * np.pi * np.arange(40_000) / 50) + rng.standard_normal(40_000)
    assert far_correlation(mixed) == pytest.approx(0.5, abs=0.03)
    assert far_correlation(lorenz(12_000, 0.03)[0]) < 0.3
    assert abs(far_correlation(rng.standard_normal(10_000))) < 0.1


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_given_the_answer_to_a_long_multisine_then_it_is_periodic_and_no_noise(noise: float) -> None:
    """Ninety lines of random phases: more than are fitted, and one period looks like noise."""
    t, rng = 2 * np.pi * np.arange(12_000) / 2503.7, np.random.default_rng(4)
    x = np.cos(np.outer(t, np.arange(60, 150)) + rng.uniform(0, 2 * np.pi, 90)).sum(axis=1)
    found = examine(x + noise * x.std() * rng.standard_normal(len(x)), 0.01)
    assert found.kind == "periodic"
    assert "comes again after 25.03" in found.reasons[0]


def test_given_a_multisine_of_less_than_three_periods_then_it_cannot_tell() -> None:
    t, rng = 2 * np.pi * np.arange(12_000) / 5003.7, np.random.default_rng(4)
    x = np.cos(np.outer(t, np.arange(120, 300)) + rng.uniform(0, 2 * np.pi, 180)).sum(axis=1)
    found = examine(x, 0.01)
    assert found.kind == "cannot tell"
    assert "too short" in found.reasons[0]


def test_given_chaos_whose_turns_take_nearly_the_same_time_then_it_is_chaotic() -> None:
    """Sprott's flow O (0.0496 by its variational equations): four samples a turn look regular."""

    def rate(t: float, u: np.ndarray) -> list[float]:
        return [u[1], u[0] - u[2], u[0] + u[0] * u[2] + 2.7 * u[1]]

    times = 0.2 * np.arange(13_000)
    x = solve_ivp(rate, (0, times[-1]), (0.1, 0.1, 0.1), "DOP853", times, rtol=1e-9, atol=1e-10).y[0][1000:]
    found = examine(x, 0.2)
    assert found.kind == "chaotic"
    assert found.told is not None
    assert found.told.lower < 0.0496 < found.told.upper


def test_given_two_chaotic_motions_in_one_channel_then_they_are_not_called_noise() -> None:
    """More than four dimensions: neighbours foretell little, but more than of any linear noise."""
    x = lorenz(36_000, 0.03)[0]
    found = examine(x[:12_000] + 0.7 * x[24_000:], 0.03)
    assert found.kind == "cannot tell"
    assert all(test.better for test in found.surrogates)
    assert "hardly" in found.reasons[0]
