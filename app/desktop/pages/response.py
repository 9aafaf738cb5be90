"""Response: frequency response, coherence and resonances of the record in hand; distortion of a multisine."""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from pathlib import Path

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QSplitter,
    QTableWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from analysis import (
    ESTIMATORS,
    WINDOWS,
    Estimate,
    FrequencyResponse,
    LinearApproximation,
    ShakedownError,
    with_error,
)
from app.desktop import tasks
from app.desktop.page import Page
from app.desktop.pages.orbits import DRIVES
from app.desktop.plots.response import ResponsePlot, levels_legend
from app.desktop.tasks import Responded, Tone
from app.desktop.widgets.basics import (
    Card,
    add_row,
    button,
    form,
    label,
    scrolled,
    sentence,
    set_role,
    timer,
)
from app.desktop.widgets.number import Number
from app.desktop.widgets.tables import fill_table
from app.desktop.widgets.trackpanel import TrackPanel
from app.desktop.workbench import RecordInHand, Workbench
from app.words import counted, plain

SEGMENTS = (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)  # frequency lines; 0: chosen
OVERLAPS = (0, 50, 67, 75)  # per cent
BY_DRIVE, AVERAGE, LINES = "by the recorded drive", "averaged spectra", "multisine, line by line"
MARKERS = 4  # of them named
WORDS = "Not driven"  # the column that holds no numbers
FILES = "Universal file (*.uff);;MATLAB (*.mat);;Table (*.csv)"


