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


def test_given_no_model_yet_when_the_colours_change_then_nothing_is_said_to_be_wrong_with_it(
    make_window: Callable[..., MainWindow], qtbot: QtBot
) -> None:
    """The live fit takes the rig's own model then, and refused to."""
    window = make_window("identify", begin=False)
    card = window.pages["identify"].model_card
    card.editor.clear()
    card._later.stop()
    window.bench.miss_model("")
    window.theme.choose("light")
    card._later.stop()
    window.theme.choose("dark")
    assert not card._later.isActive() and not window.bench.model_problem
    card.choose("duffing")
    qtbot.waitUntil(lambda: window.bench.model is not None, timeout=LONG)
    window.theme.choose("light")
    assert card._later.isActive()  # the formula is drawn anew
