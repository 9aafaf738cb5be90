"""A desk that cannot be misread: the drive is visible everywhere, numbers belong to what is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from PyQt6.QtCore import Qt, QTimer
from PyQt6.QtGui import QTextCursor
from PyQt6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from analysis.base.identification import Estimate, Identification
from analysis.base.record import Record
from app.desktop.pages import STAGES
from app.desktop.pages.identify import IdentifyPage
from app.desktop.pages.rig import RigPage
from app.desktop.theme import Theme
from app.desktop.widgets.verdictbanner import VERDICTS, VerdictBanner
from app.desktop.window import MainWindow
from tests.waiting import GUARD_MS as GUARD
from tests.waiting import LONG_MS as LONG

Make = Callable[..., MainWindow]


def _press(qtbot: QtBot, word: str, asked: list[str]) -> None:
    """Press the button with this word in the question that is about to come."""

    def press() -> None:
        box = QApplication.activeModalWidget()
        if isinstance(box, QMessageBox) and box.isVisible():
            asked.append(box.text())
            qtbot.mouseClick(next(b for b in box.buttons() if word in b.text()), Qt.MouseButton.LeftButton)
        else:
            QTimer.singleShot(20, press)

    QTimer.singleShot(0, press)


def test_given_a_drive_then_its_pill_stands_beside_stop_on_every_page_and_tells_why_it_ended(
    window: MainWindow, qtbot: QtBot
) -> None:
    rig, pill = window.bench.rig, window.pill
    qtbot.waitUntil(lambda: pill.text() == "SINE 7.5 Hz 1.50 V", timeout=GUARD)
    for stage in STAGES:
        window.show_page(stage.key)
        assert pill.isVisible() and pill.geometry().right() < window.stop_button.geometry().left()
    assert pill._timer.isActive() and pill._timer.interval() <= 200
    why = "the coil of the shaker is at 81.5 °C, beyond its limit of 80 °C, so the drive was taken off it"
    rig.stop(why)
    qtbot.waitUntil(window.strip.isVisible, timeout=GUARD)
    assert why in window.strip.text.text()  # whole
    words = window.strip.text
    qtbot.waitUntil(lambda: words.height() >= words.heightForWidth(words.width()), timeout=GUARD)
    assert pill.text() == "STOPPED\nlatched" and why in pill.toolTip()
    window.show_page("acquire")
    panel = window.pages["acquire"].drive_panel  # type: ignore[attr-defined]
    qtbot.waitUntil(lambda: not panel.start.isEnabled(), timeout=GUARD)
    window.bench.start_drive()  # refused: only a person arms it
    qtbot.waitUntil(lambda: window.notice.isVisible() and "arm" in window.notice._text.text(), timeout=GUARD)
    assert not rig.drive_status().driving
    qtbot.mouseClick(window.strip.arm, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: pill.text() == "ARMED", timeout=GUARD)
    assert not window.strip.isVisible() and not rig.drive_status().driving  # arming moves nothing
    qtbot.waitUntil(panel.start.isEnabled, timeout=GUARD)
    qtbot.mouseClick(panel.start, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: pill.text() == "SINE 7.5 Hz 1.50 V", timeout=GUARD)
    qtbot.waitUntil(lambda: panel.start.text() == "Stop drive", timeout=GUARD)
    qtbot.mouseClick(panel.start, Qt.MouseButton.LeftButton)  # a part of the work: no latch
    qtbot.waitUntil(lambda: not rig.drive_status().driving, timeout=GUARD)
    assert not window.strip.isVisible() and panel.start.isEnabled()


def test_given_a_running_drive_when_another_rig_is_asked_for_then_it_asks_first(
    window: MainWindow, qtbot: QtBot
) -> None:
    rig, asked = window.bench.rig, list[str]()
    qtbot.waitUntil(lambda: rig.drive().steady, timeout=GUARD)
    window.show_page("rig")
    page = window.page
    assert isinstance(page, RigPage)
    names = [page.list.item(i).data(Qt.ItemDataRole.UserRole) for i in range(page.list.count())]  # type: ignore[union-attr]
    page.list.setCurrentRow(names.index("cantilever"))
    _press(qtbot, "Stay", asked)
    qtbot.mouseClick(page.open_button, Qt.MouseButton.LeftButton)
    assert rig.name == "two_well_beam_modern" and rig.drive().playing
    assert "SINE 7.5 Hz" in asked[0]
    _press(qtbot, "Stop and open", asked)
    with qtbot.waitSignal(rig.opened, timeout=LONG):
        qtbot.mouseClick(page.open_button, Qt.MouseButton.LeftButton)
    assert rig.name == "cantilever" and len(asked) == 2


def _fit_of(page: IdentifyPage) -> Identification:
    model = page.bench.model
    assert model is not None
    return Identification(
        "path", model.name, True, {"c": Estimate.normal(1.0, 0.1)}, 1, model_text=model.text
    )


def test_given_a_model_text_that_is_not_understood_then_nothing_can_be_fitted_and_old_numbers_are_grey(
    make_window: Make, qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    page, bench = window.page, window.bench
    assert isinstance(page, IdentifyPage)
    qtbot.waitUntil(lambda: bench.model is not None, timeout=LONG)
    rng = np.random.default_rng(1)
    noise = {name: rng.standard_normal(50) for name in ("x", "v", "f")}
    bench.take_record(Record.from_arrays(500.0, noise), "noise")
    assert page.run_button.isEnabled()
    page._done(_fit_of(page))
    assert page.result_view.table.isEnabled() and "earlier" not in page.banner.title.text()
    assert page.state.text() == "The search ended after 1 step." and page.state.objectName() == "small"

    text = page.model_card.text()
    page.model_card.tabs.setCurrentWidget(page.model_card.editor)
    page.model_card.editor.setFocus()
    page.model_card.editor.moveCursor(QTextCursor.MoveOperation.End)
    qtbot.keyClicks(page.model_card.editor, "[")
    assert not page.run_button.isEnabled()  # at once, before the text was even read
    assert page.banner.title.text().startswith("Of an earlier model (")
    assert not page.result_view.table.isEnabled()
    qtbot.keyClick(page, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    page.run()
    assert page.job is None and "being checked" in page.state.text()  # nothing is wrong so far
    qtbot.waitUntil(lambda: page.model_card.verdict.objectName() == "bad", timeout=LONG)
    assert "nothing to fit" in page.state.text()
    assert not page.run_button.isEnabled() and not page.model_card.picture.isEnabled()

    qtbot.keyClick(page.model_card.editor, Qt.Key.Key_Backspace)
    assert page.model_card.text() == text
    qtbot.waitUntil(page.run_button.isEnabled, timeout=LONG)
    assert page.result_view.table.isEnabled() and "earlier" not in page.banner.title.text()
    assert page.state.text() == ""

    bench.take_record(Record.from_arrays(500.0, noise), "another")
    assert "an earlier record (noise)" in page.banner.title.text()
    page.model_card.choose("beam_on_shaker")
    qtbot.waitUntil(
        lambda: bench.model is not None and bench.model.text == page.model_card.text(), timeout=LONG
    )
    assert page.banner.title.text().startswith("Of an earlier model (")


@pytest.mark.parametrize("verdict", VERDICTS)
def test_given_a_verdict_then_its_banner_has_words_a_colour_and_the_reasons(
    qtbot: QtBot, verdict: str
) -> None:
    banner = VerdictBanner(Theme("light"))
    qtbot.addWidget(banner)
    banner.show_verdict(verdict, ["The residual is 1.2 times the noise.", "b", "c", "d"])
    assert banner.title.text() == VERDICTS[verdict][0]
    assert banner.objectName() == f"banner_{verdict.replace(' ', '_') or 'none'}"
    assert "1.2 times" in banner.reasons.text() and banner.toolTip().endswith("d")
    banner.show_verdict(verdict, [], "an earlier model (x)")
    assert banner.objectName() == "banner_none" and "Of an earlier model (x)" in banner.title.text()


def test_given_a_search_that_did_not_converge_then_the_banner_never_says_that_it_fits(qtbot: QtBot) -> None:
    banner = VerdictBanner(Theme("light"))
    qtbot.addWidget(banner)
    result = Identification("path", "m", False, {})
    banner.show_result(result)
    assert banner.verdict == "cannot tell" and "did not converge" in banner.reasons.text()
    banner.show_result(replace(result, converged=True))
    assert banner.verdict == "" and banner.objectName() == "banner_none"
