"""Orbits: the periodic orbits hidden in the record in hand, as small multiples."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import QSize
from PyQt6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from analysis import Estimate, Record, percent, with_error
from app.desktop.page import Page
from app.desktop.plots.closeup import CloseUp
from app.desktop.plots.orbit import OrbitTile
from app.desktop.plots.plot import Plot
from app.desktop.widgets.basics import Card, add_row, button, form, label, scrolled, sentence, set_role
from app.desktop.widgets.flow import FlowLayout
from app.desktop.widgets.holdpanel import HoldPanel
from app.desktop.widgets.number import Count, Number
from app.desktop.workbench import Workbench
from app.numbers import NumberError
from app.orbit_search import Space, find_orbits

TILES = 60  # shown at most
# channels that are no motion of the specimen: of its drive, and of the control loop of a rig
DRIVES = ("drive", "f", "force", "w", "y", "target", "correction", "loop")


class Returns(Plot):
    """How often the motion nearly repeats; it takes the height that is left, and asks for little."""

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.theme.px(190))


class OrbitsPage(Page):
    """Search above, counts by period, and the gallery below; a click includes or leaves out."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.space: Space | None = None
        self.found: Any = None
        self.shown: list[Any] = []  # the orbits of the tiles: confirmed ones first, then the others
        self.tiles: list[OrbitTile] = []
        self._looked_at = 0  # of the tiles: the one that is enlarged
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self._work(), "In the record")
        self.hold_panel = HoldPanel(bench)
        self.tabs.addTab(self.hold_panel, "Hold on the rig")
        missing = "Take a recording in hand to search it for periodic orbits."
        self.stack = self.or_nothing(self.tabs, "orbits", missing, "Recordings")
        self.body.addWidget(self.stack, 1)
        bench.record_changed.connect(self._record_changed)
        bench.restored.connect(self._restored)
        self._record_changed()
        self._restored()

    def _work(self) -> QWidget:
        theme = self.theme
        whole = QWidget()
        column = QHBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(10))
        side = QWidget()
        left = QVBoxLayout(side)
        left.setContentsMargins(0, 0, theme.px(2), 0)
        left.setSpacing(theme.px(10))
        search = Card(theme, "Search")
        fields = form(theme)
        self.channels = QComboBox()
        self.frequency = Number(0.0, 0.0, 1e9, "Hz", 4)
        self.longest = Count(10, 1, 50)
        self.epsilon = Number(0.0, 0.0, 20.0, "%", 2, empty="chosen by itself")
        add_row(theme, fields, "Motion from", self.channels, "Measured channels, or one channel and its past")
        add_row(theme, fields, "Drive", self.frequency, "Frequency of the drive; 0 for a system without one")
        add_row(theme, fields, "Longest", self.longest, "Longest orbit, in periods of the drive")
        add_row(
            theme,
            fields,
            "Closure",
            self.epsilon,
            "How closely an orbit must return, in % of the motion's size",
        )
        search.box.addLayout(fields)
        self.run_button = button(
            "Find orbits", self.run, "Search the record for near-repeats", "primary", "Ctrl+Return"
        )
        search.add(self.run_button)
        self.state = label("", "small", wrap=True)
        search.add(self.state)
        left.addWidget(search)
        self.histogram = Returns(
            theme,
            "Close returns",
            "period [drive periods]",
            "returns [–]",
            "How often the motion nearly repeats",
        )
        self.bars = pg.BarGraphItem(x=[], height=[], width=0.7, brush=theme.colours.data[0], pen=None)
        theme.changed.connect(lambda: self.bars.setOpts(brush=theme.colours.data[0]))
        self.histogram.item.addItem(self.bars)
        self.histogram.count_whole()
        left.addWidget(self.histogram, 1)
        scroll = scrolled(side)  # what was found takes many words: nothing is squeezed in a low window
        scroll.setFixedWidth(theme.px(310))
        column.addWidget(scroll)
        gallery = Card(theme, "Orbits", "Click an orbit to enlarge it, its box to include it")
        self.count = label("", "small")
        gallery.head.addWidget(self.count)
        self.all_button = button("All", lambda: self._include(True), "Include every confirmed orbit")
        self.none_button = button("None", lambda: self._include(False), "Leave every orbit out")
        gallery.head.addWidget(self.all_button)
        gallery.head.addWidget(self.none_button)
        self.grid = QWidget()
        self.flow = FlowLayout(theme.px(10))
        self.grid.setLayout(self.flow)
        self.close_up = CloseUp(theme)
        self.close_up.left.connect(lambda: self.views.setCurrentIndex(0))
        self.close_up.stepped.connect(lambda step: self._enlarge(self._looked_at + step))
        self.close_up.included.connect(lambda on: self.tiles[self._looked_at].setChecked(on))
        self.views = QStackedWidget()
        self.views.addWidget(scrolled(self.grid))
        self.views.addWidget(self.close_up)
        gallery.add(self.views, 1)
        column.addWidget(gallery, 1)
        return whole

    # -- the record

    def _record_changed(self) -> None:
        record = self.bench.record
        self.stack.setCurrentIndex(0 if record is None else 1)
        if record is None:
            return
        self.channels.clear()
        for names in motions(record.record):
            self.channels.addItem(
                " and ".join(names) if len(names) > 1 else f"{names[0]} and its past", names
            )
        self.leave_job()  # its orbits would be taken for orbits of this record
        self.run_button.setEnabled(True)
        drive = record.record.excitation
        self.frequency.setValue(drive.frequency if drive is not None else 0.0)
        self._show(None, None)
        self._say("", "small")

    def run(self) -> None:
        record = self.bench.record
        if record is None or self.job is not None:
            return
        names = self.channels.currentData()
        try:
            frequency, longest = self.frequency.read(), self.longest.read()
            epsilon = self.epsilon.read() / 100 or None
        except NumberError as error:
            self._say(str(error), "bad")
            return
        dimension, delay = self._embedding(names)
        self.job = job = self.bench.workers.run(
            "Finding orbits", find_orbits, record.record, names, dimension, delay, frequency,
            longest, epsilon,
        )  # fmt: skip
        job.stepped.connect(self.mine(job, lambda step: self._say(step.message, "small")))
        job.done.connect(self.mine(job, lambda answer: self._show(*answer)))
        job.failed.connect(self.mine(job, lambda text: self._say(text, "bad")))
        job.cancelled.connect(self.mine(job, lambda: self._say("Cancelled.", "small")))
        job.ended.connect(self.mine(job, self._ended))
        self.run_button.setEnabled(False)

    def _embedding(self, names: tuple[str, ...]) -> tuple[int | None, int | None]:
        """Dimension and delay of the channel as found on the Embed page; None: the search chooses."""
        chosen = self.bench.findings.get("embedding")
        if chosen is not None and names == (chosen.channel,):
            return chosen.dimension, chosen.delay
        return None, None

    def _ended(self) -> None:
        self.job = None
        self.run_button.setEnabled(True)

    # -- the gallery

    def _show(self, space: Space | None, found: Any) -> None:
        self.space, self.found = space, found
        while (item := self.flow.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        self.shown, self.tiles = [], []
        self.views.setCurrentIndex(0)
        self.bars.setOpts(x=[], height=[])
        if found is None or space is None:
            self._tell()
            return
        frame = _frame(space.points)
        self.shown = [*found.orbits, *found.unconfirmed][:TILES]
        for orbit in self.shown:
            piece = space.points[:, orbit.segment]
            tile = OrbitTile(self.theme, piece[0], piece[1], frame, _words(orbit, self._rate()))
            tile.setChecked(orbit.confirmed is not False)
            tile.toggled.connect(self._tell)
            tile.enlarge()
            tile.opened.connect(partial(self._enlarge, len(self.tiles)))
            self.flow.addWidget(tile)
            self.tiles.append(tile)
        period = self._rate() / self.frequency.value() if self.frequency.value() else self._rate()
        unit = "drive periods" if self.frequency.value() else "s"
        self.histogram.item.setLabel("bottom", f"period [{unit}]")
        heights = np.asarray(found.recurrences, dtype=float)
        lags = np.asarray(found.lags, dtype=float) / period
        width = 0.7 if self.frequency.value() else float(np.median(np.diff(lags))) if len(lags) > 1 else 1.0
        self.bars.setOpts(x=lags, height=heights, width=width)
        self.histogram.fit()
        if len(found) == 0:
            offered = ("none is offered", "not confirmed")
            reason = next((m for m in found.messages if any(word in m for word in offered)), "")
            self._say(
                reason or "No orbit was found. Ask for less closure, longer orbits, or record for longer.",
                "warn",
            )
        else:
            self._say(" ".join(found.messages), "small")
        self._tell()

    def _enlarge(self, number: int) -> None:
        """Show an orbit at full size in place of the gallery."""
        if self.space is None or not self.tiles:
            return
        self._looked_at = number % len(self.tiles)
        orbit = self.shown[self._looked_at]
        self.close_up.show_orbit(
            self.space.points[:, orbit.segment],
            self.space.labels,
            self._rate(),
            _words(orbit, self._rate()),
            self.tiles[self._looked_at].isChecked(),
        )
        self.views.setCurrentIndex(1)
        self.close_up.back.setFocus()

    def _rate(self) -> float:
        record = self.bench.record
        return record.record.rate if record is not None else 1.0

    def _include(self, on: bool) -> None:
        for orbit, tile in zip(self.shown, self.tiles, strict=True):
            tile.setChecked(on and orbit.confirmed is not False)

    def chosen(self) -> list[Any]:
        """The orbits that are included."""
        return [o for o, tile in zip(self.shown, self.tiles, strict=True) if tile.isChecked()]

    def _tell(self) -> None:
        """Count, and hand the chosen orbits on to later pages."""
        chosen = self.chosen()
        self.count.setText(f"{len(chosen)} of {len(self.tiles)} included" if self.tiles else "")
        if self.found is not None:
            self.bench.findings["orbits_found"] = (self.found, [tile.isChecked() for tile in self.tiles])
            self.bench.find("orbits", (self.space, chosen))

    def _restored(self) -> None:
        """Orbits of the last time, with the choice among them."""
        if "orbits" not in self.bench.findings or "orbits_found" not in self.bench.findings:
            return
        (space, _), (found, included) = self.bench.findings["orbits"], self.bench.findings["orbits_found"]
        self._show(space, found)
        for tile, on in zip(self.tiles, included, strict=False):
            tile.setChecked(on)

    def _say(self, text: str, role: str) -> None:
        self.state.setText(sentence(text))
        set_role(self.state, role)


def motions(record: Record) -> list[tuple[str, ...]]:
    """Ways to see the motion: the specimen's channels together, then each by itself with its past."""
    own = [n for n in record.names if n not in DRIVES] or list(record.names)
    together = [tuple(own)] if len(own) > 1 else []
    return [*together, *((name,) for name in own)]


def _frame(points: Any) -> tuple[float, float, float, float]:
    x, y = points[0], points[1]
    return float(np.nanmin(x)), float(np.nanmax(x)), float(np.nanmin(y)), float(np.nanmax(y))


def _words(orbit: Any, rate: float) -> tuple[str, ...]:
    """Period, closure and stability of an orbit."""
    period = (
        f"Period {orbit.multiple}" if orbit.multiple is not None else f"Period {orbit.period / rate:.4g} s"
    )
    stable = "not confirmed" if orbit.confirmed is False else "stability unknown"
    if len(orbit.multipliers):
        multiplier = Estimate.normal(orbit.multipliers[0].real, orbit.multiplier_stderr)
        stable = f"multiplier {with_error(multiplier)}"
    closure = f"closure {percent(orbit.closure)}, {orbit.count}×"
    return sentence(period), sentence(closure), sentence(stable)
