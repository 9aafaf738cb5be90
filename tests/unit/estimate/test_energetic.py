"""Unknown functions of an oscillator: boundary functions as published, splines from the whole record."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Identification
from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.functions.energetic import Options, _faint, identify, to_model
from analysis.estimate.functions.energetic.boundary import Ends, boundary_functions
from analysis.estimate.functions.energetic.examples import EXAMPLES
from analysis.model import Model
from analysis.simulation.simulate import simulate

FREE = Model.from_equations({"x": "v", "v": "f"}, inputs={"f": "measured"}, name="oscillator")
DAMPED = Model.from_equations({"x": "v", "v": "f - 0.2*v"}, inputs={"f": "measured"}, name="damped")


def duffing(x):
    return x + x**3


def freeplay(x):
    return 10 * np.where(np.abs(x) > 0.3, x - 0.3 * np.sign(x), 0.0)


def motion(c, law, force, seconds=20.0, rate=100.0, start=(1.0, 0.0)):
    t = np.arange(int(seconds * rate) + 1) / rate
    solution = solve_ivp(
        lambda s, z: [z[1], force(s) - c(s) * z[1] - law(z[0])],
        (0, t[-1]), start, t_eval=t, method="DOP853", rtol=1e-11, atol=1e-11,
    )  # fmt: skip
    return t, solution.y


def record_of(t, y, force, noise=0.01, seed=0, velocity=False):
    rng = np.random.default_rng(seed)
    noisy = y + noise * np.std(y, axis=1, keepdims=True) * rng.standard_normal(y.shape)
    channels = {"x": noisy[0], "f": force(t)}
    return Record.from_arrays(1 / (t[1] - t[0]), {**channels, "v": noisy[1]} if velocity else channels)


def error_of(curve, truth, low, high):
    """Relative rms error over a range, and the share of it inside the band."""
    x, y = np.array(curve.x), np.array(curve.y)
    inside = (x >= low) & (x <= high)
    x, y = x[inside], y[inside]
    covered = (np.array(curve.lower)[inside] <= truth(x)) & (truth(x) <= np.array(curve.upper)[inside])
    return np.sqrt(np.mean((y - truth(x)) ** 2) / np.mean(truth(x) ** 2)), covered.mean()


def central(x):
    return np.quantile(x, [0.005, 0.995])


CLEAN = {1: 0.001, 2: 0.03, 3: 0.001, 4: 1e-6, 5: 0.06, 6: 0.01}
NOISY = {1: 0.02, 2: 0.08, 3: 0.02, 4: 1e-6, 5: 0.4, 6: 0.15}
HERMITE = {1: 0.2146, 2: 1.0341, 3: 0.5395, 4: 0.0, 5: 10.0, 6: 18.41}


@pytest.mark.parametrize("number", EXAMPLES)
def test_given_the_six_examples_without_noise_when_recovered_from_the_record_then_errors_are_small(number):
    example = EXAMPLES[number]
    result = identify(example.model(), [example.record()], example.options(), SILENT)
    assert example.error(result) < CLEAN[number]


@pytest.mark.parametrize("number", EXAMPLES)
def test_given_the_six_examples_with_noise_when_recovered_then_within_limits_and_bands_cover(number):
    example = EXAMPLES[number]
    results = [
        identify(example.model(), [example.record(1e-3, seed)], example.options(), SILENT)
        for seed in range(5)
    ]
    assert np.median([example.error(r) for r in results]) < NOISY[number]
    assert np.mean([example.coverage(r) for r in results]) > 0.85


@pytest.mark.parametrize("number", EXAMPLES)
def test_given_boundary_data_alone_when_recovered_then_it_stays_by_the_interpolant_and_says_so(number):
    example = EXAMPLES[number]
    result = example.from_boundary()
    t = np.linspace(0, example.end, 401)
    error = np.max(np.abs(result.function(t) - example.truth_in_time(t)))
    assert error == pytest.approx(HERMITE[number], rel=2e-3, abs=1e-9)
    assert result.converged
    assert result.iterations <= 2
    found = identify(example.model(), [example.record()], example.options(boundary=True), SILENT)
    assert "Hermite interpolant" in found.warnings[0]
    assert np.all(np.isnan(found.curves[example.symbol].lower))


def test_given_other_initial_coefficients_when_iterated_then_another_answer():
    example = EXAMPLES[1]
    t = np.linspace(0, 1, 101)
    zero, one = (example.from_boundary(guess=g).function(t) for g in (None, np.ones(2)))
    assert np.max(np.abs(zero - one)) > 0.01


def test_given_ends_when_interpolated_then_values_and_slopes_are_met():
    cubic = Ends(1.0, -2.0, 3.0, 0.5).hermite(1.7)
    np.testing.assert_allclose(
        [cubic(0), cubic(1.7), cubic.deriv()(0), cubic.deriv()(1.7)], [1.0, -2.0, 3.0, 0.5], atol=1e-12
    )
    with pytest.raises(DataError):
        boundary_functions("F(t)", 1.0, Ends(0, 1, 1, 1), Ends(0, 1, 1, 1), np.sin)


def harmonic(t):
    return 3.0 * np.cos(1.2 * t)


def test_given_noisy_duffing_record_when_h_is_recovered_then_within_half_a_percent():
    t, y = motion(lambda s: 0.2, duffing, harmonic)
    errors, covered = [], []
    for seed in range(3):
        result = identify(DAMPED, [record_of(t, y, harmonic, seed=seed)], Options(), SILENT)
        assert result.converged
        error, share = error_of(result.curves["H"], duffing, *central(y[0]))
        errors.append(error)
        covered.append(share)
        assert result.residual.per_dof == pytest.approx(1.0, abs=0.15)
        assert 3 < result.residual.other["freedom"] < 40  # no more than the knots and the first values
    assert np.median(errors) < 0.005
    assert np.mean(covered) > 0.85


def test_given_noisy_duffing_record_when_both_are_recovered_then_both_are_found():
    def damping(s):
        return 0.3 + 0.15 * np.sin(0.5 * s)

    t, y = motion(damping, duffing, harmonic)
    result = identify(FREE, [record_of(t, y, harmonic)], Options(unknown="c(t)+H(x)"), SILENT)
    assert error_of(result.curves["H"], duffing, *central(y[0]))[0] < 0.005
    assert error_of(result.curves["c"], damping, 0, 20)[0] < 0.025


def two_tones(t):
    return 2.0 * np.cos(1.3 * t) + 1.5 * np.cos(2.9 * t)


def test_given_freeplay_when_recovered_then_within_two_percent():
    t, y = motion(lambda s: 0.2, freeplay, two_tones)
    result = identify(DAMPED, [record_of(t, y, two_tones)], Options(rough=2, intervals=40), SILENT)
    error, covered = error_of(result.curves["H"], freeplay, *central(y[0]))
    assert error < 0.02
    assert covered > 0.75


def test_given_measured_velocity_when_used_then_band_is_narrower():
    t, y = motion(lambda s: 0.2, duffing, harmonic, seconds=10.0)
    widths = []
    for velocity in (False, True):
        result = identify(DAMPED, [record_of(t, y, harmonic, velocity=velocity)], Options(), SILENT)
        curve = result.curves["H"]
        widths.append(np.median(np.array(curve.upper) - np.array(curve.lower)))
    assert widths[1] < 0.9 * widths[0]


def test_given_force_of_both_variables_when_recovered_then_surface_is_found():
    t = np.arange(3001) / 50

    def law(x, v):
        return x + x**3 + 0.1 * v + 0.05 * v * x**2

    def force(s):
        return 3 * np.cos(1.2 * s) + 2 * np.cos(2.3 * s)

    y = solve_ivp(
        lambda s, z: [z[1], force(s) - law(*z)],
        (0, 60),
        (1, 0),
        t_eval=t,
        method="DOP853",
        rtol=1e-10,
        atol=1e-10,
    ).y
    record = record_of(t, y, force, noise=0.005)
    result = identify(FREE, [record], Options(unknown="H(x,v)", intervals=5), SILENT)
    surface = result.extra["functions"]["H"]
    from scipy.interpolate import RegularGridInterpolator

    found = RegularGridInterpolator((surface["x"], surface["v"]), np.array(surface["value"]), "cubic")(y.T)
    assert np.sqrt(np.mean((found - law(*y)) ** 2) / np.mean(law(*y) ** 2)) < 0.02
    model = to_model(result, ["x", "x**3", "v", "v*x**2"])
    assert model.values()[model.index("h1")] == pytest.approx(1.0, abs=0.1)
    assert model.values()[model.index("h2")] == pytest.approx(1.0, abs=0.05)
    wide = np.array(surface["upper"]) - np.array(surface["lower"])
    assert wide[0, 0] > 3 * wide[20, 20]  # the corner was never visited


def test_given_rarely_visited_places_when_recovered_then_the_band_widens_beyond_the_motion():
    t, y = motion(lambda s: 0.2, duffing, harmonic)
    curve = identify(DAMPED, [record_of(t, y, harmonic)], Options(), SILENT).curves["H"]
    width = np.array(curve.upper) - np.array(curve.lower)
    assert curve.x[0] < y[0].min()
    assert curve.x[-1] > y[0].max()
    assert width[0] > 4 * np.median(width)
    assert width[-1] > 4 * np.median(width)


def test_given_recovered_law_when_made_a_model_then_it_moves_as_measured():
    t, y = motion(lambda s: 0.2, duffing, harmonic, seconds=10.0)
    record = record_of(t, y, harmonic, noise=0.001)
    result = identify(DAMPED, [record], Options(), SILENT)
    result = Identification.from_json(result.to_json())
    from analysis.signal.inputs import Inputs

    inputs = Inputs.from_samples(0.0, record.dt, record["f"][None])
    for model in (to_model(result), to_model(result, ["x", "x**3"])):
        path = simulate(model, t, np.array([1.0, 0.0]), inputs=inputs)
        assert np.sqrt(np.mean((path.states[0] - y[0]) ** 2)) < 0.01
    fitted = to_model(result, ["x", "x**3"])
    assert set(fitted.free) == {"h1", "h2"}
    assert fitted.values()[fitted.index("h1")] == pytest.approx(1.0, abs=0.02)


def test_given_two_records_when_fitted_together_then_both_count():
    records, ranges = [], []
    for start in ((0.3, 0.0), (2.5, 0.0)):
        t, y = motion(lambda s: 0.2, duffing, harmonic, seconds=8.0, start=start)
        records.append(record_of(t, y, harmonic))
        ranges.append(y[0])
    result = identify(DAMPED, records, Options(), SILENT)
    assert error_of(result.curves["H"], duffing, *central(np.concatenate(ranges)))[0] < 0.01


def test_given_a_model_that_is_no_oscillator_when_asked_then_one_sentence():
    three = Model.from_equations({"x": "v", "v": "a", "a": "-x"}, name="jerk")
    with pytest.raises(ModelError, match="not one oscillator"):
        identify(three, [Record.from_arrays(10, {"x": np.zeros(50)})], Options(), SILENT)
    with pytest.raises(DataError, match="one of"):
        identify(
            FREE,
            [Record.from_arrays(10, {"x": np.sin(np.arange(50)), "f": np.zeros(50)})],
            Options(unknown="G(x)"),
            SILENT,
        )
    with pytest.raises(DataError, match="triples"):
        identify(
            FREE,
            [Record.from_arrays(10, {"x": np.sin(np.arange(50)), "f": np.zeros(50)})],
            Options(h_known=(1.0,)),
            SILENT,
        )


def test_given_a_band_that_widens_inside_the_range_then_the_place_is_named() -> None:
    x = np.linspace(0.0, 10.0, 101)
    even = np.ones(101)
    assert _faint(x, even, "x") == []
    wide = even.copy()
    wide[40:61] = 7.0
    (words,) = _faint(x, wide, "x")
    assert words.startswith("The motion hardly went through x = 4 to 6: the band there is up to 7 times")
    ends = even.copy()
    ends[:7] = ends[-7:] = 50.0  # at its ends a band is always wide
    assert _faint(x, ends, "x") == []
    less = even.copy()
    less[50] = 3.9
    assert _faint(x, less, "x") == []
