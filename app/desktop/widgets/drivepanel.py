"""The shaker's drive: waveform, frequency, amplitude, ramps; inside the limits of the rig."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QWheelEvent
from PyQt6.QtWidgets import QComboBox, QFileDialog, QHBoxLayout, QMessageBox, QSlider, QStackedWidget, QWidget

from analysis import ShakedownError
from app.desktop.widgets.basics import Card, add_row, button, form, label, progress_bar
from app.desktop.widgets.number import Number
from app.desktop.workbench import Workbench
from app.numbers import localised
from drivers.base.limits import Limits
from drivers.base.protocols import DriveState
from drivers.base.waveform import BurstRandom, Multisine, OddMultisine, RandomNoise, Sine, Sweep, Waveform
from drivers.rig.drive_file import load_drive

TICKS = 1000  # of a slider
LATCHED = "The drive was stopped: arm it first, with the button at the top."
SLIDER_DIGITS = 3  # decimals of a number set by a slider


@dataclass(frozen=True)
class Field:
    """One number of a waveform beside its amplitude."""

    name: str
    words: str
    unit: str
    tip: str
    part: float  # where in the allowed band (frequencies) or how many seconds it starts


@dataclass(frozen=True)
class Kind:
    """One entry of the list of waveforms."""

    words: str
    kind: str  # the waveform's own name
    tip: str
    fields: tuple[Field, ...]
    make: Callable[..., Waveform]


_LOW = Field("lowest", "From", "Hz", "Lowest frequency", 0.0)
_HIGH = Field("highest", "To", "Hz", "Highest frequency", 0.5)
KINDS = (
    Kind(
        "Sine",
        Sine.kind,
        "One steady frequency; it glides when changed",
        (),
        lambda a, frequency: Sine(a, frequency),
    ),
    Kind(
        "Sweep",
        Sweep.kind,
        "Frequency moves from one end to the other",
        (
            Field("start", "From", "Hz", "Frequency at the start", 0.0),
            Field("stop", "To", "Hz", "Frequency at the end", 0.5),
            Field("seconds", "Over", "s", "Duration of the sweep", 60.0),
        ),
        Sweep,
    ),
    Kind(
        "Multisine",
        Multisine.kind,
        "Many frequencies at once, periodic",
        (_LOW, _HIGH, Field("spacing", "Every", "Hz", "Distance of the lines", 0.02)),
        Multisine,
    ),
    Kind(
        "Odd multisine",
        OddMultisine.kind,
        "Only odd lines, some left out: shows how nonlinear the specimen is",
        (_LOW, _HIGH, Field("spacing", "Every", "Hz", "Distance of two lines of the grid", 0.005)),
        OddMultisine,
    ),
    Kind("Random", RandomNoise.kind, "Noise between two frequencies", (_LOW, _HIGH), RandomNoise),
    Kind(
        "Burst random",
        BurstRandom.kind,
        "Noise for half of each period, then silence",
        (_LOW, _HIGH, Field("period", "Every", "s", "Time from burst to burst", 4.0)),
        BurstRandom,
    ),
)


class DriveSlider(QSlider):
    """A slider that the hand drags or the keys move; the wheel scrolls the panel instead."""

    moved = pyqtSignal(float)  # by a person, to this part of the way

    def __init__(self, name: str) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setRange(0, TICKS)
        self.setPageStep(TICKS // 50)  # a click beside the handle is a small step
        self.setAccessibleName(name)
        self.setToolTip(f"{name}: drag, or use the arrow keys; acts at once")
        self.valueChanged.connect(lambda tick: self.moved.emit(tick / TICKS))

    def place(self, part: float) -> None:
        """Show where the number is, without moving it."""
        if not self.isSliderDown():
            self.blockSignals(True)
            self.setValue(round(TICKS * part))
            self.blockSignals(False)

    def wheelEvent(self, event: QWheelEvent | None) -> None:
        if event is not None:
            event.ignore()


class DrivePanel(Card):
    """Everything about the excitation. Nothing here can exceed the limits: they sit in the driver.

    What is typed or chosen reaches the shaker by Enter, Apply or Start; sliders and arrow keys act at once.
    """

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.theme)  # its tab is its heading
        self.bench, self.rig = bench, bench.rig
        theme = bench.theme
        self.kind = QComboBox()
        self.kind.setToolTip("Kind of excitation")
        self.kind.setAccessibleName("Kind of excitation")
        self.kind.addItems([k.words for k in KINDS])
        for i, k in enumerate(KINDS):
            self.kind.setItemData(i, k.tip, Qt.ItemDataRole.ToolTipRole)
        self.kind.currentIndexChanged.connect(self._kind_chosen)
        self.plan = button("Plan …", self._choose_plan, "Play the drive of a file that `plan` has written")
        row = QHBoxLayout()
        row.addWidget(self.kind, 1)
        row.addWidget(self.plan)
        self.box.addLayout(row)
        self.frequency = Number(7.5, 0.01, 1e6, "Hz", 3, drives=True)
        self.amplitude = Number(0.0, 0.0, 1e6, "V", 4, drives=True)
        self.frequency.setToolTip("Frequency of the drive; glides without a jump. Enter applies it.")
        self.amplitude.setToolTip("Peak of the drive; ramps without a jump. Enter applies it.")
        self.frequency_slider, self.amplitude_slider = DriveSlider("Frequency"), DriveSlider("Amplitude")
        self.stack = QStackedWidget()
        self._own: list[dict[str, Number]] = []
        for k in KINDS:
            self.stack.addWidget(self._fields(k))
        self.add(self.stack)
        level = form(theme)
        add_row(theme, level, "Amplitude", self.amplitude)
        self.box.addLayout(level)
        self.add(self.amplitude_slider)
        self.limit_label = label("", "small", wrap=True)
        self.add(self.limit_label)
        self.ramp = progress_bar(100)
        self.ramp.setToolTip("Soft start and stop: how far the ramp has come")
        self.add(self.ramp)
        self.hint = label("", "warn", wrap=True)
        self.add(self.hint)
        self.apply_button = button("Apply", self.apply, "Play what is typed and chosen here", "primary")
        self.add(self.apply_button)
        self.start = button("Start drive", self.toggle, "Ramp up softly, or ramp down", "primary", "Ctrl+D")
        self.tap = button("Tap", self._tap, "Give the specimen a short knock to move it to another motion")
        row = QHBoxLayout()
        row.addWidget(self.start, 1)
        row.addWidget(self.tap)
        self.box.addLayout(row)
        self._played: dict[str, Any] = {}  # the waveform that was asked for last, as it describes itself
        self._playing = False
        self._connect()
        self._kind_chosen(0)
        self.setEnabled(False)

    def _connect(self) -> None:
        self.frequency.valueChanged.connect(lambda value: self._changed(frequency=value))
        self.amplitude.valueChanged.connect(lambda value: self._changed(amplitude=value))
        for name, (box, slider) in zip(("frequency", "amplitude"), self._sliders(), strict=True):
            slider.moved.connect(partial(self._slid, name, box))
        for box in (self.frequency, self.amplitude, *(b for own in self._own for b in own.values())):
            box.edited.connect(self._show_unapplied)
        self.rig.opened.connect(self.reload)
        self.rig.drive_changed.connect(lambda _: self.follow(self.rig.drive()))

    def show_sliders(self, on: bool) -> None:
        """Without them the panel is lower: numbers and arrow keys do the same."""
        for _, slider in self._sliders():
            slider.setVisible(on)

    def _sliders(self) -> tuple[tuple[Number, DriveSlider], ...]:
        return (self.frequency, self.frequency_slider), (self.amplitude, self.amplitude_slider)

    def _fields(self, kind: Kind) -> QWidget:
        page = QWidget()
        rows = form(self.bench.theme)
        rows.setContentsMargins(0, 0, 0, 0)
        own: dict[str, Number] = {}
        if kind is KINDS[0]:
            add_row(self.bench.theme, rows, "Frequency", self.frequency)
            rows.addRow(self.frequency_slider)
        for f in kind.fields:
            own[f.name] = Number(f.part, 0.001, 1e6, f.unit, 3, drives=True)
            add_row(self.bench.theme, rows, f.words, own[f.name], f.tip)
        page.setLayout(rows)
        self._own.append(own)
        return page

    # -- following the rig

    def reload(self) -> None:
        """Take over the limits of the rig."""
        limits = self.rig.limits
        self.setEnabled(limits is not None)
        if limits is None:
            self.limit_label.setText("This rig has no shaker.")
            return
        low, high = _band(limits)
        self.frequency.setRange(low, high)
        self.amplitude.setRange(0.0, limits.peak)
        self.amplitude.set_unit(self.rig.unit)
        for kind, own in zip(KINDS, self._own, strict=True):
            for f in kind.fields:
                if f.unit == "Hz":
                    own[f.name].setRange(0.001 if f.name == "spacing" else low, high)
                    own[f.name].setValue(float(f"{low + f.part * (high - low):.3g}"))
        self.limit_label.setText(
            localised(f"Limits of this rig: {limits.peak:.4g} {self.rig.unit}, {low:.3g} to {high:.4g} Hz")
        )
        self.tap.setVisible(self.rig.can_tap)
        rig = self.rig.rig
        if rig is not None and rig.drive is not None:
            self.show_waveform(rig.drive)

    def follow(self, drive: DriveState) -> None:
        """Show what the exciter does now; called with every frame."""
        status = self.rig.drive_status()
        self.ramp.setValue(round(100 * drive.level))
        if status.driving != self._playing:
            self._playing = status.driving
            self.start.setText("Stop drive" if status.driving else "Start drive")
        self.start.setEnabled(not status.latched)
        self.start.setToolTip(LATCHED if status.latched else "Ramp up softly, or ramp down (Ctrl+D)")
        self._show_unapplied()

    def show_waveform(self, waveform: Waveform) -> None:
        """Fill the fields with a waveform, without touching the drive."""
        self._played = values = waveform.describe()
        index = next((i for i, k in enumerate(KINDS) if k.kind == values["kind"]), None)
        if index is None:
            return
        self.kind.setCurrentIndex(index)
        boxes = {"amplitude": self.amplitude, "frequency": self.frequency, **self._own[index]}
        for name, box in boxes.items():
            if name in values:
                self._put(box, values[name])
        self._place_sliders()

    def _put(self, box: Number, value: float) -> None:
        """Show a number that the drive has already."""
        box.blockSignals(True)
        box.setValue(value)
        box.blockSignals(False)
        self._place_sliders()

    # -- what is typed and chosen, and not applied

    def _boxes(self) -> tuple[Number, ...]:
        """The numbers of the waveform in view."""
        own = self._own[self.kind.currentIndex()].values()
        return (self.amplitude, *own) if self.kind.currentIndex() else (self.amplitude, self.frequency)

    def unapplied(self) -> str:
        """Why the fields do not show what the shaker does, in words; empty if they do."""
        if not self._playing:
            return ""
        now, chosen = self.rig.drive_status().waveform, KINDS[self.kind.currentIndex()].kind
        if now not in ("", "none", chosen):
            return f"The shaker still plays {now}. Apply changes it to {chosen}."
        if any(box.pending for box in self._boxes()):
            return "The shaker has not been told yet."
        if self.kind.currentIndex() and self._played.get("kind") == chosen:
            values = {"amplitude": self.amplitude, **self._own[self.kind.currentIndex()]}
            if any(self._played.get(name, box.value()) != box.value() for name, box in values.items()):
                return f"The shaker still plays the {chosen} from before."
        return ""

    def _show_unapplied(self) -> None:
        words = self.unapplied()
        if self.hint.text() != words or self.apply_button.isHidden() == bool(words):
            self.hint.setText(words)
            self.hint.setVisible(bool(words))
            self.apply_button.setVisible(bool(words))

    # -- acting

    def waveform(self) -> Waveform:
        """The waveform that the fields describe; NumberError if one of them cannot be read."""
        kind = KINDS[self.kind.currentIndex()]
        own = self._own[self.kind.currentIndex()]
        if kind is KINDS[0]:
            return kind.make(self.amplitude.read(), frequency=self.frequency.read())
        return kind.make(self.amplitude.read(), **{name: box.read() for name, box in own.items()})

    def toggle(self) -> None:
        """Start the drive, or ramp it down."""
        if self._playing:
            self.rig.end_drive("stopped by you")
            return
        self._play()

    def apply(self) -> None:
        """Have the shaker do what is typed and chosen here."""
        if self._glides():  # a sine goes on without a pause
            for box in self._boxes():
                box.apply()
        else:
            self._play()

    def _choose_plan(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Play a plan", str(Path.home()), "Drives (*.toml)")
        if name:
            self.play_plan(Path(name))

    def play_plan(self, file: Path) -> None:
        """Play the drive of a file, as `shakedown plan --out` writes it, and say how long to record."""
        try:
            plan = load_drive(file)
            if self._playing and not self._confirmed(plan.waveform.amplitude):
                return
            self.rig.play(plan.waveform)
        except ShakedownError as error:
            self.bench.say(str(error), "bad")
            return
        self._played = plan.waveform.describe()
        length = "" if plan.seconds is None else f" Record {plan.seconds:g} s of it."
        self.bench.say(f"{plan.name or file.stem} plays.{length}", "good")

    def _play(self) -> None:
        try:
            waveform = self.waveform()
            if self._playing and not self._confirmed(waveform.amplitude):
                return
            self.rig.play(waveform)
        except ShakedownError as error:
            self.bench.say(str(error), "bad")
        else:
            self._played = waveform.describe()

    def _glides(self) -> bool:
        """Whether what plays is the sine in view, which can be changed while it plays."""
        sine = KINDS[0].kind
        return self._playing and self.kind.currentIndex() == 0 and self.rig.drive_status().waveform == sine

    def _kind_chosen(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        for i in range(self.stack.count()):  # the card is only as tall as the waveform in view needs
            page = self.stack.widget(i)
            assert page is not None
            policy = page.sizePolicy()
            policy.setVerticalPolicy(policy.Policy.Preferred if i == index else policy.Policy.Ignored)
            page.setSizePolicy(policy)
        self._show_unapplied()

    def _changed(self, **value: float) -> None:
        """A number was applied by Enter or an arrow key: on to the shaker, if it plays a sine."""
        if self._glides():
            if self._confirmed(value.get("amplitude", 0.0)):
                self._change(**value)
            else:
                self._put(self.amplitude, self.rig.drive_status().amplitude)
        self._place_sliders()
        self._show_unapplied()

    def _change(self, **value: float) -> None:
        """Only what was changed goes to the shaker: the rest may be somebody else's, as a test tone is."""
        try:
            self.rig.change(**value)
        except ShakedownError as error:
            self.bench.say(str(error), "bad")

    def _confirmed(self, wanted: float) -> bool:
        """Ask before a running drive is more than doubled, above the threshold of the rig's profile."""
        limits, now = self.rig.limits, self.rig.drive_status().amplitude
        if limits is None or not limits.is_big_step(now, wanted):
            return True
        unit = self.rig.unit
        question = QMessageBox(self)
        question.setObjectName("big step")
        question.setIcon(QMessageBox.Icon.Warning)
        question.setWindowTitle("A big step")
        times = f"{wanted / now:.2g} times as much" if now else "from nothing"
        step = f"From {now:.4g} {unit} to {wanted:.4g} {unit}: {times}."
        question.setText(localised(f"{step} Drive the shaker so hard?"))
        question.addButton(localised(f"Ramp up to {wanted:.4g} {unit}"), QMessageBox.ButtonRole.AcceptRole)
        keep = question.addButton(localised(f"Keep {now:.4g} {unit}"), QMessageBox.ButtonRole.RejectRole)
        question.setDefaultButton(keep)
        question.setEscapeButton(keep)
        question.exec()
        question.deleteLater()
        return (
            question.clickedButton() is not keep and self.rig.drive_status().driving
        )  # STOP may have been pressed

    def _slid(self, name: str, box: Number, part: float) -> None:
        """A slider acts at once; the driver ramps, so that it needs no question."""
        self._put(box, round(box.minimum() + (box.maximum() - box.minimum()) * part, SLIDER_DIGITS))
        if self._glides():
            self._change(**{name: box.value()})
        self._show_unapplied()

    def _place_sliders(self) -> None:
        for box, slider in self._sliders():
            span = box.maximum() - box.minimum()
            slider.place((box.value() - box.minimum()) / span if span else 0.0)

    def _tap(self) -> None:
        try:
            self.rig.tap()
        except ShakedownError as error:
            self.bench.say(str(error), "bad")


def _band(limits: Limits) -> tuple[float, float]:
    """Frequencies to offer; an open end becomes something a slider can show."""
    low = max(limits.lowest_frequency, 0.01)
    high = limits.highest_frequency if limits.highest_frequency < 1e9 else 1000.0
    return low, high
