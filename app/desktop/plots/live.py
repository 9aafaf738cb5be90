"""Live plots beside the scope: spectrum, spectrogram, response, portrait and stroboscopic section."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import QObject, QRectF, pyqtSignal
from PyQt6.QtGui import QActionGroup, QResizeEvent
from PyQt6.QtWidgets import QMenu

from analysis import ResponseAverager, ShakedownError, amplitude_spectrum, envelope, ratio_unit
from app.desktop.feed import Feed
from app.desktop.plots.plot import ROOMY, Plot, axis_text
from app.desktop.plots.response import ResponseRows
from app.desktop.plots.samples import Behind
from app.desktop.theme import Theme
from app.desktop.widgets.basics import IconButton, menu_heading
from app.numbers import localised

DRIVES = ("drive", "force", "f", "w", "u")  # channels that drive the specimen
ROOM_FOR_PHASE = 330  # height of a card from which the phase is drawn too
LINES = 16384  # longest piece of the stream that is transformed
POINTS = 6000  # of a portrait
SILENCE = -12.0  # decadic logarithm of an amplitude that counts as none
DECADES = 3.5  # of amplitude between the darkest and the brightest colour


class LivePlot(Plot):
    """A plot fed by the rig. ``every``: drawn each so many frames."""

    every = 1

    def __init__(self, theme: Theme, feed: Feed, title: str, help_text: str) -> None:
        super().__init__(theme, title, help_text=help_text)
        self.feed = feed
        self.frozen = False

    def restart(self) -> None:
        """The channels have changed."""

    def draw(self) -> None:
        """One frame."""

    def name(self, index: int) -> str:
        info = self.feed.rig.channels[index]
        return axis_text(info.name, info.unit)

    def chooser(self, headings: tuple[str, ...], tip: str) -> list[Choice]:
        """A quiet button in the head of the card that offers the channels, once under each heading."""
        choices = [Choice(words) for words in headings]
        tool = IconButton(self.theme, "tune", tip)
        menu = QMenu(tool)
        menu.aboutToShow.connect(lambda: _fill(menu, choices))
        tool.clicked.connect(lambda: menu.popup(tool.mapToGlobal(tool.rect().bottomLeft())))
        self.head.insertWidget(self.head.indexOf(self.cross), tool)
        return choices


class Choice(QObject):
    """One of several names, chosen from a menu."""

    changed = pyqtSignal()

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words, self.names, self.index = words, list[str](), -1

    def offer(self, names: list[str], index: int) -> None:
        """New names to choose from."""
        self.names, self.index = names, index
        self.changed.emit()

    def choose(self, index: int) -> None:
        if index != self.index:
            self.index = index
            self.changed.emit()


def _fill(menu: QMenu, choices: list[Choice]) -> None:
    """One section for each choice, the present one ticked."""
    menu.clear()
    for choice in choices:
        menu_heading(menu, choice.words)
        group = QActionGroup(menu)
        for i, name in enumerate(choice.names):
            action = menu.addAction(name)
            assert action is not None
            action.setCheckable(True)
            action.setChecked(i == choice.index)
            action.triggered.connect(lambda _=False, i=i, choice=choice: choice.choose(i))
            group.addAction(action)


class Spectrum(LivePlot):
    """Amplitude over frequency of every shown channel, three times a second or faster."""

    every = 3

    def __init__(self, theme: Theme, feed: Feed) -> None:
        super().__init__(theme, feed, "Spectrum", "How strong each frequency is in the newest seconds")
        self.shown: list[int] = []
        self._curves: list[Any] = []
        self._top = 0.0

    def show_channels(self, shown: list[int]) -> None:
        self.shown = shown
        self.clear_rows()
        units = dict.fromkeys(self.feed.rig.channels[i].unit or "–" for i in shown)
        label = axis_text("amplitude", ", ".join(units))
        self.item = self.add_row("frequency [Hz]", label)
        self.item.setLogMode(False, True)
        self.item.disableAutoRange()
        self.item.setXRange(0, self.feed.rig.rate / 2, padding=0)
        self._curves = [self.curve(self.item, i) for i in shown]
        for curve, i in zip(self._curves, shown, strict=True):  # the axis has the units of all of them
            info = self.feed.rig.channels[i]
            curve.caption = axis_text(f"amplitude of {info.name}", info.unit)
        self._top = 0.0

    def fit(self) -> None:
        self._top = 0.0
        self.draw()

    def draw(self) -> None:
        if self.frozen or not self.shown:
            return
        count = min(LINES, int(8 * self.feed.rig.rate))
        held = np.stack([self.feed.ring.last(count, row) for row in self.shown])
        if held.shape[1] < 64 or np.isnan(held).any():
            return
        f, a = amplitude_spectrum(held, self.feed.rig.rate)
        log = np.log10(np.maximum(a, 1e-12))
        lines = [Behind.of(f, y) for y in log]
        pixels = max(128, int(self.view.width()))
        if len(f) > 2 * pixels:  # the highest line of each pixel: no peak vanishes
            _, log = envelope(log, pixels)
            f = np.linspace(f[0], f[-1], pixels)
        for curve, y, behind in zip(self._curves, log, lines, strict=True):
            curve.setData(f, y)
            curve.behind = behind
        if self.cursors is not None:
            self.cursors.read()
        top, floor = float(log.max()), float(np.median(log))
        if top > self._top or top < self._top - 1.0 or self._top == 0.0:
            self._top = top + 0.3
            self.item.setYRange(min(floor - 1.0, top - 3), self._top, padding=0)
            self.item.setXRange(0.0, highest_in_use(f, log), padding=0)


def highest_in_use(f: Any, log: Any, decades: float = np.inf) -> float:
    """Frequency up to which something stands clearly above the floor, with room to the right.

    ``log``: decadic logarithm of the amplitude [channels, frequencies]. What is more than ``decades`` below
    the peak is not counted: the window's side lobes of a pure tone are above a floor that is lower yet.
    """
    floor = np.maximum(np.median(log, axis=1, keepdims=True) + 1.0, log.max(axis=1, keepdims=True) - decades)
    above = np.flatnonzero((log > floor).any(axis=0))
    highest = f[above[-1]] if len(above) else f[-1]
    return float(min(max(1.6 * highest, 0.02 * f[-1]), f[-1]))


class Spectrogram(LivePlot):
    """Amplitude over time and frequency of one channel, newest at the right."""

    every = 3
    columns = 240
    _bar: Any = None  # the scale of the colours

    def __init__(self, theme: Theme, feed: Feed) -> None:
        super().__init__(
            theme, feed, "Waterfall", "How the frequencies change with time, newest at the right"
        )
        (self._channel,) = self.chooser(("Channel",), "Choose the channel")
        self._channel.changed.connect(self._clear)
        self._image = pg.ImageItem()
        self._levels = np.zeros((2, 2), dtype=np.float32)
        self._top = 0.0  # frequency
        self._done = 0

    def restart(self) -> None:
        self._channel.offer([c.name for c in self.feed.rig.channels], 0)

    def _clear(self) -> None:
        rate = self.feed.rig.rate
        if not rate:
            return
        self._size = int(2 ** np.clip(np.round(np.log2(rate)), 6, 13))
        self._hop = max(int(rate * 0.1), 1)
        self._levels = np.full((self._size // 2 + 1, self.columns), SILENCE, dtype=np.float32)
        self._done = self.feed.ring.stop
        self.clear_rows()
        self.item = self.add_row("time before now [s]", "frequency [Hz]")
        self._image = pg.ImageItem(axisOrder="row-major")  # the old one went with its plot
        self._image.setColorMap(pg.colormap.get("viridis"))
        self.item.addItem(self._image)
        span = self.columns * self._hop / rate
        self._image.setImage(self._levels, autoLevels=False, levels=(SILENCE, SILENCE + DECADES))
        self._image.setRect(QRectF(-span, 0, span, rate / 2))
        self.item.setXRange(-span, 0, padding=0)
        unit = self.feed.rig.channels[self._channel.index].unit if self._channel.index >= 0 else ""
        self._bar = pg.ColorBarItem(
            values=(SILENCE, SILENCE + DECADES), colorMap=pg.colormap.get("viridis"), interactive=False,
            width=self.theme.px(10),
        )  # fmt: skip
        self._bar.axis.tickStrings = lambda values, *_: [localised(f"{10**v:.2g}") for v in values]
        self._bar.axis.setTickSpacing(1.0, 1.0)
        self.readout.setText(f"[{unit or '–'}]")
        self.readout.setToolTip(axis_text("The colour is the amplitude", unit))
        self._bar.setImageItem(self._image, insert_in=self.item)
        self._colour_bar()
        self._place_bar()
        self._top = 0.0
        self._follow_band()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._place_bar()

    def _place_bar(self) -> None:
        """In a narrow card all the room is the picture's: the scale of the colours would take most of it."""
        if self._bar is not None:
            self._bar.setVisible(self.width() >= self.theme.px(ROOMY))

    def recolour(self) -> None:
        super().recolour()
        self._colour_bar()

    def _colour_bar(self) -> None:
        if self._bar is not None:
            self._bar.axis.setPen(pg.mkPen(self.theme.colours.border))
            self._bar.axis.setTextPen(self.theme.colours.muted)
            self._bar.axis.setStyle(tickFont=self.theme.font(10))

    def fit(self) -> None:
        self._top = 0.0
        self._follow_band()

    def _follow_band(self) -> None:
        """Frequencies up to where the signal is: it grows at once and shrinks by halves and more.

        Noise alone has the whole axis, which a drive that starts then needs a small part of.
        """
        level = self._levels.max(axis=1)[None, :]
        f = np.linspace(0.0, self.feed.rig.rate / 2, level.shape[1])
        if level.max() > SILENCE:
            top = highest_in_use(f, level, DECADES)
            if top > self._top or top < 0.5 * self._top:
                self._top = top
                self.item.setYRange(0, top, padding=0)

    def draw(self) -> None:
        if self.frozen or self._channel.index < 0 or not self.feed.rig.rate:
            return
        ring, fresh = self.feed.ring, 0
        self._done = max(self._done, ring.stop - (self.columns + 1) * self._hop)  # after a time out of sight
        while ring.stop - self._done >= self._hop and fresh < self.columns:
            self._done += self._hop
            piece = ring.between(self._done - self._size, self._done, self._channel.index)
            self._levels[:, :-1] = self._levels[:, 1:]
            if len(piece) == self._size and not np.isnan(piece).any():
                _, a = amplitude_spectrum(piece, self.feed.rig.rate)
                self._levels[:, -1] = np.log10(np.maximum(a, 1e-12))
            else:
                self._levels[:, -1] = SILENCE
            fresh += 1
        if fresh:
            top = max(float(self._levels.max()), SILENCE + DECADES)  # silence is dark
            self._image.setImage(self._levels, autoLevels=False, levels=(top - DECADES, top))
            if self._bar is not None:
                self._bar.setLevels((top - DECADES, top))
            self._follow_band()

    def table(self) -> Any:
        yield ["frequency [Hz]", *(f"column {i}" for i in range(self.columns))]
        for k, row in enumerate(self._levels):
            f = k * self.feed.rig.rate / self._size
            yield [f"{f:.6g}", *(f"{10**v:.4g}" for v in row)]


