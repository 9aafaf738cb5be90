"""The model's text and its table of parameters, side by side."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.desktop.widgets.parameters import FREE, LOWER, VALUE
from app.desktop.window import MainWindow
from tests.waiting import LONG_MS as LONG


def test_given_the_table_when_edited_then_the_text_and_the_model_follow_and_mistakes_are_marked(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    bench, card = window.bench, window.pages["identify"].model_card
    card.choose("duffing")
    qtbot.waitUntil(lambda: bench.model is not None and not bench.model_problem, timeout=LONG)
    table, names = card.parameters, list(bench.model.parameters)
    row = names.index(bench.model.free[0])
    name = names[row]
    comments = [line for line in card.text().splitlines() if "#" in line]
    table.item(row, VALUE).setText("0.75")
    qtbot.waitUntil(lambda: bench.model.parameters[name].value == 0.75, timeout=LONG)
    table.item(row, FREE).setCheckState(Qt.CheckState.Unchecked)
    qtbot.waitUntil(lambda: name not in bench.model.free, timeout=LONG)
    assert [line for line in card.text().splitlines() if "#" in line] == comments
    # What makes no sense is refused in words, and the old number stands again.
    table.item(row, VALUE).setText("much")
    assert table.item(row, VALUE).text() == "0.75" and window.notice.isVisible()
    table.item(row, LOWER).setText("3")
    assert bench.model.parameters[name].lower < 3 and table.item(row, LOWER).text() != "3"
    # A mistake in the text is marked in its line.
    card.editor.replace_text(card.text().replace("[states]", "[states]\nq = 7 7"))
    qtbot.waitUntil(lambda: card.editor.bad_line > 0, timeout=LONG)
    assert card.text().splitlines()[card.editor.bad_line - 1] == "q = 7 7"
    assert not table.isEnabled()
    card.editor.undo()
    qtbot.waitUntil(lambda: card.editor.bad_line == 0 and table.isEnabled(), timeout=LONG)


def test_given_the_beginning_of_a_name_then_it_is_completed(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    card = window.pages["identify"].model_card
    card.tabs.setCurrentWidget(card.editor)
    card.editor.setFocus()
    card.editor.clear()
    qtbot.keyClicks(card.editor, "heav")
    popup = card.editor.completer.popup()
    assert popup.isVisible()
    qtbot.keyClick(popup, Qt.Key.Key_Down)
    qtbot.keyClick(popup, Qt.Key.Key_Return)
    assert card.text() == "heaviside"


def test_given_a_text_that_waits_to_be_read_then_it_is_checked_and_its_formula_follows_the_colours(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    window = make_window("identify", begin=False)
    page = window.pages["identify"]
    card, bench = page.model_card, window.bench
    card.choose("duffing")
    assert bench.model_checking and "being checked" in page._missing()
    assert card.verdict.text() == "Checking …" and card.verdict.objectName() == "small"
    qtbot.waitUntil(lambda: bench.model is not None and not bench.model_problem, timeout=LONG)
    assert "checked" not in page._missing() and "Understood" in card.verdict.text()
    for theme in ("dark", "light"):
        window.theme.choose(theme)
        ink = card.picture._image.toImage()
        painted = {
            ink.pixelColor(x, y).name() for x in range(ink.width()) for y in range(0, ink.height(), 3)
            if ink.pixelColor(x, y).alpha() == 255
        }  # fmt: skip
        assert painted == {window.theme.colours.text}
    assert not card._later.isActive() and not bench.model_problem
