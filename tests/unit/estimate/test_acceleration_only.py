"""Unknown functions from an accelerometer or a vibrometer alone: integration constants and drift unknown."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError
from analysis.base.identification import Identification
from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.functions.energetic import Options, identify
from analysis.estimate.functions.energetic.channels import (
    acceleration_channel,
    with_acceleration,
    zero_is_free,
)
from analysis.estimate.functions.energetic.unknowns import layout
from analysis.estimate.functions.energetic.whitening import Whitening
from analysis.experiment.states import rate_outputs
from analysis.model import Model
from analysis.signal.double_integration import integrated_twice

RATE = 30.0
TIMES = np.arange(1201) / RATE
DAMPED = Model.from_equations({"x": "v", "v": "f - 0.2*v"}, inputs={"f": "measured"}, name="damped")


def drive(t: float | np.ndarray) -> np.ndarray:
    return np.asarray(2.0 * np.cos(1.3 * t) + 1.5 * np.cos(2.9 * t) + np.cos(0.7 * t + 1.0))


def spring(x: np.ndarray) -> np.ndarray:
    return np.asarray(x + 0.4 * x**2 + x**3)


@pytest.fixture(scope="module")
def moved() -> np.ndarray:
    """Displacement, velocity and acceleration [3, N], by SciPy."""
    y = solve_ivp(
        lambda t, z: [z[1], float(drive(t)) - 0.2 * z[1] - float(spring(z[0]))],
        (0, TIMES[-1]), (0.5, 0.0), t_eval=TIMES, rtol=1e-10, atol=1e-10,
    ).y  # fmt: skip
    return np.vstack([y, drive(TIMES) - 0.2 * y[1] - spring(y[0])])


def within(found: Identification, x: np.ndarray, unit: float = 1.0) -> tuple[float, float]:
    """Share of the points inside the band and relative error; x is counted from its mean."""
    curve, middle = found.curves["H"], float(np.mean(x))
    at = np.array(curve.x) / unit
    low, high = np.quantile(x - middle, [0.005, 0.995])
    inside = (at >= low) & (at <= high)
    truth = spring(at[inside] + middle)
    lower, upper, y = (np.array(row)[inside] / unit for row in (curve.lower, curve.upper, curve.y))
    held = np.mean((lower <= truth) & (truth <= upper))
    return float(held), float(np.sqrt(np.mean((y - truth) ** 2) / np.mean(truth**2)))


@pytest.mark.parametrize("unit", [1.0, 1e6])
def test_given_an_accelerometer_with_a_drifting_zero_then_its_spring_is_found(
    moved: np.ndarray, unit: float
) -> None:
    rng = np.random.default_rng(4)
    a = moved[2] + 0.02 * moved[2].std() * rng.standard_normal(len(TIMES))
    a += moved[2].std() * (0.3 + 0.2 * TIMES / TIMES[-1])
    f = drive(TIMES) + 0.01 * np.std(drive(TIMES)) * rng.standard_normal(len(TIMES))
    found = identify(DAMPED, [Record.from_arrays(RATE, {"a": unit * a, "f": unit * f})], Options(), SILENT)
    assert found.verdict == "fits", found.reasons
    assert any("counted from its mean" in words for words in found.warnings)
    held, error = within(found, moved[0], unit)
    assert held > 0.9
    assert error < 0.01


def test_given_a_vibrometer_with_an_offset_then_its_spring_is_found(moved: np.ndarray) -> None:
    rng = np.random.default_rng(5)
    v = moved[1] + 0.02 * moved[1].std() * rng.standard_normal(len(TIMES)) + 0.2 * moved[1].std()
    found = identify(DAMPED, [Record.from_arrays(RATE, {"v": v, "f": drive(TIMES)})], Options(), SILENT)
    assert found.verdict == "fits", found.reasons
    held, error = within(found, moved[0])
    assert held > 0.9
    assert error < 0.01


def test_given_an_accelerometer_and_a_wrong_mass_then_it_does_not_fit(moved: np.ndarray) -> None:
    rng = np.random.default_rng(6)
    a = moved[2] + 0.02 * moved[2].std() * rng.standard_normal(len(TIMES))
    wrong = Model.from_equations({"x": "v", "v": "f/1.2 - 0.2*v"}, inputs={"f": "measured"})
    found = identify(wrong, [Record.from_arrays(RATE, {"a": a, "f": drive(TIMES)})], Options(), SILENT)
    assert found.verdict in ("close", "misses")


def test_given_an_output_with_the_velocity_s_equation_in_g_then_it_is_the_acceleration() -> None:
    model = Model.from_equations(
        {"x": "v", "v": "f - 0.2*v"}, inputs={"f": "measured"}, outputs={"x": "x", "top": "(f - 0.2*v)/9.81"}
    )
    (state, factor) = rate_outputs(model)[1]
    assert state == 1 and factor == pytest.approx(1 / 9.81)
    record = Record.from_arrays(10.0, {"top": np.ones(20), "f": np.ones(20)})
    name, found = acceleration_channel(model, [record])
    assert (name, found) == ("top", pytest.approx(1 / 9.81))
    beside = Record.from_arrays(10.0, {"x": np.ones(20), "a": np.ones(20), "f": np.ones(20)})
    assert with_acceleration(DAMPED, [beside]) is DAMPED  # what `a` is nobody said


def test_given_a_record_without_any_of_the_three_then_the_sentence_names_them() -> None:
    record = Record.from_arrays(10.0, {"y": np.sin(np.arange(50.0)), "f": np.ones(50)})
    with pytest.raises(DataError, match="Name the channels"):
        identify(DAMPED, [record], Options(), SILENT)


def test_given_what_is_known_of_the_force_then_the_zero_is_free_only_where_h_takes_up_a_shift() -> None:
    grids = layout("H(x)", (0.0, 1.0), (-1.0, 1.0), (-1.0, 1.0), 500)
    both = layout("H(x,v)", (0.0, 1.0), (-1.0, 1.0), (-1.0, 1.0), 500)
    time = layout("c(t)", (0.0, 1.0), (-1.0, 1.0), (-1.0, 1.0), 500)

    def model(text: str) -> Model:
        return Model.from_equations({"x": "v", "v": text}, inputs={"f": "measured"})

    assert zero_is_free(model("f - 0.2*v - 3*x"), grids)
    assert not zero_is_free(model("f - 0.2*x**2*v"), grids)
    assert zero_is_free(model("f - 0.2*x**2*v"), both)
    assert not zero_is_free(model("f*(1 + x)"), both)
    assert not zero_is_free(model("f - 0.2*v"), time)


def test_given_a_tone_with_noise_offset_and_drift_then_twice_integrated_it_is_its_displacement() -> None:
    t = 0.02 * np.arange(2000)
    x = np.cos(1.3 * t) + 0.3 * np.sin(2.9 * t)
    a = -(1.3**2) * np.cos(1.3 * t) - 0.3 * 2.9**2 * np.sin(2.9 * t)
    noise = 0.01 * a.std()
    noisy = a + noise * np.random.default_rng(1).standard_normal(len(t)) + 5.0 - 0.1 * t
    courses = np.column_stack([np.ones(len(t)), np.linspace(-1, 1, len(t))])
    found, rate, freed = integrated_twice(noisy, 0.02, noise, courses)
    error = (
        found - x
    )  # integration constants, offset and drift make a cubic: nothing tells it from slow motion
    slow = np.polynomial.Polynomial.fit(t, error, 3)(t)
    assert np.std(error - slow) < 0.03 * x.std()
    assert np.std(slow) < 0.2 * x.std()
    assert np.std(rate + 1.3 * np.sin(1.3 * t) - 0.87 * np.cos(2.9 * t)) < 0.05 * rate.std()
    assert np.std(freed - a) < 0.05 * a.std()


def test_given_an_accelerometer_under_a_noisy_force_then_its_innovations_are_those_of_the_covariance() -> (
    None
):
    """d' = A d + (0, dt w); v and the acceleration h d + w are seen with noise."""
    rng, count, dt = np.random.default_rng(2), 12, 0.3
    step = np.array([[0.95, 0.28], [-0.3, 0.9]])
    phi = [np.eye(2)]
    for _ in range(count - 1):
        phi.append(step @ phi[-1])
    h = np.array([-2.0, -0.4])
    turned = np.stack([np.array(phi)[:, 0], np.array(phi)[:, 1], np.array(phi).transpose(0, 2, 1) @ h])
    pushes, noise = rng.uniform(0.05, 0.4, count), np.array([0.2, 0.5, 0.7])
    there = np.ones((3, count), dtype=bool)
    there[0] = False
    there[2, 4] = False
    found = Whitening.prepare(turned, pushes, there, noise, dt)
    maps = []  # of all w to what is seen
    state = np.zeros((2, count))
    for n in range(count):
        one = np.eye(count)[n]
        maps.append(np.stack([state[0], state[1], h @ state + one]))
        state = step @ state + np.outer([0.0, dt], one)
    whole = np.concatenate(maps)  # [3 * count, count]
    total = whole @ np.diag((pushes / dt) ** 2) @ whole.T + np.diag(np.tile(noise**2, count))
    seen = there.T.ravel()
    root = np.linalg.cholesky(total[np.ix_(seen, seen)])
    rows = rng.standard_normal((3, count, 2))
    expected = np.linalg.solve(
        root, (rows * noise[:, None, None]).transpose(1, 0, 2).reshape(3 * count, 2)[seen]
    )
    innovations = found.applied(rows).transpose(1, 0, 2).reshape(3 * count, 2)[seen]
    assert innovations == pytest.approx(expected, rel=1e-9)
