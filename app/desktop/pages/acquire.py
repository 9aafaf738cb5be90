"""Acquire: drive the shaker, watch the sensors live, record."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.desktop.opening import OpenedRig
from app.desktop.page import Page
from app.desktop.plots.live import LivePlot, LiveResponse, Portrait, Section, Spectrogram, Spectrum
from app.desktop.plots.scope import Scope
from app.desktop.widgets.basics import IconButton, scrolled
from app.desktop.widgets.channelstrip import ChannelStrip
from app.desktop.widgets.drivepanel import DrivePanel
from app.desktop.widgets.livepanel import LivePanel
from app.desktop.widgets.recordpanel import RecordPanel
from app.desktop.widgets.sequencepanel import SequencePanel
from app.desktop.widgets.views import Views
from app.desktop.workbench import Workbench
from drivers.base.protocols import Block

LOW = 560  # height of a page on which sliders and the button that records have room
SPANS = (0.5, 1.0, 2.0, 4.0, 10.0, 30.0, 60.0)  # s


class AcquirePage(Page):
    """Live plots to the left, what drives and records to the right."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.feed, self.rig = bench.feed, bench.rig
        self.strip = ChannelStrip(self.theme)
        self.scope = Scope(self.theme, self.feed, bench.settings.scope_seconds)
        self.spectrum = Spectrum(self.theme, self.feed)
        self.spectrogram = Spectrogram(self.theme, self.feed)
        self.response = LiveResponse(self.theme, self.feed)
        self.portrait = Portrait(self.theme, self.feed)
        self.section = Section(self.theme, self.feed, self.portrait)
        plots: dict[str, LivePlot] = {
            "spectrum": self.spectrum,
            "waterfall": self.spectrogram,
            "response": self.response,
            "portrait": self.portrait,
            "section": self.section,
        }
        self.plots = tuple(plots.values())
        self.views = Views(self.theme, bench.settings, plots)
        self.drive_panel = DrivePanel(bench)
        self.record_panel = RecordPanel(bench)
        self.sequence_panel = SequencePanel(bench)
        self.live_panel = LivePanel(bench)
        self._frame = 0
        self._driven: OpenedRig | None = None  # the rig whose drive the views follow
        self._waveform = ""  # what it played last
        self._scope_tools()
        self._arrange()
        self.strip.chosen.connect(self._channels_chosen)
        self.feed.restarted.connect(self._restart)
        self.feed.advanced.connect(self._advance)
        if self.rig.channels:
            self.drive_panel.reload()
            self.record_panel.reload()
            self._restart()

    def _scope_tools(self) -> None:
        self.freeze = IconButton(
            self.theme, "freeze", "Freeze the picture to look closely (Space)", True, "Freeze"
        )
        self.freeze.setShortcut("Space")
        self.freeze.toggled.connect(self._freeze)
        self.span = QComboBox()
        self.span.setToolTip("How much time the signals show")
        self.span.setAccessibleName("How much time the signals show")
        self.span.addItems([f"{s:g} s" for s in SPANS])
        nearest = min(range(len(SPANS)), key=lambda i: abs(SPANS[i] - self.bench.settings.scope_seconds))
        self.span.setCurrentIndex(nearest)
        self.span.currentIndexChanged.connect(self._span_chosen)
        self.scope.head.insertWidget(1, self.span)
        self.scope.head.insertWidget(1, self.freeze)

    def _arrange(self) -> None:
        px = self.theme.px
        top = QWidget()
        row = QHBoxLayout(top)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(px(8))
        row.addWidget(self.scope, 1)
        channels = scrolled(self.strip)
        channels.setFixedWidth(px(150))
        row.addWidget(channels)
        plots = QSplitter(Qt.Orientation.Vertical)
        plots.addWidget(top)
        plots.addWidget(self.views)
        plots.setStretchFactor(0, 5)
        plots.setStretchFactor(1, 4)
        plots.setHandleWidth(px(8))
        plots.setChildrenCollapsible(False)
        if sizes := self.bench.settings.layout.get("acquire.plots"):
            plots.setSizes(sizes)
        self.splitter = plots
        controls = QWidget()
        column = QVBoxLayout(controls)
        column.setContentsMargins(0, 0, px(2), 0)
        column.setSpacing(px(10))
        column.addWidget(self.drive_panel)
        column.addWidget(self.record_panel)
        column.addStretch(1)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(scrolled(controls), "Drive")
        self.tabs.addTab(scrolled(self.sequence_panel), "Sequence")
        self.tabs.addTab(scrolled(self.live_panel), "Live fit")
        self.tabs.setFixedWidth(px(270))
        whole = QHBoxLayout()
        whole.setSpacing(px(10))
        whole.addWidget(plots, 1)
        whole.addWidget(self.tabs)
        self.body.addLayout(whole, 1)

    # -- living

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """On a low screen the room is for the button that records."""
        super().resizeEvent(event)
        self.drive_panel.show_sliders(self.height() >= self.theme.px(LOW))

    def on_hide(self) -> None:
        self.bench.settings.layout["acquire.plots"] = self.splitter.sizes()
        self.views.keep_sizes()

    def _restart(self) -> None:
        """Other channels: rebuild the plots."""
        self.strip.rebuild(self.rig.channels)
        for plot in self.plots:
            plot.restart()
        self._follow_drive()

    def _follow_drive(self) -> None:
        """The views that suit what is played, or what the rig's own profile would play."""
        rig = self.rig.rig
        if rig is None or self.freeze.isChecked():  # who looks closely keeps the picture
            return
        if self.feed.drive.playing:
            self._waveform = self.feed.drive.waveform
        elif self._driven is not rig:
            self._waveform = rig.drive.kind if rig.drive is not None and rig.exciter is not None else ""
        self._driven = rig
        self.views.follow(rig.name if rig.profile is not None else "replay", self._waveform)

    def _channels_chosen(self, shown: list[int]) -> None:
        if shown:
            self.scope.show_channels(shown)
            self.spectrum.show_channels(shown)

    def _advance(self, blocks: list[Block]) -> None:
        """One frame."""
        self.scope.advance(blocks)
        if not self.isVisible():
            return
        self._frame += 1
        self.scope.draw()
        for offset, plot in enumerate(self.plots):
            if plot.isVisible() and (self._frame + offset) % plot.every == 0:  # not all in the same frame
                plot.draw()
        if self._frame % 6 == 0:
            self.strip.show_stats(self.feed.stats)
            self.drive_panel.follow(self.rig.drive())
            self.record_panel.tick()
            self._follow_drive()

    def _freeze(self, on: bool) -> None:
        self.scope.freeze(on)
        for plot in self.plots:
            plot.frozen = on

    def _span_chosen(self, index: int) -> None:
        self.bench.settings.scope_seconds = SPANS[index]
        self.scope.set_seconds(SPANS[index])
