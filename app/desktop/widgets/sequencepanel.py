"""A plan of drives and recordings: how many steps, how long, how far."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from PyQt6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QVBoxLayout, QWidget

from analysis import ShakedownError, Step
from app.desktop.widgets.basics import Card, add_row, button, form, label, progress_bar, sentence, set_role
from app.desktop.widgets.number import Count, Number
from app.desktop.workbench import Workbench
from app.words import counted, duration
from drivers.acquisition.sequence import Sequence, sequence_from_text

DIRECTIONS = ("up", "down", "up and down", "down and up")


class SequencePanel(QWidget):
    """Frequencies from here to there, a recording at each, with the plan in words and its progress."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench, theme = bench, bench.theme
        card = Card(theme, "Sequence", "Steps through frequencies and records at each")
        fields = form(theme)
        self.low, self.high = Number(2.0, 0.001, 1e6, "Hz", 3), Number(12.0, 0.001, 1e6, "Hz", 3)
        self.points = Count(11, 1, 1000)
        self.amplitude = Number(0.5, 0.0, 1e6, "V", 4)
        self.direction = QComboBox()
        self.direction.addItems(DIRECTIONS)
        self.settle, self.seconds = Number(5.0, 0.0, 1e5, "s", 1), Number(10.0, 0.1, 1e5, "s", 1)
        for words, field, tip in (
            ("From", self.low, "Lowest frequency"),
            ("To", self.high, "Highest frequency"),
            ("Steps", self.points, "How many frequencies"),
            ("Amplitude", self.amplitude, "Peak of the drive at every step"),
            ("Direction", self.direction, "Many nonlinear specimens answer differently up and down"),
            ("Settle", self.settle, "Wait after each change before recording"),
            ("Record", self.seconds, "Length of each recording"),
        ):
            add_row(theme, fields, words, field, tip)
        card.box.addLayout(fields)
        self.tap = QCheckBox("Tap before each step")
        self.tap.setToolTip("Knock the specimen so that it may find another motion")
        card.add(self.tap)
        self.plan = label("", "small", wrap=True)
        card.add(self.plan)
        self.bar = progress_bar(1000)
        card.add(self.bar)
        row = QHBoxLayout()
        self.run_button = button("Run", self.toggle, "Run the plan, or stop it", "primary")
        self.pause_button = button("Pause", self.pause, "Stop after this step, with the drive ramped down")
        self.pause_button.setCheckable(True)
        self.pause_button.setEnabled(False)
        row.addWidget(self.run_button, 1)
        row.addWidget(self.pause_button)
        card.box.addLayout(row)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, theme.px(2), 0)
        box.addWidget(card)
        box.addStretch(1)
        for field in (self.low, self.high, self.amplitude, self.settle, self.seconds):
            field.valueChanged.connect(self._tell)
        self.points.valueChanged.connect(self._tell)
        self.direction.currentIndexChanged.connect(self._tell)
        runner = bench.rig.sequencer
        runner.stepped.connect(self._step)
        runner.done.connect(self._done)
        runner.failed.connect(lambda text: self._say(text, "warn"))
        runner.ended.connect(self._ended)
        bench.rig.opened.connect(self.reload)
        self.reload()

    def reload(self) -> None:
        """Take over the limits of the rig."""
        limits = self.bench.rig.limits
        self.run_button.setEnabled(limits is not None)
        if limits is not None:
            for field in (self.low, self.high):
                field.setRange(max(limits.lowest_frequency, 0.001), min(limits.highest_frequency, 1e6))
            self.amplitude.setRange(0.0, limits.peak)
            self.tap.setVisible(self.bench.rig.can_tap)
        self._tell()

    def sequence(self) -> Sequence:
        """The plan that the fields describe."""
        import tomli_w

        table: dict[str, Any] = {
            "name": f"{self.low.read():g} to {self.high.read():g} Hz",
            "from": self.low.read(),
            "to": self.high.read(),
            "points": self.points.read(),
            "amplitude": self.amplitude.read(),
            "directions": self.direction.currentText(),
            "settle": self.settle.read(),
            "seconds": self.seconds.read(),
        }
        if self.tap.isChecked() and self.bench.rig.can_tap:
            table["tap"] = 1.0
        return sequence_from_text(tomli_w.dumps(table))

    def toggle(self) -> None:
        rig = self.bench.rig
        if rig.sequencer.running:
            rig.sequencer.stop()
            return
        name = datetime.now().strftime("sequence-%Y-%m-%d-%H%M%S")
        try:
            rig.run_sequence(self.sequence(), self.bench.settings.library_folder / name)
        except (ShakedownError, OSError) as error:
            self._say(str(error), "bad")
            return
        self.run_button.setText("Stop")
        self.pause_button.setEnabled(True)

    def pause(self) -> None:
        on = self.pause_button.isChecked()
        self.bench.rig.sequencer.pause(on)
        self.pause_button.setText("Go on" if on else "Pause")

    def _tell(self) -> None:
        if self.bench.rig.sequencer.running:
            return
        try:
            plan = self.sequence()
        except ShakedownError as error:
            self._say(str(error), "bad")
            return
        self._say(f"{counted(len(plan.steps), 'recording')}, {duration(plan.duration)} in all.", "small")

    def _step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))
        self._say(step.message, "small")

    def _done(self, paths: list[Path]) -> None:
        self._say(f"Done: {counted(len(paths), 'recording')} in {paths[0].parent.name}.", "good")
        self.bench.say(f"The sequence is done: {counted(len(paths), 'recording')}.", "good", "recordings")

    def _ended(self) -> None:
        self.bar.setValue(0)
        self.run_button.setText("Run")
        self.pause_button.setEnabled(False)
        self.pause_button.setChecked(False)
        self.pause_button.setText("Pause")

    def _say(self, text: str, role: str) -> None:
        self.plan.setText(sentence(text))
        set_role(self.plan, role)
