"""A whole recording, however long: an overview that refines itself where one zooms in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg

from app.desktop.plots.plot import Plot, axis_text
from app.desktop.theme import Theme
from app.desktop.widgets.basics import timer
from drivers.recording.lazy import Recording

LANES = 4  # drawn at once


class RecordView(Plot):
    """Lanes of a recording; only the envelope of the visible stretch is read from disk."""

    def __init__(self, theme: Theme, title: str = "Recording") -> None:
        super().__init__(theme, title, "time [s]", "")
        self.recording: Recording | None = None
        self._curves: list[Any] = []
        self._names: list[str] = []
        self.region: pg.LinearRegionItem | None = None
        self._later = timer(self, 15, self.refine, single=True)

    def show_recording(self, recording: Recording | None, channels: list[str] | None = None) -> None:
        """Draw a recording from its beginning to its end."""
        self.recording = recording
        self.clear_rows()
        self._curves, self.region = [], None
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
                self._shade(item, start, stop)
        self.items[0].setXRange(0, recording.duration, padding=0)
        self.items[0].sigXRangeChanged.connect(lambda *_: self._later.start())
        self.refine()
        if self.cross.isChecked():
            self._crosshair(True)

    def _shade(self, item: pg.PlotItem, start: int, stop: int) -> None:
        """Mark lost samples."""
        assert self.recording is not None
        colour = pg.mkColor(self.theme.colours.bad)
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
        rate, count = recording.rate, len(recording)
        start = int(np.clip(np.floor(left * rate) - 1, 0, count))
        stop = int(np.clip(np.ceil(right * rate) + 2, 0, count))
        if stop - start < 2:
            return
        pixels = max(200, int(self.items[0].getViewBox().width()))
        for curve, item, name in zip(self._curves, self.items, self._names, strict=True):
            if stop - start <= 3 * pixels:
                x, y = np.arange(start, stop) / rate, recording.values(name, start, stop)
            else:
                low, high = recording.envelope(name, start, stop, pixels)
                y = np.empty(2 * len(low))
                y[0::2], y[1::2] = low, high
                x = np.repeat((start + (stop - start) * (np.arange(len(low)) + 0.5) / len(low)) / rate, 2)
            curve.setData(x, y)
            bottom, top = np.fmin.reduce(y), np.fmax.reduce(y)
            if np.isfinite(bottom):
                margin = 0.08 * (top - bottom) + 1e-12 + 1e-6 * abs(top)
                item.setYRange(bottom - margin, top + margin, padding=0)

    def fit(self) -> None:
        if self.recording is not None:
            self.items[0].setXRange(0, self.recording.duration, padding=0)

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
