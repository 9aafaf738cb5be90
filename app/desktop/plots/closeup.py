"""One orbit of the gallery at full size: the loop with axes and units, and its signals over the period."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from app.desktop.plots.plot import Plot
from app.desktop.theme import Theme
from app.desktop.widgets.basics import Elided, button
from app.numbers import localised_delay

Samples = NDArray[np.float64]


class CloseUp(QWidget):
    """Takes the place of the gallery while an orbit is looked at."""

    left = pyqtSignal()  # back to all of them
    stepped = pyqtSignal(int)  # to the next orbit, or the one before
    included = pyqtSignal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.words = Elided("small")
        self.include = QCheckBox("Included")
        self.include.setToolTip("Use this orbit on later pages")
        self.include.toggled.connect(self.included)
        self.back = button("All orbits", self.left.emit, "Back to the gallery", shortcut="Backspace")
        self.before = button(
            "Before", lambda: self.stepped.emit(-1), "The orbit before this one", shortcut="PgUp"
        )
        self.after = button(
            "Next", lambda: self.stepped.emit(1), "The orbit after this one", shortcut="PgDown"
        )
        row = QHBoxLayout()
        row.setSpacing(theme.px(6))
        row.addWidget(self.back)
        row.addWidget(self.words, 1)
        for part in (self.include, self.before, self.after):
            row.addWidget(part)
        self.loop = Plot(theme, "Orbit", "", "", "The orbit in the plane of its first two coordinates")
        self.signals = Plot(theme, "Period", "time [s]", "", "Every coordinate over one period")
        self._line = self.loop.curve()
        across = QHBoxLayout()
        across.setSpacing(theme.px(10))
        across.addWidget(self.loop, 1)
        across.addWidget(self.signals, 1)
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(theme.px(8))
        box.addLayout(row)
        box.addLayout(across, 1)

    def show_orbit(
        self, points: Samples, labels: tuple[str, ...], rate: float, words: tuple[str, ...], on: bool
    ) -> None:
        """Points [n, N] of one period at a rate in Hz, the names and units of their coordinates."""
        self.words.setText("   ".join(words))
        self.words.setToolTip("\n".join(words))
        self.include.blockSignals(True)
        self.include.setChecked(on)
        self.include.blockSignals(False)
        labels = tuple(map(localised_delay, labels))
        self.loop.item.setLabel("bottom", labels[0])
        self.loop.item.setLabel("left", labels[1])
        self._line.setData(points[0], points[1])
        self.loop.fit()
        self.signals.clear_rows()
        times = np.arange(points.shape[1]) / rate
        for index, (name, values) in enumerate(zip(labels, points, strict=False)):
            last = index == len(labels) - 1
            item = self.signals.add_row("time [s]" if last else "", name)
            if not last:
                item.getAxis("bottom").setStyle(showValues=False)
                item.getAxis("bottom").setHeight(0)
            self.signals.curve(item, index, name.partition(" [")[0]).setData(times, values)
