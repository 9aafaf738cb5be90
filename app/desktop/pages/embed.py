"""Embed: one signal and its past unfold the motion; delay and dimension are suggested and can be dragged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.desktop import tasks
from app.desktop.page import Page
from app.desktop.pages.orbits import DRIVES
from app.desktop.plots.plot import Plot
from app.desktop.plots.space import SpaceCard
from app.desktop.widgets.basics import Card, button, label, sentence, set_role, timer
from app.desktop.workbench import RecordInHand, Workbench
from app.numbers import localised_delay
from app.orbit_search import Embedding, space_of
from app.words import counted

POINTS = 20_000  # drawn


class EmbedPage(Page):
    """Curves with a handle to drag to the left, the motion they give to the right."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self._next: list[Callable[[], None]] = []  # what follows the job that runs
        self.delay, self.dimension = 1, 3
        self._kept_dimension: int | None = None  # that somebody chose the last time
        self._about_delay = self._about_dimension = ""  # what is to be said of the suggested ones
        self.longest_delay = 1
        self._shown: RecordInHand | None = None  # the record that the curves are of
        missing = "Take a recording in hand to see its motion as a shape."
        self.stack = self.or_nothing(self._work(), "embed", missing, "Recordings")
        self.body.addWidget(self.stack, 1)
        self._later = timer(self, 400, self._recount, single=True)
        bench.record_changed.connect(self._record_changed)
        self._record_changed()

    def _work(self) -> QWidget:
        theme = self.theme
        bar = Card(theme)
        row = QHBoxLayout()
        row.addWidget(label("Signal"))
        self.channel, self.method = QComboBox(), QComboBox()
        self.channel.setToolTip("The channel that is unfolded")
        self.channel.setAccessibleName("The channel that is unfolded")
        self.method.addItem("Delay from mutual information", "information")
        self.method.addItem("Delay from autocorrelation", "correlation")
        self.method.setToolTip("How the delay is suggested")
        self.method.setAccessibleName("How the delay is suggested")
        self.run_button = button(
            "Suggest", self.run, "Find a good delay and dimension", "primary", "Ctrl+Return"
        )
        row.addWidget(self.channel)
        row.addWidget(self.method)
        self.state = label("", "small", wrap=True)
        row.addWidget(self.state, 1)
        row.addWidget(self.run_button)
        self.verdict = label("", wrap=True)
        self.verdict.setToolTip("What kind of motion the record shows, and why")
        bar.box.addWidget(self.verdict)  # first: without it no number below means anything
        bar.box.addLayout(row)
        self.delay_plot = Plot(
            theme, "Delay", "delay [ms]", "", "Drag the line: just before the curve levels out is good"
        )
        self.delay_curve = self.delay_plot.curve()
        self.delay_line = self._handle(self.delay_plot, self._delay_dragged)
        self.dimension_plot = Plot(
            theme, "Dimension", "dimension [–]", "false [%]",
            "Drag the line: the first dimension at which false neighbours are gone",
        )  # fmt: skip
        self.dimension_curve = self.dimension_plot.curve()
        self.dimension_dots = self.dimension_plot.points(size=8)
        self.dimension_line = self._handle(self.dimension_plot, self._dimension_dragged)
        self.portrait = Plot(
            theme, "Portrait", "", "", "The motion: the signal against itself a moment later"
        )
        self.trail = self.portrait.curve()
        solid = SpaceCard(theme, "Motion in three dimensions", "Drag to turn")
        self.space = solid.view
        self.views = QTabWidget()
        self.views.setDocumentMode(True)
        self.views.addTab(solid, "3D")
        self.views.addTab(self.portrait, "2D")
        left = QSplitter(Qt.Orientation.Vertical)
        left.addWidget(self.delay_plot)
        left.addWidget(self.dimension_plot)
        across = QSplitter(Qt.Orientation.Horizontal)
        across.addWidget(left)
        across.addWidget(self.views)
        across.setStretchFactor(0, 2)
        across.setStretchFactor(1, 3)
        for splitter in (left, across):
            splitter.setHandleWidth(theme.px(10))
            splitter.setChildrenCollapsible(False)
        across.setSizes([theme.px(420), theme.px(640)])
        whole = QWidget()
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(10))
        column.addWidget(bar)
        column.addWidget(across, 1)
        return whole

    def _handle(self, plot: Plot, moved: Any) -> pg.InfiniteLine:
        line = pg.InfiniteLine(
            angle=90, movable=True, pen=pg.mkPen(self.theme.colours.accent, width=3),
            hoverPen=pg.mkPen(self.theme.colours.text, width=3),
        )  # fmt: skip
        plot.item.addItem(line, ignoreBounds=True)
        line.sigPositionChanged.connect(moved)
        return line

    # -- the record

    def _record_changed(self) -> None:
        record = self.bench.record
        self.stack.setCurrentIndex(0 if record is None else 1)
        if record is None:
            return
        if self.job is not None:  # of the record before: its answer would be taken for one of this record
            self._next.clear()
            self.leave_job()
            self._ended()
        names = record.record.names
        self.channel.clear()
        self.channel.addItems([n for n in names if n not in DRIVES] or list(names))
        if self.isVisible():
            self.run()

    def on_show(self) -> None:
        if self.bench.record is not None and self._shown is not self.bench.record:
            self.run()

    def run(self) -> None:
        """Have a delay suggested and the motion drawn with it, then the dimension, then the verdict."""
        record = self.bench.record
        if record is None or self.job is not None or not self.channel.currentText():
            return
        self.verdict.setText("")
        self._next = [self._count, self._judge]
        self._start("Choosing the delay", self._suggested, tasks.suggest_delay, self.method.currentData())

    def _start(self, title: str, done: Callable[[Any], None], task: Callable[..., Any], *args: Any) -> None:
        """Begin a task on the signal that is chosen."""
        assert self.bench.record is not None
        signal = self.bench.record.record, self.channel.currentText()
        self.job = job = self.bench.workers.run(title, task, *signal, *args)

        job.stepped.connect(self.mine(job, lambda step: self._say(step.message, "small")))
        job.done.connect(self.mine(job, done))
        job.failed.connect(self.mine(job, lambda text: self._broken(text, "bad")))
        job.cancelled.connect(self.mine(job, lambda: self._broken("Cancelled.", "small")))
        job.ended.connect(self.mine(job, self._ended))
        self.run_button.setEnabled(False)

    def _broken(self, text: str, role: str) -> None:
        self._next.clear()
        self._say(text, role)

    def _ended(self) -> None:
        self.job = None
        if self._next:
            self._next.pop(0)()
        else:
            self.run_button.setEnabled(True)

    def _count(self) -> None:
        """The false neighbours belong to a delay."""
        self._start("Choosing the dimension", self._dimension_found, tasks.count_false_neighbours, self.delay)

    def _judge(self) -> None:
        self._start("Judging the motion", self._judged, tasks.judge_motion)

    def _suggested(self, delay: Any) -> None:
        record = self.bench.record
        assert record is not None
        milliseconds = 1e3 * record.record.dt
        kept = self.bench.findings.get("embedding") if self._shown is not record else None  # of the last time
        if kept is not None and kept.channel != self.channel.currentText():
            kept = None
        self._shown = record
        self._about_delay, self._kept_dimension = delay.message, None if kept is None else kept.dimension
        self.delay, self.dimension = (delay.samples, 3) if kept is None else (kept.delay, kept.dimension)
        unit = "info [bits]" if self.method.currentData() == "information" else "correlation [–]"
        self.delay_plot.item.setLabel("left", unit)
        self.delay_curve.setData(np.asarray(delay.lags) * milliseconds, np.asarray(delay.curve))
        self.longest_delay = int(delay.lags[-1])
        bounds = (milliseconds, self.longest_delay * milliseconds)
        _place(self.delay_line, bounds, self.delay * milliseconds)
        self._draw()

    def _dimension_found(self, found: Any) -> None:
        self._counted(found)
        self._about_dimension = found.message
        if self._kept_dimension is not None:
            self.dimension = self._kept_dimension
            _place(self.dimension_line, (1, 10), self.dimension)
            self._draw()

    def _judged(self, motion: str) -> None:
        kind, _, why = motion.partition(": ")
        self.verdict.setText(sentence(f"Motion: <b>{kind}</b>. {why[:1].upper()}{why[1:]}"))
        set_role(self.verdict, "warn" if kind == "cannot tell" else "")
        about = " ".join(filter(None, (self._about_delay, self._about_dimension)))
        self._say(about or self._summary(), "small")

    def _counted(self, found: Any) -> None:
        dimensions, fractions = np.asarray(found.dimensions, dtype=float), 100 * np.asarray(found.fractions)
        self.dimension = int(found.dimension)
        self.dimension_curve.setData(dimensions, fractions)
        self.dimension_dots.setData(dimensions, fractions)
        self.dimension_plot.item.setXRange(0.5, dimensions[-1] + 0.5, padding=0)
        _place(self.dimension_line, (1, 10), self.dimension)
        self.dimension_plot.item.getAxis("bottom").setTicks([[(d, f"{d:.0f}") for d in dimensions]])
        self._draw()

    # -- dragging

    def _delay_dragged(self) -> None:
        record = self.bench.record
        if record is None:
            return
        chosen = max(1, round(self.delay_line.value() / (1e3 * record.record.dt)))
        if chosen != self.delay:
            self.delay = chosen
            self._draw()
            self._later.start()

    def _recount(self) -> None:
        """Count again for the delay chosen by hand; what is being worked out of the old one is left."""
        if self.bench.record is None or self.job is not None:
            return
        self._start("Choosing the dimension", self._recounted, tasks.count_false_neighbours, self.delay)

    def _recounted(self, found: Any) -> None:
        self._counted(found)
        self._say(found.message or self._summary(), "small")

    def _dimension_dragged(self) -> None:
        chosen = max(1, round(self.dimension_line.value()))
        if chosen != self.dimension:
            self.dimension = chosen
            self._draw()
            self._say(self._summary(), "small")

    def _draw(self) -> None:
        """The motion for the delay and dimension chosen, handed on to later pages."""
        record = self.bench.record
        if record is None:
            return
        name = self.channel.currentText()
        count = POINTS + 2 * self.delay
        piece = record.record.cut(0, min(len(record.record), count))
        space = space_of(piece, (name,), 3, self.delay)
        self.space.show_points(space.points, space.labels)
        self.portrait.item.setLabel("bottom", localised_delay(space.labels[0]))
        self.portrait.item.setLabel("left", localised_delay(space.labels[1]))
        self.trail.setData(space.points[0], space.points[1])
        self.bench.find("embedding", Embedding(name, self.delay, max(self.dimension, 2)))

    def _summary(self) -> str:
        record = self.bench.record
        time = 1e3 * self.delay * record.record.dt if record is not None else 0.0
        return f"Delay {time:.3g} ms ({counted(self.delay, 'sample')}), dimension {self.dimension}."

    def _say(self, text: str, role: str) -> None:
        self.state.setText(sentence(text))
        set_role(self.state, role)


def _place(line: pg.InfiniteLine, bounds: tuple[float, float], value: float) -> None:
    """Move a handle without anybody taking it for a drag."""
    line.blockSignals(True)
    line.setBounds(bounds)
    line.setValue(value)
    line.blockSignals(False)
