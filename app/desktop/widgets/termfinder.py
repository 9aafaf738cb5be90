"""Find terms: which of the ticked terms make the equation of motion of the record in hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import (
    QComboBox,
    QDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QTableWidget,
    QVBoxLayout,
    QWidget,
)

from analysis import Identification, Step, percent, with_error
from app.desktop import terms
from app.desktop.terms import TONE, Candidate, Question
from app.desktop.widgets.basics import (
    Card,
    add_row,
    button,
    entry,
    form,
    label,
    progress_bar,
    scrolled,
    set_role,
)
from app.desktop.widgets.tables import fill_table
from app.desktop.widgets.verdictbanner import VerdictBanner
from app.desktop.workbench import RecordInHand, Workbench
from app.desktop.worker import Job
from app.words import with_minus

if TYPE_CHECKING:
    from analysis import Selection

NONE = "not measured"
NO_DRIVE = "none"
TERM = Qt.ItemDataRole.UserRole


class TermFinder(QDialog):
    """Channels and candidate terms to the left; verdict, ranking and rivals to the right."""

    taken = pyqtSignal(str, object, object)  # model text, Identification, channel by name of the model

    def __init__(self, bench: Workbench, record: RecordInHand, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.bench, self.record, theme = bench, record, bench.theme
        self.job: Job | None = None
        self.found: Selection | None = None
        self._asked: Question | None = None  # what the answer that is shown belongs to
        self.setWindowTitle(f"Find terms: {record.name}")
        self.resize(theme.px(940), theme.px(540))
        self.kind, self.displacement, self.velocity, self.drive = (QComboBox() for _ in range(4))
        self.candidates = QListWidget()
        self.candidates.setAccessibleName("Candidate terms")
        self.candidates.setToolTip("Ticked terms are tried, alone and together (Space ticks)")
        self.candidates.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.candidates.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.own_term = entry(
            "", "own term, such as max(x - 0.2, 0)", "A term in the model's language; Enter adds it"
        )
        self.own_term.setAccessibleName("Own term")
        self.own_term.returnPressed.connect(self._add_own)
        self.run_button = button(
            "Find terms", self.run, "Search the equation that the record supports", "primary"
        )
        self.run_button.setAutoDefault(False)
        self.cancel_button = button("Cancel", self.cancel, "End the search; nothing is lost")
        self.cancel_button.hide()
        self.bar = progress_bar(1000)
        self.bar.setAccessibleName("Progress of the search")
        self.bar.hide()
        self.state = label("", "small", wrap=True)
        self.banner = VerdictBanner(theme)
        self.table = QTableWidget()
        self.table.setAccessibleName("Terms by probability")
        self.rivals = label("", "small", wrap=True)
        self.rivals.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.take_button = button(
            "Take over", self.take, "Put the equation and its fit in hand; the text goes to the editor"
        )
        self.take_button.setEnabled(False)
        self.close_button = button("Close", self.reject, "Leave the model as it is")
        for one in (self.cancel_button, self.take_button, self.close_button):
            one.setAutoDefault(False)
        self._build()
        self._offer_channels()
        self._offer_terms()

    def _build(self) -> None:
        theme = self.bench.theme
        left = Card(theme, "Equation")
        fields = form(theme)
        self.kind.addItem("x″ = drive − ?", True)
        self.kind.addItem("every channel has a rate of its own", False)
        for words, field, tip in (
            ("Form", self.kind, "An oscillator per unit of mass, or a system of first order"),
            ("Displacement", self.displacement, "Channel that measured x"),
            ("Velocity", self.velocity, "Channel that measured v = dx/dt, if one did"),
            ("Drive", self.drive, "A channel, whose gain is found as well, or a tone of unknown size"),
        ):
            field.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            add_row(theme, fields, words, field, tip)
        left.box.addLayout(fields)
        left.add(self.candidates, 1)
        left.add(self.own_term)
        left.setFixedWidth(theme.px(350))
        right = Card(theme, "Ranking")
        right.add(self.bar)
        right.add(self.state)
        right.add(self.banner)
        right.add(self.table, 1)
        frame = scrolled(self.rivals)
        frame.setMaximumHeight(theme.px(96))
        right.add(frame)
        self._frame = frame
        frame.hide()
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        side = self.table.verticalHeader()
        assert side is not None
        side.hide()
        side.setDefaultSectionSize(theme.px(30))
        across = QHBoxLayout()
        across.addWidget(left)
        across.addWidget(right, 1)
        row = QHBoxLayout()
        row.addWidget(self.run_button)
        row.addWidget(self.cancel_button)
        row.addStretch(1)
        row.addWidget(self.close_button)
        row.addWidget(self.take_button)
        box = QVBoxLayout(self)
        box.addLayout(across, 1)
        box.addLayout(row)
        for chooser in (self.kind, self.displacement, self.velocity, self.drive):
            chooser.activated.connect(lambda _: self._offer_terms())

    # -- what is asked

    def _offer_channels(self) -> None:
        record = self.record.record
        drive = terms.likely_drive(record)
        motions = [name for name in record.names if name != drive]
        self.displacement.addItems(record.names)
        moves = terms.likely_displacement(record)
        self.displacement.setCurrentText(moves or (motions[0] if motions else record.names[0]))
        self.velocity.addItems([NONE, *record.names])
        self.velocity.setCurrentText(terms.likely_velocity(record, self.displacement.currentText()) or NONE)
        self.drive.addItem(NO_DRIVE, "")
        excitation = record.excitation
        if excitation is not None and excitation.frequency > 0:
            self.drive.addItem(f"tone of {excitation.frequency:.6g} Hz", TONE)
        for name in record.names:
            self.drive.addItem(name, name)
        self.drive.setCurrentIndex(max(self.drive.findData(drive), 0))
        others = [name for name in motions if name not in ("x", "v")]
        self.kind.setCurrentIndex(0 if moves or len(others) < 2 else 1)

    def _offer_terms(self) -> None:
        """Candidates that suit the form; terms of the user's own stay."""
        own = [c for c in self._listed() if c.words == "own"]
        oscillator = bool(self.kind.currentData())
        record = self.record.record
        self.velocity.setEnabled(oscillator)
        self.displacement.setEnabled(oscillator)
        if oscillator:
            offered = terms.oscillator_candidates(record, self.displacement.currentText(), self._velocity())
        else:
            channels, drive = self._channels(), self._drive()
            offered = terms.system_candidates([n for n in channels if n != drive], drive)
        self.candidates.clear()
        for candidate in [*offered, *own]:
            self._add(candidate, fixed=oscillator and candidate.term == terms.KEPT)

    def _add(self, candidate: Candidate, fixed: bool = False) -> None:
        shown = candidate.term.replace("**", "^")
        item = QListWidgetItem(f"{shown}   {candidate.words}".rstrip())
        item.setData(TERM, candidate)
        item.setToolTip(item.text())
        ticked = Qt.CheckState.Checked if candidate.usual else Qt.CheckState.Unchecked
        item.setCheckState(ticked)
        if fixed:
            item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsUserCheckable)
        self.candidates.addItem(item)

    def _add_own(self) -> None:
        text = self.own_term.text().strip().replace("^", "**")
        if not text:
            return
        if any(c.term.replace(" ", "") == text.replace(" ", "") for c in self._listed()):
            self._say(f"{text} is in the list already.", "warn")
            return
        self._add(Candidate(text, "own"))
        self.candidates.scrollToBottom()
        self.own_term.clear()

    def _items(self) -> list[QListWidgetItem]:
        found = (self.candidates.item(row) for row in range(self.candidates.count()))
        return [item for item in found if item is not None]

    def _listed(self) -> list[Candidate]:
        return [item.data(TERM) for item in self._items()]

    def _velocity(self) -> str:
        return "" if self.velocity.currentIndex() <= 0 else self.velocity.currentText()

    def _channels(self) -> dict[str, str]:
        """Channel by its name in the equations."""
        drive = str(self.drive.currentData() or "")
        driving = {"f": drive} if drive and drive != TONE else {}
        if not self.kind.currentData():
            return terms.equation_names(self.record.record.names)
        moving = {"x": self.displacement.currentText()}
        if self._velocity():
            moving["v"] = self._velocity()
        return {**moving, **driving}

    def _drive(self) -> str:
        """TONE, the name in the equations of the channel that drives, or nothing."""
        channel = str(self.drive.currentData() or "")
        if not channel or channel == TONE:
            return channel
        return next(name for name, own in self._channels().items() if own == channel)

    def question(self) -> Question:
        """What is asked for now."""
        chosen = (i.data(TERM).term for i in self._items() if i.checkState() == Qt.CheckState.Checked)
        return Question(tuple(chosen), self._channels(), self._drive(), bool(self.kind.currentData()))

    # -- searching

    def run(self) -> None:
        """Search elsewhere."""
        if self.job is not None:
            return
        self._asked = question = self.question()
        used = list(question.channels.values())
        twice = next((name for name in used if used.count(name) > 1), "")
        if twice:
            self._say(f"The channel {twice} stands for two quantities.", "bad")
            return
        self.found = None
        self.take_button.setEnabled(False)
        self.job = self.bench.workers.run("Finding terms", terms.find_terms, self.record.record, question)
        self.job.stepped.connect(self._step)
        self.job.done.connect(self._show)
        self.job.failed.connect(lambda text: self._say(text, "bad"))
        self.job.cancelled.connect(lambda: self._say("Cancelled; nothing is lost.", "small"))
        self.job.ended.connect(self._ended)
        long = len(self.record.record) > terms.MOST
        self._say(f"The first {terms.MOST} samples are searched." if long else "Searching.", "small")
        self.cancel_button.show()
        self.cancel_button.setFocus()  # else it goes to Close, which would throw the search away
        self.run_button.setEnabled(False)
        self.bar.setValue(0)
        self.bar.show()

    def cancel(self) -> None:
        if self.job is not None:
            self._say("Ending the search …", "small")
            self.job.cancel()

    def done(self, code: int) -> None:
        if self.job is not None:
            self.job.silence()
            self.job.cancel()
            self.job = None
        super().done(code)

    def _step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))
        self._say(step.message, "small")

    def _ended(self) -> None:
        self.job = None
        self.bar.hide()
        self.run_button.setEnabled(True)
        if self.cancel_button.hasFocus():
            self.run_button.setFocus()
        self.cancel_button.hide()

    # -- what was found

    def _show(self, found: Selection) -> None:
        self.found = found
        equations = found.model.to_text().splitlines()[: len(found.model.states)]
        self._say("\n".join(equations).replace("**", "^").replace(" - ", " − "), "heading")
        self.banner.show_result(found.result)
        self.banner.show_reasons(1)
        rows = ranking(found)
        headings = ["Term", "Probability", "Coefficient"]
        fill_table(self.table, headings, rows, headings[1:])
        self.rivals.setText(rival_words(found))
        self._frame.setVisible(bool(self.rivals.text()))
        self.take_button.setEnabled(True)

    def take(self) -> None:
        """Hand the equation, its fit and its channels over."""
        if self.found is None or self._asked is None:
            return
        model = replace(self.found.model, name=f"Selected from {self.record.name}")
        text = model.to_toml()
        result: Identification = replace(self.found.result, model=model.name, model_text=text)
        named = dict.fromkeys(
            (*model.outputs, *model.inputs), ""
        )  # a channel of that name may be something else
        self.taken.emit(text, result, named | dict(self._asked.channels))
        self.accept()

    def _say(self, text: str, role: str) -> None:
        self.state.setText(text)
        self.state.setVisible(bool(text))
        set_role(self.state, role)