class LiveResponse(LivePlot):
    """Frequency response and coherence of the stream, averaged since the drive last changed."""

    every = 6
    seconds = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of one segment
    counts = (10, 50, 200, 0)  # segments after which the average is complete; 0: without end
    fading = 0.1  # weight of the newest segment in an exponential average

    def __init__(self, theme: Theme, feed: Feed) -> None:
        super().__init__(
            theme,
            feed,
            "Response",
            "How one channel answers another at each frequency, averaged since the drive changed",
        )
        self.input, self.output, self.segment, self.mode = self.chooser(
            ("Input", "Output", "Segments of", "Averages"), "Choose channels, segments and averages"
        )
        for choice in (self.input, self.segment, self.mode):
            choice.changed.connect(self.begin)
        self.output.changed.connect(self._clear)
        self.rows = ResponseRows(self)
        # How many averages, in the corner of the plot.
        self._count = pg.TextItem("", color=theme.colours.muted, anchor=(1, 0))
        self._count.setParentItem(self.rows.size.getViewBox())
        self.averager: ResponseAverager | None = None
        self._done = 0  # samples of the stream that are averaged
        self._drive: tuple[object, ...] = ()

    def restart(self) -> None:
        names = [c.name for c in self.feed.rig.channels]
        drive = next((i for i, n in enumerate(names) if n in DRIVES), len(names) - 1)
        answer = next((i for i in range(len(names)) if i != drive), drive)
        self.averager = None
        for choice, index in ((self.input, drive), (self.output, answer)):
            choice.offer(names, index)
        self.segment.offer([f"{s:g} s" for s in self.seconds], 3)
        self.mode.offer([*(f"{n}" if n else "without end" for n in self.counts), "the last ten, fading"], 3)

    def _clear(self) -> None:
        if self.feed.rig.channels and self.output.index >= 0:
            self.rows.clear()
            self.rows.show_phase(self.height() >= self.theme.px(ROOM_FOR_PHASE))
            self._place_count()

    def begin(self) -> None:
        """Forget what was averaged."""
        self.averager = None
        if min(self.input.index, self.segment.index, self.mode.index) < 0 or not self.feed.rig.rate:
            return
        lines = max(16, round(self.seconds[self.segment.index] * self.feed.rig.rate / 2))
        memory = self.fading if self.mode.index >= len(self.counts) else None
        self.averager = ResponseAverager(
            len(self.feed.rig.channels), self.feed.rig.rate, lines, reference=self.input.index, memory=memory
        )
        self._done = self.feed.ring.stop
        self._clear()
        self._say_count(0)

    def wanted(self) -> int:
        """Segments after which the average is complete; 0: never."""
        return self.counts[self.mode.index] if 0 <= self.mode.index < len(self.counts) else 0

    def draw(self) -> None:
        drive = self.feed.drive
        now = (
            drive.playing,
            drive.waveform,
            drive.frequency if drive.waveform == "sine" else 0,
            drive.amplitude,
        )
        if now != self._drive:  # another drive: an average over both would be of neither
            self._drive = now
            self.begin()
        averager = self.averager
        if self.frozen or averager is None or (self.wanted() and averager.segments >= self.wanted()):
            return
        if self._take(averager) and self.input.index != self.output.index:
            self._show(averager)

    def _take(self, averager: ResponseAverager) -> bool:
        """Hand on what has come in; whether a segment has become complete."""
        ring, before = self.feed.ring, averager.segments
        if ring.start > self._done:  # out of sight for longer than samples are held
            averager.interrupt()
        averager.add(ring.between(self._done, ring.stop))
        self._done = ring.stop
        return averager.segments > before

    def _show(self, averager: ResponseAverager) -> None:
        channels = self.feed.rig.channels
        source, output = channels[self.input.index], channels[self.output.index]
        try:
            found = averager.response(
                self.output.index, "h1", (source.name, output.name), ratio_unit(output.unit, source.unit)
            )
        except ShakedownError as error:
            self.readout.setText(str(error))
            return
        self.rows.show(found)
        self._say_count(averager.segments)

    def _say_count(self, count: int) -> None:
        goal = f" of {self.wanted()}" if self.wanted() else ""
        things = "average" if count == 1 and not goal else "averages"
        self._count.setText(f"{count}{goal} {things}", color=self.theme.colours.muted)
        self._place_count()

    def _place_count(self) -> None:
        self._count.setPos(self.rows.size.getViewBox().width() - self.theme.px(4), 0)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self.rows.show_phase(self.height() >= self.theme.px(ROOM_FOR_PHASE))
        self._place_count()

    def fit(self) -> None:
        self.rows.size.enableAutoRange()


