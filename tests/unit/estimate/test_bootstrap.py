"""Draws of the bootstrap: like the record they stand for, and an error bar like the one the fit states."""

import numpy as np
import pytest

from analysis import Estimate, Model, Record, ShakedownError, fitted_motion, identify, with_draws
from analysis.estimate.bootstrap import FittedMotion

RATE, SAMPLES, NOISE = 20.0, 300, 0.02
MODEL = Model.from_equations(
    {"x": "v", "v": "-c*v - k*x"}, {"c": {"guess": 0.3}, "k": {"guess": 3.0}}, outputs={"x": "x"}
)


def ringing(noise: np.ndarray) -> Record:
    t = np.arange(SAMPLES) / RATE
    return Record.from_arrays(RATE, {"x": np.exp(-0.1 * t) * np.cos(2.0 * t) + noise})


def test_draws_scatter_as_the_error_bar_says(rng: np.random.Generator) -> None:
    record = ringing(NOISE * rng.standard_normal(SAMPLES))
    stated = identify(MODEL, record, "path").parameters["k"]
    motion = fitted_motion(MODEL, [record], "path")
    found = [identify(MODEL, motion.draw("parametric", rng), "path").values()["k"] for _ in range(30)]
    assert 0.65 * stated.stderr < np.std(found, ddof=1) < 1.5 * stated.stderr
    assert with_draws(found, stated).value == stated.value


def test_blocks_keep_the_colour_of_the_noise(rng: np.random.Generator) -> None:
    white = NOISE * rng.standard_normal(SAMPLES + 20)
    coloured = np.convolve(white, np.ones(10) / np.sqrt(10), "valid")[:SAMPLES]
    record = ringing(coloured)
    motion = fitted_motion(MODEL, [record], "path")
    clean = motion.motions[0].outputs["x"]

    def neighbours(kind: str) -> float:
        rest = np.concatenate([d["x"] - clean for d in (motion.draw(kind, rng)[0] for _ in range(20))])
        return float(np.corrcoef(rest[:-1], rest[1:])[0, 1])

    assert neighbours("block") > 0.7 and abs(neighbours("parametric")) < 0.1


@pytest.mark.parametrize("kind", ["parametric", "block"])
def test_an_output_that_was_not_measured_lends_its_noise_to_no_other(
    kind: str, rng: np.random.Generator
) -> None:
    both = Model.from_equations(
        {"x": "v", "v": "-c*v - k*x"},
        {"c": {"guess": 0.2}, "k": {"guess": 4.0}},
        outputs={"force": "k*x", "x": "x"},
    )
    motion = fitted_motion(both, [ringing(NOISE * rng.standard_normal(SAMPLES))], "path").motions[0]
    assert list(motion.outputs) == ["x"]
    drawn = FittedMotion((motion,)).draw(kind, rng)[0]["x"] - motion.outputs["x"]
    assert np.std(drawn) == pytest.approx(NOISE, rel=0.2)


def test_a_few_fits_that_ended_elsewhere_do_not_speak_for_all_others(rng: np.random.Generator) -> None:
    draws = [*rng.normal(4.0, 0.1, 194), *rng.normal(4.0, 5.0, 6)]
    told = with_draws(draws, Estimate.normal(4.0, 0.1))
    assert 0.08 < told.stderr < 0.13 and 3.6 < told.lower < 3.85 and 4.15 < told.upper < 4.4


def test_an_unknown_kind_and_too_few_draws_are_refused(rng: np.random.Generator) -> None:
    motion = fitted_motion(MODEL, [ringing(NOISE * rng.standard_normal(SAMPLES))], "path")
    with pytest.raises(ShakedownError, match="parametric or block"):
        motion.draw("wild", rng)
    with pytest.raises(ShakedownError, match="20"):
        with_draws([1.0, 2.0], Estimate.normal(1.0, 0.1))
