"""A new rig in three steps: the instrument, its channels and sensors, the limits of its shaker.

Of a rig that is there the second step alone is shown: its channels can be changed, all else stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QListWidget,
    QListWidgetItem,
    QStackedWidget,
    QTableWidget,
    QVBoxLayout,
    QWidget,
)

from analysis import ShakedownError
from app import sensors
from app.dates import date_text
from app.desktop.opening import rig_paths
from app.desktop.rigfile import keep_text, key_of, save_text
from app.desktop.widgets.basics import add_row, button, entry, form, label, set_role
from app.desktop.widgets.devices import ask_sensor, ask_terminals, search
from app.desktop.widgets.number import Number
from app.desktop.workbench import Workbench
from app.numbers import localised
from app.rig_draft import SOURCES, CardScale, DraftChannel, RigDraft, ShakerLimits, generators_among
from app.rig_edit import EditedRig
from app.sensors import Sensor
from drivers.base.files import read_text
from drivers.instruments.discovery import ASKED, Device, Terminals
from drivers.instruments.teds import ASKED as TEDS
from drivers.instruments.teds import SensorData

RATES = (
    1000,
    1024,
    2000,
    2048,
    2560,
    5000,
    5120,
    10000,
    10240,
    12800,
    20000,
    25600,
    44100,
    48000,
    50000,
    51200,
)
FIRST_RATE = 2048  # Hz
OWN_RATES = {"sound": 48000, "opendaq": 2000}  # Hz, that every device of the kind can do exactly
NAMES = ("x", "v", "a", "f", "drive", "strain")  # what channels are usually called
HEADINGS = ("Name", "Connected to", "Sensor", "Calibration", "Stop beyond")
WIDTHS = (110, 172, 0, 140, 130)  # of these columns; the sensor takes the rest
STEPS = ("1. The instrument", "2. Channels and sensors", "3. The shaker")
VOLTS = "no sensor: volts"
AS_IT_IS = "as it is"
NO_SHAKER = "no shaker"
NO_LOOPBACK = "none"
GIVEN = "must be given,"


class NewRigDialog(QDialog):
    """From found devices to a saved profile; ``key`` is its name then. ``edit``: a profile to be changed."""

    def __init__(self, bench: Workbench, parent: QWidget, edit: Path | None = None) -> None:
        super().__init__(parent)
        self.bench, self.theme = bench, bench.theme
        self.draft = RigDraft() if edit is None else EditedRig.of(read_text(edit, "a rig profile"))
        self._edit = edit
        self._generators: dict[str, tuple[str, str]] = {}
        self.key = ""
        self.sensors: list[Sensor] = []
        self._filling = False
        px = self.theme.px
        self.setWindowTitle("New rig" if edit is None else f"Channels of {edit.stem}")
        self.resize(px(920), px(500))
        self.heading = label("", "title")
        self.stack = QStackedWidget()
        for page in (self._instrument_page(), self._channel_page(), self._shaker_page()):
            self.stack.addWidget(page)
        self._steps = range(len(STEPS)) if edit is None else range(1, 2)
        self.stack.setCurrentIndex(self._steps.start)
        self.state = label("", "small", wrap=True)
        self.back = button("Back", lambda: self.turn(-1), "To the step before")
        self.next = button("Next", lambda: self.turn(1), "To the next step", "primary")
        self.back.setVisible(edit is None)
        cancel = button("Cancel", self.reject, "Close and change nothing")
        row = QHBoxLayout()
        row.addWidget(self.state, 1)
        for part in (cancel, self.back, self.next):
            row.addWidget(part)
        box = QVBoxLayout(self)
        box.setContentsMargins(*(px(16),) * 4)
        box.setSpacing(px(10))
        box.addWidget(self.heading)
        box.addWidget(self.stack, 1)
        box.addLayout(row)
        self._show_card_rows(False)
        self._load_sensors()
        self._fill_channels()
        self._follow()

    # -- the instrument

    def _instrument_page(self) -> QWidget:
        self.devices = QListWidget()
        self.devices.setAccessibleName("Instruments that were found")
        self.devices.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.devices.currentItemChanged.connect(lambda *_: self._instrument_chosen())
        self.devices.itemActivated.connect(lambda _: self.turn(1))
        self.rate = QComboBox()
        self.rate.addItems([f"{rate} Hz" for rate in RATES])
        self.rate.setCurrentIndex(RATES.index(FIRST_RATE))
        self.rate.currentIndexChanged.connect(
            lambda _: self._set(rate=float(RATES[self.rate.currentIndex()]))
        )
        self.search_button = button("Search again", self.search, "Look for connected instruments")
        rows = form(self.theme)
        add_row(self.theme, rows, "Sample rate", self.rate, "The device rounds it to what it can do")
        self.card_input = Number(0.0, 0.0, 1000.0, "V", 4, empty=f"{GIVEN} in V")
        self.card_input.valueChanged.connect(lambda _: self._card_changed())
        add_row(self.theme, rows, "Full scale", self.card_input, "V at an input that are 1.0 for the card")
        self._card_rows: list[tuple[QFormLayout, QWidget]] = [(rows, self.card_input)]
        row = QHBoxLayout()
        row.addLayout(rows, 1)
        row.addWidget(self.search_button)
        return _column(self.devices, row)

    def search(self) -> None:
        """Look for instruments, elsewhere."""
        self.search_button.setEnabled(False)
        self.state.setText("Looking for instruments …")
        job = self.bench.workers.run("Looking for instruments", search)
        job.done.connect(lambda found: self.offer(*found))
        job.failed.connect(self.state.setText)
        job.ended.connect(lambda: self.search_button.setEnabled(True))

    def offer(self, devices: list[Device], remarks: list[str]) -> None:
        """The instruments that a rig can be made of."""
        self.devices.clear()
        self._generators = generators_among(devices)
        for device in devices:
            if device.kind in SOURCES:
                item = QListWidgetItem(f"{device.description}\n{device.kind}, {device.address}")
                item.setData(Qt.ItemDataRole.UserRole, device)
                self.devices.addItem(item)
        self.devices.setToolTip("\n".join(remarks))
        self._follow()

    def _instrument_chosen(self) -> None:
        item = self.devices.currentItem()
        if item is None:
            return
        device: Device = item.data(Qt.ItemDataRole.UserRole)
        if (device.kind, device.address) == (self.draft.kind, self.draft.address):
            return
        before = self.draft
        self.draft = RigDraft(
            device.kind, device.address, before.rate, limits=before.limits, generators=self._generators
        )
        if (rate := OWN_RATES.get(device.kind)) is not None:
            self.rate.setCurrentIndex(RATES.index(rate))
            self.draft = replace(self.draft, rate=float(rate), card=before.card)
        self._show_card_rows(device.kind == "sound")
        self._fill_channels()
        self._follow()
        if device.kind not in ASKED:
            self.take_terminals(device, Terminals())
            return
        self._say(f"Asking {device.address} for its inputs …")
        job = self.bench.workers.run("Asking an instrument", ask_terminals, device)
        job.done.connect(lambda found: self.take_terminals(device, found))
        job.failed.connect(lambda words: self.take_terminals(device, Terminals(), words))

    def take_terminals(self, device: Device, found: Terminals, problem: str = "") -> None:
        """The instrument has told its inputs and outputs, or could not: then the usual ones are offered."""
        if (device.kind, device.address) != (self.draft.kind, self.draft.address) or self.draft.channels:
            return  # another one was chosen meanwhile
        self.draft = replace(self.draft, told=found)
        self._do(self.draft.with_channel)
        self._fill_outputs()
        if problem:
            self._say(f"{problem} The inputs that such an instrument usually has are offered.")

    # -- channels

    def _channel_page(self) -> QWidget:
        self.table = QTableWidget(0, len(HEADINGS))
        self.table.setAccessibleName("Channels of the new rig")
        self.table.setHorizontalHeaderLabels(list(HEADINGS))
        header, side = self.table.horizontalHeader(), self.table.verticalHeader()
        assert header is not None and side is not None
        for column, width in enumerate(WIDTHS):
            header.resizeSection(column, self.theme.px(width))
        header.setSectionResizeMode(HEADINGS.index("Sensor"), QHeaderView.ResizeMode.Stretch)
        side.hide()
        side.setDefaultSectionSize(self.theme.px(44))
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setShowGrid(False)
        row = QHBoxLayout()
        actions: tuple[tuple[str, Callable[[], object], str], ...] = (
            ("Add", self._add, "One more channel at the next free input"),
            ("Duplicate", self._duplicate, "The same sensor once more"),
            (
                "Remove",
                lambda: self._do(lambda: self.draft.without(self._row())),
                "Take the chosen channel out",
            ),
            ("Up", lambda: self._move(-1), "Move the chosen channel up"),
            ("Down", lambda: self._move(1), "Move the chosen channel down"),
            (
                "Import sensors …",
                self._ask_sensors,
                "Take the sensors of a TOML file into this machine's list",
            ),
        )
        for words, action, tip in actions:
            row.addWidget(button(words, action, tip))
        self.teds_button = button(
            "Ask the sensor", self.ask_sensor, "What the sensor of the chosen channel tells of itself (TEDS)"
        )
        self.take_button = button("Take it", self._take_sensor, "Use what the sensor said for its channel")
        for part in (self.teds_button, self.take_button):
            part.hide()
            row.addWidget(part)
        self._told: tuple[str, SensorData] | None = None  # input, and what its sensor said
        row.addStretch(1)
        return _column(self.table, row)

    def _row(self) -> int:
        row = self.table.currentRow()
        if not 0 <= row < len(self.draft.channels):
            raise ShakedownError("Choose a channel first.")
        return row

    def _move(self, by: int) -> None:
        row = self.table.currentRow()
        self._do(lambda: self.draft.moved(self._row(), by))
        self.table.setCurrentCell(min(max(row + by, 0), self.table.rowCount() - 1), 0)

    def _add(self) -> None:
        if self._do(self.draft.with_channel):
            self.table.setCurrentCell(self.table.rowCount() - 1, 0)

    def _duplicate(self) -> None:
        row = self.table.currentRow()
        if self._do(lambda: self.draft.duplicated(self._row())):
            self.table.setCurrentCell(row + 1, 0)

    def _do(self, change: Callable[[], RigDraft]) -> bool:
        """Change the channels; what cannot be is said. Whether it was done."""
        row = self.table.currentRow()
        try:
            self.draft = change()
        except ShakedownError as error:
            self._say(str(error))
            return False
        self._fill_channels()
        self.table.setCurrentCell(min(max(row, 0), self.table.rowCount() - 1), 0)
        self._follow()
        return True

    def _fill_channels(self) -> None:
        self._filling = True
        self.table.setRowCount(len(self.draft.channels))
        for row, channel in enumerate(self.draft.channels):
            self._fill_row(row, channel)
        self._filling = False

    def _fill_row(self, row: int, channel: DraftChannel) -> None:
        names = list(dict.fromkeys((channel.name, *NAMES)))
        name = self._choice(row, 0, names, channel.name, f"Name of channel {row + 1}")
        name.setEditable(True)  # usual names are offered, any other may be typed
        name.currentTextChanged.connect(lambda text, row=row: self._change(row, name=text.strip()))
        terminal = self._choice(
            row, 1, self.draft.terminals(), channel.terminal, f"Input of channel {row + 1}"
        )
        terminal.setEditable(True)  # an instrument may have others
        terminal.currentTextChanged.connect(lambda text, row=row: self._change(row, terminal=text.strip()))
        known = [self._without_sensor(channel), *(sensor.name for sensor in self.sensors)]
        chosen = known[0] if channel.sensor is None else channel.sensor.name
        sensor = self._choice(row, 2, known, chosen, f"Sensor of channel {row + 1}")
        sensor.setToolTip(chosen)
        sensor.currentIndexChanged.connect(lambda index, row=row: self._sensor_chosen(row, index))
        self._show_calibration(row, channel)
        stated = self._stated(channel)
        unit = str(stated.get("unit", "")) if channel.sensor is None else channel.sensor.unit
        limit = Number(channel.limit or 0.0, 0.0, 1e12, unit, 4, empty="never")
        limit.setAccessibleName(f"Stop the drive when channel {row + 1} goes beyond")
        limit.setToolTip("The drive stops when the channel passes this value; empty: never")
        limit.valueChanged.connect(lambda value, row=row: self._change(row, limit=value or None))
        self._put(row, 4, limit)

    def _stated(self, channel: DraftChannel) -> Mapping[str, Any]:
        """What the profile says of a channel that nobody has given another sensor."""
        old = self.draft.original(channel) if isinstance(self.draft, EditedRig) else {}
        return old or {"unit": "V"}

    def _without_sensor(self, channel: DraftChannel) -> str:
        stated = self._stated(channel)
        if "name" not in stated:
            return VOLTS
        return ": ".join(filter(None, (AS_IT_IS, str(stated.get("sensor", "")))))

    def _choice(self, row: int, column: int, texts: list[str], chosen: str, name: str) -> QComboBox:
        box = QComboBox()
        box.addItems(texts)
        box.setCurrentText(chosen)
        box.setAccessibleName(name)
        self._put(row, column, box)
        return box

    def _put(self, row: int, column: int, widget: QWidget) -> None:
        """Put a field into its cell; Qt deletes the old one later, and shows it until then."""
        if (old := self.table.cellWidget(row, column)) is not None:
            old.hide()
        self.table.setCellWidget(row, column, widget)

    def _show_calibration(self, row: int, channel: DraftChannel) -> None:
        words = "" if channel.sensor is None else channel.sensor.words(date.today(), date_text)
        if channel.sensor is None and (day := self._stated(channel).get("calibrated")):
            words = f"calibrated on {date_text(str(day))}"
        if channel.sensor is not None and channel.sensor.teds:
            words = f"by TEDS; {words}" if channel.sensor.ends is not None else "by TEDS"
        text = label(words, "warn" if "never" in words or "out of date" in words else "small", wrap=True)
        text.setToolTip(words)
        self._put(row, 3, text)

    def _sensor_chosen(self, row: int, index: int) -> None:
        if not self._filling:
            sensor = None if index <= 0 else self.sensors[index - 1]
            self.draft = self.draft.changed(row, sensor=sensor)
            self._fill_channels()
            self.table.setCurrentCell(row, 0)
            self._follow()

    # -- sensors that tell of themselves

    def ask_sensor(self) -> None:
        """Ask the sensor of the chosen channel what it is; nothing is taken before a person says so."""
        try:
            terminal = self.draft.channels[self._row()].terminal
        except ShakedownError as error:
            self._say(str(error))
            return
        self._forget_sensor()
        self.teds_button.setEnabled(False)
        self._say(f"Asking the sensor at {terminal} …")
        job = self.bench.workers.run(
            "Asking a sensor", ask_sensor, self.draft.kind, terminal, self.draft.source_table()
        )
        job.done.connect(lambda told: self.show_sensor(terminal, told))
        job.failed.connect(self._say)
        job.ended.connect(lambda: self.teds_button.setEnabled(True))

    def show_sensor(self, terminal: str, told: SensorData) -> None:
        """What a sensor said; it can be taken now."""
        if any(channel.terminal == terminal for channel in self.draft.channels):
            self._told = terminal, told
            self.take_button.show()
            self._say(f"At {terminal}: {_in_the_locale(told)}.", "small")

    def _take_sensor(self) -> None:
        """Give the sensor that was asked to its channel, which may have moved meanwhile."""
        if self._told is None:
            return
        terminal, told = self._told
        new = sensors.by_teds(told)
        self.sensors = [sensor for sensor in self.sensors if sensor.name != new.name] + [new]
        for row, channel in enumerate(self.draft.channels):
            if channel.terminal == terminal:
                self.draft = self.draft.changed(row, sensor=new)
        self._forget_sensor()
        self._fill_channels()
        self._follow()
        if not self.state.text():  # the table has no room for the sensitivity
            self._say(f"Taken: {_in_the_locale(told)}.", "small")

    def _forget_sensor(self) -> None:
        self._told = None
        self.take_button.hide()

    def _change(self, row: int, **values: object) -> None:
        if not self._filling:
            self.draft = self.draft.changed(row, **values)
            self._follow()

    def _load_sensors(self) -> None:
        try:
            self.sensors = sensors.load()
        except ShakedownError as error:
            self._say(str(error))

    def _ask_sensors(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Import sensors", str(Path.home()), "Sensors (*.toml)")
        if name:
            self.import_sensors(Path(name))

    def import_sensors(self, path: Path) -> None:
        """Take the sensors of a file into this machine's list."""
        try:
            new = sensors.load(path)
            self.sensors = sensors.add(new)
        except ShakedownError as error:
            self._say(str(error))
            return
        self._fill_channels()
        self._follow()

    # -- the shaker

    def _shaker_page(self) -> QWidget:
        self.output = QComboBox()
        self.output.currentTextChanged.connect(
            lambda text: self._set(output="" if text == NO_SHAKER else text)
        )
        self.amplitude = Number(0.0, 0.0, 1000.0, "V", 4, empty=f"{GIVEN} in V")
        self.lowest = Number(0.0, 0.0, 1e6, "Hz", 3, empty=f"{GIVEN} in Hz")
        self.highest = Number(0.0, 0.0, 1e6, "Hz", 3, empty=f"{GIVEN} in Hz")
        self.ramp = Number(0.0, 0.0, 1e6, "V/s", 3, empty=f"{GIVEN} in V/s")
        self.title = entry("", "My rig", "Name of the rig, also of its file")
        self.title.textChanged.connect(lambda _: self._follow())
        rows = form(self.theme)
        add_row(self.theme, rows, "Name", self.title)
        add_row(self.theme, rows, "Shaker at", self.output, "The output that drives the shaker's amplifier")
        self.card_output = Number(0.0, 0.0, 1000.0, "V", 4, empty=f"{GIVEN} in V")
        self.card_output.valueChanged.connect(lambda _: self._card_changed())
        self.loopback = QComboBox()
        self.loopback.currentIndexChanged.connect(lambda _: self._card_changed())
        add_row(
            self.theme, rows, "Full scale", self.card_output, "V that the output gives at 1.0 of the card"
        )
        add_row(self.theme, rows, "Loop-back", self.loopback, "The channel to which the output is wired too")
        self._card_rows += [(rows, self.card_output), (rows, self.loopback)]
        for words, box, tip in (
            ("At most", self.amplitude, "Largest voltage that amplifier, shaker and specimen stand, peak"),
            ("From", self.lowest, "Lowest frequency: below it the shaker's travel becomes too large"),
            ("To", self.highest, "Highest frequency that is ever played"),
            ("Ramp", self.ramp, "How fast the amplitude of a running drive may change"),
        ):
            add_row(self.theme, rows, words, box, tip)
            box.valueChanged.connect(lambda _: self._limits_changed())
        promise = label(
            "These limits sit beside the hardware: nothing that is asked for later gets past them.",
            "small",
            wrap=True,
        )
        rows.addRow(promise)
        whole = QWidget()
        whole.setLayout(rows)
        return whole

    def _fill_outputs(self) -> None:
        self.output.clear()
        self.output.addItems([*self.draft.outputs(), NO_SHAKER])
        if self.output.currentText() in self.draft.generators:  # what is at a serial line nobody knows
            self.output.setCurrentText(NO_SHAKER)

    def _fill_loopback(self) -> None:
        """The channels that may hear the output."""
        names = [NO_LOOPBACK, *(channel.name for channel in self.draft.channels)]
        if names != [self.loopback.itemText(i) for i in range(self.loopback.count())]:
            chosen = self.loopback.currentText()
            self.loopback.clear()
            self.loopback.addItems(names)
            self.loopback.setCurrentText(chosen if chosen in names else NO_LOOPBACK)

    def _show_card_rows(self, shown: bool) -> None:
        for rows, field in self._card_rows:
            rows.setRowVisible(field, shown)

    def _card_changed(self) -> None:
        heard = self.loopback.currentText() if self.loopback.currentIndex() > 0 else ""
        scales = [box.value() or float("nan") for box in (self.card_input, self.card_output)]
        self._set(card=CardScale(scales[0], scales[1], heard))

    def _limits_changed(self) -> None:
        values = [
            box.value() or float("nan") for box in (self.amplitude, self.lowest, self.highest, self.ramp)
        ]
        self._set(limits=ShakerLimits(*values))

    # -- all of it

    def _set(self, **values: object) -> None:
        self.draft = replace(self.draft, **values)  # type: ignore[arg-type]
        self._follow()

    def turn(self, by: int) -> None:
        """To another step; behind the last one the rig is saved."""
        step = self.stack.currentIndex() + by
        if step >= self._steps.stop:
            self.save()
        elif step >= self._steps.start and self.draft.channels:
            self.stack.setCurrentIndex(step)
            self._fill_loopback()
            self._follow()

    def _follow(self) -> None:
        step = self.stack.currentIndex()
        last = step == self._steps.stop - 1
        self.heading.setText(STEPS[step] if self._edit is None else "Channels and sensors")
        self.back.setEnabled(step > 0)
        self.teds_button.setVisible(self.draft.kind in TEDS)
        self.next.setText("Save and test" if last else "Next")
        for box in (self.amplitude, self.lowest, self.highest, self.ramp):
            box.setEnabled(bool(self.draft.output))
        for part in (self.card_output, self.loopback):
            part.setEnabled(self.draft.driven_by_card)
        problem = self._problem() if last else self.draft.problem()
        ready = not problem if last else bool(self.draft.channels)
        self.next.setEnabled(ready)
        later = "limits" in problem or "full scale" in problem  # not asked for in this step
        self._say(problem if last or (step == 1 and not later) else "")
        if not problem and isinstance(self.draft, EditedRig) and (lost := self.draft.lost_stops()):
            self._say(f"Nothing stops the drive any more when {' or '.join(lost)} goes too far.")

    def _problem(self) -> str:
        """What keeps the rig from being saved; empty: nothing."""
        unnamed = self._edit is None and not key_of(self.title.text().strip())
        return self.draft.problem() or ("Give the rig a name." if unnamed else "")

    def _say(self, words: str, role: str = "warn") -> None:
        self.state.setText(words)
        set_role(self.state, role if words else "small")

    def save(self) -> None:
        """Write the profile among the user's own; a name that is taken is refused."""
        title = self.title.text().strip()
        key = key_of(title)
        for box in (self.amplitude, self.lowest, self.highest, self.ramp):
            if self.draft.output and not box.apply():
                return
        if self.draft.kind == "sound" and not self.card_input.apply():
            return
        if self.draft.driven_by_card and not self.card_output.apply():
            return
        if problem := self._problem():
            self._say(problem)
            return
        try:
            self.key = self._keep_edited(self._edit) if self._edit is not None else self._keep_new(title, key)
        except ShakedownError as error:
            self._say(str(error))
            return
        self.accept()

    def _keep_new(self, title: str, key: str) -> str:
        if key in rig_paths():
            raise ShakedownError(f"There is a rig named {key} already: choose another name.")
        save_text(self.draft.text(title), key)
        return key

    def _keep_edited(self, path: Path) -> str:
        """Write the profile that was changed; one that comes with the program is copied first."""
        assert isinstance(self.draft, EditedRig)
        if read_text(path, "a rig profile") != self.draft.profile:
            raise ShakedownError(
                "The profile was changed by somebody else meanwhile: cancel, and begin again."
            )
        return keep_text(path, self.draft.text(""))


def _in_the_locale(told: SensorData) -> str:
    """What a sensor said, with the decimal mark and the dates of the locale."""
    day = "" if told.calibrated is None else told.calibrated.isoformat()
    words = localised(told.words)
    return words.replace(day, date_text(day)) if day else words


def _column(widget: QWidget, row: QHBoxLayout) -> QWidget:
    whole = QWidget()
    box = QVBoxLayout(whole)
    box.setContentsMargins(0, 0, 0, 0)
    box.addWidget(widget, 1)
    box.addLayout(row)
    return whole
