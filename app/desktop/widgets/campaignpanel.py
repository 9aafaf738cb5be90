"""Identify all: a table that fills, a click on a row opens that fit, and the parameters as trends."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QColor
from PyQt6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QSplitter,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from analysis import METHODS, Estimate, Identification, ShakedownError, Step, with_error
from app.campaign import batch
from app.campaign.batch import Fit
from app.campaign.store import fit_path
from app.campaign.summary import moment, natural
from app.dates import date_text
from app.desktop.plots.plot import Plot, axis_text
from app.desktop.widgets.basics import Card, button, label, progress_bar, set_role, timer
from app.desktop.workbench import Workbench, read_file
from app.desktop.worker import Job
from app.words import counted

if TYPE_CHECKING:
    from app.campaign.results import Results

LOOKS = 500  # ms between two looks at the results while a campaign runs
SENTENCES = 2  # that are shown; all of them are in the tooltip and on the page
TICKS, TEXT = 12, 20  # words below an axis, and letters of each
DATE, NUMBER = "date", "number of the recording"
NO_MODEL = "Choose a model on the Identify page first; then come back here."
NO_RECORDING = "Choose recordings in the list."
READY = (
    "Identify all fits the model to each recording. The table fills as fits are done, a click on a row opens "
    "that fit, and below it any parameter is drawn over the date or what else the recordings carry."
)
STATES = {"fits": "good", "close": "warn", "misses": "bad", "cannot tell": "bad"}


class CampaignPanel(QWidget):
    """The model in hand, fitted to many recordings."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench, self.theme = bench, bench.theme
        self.job: Job | None = None
        self.paths: list[Path] = []
        self.folder: Path | None = None  # of the results that are shown
        self.fits: list[Fit] = []
        self._lost: dict[str, str] = {}  # why recordings have no fit, by name; what is lost is not kept
        self._size = -1
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(self.theme.px(10))
        box.addWidget(self._head())
        self.below = QSplitter(Qt.Orientation.Vertical)
        self.below.setHandleWidth(self.theme.px(10))
        self.below.setChildrenCollapsible(False)
        self.below.addWidget(self._table_card())
        self.below.addWidget(self._trend_card())
        self.below.setSizes([200, 220])
        self.below.hide()  # until there is something to show
        box.addWidget(self.below, 1)
        box.addStretch(0)
        self._timer = timer(self, LOOKS, self._look)
        bench.model_changed.connect(self._follow)
        self._follow()

    def _head(self) -> QWidget:
        card = Card(self.theme)
        self.title = label("", "heading")
        self.state = label("", "small", wrap=True)
        self.state.setMinimumHeight(self.theme.px(68))  # room for the sentences, also in a narrow window
        self.state.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.method = QComboBox()
        for name, entry in METHODS.items():
            if not entry.module:
                self.method.addItem(name, name)
                self.method.setItemData(self.method.count() - 1, entry.words, Qt.ItemDataRole.ToolTipRole)
        self.method.setToolTip("How the parameters are found")
        self.method.setAccessibleName("How the parameters are found")
        self.run_button = button(
            "Identify all", self.run, "Fit the model to every chosen recording", "primary"
        )
        self.model_button = button(
            "Choose a model", lambda: self.bench.go("identify"), "Take a model in hand on the Identify page"
        )
        self.cancel_button = button("Cancel", self.cancel, "Stop; what is done is kept")
        self.page_button = button("Open the page", self.open_page, "The campaign as one HTML page")
        self.cancel_button.hide()
        self.page_button.hide()
        row = QHBoxLayout()
        row.addWidget(self.title, 1)
        buttons = (self.model_button, self.page_button, self.cancel_button, self.run_button)
        for widget in (self.method, *buttons):
            row.addWidget(widget)
        card.box.addLayout(row)
        self.bar = progress_bar(1000)
        self.bar.hide()
        card.add(self.bar)
        card.add(self.state)
        return card

    def _table_card(self) -> QWidget:
        card = Card(self.theme)
        self.table = QTableWidget()
        side = self.table.verticalHeader()
        assert side is not None
        side.hide()
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.table.setToolTip("A click opens that fit on the Identify page")
        self.table.cellClicked.connect(lambda row, _: self.open_fit(row))
        card.add(self.table, 1)
        return card

    def _trend_card(self) -> QWidget:
        whole = QWidget()
        box = QVBoxLayout(whole)
        box.setContentsMargins(0, 0, 0, 0)
        row = QHBoxLayout()
        self.parameter, self.over = QComboBox(), QComboBox()
        self.parameter.setToolTip("The parameter that is drawn")
        self.over.setToolTip("What it is drawn over: the date, or an entry of the recordings")
        row.addWidget(label("Trend of", "muted"))
        row.addWidget(self.parameter)
        row.addWidget(label("over", "muted"))
        row.addWidget(self.over)
        row.addStretch(1)
        box.addLayout(row)
        self.plot = Plot(self.theme, "Trend")
        self.bars, self.dots = self.plot.curve(colour=7), self.plot.points(size=7.0)
        box.addWidget(self.plot, 1)
        for chooser in (self.parameter, self.over):
            chooser.activated.connect(lambda _: self._draw())
        return whole

    # -- what is chosen

    def choose(self, paths: Sequence[Path]) -> None:
        """Recordings that are to be identified."""
        if self.job is None:
            self.paths = list(paths)
            self._follow()

    @property
    def _no_model(self) -> bool:
        return bool(self.bench.model_problem) or self.bench.model is None

    def _missing(self) -> str:
        if self._no_model:
            return NO_MODEL
        return "" if self.paths else NO_RECORDING

    def _follow(self) -> None:
        model, missing = self.bench.model, self._missing()
        self.title.setText(f"{counted(len(self.paths), 'recording')}, {model.name if model else 'no model'}")
        self.run_button.setEnabled(not missing and self.job is None)
        self.model_button.setVisible(self._no_model)
        if self.job is None and missing:
            self._say(missing, "small")
        elif self.job is None and self.state.text() in ("", NO_MODEL, NO_RECORDING):
            self._say(READY, "small")

    # -- running

    def run(self) -> None:
        """Fit the model in hand to all chosen recordings, elsewhere."""
        model = self.bench.model
        if model is None or self._missing() or self.job is not None:
            return
        name = re.sub(r"[^\w.+-]+", "-", model.name).strip("-.") or "model"
        self.folder, self._size = self.bench.settings.library_folder / "campaigns" / name, -1
        self._lost = {}
        self._show([])
        self.job = self.bench.workers.run(
            f"Identifying {counted(len(self.paths), 'recording')}",
            batch.identify_all,
            self.paths,
            model.text,
            str(self.method.currentData()),
            self.bench.findings.get("mapping", {}),
            self.folder,
        )
        self.job.stepped.connect(self._step)
        self.job.done.connect(self._done)
        self.job.failed.connect(lambda text: self._say(text, "bad"))
        self.job.cancelled.connect(lambda: self._say("Stopped; what is done is kept.", "small"))
        self.job.ended.connect(self._ended)
        self._say("Starting", "small")
        self.page_button.hide()
        self.cancel_button.show()
        self.bar.show()
        self._timer.start()
        self._follow()

    def cancel(self) -> None:
        if self.job is not None:
            self.job.cancel()

    def _step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))
        self._say(step.message, "small")

    def _done(self, results: Results) -> None:
        first = sorted(results.sentences, key=lambda text: " after recording " not in text)  # changes first
        self._say("\n".join(first[:SENTENCES]) or "Done.", "small")
        self.state.setToolTip("\n".join(results.sentences))
        self.page_button.setVisible(any(path.suffix == ".html" for path in results.files))
        self._lost = {name: words for words, names in results.causes.items() for name in names}
        self._size = -1

    def _ended(self) -> None:
        self.job = None
        self._timer.stop()
        self.bar.hide()
        self.bar.setValue(0)
        self.cancel_button.hide()
        self._look()
        self._follow()

    def _look(self) -> None:
        """Show what has come since the last look."""
        if self.folder is None or (size := batch.size(self.folder)) == self._size:
            return
        self._size = size
        self._show([self._told(fit) for fit in batch.fits(self.folder)])

    def _told(self, fit: Fit) -> Fit:
        """A row without a fit says why: one whose process was lost, or that took too long, is done again the
        next time and not kept."""
        if fit.parameters is not None or fit.failure:
            return fit
        return replace(fit, failure=self._lost.get(fit.path.stem, ""))

    # -- showing

    def _show(self, fits: list[Fit]) -> None:
        self.fits = fits
        self.below.setVisible(bool(fits))
        names = list(dict.fromkeys(n for fit in fits for n in fit.parameters or ()))
        units = {n: e[-1] for fit in fits for n, e in (fit.parameters or {}).items()}
        headings = ["Recording", "Verdict", *(axis_text(n, units[n]) for n in names)]
        self.table.setColumnCount(len(headings))
        self.table.setHorizontalHeaderLabels(headings)
        self.table.setRowCount(len(fits))
        for i, fit in enumerate(fits):
            state = fit.verdict or ("failed" if fit.failure else "…")
            cells = [fit.path.stem, state, *(_cell(fit, n) for n in names)]
            for j, text in enumerate(cells):
                item = QTableWidgetItem(text)
                item.setToolTip(fit.failure or str(fit.path))
                if j == 1 and (role := "bad" if fit.failure else STATES.get(fit.verdict)):
                    item.setForeground(QColor(getattr(self.theme.colours, role)))
                self.table.setItem(i, j, item)
        head = self.table.horizontalHeader()
        assert head is not None
        head.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        _refill(self.parameter, names)
        _refill(self.over, [DATE, NUMBER, *_entries(fits)])
        self._draw()

    def _draw(self) -> None:
        """The chosen parameter with error bars; only fits that may be used."""
        name, over = self.parameter.currentText(), self.over.currentText()
        used = [fit for fit in self.fits if fit.usable and name in (fit.parameters or {})]
        x, axis, texts = _places(used, over)
        y = np.array([fit.parameters[name][0] for fit in used if fit.parameters], dtype=np.float64)
        e = np.array(
            [fit.parameters[name][1] or math.nan for fit in used if fit.parameters], dtype=np.float64
        )
        known = np.isfinite(x)
        x, y, e = x[known], y[known], e[known]
        self.dots.setData(x, y)
        self.bars.setData(np.repeat(x, 3), np.stack([y - e, y + e, np.full(len(y), np.nan)], axis=1).ravel())
        unit = next((fit.parameters[name][-1] for fit in used if fit.parameters), "")
        self.plot.item.setLabel("left", axis_text(name, unit))
        self.plot.item.setLabel("bottom", axis)
        ticks = [(i, text[:TEXT]) for i, text in enumerate(texts, 1)]
        self.plot.item.getAxis("bottom").setTicks([ticks[:: 1 + len(ticks) // TICKS]] if ticks else None)
        self.plot.fit()

    def open_fit(self, row: int) -> None:
        """Take the recording of a row and its fit in hand."""
        fit = self.fits[row]
        if fit.parameters is None or self.folder is None:
            if fit.failure:
                self.bench.say(f"{fit.path.stem}: {fit.failure}", "warn")
            return
        try:
            text = fit_path(self.folder, fit.key).read_text(encoding="utf-8")
            found = Identification.from_json(text)
        except (OSError, UnicodeDecodeError, ShakedownError):
            self.bench.say(f"The fit of {fit.path.stem} is no longer there: identify it again.", "bad")
            return
        job = self.bench.workers.run(f"Opening {fit.path.name}", read_file, fit.path)
        job.done.connect(lambda answer: self._opened(fit, found, answer[0]))
        job.failed.connect(lambda words: self.bench.say(words, "bad"))

    def _opened(self, fit: Fit, found: Identification, record: object) -> None:
        self.bench.take_record(record, fit.path.stem, fit.path)  # type: ignore[arg-type]
        self.bench.take_result(found)
        self.bench.go("identify")

    def open_page(self) -> None:
        from PyQt6.QtCore import QUrl
        from PyQt6.QtGui import QDesktopServices

        if self.folder is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.folder / "campaign.html")))

    def _say(self, text: str, role: str) -> None:
        self.state.setText(text)
        set_role(self.state, role)


