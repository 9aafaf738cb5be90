"""Live scope: one lane for each channel, drawn as an envelope so that no peak can vanish."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtGui import QResizeEvent

from analysis import RollingEnvelope
from app.desktop.feed import Feed
from app.desktop.plots.plot import Plot, axis_text
from app.desktop.plots.samples import Behind, nearest
from app.desktop.theme import Theme
from drivers.base.protocols import Block, Samples

LOW = 70  # height of a lane below which its label would not fit
AHEAD = 5.0  # s that a marker may be before the samples that are shown
LEAST = 1e-3  # of the measuring range: the smallest span of an axis


class Scope(Plot):
    """The last seconds of the chosen channels. Frozen, the picture stays and can be zoomed to the samples."""

    def __init__(self, theme: Theme, feed: Feed, seconds: float) -> None:
        super().__init__(
            theme, "Signals", "time [s]", "", "The last seconds of each channel, newest at the right"
        )
        self.feed = feed
        self.seconds = seconds
        self.shown: list[int] = []
        self.frozen = False
        self._curves: list[Any] = []
        self._envelope = RollingEnvelope(1, 16, 1)
        self._x: Samples = np.empty(0)
        self._ranges: list[tuple[float, float]] = []
        self._frozen_data = np.empty((0, 0))
        self._marked: dict[tuple[int, int], str] = {}  # sample of the stream and number: word, oldest first
        feed.rig.marked.connect(self._mark)
        feed.restarted.connect(self._marked.clear)

    # -- what is shown

    def show_channels(self, shown: list[int]) -> None:
        """One lane for each of these channels."""
        self.shown = shown
        self.clear_rows()
        self._curves = []
        self._ranges = []
        for row, index in enumerate(shown):
            info = self.feed.rig.channels[index]
            last = row == len(shown) - 1
            item = self.add_row("time before now [s]" if last else "", axis_text(info.name, info.unit))
            if not last:
                item.getAxis("bottom").setStyle(showValues=False)
                item.getAxis("bottom").setHeight(0)
            item.setMouseEnabled(x=True, y=True)
            item.disableAutoRange()
            item.setXRange(-self.seconds, 0, padding=0)
            self._curves.append(self.curve(item, index, info.name))
            self._ranges.append((0.0, 0.0))
        self._label_lanes()
        self._show_marked()
        self.rebuild()
        if self.cross.isChecked():
            self._crosshair(True)

    def _label_lanes(self) -> None:
        """In low lanes the name alone and fewer numbers: longer text would run into the next lane."""
        low = self.view.height() < self.theme.px(LOW) * max(len(self.shown), 1)
        if len(self.feed.rig.channels) <= max(self.shown, default=0):
            return  # the rig was let go
        for item, index in zip(self.items, self.shown, strict=False):
            info, axis = self.feed.rig.channels[index], item.getAxis("left")
            axis.setTickDensity(0.4 if low else 1.0)
            item.setLabel("left", info.name if low else axis_text(info.name, info.unit))

    def set_seconds(self, seconds: float) -> None:
        self.seconds = seconds
        for item in self.items:
            item.setXRange(-seconds, 0, padding=0)
        self.rebuild()

    def rebuild(self) -> None:
        """Start the envelope afresh at one bin per pixel and fill it with what the feed still holds."""
        rate = self.feed.rig.rate
        if not self.shown or rate <= 0:
            return
        pixels = max(200, int(self.items[0].getViewBox().width() or self.view.width()))
        samples = max(2, int(self.seconds * rate))
        width = max(1, samples // pixels)
        bins = max(2, int(np.ceil(samples / width)))
        self._envelope = RollingEnvelope(len(self.feed.rig.channels), bins, width)
        ring = self.feed.ring
        first = max(ring.stop - samples - width, ring.start)
        for part in ring.parts(first + -first % width, ring.stop):
            self._envelope.append(part)
        self._x = np.arange(1.0 - bins, 1.0) * (width / rate)
        self.draw()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._label_lanes()
        if not self.frozen:
            self.rebuild()

    # -- living

    def advance(self, blocks: list[Block]) -> None:
        """Take the new blocks in; cheap even while nothing is drawn."""
        if self.frozen or not self.shown:
            return
        for block in blocks:
            if block.lost:
                width = min(block.lost, self._envelope.width * len(self._x))
                self._envelope.append(np.full((len(block.data), width), np.nan))
            self._envelope.append(block.data)

    def draw(self) -> None:
        """One frame."""
        if self.frozen or not self.shown:
            return
        low, high = self._envelope.view()
        held = min(low.shape[1], -(-self._envelope.count // self._envelope.width))
        if held < 2:
            return
        low, high = low[:, -held:], high[:, -held:]  # bins not reached yet are not drawn
        plain = self._envelope.width == 1
        x = self._x[-held:] if plain else np.repeat(self._x[-held:], 2)
        for row, index in enumerate(self.shown):
            if plain:
                y = low[index]
            else:
                y = np.empty(2 * low.shape[1])
                y[0::2], y[1::2] = low[index], high[index]
            if np.isfinite(y).any():
                self._curves[row].setData(x, y)
                self._curves[row].behind = self._newest(index)
                self._follow(row, y)
        self._move_marked()
        if self.cursors is not None:
            self.cursors.read()

    # -- moments that are marked while recording

    def _mark(self, number: int, text: str, sample: int) -> None:
        """A marker was set, or has another word."""
        self._marked[sample, number] = text
        if not self.frozen:  # the picture that is held is of an earlier moment
            self._show_marked()

    def _show_marked(self) -> None:
        self.markers.show(list(zip(self._marked_at(), self._marked.values(), strict=True)))

    def _marked_at(self) -> list[float]:
        """Times of the markers, s; the newest sample is at 0."""
        newest = self.feed.ring.stop - 1
        return [(sample - newest) / self.feed.rig.rate for sample, _ in self._marked]

    def _move_marked(self) -> None:
        """Let the lines go with the samples; those that the feed holds no longer are forgotten."""
        if not self._marked:
            return
        first, last = self.feed.ring.start, self.feed.ring.stop + AHEAD * self.feed.rig.rate
        gone = [key for key in self._marked if not first <= key[0] <= last]  # or the stream began anew
        if gone:
            for key in gone:
                del self._marked[key]
            self._show_marked()
        self.markers.move(self._marked_at())

    def _newest(self, index: int) -> Behind:
        """The samples of a channel that the feed holds now, the newest at 0 s."""
        ring, first = self.feed.ring, self.feed.ring.start
        step, count = 1 / self.feed.rig.rate, ring.stop - first
        return Behind((1 - count) * step, step, count, lambda a, b: ring.between(first + a, first + b, index))

    def _follow(self, row: int, y: Any) -> None:
        """Keep the vertical range around the signal; widen at once, narrow only when much too wide."""
        with np.errstate(all="ignore"):
            low, high = np.fmin.reduce(y), np.fmax.reduce(y)
        if not np.isfinite(low):
            return
        span = max(high - low, self._least(row), 1e-6 * abs(high))
        bottom, top = self._ranges[row]
        if top <= bottom or low < bottom or high > top or span < 0.4 * (top - bottom):
            middle, half = 0.5 * (low + high), 0.62 * span
            self._ranges[row] = (middle - half, middle + half)
            self.items[row].setYRange(*self._ranges[row], padding=0)

    def _least(self, row: int) -> float:
        """The smallest span drawn: a channel that only hisses must not look as if it moved."""
        channels, index = self.feed.rig.channels, self.shown[row]
        span = channels[index].upper - channels[index].lower if index < len(channels) else np.inf
        return LEAST * span if np.isfinite(span) else 1e-9

    def fit(self) -> None:
        for row, item in enumerate(self.items):
            item.setXRange(-self.seconds, 0, padding=0)
            self._ranges[row] = (0.0, 0.0)
            y = self._curves[row].getData()[1]
            if y is not None and len(y):
                self._follow(row, y)

    def freeze(self, on: bool) -> None:
        """Hold the picture; frozen, every held sample is drawn where one zooms in."""
        self.frozen = on
        for item in self.items:
            box = item.getViewBox()
            if on:
                continue
            box.setXRange(-self.seconds, 0, padding=0)
        if on and self.items:
            self._frozen_data = self.feed.ring.last(int(self.feed.rig.rate * 60))
            self._move_marked()
            for row, index in enumerate(self.shown):
                self._curves[row].behind = self._held(index)
            self.items[0].sigXRangeChanged.connect(self._refine)
        elif self.items:
            self.items[0].sigXRangeChanged.disconnect(self._refine)
            self._show_marked()
            self.rebuild()

    def _held(self, index: int) -> Behind:
        """The samples of a channel in the frozen picture."""
        data, step = self._frozen_data[index], 1 / self.feed.rig.rate
        return Behind((1 - len(data)) * step, step, len(data), lambda start, stop: data[start:stop])

    def _refine(self, *_: object) -> None:
        """Draw the frozen samples of the visible stretch, as themselves or as their envelope."""
        from analysis import envelope

        rate, count = self.feed.rig.rate, self._frozen_data.shape[1]
        (left, right), _ = self.items[0].getViewBox().viewRange()
        start = int(np.clip(count + left * rate - 1, 0, count))
        stop = int(np.clip(count + right * rate + 2, 0, count))
        if stop - start < 2:
            return
        piece = self._frozen_data[:, start:stop]
        pixels = max(200, int(self.items[0].getViewBox().width()))
        times = (np.arange(start, stop) - count + 1) / rate
        for row, index in enumerate(self.shown):
            if stop - start <= 4 * pixels:
                self._curves[row].setData(times, piece[index])
                continue
            low, high = envelope(piece[index], pixels)
            y = np.empty(2 * pixels)
            y[0::2], y[1::2] = low, high
            self._curves[row].setData(np.repeat(np.linspace(times[0], times[-1], pixels), 2), y)

    def read(self, item: pg.PlotItem, x: float, y: float) -> str:
        """Time and the value of every shown channel at that time."""
        words = [f"t = {x:.4g} s"]
        for row, index in enumerate(self.shown):
            found = nearest(self._curves[row], x)
            if found is not None:
                info = self.feed.rig.channels[index]
                value = f"{found[1]:.4g} {info.unit}".rstrip() if np.isfinite(found[1]) else "lost"
                words.append(f"{info.name} {value}")
        return "   ".join(words)
