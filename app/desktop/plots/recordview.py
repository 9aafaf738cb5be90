"""A whole recording, however long: an overview that refines itself where one zooms in."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QMenu

from app.desktop.plots.plot import Plot, axis_text
from app.desktop.plots.samples import Behind, nearest
from app.desktop.theme import Theme
from app.desktop.widgets.basics import IconButton, timer
from drivers.recording.lazy import Recording

Samples = NDArray[np.float64]
LANES = 4  # drawn at once
OTHER = 6  # colour of the recording behind


class RecordView(Plot):
    """Lanes of a recording; only the envelope of the visible stretch is read from disk."""

    def __init__(self, theme: Theme, title: str = "Recording") -> None:
        super().__init__(theme, title, "time [s]", "")
        self.recording: Recording | None = None
        self._curves: list[Any] = []
        self._names: list[str] = []
        self.beside: Recording | None = None  # another one, drawn behind
        self._behind: list[tuple[Any, str] | None] = []  # for each lane: its curve, and the other's channel
        self.region: pg.LinearRegionItem | None = None
        self._later = timer(self, 15, self.refine, single=True)
        self.chooser = IconButton(theme, "tune", f"Channels that are drawn, {LANES} at a time")
        self.chooser.clicked.connect(self._offer_channels)
        self.chooser.hide()
        self.head.insertWidget(self.head.indexOf(self.cross), self.chooser)

    def show_recording(self, recording: Recording | None, channels: list[str] | None = None) -> None:
        """Draw a recording from its beginning to its end."""
        self.recording = recording
        self.clear_rows()
        self._curves, self._behind, self.region = [], [], None
        self.beside = None
        self.chooser.setVisible(recording is not None and len(recording.names) > LANES)
        if recording is None:
            self._names = []
            return
        self._names = (channels or list(recording.names))[:LANES]
        for row, name in enumerate(self._names):
            last = row == len(self._names) - 1
            item = self.add_row("time [s]" if last else "", axis_text(name, recording.unit(name)))
            if not last:
                item.getAxis("bottom").setStyle(showValues=False)
                item.getAxis("bottom").setHeight(0)
            item.setMouseEnabled(x=True, y=False)
            item.disableAutoRange()
            item.setLimits(xMin=0, xMax=recording.duration, minXRange=4 / recording.rate)
            self._curves.append(self.curve(item, row, name))
            for start, stop in recording.about.gaps.get(name, ())[:200]:
                self._shade(item, start, stop, self.theme.colours.bad)
            for start, stop in recording.about.clipped.get(name, ())[:200]:
                self._shade(item, start, stop, self.theme.colours.warn)
        self.markers.show([(m.index / recording.rate, m.text) for m in recording.about.markers])
        self.items[0].setXRange(0, recording.duration, padding=0)
        self.items[0].sigXRangeChanged.connect(lambda *_: self._later.start())
        self.refine()
        if self.cross.isChecked():
            self._crosshair(True)

    def _offer_channels(self) -> None:
        assert self.recording is not None
        menu = QMenu(self.chooser)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for name in self.recording.names:
            action = menu.addAction(name)
            assert action is not None
            action.setCheckable(True)
            action.setChecked(name in self._names)
            action.triggered.connect(partial(self.draw_channel, name))
        menu.popup(self.chooser.mapToGlobal(self.chooser.rect().bottomLeft()))

    def draw_channel(self, name: str, drawn: bool) -> None:
        """Draw a channel, or leave it out; where there is no room the uppermost one gives way."""
        recording, other = self.recording, self.beside
        assert recording is not None
        kept = [n for n in self._names if n != name]
        if not drawn and not kept:
            return
        chosen = {*kept[-(LANES - 1) :], name} if drawn else set(kept)
        (left, right), _ = self.items[0].getViewBox().viewRange()
        marked = self.region.getRegion() if self.region is not None else None
        self.show_recording(recording, [n for n in recording.names if n in chosen])
        if other is not None:
            self.show_beside(other)
        self.items[0].setXRange(left, right, padding=0)
        if marked is not None:
            self.select(True)
            assert self.region is not None
            self.region.setRegion(marked)
        self.refine()

    def show_beside(self, other: Recording | None) -> str:
        """Draw another recording behind this one, channel by channel, from its own beginning.

        Channels of equal name belong together; without any the first with the first. In words: what could
        not be drawn.
        """
        for item, behind in zip(self.items, self._behind, strict=False):
            if behind is not None:
                item.removeItem(behind[0])
        self._behind, self.beside = [], other
        recording = self.recording
        if recording is None or other is None:
            self.refine()
            return ""
        shared = set(self._names) & set(other.names)
        left_out = []
        for place, (item, name) in enumerate(zip(self.items, self._names, strict=True)):
            theirs = name if shared else other.names[place] if place < len(other.names) else ""
            if theirs not in other.names:
                self._behind.append(None)
            elif other.unit(theirs) != recording.unit(name):
                left_out.append(f"{theirs} is in {other.unit(theirs) or 'no unit'}")
                self._behind.append(None)
            else:
                curve = self.curve(item, OTHER, "beside")
                curve.setZValue(-1)
                self._behind.append((curve, theirs))
        longest = max(recording.duration, other.duration)
        for item in self.items:
            item.setLimits(xMin=0, xMax=longest, minXRange=4 / recording.rate)
        self.items[0].setXRange(0, longest, padding=0)
        self.refine()
        return "; ".join(left_out)

    def _shade(self, item: pg.PlotItem, start: int, stop: int, shade: str) -> None:
        """Mark lost or clipped samples."""
        assert self.recording is not None
        colour = pg.mkColor(shade)
        colour.setAlpha(70)
        rate = self.recording.rate
        band = pg.LinearRegionItem(
            (start / rate, stop / rate), movable=False, brush=colour, pen=pg.mkPen(colour)
        )
        item.addItem(band, ignoreBounds=True)

    def refine(self) -> None:
        """Read and draw the visible stretch at one bin per pixel."""
        recording = self.recording
        if recording is None or not self.items:
            return
        (left, right), _ = self.items[0].getViewBox().viewRange()
        pixels = max(200, int(self.items[0].getViewBox().width()))
        for lane, (curve, item, name) in enumerate(zip(self._curves, self.items, self._names, strict=True)):
            x, y = _drawn(recording, name, left, right, pixels)
            curve.setData(x, y)
            curve.behind = _samples(recording, name)
            behind = self._behind[lane] if lane < len(self._behind) else None
            if behind is not None and self.beside is not None:
                other = _drawn(self.beside, behind[1], left, right, pixels)
                behind[0].setData(*other)
                behind[0].behind = _samples(self.beside, behind[1])
                y = np.concatenate([y, other[1]])
            bottom, top = (np.fmin.reduce(y), np.fmax.reduce(y)) if len(y) else (np.nan, np.nan)
            if np.isfinite(bottom):
                margin = 0.08 * (top - bottom) + 1e-12 + 1e-6 * abs(top)
                item.setYRange(bottom - margin, top + margin, padding=0)

    def read(self, item: pg.PlotItem, x: float, y: float) -> str:
        """Time and the value of every lane there, of the nearest sample."""
        recording = self.recording
        if recording is None:
            return ""
        words: list[str] = []
        for curve, name in zip(self._curves, self._names, strict=True):
            found = nearest(curve, x)
            if found is not None:
                words = words or [f"t = {found[0]:.6g} s"]
                value = f"{found[1]:.4g} {recording.unit(name)}".rstrip()
                words.append(f"{name} {value if np.isfinite(found[1]) else 'lost'}")
        return "   ".join(words)

    def fit(self) -> None:
        if self.recording is not None:
            longest = max(r.duration for r in (self.recording, self.beside) if r is not None)
            self.items[0].setXRange(0, longest, padding=0)

    def select(self, on: bool) -> None:
        """Offer a stretch to be dragged with the mouse."""
        if self.region is not None:
            self.items[0].removeItem(self.region)
            self.region = None
        if on and self.recording is not None and self.items:
            (left, right), _ = self.items[0].getViewBox().viewRange()
            colour = pg.mkColor(self.theme.colours.accent)
            colour.setAlpha(40)
            width = right - left
            self.region = pg.LinearRegionItem(
                (left + 0.25 * width, right - 0.25 * width),
                brush=colour,
                pen=pg.mkPen(self.theme.colours.accent, width=3),
                bounds=(0, self.recording.duration),
            )
            self.items[0].addItem(self.region, ignoreBounds=True)

    def selected(self) -> tuple[int, int] | None:
        """Samples of the stretch that is marked."""
        if self.region is None or self.recording is None:
            return None
        left, right = self.region.getRegion()
        return round(left * self.recording.rate), round(right * self.recording.rate)


def _samples(recording: Recording, name: str) -> Behind:
    """The samples behind a lane, read from disk when they are asked for."""
    return Behind(0.0, 1 / recording.rate, len(recording), partial(recording.values, name))


def _drawn(
    recording: Recording, name: str, left: float, right: float, pixels: int
) -> tuple[Samples, Samples]:
    """Times and values of a stretch in seconds: every sample, or the envelope at one bin per pixel."""
    rate, count = recording.rate, len(recording)
    start = int(np.clip(np.floor(left * rate) - 1, 0, count))
    stop = int(np.clip(np.ceil(right * rate) + 2, 0, count))
    if stop - start < 2:
        return np.empty(0), np.empty(0)
    if stop - start <= 3 * pixels:
        return np.arange(start, stop) / rate, recording.values(name, start, stop)
    low, high = recording.envelope(name, start, stop, pixels)
    y = np.empty(2 * len(low))
    y[0::2], y[1::2] = low, high
    return np.repeat((start + (stop - start) * (np.arange(len(low)) + 0.5) / len(low)) / rate, 2), y
