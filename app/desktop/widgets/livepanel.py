"""Live identification: each parameter as a band that shrinks while data come in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyqtgraph as pg
from PyQt6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from analysis import Identification, percent, seconds_needed, with_error
from app.desktop.livefit import LiveFit
from app.desktop.plots.plot import Plot
from app.desktop.widgets.basics import Card, add_row, button, form, label, sentence, set_role
from app.desktop.widgets.number import Number
from app.desktop.workbench import Workbench
from app.words import plain
from drivers.base.protocols import Block

LANES = 6  # parameters drawn
KEPT = 2000  # estimates


class Bands(Plot):
    """One lane for each parameter: its value over time and its 95 % band."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(
            bench.theme, "Parameters", "data [s]", "", "Each band is a parameter's 95 % interval"
        )
        self._names: list[str] = []
        self._times: list[float] = []
        self._history: dict[str, list[tuple[float, float, float]]] = {}
        self._drawn: list[tuple[Any, Any, Any]] = []

    def begin(self) -> None:
        self._names, self._times, self._history, self._drawn = [], [], {}, []
        self.clear_rows()

    def take(self, result: Identification, seconds: float) -> None:
        """Add one estimate; the first ones have no error bars yet and would hide the others."""
        if not all(math.isfinite(e.stderr) for e in result.parameters.values()):
            return
        if not self._names:
            self._build(result)
        self._times = [*self._times, seconds][-KEPT:]
        x = np.array(self._times)
        for name, item, curves in zip(self._names, self.items, self._drawn, strict=True):
            e = result.parameters[name]
            kept = [*self._history.get(name, []), (e.value, e.lower, e.upper)][-KEPT:]
            self._history[name] = kept
            values = np.array(kept).T
            for curve, y in zip(curves, values, strict=True):
                curve.setData(x, y)
            recent = values[:, -max(3, len(x) * 2 // 3) :]
            bottom, top = float(recent[1].min()), float(recent[2].max())
            margin = 0.1 * (top - bottom) + 1e-9 * abs(top) + 1e-12
            item.setYRange(bottom - margin, top + margin, padding=0)
            item.setXRange(self._times[0], max(seconds, self._times[0] + 1.0), padding=0)

    def _build(self, result: Identification) -> None:
        self._names = list(result.parameters)[:LANES]
        for i, name in enumerate(self._names):
            last = i == len(self._names) - 1
            unit = result.parameters[name].unit
            item = self.add_row("data [s]" if last else "", f"{name} [{unit or '–'}]")
            item.disableAutoRange()
            item.getAxis("left").setWidth(self.theme.px(88))  # values with many digits
            if not last:
                item.getAxis("bottom").setStyle(showValues=False)
                item.getAxis("bottom").setHeight(0)
            value, low, high = (self.curve(item, i, name) for _ in range(3))
            colour = pg.mkColor(self.theme.colours.data[i])
            colour.setAlpha(60)
            item.addItem(pg.FillBetweenItem(low, high, brush=colour))
            self._drawn.append((value, low, high))


class LivePanel(QWidget):
    """Start, the precision asked for, the values now, and the bands."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench, theme = bench, bench.theme
        self.fit = LiveFit()
        self.result: Identification | None = None
        self.enough = False
        self.card = Card(theme, "Live fit", "Parameters with error bars from the data so far")
        fields = form(theme)
        self.precision = Number(1.0, 0.001, 50.0, "%", 3)
        add_row(theme, fields, "Wanted", self.precision, "Announce when every parameter is known this well")
        self.card.box.addLayout(fields)
        self.button = button(
            "Start live fit", self.toggle, "Fit the model to the data that come in", "primary"
        )
        self.card.add(self.button)
        self.state = label("Fits the rig's model while it runs.", "small", wrap=True)
        self.values = label("", "", wrap=True)
        self.card.add(self.state)
        self.card.add(self.values)
        self.bands = Bands(bench)
        # As high as there is room for: what the plot would like best would push its axis out of sight.
        self.bands.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        self.bands.setMinimumHeight(theme.px(260))
        self.bands.hide()
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, theme.px(2), 0)
        box.setSpacing(theme.px(10))
        box.addWidget(self.card)
        box.addWidget(self.bands, 1)
        self.filler = label("")
        box.addWidget(self.filler, 1)
        bench.feed.advanced.connect(self._take)
        bench.rig.closed.connect(self.stop)
        self.fit.estimated.connect(self._show)
        self.fit.failed.connect(self._failed)

    def toggle(self) -> None:
        if self.fit.running:
            self.stop()
        else:
            self.start()

    def start(self) -> None:
        """Fit the model in hand, or the one that belongs to the rig, to the data from now on."""
        if self.bench.model_problem:
            self._failed("The model's text on the Identify page is not understood: there is nothing to fit.")
            return
        text = self._model_text()
        if text is None:
            self._failed("There is no model: choose one on the Identify page.")
            return
        self.result, self.enough = None, False
        self.bands.begin()
        self.bands.show()
        self.filler.hide()
        self._say("Compiling the equations …", "small")
        self.values.setText("")
        self.button.setText("Stop live fit")
        self.fit.start(text, self.bench.rig.rate, [c.name for c in self.bench.rig.channels])

    def stop(self) -> None:
        if self.fit.running:
            self._say("Stopped.", "small")
        self.fit.stop()
        self.button.setText("Start live fit")

    def _model_text(self) -> str | None:
        if self.bench.model is not None:
            return self.bench.model.text
        rig = self.bench.rig.rig
        if rig is None or rig.profile is None or not rig.profile.model:
            return None
        from drivers.library import model_files

        path = model_files().get(rig.profile.model)
        return path.read_text(encoding="utf-8") if path is not None else None

    def _take(self, blocks: list[Block]) -> None:
        self.fit.take(blocks)

    def _show(self, result: Identification, seconds: float) -> None:
        self.result = result
        self.bands.take(result, seconds)
        rows = [f"{name} = {with_error(e)} {e.unit}".rstrip() for name, e in result.parameters.items()]
        self.values.setText(sentence("\n".join(rows)))
        self.values.setMinimumHeight(self.values.heightForWidth(self.values.width()))  # no row under another
        worst = max((_relative(e.value, e.stderr) for e in result.parameters.values()), default=math.inf)
        if worst <= self.precision.value() / 100:
            self._say(f"Enough data: every parameter is known to {plain(100 * worst, 2)} %.", "good")
            if not self.enough:
                self.enough = True
                self.bench.say(
                    f"Enough data after {seconds:.0f} s: every parameter has the precision asked for.", "good"
                )
        else:
            known = f"{plain(100 * worst, 2)} %" if math.isfinite(worst) else "not determined yet"
            more = how_much_longer(result, seconds, self.precision.value() / 100)
            self._say(f"{seconds:.0f} s of data, worst parameter: {known}.{more}", "small")

    def _failed(self, text: str) -> None:
        self.button.setText("Start live fit")
        self._say(text, "bad")

    def _say(self, text: str, role: str) -> None:
        self.state.setText(sentence(text))
        set_role(self.state, role)


def how_much_longer(result: Identification, seconds: float, target: float) -> str:
    """When every parameter is known that well if the drive goes on as it is, in words."""
    found = list(result.parameters.values())
    if not found or not all(0 < e.stderr < math.inf for e in found):
        return ""
    information = np.diag([1 / e.stderr**2 for e in found])
    wanted = seconds_needed(np.array([e.value for e in found]), information, seconds, target)
    if not seconds < wanted < math.inf:
        return ""
    return f" {percent(target, 3)} in about {float(f'{wanted - seconds:.2g}'):g} s more."


def _relative(value: float, error: float) -> float:
    return error / abs(value) if value and math.isfinite(error) else math.inf
