"""Tables of results: headings, words to the left, numbers to the right with the true minus sign."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PyQt6.QtCore import QModelIndex, Qt
from PyQt6.QtWidgets import (
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
)

from app.numbers import localised
from app.words import with_minus

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
PADDED = Qt.ItemDataRole.UserRole + 1  # a number as it is drawn, the decimal marks of its column in line
FIGURE, MARK = "\u2007", "\u2008"  # spaces as wide as a digit, and as a decimal mark
PLAIN = re.compile(r"([−-]?\d+)(?:([.,])(\d+))?(.*)")


class _Aligned(QStyledItemDelegate):
    """Draws numbers with spaces behind them that bring their decimal marks in line; the text is as it was."""

    def initStyleOption(self, option: QStyleOptionViewItem | None, index: QModelIndex) -> None:
        super().initStyleOption(option, index)
        padded = index.data(PADDED)
        if option is not None and padded is not None:
            option.text = padded


def in_line(column: Sequence[str]) -> list[str]:
    """Numbers, with or without an error behind ±, padded so that the decimal marks stand in line.

    Nothing is padded where one is written with a power of ten: digits of different worth would stand in line.
    """
    parts = [text.split(" ± ") for text in column]
    whole = [len(part) for part in parts]
    if not parts or min(whole) != max(whole) or any("e" in text for text in column):
        return list(column)
    places = list(zip(*(_padded([part[k] for part in parts]) for k in range(whole[0])), strict=True))
    return [" ± ".join(place) for place in places]


def _padded(numbers: Sequence[str]) -> list[str]:
    """Each with as many places behind its decimal mark as the longest has."""
    found = [PLAIN.fullmatch(text) for text in numbers]
    longest = max((len(f[3] or "") for f in found if f), default=0)
    result = []
    for text, f in zip(numbers, found, strict=True):
        if f is None or longest == 0:
            result.append(text)
            continue
        written = f[3] or ""
        gap = ("" if written else MARK) + FIGURE * (longest - len(written))
        result.append(f"{f[1]}{f[2] or ''}{written}{gap}{f[4]}")
    return result


def fill_table(
    table: QTableWidget, headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[str]
) -> None:
    """Show rows under headings; those of ``numbers`` stand to the right, decimal marks in line."""
    table.clear()
    table.setColumnCount(len(headings))
    table.setRowCount(len(rows))
    table.setHorizontalHeaderLabels(list(headings))
    header = table.horizontalHeader()
    assert header is not None
    header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    header.setStretchLastSection(True)
    header.setDefaultAlignment(LEFT)
    if not isinstance(table.itemDelegate(), _Aligned):
        table.setItemDelegate(_Aligned(table))
    for c, heading in enumerate(headings):
        number = heading in numbers
        column = [with_minus(row[c]) if c or number else row[c] for row in rows]
        column = [localised(text) for text in column] if number else column
        padded = in_line(column) if number else column
        for r, (text, drawn) in enumerate(zip(column, padded, strict=True)):
            cell = QTableWidgetItem(text)
            cell.setTextAlignment(RIGHT if number else LEFT)
            cell.setData(PADDED, drawn)
            table.setItem(r, c, cell)
        item = table.horizontalHeaderItem(c)
        if item is not None:
            item.setTextAlignment(RIGHT if number else LEFT)
