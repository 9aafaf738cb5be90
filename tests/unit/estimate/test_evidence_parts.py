"""What the evidence about a fit is made of: colour, tones, delays, shapes, aliases, each by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.signal import lfilter

from analysis.estimate.finish.autoregression import fit_autoregression
from analysis.estimate.finish.channels import fault_words
from analysis.estimate.finish.missing_force import _curve, _looks
from analysis.estimate.finish.missing_terms import _delayed, _groups, _spacing
from analysis.estimate.finish.sampling import _lowest_frequency, _setting, _value_at
from analysis.estimate.finish.score import Missing, Scores
from analysis.estimate.finish.tones import tone
from analysis.estimate.finish.whiteness import whiteness
from analysis.model import Model
from analysis.signal.inputs import Inputs


def seasonal(lag: int, count: int, seed: int, share: float = 0.9) -> np.ndarray:
    """Noise that remembers what was ``lag`` samples ago and nothing else."""
    white = np.random.default_rng(seed).standard_normal(count + 20 * lag)
    return lfilter([1.0], np.concatenate([[1.0], np.zeros(lag - 1), [-share]]), white)[20 * lag :]


def test_given_noise_that_remembers_a_late_lag_only_then_the_look_goes_that_far() -> None:
    found = fit_autoregression([seasonal(11, 4000, 1)])
    assert found.order == 11
    assert found.coefficients[-1] == pytest.approx(-0.9, abs=0.03)
    assert found.variance == pytest.approx(1.0, rel=0.1)
    # ten samples determine a coefficient: sixty let six be looked at, fifty-nine five
    assert fit_autoregression([seasonal(6, 60, 2, 0.97)]).order == 6
    assert fit_autoregression([seasonal(6, 59, 2, 0.97)]).order < 6
    assert fit_autoregression([np.zeros(50)]).order == 0
    assert fit_autoregression([np.full(5, np.nan)]).variance == 1e-300


def test_given_a_slow_wander_then_the_longer_of_both_tests_sees_it() -> None:
    rng = np.random.default_rng(3)
    row = rng.standard_normal(5000)
    late = row.copy()
    late[150:] += 0.35 * row[:-150]  # a memory of 150 samples, beyond the 40 lags of the short test
    found = whiteness([late])
    assert found.probability < 1e-6 and found.lags == 200
    assert found.largest_lag == 150 and found.largest == pytest.approx(0.35 / (1 + 0.35**2), abs=0.04)
    early = row[1:] + 0.3 * row[:-1]
    assert whiteness([early]).lags == 40


def test_given_rows_then_the_tone_is_looked_for_in_the_one_with_most_samples() -> None:
    rng = np.random.default_rng(4)
    quiet = rng.standard_normal(400)
    loud = rng.standard_normal(600) + np.cos(2 * np.pi * 0.11 * np.arange(600))
    found = tone([quiet, loud], 0.5)
    assert found is not None
    assert found.frequency == pytest.approx(0.22, rel=0.01)
    assert found.amplitude == pytest.approx(1.0, rel=0.15)
    assert tone([loud[:300], rng.standard_normal(400)], 0.5) is None
    strong = rng.standard_normal(100) + 4 * np.cos(2 * np.pi * 0.11 * np.arange(100))
    assert tone([strong], 0.5) is not None  # a hundred samples are the fewest
    assert tone([strong[:99]], 0.5) is None
    noise, turn = rng.standard_normal(600), 2 * np.pi * np.arange(600) / 600
    assert tone([noise + 0.6 * np.cos(turn)], 0.5) is None  # one turn within the record is a drift
    few = tone([noise + 0.8 * np.cos(4.5 * turn)], 0.5)
    assert few is not None and few.frequency == pytest.approx(4.5 / 300, rel=0.1)


@pytest.mark.parametrize(
    ("samples", "way", "hold"),
    [
        (0.5, "late", False),
        (-0.5, "early", True),
        (-0.36, "early", True),
        (-0.34, "early", False),
        (-0.66, "early", False),
    ],
)
def test_given_a_delay_then_it_is_said_in_samples_with_the_option_that_fits(
    samples: float, way: str, hold: bool
) -> None:
    fault = Missing("delay", "f", 12.3, samples * 0.02, 0.001, 0.1)
    words = fault_words(fault, 0.02, ["f"], ["x", "y"])
    assert words.startswith(
        f"f seems to come {abs(samples):.2g} samples too {way} ({abs(samples) * 0.02:.3g} ± 0.001"
    )
    assert "t = 12.3" in words and "delays=x,y" in words
    assert ("inputs=hold" in words) is hold
    output = fault_words(Missing("delay", "y", 12.3, -0.01, 0.001, 0.1), 0.02, ["f"], ["x", "y"])
    assert "delays=y fits" in output and "hold" not in output
    offset = fault_words(Missing("offset", "x", -5.0, 0.25, 0.05, 0.1), 0.02, ["f"], ["x"])
    assert "offset of 0.25 ± 0.05 (t = 5.0)" in offset


@pytest.mark.parametrize(
    ("shape", "own", "said"),
    [
        (lambda x: x**3, "odd", "odd in x, "),
        (lambda x: x**2, "even", "even in x, "),
        (lambda x: x**3 + x**2, "", "over x neither odd nor even, "),
        (lambda x: x**3 + 0.2 * x**2, "odd", "odd in x, "),
        (lambda x: x**3, "even", ""),  # a curve that is not like the term says nothing of its symmetry
        (lambda x: x**2, "", ""),
    ],
)
def test_given_a_missing_force_then_the_symmetry_that_its_term_has_is_named(
    shape: Any, own: str, said: str
) -> None:
    x = np.linspace(-1.5, 2.0, 60)
    missing = Missing("x^3", "dv/dt", 9.0, 1.0, 0.1, 0.034)
    words = _looks("x", x, shape(x), missing, own)
    assert words == f"The missing force is {said}most like x^3: 3.4 % of the force."
    assert "neither" in _looks("x", x + 3.0, shape(x), missing, "")


def test_given_coefficients_of_polynomials_then_the_curve_and_its_band_are_theirs() -> None:
    """Constant and straight line, 3 +- 0.5 and 2 +- 1, over x from 0 to 10."""
    information = np.diag([4.0, 1.0])
    found = Scores(
        information @ np.array([3.0, 2.0]), information, information, np.ones(2, bool), np.zeros((1, 2)), 1e6
    )
    (x, force, lower, upper), sure = _curve(found, cast(Any, [None, None]), 0.0, 10.0)
    place = np.linspace(-1, 1, 41)
    error = np.sqrt(0.25 + place**2)
    assert x == pytest.approx(np.linspace(0, 10, 41))
    assert force == pytest.approx(3 + 2 * place)
    assert upper == pytest.approx(3 + 2 * place + 1.959964 * error, rel=1e-5)
    assert lower == pytest.approx(3 + 2 * place - 1.959964 * error, rel=1e-5)
    assert sure == pytest.approx(np.max((3 + 2 * place) / error))


def part(u: np.ndarray, dt: float = 0.1) -> Any:
    times = dt * np.arange(len(u))
    stretch = SimpleNamespace(
        times=times, inputs=Inputs.from_samples(0.0, dt, u[None]), sigma=np.array([0.5, 2.0])
    )
    return SimpleNamespace(stretch=stretch, q=2, N=len(u), n=2)


def test_given_an_input_then_its_past_is_looked_at_over_its_correlation_time() -> None:
    """A slow cosine of 400 samples a turn loses its correlation after a quarter turn."""
    u = np.cos(2 * np.pi * np.arange(4000) / 400) + 3.0
    assert _spacing(part(u), 0) in (9, 10)
    assert _spacing(part(np.random.default_rng(5).standard_normal(4000)), 0) == 1
    shifts = _delayed(part(u), 0, 1, 7)
    assert shifts.shape == (2, 4000, 20)
    assert not shifts[0].any()
    assert shifts[1, 70:, 10] == pytest.approx(2.0 / u.std() * (u - u.mean())[:-70])
    assert not shifts[1, :70, 10].any()
    few = _delayed(part(u[:50]), 0, 1, 7)
    assert few[1, 49, 7] != 0.0 and not few[1, :, 8:].any()


def test_given_long_records_then_terms_are_tried_in_groups_that_fit_into_memory() -> None:
    terms = cast(Any, list(range(10)))
    small = SimpleNamespace(N=100, n=2, q=1)
    assert _groups(terms, cast(Any, [small])) == [list(range(10))]
    long = SimpleNamespace(N=625_000, n=2, q=1)  # 8 numbers a sample and term: four terms at a time
    assert [len(g) for g in _groups(terms, cast(Any, [long]))] == [4, 4, 2]
    huge = SimpleNamespace(N=50_000_000, n=2, q=1)
    assert [len(g) for g in _groups(terms, cast(Any, [huge]))] == [1] * 10


def oscillator_fit(values: dict[str, float]) -> tuple[Any, Any, np.ndarray]:
    model = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x + a*z", "z": "-z"}, {"c": 0.2, "k": 4.0, "a": 1.0}
    )
    piece = SimpleNamespace(
        states=np.random.default_rng(6).standard_normal((3, 50)), times=np.arange(50.0),
        run=SimpleNamespace(inputs=Inputs.from_samples(0.0, 1.0, np.zeros((0, 50)))),
    )  # fmt: skip
    unknowns = [
        SimpleNamespace(kind="parameter", record=-1, index=i, lower=-np.inf, upper=np.inf) for i in range(3)
    ]
    fitted = SimpleNamespace(experiment=SimpleNamespace(model=model), unknowns=unknowns)
    return fitted, piece, model.with_values(values).values()


def test_given_an_oscillator_then_its_frequency_and_the_parameter_that_sets_it_are_found() -> None:
    fitted, piece, values = oscillator_fit({})
    frequency = np.sqrt(4.0 - 0.01) / (2 * np.pi)
    assert _lowest_frequency(fitted, piece, values) == pytest.approx(frequency, rel=1e-9)
    assert _setting(fitted, piece, values, frequency) == 1
    # turning at twice the frequency takes k with k - 0.01 = 4 (4 - 0.01)
    assert _value_at(fitted, piece, values, 1, 2 * frequency) == pytest.approx(15.97, rel=1e-5)
    assert _value_at(fitted, piece, values, 2, 2 * frequency) is None  # the coupling does not set it
    still = oscillator_fit({"c": 10.0})[2]
    assert _lowest_frequency(fitted, piece, still) is None
    fitted.unknowns = [fitted.unknowns[0], fitted.unknowns[2]]
    assert _setting(fitted, piece, values, frequency) is None  # damping sets it by a four-hundredth
