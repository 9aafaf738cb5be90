"""The import preview: how a file of another program is read, each guess to be changed before it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app import library
from app.desktop.plots.plot import Plot
from app.desktop.widgets.basics import Card, Choice, add_row, form, label, set_role, timer
from app.desktop.widgets.number import Number
from app.desktop.workbench import Workbench
from app.desktop.worker import Job
from app.library import Import, Preview
from app.numbers import localised, number_text
from app.words import with_minus
from drivers.formats.options import DECIMALS, SEPARATORS, Options

ROWS = 8  # of numbers shown
WIDTHS = 80, 200  # px of a column, at least and at most
DRAWN = 4000  # samples of the plot
AS_FOUND = "as found"
NONE = "none"
FIELDS = {
    "--resample HZ": "Resample to",
    "--rate HZ": "Sample rate",
    "--header LINE": "Titles in line",
    "--time none": "Times: none",
}
NAME, UNIT = 0, 1  # rows of the table above the numbers


class ImportDialog(QDialog):
    """Choices to the left; names, units, first rows and a plot of what they give to the right."""

    def __init__(self, bench: Workbench, paths: Sequence[Path], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bench, self.paths, theme = bench, list(paths), bench.theme
        self.found: Preview | None = None
        self._job: Job | None = None
        self._again = False
        self._names: dict[str, str] = {}  # typed ones by those of the file
        self._units: dict[str, str] = {}
        several = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        self.setWindowTitle(f"Import {paths[0].name}{several}")
        self.resize(theme.px(920), theme.px(560))
        self.separator, self.decimal, self.table_choice, self.time = (Choice() for _ in range(4))
        self.separator.addItems([AS_FOUND, *SEPARATORS])
        self.decimal.addItems([AS_FOUND, *DECIMALS])
        self.header = Number(0.0, 0.0, 1e6, "", 0)
        self.rate, self.resample = (Number(0.0, 0.0, 1e9, "Hz", 3) for _ in range(2))
        self.join = QCheckBox("Blocks of one measurement: join them")
        self.join.setVisible(len(paths) > 1)
        choices = Card(theme, "How it is read")
        fields = form(theme)
        for words, field, tip in (
            ("Separator", self.separator, "Between two columns of a table of text"),
            ("Decimal mark", self.decimal, "Point or comma"),
            ("Titles in line", self.header, "The line that names the columns; 0: as found"),
            ("Table", self.table_choice, "Which of several sets of signals of equal length"),
            ("Times", self.time, "The column that holds the times"),
            ("Sample rate", self.rate, "Of a file that does not tell it; 0: as found"),
            ("Resample to", self.resample, "Uniform rate for rounded or uneven times; 0: not at all"),
        ):
            add_row(theme, fields, words, field, tip)
        choices.box.addLayout(fields)
        choices.add(self.join)
        choices.box.addStretch(1)
        choices.setFixedWidth(theme.px(310))
        self.state = label("", "small", wrap=True)
        self.table = QTableWidget()
        self.table.setAccessibleName("Names, units and first rows")
        self.table.setToolTip(
            "Type other names and units into the first two rows; an empty name leaves it out"
        )
        self.table.itemChanged.connect(self._typed)
        header = self.table.horizontalHeader()
        assert header is not None
        header.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.plot = Plot(theme, "Beginning", "time [s]", "")
        self.plot.setMinimumHeight(theme.px(170))
        right = QVBoxLayout()
        right.addWidget(self.state)
        right.addWidget(self.table, 1)
        right.addWidget(self.plot, 1)
        across = QHBoxLayout()
        across.addWidget(choices)
        across.addLayout(right, 1)
        self.buttons = QDialogButtonBox()
        self.buttons.addButton(QPushButton("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        self.take = QPushButton("Import")
        self.take.setObjectName("primary")
        self.buttons.addButton(self.take, QDialogButtonBox.ButtonRole.AcceptRole)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        box = QVBoxLayout(self)
        box.addLayout(across, 1)
        box.addWidget(self.buttons)
        self._later = timer(self, 250, self.look, single=True)
        for chooser in (self.separator, self.decimal, self.table_choice, self.time):
            chooser.activated.connect(lambda _: self._later.start())
        for number in (self.header, self.rate, self.resample):
            number.valueChanged.connect(lambda _: self._later.start())
        self.look()

    # -- looking

    def options(self) -> Options:
        """What is chosen so far."""
        time = self.time.currentData()
        return Options(
            rate=self.rate.value() or None,
            resample=self.resample.value() or None,
            table=self.table_choice.currentIndex() + 1 if self.table_choice.currentIndex() > 0 else None,
            time=None if time is None else str(time),
            separator=None if self.separator.currentText() == AS_FOUND else self.separator.currentText(),
            decimal=None if self.decimal.currentText() == AS_FOUND else self.decimal.currentText(),
            header=round(self.header.value()) or None,
        )

    def chosen(self) -> Import:
        """How the files are to be imported."""
        return Import(self.options(), dict(self._names), dict(self._units), self.join.isChecked())

    def look(self) -> None:
        """Read the beginning of the first file, elsewhere; the newest choice wins."""
        if self._job is not None:
            self._again = True
            return
        self.take.setEnabled(False)
        self.state.setText(f"Reading {self.paths[0].name} …")
        set_role(self.state, "small")
        self._job = self.bench.workers.run(
            f"Looking into {self.paths[0].name}", library.preview, self.paths[0], self.options(), quiet=True
        )
        self._job.done.connect(self._show)
        self._job.failed.connect(lambda words: self._show(Preview(words)))
        self._job.ended.connect(self._ended)

    def _ended(self) -> None:
        self._job = None
        if self._again:
            self._again = False
            self.look()

    def done(self, code: int) -> None:
        if self._job is not None:
            self._job.silence()
            self._job.cancel()
        super().done(code)

    def _show(self, found: Preview) -> None:
        self.found = found
        self.take.setEnabled(not found.problem)
        if found.problem:
            self.state.setText(in_this_window(found.problem))
            set_role(self.state, "bad")
            if found.guesses.columns:  # only its times are not understood
                self._offer(found)
            self._show_lines(found)
            self._draw(Preview())
            return
        set_role(self.state, "small")
        rate = number_text(found.rate, 3)
        how = "; ".join([*found.guesses.words(), *found.remarks])
        self.state.setText(f"{found.samples} samples at {rate} Hz: {how}.")
        for field in (self.separator, self.decimal, self.header):
            field.setEnabled(bool(found.guesses.separator))
        self._offer(found)
        self._show_rows(found)
        self._draw(found)

    def _offer(self, found: Preview) -> None:
        """Tables and columns to choose from, those in use chosen."""
        guesses = found.guesses
        self.table_choice.clear()
        self.table_choice.addItems(guesses.tables or (AS_FOUND,))
        self.table_choice.setCurrentIndex(guesses.table - 1 if guesses.tables else 0)
        kept = self.time.currentData()
        self.time.clear()
        seen = guesses.time or ("" if found.problem else NONE)  # times that are not understood are no guess
        self.time.addItem(f"{AS_FOUND}: {seen}" if kept is None and seen else AS_FOUND, None)
        self.time.addItem(NONE, "")
        for name in guesses.columns:
            self.time.addItem(name, name)
        at = self.time.findData(kept) if kept is not None else 0
        self.time.setCurrentIndex(max(at, 0))

    def _show_rows(self, found: Preview) -> None:
        self.table.blockSignals(True)
        self.table.clear()
        count = min(ROWS, found.first.shape[1])
        self.table.setRowCount(count + 2 if found.names else 0)
        self.table.setColumnCount(len(found.names))
        self.table.setHorizontalHeaderLabels(found.names)
        self.table.setVerticalHeaderLabels(["Name", "Unit", *(str(i + 1) for i in range(count))])
        for column, (name, unit) in enumerate(zip(found.names, found.units, strict=True)):
            self.table.setItem(NAME, column, QTableWidgetItem(self._names.get(name, name)))
            self.table.setItem(UNIT, column, QTableWidgetItem(self._units.get(name, unit)))
            for row in range(count):
                value = found.first[column, row]
                text = with_minus(localised(f"{value:z.6g}")) if np.isfinite(value) else "–"
                cell = QTableWidgetItem(text)
                cell.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
                cell.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                self.table.setItem(row + 2, column, cell)
        self.table.resizeColumnsToContents()
        narrowest, widest = (self.bench.theme.px(width) for width in WIDTHS)
        for column in range(len(found.names)):
            width = min(max(self.table.columnWidth(column), narrowest), widest)
            self.table.setColumnWidth(column, width)
        self.table.blockSignals(False)

    def _show_lines(self, found: Preview) -> None:
        """The text itself, by which a person sees what to choose."""
        self.table.blockSignals(True)
        self.table.clear()
        self.table.setRowCount(len(found.lines))
        self.table.setColumnCount(1 if found.lines else 0)
        self.table.setHorizontalHeaderLabels(["The file's own lines"])
        self.table.setVerticalHeaderLabels([str(number) for number, _ in found.lines])
        for row, (_, text) in enumerate(found.lines):
            cell = QTableWidgetItem(text)
            cell.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
            self.table.setItem(row, 0, cell)
        self.table.resizeColumnsToContents()
        self.table.blockSignals(False)

    def _typed(self, item: QTableWidgetItem) -> None:
        if self.found is None or self.found.problem or item.row() > UNIT:
            return
        name = self.found.names[item.column()]
        (self._names if item.row() == NAME else self._units)[name] = item.text().strip()

    def _draw(self, found: Preview) -> None:
        self.plot.clear_rows()
        shown = list(enumerate(found.names))[:4]
        for index, name in shown:
            last = index == len(shown) - 1
            item = self.plot.add_row("time [s]" if last else "", name.rpartition(".")[2] or name)
            if not last:
                item.getAxis("bottom").setStyle(showValues=False)
                item.getAxis("bottom").setHeight(0)
            curve = self.plot.curve(item, index, name)
            values = found.first[index, :DRAWN]
            curve.setData(np.arange(len(values)) / found.rate, values)


def in_this_window(words: str) -> str:
    """A sentence that names options of the command line, with the fields that are meant."""
    for option, field in FIELDS.items():
        words = words.replace(option, f"“{field}”")
    return words


def ask_import(bench: Workbench, paths: Sequence[Path], parent: QWidget) -> Import | None:
    """Show the preview; None if the files are not to be imported."""
    dialog = ImportDialog(bench, paths, parent)
    answer = dialog.chosen() if dialog.exec() else None
    dialog.deleteLater()
    return answer