class ResponsePage(Page):
    """The plot to the left; what is computed, and what was found, to the right."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.found: Responded | None = None
        self._shown: RecordInHand | None = None
        self._again = False
        self.plot = ResponsePlot(self.theme)
        missing = "Take a recording in hand to see how it answers its drive."
        self.stack = self.or_nothing(self._work(), "response", missing, "Recordings")
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.stack, "Of the record")
        self.track_panel = TrackPanel(bench)
        self.tabs.addTab(self.track_panel, "Track on the rig")
        self.body.addWidget(self.tabs, 1)
        self._later = timer(self, 150, self.run, single=True)
        for box in (
            self.input,
            self.output,
            self.method,
            self.estimator,
            self.window_box,
            self.lines,
            self.overlap,
        ):
            box.currentIndexChanged.connect(lambda _: self._later.start())
        self.period.valueChanged.connect(lambda _: self._later.start())
        bench.record_changed.connect(self._record_changed)
        self._record_changed()

    def _work(self) -> QWidget:
        theme = self.theme
        self.input, self.output, self.method = QComboBox(), QComboBox(), QComboBox()
        self.estimator, self.window_box, self.lines, self.overlap = (QComboBox() for _ in range(4))
        self.method.addItems([BY_DRIVE, AVERAGE, LINES])
        for name, words in ESTIMATORS.items():
            self.estimator.addItem(f"{name.upper()}: {words}", name)
        self.window_box.addItems(list(WINDOWS))
        for count in SEGMENTS:
            self.lines.addItem(f"{count}" if count else "chosen for a dozen averages", count)
        for overlap in OVERLAPS:
            self.overlap.addItem(f"{overlap} %", overlap)
        self.overlap.setCurrentIndex(1)
        self.period = Number(0.0, 0.0, 1e6, "s", 6)
        choices = Card(theme, "How", "What is computed from the record in hand")
        fields = form(theme)
        for words, box, tip in (
            ("Input", self.input, "What drives: a force or a voltage"),
            ("Output", self.output, "What answers"),
            ("Method", self.method, "Averaged spectra, or line by line for a multisine"),
            ("Estimator", self.estimator, "Where the noise is"),
            ("Window", self.window_box, "Hann for most; flat top for heights; rectangular for whole periods"),
            ("Lines", self.lines, "Frequency lines: more lines are finer and noisier"),
            ("Overlap", self.overlap, "Of two segments"),
        ):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(8)
            add_row(theme, fields, words, box, tip)
        add_row(theme, fields, "Period", self.period, "Of a multisine; 0: as it was recorded with the drive")
        choices.box.addLayout(fields)
        results = Card(theme, "Found")
        self.verdict, self.state = label("", "heading", wrap=True), label("", "small", wrap=True)
        self.legend = label("", "small", wrap=True)
        for text in (self.verdict, self.state):
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.table = _table(theme.px(30))
        self.export_button = button("Save response", self.export, "As UFF58, MAT or CSV, for other programs")
        for widget in (self.verdict, self.state, self.legend):
            results.add(widget)
        results.add(self.table, 1)
        results.add(self.export_button)
        side = QWidget()
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, theme.px(2), 0)
        column.setSpacing(theme.px(10))
        column.addWidget(results, 1)
        column.addWidget(choices)
        self.table.setMinimumHeight(theme.px(118))
        controls = scrolled(side)
        controls.setMinimumWidth(theme.px(352))
        across = QSplitter(Qt.Orientation.Horizontal)
        across.addWidget(self.plot)
        across.addWidget(controls)
        across.setStretchFactor(0, 1)
        across.setHandleWidth(theme.px(10))
        across.setChildrenCollapsible(False)
        across.setSizes([theme.px(740), theme.px(372)])
        whole = QWidget()
        row = QHBoxLayout(whole)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(across)
        return whole

    # -- the record

    def _record_changed(self) -> None:
        record = self.bench.record
        self.stack.setCurrentIndex(0 if record is None else 1)
        if record is None:
            return
        names = list(record.record.names)
        drive = next((n for n in names if n in DRIVES), names[-1] if names else "")
        answer = next((n for n in names if n != drive), drive)
        for box, chosen in ((self.input, drive), (self.output, answer)):
            box.blockSignals(True)
            box.clear()
            box.addItems(names)
            box.setCurrentText(chosen)
            box.blockSignals(False)
        if self.isVisible():
            self.run()

    def on_show(self) -> None:
        if self.bench.record is not None and self._shown is not self.bench.record:
            self.run()

    def run(self) -> None:
        """Compute what is chosen, elsewhere; the newest choice wins."""
        record = self.bench.record
        if record is None or not self.input.currentText():
            return
        if self.job is not None:
            self._again = True
            return
        self._shown = record
        averaged = self.method.currentText() != LINES
        for box in (self.estimator, self.window_box, self.lines, self.overlap):
            box.setEnabled(averaged)
        self.period.setEnabled(self.method.currentText() != AVERAGE)
        self._say("Computing …", "small")
        self.job = job = self.bench.workers.run(
            "Computing the response",
            tasks.respond,
            record.record,
            self.input.currentText(),
            self.output.currentText(),
            {BY_DRIVE: "auto", AVERAGE: "average", LINES: "multisine"}[self.method.currentText()],
            str(self.estimator.currentData()),
            int(self.lines.currentData()) or None,
            self.window_box.currentText(),
            float(self.overlap.currentData()) / 100,
            self.period.value() or None,
            quiet=True,
        )
        job.done.connect(self._show)
        job.failed.connect(self._failed)
        job.ended.connect(self._ended)

    def _ended(self) -> None:
        self.job = None
        if self._again:
            self._again = False
            self.run()

    def _failed(self, words: str) -> None:
        self.found = None
        self.plot.rows.clear()
        self.table.setRowCount(0)
        self.verdict.setText("")
        self.legend.setText("")
        self.export_button.setEnabled(False)
        self._say(words, "bad")

    def _show(self, found: Responded) -> None:
        self.found = found
        self.export_button.setEnabled(True)
        response = found.response
        if isinstance(response, LinearApproximation):
            self.plot.rows.show_lines(response)
            self._show_lines(response)
        elif found.tone is not None:
            self.plot.rows.show_tone(response, found.tone)
            self._show_tone(response, found, found.tone)
        else:
            self.plot.rows.show(response, found.modes)
            self._show_average(response, found)

    def _show_tone(self, found: FrequencyResponse, answer: Responded, tone: Tone) -> None:
        """The response to a sine: one frequency, with size and phase."""
        self.verdict.setText("One frequency")
        self.legend.setText("")
        words = f"{_averaged(found)}."
        self._say(" ".join([*answer.doubts, *self._markers(), words]), "small")
        size, phase = abs(tone.response), math.degrees(cmath.phase(tone.response))
        unit = f"Size [{found.unit}]" if found.unit else "Size"
        row = (f"{tone.frequency:.5g}", f"{size:.4g}", f"{phase:.1f}", "")
        _fill(self.table, ("Hz", unit, "Phase [°]"), [row])

    def _markers(self) -> list[str]:
        """What somebody marked in the record: an average across an event mixes two states."""
        record = self._shown.record if self._shown is not None else None
        if record is None or not record.markers:
            return []
        told = [f"{m.text} at {m.index / record.rate:.4g} s" for m in record.markers[:MARKERS]]
        more = len(record.markers) - len(told)
        return [f"Averaged across marked moments: {', '.join(told)}{f' and {more} more' if more else ''}."]

    def _show_average(self, found: FrequencyResponse, answer: Responded) -> None:
        modes = answer.modes
        good = 100 * float((found.coherence > 0.8).mean())
        count = {0: "No clear resonance", 1: "One clear resonance"}
        self.verdict.setText(count.get(len(modes), f"{len(modes)} clear resonances"))
        self.legend.setText("")
        segments = _averaged(found)
        self._say(
            " ".join(
                [
                    *answer.doubts,
                    *self._markers(),
                    f"{segments}, a line every {plain(found.resolution)} Hz.",
                    f"Coherence above 0.8 at {good:.0f} % of the lines.",
                ]
            ),
            "warn" if answer.doubts else "small",
        )
        rows = [
            (
                with_error(Estimate(m.frequency, m.frequency_stderr)),
                with_error(Estimate(100 * m.damping, 100 * m.damping_stderr)),
                f"{m.height:.3g}",
                m.warning,
            )
            for m in modes
        ]
        height = f"[{found.unit}]" if found.unit else "Height"
        _fill(self.table, ("Hz", "Damping [%]", height), rows)

    def _show_lines(self, found: LinearApproximation) -> None:
        self.verdict.setText(sentence(found.verdict))
        self.legend.setText(levels_legend(self.plot, found))
        periods = f"{counted(len(found.frequency), 'driven line')}, {counted(found.periods, 'period')}."
        self._say(" ".join([periods, *found.messages]), "small")
        rows = [(d.kind, str(d.lines), f"{plain(100 * d.share, 2)} %", "") for d in found.distortions]
        rows.append(("noise", str(len(found.lines)), f"{plain(100 * found.noise_share, 2)} %", ""))
        _fill(self.table, (WORDS, "Lines", "Of the response"), rows)

    # -- acting

    def export(self) -> None:
        """Save the response in a format that other programs read."""
        if self.found is None:
            return
        name, kind = QFileDialog.getSaveFileName(
            self, "Save the response", str(Path.home() / "response.uff"), FILES
        )
        if not name:
            return
        ending = kind.rpartition("*")[2].rstrip(")")
        path = Path(name) if Path(name).suffix else Path(name + ending)
        self.save(path)

    def save(self, path: Path) -> None:
        """Write the response; what goes wrong is said."""
        from drivers.formats.responses import write_response

        assert self.found is not None
        try:
            write_response(self.found.response, path)
        except (ShakedownError, OSError) as error:
            self.bench.say(f"The response could not be saved: {error}", "bad")
        else:
            self.bench.say(f"The response is saved as {path.name}.", "good")

    def _say(self, text: str, role: str) -> None:
        self.state.setText(sentence(text))
        set_role(self.state, role)


def _averaged(found: FrequencyResponse) -> str:
    averages = plain(found.averages)
    things = "average" if averages == "1" else "averages"
    return f"{counted(found.segments, 'segment')}, {averages} independent {things}"


def _table(height: int) -> QTableWidget:
    table = QTableWidget()
    table.setSizeAdjustPolicy(QTableWidget.SizeAdjustPolicy.AdjustToContents)
    side = table.verticalHeader()
    assert side is not None
    side.hide()
    side.setDefaultSectionSize(height)
    table.setShowGrid(False)
    table.setAlternatingRowColors(True)
    table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
    table.setAccessibleName("What was found")
    table.setObjectName("narrow")
    return table


def _fill(table: QTableWidget, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Rows of numbers; the last of each row is its tooltip, and a mark where there is one."""
    marked = [
        [f"{text} ⚠" if row[-1] and c == 1 else text for c, text in enumerate(row[:-1])] for row in rows
    ]
    fill_table(table, headings, marked, [name for name in headings if name != WORDS])
    header = table.horizontalHeader()
    assert header is not None
    header.setStretchLastSection(False)  # the numbers stay beside each other
    for r, (*cells, tip) in enumerate(rows):
        for c in range(len(cells)):
            item = table.item(r, c)
            if item is not None:
                item.setToolTip(tip)
