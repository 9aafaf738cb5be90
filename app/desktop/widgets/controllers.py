"""The electronics beside a sensor, such as a laser vibrometer's: range, decoder, filters, signal strength.

Instruments on serial lines take their time, so they are asked in a thread; the answers come as signals.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtGui import QHideEvent, QShowEvent
from PyQt6.QtWidgets import QComboBox, QHBoxLayout, QVBoxLayout, QWidget

from analysis import ShakedownError
from app.desktop.rigdesk import Commands
from app.desktop.rigfile import keep
from app.desktop.widgets.basics import (
    Card,
    Empty,
    Lamp,
    add_row,
    button,
    form,
    label,
    progress_bar,
    scrolled,
    set_role,
    timer,
)
from app.desktop.workbench import Workbench
from drivers.base.protocols import InstrumentError, SensorController, Setting

POLL = 1000  # ms between two looks at the signal
WEAK = 0.2  # strength below which the sensor loses its signal now and then
SI = {"m": 1.0, "mm": 1e-3, "um": 1e-6, "µm": 1e-6, "nm": 1e-9}
NOTHING = (
    "This rig has no sensor controllers. That of a laser vibrometer is added to the profile as a table "
    "[instruments.NAME] with its driver and port."
)


def volts_per_unit(one_volt: tuple[float, str], unit: str) -> float:
    """V for one unit of a channel, when one volt means so much in SI: (0.01, "m/s") and mm/s give 0.1."""
    value, measured = one_volt
    quantity, slash, rest = unit.partition("/")
    if quantity not in SI or slash + rest != measured.removeprefix("m"):
        raise InstrumentError(
            f"the channel's unit is '{unit or 'none'}', but the controller measures {measured}: "
            "change the unit in the table of channels and save."
        )
    return SI[quantity] / value


class ControllersPanel(QWidget):
    """One card for each controller of the rig that is open."""

    saved = pyqtSignal(str)  # name of the profile that was written

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench = bench
        self.cards: dict[str, ControllerCard] = {}
        inside = QWidget()
        self._column = QVBoxLayout(inside)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(bench.theme.px(10))
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        self._area = scrolled(inside)
        self.empty = Empty(bench.theme, "rig", NOTHING)
        box.addWidget(self._area)
        box.addWidget(self.empty)
        bench.rig.opened.connect(self._rebuild)
        bench.rig.closed.connect(self._clear)
        self._rebuild()

    def _rebuild(self) -> None:
        self._clear()
        rig = self.bench.rig.rig
        controllers = rig.rig.controllers if rig is not None and rig.rig is not None else {}
        for name, controller in controllers.items():
            card = ControllerCard(self.bench, name, controller)
            card.saved.connect(self.saved)
            self.cards[name] = card
            self._column.addWidget(card)
        self._column.addStretch(1)
        self._area.setVisible(bool(controllers))
        self.empty.setVisible(not controllers)

    def _clear(self) -> None:
        for card in self.cards.values():
            card.end()
        self.cards.clear()
        while (item := self._column.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        self._area.hide()
        self.empty.show()


class Desk(QObject):
    """Asks one instrument in a thread of its own and tells what it answered."""

    answered = pyqtSignal(str, object)  # what was asked, the answer
    refused = pyqtSignal(str, str)  # what was asked, one sentence

    def __init__(self) -> None:
        super().__init__()
        self._commands = Commands(lambda text: None)

    def ask(self, what: str, call: Callable[[], object]) -> None:
        """Of several waiting questions of the same kind only the newest is asked."""

        def work() -> None:
            with contextlib.suppress(RuntimeError):  # the window may be gone
                try:
                    self.answered.emit(what, call())
                except ShakedownError as error:
                    self.refused.emit(what, str(error))

        self._commands.put(what, work)

    def end(self) -> None:
        self._commands.end()


class ControllerCard(Card):
    """One controller: what it is, its settings, its signal, and the channel that it belongs to."""

    saved = pyqtSignal(str)

    def __init__(self, bench: Workbench, name: str, controller: SensorController) -> None:
        super().__init__(bench.theme, name.replace("_", " ").capitalize())
        self.bench, self.name, self.controller = bench, name, controller
        theme = bench.theme
        self.identity = label("Asking the instrument …", "muted", wrap=True)
        self.add(self.identity)
        self._form = form(theme)
        self.boxes: dict[str, QComboBox] = {}
        self.box.addLayout(self._form)
        self.strength = progress_bar(100)
        self.strength_text = label("–", "small")
        self.strength_text.setMinimumWidth(theme.px(44))
        self.lamp = Lamp(theme, "Red and square: the decoder is overdriven, choose a larger range")
        row = QHBoxLayout()
        row.addWidget(self.strength, 1)
        row.addWidget(self.strength_text)
        row.addWidget(self.lamp)
        signal = QWidget()
        row.setContentsMargins(0, 0, 0, 0)
        signal.setLayout(row)
        add_row(theme, self._form, "Signal", signal, "How much light comes back, and whether it overloads")
        self.channel = QComboBox()
        self.channel.addItems([c.name for c in bench.rig.channels])
        belongs = self._table().get("channel")
        if belongs:
            self.channel.setCurrentText(str(belongs))
        else:
            self.channel.setCurrentIndex(self._likely())
        self.use = button(
            "Use for channel", self.apply, "Set the channel's sensitivity by the range; kept in the profile"
        )
        self.use.setEnabled(False)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.channel, 1)
        row.addWidget(self.use)
        feeds = QWidget()
        feeds.setLayout(row)
        add_row(theme, self._form, "Feeds", feeds, "The channel that its output is connected to")
        self.meaning, self.state = label("", "small", wrap=True), label("", "small", wrap=True)
        self.add(self.meaning)
        self.add(self.state)
        self._one_volt: tuple[float, str] | None = None
        self.channel.currentTextChanged.connect(lambda _: self._compare())
        self._desk = Desk()
        self._desk.answered.connect(self._hear)
        self._desk.refused.connect(self._refused)
        self._poll = timer(self, POLL, self._look)
        self._desk.ask("identity", controller.identify)
        self._ask_settings()

    def end(self) -> None:
        self._poll.stop()
        self._desk.end()

    def showEvent(self, event: QShowEvent | None) -> None:
        self._look()
        self._poll.start()

    def hideEvent(self, event: QHideEvent | None) -> None:
        self._poll.stop()

    def _table(self) -> Mapping[str, Any]:
        rig = self.bench.rig.rig
        profile = rig.profile if rig is not None else None
        return profile.instruments.get(self.name, {}) if profile is not None else {}

    def _likely(self) -> int:
        """The channel whose sensor sounds like this instrument."""
        words = ("vibrometer", "laser")
        sensors = [c.sensor.lower() for c in self.bench.rig.channels]
        return next((i for i, text in enumerate(sensors) if any(w in text for w in words)), 0)

    # -- asking

    def _ask_settings(self) -> None:
        self._desk.ask("settings", self.controller.settings)
        self._desk.ask("sensitivity", self.controller.sensitivity)

    def _look(self) -> None:
        self._desk.ask("strength", self.controller.signal_strength)
        self._desk.ask("over range", self.controller.over_range)

    def choose(self, name: str, value: str) -> None:
        """Change a setting; what the instrument really took is read back."""
        if self.bench.rig.recording:
            self._say("A recording is being made: its sensitivity must not change on the way.", "warn")
            self._ask_settings()
            return
        self._say(f"Setting the {name} to {value} …", "small")
        self._desk.ask(f"set {name}", partial(self.controller.set, name, value))
        self._ask_settings()

    # -- answers

    def _hear(self, what: str, answer: Any) -> None:
        if what == "identity":
            self.identity.setText(str(answer))
        elif what == "settings":
            self._show_settings(answer)
        elif what == "strength":
            self._show_strength(float(answer))
        elif what == "over range":
            self.lamp.show_state("bad" if answer else "good")
        elif what == "sensitivity":
            self._one_volt = answer
            self._compare()
        else:
            self._say(f"The {what.removeprefix('set ')} is set.", "good")

    def _refused(self, what: str, text: str) -> None:
        if what == "strength":
            self.strength.setValue(0)
            self.strength_text.setText("–")
            self.strength_text.setToolTip(text)
            return
        if what == "over range":
            self.lamp.show_state("off")
            return
        if what == "identity":
            self.identity.setText("The instrument does not say who it is.")
        self._say(text, "bad")

    def _show_settings(self, settings: Mapping[str, Setting]) -> None:
        for name, setting in settings.items():
            if name not in self.boxes:
                box = QComboBox()
                box.textActivated.connect(partial(self.choose, name))
                self.boxes[name] = box
                words = label(name.capitalize())
                words.setMinimumHeight(self.bench.theme.px(34))  # as high as its field
                words.setBuddy(box)
                self._form.insertRow(len(self.boxes) - 1, words, box)
                box.setAccessibleName(name)
            box = self.boxes[name]
            choices = list(dict.fromkeys([*setting.choices, setting.value]))
            if [box.itemText(i) for i in range(box.count())] != choices:
                box.clear()
                box.addItems(choices)
            box.setCurrentText(setting.value)
            box.setEnabled(len(choices) > 1)
            box.setToolTip("" if len(choices) > 1 else "This part can be set on the instrument only")

    def _show_strength(self, strength: float) -> None:
        self.strength.setValue(round(100 * strength))
        self.strength_text.setText(f"{100 * strength:.0f} %")
        set_role(self.strength_text, "small" if strength >= WEAK else "bad")
        self.strength_text.setToolTip(
            "Enough light comes back" if strength >= WEAK else "Too little light comes back: focus, or tape"
        )

    # -- the channel

    def _compare(self) -> None:
        """Does the channel count with what one volt means now?"""
        if self._one_volt is None:
            return
        value, unit = self._one_volt
        meaning = f"1 V means {value:g} {unit}"
        channel = self._channel()
        self.use.setEnabled(channel is not None)
        if channel is None:
            self._mean(f"{meaning}.", "small")
            return
        try:
            wanted = volts_per_unit(self._one_volt, channel.unit)
        except InstrumentError as error:
            self._mean(f"{meaning}; {error}", "warn")
            return
        if abs(wanted / channel.sensitivity - 1) < 1e-6:
            self.use.setEnabled(False)
            self._mean(f"{meaning}, and channel {channel.name} counts with it.", "good")
        else:
            self._mean(
                f"{meaning}, but channel {channel.name} counts with {channel.sensitivity:g} V per "
                f"{channel.unit} instead of {wanted:g}.",
                "warn",
            )

    def _channel(self) -> Any:
        rig = self.bench.rig.rig
        channels = rig.profile.channels if rig is not None and rig.profile is not None else ()
        return next((c for c in channels if c.name == self.channel.currentText()), None)

    def apply(self) -> None:
        """Write the sensitivity into the profile and open the rig with it."""
        channel, rig = self._channel(), self.bench.rig
        if channel is None or self._one_volt is None:
            return
        if rig.recording:
            self._say("A recording is being made: its sensitivity must not change on the way.", "warn")
            return
        try:
            values = {
                "sensitivity": float(f"{volts_per_unit(self._one_volt, channel.unit):.9g}"),
                "calibrated": date.today().isoformat(),
            }
            key = keep(rig.name, channel.name, values, self.name)
        except (ShakedownError, OSError) as error:
            self._say(f"The sensitivity could not be kept: {error}", "bad")
            return
        text = f"{channel.name} counts with {values['sensitivity']:g} V per {channel.unit}"
        self.bench.say(f"{text}, kept in the rig {key}.", "good")
        self.saved.emit(key)
        self.bench.settings.rig = key
        rig.open(key)

    def _mean(self, text: str, role: str) -> None:
        self.meaning.setText(text)
        set_role(self.meaning, role)

    def _say(self, text: str, role: str) -> None:
        self.state.setText(text)
        set_role(self.state, role)
