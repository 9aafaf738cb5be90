"""Validate: the fitted model beside the measurement."""

from __future__ import annotations

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QHBoxLayout, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.desktop import tasks
from app.desktop.page import Page
from app.desktop.plots.plot import Plot, axis_text
from app.desktop.tasks import Comparison
from app.desktop.widgets.basics import Card, Empty, Number, button, label, set_role
from app.desktop.workbench import Workbench
from app.desktop.worker import Job

LONG = 60_000  # samples compared
SHOWN = 4  # stretches in view at first


class ValidatePage(Page):
    """Response, growth of the error, section, and a verdict in words."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.job: Job | None = None
        self.comparison: Comparison | None = None
        self.stack = QStackedWidget()
        empty = Empty(
            self.theme,
            "validate",
            "Fit a model first; then it is put beside the measurement here.",
            "Go to Identify",
        )
        empty.button.clicked.connect(lambda: bench.go("identify"))
        self.stack.addWidget(empty)
        self.stack.addWidget(self._work())
        self.body.addWidget(self.stack, 1)
        bench.result_changed.connect(self._result_changed)
        bench.record_changed.connect(self._result_changed)
        self._result_changed()

    def _work(self) -> QWidget:
        theme = self.theme
        bar = Card(theme)
        row = QHBoxLayout()
        self.stretch = Number(1.0, 0.001, 1e6, "s", 3)
        self.stretch.setMaximumWidth(theme.px(120))
        self.stretch.setToolTip(
            "How long the model runs by itself before it is restarted from the measurement"
        )
        self.verdict = label("", "heading", wrap=True)
        row.addWidget(self.verdict, 1)
        row.addWidget(label("Restart every"))
        row.addWidget(self.stretch)
        self.run_button = button(
            "Compare", self.run, "Put the model beside the record in hand", "primary", "Ctrl+Return"
        )
        row.addWidget(self.run_button)
        bar.box.addLayout(row)
        self.response = Plot(theme, "Response", "time [s]", "", "Measured, and as the model has it")
        self.growth = Plot(theme, "Error after a restart", "time since restart [s]", "error [% of spread]",
                           "How fast model and measurement part")  # fmt: skip
        self.section = Plot(theme, "Section", "", "", "Once in each period of the drive: measured and model")
        self.numbers = label("", "muted", wrap=True)
        self.numbers.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.legend = label("", "small")
        self.response.head.insertWidget(1, self.legend)
        facts = Card(theme, "In numbers")
        facts.add(self.numbers)
        facts.box.addStretch(1)
        below = QSplitter(Qt.Orientation.Horizontal)
        for part in (self.growth, self.section, facts):
            below.addWidget(part)
        below.setSizes([400, 400, 300])
        whole = QSplitter(Qt.Orientation.Vertical)
        whole.addWidget(self.response)
        whole.addWidget(below)
        for splitter in (below, whole):
            splitter.setHandleWidth(theme.px(10))
            splitter.setChildrenCollapsible(False)
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(10))
        column.addWidget(bar)
        column.addWidget(whole, 1)
        self.theme.changed.connect(self._legend)
        return page

    # -- comparing

    def _result_changed(self) -> None:
        record, ready = self.bench.record, self.bench.result is not None
        self.stack.setCurrentIndex(1 if ready and record is not None else 0)
        self.comparison = None
        if record is not None:
            drive = record.record.excitation
            period = (
                1 / drive.frequency if drive is not None and drive.frequency else record.record.duration / 100
            )
            self.stretch.setValue(4 * period)
        if ready and self.isVisible():
            self.run()

    def on_show(self) -> None:
        if self.bench.result is not None and self.comparison is None:
            self.run()

    def run(self) -> None:
        record, model, result = self.bench.record, self.bench.model, self.bench.result
        if record is None or model is None or result is None or self.job is not None:
            return
        data = record.record.cut(0, min(LONG, len(record.record)))
        mapping = self.bench.findings.get("mapping", {})
        self.job = self.bench.workers.run(
            "Comparing", tasks.compare, result.model_text or model.text, data, mapping, result.values(),
            self.stretch.value(),
        )  # fmt: skip
        self.job.stepped.connect(lambda step: self._say(step.message, "muted"))
        self.job.done.connect(self._show)
        self.job.failed.connect(lambda text: self._say(text, "bad"))
        self.job.cancelled.connect(lambda: self._say("Cancelled.", "muted"))
        self.job.ended.connect(self._ended)
        self.run_button.setEnabled(False)

    def _ended(self) -> None:
        self.job = None
        self.run_button.setEnabled(True)

    def _show(self, found: Comparison) -> None:
        self.comparison = found
        self.bench.find("comparison", found)
        self._say(found.verdict, "heading")
        self._draw_response(found)
        self._draw_growth(found)
        self._draw_section(found)
        self._write_numbers(found)
        self._legend()

    def _unit(self, name: str) -> str:
        record = self.bench.record
        channel = self.bench.findings.get("mapping", {}).get(name, name)
        if record is None or channel not in record.record:
            return ""
        return record.record.channels[channel].unit

    def _draw_response(self, found: Comparison) -> None:
        p = found.prediction
        self.response.clear_rows()
        broken = p.restarted.copy()
        broken[:, p.starts] = np.nan  # the line breaks where the model is restarted
        for i, name in enumerate(p.names[:4]):
            last = i == min(len(p.names), 4) - 1
            item = self.response.add_row("time [s]" if last else "", axis_text(name, self._unit(name)))
            if not last:
                item.getAxis("bottom").setStyle(showValues=False)
                item.getAxis("bottom").setHeight(0)
            self.response.curve(item, 6, "measured").setData(p.times, p.measured[i])
            self.response.curve(item, 1, "model").setData(p.times, broken[i])
            low, high = np.nanmin(p.measured[i]), np.nanmax(p.measured[i])  # a model that runs away stays out
            item.setYRange(low, high, padding=0.15)
        self.response.items[0].setXRange(0, min(SHOWN * float(p.since[-1]), float(p.times[-1])), padding=0)

    def _draw_growth(self, found: Comparison) -> None:
        p = found.prediction
        self.growth.clear_rows()
        item = self.growth.add_row("time since restart [s]", "error [% of spread]")
        for i, name in enumerate(p.names):
            self.growth.curve(item, i, name).setData(p.since, 100 * p.growth[i])
        item.setYRange(0, float(np.clip(100 * np.nanmax(p.growth), 1e-6, 200)), padding=0.05)

    def _draw_section(self, found: Comparison) -> None:
        names = found.prediction.names
        self.section.clear_rows()
        first, second = names[0], names[1] if len(names) > 1 else names[0]
        after = "" if len(names) > 1 else " next"
        item = self.section.add_row(
            axis_text(first, self._unit(first)), axis_text(second + after, self._unit(second))
        )
        for colour, points, caption in (
            (6, found.measured_section, "measured"),
            (1, found.model_section, "model"),
        ):
            x, y = (points[0], points[1]) if len(names) > 1 else (points[0, :-1], points[0, 1:])
            self.section.points(item, colour, 4, caption).setData(x, y)

    def _write_numbers(self, found: Comparison) -> None:
        p = found.prediction
        lines = [f"{name}: {100 * e:.3g} % rms error" for name, e in zip(p.names, p.error, strict=True)]
        far = "beyond the stretch" if np.isinf(p.horizon) else f"{p.horizon:.3g} s"
        lines.append(f"followed for: {far}")
        for i, (value, error) in enumerate(zip(found.exponents, found.exponent_errors, strict=True), 1):
            lines.append(f"exponent {i}: {value:.3g} ± {error:.1g} per s")
        value, error = found.measured_exponent
        if np.isfinite(value):
            lines.append(f"largest, measured: {value:.3g} ± {error:.1g} per s")
        self.numbers.setText("\n".join(lines))

    def _legend(self) -> None:
        c = self.theme.colours
        self.legend.setText(
            f'&nbsp;&nbsp;<span style="color:{c.data[6]}">━</span> measured&nbsp;&nbsp;'
            f'<span style="color:{c.data[1]}">━</span> model'
        )

    def _say(self, text: str, role: str) -> None:
        self.verdict.setText(text)
        set_role(self.verdict, role)