def ranking(found: Selection) -> list[tuple[str, str, str]]:
    """Term, probability, coefficient with its error: those of the equation first, then by probability."""
    candidates = found.library.candidates
    several = len({c.state for c in candidates.values()}) > 1
    rows = []
    for name, share in sorted(
        found.probability.items(), key=lambda pair: (pair[0] not in found.kept, -pair[1])
    ):
        kept = name in found.kept
        candidate = candidates[name]
        term = (str(candidate) if several else candidate.term).replace("**", "^")
        sure = "always" if name in found.library.always else "none" if found.caveat else probability(share)
        fitted = found.result.parameters.get(name)
        number = f"{name} = {with_error(fitted)}" if kept and fitted is not None else "left out"
        inside = [n for n in found.library.shapes if kept and name in found.library.users(n)]
        numbers = [f"{n} = {with_error(found.result.parameters[n])}" for n in inside]
        rows.append((term, sure, "; ".join([number, *numbers])))
    for name in found.library.free:
        if name in found.result.parameters and name in found.library.equations.get("v", ""):
            rows.insert(0, ("drive", "always", f"{name} = {with_error(found.result.parameters[name])}"))
    return rows


def probability(share: float) -> str:
    """A probability without more certainty than there is."""
    if share > 0.999:
        return "> 99.9 %"
    return "< 0.1 %" if share < 0.001 else percent(share, 3)


def rival_words(found: Selection) -> str:
    """Why shares are no probabilities, equations that the data hardly tell from the one found, warnings."""
    words = [
        f"Hardly told apart (criterion {rival.criterion:+.1f}): {found.difference(rival)}. {rival.advice}"
        for rival in found.rivals
    ]
    caveat = [found.caveat] if found.caveat else []
    return with_minus("\n".join([*caveat, *words, *found.result.warnings]).replace("**", "^"))
