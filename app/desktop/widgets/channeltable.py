"""The channels of a rig as a table that can be edited and saved under a new name."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
)

from analysis import ShakedownError
from app.dates import date_text
from app.desktop.opening import rig_paths
from app.desktop.rigfile import free_key, keep, key_of, save_text
from app.desktop.widgets.basics import Card, button, label
from app.desktop.widgets.number import Number
from app.desktop.widgets.question import NameDialog, NumberDialog
from app.desktop.workbench import Workbench
from app.numbers import NumberError, number_text, read_number
from app.profile_text import rearranged
from drivers.rig.profile import ChannelProfile, RigProfile

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
SENSOR = next(i for i, (name, *_) in enumerate(COLUMNS) if name == "sensor")
OF_BRIDGES = ("bridge", "gauge_factor")  # shown when there is one
SHUNT = 100.0  # kohm, usual
PLAUSIBLE = (0.9, 1.1)  # gain after a shunt calibration; beyond it something else is wrong


class ChannelTable(Card):
    """Sensor, sensitivity, unit, range, coupling and bridge of every channel."""

    saved = pyqtSignal(str)  # name of the new profile
    edit_wanted = pyqtSignal()  # channels are to be added, removed or put in another order

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.theme)
        self.bench = bench
        self._path: Path | None = None
        self._profile: RigProfile | None = None
        self.table = QTableWidget(0, len(COLUMNS))
        self.table.setAccessibleName("Channels of the rig")
        self.table.setHorizontalHeaderLabels([heading for _, heading, _, _ in COLUMNS])
        for column, (_, _, tip, _) in enumerate(COLUMNS):
            item = self.table.horizontalHeaderItem(column)
            assert item is not None
            item.setToolTip(tip)
        header, side = self.table.horizontalHeader(), self.table.verticalHeader()
        assert header is not None and side is not None
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(SENSOR, QHeaderView.ResizeMode.Interactive)  # words give way to numbers
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        side.hide()
        side.setDefaultSectionSize(bench.theme.px(40))
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.add(self.table, 1)
        self.message = label("", "small", wrap=True)
        row = QHBoxLayout()
        row.setSpacing(bench.theme.px(8))
        row.addWidget(self.message, 1)
        self.null = button(
            "Null", self.null_channel, "Make the chosen channel read 0 now; kept in the profile"
        )
        self.shunt = button(
            "Shunt",
            self.ask_shunt,
            "Correct the gain of the chosen strain bridge with its shunt resistor; kept in the profile",
        )
        self.save = button(
            "Save as a new rig", self.save_as, "Write the changed profile to a file of your own"
        )
        self.edit = button(
            "Edit channels …",
            self.edit_wanted.emit,
            "Add, remove, duplicate and reorder channels, and give them other inputs and sensors",
        )
        row.addWidget(self.null)
        row.addWidget(self.shunt)
        row.addWidget(self.edit)
        row.addWidget(self.save)
        self.box.addLayout(row)
        self.table.currentCellChanged.connect(lambda *_: self._follow())
        bench.rig.calibrated.connect(self._calibrated)

    def show_profile(self, profile: RigProfile | None, path: Path | None) -> None:
        """Fill the table; the row in hand stays in hand."""
        before = self.chosen()
        self._profile, self._path = profile, path
        channels = profile.channels if profile is not None else ()
        for box in self.table.findChildren(QComboBox):
            box.hide()  # taken out below; it would stay in sight as long as a dialog is open
        self.table.setRowCount(len(channels))
        for r, channel in enumerate(channels):
            for c, (name, heading, tip, choices) in enumerate(COLUMNS):
                value = getattr(channel, name)
                used = name not in ("bridge", "gauge_factor") or channel.kind == "bridge"
                if choices and used:
                    box = QComboBox()
                    box.addItems(list(choices))
                    box.setCurrentText(str(value))
                    box.setToolTip(tip)
                    box.setAccessibleName(f"{heading}, channel {channel.name}")
                    self.table.setCellWidget(r, c, box)
                else:
                    self.table.removeCellWidget(r, c)
                    shown = used and value is not None
                    text = "" if not shown else number_text(value, 6) if name in NUMBERS else str(value)
                    item = QTableWidgetItem(text)
                    item.setToolTip(f"{text}\n{tip}" if name == "sensor" and text else tip)
                    if name in NUMBERS:
                        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                    self.table.setItem(r, c, item)

        bridges = any(c.kind == "bridge" for c in channels)
        for c, (name, *_) in enumerate(COLUMNS):
            self.table.setColumnHidden(c, name in OF_BRIDGES and not bridges)
        self._share_width()
        names = [c.name for c in channels]
        self.table.setCurrentCell(names.index(before.name) if before and before.name in names else 0, 0)
        self._follow()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._share_width()

    def _share_width(self) -> None:
        """The sensor's words get what the numbers leave."""
        header, view = self.table.horizontalHeader(), self.table.viewport()
        assert header is not None and view is not None
        others = sum(header.sectionSize(c) for c in range(len(COLUMNS)) if c != SENSOR)
        wanted = self.table.sizeHintForColumn(SENSOR) + self.bench.theme.px(16)
        least = self.bench.theme.px(110)
        self.table.setColumnWidth(SENSOR, max(least, min(wanted, view.width() - others)))

    def chosen(self) -> ChannelProfile | None:
        """The channel of the row in hand, as the profile has it."""
        row = max(self.table.currentRow(), 0)
        channels = self._profile.channels if self._profile is not None else ()
        return channels[row] if row < len(channels) else None

    def _follow(self) -> None:
        """Say how the chosen channel is calibrated."""
        channel = self.chosen()
        self.null.setEnabled(channel is not None)
        self.edit.setEnabled(channel is not None)
        self.shunt.setVisible(channel is not None and self._has_bridge(channel))
        if channel is None:
            self.message.setText("")
            return
        words = [f"{channel.name}:"]
        if channel.kind == "bridge":
            words.append(
                f"at rest {1e3 * channel.initial_bridge_voltage:.4g} mV, gain {channel.shunt_gain:.5g},"
            )
        words.append(
            f"calibrated on {date_text(channel.calibrated)}." if channel.calibrated else "not calibrated yet."
        )
        self.message.setText(" ".join(words) + " Double click a cell to change it.")

    def _has_bridge(self, channel: ChannelProfile) -> bool:
        """Whether the channel's instrument calibrates it by itself."""
        assert self._profile is not None
        return channel.kind == "bridge" and not self._profile.virtual

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
        assert self._path is not None
        text = self._path.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
        old = {c["name"]: c for c in raw["channels"]}
        names = [c["name"] for c in raw["channels"]]
        rows = self.rows()
        wiring = raw["instruments"]["source"].get("wiring", {})
        changed = []
        for before, row in zip(names, rows, strict=True):
            emptied = {"limit"} - row.keys()  # no longer stops the drive
            changed.append({k: v for k, v in {**old[before], **row}.items() if k not in emptied})
            if before in wiring and row.get("name", before) != before:
                wiring[row["name"]] = wiring.pop(before)
        return rearranged(text, list(zip(names, changed, strict=True)), wiring)

    def save_as(self) -> None:
        """Ask for a name, check the profile, write it to the user's own rigs."""
        if self._profile is None:
            return
        name = NameDialog(
            self.bench.theme, self, "Save as a new rig", "Name of the new rig:", free_key(self._profile.key),
            _taken,
        ).ask()  # fmt: skip
        if name:
            self.write(name)

    def write(self, name: str) -> None:
        """Write the profile under this name."""
        key = key_of(name)
        try:
            save_text(self.text(), key)
        except (ShakedownError, OSError) as error:
            self.bench.say(f"The rig was not saved: {error}", "bad")
            return
        self.bench.say(f"The rig is saved as {key}.", "good")
        self.saved.emit(key)

    # -- calibration

    def null_channel(self) -> None:
        """Make the chosen channel read 0 now: a strain bridge by its instrument, others by their zero."""
        channel = self.chosen()
        if channel is None or not self._is_open():
            return
        if self._has_bridge(channel):
            self._calibrate(channel)
            return
        names = [c.name for c in self.bench.rig.channels]
        stats = self.bench.feed.stats
        mean = stats[names.index(channel.name)].mean if channel.name in names and stats else float("nan")
        if mean != mean:
            self.bench.say("There are no samples yet to take the zero from: wait a second.", "warn")
            return
        self._keep(channel, "zero", channel.zero - mean, f"its mean of {mean:.4g} {channel.unit}".rstrip())

    def ask_shunt(self) -> None:
        """Ask for the resistor, then calibrate."""
        number = Number(SHUNT, 0.1, 10_000.0, "kohm", 2)
        dialog = NumberDialog(self.bench.theme, self, "Shunt calibration", "Shunt resistor:", number)
        resistor = dialog.ask()
        if resistor is not None:
            self.shunt_channel(1e3 * resistor)

    def shunt_channel(self, resistor: float) -> None:
        """Correct the gain of the chosen bridge with a shunt resistor, in ohm."""
        channel = self.chosen()
        if channel is not None and self._is_open():
            self._calibrate(channel, resistor)

    def _is_open(self) -> bool:
        if self._profile is not None and self.bench.rig.name == self._profile.key and self.bench.rig.running:
            return True
        self.bench.say("Open this rig first: it is calibrated by its running signal.", "warn")
        return False

    def _calibrate(self, channel: ChannelProfile, resistor: float | None = None) -> None:
        try:
            self.bench.rig.calibrate(channel.name, resistor)
        except ShakedownError as error:
            self.bench.say(str(error), "warn")
        else:
            self.message.setText(f"{channel.name}: calibrating …")

    def _calibrated(self, name: str, field: str, value: float) -> None:
        """The instrument has found a value."""
        channels = self._profile.channels if self._profile is not None else ()
        channel = next((c for c in channels if c.name == name), None)
        if channel is None:
            return
        if field == "shunt_gain":
            doubt = " That is far from 1: check gauge factor, resistances and wiring."
            plausible = PLAUSIBLE[0] <= value <= PLAUSIBLE[1]
            self._keep(channel, field, value, f"a gain of {value:.5g}", "" if plausible else doubt)
        else:
            self._keep(channel, field, value, f"{1e3 * value:.4g} mV at rest")

    def _keep(self, channel: ChannelProfile, field: str, value: float, words: str, doubt: str = "") -> None:
        """Write the result into the profile and open the rig with it."""
        assert self._profile is not None
        today = date.today().isoformat()
        try:
            key = keep(self._profile.key, channel.name, {field: float(f"{value:.9g}"), "calibrated": today})
        except (ShakedownError, OSError) as error:
            self.bench.say(f"The calibration could not be kept: {error}", "bad")
            return
        text = f"{channel.name} is calibrated: {words}, kept in the rig {key}.{doubt}"
        self.bench.say(text, "warn" if doubt else "good")
        self.saved.emit(key)
        self.bench.settings.rig = key
        self.bench.rig.open(key)


def _number(text: str, where: str) -> float:
    try:
        return read_number(text)
    except NumberError as error:
        raise ShakedownError(f"{where}: {error}") from None


def _taken(name: str) -> str:
    """Why a rig cannot be saved under this name."""
    known = key_of(name) in rig_paths()
    return f"There is a rig {key_of(name)} already: choose another name." if known else ""
