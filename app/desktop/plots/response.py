"""Frequency response as a plot: size, phase and coherence; of a multisine the levels of all lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg

from analysis import FrequencyResponse, LinearApproximation, Resonance
from app.desktop.plots.plot import Plot, axis_text
from app.desktop.tasks import Tone

FLOOR = 1e-300  # of a logarithm
GROUPS = (("driven", 0), ("odd, not driven", 1), ("even", 2))


class ResponseRows:
    """Three rows of a plot that share the frequency: size, phase, and what tells how far to trust them."""

    def __init__(self, plot: Plot) -> None:
        self.plot = plot
        plot.clear_rows()
        self.size = plot.item = plot.add_row("", "size")
        self.size.getAxis("left").setLogMode(True)
        self.phase = plot.add_row("", "phase [°]")
        self.below = plot.add_row("frequency [Hz]", "coherence [–]")
        for item in (self.size, self.phase):
            item.getAxis("bottom").setStyle(showValues=False)
            item.getAxis("bottom").setHeight(0)
        for row, stretch in enumerate((5, 3, 3)):
            plot.view.ci.layout.setRowStretchFactor(row, stretch)
        self.phase.setYRange(-180, 180, padding=0.06)
        self.phase.getAxis("left").setTickSpacing(180, 90)
        self._drawn: list[tuple[pg.PlotItem, Any]] = []

    def clear(self) -> None:
        """Empty rows, such as for other channels; they stay, for building them takes a tenth of a second."""
        self._forget()
        self.size.setLabel("left", "size")

    def show_phase(self, on: bool) -> None:
        """Without the phase the other two have room in a small card."""
        if self.phase.isVisible() != on:
            self.phase.setVisible(on)
            self.phase.setMaximumHeight(16_777_215 if on else 0)
            self.plot.view.ci.layout.setRowStretchFactor(1, 3 if on else 0)

    def _forget(self) -> None:
        for item, drawn in self._drawn:
            item.removeItem(drawn)
        self._drawn = []

    def _line(self, item: pg.PlotItem, x: Any, y: Any, colour: int, name: str) -> None:
        drawn = self.plot.curve(item, colour, name)
        drawn.setData(x, y)
        self._drawn.append((item, drawn))

    def _dots(self, item: pg.PlotItem, x: Any, y: Any, colour: int, name: str, size: float) -> None:
        drawn = self.plot.points(item, colour, size, name)
        there = np.isfinite(y)
        drawn.setData(x[there], y[there])
        self._drawn.append((item, drawn))

    def show(self, found: FrequencyResponse, modes: list[Resonance] | tuple[Resonance, ...] = ()) -> None:
        """Averaged spectra, with a mark at each resonance."""
        self._forget()
        f, size = found.frequency, np.abs(found.response)
        self._label(found)
        self._line(self.size, f, np.log10(size + FLOOR), 0, "size")
        self._line(self.phase, f, unjumped(np.degrees(np.angle(found.response))), 0, "phase")
        self._line(self.below, f, found.coherence, 0, "coherence")
        self._coherence_scale()
        for mode in modes:
            mark = pg.InfiniteLine(
                mode.frequency, 90, pen=pg.mkPen(self.plot.theme.colours.muted, style=_DASHED)
            )
            self.size.addItem(mark, ignoreBounds=True)
            self._drawn.append((self.size, mark))

    def show_tone(self, found: FrequencyResponse, tone: Tone) -> None:
        """One frequency: all that the response to a sine tells."""
        self._forget()
        self._label(found)
        f, response = np.array([tone.frequency]), np.array([tone.response])
        self._dots(self.size, f, np.log10(np.abs(response) + FLOOR), 0, "size", 8)
        self._dots(self.phase, f, np.degrees(np.angle(response)), 0, "phase", 8)
        self._dots(self.below, f, np.array([tone.coherence]), 0, "coherence", 8)
        self._coherence_scale()
        self.size.setXRange(0, 2 * tone.frequency, padding=0)

    def show_lines(self, found: LinearApproximation) -> None:
        """A multisine's response line by line, and the level of every line by its kind."""
        self._forget()
        self._label(found)
        self._dots(self.size, found.frequency, np.log10(np.abs(found.response) + FLOOR), 0, "size", 4)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._dots(self.size, found.frequency, np.log10(found.noise), 6, "noise", 2)
            self._dots(self.size, found.frequency, np.log10(found.distortion), 1, "distortion", 2)
            self._dots(self.phase, found.frequency, np.degrees(np.angle(found.response)), 0, "phase", 4)
            quiet, odd = ~found.driven, found.number % 2 == 1
            apart = {d.kind for d in found.distortions} != {"any"}
            kinds = (found.driven, quiet & odd, quiet & ~odd) if apart else (found.driven, quiet)
            for members, (name, colour) in zip(kinds, GROUPS, strict=False):
                self._dots(self.below, found.lines[members], np.log10(found.level[members]), colour, name, 4)
            self._dots(self.below, found.lines, np.log10(found.noise_level), 6, "noise", 2)
        self.below.getAxis("left").setLogMode(True)
        self.below.setLabel("left", f"{found.output}, each line")
        self.below.enableAutoRange()

    def _coherence_scale(self) -> None:
        self.below.getAxis("left").setLogMode(False)
        self.below.setLabel("left", "coherence [–]")
        self.below.setYRange(0, 1, padding=0.04)

    def _label(self, found: FrequencyResponse | LinearApproximation) -> None:
        self.size.setLabel("left", axis_text(f"|{found.output} / {found.input}|", found.unit))
        self.size.enableAutoRange()


def unjumped(degrees: Any) -> Any:
    """A phase with a break instead of a line where it goes on at the other end of the scale."""
    broken = np.array(degrees)
    broken[1:][np.abs(np.diff(degrees)) > 180] = np.nan
    return broken


_DASHED = pg.QtCore.Qt.PenStyle.DotLine


class ResponsePlot(Plot):
    """The response of the record in hand."""

    def __init__(self, theme: Any) -> None:
        super().__init__(theme, "Response", help_text="Output over input at each frequency")
        self.rows = ResponseRows(self)

    def fit(self) -> None:
        """Show everything; phase and coherence keep their scales."""
        self.rows.size.enableAutoRange()


def levels_legend(plot: Plot, found: LinearApproximation) -> str:
    """What the colours of the lines mean, as rich text."""
    data = plot.theme.colours.data
    apart = {d.kind for d in found.distortions} != {"any"}
    names = GROUPS if apart else (("driven", 0), ("not driven", 1))
    parts = [*names, ("noise", 6)]
    return "&nbsp;&nbsp; ".join(f'<span style="color:{data[c]}">●</span> {name}' for name, c in parts)
