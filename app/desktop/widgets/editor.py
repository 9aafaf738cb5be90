"""The editor of a model's text: coloured, names completed, the line of a mistake marked in place."""

from __future__ import annotations

import re
from collections.abc import Iterable

from PyQt6.QtCore import QStringListModel, Qt
from PyQt6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QKeyEvent,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
)
from PyQt6.QtWidgets import QCompleter, QPlainTextEdit, QTextEdit

from app.desktop.theme import Theme

SHORTEST = 2  # letters from which names are offered
_LINE = re.compile(r"line (\d+)")
_RULES = (  # pattern and colour: a number of the data colours, or a name of the theme
    (re.compile(r"^\s*\[[^\]]*\]"), "accent"),
    (re.compile(r"^\s*[\w.]+(?=\s*=)"), 0),
    (re.compile(r"\b(guess|value|lower|upper|unit|solve)(?=\s*=)"), 3),
    (re.compile(r"(?<![\w.])[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?"), 4),
    (re.compile(r"\"[^\"]*\"|'[^']*'"), 2),
    (re.compile(r"#.*$"), "muted"),
)


class Highlighter(QSyntaxHighlighter):
    """Tables, names, numbers, expressions and comments in colours of the theme."""

    def __init__(self, editor: QPlainTextEdit, theme: Theme) -> None:
        super().__init__(editor.document())
        self._theme = theme
        theme.changed.connect(self.rehighlight)

    def highlightBlock(self, text: str | None) -> None:
        colours = self._theme.colours
        for pattern, colour in _RULES:
            style = QTextCharFormat()
            name = colours.data[colour] if isinstance(colour, int) else getattr(colours, colour)
            style.setForeground(QColor(name))
            if colour == "accent":
                style.setFontWeight(QFont.Weight.Bold)
            for found in pattern.finditer(text or ""):
                self.setFormat(found.start(), found.end() - found.start(), style)


class ModelEditor(QPlainTextEdit):
    """Plain text with the help that a model's author needs."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setAccessibleName("The model as text")
        mono = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        mono.setStyleHint(QFont.StyleHint.Monospace)
        mono.setPixelSize(theme.px(12))
        self.setFont(mono)
        self.highlighter = Highlighter(self, theme)
        self._bad_line = 0
        self._names = QStringListModel(self)
        self.completer = QCompleter(self._names, self)
        self.completer.setWidget(self)
        self.completer.setCompletionMode(QCompleter.CompletionMode.PopupCompletion)
        self.completer.activated.connect(self._complete)
        theme.changed.connect(self._mark)

    def offer(self, names: Iterable[str]) -> None:
        """Names that are completed while one types."""
        self._names.setStringList(sorted(set(names), key=lambda name: str(name).lower()))

    def replace_text(self, text: str) -> None:
        """Another text, as one step that Ctrl+Z takes back; the view stays where it is."""
        bar = self.verticalScrollBar()
        at = bar.value() if bar is not None else 0
        cursor = self.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)
        if bar is not None:
            bar.setValue(at)

    # -- mistakes

    @property
    def bad_line(self) -> int:
        """The line that a complaint names, counted from 1; 0: none."""
        return self._bad_line

    def mark_problem(self, problem: str) -> None:
        """Mark the line that a complaint names; an empty one takes the mark away."""
        found = _LINE.search(problem)
        self._bad_line = int(found[1]) if found else 0
        self.setToolTip(problem)
        self._mark()

    def _mark(self) -> None:
        document = self.document()
        if not self._bad_line or document is None:
            self.setExtraSelections([])
            return
        mark = QTextEdit.ExtraSelection()
        colour = QColor(self._theme.colours.stop)
        mark.format.setUnderlineColor(colour)
        mark.format.setUnderlineStyle(QTextCharFormat.UnderlineStyle.WaveUnderline)
        colour.setAlpha(50)
        mark.format.setBackground(colour)
        mark.format.setProperty(QTextCharFormat.Property.FullWidthSelection, True)
        mark.cursor = QTextCursor(document.findBlockByNumber(self._bad_line - 1))
        whole = QTextEdit.ExtraSelection()
        whole.format = QTextCharFormat(mark.format)
        whole.cursor = QTextCursor(mark.cursor)
        whole.cursor.select(QTextCursor.SelectionType.LineUnderCursor)
        self.setExtraSelections([mark, whole])

    # -- completion

    def _word(self) -> str:
        """What stands left of the cursor and could be the beginning of a name."""
        cursor = self.textCursor()
        before = cursor.block().text()[: cursor.positionInBlock()]
        found = re.search(r"[A-Za-z_]\w*$", before)
        return found[0] if found else ""

    def _complete(self, name: str) -> None:
        cursor = self.textCursor()
        cursor.movePosition(
            QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, len(self._word())
        )
        cursor.insertText(name)
        self.setTextCursor(cursor)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        popup = self.completer.popup()
        assert popup is not None
        keys = Qt.Key
        if popup.isVisible() and event.key() in (
            keys.Key_Return,
            keys.Key_Enter,
            keys.Key_Tab,
            keys.Key_Escape,
        ):
            event.ignore()  # the list takes them
            return
        super().keyPressEvent(event)
        word = self._word()
        asked = event.key() == keys.Key_Space and event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if not asked and (len(word) < SHORTEST or not event.text().strip()):
            popup.hide()
            return
        self.completer.setCompletionPrefix(word)
        if self.completer.completionCount() == 0 or self.completer.currentCompletion() == word:
            popup.hide()
            return
        place = self.cursorRect()
        place.setWidth(self._theme.px(180))
        self.completer.complete(place)
