"""The Validate page: evidence besides the record in hand, given by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from analysis.base.record import Excitation, Record
from analysis.estimate.methods import identify
from analysis.simulation.simulate import simulate
from app.desktop.pages.validate import ValidatePage
from app.desktop.window import MainWindow
from drivers.formats import write
from drivers.library import load_model
from tests.waiting import LONG_MS as LONG

PERIOD = 2 * np.pi  # of the beam's drive, in its unit of time


def beam(amplitude: float, seed: int) -> Record:
    """200 periods of the two-well beam at another size of the drive, with 0.3 % noise."""
    model = load_model("two_well_beam").with_values({"a": amplitude})
    states = simulate(model, PERIOD / 25 * np.arange(25 * 250), np.array([0.72, 0.0])).states[:, 25 * 50 :]
    noise = 0.003 * states.std(axis=1, keepdims=True) * np.random.default_rng(seed).normal(size=states.shape)
    x, v = states + noise
    return Record.from_arrays(
        25 / PERIOD, {"x": x, "v": v}, excitation=Excitation(1 / PERIOD, amplitude, 0.0)
    )


def transfer_table(path: Path) -> Path:
    """The exact transfer function of small motions around the well at x0 = 0.73."""
    x0 = np.roots([-0.064, 0.336, 0.178, -0.28])
    x0 = float(x0[(x0 > 0.5) & (x0 < 1.5)].real[0])
    stiffness = -0.28 + 2 * 0.178 * x0 + 3 * 0.336 * x0**2 - 4 * 0.064 * x0**3
    frequency = np.linspace(0.01, 0.3, 300)
    s = 2j * np.pi * frequency
    response = 1 / (s**2 + 0.035 * s + stiffness)
    rows = [f"{f},{h.real},{h.imag}" for f, h in zip(frequency, response, strict=True)]
    path.write_text("\n".join(["frequency,real,imag", *rows]), encoding="utf-8")
    return path


def test_given_other_recordings_and_a_transfer_function_then_their_checks_become_possible(
    make_window: Callable[..., MainWindow], qtbot: QtBot, tmp_path: Path
) -> None:
    model, record = load_model("two_well_beam"), beam(0.25, 1)
    result = identify(model, [record], "weak")
    window = make_window("validate", begin=False)
    bench, page = window.bench, window.page
    assert isinstance(page, ValidatePage)
    bench.take_record(record, "chaos")
    assert bench.model is None  # as at a start, until its text is read
    bench.take_result(result)
    assert "once the model's text is read" in page.verdict.text() and page.job is None
    bench.take_model(model)
    qtbot.waitUntil(lambda: page.validation is not None, timeout=LONG)
    assert page.validation is not None
    assert page.validation["bifurcation"].status == page.validation["transfer"].status == "not possible"
    assert not page.evidence.clear_button.isVisible()
    assert page.outcome == "passed" and page.sign.isVisible() and page.card.objectName() == "banner_fits"
    page.list.setCurrentRow(0)  # the response: both states over the same time move together
    first, second = page.plots[:2]
    first.item.setXRange(1.0, 3.0, padding=0)
    assert second.item.getViewBox().viewRange()[0] == pytest.approx([1.0, 3.0])

    write(beam(0.13, 7), tmp_path / "small.h5")
    page.evidence.transfer = transfer_table(tmp_path / "hammer.csv")
    page.evidence.add_others([tmp_path / "small.h5"])
    assert page.evidence.state.text() == "Also beside small, hammer"
    qtbot.waitUntil(lambda: page.validation is not None, timeout=LONG)
    found = page.validation
    assert found is not None and found["bifurcation"].status == "passed"
    assert found["transfer"].status == found["equilibria"].status == "passed"
    assert [row["value"] for row in found["bifurcation"].rows] == [1.0, 0.52]

    broken = tmp_path / "broken.csv"
    broken.write_text("frequency,real,imag\n1,none,2\n", encoding="utf-8")
    page.evidence.use_transfer(broken)
    qtbot.waitUntil(lambda: page.verdict.objectName() == "bad", timeout=LONG)
    assert page.verdict.text() == "broken.csv is not a table of numbers below its header."
    bench.take_record(record, "chaos again")  # what belongs to the other record is forgotten
    assert page.evidence.others == [] and page.evidence.transfer is None
