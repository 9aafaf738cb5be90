"""The rig tests itself: a small tone is played and every sensor must hear it."""

from __future__ import annotations

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QHBoxLayout, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from analysis import ShakedownError, ToneResponse, tone_response
from app.desktop.widgets.basics import Card, Lamp, add_row, button, form, label, progress_bar, timer
from app.desktop.widgets.channelstrip import value_text
from app.desktop.widgets.number import Number
from app.desktop.workbench import Workbench
from app.numbers import localised
from app.words import with_minus
from drivers.base.waveform import Sine

HEADINGS = ("", "Channel", "Level", "Offset", "Noise", "Delay", "Verdict")
DELAY = HEADINGS.index("Delay")
ROUNDED = 0.01  # of the noise: a mean below it is what is left of rounding
SETTLE = 1.5  # s after the ramp, if the rig's profile asks for no more
STARTING = 10.0  # s that the drive may take to begin
PERIODS = 20


class SelfTest(Card):
    """Plays a tone far below the limits; shows level, offset, noise and delay of each sensor."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.theme, "", "")
        self.bench, theme = bench, bench.theme
        self.frequency = Number(10.0, 0.01, 1e6, "Hz", 2)
        self.part = Number(5.0, 0.1, 50.0, "% of the limit", 1)
        fields = form(theme)
        add_row(theme, fields, "Tone", self.frequency, "Frequency of the test tone")
        add_row(
            theme, fields, "Strength", self.part, "Amplitude of the tone; the drive's limits hold as always"
        )
        row = QHBoxLayout()
        row.addLayout(fields, 1)
        self.start = button("Run the self-test", self.run, "Play the tone and check every sensor", "primary")
        row.addSpacing(theme.px(16))
        row.addWidget(self.start, 0, Qt.AlignmentFlag.AlignBottom)
        self.box.addLayout(row)
        self.progress = progress_bar(100)
        self.add(self.progress)
        self.words = label("Plays a small tone and checks that every sensor hears it.", "muted", wrap=True)
        self.add(self.words)
        self.table = QTableWidget(0, len(HEADINGS))
        self.table.setAccessibleName("What each sensor heard")
        self.table.setHorizontalHeaderLabels(list(HEADINGS))
        header, side = self.table.horizontalHeader(), self.table.verticalHeader()
        assert header is not None and side is not None
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)  # the lamp
        self.table.setColumnWidth(0, theme.px(38))
        header.setSectionResizeMode(len(HEADINGS) - 1, QHeaderView.ResizeMode.Stretch)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        side.hide()
        side.setDefaultSectionSize(theme.px(38))
        self.table.setShowGrid(False)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.add(self.table, 1)
        self.verdicts: dict[str, str] = {}
        self._from: int | None = None  # first sample of the tone in its steady state
        self._asked = 0  # samples there were when the tone was asked for
        self._heard = False  # a drive has been playing since
        self._chosen = self._tested = ""  # rigs: the one shown on the page, and the one that was heard
        self._watch = timer(self, 100, self._look)

    def show_rig(self, name: str) -> None:
        """The rig that is chosen on the page: what was heard on another one is not shown under its name."""
        self._chosen = name
        for part in (self.table, self.words, self.progress):
            part.setVisible(self._tested in ("", name))

    def run(self) -> None:
        """Play the tone; the drive that ran before is ramped down by the driver."""
        rig = self.bench.rig
        if rig.limits is None or not rig.running:
            self.bench.say("Open a rig with a shaker first.", "warn")
            return
        if rig.name != self._chosen:  # nobody shakes a rig that is not the one in view
            self.bench.say(f"Open this rig first: the tone would play on {rig.title}.", "warn")
            return
        try:
            rig.play(Sine(rig.limits.peak * self.part.read() / 100, self.frequency.read()))
        except ShakedownError as error:
            self.bench.say(str(error), "bad")
            return
        self._tested = self._chosen
        self.show_rig(self._chosen)
        self.start.setEnabled(False)
        self.table.setRowCount(0)
        self.verdicts = {}
        self._from, self._asked, self._heard = None, self.bench.feed.ring.stop, False
        self.words.setText("Waiting for the motion to settle …")
        self._watch.start()

    def _look(self) -> None:
        """Wait for the steady tone, then for enough of it."""
        rig, feed = self.bench.rig, self.bench.feed
        drive = rig.drive()
        if not rig.running or not (drive.playing or self._awaits_drive()):
            if rig.drive_status().driving:  # nobody may be left with a tone that is said to be over
                rig.end_drive("the self-test was given up")
            self._end("The self-test was stopped.")
            return
        self._heard = self._heard or drive.playing
        ours = drive.waveform == "sine" and abs(drive.frequency - self.frequency.value()) < 1e-6
        if self._from is None:
            if ours and drive.steady:
                profile = rig.rig.profile if rig.rig is not None else None
                settle = max(SETTLE, profile.settle if profile is not None else 0.0)
                self._from = feed.ring.stop + round(settle * rig.rate)
            return
        wanted = max(round(PERIODS * rig.rate / self.frequency.value()), round(rig.rate))
        have = feed.ring.stop - self._from
        self.progress.setValue(round(100 * max(0.0, have / wanted)))
        if have < wanted:
            self.words.setText("Listening …" if have > 0 else "Waiting for the motion to settle …")
            return
        data = feed.ring.between(self._from, self._from + wanted)
        rig.end_drive("the self-test is over")
        self._show(data)

    def _awaits_drive(self) -> bool:
        """Whether the drive may still be on its way: the instrument takes its time to begin."""
        return not self._heard and self.bench.feed.ring.stop - self._asked < STARTING * self.bench.rig.rate

    def _show(self, data: np.ndarray) -> None:
        rig = self.bench.rig
        names = [c.name for c in rig.channels]
        reference = names.index("drive") if "drive" in names else len(names) - 1
        self._name_reference(names[reference])
        self.table.setRowCount(len(names))
        for r, (info, signal) in enumerate(zip(rig.channels, data, strict=True)):
            good = np.isfinite(signal)
            if good.sum() < 10:
                self._row(r, info.name, "", "", "", "", "no samples", "bad")
                continue
            found = tone_response(signal, data[reference], rig.rate, self.frequency.value())
            words, state = verdict(found, info.lower, info.upper, signal)
            self._row(
                r,
                info.name,
                value_text(found.amplitude, info.unit),
                value_text(found.offset if abs(found.offset) > ROUNDED * found.noise else 0.0, info.unit),
                value_text(found.noise, info.unit),
                localised(f"{1e3 * found.delay:z.2f} ms"),
                words,
                state,
            )
        bad = [n for n, v in self.verdicts.items() if not v.startswith("good")]
        self._end("Every sensor hears the tone." if not bad else f"Look at: {', '.join(bad)}.")

    def _name_reference(self, name: str) -> None:
        """Say after which channel the others are late."""
        self.table.setHorizontalHeaderItem(DELAY, QTableWidgetItem(f"Delay after {name}"))

    def _row(self, row: int, name: str, *cells: str) -> None:
        *texts, state = cells
        lamp = Lamp(self.bench.theme)
        lamp.show_state(state)
        cell = QWidget()
        middle = QHBoxLayout(cell)
        middle.setContentsMargins(self.bench.theme.px(6), 0, 0, 0)
        middle.addWidget(lamp)
        self.table.setCellWidget(row, 0, cell)
        for column, text in enumerate((name, *texts), 1):
            self.table.setItem(row, column, QTableWidgetItem(with_minus(text)))
        self.verdicts[name] = texts[-1]

    def _end(self, words: str) -> None:
        self._watch.stop()
        self.start.setEnabled(True)
        self.progress.setValue(0)
        self.words.setText(words)


def verdict(found: ToneResponse, lower: float, upper: float, signal: np.ndarray) -> tuple[str, str]:
    """What a response means, in words, and the colour of its lamp."""
    span = upper - lower
    if np.nanmax(signal) >= upper or np.nanmin(signal) <= lower:
        return "overloaded: lower the gain or the tone", "bad"
    if not found.clear:
        return "no response: check the cable and the sensor's power", "bad"
    if np.isfinite(span) and abs(found.offset - 0.5 * (lower + upper)) > 0.25 * span:
        return "far from the middle of its range: null it", "warn"
    if np.isfinite(span) and found.amplitude < 1e-4 * span:
        return "very small for its range: choose a smaller range", "warn"
    if found.distortion > 0.3:
        return "good, but strongly distorted: the specimen or the sensor is not linear here", "good"
    return "good", "good"
