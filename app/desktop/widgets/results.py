"""Identified parameters: value, error bar, unit, and in plain words what the data could not tell."""

from __future__ import annotations

import math

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget

from analysis import Estimate, Identification, interval_ends, with_error
from app.desktop.theme import Theme
from app.desktop.widgets.basics import label, scrolled
from app.desktop.words import plain, with_minus


class ResultTable(QWidget):
    """One result in detail, or several side by side."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self.table = QTableWidget()
        side = self.table.verticalHeader()
        assert side is not None
        side.hide()
        side.setDefaultSectionSize(theme.px(34))
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        box.addWidget(self.table, 1)
        self.notes = label("", "warn", wrap=True)
        self.notes.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.frame = scrolled(self.notes)
        self.notes.setObjectName("warn")
        self.frame.setMaximumHeight(theme.px(74))
        self.frame.hide()
        box.addWidget(self.frame)

    def show_result(self, result: Identification) -> None:
        """Value, relative error, 95 % interval and unit of each parameter."""
        headings = ["Parameter", "Value", "Error", "95 % from", "to", "Unit"]
        rows = [
            [name, with_error(e), _relative(e), *interval_ends(e), e.unit or "–"]
            for name, e in result.parameters.items()
        ]
        self._fill(headings, rows)
        first = [] if result.converged else ["The fit did not converge: do not trust these numbers."]
        self.notes.setText("\n".join([*first, *result.undetermined, *result.warnings]))
        self.frame.setVisible(bool(self.notes.text()))

    def compare(self, results: list[Identification]) -> None:
        """The same parameters by several methods or runs."""
        names = list(dict.fromkeys(name for r in results for name in r.parameters))
        headings = ["Parameter", *(f"{i}: {r.method}" for i, r in enumerate(results, 1))]
        rows = [
            [name, *(with_error(r.parameters[name]) if name in r.parameters else "" for r in results)]
            for name in names
        ]
        self._fill(headings, rows)
        self.frame.hide()

    def _fill(self, headings: list[str], rows: list[list[str]]) -> None:
        self.table.clear()
        self.table.setColumnCount(len(headings))
        self.table.setRowCount(len(rows))
        self.table.setHorizontalHeaderLabels(headings)
        header = self.table.horizontalHeader()
        assert header is not None
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for r, row in enumerate(rows):
            for c, text in enumerate(row):
                cell = QTableWidgetItem(with_minus(text) if c else text)
                if c and headings[c] != "Unit":
                    cell.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.table.setItem(r, c, cell)


def _relative(estimate: Estimate) -> str:
    if not (math.isfinite(estimate.stderr) and estimate.value):
        return "–"
    return f"{plain(100 * estimate.stderr / abs(estimate.value))} %"