def _cell(fit: Fit, name: str) -> str:
    entry = (fit.parameters or {}).get(name)
    if entry is None or entry[0] is None:
        return ""
    return with_error(Estimate(entry[0], math.nan if entry[1] is None else entry[1]))


def _entries(fits: Sequence[Fit]) -> list[str]:
    """Entries of the recordings that differ."""
    found: dict[str, set[str]] = {}
    for fit in fits:
        for name, value in fit.metadata.items():
            found.setdefault(name, set()).add(str(value))
    return [name for name, values in found.items() if len(values) > 1]


def _places(fits: Sequence[Fit], over: str) -> tuple[np.ndarray, str, list[str]]:
    """Where each fit is drawn (nan: it does not say), the words of the axis, and the texts at 1, 2, ... where
    the entry is one that has no numbers."""
    if over == DATE:
        moments = [moment(fit.start) for fit in fits]
        first = min((m for m in moments if m is not None), default=0.0)
        days = [math.nan if m is None else (m - first) / 86400 for m in moments]
        since = date_text(datetime.fromtimestamp(first).date()) if first else "the first"
        return np.array(days, dtype=np.float64), f"time since {since} [days]", []
    if over == NUMBER:
        return np.arange(1.0, len(fits) + 1), "recording [–]", []
    values = [fit.metadata.get(over) for fit in fits]
    try:
        numbers = [math.nan if v is None else float(v) for v in values]
        return np.array(numbers, dtype=np.float64), axis_text(over), []
    except ValueError:
        texts = sorted({str(v) for v in values if v is not None}, key=natural)
        place = {text: float(i) for i, text in enumerate(texts, 1)}
        found = [math.nan if v is None else place[str(v)] for v in values]
        return np.array(found, dtype=np.float64), over, texts


def _refill(chooser: QComboBox, names: Sequence[str]) -> None:
    """The names to choose from, the chosen one kept."""
    if [chooser.itemText(i) for i in range(chooser.count())] == list(names):
        return
    chosen = chooser.currentText()
    chooser.clear()
    chooser.addItems(list(names))
    chooser.setCurrentIndex(max(chooser.findText(chosen), 0))