class Portrait(LivePlot):
    """One channel against another, or against itself a moment later."""

    every = 1

    def __init__(self, theme: Theme, feed: Feed) -> None:
        super().__init__(
            theme, feed, "Portrait", "The motion as a loop: one signal against another or its own past"
        )
        self.horizontal, self.vertical = self.chooser(
            ("Drawn to the right", "Drawn upwards"), "Choose what is drawn against what"
        )
        for choice in (self.horizontal, self.vertical):
            choice.changed.connect(self._relabel)
        self._trail = self.curve(colour=0)
        self._head = self.points(colour=1, size=9)
        self.item.disableAutoRange()
        self._range: tuple[float, float, float, float] | None = None

    def restart(self) -> None:
        for drawn in (self._trail, self._head):  # samples of another rig
            drawn.setData([], [])
        names = [c.name for c in self.feed.rig.channels]
        second = 1 if len(names) > 1 and _kinds_differ(self.feed) else len(names)
        self.horizontal.offer(names, 0)
        self.vertical.offer([*names, "itself, a moment later"], second)

    def _relabel(self) -> None:
        x, y = self.horizontal.index, self.vertical.index
        if x < 0 or y < 0 or not self.feed.rig.channels:
            return
        self.item.setLabel("bottom", self.name(x))
        own = y >= len(self.feed.rig.channels)
        info = self.feed.rig.channels[x]
        self.item.setLabel("left", axis_text(f"{info.name} later", info.unit) if own else self.name(y))
        self._range = None

    def delay(self) -> int:
        """Samples: a quarter of the drive's period, or of the strongest swing."""
        frequency = self.feed.drive.frequency or 5.0
        return max(1, round(self.feed.rig.rate / frequency / 4))

    def fit(self) -> None:
        self._range = None

    def draw(self) -> None:
        x, y = self.horizontal.index, self.vertical.index
        if self.frozen or x < 0 or y < 0:
            return
        step = max(1, int(self.feed.rig.rate * 4 / POINTS))
        own = y >= len(self.feed.rig.channels)
        lag = self.delay() if own else 0
        ring = self.feed.ring
        newest = ring.stop - lag
        oldest = max(newest - POINTS * step, ring.start)
        oldest += -oldest % step  # always the same samples, so that the picture does not tremble
        if newest - oldest < 4 * step:
            return
        xs = ring.between(oldest, newest, x, step)
        ys = ring.between(oldest + lag, newest + lag, x if own else y, step)
        there = np.flatnonzero(np.isfinite(xs) & np.isfinite(ys))
        if len(there) == 0:
            return  # all of it was lost
        self._trail.setData(xs, ys)
        self._head.setData(xs[there[-1:]], ys[there[-1:]])
        self._follow(xs, ys)

    def _follow(self, xs: Any, ys: Any) -> None:
        with np.errstate(all="ignore"):
            box = [np.fmin.reduce(xs), np.fmax.reduce(xs), np.fmin.reduce(ys), np.fmax.reduce(ys)]
        if not np.isfinite(box).all():
            return
        old = self._range
        grown = old is None or box[0] < old[0] or box[1] > old[1] or box[2] < old[2] or box[3] > old[3]
        shrunk = old is not None and (box[1] - box[0] < 0.4 * (old[1] - old[0]))
        if grown or shrunk:
            px, py = 0.1 * (box[1] - box[0]), 0.1 * (box[3] - box[2])
            px, py = px + self._least(self.horizontal.index), py + self._least(self.vertical.index)
            self._range = (box[0] - px, box[1] + px, box[2] - py, box[3] + py)
            self.item.setXRange(*self._range[:2], padding=0)
            self.item.setYRange(*self._range[2:], padding=0)

    def _least(self, index: int) -> float:
        """Room around the motion even if a channel only hisses: half a thousandth of its range."""
        channels = self.feed.rig.channels
        index = index if index < len(channels) else self.horizontal.index  # against its own past
        span = channels[index].upper - channels[index].lower if index < len(channels) else np.inf
        return 0.5e-3 * span if np.isfinite(span) else 1e-9


