"""The parameters of the model as a table: known or unknown, value or guess, bounds and unit."""

from __future__ import annotations

import math
from dataclasses import replace

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem

from analysis import Model, Parameter
from app.desktop.theme import Theme
from app.numbers import NumberError, decimal_mark, read_number

HEADINGS = ("Name", "Fit", "Guess", "From", "To", "Unit")
NAME, FREE, VALUE, LOWER, UPPER, UNIT = range(6)
TIPS = (
    "",
    "Ticked: found from the record. Not ticked: known and kept",
    "Where the search starts, or the known value",
    "Never below this; empty: no bound",
    "Never above this; empty: no bound",
    "For people; nothing is converted",
)


class ParameterTable(QTableWidget):
    """What is typed here goes into the model's text."""

    changed = pyqtSignal(str, object)  # name, Parameter
    refused = pyqtSignal(str)  # what was typed makes no sense, in words

    def __init__(self, theme: Theme) -> None:
        super().__init__(0, len(HEADINGS))
        self.setAccessibleName("Parameters of the model")
        self.setHorizontalHeaderLabels(HEADINGS)
        side, header = self.verticalHeader(), self.horizontalHeader()
        assert side is not None and header is not None
        side.hide()
        side.setDefaultSectionSize(theme.px(30))
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self._parameters: dict[str, Parameter] = {}
        self.itemChanged.connect(self._edited)

    def show_model(self, model: Model) -> None:
        """The parameters of a model that was understood."""
        if model.parameters == self._parameters and self.rowCount():
            return
        self._parameters = dict(model.parameters)
        self.blockSignals(True)
        self.setRowCount(len(self._parameters))
        for row, (name, parameter) in enumerate(self._parameters.items()):
            self._show(row, name, parameter)
        self.blockSignals(False)

    def _show(self, row: int, name: str, parameter: Parameter) -> None:
        texts = {
            NAME: name, FREE: "", VALUE: _text(parameter.value), LOWER: _text(parameter.lower),
            UPPER: _text(parameter.upper), UNIT: parameter.unit,
        }  # fmt: skip
        for column, text in texts.items():
            item = QTableWidgetItem(text)
            item.setToolTip(TIPS[column])
            flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
            if column == FREE:
                flags |= Qt.ItemFlag.ItemIsUserCheckable
                item.setCheckState(Qt.CheckState.Checked if parameter.free else Qt.CheckState.Unchecked)
            elif column != NAME:
                flags |= Qt.ItemFlag.ItemIsEditable
            if column in (VALUE, LOWER, UPPER):
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            item.setFlags(flags)
            self.setItem(row, column, item)

    def _edited(self, item: QTableWidgetItem) -> None:
        first = self.item(item.row(), NAME)
        assert first is not None
        name = first.text()
        old = self._parameters[name]
        try:
            new = self._read(item, old)
        except NumberError as error:
            self.refused.emit(f"{name}: {error}")
            self.put_back(name)
            return
        if new != old:
            self._parameters[name] = new  # the text follows
            self.changed.emit(name, new)

    def put_back(self, name: str, parameter: Parameter | None = None) -> None:
        """Show a parameter as it was before somebody typed."""
        if parameter is not None:
            self._parameters[name] = parameter
        self.blockSignals(True)
        self._show(list(self._parameters).index(name), name, self._parameters[name])
        self.blockSignals(False)

    def _read(self, item: QTableWidgetItem, old: Parameter) -> Parameter:
        text = item.text().strip()
        match item.column():
            case int(column) if column == FREE:
                return replace(old, free=item.checkState() == Qt.CheckState.Checked)
            case int(column) if column == VALUE:
                return replace(old, value=read_number(text))
            case int(column) if column == LOWER:
                return replace(old, lower=read_number(text) if text else -math.inf)
            case int(column) if column == UPPER:
                return replace(old, upper=read_number(text) if text else math.inf)
            case _:
                return replace(old, unit=text)


def _text(value: float) -> str:
    return f"{value:.9g}".replace(".", decimal_mark()) if math.isfinite(value) else ""
