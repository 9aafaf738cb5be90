"""Which channel stands for which quantity of the model."""

from __future__ import annotations

from PyQt6.QtWidgets import QComboBox, QFormLayout, QWidget

from analysis import Model, Record
from app.desktop.theme import Theme
from app.desktop.widgets.basics import add_row, form

NONE = "not measured"


class Mapping(QWidget):
    """One list for each output and measured input of the model; equal names are matched already."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: QFormLayout = form(theme)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self.setLayout(self._rows)
        self.boxes: dict[str, QComboBox] = {}
        self._channels: tuple[str, ...] = ()

    def rebuild(self, model: Model | None, record: Record | None) -> None:
        """Offer the channels of the record for the quantities of the model."""
        while self._rows.rowCount():
            self._rows.removeRow(0)
        self.boxes = {}
        self._channels = () if record is None else tuple(record.names)
        if model is None or record is None:
            return
        for name in (*model.outputs, *(i for i in model.inputs if i not in model.outputs)):
            box = QComboBox()
            box.addItems([NONE, *record.names])
            if name in record:
                box.setCurrentText(name)
            kind = "drive" if name in model.inputs else "motion"
            add_row(self._theme, self._rows, f"{name} ({kind})", box, f"Channel that measured {name}")
            self.boxes[name] = box

    def values(self) -> dict[str, str]:
        """Channel by name of the model; empty where nothing was measured."""
        return {n: "" if b.currentIndex() == 0 else b.currentText() for n, b in self.boxes.items()}

    def chosen(self) -> dict[str, str]:
        """The same without what is not measured because no channel has that name."""
        return {n: channel for n, channel in self.values().items() if channel or n in self._channels}
