"""Tables of results: headings, words to the left, numbers to the right with the true minus sign."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem

from app.desktop.numbers import localised
from app.desktop.words import with_minus

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


def fill_table(
    table: QTableWidget, headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str]
) -> None:
    """Show rows under headings; the columns of ``numbers`` are aligned to the right."""
    table.clear()
    table.setColumnCount(len(headings))
    table.setRowCount(len(rows))
    table.setHorizontalHeaderLabels(list(headings))
    header = table.horizontalHeader()
    assert header is not None
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setStretchLastSection(True)
    header.setDefaultAlignment(LEFT)
    for r, row in enumerate(rows):
        for c, text in enumerate(row):
            number = headings[c] in numbers
            cell = QTableWidgetItem(
                localised(with_minus(text)) if number else with_minus(text) if c else text
            )
            cell.setTextAlignment(RIGHT if number else LEFT)
            table.setItem(r, c, cell)
