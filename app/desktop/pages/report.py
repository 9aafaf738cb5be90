"""Report: figures, tables and everything needed to repeat the work, as one HTML file and a PDF."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from PyQt6.QtCore import QUrl
from PyQt6.QtGui import QDesktopServices, QTextOption
from PyQt6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QSizePolicy,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from analysis import Progress, ShakedownError
from app.desktop.page import Page
from app.desktop.widgets.basics import (
    Card,
    Choice,
    IconButton,
    add_row,
    button,
    entry,
    form,
    label,
    scrolled,
    set_role,
)
from app.desktop.widgets.question import NameDialog
from app.desktop.widgets.verdictbanner import VerdictBanner
from app.desktop.workbench import RecordInHand, Workbench
from app.report import templates, write_report
from app.report.findings import Findings, Measured, OrbitsFound, Study

PARTS = (  # key in the report, words, page that makes it, how
    ("recording", "The recording", "recordings", "Take a recording in hand"),
    ("embedding", "How it was unfolded", "embed", "Open the Embed page"),
    ("orbits", "Its periodic orbits", "orbits", "Find orbits"),
    ("fits", "Fitted parameters", "identify", "Fit a model"),
    ("earlier", "Earlier fits", "identify", "Fit again"),
    ("checks", "Model beside measurement", "validate", "Validate it"),
    ("again", "To run it again", "identify", "Options, versions and fingerprints"),
)
MISSING = "Take a recording in hand first."
TICKED = "Ticked: in the report. What is left out is named there."
OUTDATED = "More was found since this report was written: write it again to have it in."
NO_TEMPLATE = "none"
PICTURES = "Pictures (*.png *.jpg *.jpeg)"


def fitted(text: str, room: int, scale: float) -> str:
    """The report for a view of this width: pictures in it, long lines broken."""

    def narrow(found: re.Match[str]) -> str:
        return f'<img width="{min(round(scale * int(found[1])), room)}"'

    return re.sub(r'<img width="(\d+)"', narrow, text).replace("<pre>", '<pre style="white-space:pre-wrap">')


def write_with_logo(findings: Findings, target: Path, logo: str, progress: Progress) -> list[Path]:
    """Write the report; a logo that cannot be read is said before anything is written. Runs in a worker."""
    from app.report.logo import read_logo

    picture = read_logo(logo) if logo else b""
    return write_report(replace(findings, logo=picture), target, progress)


class ReportPage(Page):
    """What goes in to the left, how it looks to the right."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.paths: tuple[Path, Path] | None = None
        self._written: RecordInHand | None = None  # what the report in view is of
        self._writing: RecordInHand | None = None
        self._outdated = False  # something was found since the writing began
        self._template = templates.Template()
        self._filled = ""  # the title that the template gave
        theme = self.theme
        self.ticks: dict[str, QCheckBox] = {}
        contents = Card(theme, "Contents", "Ticked: will be in the report")
        contents.box.setSpacing(theme.px(2))
        for key, text, page, advice in PARTS:
            row = QHBoxLayout()
            tick = QCheckBox()
            tick.setAccessibleName(f"{text}: in the report")
            tick.setChecked(key not in bench.settings.report_left_out)
            tick.toggled.connect(self._keep_choice)
            go = button(text, partial(self._part_pressed, key, page), f"{advice}: go to that page", "quiet")
            row.addWidget(tick)
            row.addWidget(go, 1)
            contents.box.addLayout(row)
            self.ticks[key] = tick
        words = Card(theme, "Words")
        fields = form(theme)
        self.template = Choice()
        self.template.addItems([NO_TEMPLATE, *templates.names()])
        self.template.setCurrentText(bench.settings.report_template or NO_TEMPLATE)
        self.template.activated.connect(lambda _: self.use_template(self.template.currentText()))
        self.keep_button = IconButton(
            theme, "export", "Save parts, title, author, logo and words as a template"
        )
        self.keep_button.clicked.connect(self._ask_template)
        chosen = QWidget()
        along = QHBoxLayout(chosen)
        along.setContentsMargins(0, 0, 0, 0)
        along.addWidget(self.template, 1)
        along.addWidget(self.keep_button)
        self.template.setAccessibleName("Template of the report")
        add_row(theme, fields, "Template", chosen, "What reports have in common: parts, title, logo, words")
        self.title: QLineEdit = entry("", "Title of the report")
        self.author: QLineEdit = entry(bench.settings.operator, "Who did it")
        add_row(theme, fields, "Title", self.title)
        add_row(theme, fields, "Author", self.author)
        self.logo_button = button("", self._choose_logo, "A PNG or JPEG picture above the title")
        self.logo_button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.no_logo = IconButton(theme, "close", "Write reports without a logo")
        self.no_logo.clicked.connect(lambda: self.use_logo(""))
        logo = QWidget()
        beside = QHBoxLayout(logo)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.addWidget(self.logo_button, 1)
        beside.addWidget(self.no_logo)
        add_row(theme, fields, "Logo", logo, "A PNG or JPEG picture above the title")
        self._show_logo()
        words.box.addLayout(fields)
        self.notes = QPlainTextEdit()
        self.notes.setPlaceholderText("What was done and why, in your words")
        self.notes.setToolTip("Stands at the beginning of the report")
        self.notes.setAccessibleName("Words at the beginning")
        self.notes.setMinimumHeight(theme.px(64))
        words.add(self.notes, 1)
        self.write_button = button(
            "Write the report", self.run, "Make the HTML file and the PDF", "primary", "Ctrl+Return"
        )
        self.state = label("", "small", wrap=True)
        words.add(self.state)
        side = QWidget()
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, theme.px(2), 0)
        column.setSpacing(theme.px(10))
        self.banner = VerdictBanner(theme)
        self.banner.show_reasons(1)
        column.addWidget(self.banner)
        column.addWidget(contents)
        column.addWidget(words, 1)
        view = Card(theme)
        tools = QHBoxLayout()
        self.open_button = button("Open", self._open, "Open the report in the browser")
        self.pdf_button = button("Open PDF", self._open_pdf, "Open the PDF")
        self.save_button = button("Save a copy", self._save, "Save the HTML file and the PDF elsewhere")
        tools.addWidget(self.write_button)
        tools.addStretch(1)
        for part in (self.open_button, self.pdf_button, self.save_button):
            part.setEnabled(False)
            tools.addWidget(part)
        view.box.addLayout(tools)
        self.preview = QTextBrowser()
        self.preview.setOpenLinks(False)
        self.preview.setWordWrapMode(QTextOption.WrapMode.WordWrap)  # a number is not broken in the middle
        self.preview.setAccessibleName("The report")
        self.preview.setPlaceholderText("The report appears here.")
        view.add(self.preview, 1)
        whole = QHBoxLayout()
        whole.setSpacing(theme.px(10))
        scroll = scrolled(side)
        scroll.setFixedWidth(theme.px(340))
        whole.addWidget(scroll)
        whole.addWidget(view, 1)
        self.body.addLayout(whole, 1)
        for found_more in (bench.result_changed, bench.finding_changed):
            found_more.connect(self._outdate)
        for signal in (bench.record_changed, bench.result_changed, bench.model_changed):
            signal.connect(self._follow)
        bench.finding_changed.connect(lambda _: self._follow())
        self._take_words_of_template()
        self._follow()

    def on_show(self) -> None:
        self._follow()

    def _follow(self) -> None:
        """What is not there cannot be ticked."""
        bench, own = self.bench, self.bench.results_of_record()
        there = {
            "recording": bench.record is not None,
            "embedding": "embedding" in bench.findings,
            "orbits": "orbits" in bench.findings,
            "fits": bool(own),
            "earlier": len(own) > 1,
            "checks": "validation" in bench.findings,
            "again": bench.record is not None,
        }
        if bench.result is not None:
            self.banner.show_result(bench.result, bench.result_is_of())
        for key, on in there.items():
            self.ticks[key].setEnabled(on)
            self.ticks[key].setToolTip(TICKED if on else "There is none yet.")
            set_role(self.ticks[key], "" if on else "absent")
        self.write_button.setEnabled(there["recording"] and self.job is None)
        if self._written is not None and not self._written.is_same(bench.record):
            self._put_away()
        if bench.record is None:
            self._say(MISSING, "small")
        elif self.state.text() == MISSING:  # why a report could not be written stays
            self._say("", "small")
        self._suggest_title()

    def _suggest_title(self) -> None:
        """Names the recording in hand and what is told of it, without a word about how it came out."""
        record = self.bench.record
        if record is None:
            self.title.setPlaceholderText("Title of the report")
            return
        told = [key for key, tick in self.ticks.items() if tick.isEnabled() and tick.isChecked()]
        what = "recording" if "fits" not in told else "fit and checks" if "checks" in told else "fit"
        self.title.setPlaceholderText(f"{record.name}: {what}")
        if self.title.text() == self._filled:  # nobody has changed what the template gave
            self._fill_title()

    def _outdate(self) -> None:
        """Something was found: what is in view was written without it."""
        self._outdated = True
        if self.paths is not None:
            self._say(OUTDATED, "small")

    def _put_away(self) -> None:
        """The report in view is of a recording that is no longer in hand; its files stay."""
        self.paths = self._written = None
        self.preview.clear()
        set_role(self.preview, "")
        self._say("", "small")
        self.state.setToolTip("")
        for part in (self.open_button, self.pdf_button, self.save_button):
            part.setEnabled(False)

    def findings(self) -> Findings | None:
        """What there is to tell; the validation belongs to the last result."""
        record, found = self.bench.record, self.bench.findings
        if record is None:
            return None
        results, newest = self.bench.results_of_record(), self.bench.result
        studies = [
            Study(r) if r is not newest else Study(r, found.get("validation"), record.record) for r in results
        ]
        orbits = [OrbitsFound(record.name, *found["orbits"])] if "orbits" in found else []
        return Findings(
            self.title.text().strip() or self.title.placeholderText(),
            self.notes.toPlainText().strip(),
            self.author.text().strip(),
            recordings=[Measured(record.name, record.record, path=record.path)],
            embedding=found.get("embedding"),
            orbits=orbits,
            studies=studies,
            left_out=frozenset(self.bench.settings.report_left_out),
        )

    def _part_pressed(self, key: str, page: str) -> None:
        """The words of a part are those of its tick; where there is none yet they lead to what makes it."""
        if self.ticks[key].isEnabled():
            self.ticks[key].toggle()
        else:
            self.bench.go(page)

    def _keep_choice(self) -> None:
        """The same parts are left out of the next report."""
        self.bench.settings.report_left_out = [k for k, tick in self.ticks.items() if not tick.isChecked()]
        self._suggest_title()

    # -- templates

    def use_template(self, name: str) -> None:
        """Take over what a template says; the choice stays for the next start."""
        if name == NO_TEMPLATE:
            self.bench.settings.report_template = ""
            if self.title.text() == self._filled:
                self.title.clear()
            self._template, self._filled = templates.Template(), ""
            return
        try:
            found = templates.load(name)
        except ShakedownError as error:
            self.bench.say(str(error), "bad")
            self.template.setCurrentText(NO_TEMPLATE)
            return
        self.bench.settings.report_template = name
        self._template = found
        self._fill_title()
        for key, tick in self.ticks.items():
            tick.setChecked(key not in found.without)
        if found.author:
            self.author.setText(found.author)
        self._take_notes()
        self.use_logo(found.logo)

    def _fill_title(self) -> None:
        """The template's title with the recording in hand."""
        record, project = self.bench.record, self.bench.project
        recording = "" if record is None else record.name
        self._filled = self._template.title_for(recording, "" if project is None else project.name)
        self.title.setText(self._filled)

    def _take_notes(self) -> None:
        own, standing = self.notes.toPlainText(), self._template.notes
        if standing not in own:
            self.notes.setPlainText("\n".join(filter(None, (standing, own))))

    def _take_words_of_template(self) -> None:
        """Title and standing words of the template of the last time; the rest of it is in the settings."""
        name = self.bench.settings.report_template
        if name:
            with contextlib.suppress(ShakedownError):  # it is told when it is chosen anew
                self._template = templates.load(name)
                self._take_notes()

    def _ask_template(self) -> None:
        name = NameDialog(
            self.theme, self, "Save as template", "Name of the template:",
            self.bench.settings.report_template, lambda _: "",
        ).ask()  # fmt: skip
        if name:
            self.save_template(name)

    def save_template(self, name: str) -> None:
        """Keep what is filled in for other reports; the recording's name in the title is filled in anew."""
        record = self.bench.record
        title = self.title.text().strip()
        if record is not None:
            title = title.replace(record.name, "{recording}")
        settings = self.bench.settings
        template = templates.Template(
            title, self.author.text().strip(), settings.report_logo, self.notes.toPlainText().strip(),
            tuple(settings.report_left_out),
        )  # fmt: skip
        try:
            key = templates.save(name, template)
        except ShakedownError as error:
            self.bench.say(str(error), "bad")
            return
        settings.report_template = key
        self._template, self._filled = template, self.title.text()
        self.template.clear()
        self.template.addItems([NO_TEMPLATE, *templates.names()])
        self.template.setCurrentText(key)
        self.bench.say(f"The template {key} is saved.", "good")

    def _choose_logo(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Logo of the reports", str(Path.home()), PICTURES)
        if name:
            self.use_logo(name)

    def use_logo(self, path: str) -> None:
        """The picture above the title of this and later reports; empty: none."""
        self.bench.settings.report_logo = path
        self._show_logo()

    def _show_logo(self) -> None:
        path = self.bench.settings.report_logo
        self.logo_button.setText(Path(path).name if path else "none")
        self.logo_button.setAccessibleName(f"Logo: {self.logo_button.text()}")
        self.no_logo.setVisible(bool(path))

    def run(self) -> None:
        """Write the report into the folder of reports beside the library."""
        findings = self.findings()
        if findings is None or self.job is not None:
            return
        target = self.bench.settings.library_folder.parent / "reports" / findings.recordings[0].name
        self.job = job = self.bench.workers.run(
            "Writing the report", write_with_logo, findings, target, self.bench.settings.report_logo
        )
        job.stepped.connect(lambda step: self._say(step.message, "small"))
        job.done.connect(self._done)
        job.failed.connect(lambda text: self._say(text, "bad"))
        job.cancelled.connect(lambda: self._say("Cancelled.", "small"))
        job.ended.connect(self._ended)
        self._writing, self._outdated = self.bench.record, False
        self.write_button.setEnabled(False)

    def _ended(self) -> None:
        self.job = None
        self._follow()

    def _done(self, paths: tuple[Path, Path]) -> None:
        if self._writing is not None and not self._writing.is_same(self.bench.record):
            self.bench.say(f"The report of {self._writing.name} is written: {paths[0]}.", "good")
            return
        self.paths, self._written = paths, self._writing
        room = max(300, self.preview.width() - self.theme.px(110))
        set_role(self.preview, "paper")  # white in any theme, like the file itself
        self.preview.setHtml(fitted(paths[0].read_text(encoding="utf-8"), room, self.theme.scale))
        folder = paths[0].parent
        self._say(f"Written: {paths[0].name} and {paths[1].name}, in the folder “{folder.name}”.", "good")
        if self._outdated:
            self._outdate()
        self.state.setToolTip(str(folder))
        for part in (self.open_button, self.pdf_button, self.save_button):
            part.setEnabled(True)

    def _open(self) -> None:
        if self.paths is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.paths[0])))

    def _open_pdf(self) -> None:
        if self.paths is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.paths[1])))

    def _save(self) -> None:
        if self.paths is None:
            return
        name, _ = QFileDialog.getSaveFileName(
            self, "Save the report", str(Path.home() / self.paths[0].name), "*.html"
        )
        if not name:
            return
        target = Path(name)
        try:
            target.write_bytes(self.paths[0].read_bytes())
            target.with_suffix(".pdf").write_bytes(self.paths[1].read_bytes())
        except OSError as error:
            self.bench.say(f"The report could not be saved: {error.strerror}.", "bad")

    def _say(self, text: str, role: str) -> None:
        self.state.setText(text)
        set_role(self.state, role)
