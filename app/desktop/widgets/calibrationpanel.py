"""Calibration in the window: a sound card's volts, and a sensor's volts to its unit, step by step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from PyQt6.QtCore import QSize, Qt, pyqtSignal
from PyQt6.QtGui import QHideEvent
from PyQt6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from analysis import DataError, ShakedownError
from app import calibration
from app.calibration import Calibration, Listener, Samples
from app.desktop.opening import rig_paths
from app.desktop.rigfile import keep_text
from app.desktop.widgets.basics import (
    Card,
    add_row,
    button,
    form,
    label,
    progress_bar,
    scrolled,
    set_role,
    timer,
)
from app.desktop.widgets.number import Number
from app.desktop.workbench import Workbench
from app.numbers import localised, number_text
from app.words import with_minus
from drivers.base.protocols import Block
from drivers.base.waveform import Sine
from drivers.rig.calibration import StaticPoint
from drivers.rig.profile import RigProfile

CARD, MOTION, VALUES = range(3)
WAYS = ("A sound card's volts", "A sensor on a calibrator", "A sensor at known values")
SECONDS = 2.0  # to listen for
PATIENCE = 30.0  # s for the drive to rise and for the samples to come
HOW = (
    "Put a voltmeter at the output, which is also wired to the loop-back channel. A tone is played; type "
    "what the voltmeter shows.",
    "Put the sensor on a motion of known size, such as a hand-held calibrator, and switch that on; the drive "
    "is off.",
    "Bring the sensor to values that are known, such as gauge blocks or weights, one after the other, and "
    "take a point at each; the drive is off.",
)


class CalibrationPanel(Card):
    """What is to be calibrated, its steps, and what was found; kept in the profile when a person says so."""

    saved = pyqtSignal(str)  # name of the profile that holds it

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.theme)
        self.bench = bench
        self._profile: RigProfile | None = None
        self._listener: Listener | None = None
        self._then: Callable[[Samples], object] = lambda _: None
        self._tone: Sine | None = None  # that this panel plays
        self._heard: Samples | None = None  # of the tone
        self._points: list[StaticPoint] = []
        self.found: Calibration | None = None
        self.way = QComboBox()
        self.way.addItems(WAYS)
        self.way.setCurrentIndex(MOTION)
        self.way.currentIndexChanged.connect(lambda _: self._begin_anew())
        self.channel = QComboBox()
        self.channel.currentIndexChanged.connect(lambda _: self._begin_anew())
        fields = form(bench.theme)
        add_row(bench.theme, fields, "Calibrate", self.way)
        add_row(bench.theme, fields, "Channel", self.channel, "The sensor that is to be calibrated")
        self._fields: QFormLayout = fields
        self.how = label("", "muted", wrap=True)
        self.steps = _Steps()
        for step in (self._card_step(), self._motion_step(), self._values_step()):
            self.steps.addWidget(step)
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, bench.theme.px(6), 0)
        column.addLayout(fields)
        column.addWidget(self.how)
        column.addWidget(self.steps, 1)
        self.add(scrolled(inner), 1)
        self.progress = progress_bar(100)
        self.add(self.progress)
        row = QHBoxLayout()
        self.words = label("", "small", wrap=True)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.keep_button = button(
            "Keep in the rig", self.keep, "Write it into the profile, with the date, and open the rig with it"
        )
        row.addWidget(self.words, 1)
        row.addWidget(self.keep_button, 0, Qt.AlignmentFlag.AlignBottom)
        self.box.addLayout(row)
        self._watch = timer(self, 100, self._look)
        self._waited = 0.0
        bench.feed.advanced.connect(self._take)
        bench.rig.closed.connect(self._begin_anew)
        self._begin_anew()

    # -- the steps

    def _card_step(self) -> QWidget:
        self.frequency = Number(100.0, 1.0, 1e5, "Hz", 2)
        self.level = Number(10.0, 0.1, 100.0, "% of full scale", 1)
        self.volts = Number(0.0, 0.0, 1000.0, "V rms", 5, empty="while the tone plays")
        rows = form(self.bench.theme)
        add_row(self.bench.theme, rows, "Tone", self.frequency)
        add_row(
            self.bench.theme, rows, "Level", self.level, "Of what the output can do; the rig's limits hold"
        )
        add_row(self.bench.theme, rows, "Voltmeter", self.volts, "What it shows at the output, V rms")
        self.play_button = button("Play the tone", self.play, "Ramp the tone up and listen", "primary")
        self.take_volts = button("Take", self.read_voltmeter, "End the tone and take the reading")
        return _step(rows, self.play_button, self.take_volts)

    def _motion_step(self) -> QWidget:
        self.known = Number(0.0, 0.0, 1e9, "rms", 6, empty="must be given")
        self.at = Number(0.0, 0.0, 1e6, "Hz", 3, empty="the strongest")
        rows = form(self.bench.theme)
        add_row(self.bench.theme, rows, "Motion", self.known, "Its size, rms, in the channel's unit")
        add_row(self.bench.theme, rows, "Frequency", self.at, "Of the motion; empty: the strongest")
        self.listen_button = button(
            "Listen", self.listen, f"Listen to the sensor for {SECONDS:g} s", "primary"
        )
        return _step(rows, self.listen_button)

    def _values_step(self) -> QWidget:
        self.value = Number(0.0, -1e9, 1e9, "", 6)
        rows = form(self.bench.theme)
        add_row(self.bench.theme, rows, "Value", self.value, "Where the sensor is now, in its unit")
        self.point_button = button(
            "Take a point", self.take_point, f"Average the reading over {SECONDS:g} s", "primary"
        )
        self.clear_button = button("Clear", self._begin_anew, "Forget the points")
        whole = _step(rows, self.point_button, self.clear_button)
        self.points = QTableWidget(0, 3)
        self.points.setAccessibleName("Points of the calibration")
        self.points.setHorizontalHeaderLabels(["Value", "Reading", "Spread (rms)"])
        header, side = self.points.horizontalHeader(), self.points.verticalHeader()
        assert header is not None and side is not None
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        side.hide()
        self.points.setShowGrid(False)
        self.points.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        box = whole.layout()
        assert isinstance(box, QVBoxLayout)
        box.insertWidget(2, self.points, 1)
        return whole

    # -- which rig, which channel

    def show_profile(self, profile: RigProfile | None) -> None:
        """The rig that is chosen on the page."""
        self._profile = profile
        self.channel.clear()
        self.channel.addItems([c.name for c in profile.channels] if profile is not None else [])
        if profile is not None:
            card = profile.instruments["source"].get("driver") == "sound"
            self.way.setCurrentIndex(CARD if card else MOTION)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Nothing is found yet; a tone of this panel ends."""
        self._silence("the calibration was left")
        self._stop_listening()
        self._heard, self.found = None, None
        self._points = []
        self.points.setRowCount(0)
        way = self.way.currentIndex()
        self.steps.setCurrentIndex(way)
        self.steps.updateGeometry()
        self.how.setText(HOW[way])
        self._fields.setRowVisible(self.channel, way != CARD)
        unit = self._unit()
        self.known.set_unit(f"{unit} rms".strip())
        self.value.set_unit(unit)
        self._say("")
        self._follow()

    def _unit(self) -> str:
        row, profile = self.channel.currentIndex(), self._profile
        return profile.channels[row].unit if profile is not None and 0 <= row < len(profile.channels) else ""

    def _follow(self) -> None:
        busy = self._listener is not None
        plays = self._tone is not None
        self.play_button.setEnabled(not busy and not plays)
        self.take_volts.setEnabled(plays and self._heard is not None)
        self.volts.setEnabled(plays)
        for part in (self.listen_button, self.point_button, self.clear_button):
            part.setEnabled(not busy)
        self.keep_button.setEnabled(self.found is not None and not busy)
        if not busy:
            self.progress.setValue(0)

    def _open_profile(self) -> RigProfile:
        """The chosen rig's profile, if it is the one that runs."""
        rig = self.bench.rig
        if self._profile is None or rig.name != self._profile.key or not rig.running:
            raise DataError("Open this rig first: it is calibrated by its running signal.")
        if rig.recording or rig.sequencer.running:
            raise DataError("A recording is being made: stop it first.")
        return self._profile

    def _quiet_profile(self) -> RigProfile:
        profile = self._open_profile()
        if self.bench.rig.drive().playing:
            raise DataError("Stop the drive first: the sensor is to feel what is known, and nothing else.")
        return profile

    # -- a card's volts

    def play(self) -> None:
        """Play the tone and listen to the loop-back."""

        def begin() -> None:
            profile = self._open_profile()
            tone = calibration.card_tone(profile, self.level.read() / 100, self.frequency.read())
            if self.bench.rig.drive().playing:
                raise DataError("Stop the drive first.")
            self.bench.rig.play(tone)
            self.found, self._heard, self._tone = None, None, tone
            self._listen(self._tone_heard, tone)
            self._say("The tone rises …")

        self._try(begin)

    def _tone_heard(self, heard: Samples) -> None:
        assert self._profile is not None and self._tone is not None
        calibration.check_card(self._profile, self._tone, heard, self.bench.rig.rate)
        self._heard = heard
        self._say("The tone plays and is clean. Type what the voltmeter shows.")
        self.volts.setEnabled(True)
        self.volts.setFocus()

    def read_voltmeter(self) -> None:
        """Take the voltmeter's reading and end the tone."""
        tone, heard, profile = self._tone, self._heard, self._profile
        if tone is None or heard is None or profile is None or not self.volts.apply():
            return
        self._silence("the voltmeter is read")
        self._try(
            lambda: self._show(
                calibration.card_volts(profile, tone, self.volts.value(), heard, self.bench.rig.rate)
            )
        )

    def _silence(self, reason: str) -> None:
        """End the tone, if it is ours and plays."""
        tone, self._tone = self._tone, None
        if tone is not None and self.bench.rig.limits is not None:
            self.bench.rig.end_drive(reason)

    # -- a sensor

    def listen(self) -> None:
        """Listen to a sensor on a known motion."""

        def begin() -> None:
            profile, name = self._quiet_profile(), self.channel.currentText()
            calibration.check_sensor(profile, name)
            known, at = self.known.read(), self.at.read() or None
            if not known > 0:
                raise DataError("Say how large the known motion is (rms, in the channel's unit).")
            rate = self.bench.rig.rate
            self._listen(
                lambda heard: self._show(
                    Calibration(sensor=calibration.by_known_motion(profile, name, known, heard, rate, at))
                )
            )
            self._say("Listening …")

        self._try(begin)

    def take_point(self) -> None:
        """Average the sensor's reading at a known value."""

        def begin() -> None:
            profile, name = self._quiet_profile(), self.channel.currentText()
            calibration.check_sensor(profile, name, standing=True)
            value = self.value.read()
            self._listen(
                lambda heard: self._take_point(
                    profile, name, calibration.standing_point(profile, name, value, heard)
                )
            )
            self._say("Listening …")

        self._try(begin)

    def _take_point(self, profile: RigProfile, name: str, point: StaticPoint) -> None:
        self._points.append(point)
        row = self.points.rowCount()
        self.points.setRowCount(row + 1)
        texts = (number_text(point.value, 6), f"{point.reading:.5g}", f"{point.spread:.2g}")
        for column, text in enumerate(texts):
            item = QTableWidgetItem(with_minus(localised(text)))
            item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            self.points.setItem(row, column, item)
        if len({point.value for point in self._points}) < 2:
            self._say("One more value at least: bring the sensor to it, and take a point there.")
            return
        self._show(Calibration(sensor=calibration.by_known_values(profile, name, self._points)))

    # -- listening

    def _listen(self, then: Callable[[Samples], object], tone: Sine | None = None) -> None:
        rig = self.bench.rig
        names = [c.name for c in rig.channels]
        self._listener, self._then, self._waited = Listener(names, round(SECONDS * rig.rate), tone), then, 0.0
        self._watch.start()
        self._follow()

    def _stop_listening(self) -> None:
        self._listener = None
        self._watch.stop()

    def _take(self, blocks: list[Block]) -> None:
        """Samples that have come while something is listened to."""
        listener = self._listener
        if listener is None:
            return

        def take() -> None:
            listener.take(blocks)
            self.progress.setValue(round(100 * listener.count / listener.wanted))
            heard = listener.samples()
            if heard is not None:
                self._stop_listening()
                self._then(heard)

        self._try(take)

    def _look(self) -> None:
        """End what will never come: the drive was stopped, or nothing arrives."""
        self._waited += 0.1
        rig = self.bench.rig
        latched = self._tone is not None and rig.drive_status().state in ("latched", "tripped")
        if latched or self._waited > PATIENCE + SECONDS:
            words = "The drive was stopped" if latched else "The tone did not become steady"
            self._fail(f"{words}: nothing was calibrated.")

    def _try(self, action: Callable[[], object]) -> None:
        """What cannot be is said; a tone of this panel ends then."""
        try:
            action()
        except ShakedownError as error:
            self._fail(str(error))
        else:
            self._follow()

    def _fail(self, words: str) -> None:
        self._silence("the calibration failed")
        self._stop_listening()
        self._say(words, "warn")
        self._follow()

    # -- what was found

    def _show(self, found: Calibration) -> None:
        assert self._profile is not None
        self.found = found
        self._say(localised("\n".join(found.words(self._profile))), "good")

    def keep(self) -> None:
        """Write what was found into the profile and open the rig with it."""
        profile, found = self._profile, self.found
        if profile is None or found is None:
            return
        path = rig_paths().get(profile.key, profile.folder / f"{profile.key}.toml")

        def write() -> None:
            from drivers.base.files import read_text

            key = keep_text(path, found.text(read_text(path, "a rig profile"), date.today().isoformat()))
            self.bench.say(f"The calibration is kept in the rig {key}.", "good")
            self.saved.emit(key)
            self.bench.settings.rig = key
            self.bench.rig.open(key)

        self._try(write)

    def _say(self, words: str, role: str = "small") -> None:
        self.words.setText(with_minus(words))
        set_role(self.words, role)

    def hideEvent(self, event: QHideEvent | None) -> None:
        """A tone that nobody watches ends."""
        super().hideEvent(event)
        if self._tone is not None:
            self._fail("The page was left while the tone played: nothing was calibrated.")


class _Steps(QStackedWidget):
    """As high as the step in view, and not as the highest."""

    def minimumSizeHint(self) -> QSize:
        step = self.currentWidget()
        return QSize() if step is None else step.minimumSizeHint()


def _step(rows: QFormLayout, *buttons: QWidget) -> QWidget:
    """Fields, and the buttons of a step below them."""
    whole = QWidget()
    box = QVBoxLayout(whole)
    box.setContentsMargins(0, 0, 0, 0)
    box.addLayout(rows)
    row = QHBoxLayout()
    for part in buttons:
        row.addWidget(part)
    row.addStretch(1)
    box.addLayout(row)
    box.addStretch(1)
    return whole
