"""Work on what is no longer in hand: its answer never reaches the page of the new record or fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from analysis.base.identification import Estimate, Identification
from analysis.base.record import Excitation, Record
from analysis.model import Model
from app.desktop.pages.validate import ValidatePage
from app.desktop.window import MainWindow
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]
MODEL = 'name = "decay"\n[states]\nx = "-k*x"\n[parameters]\nk = { guess = 1.0 }\n'


def _swing(frequency: float) -> Record:
    t = np.arange(1000) / 100.0
    return Record.from_arrays(
        100.0, {"x": np.sin(2 * np.pi * frequency * t)}, excitation=Excitation(frequency, 1.0, 0.0)
    )


@pytest.mark.parametrize("key", ["embed", "orbits"])
def test_given_a_search_when_another_record_is_taken_then_its_answer_is_not_taken_for_one_of_that_record(
    make_window: Make, qtbot: QtBot, key: str
) -> None:
    window = make_window(key, begin=False)
    bench = window.bench
    bench.take_record(_swing(2.0), "first")
    page = window.pages[key]
    page.run()  # type: ignore[attr-defined]
    left = page.job
    assert left is not None
    bench.take_record(_swing(3.0), "second")
    assert page.job is not left
    said = page.state.text()  # type: ignore[attr-defined]
    left.done.emit("an answer that came too late")
    assert page.state.text() == said and not bench.findings  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: page.job is None and not left.running, timeout=LONG)
    assert page.run_button.isEnabled()  # type: ignore[attr-defined]
    assert bench.findings.keys() == ({"embedding"} if key == "embed" else set())


def test_given_checks_of_a_fit_when_another_fit_is_made_then_they_are_not_taken_for_checks_of_that_one(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    bench = window.bench
    window.show_page("validate")
    page = window.page
    assert isinstance(page, ValidatePage)
    bench.take_record(_swing(2.0), "swing")
    bench.take_model(Model.from_toml(MODEL))
    fits = [Identification("path", "decay", True, {"k": Estimate.normal(k, 0.1)}) for k in (1.0, 2.0)]
    bench.take_result(fits[0])
    left = page.job
    assert left is not None
    bench.take_result(fits[1])
    left.done.emit("checks of the first fit")
    assert page.validation is None and "validation" not in bench.findings
    page.leave_job()
    assert not page.list.count()
