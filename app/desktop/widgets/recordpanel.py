"""Recording: a name, notes and tags, how long, and from when."""

from __future__ import annotations

import time

from PyQt6.QtWidgets import QApplication, QCheckBox, QComboBox, QHBoxLayout, QLineEdit, QScrollArea, QWidget

from analysis import ShakedownError
from app.desktop.widgets.basics import Card, IconButton, add_row, button, form, label
from app.desktop.widgets.notes import Notes
from app.desktop.widgets.number import Number
from app.desktop.workbench import Workbench
from app.words import duration
from drivers.base.trigger import Trigger

LENGTHS = ("until stopped", "seconds", "drive periods")


class RecordPanel(Card):
    """Name, length and trigger of the next recording, and the button that starts and ends it."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.theme, "Record")
        self.bench, self.rig = bench, bench.rig
        self.clock = label("", "small")
        self.head.addWidget(self.clock)
        self.name, self.notes, self.tags = QLineEdit(), Notes(bench.theme), QLineEdit()
        self.name.setPlaceholderText("named by date and time")
        self.notes.setPlaceholderText("anything worth knowing later")
        self.tags.setPlaceholderText("chaos, 7.5 Hz")
        self.name.setToolTip("Name of the recording; left empty, date and time name it")
        self.tags.setToolTip("Words to find it by, separated by commas")
        self.length = QComboBox()
        self.length.addItems(LENGTHS)
        self.length.setToolTip("When the recording ends by itself")
        self.amount = Number(60.0, 0.1, 1e6, "s", 1)
        rows = form(bench.theme)
        for words, field in (("Name", self.name), ("Length", self.length), ("", self.amount)):
            add_row(bench.theme, rows, words, field)
        self.amount.setAccessibleName("Length")
        add_row(bench.theme, rows, "Notes", self.notes)
        add_row(bench.theme, rows, "Tags", self.tags)
        self._rows = rows
        self.box.addLayout(rows)
        self.wait = QCheckBox("Wait for a trigger")
        self.wait.setToolTip("Start when a channel crosses a level, keeping what came just before")
        self.add(self.wait)
        self.trigger_box = self._trigger()
        self.add(self.trigger_box)
        self.button = button("Record", self.toggle, "Start recording, or stop and save", "record", "Ctrl+R")
        self.button.setCheckable(True)
        self.add(self.button)
        self.marker_box = self._marker()
        self.add(self.marker_box)
        self.more = IconButton(bench.theme, "tune", "Notes, tags and trigger", checkable=True)
        self.more.toggled.connect(self._show_more)
        self.head.addWidget(self.more)
        self.length.currentIndexChanged.connect(self._length_chosen)
        self.wait.toggled.connect(lambda: self._show_more(self.more.isChecked()))
        self._show_more(False)
        self._length_chosen(0)
        self.rig.opened.connect(self.reload)
        self.rig.recording_changed.connect(self._follow)
        bench.marker_asked.connect(self.mark)

    def _trigger(self) -> QWidget:
        box = QWidget()
        rows = form(self.bench.theme)
        rows.setContentsMargins(0, 0, 0, 0)
        self.trigger_channel, self.slope = QComboBox(), QComboBox()
        self.slope.addItems(["rising", "falling"])
        self.level = Number(0.0, -1e9, 1e9, "", 4)
        self.before = Number(0.5, 0.0, 60.0, "s", 2)
        add_row(self.bench.theme, rows, "Channel", self.trigger_channel)
        add_row(self.bench.theme, rows, "Level", self.level)
        add_row(self.bench.theme, rows, "Slope", self.slope)
        add_row(self.bench.theme, rows, "Keep before", self.before)
        box.setLayout(rows)
        return box

    def _marker(self) -> QWidget:
        """While recording: a button that keeps the moment, and a word for the newest marker."""
        box = QWidget()
        row = QHBoxLayout(box)
        row.setContentsMargins(0, 0, 0, 0)
        self.mark_button = button("Mark", self.mark, "Keep this moment in the recording (M)")
        self.mark_word = QLineEdit()
        self.mark_word.setAccessibleName("Word for the newest marker")
        self.mark_word.setToolTip("A word for the newest marker: type it after M, Enter keeps it")
        self.mark_word.setEnabled(False)
        self.mark_word.returnPressed.connect(self._name_mark)
        row.addWidget(self.mark_button)
        row.addWidget(self.mark_word, 1)
        box.hide()
        self.marks = 0  # of the recording under way
        self._before_word: QWidget | None = None  # what had the keyboard before the word was asked for
        return box

    def mark(self) -> None:
        """Keep this moment at once under its number; a word may be typed afterwards."""
        if not self.rig.recording or self.rig.finishing:
            return
        if self.rig.waiting:
            self.bench.say("The trigger has not fired yet: nothing is being recorded.", "warn")
            return
        if self.mark_word.hasFocus():
            self._name_mark()
        self.marks += 1
        self.rig.mark(self.marks, f"marker {self.marks}")
        self.mark_word.setEnabled(True)
        self.mark_word.setText(f"marker {self.marks}")
        if self.mark_word.isVisible():
            self._before_word = QApplication.focusWidget()
            _bring_into_view(self.mark_word)
            self.mark_word.setFocus()
            self.mark_word.selectAll()
        else:
            self.bench.say(f"Marker {self.marks} is set.", "info")

    def _name_mark(self) -> None:
        word = self.mark_word.text().strip()
        if self.marks and word:
            self.rig.mark(self.marks, word)
        before = self._before_word
        if before is not None and before is not self.mark_word and before.isVisible():
            before.setFocus()
        else:
            self.button.setFocus()

    def _show_more(self, on: bool) -> None:
        """Notes, tags and trigger stay out of the way until they are wanted."""
        for field in (self.notes, self.tags):
            self._rows.setRowVisible(field, on)
        self.wait.setVisible(on or self.wait.isChecked())
        self.trigger_box.setVisible(on and self.wait.isChecked())

    def reload(self) -> None:
        self.trigger_channel.clear()
        self.trigger_channel.addItems([c.name for c in self.rig.channels])
        self.button.setEnabled(bool(self.rig.channels))

    def _length_chosen(self, index: int) -> None:
        self._rows.setRowVisible(self.amount, index > 0)
        self.amount.set_unit("s" if index < 2 else "periods")

    # -- acting

    def toggle(self) -> None:
        """Start recording, or stop and save."""
        if self.rig.recording:
            self.rig.stop_recording()
            return
        try:
            self.rig.record(
                self.name.text().strip(),
                self.notes.text().strip(),
                [t.strip() for t in self.tags.text().split(",") if t.strip()],
                self.seconds(),
                self.trigger(),
            )
        except (ShakedownError, OSError) as error:
            self.bench.say(f"The recording could not be started: {error}", "bad")
        self._follow()

    def seconds(self) -> float | None:
        """How long to record; None: until stopped."""
        if self.length.currentIndex() == 0:
            return None
        if self.length.currentIndex() == 1:
            return self.amount.read()
        frequency = self.rig.drive().frequency
        if not frequency:
            raise ShakedownError("nothing drives the rig, so there are no drive periods to count.")
        return self.amount.read() / frequency

    def trigger(self) -> Trigger | None:
        if not self.wait.isChecked():
            return None
        return Trigger(
            self.trigger_channel.currentText(),
            self.level.read(),
            self.slope.currentText(),
            self.before.read(),
        )

    def _follow(self) -> None:
        on = self.rig.recording
        self.button.setChecked(on)
        self.button.setText("Stop and save" if on else "Record")
        if not on or not self.marker_box.isVisibleTo(self):
            self.marks = 0
            self.mark_word.clear()
            self.mark_word.setEnabled(False)
        self.marker_box.setVisible(on)
        for box in (self.name, self.length, self.amount, self.wait, self.trigger_box):
            box.setEnabled(not on)
        self.tick()

    def tick(self) -> None:
        """Show how long the recording has been running."""
        if not self.rig.recording:
            self.clock.setText("")
        elif self.rig.finishing:
            self.clock.setText("saving …")
        elif self.rig.waiting:
            self.clock.setText("waiting for the trigger")
        else:
            self.clock.setText(f"recording {duration(time.monotonic() - self.rig.recording_since)}")


def _bring_into_view(widget: QWidget) -> None:
    """On a low screen the field may have been scrolled away."""
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(widget)
        parent = parent.parentWidget()
