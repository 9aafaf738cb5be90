"""Identified parameters: value, error bar, unit, and in plain words what the data could not tell."""

from __future__ import annotations

import math

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QBrush, QColor, QResizeEvent
from PyQt6.QtWidgets import QTableWidget, QVBoxLayout, QWidget

from analysis import Estimate, Identification, interval_ends, with_error
from app.desktop.theme import Theme
from app.desktop.widgets.basics import Elided, label, scrolled, sentence
from app.desktop.widgets.tables import fill_table
from app.words import plain

ERROR = 2  # column of the relative error
LOW = 170  # height below which the remarks leave the room to the numbers


class ResultTable(QWidget):
    """One result in detail, or several side by side."""

    asked = pyqtSignal(str)  # a parameter of the result in detail was clicked, or Enter pressed on it

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self.table = QTableWidget()
        self.table.setObjectName("narrow")
        side = self.table.verticalHeader()
        assert side is not None
        side.hide()
        side.setDefaultSectionSize(theme.px(34))
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.table.cellClicked.connect(lambda row, column: self._ask(row) if column == 0 else None)
        self.table.cellActivated.connect(lambda row, _: self._ask(row))
        self._names: list[str] = []  # of parameters that can be asked for
        theme.changed.connect(self._colour)
        box.addWidget(self.table, 1)
        self.notes = label("", "warn", wrap=True)
        self.notes.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.frame = scrolled(self.notes)
        self.notes.setObjectName("warn")
        self.frame.setMaximumHeight(theme.px(74))
        self.frame.hide()
        box.addWidget(self.frame)
        self.brief = Elided("warn")  # the remarks in one line, where the table would have no room beside them
        self.brief.hide()
        box.addWidget(self.brief)

    def show_result(self, result: Identification) -> None:
        """Value, relative error, 95 % interval and unit of each parameter."""
        headings = ["Parameter", "Value", "Error", "95 % from", "to", "Unit"]
        rows = [
            [name, with_error(e), _relative(e), *interval_ends(e), e.unit or "–"]
            for name, e in result.listed.items()
        ]
        self._fill(headings, rows)
        self._names = list(result.listed)
        for row in range(len(rows)):
            cell = self.table.item(row, 0)
            assert cell is not None
            font = cell.font()
            font.setUnderline(True)
            cell.setFont(font)
            cell.setToolTip("How far it can go, and what it is confused with: click or Enter")
        self._colour()
        self._make_room()
        first = [] if result.converged else ["The fit did not converge: do not trust these numbers."]
        remarks = [*first, *result.undetermined, *result.warnings, *result.formulas]
        self.notes.setText(sentence("\n".join(remarks)))
        self.brief.setText(sentence(" ".join(remarks)))
        self.brief.setToolTip("\n".join(remarks))
        self._show_notes()

    def compare(self, results: list[Identification]) -> None:
        """The same parameters by several methods or runs."""
        names = list(dict.fromkeys(name for r in results for name in r.parameters))
        headings = ["Parameter", *(f"{i}: {r.method}" for i, r in enumerate(results, 1))]
        rows = [
            [name, *(with_error(r.parameters[name]) if name in r.parameters else "" for r in results)]
            for name in names
        ]
        self._fill(headings, rows)
        self.notes.setText("")
        self._show_notes()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._make_room()
        self._show_notes()

    def _show_notes(self) -> None:
        low, some = self.height() < self._theme.px(LOW), bool(self.notes.text())
        self.frame.setVisible(some and not low)
        self.brief.setVisible(some and low)

    def _make_room(self) -> None:
        """Where not all columns have room the relative error goes first: value and error tell it."""
        header, view = self.table.horizontalHeader(), self.table.viewport()
        if not self._names or header is None or view is None:
            return
        self.table.setColumnHidden(ERROR, False)
        self.table.setColumnHidden(ERROR, header.length() > view.width())

    def _ask(self, row: int) -> None:
        if row < len(self._names):
            self.asked.emit(self._names[row])

    def _colour(self) -> None:
        """Names that can be clicked are in the colour of links."""
        for row in range(len(self._names)):
            cell = self.table.item(row, 0)
            if cell is not None:
                cell.setForeground(QBrush(QColor(self._theme.colours.accent)))

    def _fill(self, headings: list[str], rows: list[list[str]]) -> None:
        numbers = [heading for heading in headings[1:] if heading != "Unit"]
        fill_table(self.table, headings, rows, numbers)


def _relative(estimate: Estimate) -> str:
    if not (math.isfinite(estimate.stderr) and estimate.value):
        return "–"
    return f"{plain(100 * estimate.stderr / abs(estimate.value))} %"