class Section(LivePlot):
    """The state once in each period of the drive, building up dot by dot."""

    every = 3

    def __init__(self, theme: Theme, feed: Feed, portrait: Portrait) -> None:
        super().__init__(
            theme, feed, "Section", "One dot in each period of the drive: a curve or cloud means chaos"
        )
        self._portrait = portrait
        self._dots = self.points(colour=0, size=3)
        self._newest = self.points(colour=1, size=9)
        self._drawn = (-1, -1, -1)

    def restart(self) -> None:
        self._drawn = (-1, -1, -1)
        for drawn in (self._dots, self._newest):  # samples of another rig
            drawn.setData([], [])
        self.readout.setText("")

    def fit(self) -> None:
        self.item.enableAutoRange()

    def draw(self) -> None:
        x, y = self._portrait.horizontal.index, self._portrait.vertical.index
        section = self.feed.section
        if not self.feed.phase_known and not self.frozen:
            self.readout.setText("the drive does not tell its phase")
        now = (section.shape[1], x, y)
        if self.frozen or now == self._drawn or x < 0 or y < 0:
            return
        own = y >= len(self.feed.rig.channels)
        if now[1:] != self._drawn[1:]:
            info = self.feed.rig.channels[x]
            self.item.setLabel("bottom", self.name(x))
            self.item.setLabel("left", axis_text(f"{info.name} next", info.unit) if own else self.name(y))
        self._drawn = now
        if own:
            xs, ys = section[x, :-1], section[x, 1:]
        else:
            xs, ys = section[x], section[y]
        self._dots.setData(xs, ys)
        self._newest.setData(xs[-1:], ys[-1:])
        if not self.cross.isChecked() and self.feed.phase_known:
            self.readout.setText(f"n = {len(xs)}")
            self.readout.setToolTip("Periods of the drive, one point each")


def _kinds_differ(feed: Feed) -> bool:
    """True if the second channel is another quantity of the specimen, so that the two make a portrait."""
    first, second = feed.rig.channels[:2]
    return (first.unit != second.unit or not first.unit) and second.name not in ("drive", "force", "f", "w")
