"""Signs and thresholds of which a whole identification shows little."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.finish import jumps, path_engine
from analysis.estimate.finish.missing_force import _looks
from analysis.estimate.finish.missing_terms import Missing
from analysis.estimate.start import Start
from analysis.experiment import Experiment
from analysis.model import Model
from analysis.validation.transfer import _size_of_input


def test_given_a_noisy_force_that_the_motion_tells_then_its_residual_is_measured_minus_true() -> None:
    """x' = f - a x with x exact to 1e-4: every step of x tells what the force was."""
    rng, dt = np.random.default_rng(3), 0.5
    model = Model.from_equations({"x": "f - a*x"}, {"a": {"guess": 0.4}}, inputs={"f": "measured"})
    true = np.convolve(rng.standard_normal(340), np.hanning(41), "valid") / 3.0  # smooth, and no tone
    x = np.empty(300)
    x[0] = 0.3
    fade = np.exp(-0.4 * dt)
    for i in range(299):  # the force held over each sample interval
        x[i + 1] = x[i] * fade + true[i] * (1 - fade) / 0.4
    noise = 0.1 * rng.standard_normal(300)
    channels = {"x": x + 1e-4 * rng.standard_normal(300), "f": true + noise}
    experiment = Experiment(model, Record.from_arrays(1 / dt, channels))
    fitted = path_engine.fit_path(experiment, Start("path", np.array([[0.4]]), [x[None]]), SILENT)
    assert fitted.inputs_estimated
    residual = fitted.pieces[0].input_residuals[0]
    # by chance it would be 0 +- 0.06; the force between samples is not told, so it is not 1 either
    assert np.corrcoef(residual[5:-5], noise[5:-5])[0, 1] > 0.3


def test_given_a_force_that_reaches_further_to_one_side_then_its_symmetry_is_that_of_the_common_part() -> (
    None
):
    missing = Missing("x^3", "dv/dt", 9.0, 1.0, 0.1, 0.034)
    x = np.array([-2.0, 0.1, 2.0, 5.0])
    assert "odd in x" in _looks("x", x, np.array([-2.0, 0.1, 2.0, 90.0]), missing, "odd")


@pytest.mark.parametrize(("worst", "followed"), [(1.29, False), (1.31, True)])
def test_given_parts_of_a_record_then_a_jump_is_sought_where_one_stands_out(
    worst: float, followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(number: int, size: float) -> Any:
        residuals = size * np.array([[1.0, -1.0, np.nan], [0.1, 0.1, 0.1]])
        return SimpleNamespace(
            residuals=residuals, record=0, first=100 * number, stop=100 * (number + 1), times=np.arange(5000)
        )

    pieces = [part(i, worst if i == 3 else 1.0) for i in range(8)]
    fitted = SimpleNamespace(pieces=pieces, experiment=None, as_start=lambda: None)
    sought: list[tuple[int, int]] = []
    monkeypatch.setattr(jumps, "fit", lambda *_, **__: fitted)
    monkeypatch.setattr(jumps, "noise_from_differences", lambda _: np.ones((1, 2)))
    monkeypatch.setattr(jumps, "_without", lambda _, record, first, stop: sought.append((first, stop)))
    monkeypatch.setattr(jumps, "optimum_near", lambda *_: None)
    assert jumps._jump(cast(Any, fitted), SILENT) is None
    assert sought == ([(300, 400)] if followed else [])


def test_given_an_input_then_its_derivatives_are_taken_in_its_own_size() -> None:
    channels = {
        "f": SimpleNamespace(data=np.array([0.0, np.nan, 2e6])),
        "dead": SimpleNamespace(data=np.ones(3)),
    }
    subject = cast(Any, SimpleNamespace(record=SimpleNamespace(channels=channels)))
    assert _size_of_input(subject, "f") == pytest.approx(1e6)
    assert _size_of_input(subject, "dead") == _size_of_input(subject, "absent") == 1.0
