"""Numbers typed with real keys, in English and German: what is refused, what reaches the shaker, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QLocale, QPoint, QPointF, Qt, QTimer
from PyQt6.QtGui import QWheelEvent
from PyQt6.QtWidgets import QApplication, QDialog, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.dates import date_text, moment_text
from app.desktop.pages.acquire import AcquirePage
from app.desktop.widgets.drivepanel import DrivePanel
from app.desktop.widgets.number import Count, Number
from app.desktop.widgets.statusbar import quantity
from app.desktop.window import MainWindow
from app.numbers import NumberError, localised_delay, number_text, read_number
from drivers.base.limits import Limits
from tests.waiting import GUARD_MS as GUARD

Make = Callable[..., MainWindow]
LOCALES = {"english": QLocale(QLocale.Language.English), "german": QLocale(QLocale.Language.German)}


@pytest.fixture(params=LOCALES)
def language(request: pytest.FixtureRequest) -> Iterator[str]:
    before = QLocale()
    QLocale.setDefault(LOCALES[request.param])
    yield request.param
    QLocale.setDefault(before)


@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize(
    ("text", "value"),
    [("0,4", 0.4), ("0.4", 0.4), ("8.25", 8.25), ("8,25", 8.25), (",5", 0.5), ("−3", -3.0), (" 12 ", 12.0),
     ("1.5e-3", 1.5e-3), ("1,5E3", 1500.0), ("0,125", 0.125), ("0.125", 0.125), ("1234,5", 1234.5),
     ("1,0625", 1.0625), ("1000", 1000.0)],
)  # fmt: skip
def test_given_either_decimal_mark_then_the_number_is_the_same_for_every_reader(
    text: str, value: float, mark: str
) -> None:
    assert read_number(text, mark) == value


@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize(
    "text",
    ["1.000,5", "1,000.5", "1.000.000", "1,000,000", "", "volt", "1 000", "1e", "1e999", "0x1", "nan", "inf",
     "--1", "1..2", "1'000", "٣"],
)  # fmt: skip
def test_given_a_text_that_is_not_one_number_then_it_is_refused_for_every_reader(
    text: str, mark: str
) -> None:
    with pytest.raises(NumberError) as refused:
        read_number(text, mark)
    assert text.strip() in str(refused.value)


@pytest.mark.parametrize("digits", ["1{}000", "12{}500", "999{}999", "7{}125"])
def test_given_a_mark_that_could_separate_thousands_then_only_the_readers_own_decimal_mark_is_one(
    digits: str,
) -> None:
    for own, other in ((".", ","), (",", ".")):
        with pytest.raises(NumberError, match="could mean"):
            read_number(digits.format(other), own)
        assert read_number(digits.format(own), own) == float(digits.format("."))


def test_given_any_number_when_shown_then_it_is_read_back_as_it_is() -> None:
    rng = np.random.default_rng(5)
    for value in [0.0, 1000.0, 7.125, 1e-7, -12.5, *(rng.normal(size=200) * 10.0 ** rng.uniform(-6, 6, 200))]:
        for mark in (".", ","):
            shown = number_text(float(value), 3, mark)
            assert read_number(shown, mark) == pytest.approx(value, rel=1e-8)


def _type(qtbot: QtBot, field: Number, text: str) -> None:
    """Type over what a field shows, with real keys, through the window."""
    field.setFocus()
    qtbot.waitUntil(field.hasFocus, timeout=GUARD)
    field.selectAll()
    qtbot.keyClicks(field, text)


def _show(qtbot: QtBot, field: Number) -> Number:
    qtbot.addWidget(field)
    field.show()
    field.activateWindow()
    qtbot.waitUntil(field.isActiveWindow, timeout=GUARD)
    return field


def test_given_a_field_when_typed_into_then_only_enter_or_leaving_changes_the_number(
    qtbot: QtBot, language: str
) -> None:
    field = _show(qtbot, Number(2.5, 0.0, 4.0, "V"))
    own = "2.5" if language == "english" else "2,5"
    assert field.text() == own
    for typed in ("0,4", "0.4"):
        field.setValue(2.5)
        _type(qtbot, field, typed)
        assert field.text() == typed and field.value() == 2.5 and field.pending
        qtbot.keyClick(field, Qt.Key.Key_Return)
        assert field.value() == 0.4 and not field.pending
    _type(qtbot, field, "1.5 V")  # with its own unit
    field.clearFocus()
    assert field.value() == 1.5
    _type(qtbot, field, "3")
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert field.value() == 1.5 and not field.pending


def test_given_a_text_that_is_refused_then_it_stays_red_with_the_reason_and_the_number_holds(
    qtbot: QtBot, language: str
) -> None:
    field = _show(qtbot, Number(2.5, 0.5, 4.0, "V"))
    ambiguous = "1,000" if language == "english" else "1.000"
    for typed, word in (("1.000,5", "two different marks"), (ambiguous, "could mean"), ("4.2", "at most 4 V"),
                        ("0,2", "at least 0"), ("-", "not a number"), ("", "needed")):  # fmt: skip
        _type(qtbot, field, typed or "1")
        if not typed:
            qtbot.keyClick(field, Qt.Key.Key_Backspace)
        qtbot.keyClick(field, Qt.Key.Key_Enter)
        assert field.value() == 2.5
        assert field.text() == typed and word in field.problem and field.property("state") == "bad"
        with pytest.raises(NumberError):
            field.read()
        field.clearFocus()
        assert field.text() == typed and field.value() == 2.5  # leaving hides nothing
    field.setValue(3.0)
    assert not field.problem and field.property("state") == ""


def test_given_keys_wheel_and_whole_numbers_then_arrows_step_the_wheel_does_nothing_and_halves_are_refused(
    qtbot: QtBot,
) -> None:
    field = _show(qtbot, Number(1.5, 0.0, 4.0, "V", 3))
    field.setFocus()
    qtbot.keyClick(field, Qt.Key.Key_Up)
    assert field.value() == pytest.approx(1.6)
    qtbot.keyClick(field, Qt.Key.Key_PageUp)
    assert field.value() == pytest.approx(2.6)
    _turn_wheel(field)
    assert field.value() == pytest.approx(2.6)
    _type(qtbot, field, "4")
    qtbot.keyClick(field, Qt.Key.Key_Down)  # not from a number that nobody has confirmed
    assert field.value() == pytest.approx(2.6) and field.text() == "4"
    count = _show(qtbot, Count(3, 1, 50))
    _type(qtbot, count, "7.5")
    assert not count.apply() and "whole" in count.problem and count.value() == 3


def _turn_wheel(widget: QWidget) -> None:
    """One notch of the wheel above a widget, as the system delivers it."""
    at = QPointF(widget.rect().center())
    turn = QWheelEvent(
        at, QPointF(widget.mapToGlobal(widget.rect().center())), QPoint(0, 0), QPoint(0, 120),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(widget, turn)


def _panel(window: MainWindow, qtbot: QtBot) -> DrivePanel:
    page = window.page
    assert isinstance(page, AcquirePage)
    qtbot.waitUntil(lambda: window.bench.rig.drive().steady and page.drive_panel._playing, timeout=GUARD)
    return page.drive_panel


def _answer(qtbot: QtBot, word: str, asked: list[str]) -> None:
    """Press the button with this word in the question that is about to come."""

    def press() -> None:
        box = QApplication.activeModalWidget()
        if isinstance(box, QMessageBox) and box.isVisible():
            asked.append(box.text())
            chosen = next(b for b in box.buttons() if word in b.text())
            qtbot.mouseClick(chosen, Qt.MouseButton.LeftButton)
        else:
            QTimer.singleShot(20, press)

    QTimer.singleShot(0, press)


def test_given_a_running_drive_when_numbers_are_typed_then_only_enter_reaches_the_shaker(
    make_window: Make, qtbot: QtBot, language: str
) -> None:
    window = make_window()
    panel, rig = _panel(window, qtbot), window.bench.rig
    asked_for: list[dict[str, float]] = []
    really = rig.change
    rig.change = lambda **value: (asked_for.append(value), really(**value))[1]  # type: ignore[method-assign]

    for typed in ("1,2", "1.3"):
        _type(qtbot, panel.amplitude, typed)
        panel.frequency.setFocus()  # leaving the field tells the shaker nothing
        assert not asked_for and panel.amplitude.pending and panel.apply_button.isVisible()
        panel.amplitude.setFocus()
        qtbot.keyClick(panel.amplitude, Qt.Key.Key_Return)
        value = float(typed.replace(",", "."))
        assert asked_for.pop() == {"amplitude": value}
        qtbot.waitUntil(lambda v=value: rig.drive().amplitude == pytest.approx(v), timeout=GUARD)
    _type(qtbot, panel.frequency, "8,25")
    qtbot.mouseClick(panel.apply_button, Qt.MouseButton.LeftButton)
    assert asked_for.pop() == {"frequency": 8.25}
    qtbot.waitUntil(lambda: rig.drive().frequency == pytest.approx(8.25), timeout=GUARD)

    for typed in ("1.000,5", "1,000" if language == "english" else "1.000", "4.01", "zwei"):
        _type(qtbot, panel.amplitude, typed)
        qtbot.keyClick(panel.amplitude, Qt.Key.Key_Return)
        assert panel.amplitude.problem and panel.amplitude.words.isVisible()
    assert panel.amplitude.words.objectName() == "bad"
    panel.amplitude.setValue(1.3)

    panel.kind.setFocus()
    for widget in (
        panel.amplitude,
        panel.frequency,
        panel.amplitude_slider,
        panel.frequency_slider,
        panel.kind,
    ):
        _turn_wheel(widget)
    assert panel.kind.currentIndex() == 0
    assert not asked_for and rig.drive().amplitude == pytest.approx(1.3)
    panel.amplitude_slider.setFocus()
    qtbot.keyClick(panel.amplitude_slider, Qt.Key.Key_Right)  # made for that
    assert asked_for.pop()["amplitude"] == pytest.approx(1.304)


def test_given_a_big_step_while_driving_then_it_is_asked_for_and_ramps_at_the_rate_of_the_profile(
    window: MainWindow, qtbot: QtBot
) -> None:
    panel, rig, asked = _panel(window, qtbot), window.bench.rig, list[str]()
    assert rig.limits is not None and rig.limits.ramp == 2.0
    _answer(qtbot, "Keep", asked)
    _type(qtbot, panel.amplitude, "3.5")
    qtbot.keyClick(panel.amplitude, Qt.Key.Key_Return)
    assert len(asked) == 1 and "3.5 V" in asked[0] and "1.5 V" in asked[0]
    assert panel.amplitude.value() == rig.drive().amplitude == 1.5
    _answer(qtbot, "Ramp up", asked)
    _type(qtbot, panel.amplitude, "3.5")
    qtbot.keyClick(panel.amplitude, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: rig.drive().amplitude > 1.5, timeout=GUARD)
    begin = rig.drive()
    qtbot.waitUntil(lambda: rig.drive().amplitude == pytest.approx(3.5), timeout=GUARD)
    took = (rig.drive().index - begin.index) / rig.rate
    assert took > 0.9 * (3.5 - begin.amplitude) / 2.0  # 2 V a second
    _type(qtbot, panel.amplitude, "1")  # smaller is never asked for
    qtbot.keyClick(panel.amplitude, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: rig.drive().amplitude == pytest.approx(1.0), timeout=GUARD)
    assert len(asked) == 2


def test_given_limits_then_a_step_is_big_above_twice_and_above_the_threshold() -> None:
    usual, strict = Limits(4.0), Limits(4.0, ask_above=0.5)
    assert usual.is_big_step(1.0, 2.1) and not usual.is_big_step(1.1, 2.2)  # twice is not more than twice
    assert not usual.is_big_step(0.1, 2.0) and usual.is_big_step(0.1, 2.01)
    assert strict.is_big_step(0.2, 0.51) and not strict.is_big_step(0.2, 0.5)


def test_given_another_waveform_chosen_while_driving_then_a_hint_stands_there_until_it_is_applied(
    window: MainWindow, qtbot: QtBot
) -> None:
    panel, rig = _panel(window, qtbot), window.bench.rig
    assert not panel.hint.isVisible() and not panel.apply_button.isVisible()
    panel.kind.setFocus()
    qtbot.keyClick(panel.kind, Qt.Key.Key_R)  # Random
    assert panel.kind.currentText() == "Random"
    assert panel.hint.isVisible() and "still plays sine" in panel.hint.text()
    _type(qtbot, panel.amplitude, "1.4")
    qtbot.keyClick(panel.amplitude, Qt.Key.Key_Return)
    assert rig.drive().waveform == "sine" and rig.drive().amplitude == 1.5  # Enter belongs to the new one
    qtbot.mouseClick(panel.apply_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: rig.drive().waveform == "random", timeout=GUARD)
    qtbot.waitUntil(lambda: not panel.hint.isVisible(), timeout=GUARD)
    _type(qtbot, panel.amplitude, "1.2")
    qtbot.keyClick(panel.amplitude, Qt.Key.Key_Return)
    assert "from before" in panel.hint.text() and panel.apply_button.isVisible()


def test_given_an_open_list_when_esc_is_pressed_then_it_closes_and_the_shaker_goes_on(
    window: MainWindow, qtbot: QtBot
) -> None:
    panel, rig = _panel(window, qtbot), window.bench.rig
    stops: list[str] = []
    really = rig.stop
    rig.stop = lambda reason="": (stops.append(reason), really(reason))[1]  # type: ignore[method-assign]
    qtbot.mouseClick(panel.kind, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: QApplication.activePopupWidget() is not None, timeout=GUARD)
    view = panel.kind.view()
    assert view is not None
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: QApplication.activePopupWidget() is None, timeout=GUARD)
    assert not stops and rig.drive().playing
    panel.kind.showPopup()
    qtbot.waitUntil(lambda: QApplication.activePopupWidget() is not None, timeout=GUARD)
    qtbot.keyClick(view, Qt.Key.Key_F12)  # F12 always
    assert stops
    panel.kind.hidePopup()
    stops.clear()
    qtbot.keyClick(panel.kind, Qt.Key.Key_Escape)
    assert stops


def test_given_a_dialog_beside_the_window_when_esc_is_pressed_in_it_then_it_closes_and_the_shaker_goes_on(
    window: MainWindow, qtbot: QtBot
) -> None:
    _, rig = _panel(window, qtbot), window.bench.rig
    qtbot.waitUntil(lambda: rig.drive().playing, timeout=GUARD)
    stops: list[str] = []
    rig.stop = lambda reason="": stops.append(reason)  # type: ignore[method-assign]
    dialog = QDialog(window)
    dialog.show()
    dialog.activateWindow()
    qtbot.waitUntil(dialog.isActiveWindow, timeout=GUARD)
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible() and not stops
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow, timeout=GUARD)
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert stops


def test_given_the_file_of_a_plan_when_played_then_the_shaker_plays_it_and_a_wrong_one_is_said(
    window: MainWindow, qtbot: QtBot, tmp_path: Path
) -> None:
    panel, said = _panel(window, qtbot), list[str]()
    window.bench.noticed.connect(lambda notice: said.append(notice.text))
    file = tmp_path / "plan.toml"
    file.write_text(
        'name = "Plan for the beam"\nseconds = 20.0\n[drive]\nkind = "segments"\namplitude = 1.0\n'
        '[[drive.parts]]\nkind = "sine"\namplitude = 1.0\nfrequency = 6.0\nseconds = 10.0\n'
    )
    panel.play_plan(file)
    qtbot.waitUntil(lambda: window.bench.rig.drive().waveform == "segments", timeout=GUARD)
    assert said[-1] == "Plan for the beam plays. Record 20 s of it."
    qtbot.waitUntil(lambda: "still plays segments" in panel.unapplied(), timeout=GUARD)
    file.write_text(file.read_text().replace("amplitude = 1.0", "amplitude = 100.0"))
    panel._confirmed = lambda wanted: True  # type: ignore[method-assign]
    panel.play_plan(file)
    assert "exceeds the amplitude limit" in said[-1]
    assert window.bench.rig.drive().waveform == "segments"


@pytest.mark.parametrize(
    ("name", "moment", "day"),
    [
        ("en_US", "11/18/2026  2:05\u202fPM", "11/18/2026"),
        ("de_DE", "18.11.2026  14:05", "18.11.2026"),
        ("ja_JP", "2026/11/18  14:05", "2026/11/18"),
        ("C", "2026-11-18  14:05", "2026-11-18"),
        ("ar_EG", "18/11/2026  2:05 م", "18/11/2026"),
    ],
)
def test_given_a_locale_then_dates_are_written_as_it_does(name: str, moment: str, day: str) -> None:
    before = QLocale()
    QLocale.setDefault(QLocale(name))
    try:
        marks = str.maketrans({"\u200f": None, "\u202f": " ", "\u00a0": " "})
        said = (
            moment_text("2026-11-18T14:05:09.123+01:00"),
            date_text("2026-11-18"),
            date_text(date(2026, 11, 18)),
        )
        assert [text.translate(marks) for text in said] == [moment.translate(marks), day, day]
        assert (moment_text(""), date_text("last week")) == ("", "last week")
    finally:
        QLocale.setDefault(before)


def test_given_rates_and_delays_then_their_decimal_mark_is_that_of_the_locale(language: str) -> None:
    mark = {"english": ".", "german": ","}[language]
    assert quantity(102_400.0) == f"102{mark}4 k" and quantity(12.5) == f"12{mark}5 "
    assert localised_delay("ai.1(t + 33.5 ms) [m/s^1.5]") == f"ai.1(t + 33{mark}5 ms) [m/s^1.5]"
    assert localised_delay("ai0.1 [V]") == "ai0.1 [V]"  # a name, no number
