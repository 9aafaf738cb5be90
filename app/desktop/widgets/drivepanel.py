"""The shaker's drive: waveform, frequency, amplitude, ramps; inside the limits of the rig."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QComboBox, QHBoxLayout, QSlider, QStackedWidget, QWidget

from analysis.base.errors import ShakedownError
from app.desktop.widgets.basics import Card, Number, add_row, button, form, label, progress_bar
from app.desktop.workbench import Workbench
from drivers.base.limits import Limits
from drivers.base.protocols import DriveState
from drivers.base.waveform import BurstRandom, Multisine, RandomNoise, Sine, Sweep, Waveform

TICKS = 1000  # of a slider


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
    Kind("Random", RandomNoise.kind, "Noise between two frequencies", (_LOW, _HIGH), RandomNoise),
    Kind(
        "Burst random",
        BurstRandom.kind,
        "Noise for half of each period, then silence",
        (_LOW, _HIGH, Field("period", "Every", "s", "Time from burst to burst", 4.0)),
        BurstRandom,
    ),
)


class DrivePanel(Card):
    """Everything about the excitation. Nothing here can exceed the limits: they sit in the driver."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.theme, "Drive", "What the shaker does")
        self.bench, self.rig = bench, bench.rig
        theme = bench.theme
        self.state_label = label("off", "small")
        self.head.addWidget(self.state_label)
        self.kind = QComboBox()
        self.kind.setToolTip("Kind of excitation")
        self.kind.addItems([k.words for k in KINDS])
        for i, k in enumerate(KINDS):
            self.kind.setItemData(i, k.tip, Qt.ItemDataRole.ToolTipRole)
        self.kind.currentIndexChanged.connect(self._kind_chosen)
        self.add(self.kind)
        self.frequency = Number(7.5, 0.01, 1e6, "Hz", 3)
        self.amplitude = Number(0.0, 0.0, 1e6, "V", 4)
        self.frequency.setToolTip("Frequency of the drive; glides without a jump")
        self.amplitude.setToolTip("Peak of the drive; ramps without a jump")
        self.frequency_slider, self.amplitude_slider = self._slider("Frequency"), self._slider("Amplitude")
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
        self.start = button("Start drive", self.toggle, "Ramp up softly, or ramp down", "primary", "Ctrl+D")
        self.tap = button("Tap", self._tap, "Give the specimen a short knock to move it to another motion")
        row = QHBoxLayout()
        row.addWidget(self.start, 1)
        row.addWidget(self.tap)
        self.box.addLayout(row)
        self.frequency.valueChanged.connect(self._changed)
        self.amplitude.valueChanged.connect(self._changed)
        self.frequency_slider.sliderMoved.connect(lambda v: self._slid(self.frequency, v))
        self.amplitude_slider.sliderMoved.connect(lambda v: self._slid(self.amplitude, v))
        self.rig.opened.connect(self.reload)
        self._playing = False
        self._kind_chosen(0)
        self.setEnabled(False)

    def _slider(self, name: str) -> QSlider:
        slider = QSlider(Qt.Orientation.Horizontal)
        slider.setRange(0, TICKS)
        slider.setAccessibleName(name)
        slider.setToolTip(f"{name}: drag")
        return slider

    def _fields(self, kind: Kind) -> QWidget:
        page = QWidget()
        rows = form(self.bench.theme)
        rows.setContentsMargins(0, 0, 0, 0)
        own: dict[str, Number] = {}
        if kind.make is KINDS[0].make:
            add_row(self.bench.theme, rows, "Frequency", self.frequency)
            rows.addRow(self.frequency_slider)
        for f in kind.fields:
            own[f.name] = Number(f.part, 0.001, 1e6, f.unit, 3)
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
        self.amplitude.setSuffix(f" {self.rig.unit}")
        for kind, own in zip(KINDS, self._own, strict=True):
            for f in kind.fields:
                if f.unit == "Hz":
                    own[f.name].setRange(0.001 if f.name == "spacing" else low, high)
                    own[f.name].setValue(low + f.part * (high - low))
        self.limit_label.setText(
            f"Limits of this rig: {limits.peak:.4g} {self.rig.unit}, {low:.3g} to {high:.4g} Hz"
        )
        self.tap.setVisible(self.rig.can_tap)
        rig = self.rig.rig
        if rig is not None and rig.drive is not None:
            self.show_waveform(rig.drive)

    def follow(self, drive: DriveState) -> None:
        """Show what the exciter does now; called with every frame."""
        self.ramp.setValue(round(100 * drive.level))
        if drive.playing != self._playing or not drive.playing:
            self._playing = drive.playing
            self.start.setText("Stop drive" if drive.playing else "Start drive")
        words = drive.waveform if drive.playing else (drive.reason or "off")
        if self.state_label.toolTip() != words:
            self.state_label.setToolTip(words)
            room = self.state_label.fontMetrics()
            width = self.bench.theme.px(150)  # a long reason must not widen the panel
            self.state_label.setText(room.elidedText(words, Qt.TextElideMode.ElideRight, width))

    def show_waveform(self, waveform: Waveform) -> None:
        """Fill the fields with a waveform, without touching the drive."""
        values = waveform.describe()
        index = next((i for i, k in enumerate(KINDS) if k.kind == values["kind"]), None)
        if index is None:
            return
        self.kind.setCurrentIndex(index)
        boxes = {"amplitude": self.amplitude, "frequency": self.frequency, **self._own[index]}
        for name, box in boxes.items():
            if name in values:
                box.blockSignals(True)
                box.setValue(values[name])
                box.blockSignals(False)
        self._place_sliders()

    # -- acting

    def waveform(self) -> Waveform:
        """The waveform that the fields describe."""
        kind = KINDS[self.kind.currentIndex()]
        own = self._own[self.kind.currentIndex()]
        if kind is KINDS[0]:
            return kind.make(self.amplitude.value(), frequency=self.frequency.value())
        return kind.make(self.amplitude.value(), **{name: box.value() for name, box in own.items()})

    def toggle(self) -> None:
        """Start the drive, or ramp it down."""
        if self._playing:
            self.rig.stop("stopped by you")
            return
        try:
            self.rig.play(self.waveform())
        except ShakedownError as error:
            self.bench.say(str(error), "bad")

    def _kind_chosen(self, index: int) -> None:
        self.stack.setCurrentIndex(index)
        for i in range(self.stack.count()):  # the card is only as tall as the waveform in view needs
            page = self.stack.widget(i)
            assert page is not None
            policy = page.sizePolicy()
            policy.setVerticalPolicy(policy.Policy.Preferred if i == index else policy.Policy.Ignored)
            page.setSizePolicy(policy)

    def _changed(self) -> None:
        self._place_sliders()
        if self._playing and self.kind.currentIndex() == 0:
            try:
                self.rig.change(self.frequency.value(), self.amplitude.value())
            except ShakedownError as error:
                self.bench.say(str(error), "bad")

    def _slid(self, box: Number, tick: int) -> None:
        box.setValue(box.minimum() + (box.maximum() - box.minimum()) * tick / TICKS)

    def _place_sliders(self) -> None:
        for box, slider in ((self.frequency, self.frequency_slider), (self.amplitude, self.amplitude_slider)):
            if not slider.isSliderDown():
                span = box.maximum() - box.minimum()
                slider.setValue(round(TICKS * (box.value() - box.minimum()) / span) if span else 0)

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
