"""The channels of a rig as a table that can be edited and saved under a new name."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QInputDialog,
    QTableWidget,
    QTableWidgetItem,
)

from analysis.errors import ShakedownError
from app.desktop.opening import rigs_folder
from app.desktop.widgets.basics import Card, button, label
from app.desktop.workbench import Workbench
from drivers.rig import RigProfile, rig_from_text

# field of the profile, heading, tooltip, choices (empty: free)
COLUMNS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("name", "Channel", "Name used by plots and models", ()),
    ("sensor", "Sensor", "What it is and where it sits", ()),
    ("kind", "Connected as", "How the sensor is powered and read", ("voltage", "iepe", "bridge", "force")),
    ("sensitivity", "V per unit", "Volts at the converter for one unit of the quantity", ()),
    ("unit", "Unit", "Unit of the measured quantity", ()),
    ("range", "Range ±V", "Largest voltage that is measured; beyond it the channel is overloaded", ()),
    ("zero", "Zero", "Reading at 0 V, in the unit; set it with Null", ()),
    ("coupling", "Coupling", "dc: as it is; ac: without its mean", ("dc", "ac")),
    ("bridge", "Bridge", "Strain gauges only: quarter, half or full bridge", ("quarter", "half", "full")),
    ("gauge_factor", "Gauge factor", "Strain gauges only", ()),
    ("limit", "Stop beyond", "The drive stops when the channel exceeds this, in its unit; empty: never", ()),
)
NUMBERS = ("sensitivity", "range", "zero", "gauge_factor", "limit")


class ChannelTable(Card):
    """Sensor, sensitivity, unit, range, coupling and bridge of every channel."""

    saved = pyqtSignal(str)  # name of the new profile

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.theme)
        self.bench = bench
        self._path: Path | None = None
        self._profile: RigProfile | None = None
        self.table = QTableWidget(0, len(COLUMNS))
        self.table.setHorizontalHeaderLabels([heading for _, heading, _, _ in COLUMNS])
        for column, (_, _, tip, _) in enumerate(COLUMNS):
            item = self.table.horizontalHeaderItem(column)
            assert item is not None
            item.setToolTip(tip)
        header, side = self.table.horizontalHeader(), self.table.verticalHeader()
        assert header is not None and side is not None
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        side.hide()
        side.setDefaultSectionSize(bench.theme.px(40))
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.add(self.table, 1)
        self.message = label("Double click a cell to change it.", "small", wrap=True)
        row = QHBoxLayout()
        row.addWidget(self.message, 1)
        self.null = button(
            "Null", self.null_channel, "Take the present mean of the chosen channel as its zero"
        )
        self.save = button(
            "Save as a new rig", self.save_as, "Write the changed profile to a file of your own"
        )
        row.addWidget(self.null)
        row.addWidget(self.save)
        self.box.addLayout(row)

    def show_profile(self, profile: RigProfile | None, path: Path | None) -> None:
        """Fill the table."""
        self._profile, self._path = profile, path
        channels = profile.channels if profile is not None else ()
        self.table.setRowCount(len(channels))
        for r, channel in enumerate(channels):
            for c, (name, _, tip, choices) in enumerate(COLUMNS):
                value = getattr(channel, name)
                used = name not in ("bridge", "gauge_factor") or channel.kind == "bridge"
                if choices and used:
                    box = QComboBox()
                    box.addItems(list(choices))
                    box.setCurrentText(str(value))
                    box.setToolTip(tip)
                    self.table.setCellWidget(r, c, box)
                else:
                    self.table.removeCellWidget(r, c)
                    text = (
                        "" if value is None or not used else f"{value:g}" if name in NUMBERS else str(value)
                    )
                    item = QTableWidgetItem(text)
                    item.setToolTip(tip)
                    if name in NUMBERS:
                        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                    self.table.setItem(r, c, item)

    def rows(self) -> list[dict[str, Any]]:
        """What the table says, one table of the profile for each channel."""
        found = []
        for r in range(self.table.rowCount()):
            row: dict[str, Any] = {}
            for c, (name, heading, _, _) in enumerate(COLUMNS):
                text = self._text(r, c)
                if name in NUMBERS:
                    if text:
                        row[name] = _number(text, f"row {r + 1}, {heading}")
                elif text:
                    row[name] = text
            found.append(row)
        return found

    def _text(self, row: int, column: int) -> str:
        box = self.table.cellWidget(row, column)
        if isinstance(box, QComboBox):
            return box.currentText()
        item = self.table.item(row, column)
        return item.text().strip() if item is not None else ""

    def text(self) -> str:
        """The profile as text with the table's channels."""
        import tomli_w

        assert self._path is not None
        raw = tomllib.loads(self._path.read_text(encoding="utf-8"))
        old = {c["name"]: c for c in raw["channels"]}
        names = [c["name"] for c in raw["channels"]]
        rows = self.rows()
        wiring = raw["instruments"]["source"].get("wiring", {})
        changed = []
        for before, row in zip(names, rows, strict=True):
            changed.append({**old[before], **row})
            if before in wiring and row.get("name", before) != before:
                wiring[row["name"]] = wiring.pop(before)
        raw["channels"] = changed
        return tomli_w.dumps(raw)

    def save_as(self) -> None:
        """Ask for a name, check the profile, write it to the user's own rigs."""
        if self._profile is None:
            return
        name, ok = QInputDialog.getText(
            self, "Save as a new rig", "Name of the new rig:", text=f"my_{self._profile.key}"
        )
        if ok and name.strip():
            self.write(name.strip())

    def write(self, name: str) -> None:
        """Write the profile under this name."""
        key = "".join(ch if ch.isalnum() or ch in "-_" else "_" for ch in name)
        try:
            text = self.text()
            rig_from_text(text, key, name)
            rigs_folder().mkdir(parents=True, exist_ok=True)
            (rigs_folder() / f"{key}.toml").write_text(text, encoding="utf-8")
        except (ShakedownError, OSError) as error:
            self.bench.say(f"The rig was not saved: {error}", "bad")
            return
        self.bench.say(f"The rig is saved as {key}.", "good")
        self.saved.emit(key)

    def null_channel(self) -> None:
        """Shift the zero of the chosen row so that the present mean reads 0."""
        row = max(self.table.currentRow(), 0)
        feed, rig = self.bench.feed, self.bench.rig
        if self._profile is None or rig.name != self._profile.key or row >= len(feed.stats):
            self.bench.say("Open this rig first: the zero is taken from its running signal.", "warn")
            return
        mean = feed.stats[row].mean
        column = next(i for i, (name, *_) in enumerate(COLUMNS) if name == "zero")
        item = self.table.item(row, column)
        if item is not None and mean == mean:
            item.setText(f"{_number(item.text() or '0', 'zero') - mean:.6g}")
            self.bench.say("The zero is shifted; save the rig to keep it, then open it again.")


def _number(text: str, where: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise ShakedownError(f"{where}: '{text}' is not a number.") from None
