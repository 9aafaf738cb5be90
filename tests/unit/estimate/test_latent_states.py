"""Hidden states along a record, held against the truth and against the information of the fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from analysis import SILENT, DataError, Identification, Model, Record, identify, latent_states
from analysis.estimate.latent_states import _again
from app.cli import main
from drivers.formats import read, write

Array = NDArray[np.float64]

TEXT = """
name = "two wells"
[states]
x = "v"
v = "-c*v - k1*x - k3*x**3 + a*cos(1.2*t)"
[parameters]
c = { guess = 0.25, lower = 0, upper = 2 }
k1 = { guess = -0.8, lower = -5, upper = 5 }
k3 = { guess = 1.2, lower = 0, upper = 5 }
a = AMPLITUDE
[outputs]
x = "x"
"""


def motion(c: float, a: float, seed: int, samples: int = 600) -> tuple[Array, Record]:
    """States [2, N] of a two-well oscillator, and its displacement at 10 Hz with 2 % noise."""
    rng, t = np.random.default_rng(seed), np.arange(samples) / 10.0

    def rate(at: float, z: Array) -> list[float]:
        return [z[1], -c * z[1] + z[0] - z[0] ** 3 + a * np.cos(1.2 * at)]

    start = np.array([1.6 if a == 0 else 0.1, 0.0]) + 0.1 * rng.normal(size=2)
    states = solve_ivp(rate, (0, t[-1]), start, "DOP853", t, rtol=1e-11, atol=1e-11).y
    x = states[0] + 0.02 * states[0].std() * rng.normal(size=samples)
    return states, Record.from_arrays(10.0, {"x": x})


def fitted(a: float, record: Record) -> Identification:
    return identify(Model.from_toml(TEXT.replace("AMPLITUDE", str(a))), record, "path")


@pytest.mark.parametrize(("c", "a"), [(0.3, 0.5), (0.1, 0.0)], ids=["chaos", "decay"])
def test_given_displacement_alone_then_the_velocity_is_told_with_errors_that_hold(c: float, a: float) -> None:
    distances, errors = [], []
    for seed in range(4):
        states, record = motion(c, a, seed)
        found = latent_states(fitted(a, record), record)
        assert found.names == ("x", "v") and not found.words
        errors.append(np.median(found.stderr[1]) / states[1].std())
        distances.append((found.values - states) / found.stderr)
    assert np.median(errors) < 0.01  # half of the noise of the displacement; no difference of samples does it
    rms = np.sqrt(np.mean(np.square(distances), axis=(0, 2)))
    assert np.all((rms > 0.5) & (rms < 1.6)), rms


def test_given_a_fit_then_the_error_of_the_first_state_is_that_of_its_information() -> None:
    _, record = motion(0.1, 0.0, 3)
    result = fitted(0.0, record)
    found = latent_states(result, record)
    again = _again(result, record, SILENT)
    (piece,) = again.pieces
    names = list(result.parameters)
    places = [names.index(name) for name in again.names]
    C = np.array(result.covariance)[np.ix_(places, places)]
    exact = np.linalg.inv(piece.initial_information) + piece.initial_slope @ C @ piece.initial_slope.T
    np.testing.assert_allclose(found.stderr[:, 0], np.sqrt(np.diag(exact)), rtol=0.02)


def test_given_what_has_no_states_then_one_sentence() -> None:
    _, record = motion(0.1, 0.0, 3)
    result = fitted(0.0, record)
    with pytest.raises(DataError, match="is this the recording that it was made from"):
        latent_states(result, motion(0.2, 0.0, 4)[1])
    with pytest.raises(DataError, match="did not converge"):
        latent_states(replace(result, converged=False), record)
    with pytest.raises(DataError, match="does not hold the covariance"):
        latent_states(replace(result, covariance=[]), record)


def test_given_a_recording_when_identified_with_states_then_a_file_holds_them_as_channels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    states, record = motion(0.1, 0.0, 5)
    write(record, tmp_path / "decay.h5")
    (tmp_path / "wells.toml").write_text(TEXT.replace("AMPLITUDE", "0.0"))
    words = ["identify", str(tmp_path / "decay.h5"), str(tmp_path / "wells.toml"), "--method", "path"]
    assert main([*words, "--states", str(tmp_path / "states.csv")]) == 0
    told = read(tmp_path / "states.csv")
    assert set(told.channels) >= {"x", "x (model)", "v (model)", "v (model) error"}
    np.testing.assert_allclose(told["v (model)"], states[1], atol=6 * told["v (model) error"].max())
    capsys.readouterr()
    assert main([*words, "--states", str(tmp_path / "states.xyz")]) != 0
    assert main([*words, "--states", str(tmp_path / "decay.h5")]) != 0
    assert "Traceback" not in capsys.readouterr().err
