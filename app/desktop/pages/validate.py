"""Validate: the fitted model beside the measurement, check by check, with a verdict in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QColor, QResizeEvent
from PyQt6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from analysis import Step
from app.desktop import tasks
from app.desktop.icons import icon
from app.desktop.page import Page
from app.desktop.plots.panel import PanelPlot, legend
from app.desktop.widgets.basics import Card, button, label, progress_bar, sentence, set_role
from app.desktop.widgets.evidence import EvidenceBox
from app.desktop.widgets.verdictbanner import SHOWN, VerdictBanner
from app.desktop.workbench import Workbench
from app.output import as_words

if TYPE_CHECKING:
    from analysis import Check, Validation

LOW = 620  # height of a page on which all reasons of a verdict have room
LONG = 60_000  # samples compared
OUTCOMES = {  # of all checks together: picture, its colour, edge of the card
    "": ("", "muted", "card"),
    "passed": ("check", "good", "banner_fits"),
    "doubtful": ("warning", "warn", "banner_cannot_tell"),
    "failed": ("close", "bad", "banner_misses"),
}
SIGNS = {"passed": "✓", "doubtful": "?", "failed": "✗", "not possible": "–"}
ROLES = {"passed": "good", "doubtful": "warn", "failed": "bad", "not possible": "muted"}


class ValidatePage(Page):
    """Verdict above, the checks to the left, what the chosen one shows to the right."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.validation: Validation | None = None
        self.plots: list[PanelPlot] = []
        missing = "Fit a model first; then it is put beside the measurement here."
        self.stack = self.or_nothing(self._work(), "validate", missing, "Identify")
        self.body.addWidget(self.stack, 1)
        bench.result_changed.connect(self._result_changed)
        bench.model_changed.connect(self._model_changed)
        bench.record_changed.connect(self._record_changed)
        self.theme.changed.connect(self._colour_list)
        self._result_changed()

    def _work(self) -> QWidget:
        theme = self.theme
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(10))
        self.banner = VerdictBanner(theme)
        column.addWidget(self.banner)
        column.addWidget(self._verdict_card())
        row = QHBoxLayout()
        row.setSpacing(theme.px(10))
        row.addWidget(self._list_card())
        row.addWidget(self._detail_card(), 1)
        column.addLayout(row, 1)
        return page

    def _verdict_card(self) -> Card:
        self.card = card = Card(self.theme)
        row = QHBoxLayout()
        self.sign = QLabel()  # a picture and the colour of the card's edge: never colour alone
        self.sign.hide()
        self.outcome = ""
        row.addWidget(self.sign)
        self.verdict = label("", "heading", wrap=True)
        self.cancel_button = button("Cancel", self.cancel, "End the checks; nothing is lost")
        self.cancel_button.hide()
        self.run_button = button(
            "Validate", self.run, "Put the model beside the record in hand", "primary", "Ctrl+Return"
        )
        row.addWidget(self.verdict, 1)
        row.addWidget(self.cancel_button)
        row.addWidget(self.run_button)
        card.box.addLayout(row)
        self.bar = progress_bar(1000)
        self.bar.hide()
        card.add(self.bar)
        return card

    def _list_card(self) -> Card:
        card = Card(self.theme, "Checks", "Choose one to see what is behind it")
        card.setFixedWidth(self.theme.px(230))
        self.list = QListWidget()
        self.list.setAccessibleName("Checks")
        self.list.setToolTip("✓ passed, ? doubtful, ✗ failed, – not possible with this record")
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.currentRowChanged.connect(self._show_check)
        card.add(self.list, 1)
        self.evidence = EvidenceBox(self.bench)
        self.evidence.changed.connect(self._start_anew)
        card.add(self.evidence)
        return card

    def _detail_card(self) -> QWidget:
        theme = self.theme
        whole = QWidget()
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(10))
        words = Card(theme)
        self.state = label("", "muted")
        self.sentence = label("", "", wrap=True)
        self.sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.legend = label("", "small")
        head = QHBoxLayout()
        head.addWidget(self.state, 1)
        head.addWidget(self.legend)
        words.box.addLayout(head)
        words.add(self.sentence)
        column.addWidget(words)
        self.grid_holder = QWidget()
        self.grid = QGridLayout(self.grid_holder)
        self.grid.setContentsMargins(0, 0, 0, 0)
        self.grid.setSpacing(theme.px(10))
        column.addWidget(self.grid_holder, 3)
        self.table = QTableWidget()
        self.table.setAccessibleName("Numbers of the check")
        side = self.table.verticalHeader()
        assert side is not None
        side.hide()
        side.setDefaultSectionSize(theme.px(28))
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.table.setMaximumHeight(theme.px(150))
        column.addWidget(self.table, 1)
        column.addStretch(0)
        return whole

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """On a low screen the room is for the check: one reason of the fit's verdict, all in its tooltip."""
        super().resizeEvent(event)
        self.banner.show_reasons(SHOWN if self.height() >= self.theme.px(LOW) else 1)

    # -- validating

    def _record_changed(self) -> None:
        self.evidence.forget()  # it belongs to the record that was in hand
        self._result_changed()

    def _model_changed(self) -> None:
        if self.isVisible():  # the checks may have waited for it
            self.on_show()

    def _result_changed(self) -> None:
        ready = self.bench.result is not None and self.bench.record is not None
        self.stack.setCurrentIndex(1 if ready else 0)
        self._forget()
        self._judge()
        if ready and "validation" in self.bench.findings:  # of the last time
            self._show(self.bench.findings["validation"])
        elif ready and self.isVisible():
            self.run()

    def _judge(self) -> None:
        """The verdict on the fit itself, above the checks; grey when it is of an earlier model or record."""
        self._show_outcome("")
        if self.bench.result is not None:
            self.banner.show_result(self.bench.result, self.bench.result_is_of())

    def on_show(self) -> None:
        if self.bench.result is not None:
            self.banner.show_result(self.bench.result, self.bench.result_is_of())
        if self.bench.result is not None and self.validation is None:
            self.run()

    def run(self) -> None:
        """Start the checks in a process of their own."""
        record, model, result = self.bench.record, self.bench.model, self.bench.result
        if record is None or result is None or self.job is not None:
            return
        if model is None:
            self._say("The checks begin once the model's text is read and understood.", "small")
            return
        data = record.record.cut(0, min(LONG, len(record.record)))
        mapping = self.bench.findings.get("mapping", {})
        text = result.model_text or model.text
        self.job = job = self.bench.workers.run(
            "Validating",
            tasks.validate_model,
            text,
            data,
            mapping,
            result.values(),
            self.evidence.others,
            self.evidence.transfer,
            result.stated_miss,
        )
        job.stepped.connect(self.mine(job, self._step))
        job.done.connect(self.mine(job, self._show))
        job.failed.connect(self.mine(job, lambda text: self._say(text, "bad")))
        job.cancelled.connect(self.mine(job, lambda: self._say("Cancelled; nothing is lost.", "muted")))
        job.ended.connect(self.mine(job, self._ended))
        self.run_button.setEnabled(False)
        self.cancel_button.show()
        self.bar.show()
        self._say("Putting the model beside the measurement …", "muted")

    def _start_anew(self) -> None:
        """Other evidence: what runs is for the old one."""
        self._forget()
        self.run()

    def _forget(self) -> None:
        """What was found, or is being worked out, is of something else than what is in hand now."""
        self.validation = None
        self.leave_job()
        self._ended()
        self.list.clear()
        for words in (self.state, self.sentence):
            words.setText("")
        for part in (self.grid_holder, self.table):
            part.hide()

    def cancel(self) -> None:
        if self.job is not None:
            self.job.cancel()

    def _step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))
        self._say(f"Putting the model beside the measurement: {step.message} …", "muted")

    def _ended(self) -> None:
        self.job = None
        self.bar.hide()
        self.cancel_button.hide()
        self.run_button.setEnabled(True)

    # -- what was found

    def _show(self, found: Validation) -> None:
        self.validation = found
        self.bench.find("validation", found)
        self._say(found.verdict, "heading")
        failed = any(check.status == "failed" for check in found.checks)
        self._show_outcome("passed" if found.passed else "failed" if failed else "doubtful")
        chosen = max(self.list.currentRow(), 0)
        self.list.blockSignals(True)
        self.list.clear()
        for check in found.checks:
            item = QListWidgetItem(f"{SIGNS[check.status]}  {check.title}")
            item.setToolTip(check.status)
            self.list.addItem(item)
        self.list.blockSignals(False)
        self._colour_list()
        self.list.setCurrentRow(min(chosen, len(found.checks) - 1))

    def _show_outcome(self, outcome: str) -> None:
        """``outcome``: passed, doubtful, failed, or empty while nothing is known."""
        self.outcome = outcome
        picture, colour, edge = OUTCOMES[outcome]
        side = self.theme.px(24)
        self.sign.setVisible(bool(picture))
        if picture:
            self.sign.setPixmap(icon(picture, getattr(self.theme.colours, colour)).pixmap(QSize(side, side)))
            self.sign.setAccessibleName(f"The checks: {outcome}")
            self.sign.setToolTip(self.sign.accessibleName())
        set_role(self.card, edge)

    def _colour_list(self) -> None:
        self._show_outcome(self.outcome)
        self.legend.setText(legend(self.theme))
        if self.validation is None:
            return
        c = self.theme.colours
        for row, check in enumerate(self.validation.checks):
            item = self.list.item(row)
            if item is not None:
                item.setForeground(QColor(getattr(c, ROLES[check.status])))

    def _show_check(self, row: int) -> None:
        found = self.validation
        if found is None or not 0 <= row < len(found.checks):
            return
        check = found.checks[row]
        self.state.setText(f"{check.title}: {check.status}")
        set_role(self.state, ROLES[check.status])
        self.sentence.setText(sentence(check.sentence))
        self._show_panels(check)
        self._show_rows(check)

    def _show_panels(self, check: Check) -> None:
        for plot in self.plots:
            self.grid.removeWidget(plot)
            plot.setParent(None)
            plot.deleteLater()
        self.plots = [PanelPlot(self.theme, panel) for panel in check.panels]
        across = len(self.plots) if len(self.plots) < 4 else -(-len(self.plots) // 2)
        for plot in self.plots[1:]:
            plot.link(self.plots[0])
        for number, plot in enumerate(self.plots):
            self.grid.addWidget(plot, number // max(across, 1), number % max(across, 1))
        self.grid_holder.setVisible(bool(self.plots))

    def _show_rows(self, check: Check) -> None:
        self.table.setVisible(bool(check.rows))
        if not check.rows:
            return
        names = list(check.rows[0])
        self.table.clear()
        self.table.setColumnCount(len(names))
        self.table.setRowCount(len(check.rows))
        self.table.setHorizontalHeaderLabels([name.replace("_", " ") for name in names])
        for i, row in enumerate(check.rows):
            for j, name in enumerate(names):
                self.table.setItem(i, j, QTableWidgetItem(as_words(row[name])))
        header = self.table.horizontalHeader()
        assert header is not None
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)

    def _say(self, text: str, role: str) -> None:
        self.verdict.setText(sentence(text))
        set_role(self.verdict, role)
