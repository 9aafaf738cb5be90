"""Identify: an equation of motion, fitted to the record in hand, with error bars."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QHBoxLayout, QSplitter, QTabWidget, QVBoxLayout, QWidget

from analysis import METHODS, Identification, Record, Step
from app.desktop import tasks
from app.desktop.page import Page
from app.desktop.plots.convergence import Convergence
from app.desktop.plots.fitpicture import FitPlot
from app.desktop.widgets.basics import Card, Choice, button, label, progress_bar, scrolled, set_role
from app.desktop.widgets.mapping import NONE, Mapping
from app.desktop.widgets.modelcard import ModelCard
from app.desktop.widgets.profilepanel import ProfilePanel
from app.desktop.widgets.results import ResultTable
from app.desktop.widgets.statespanel import StatesPanel
from app.desktop.widgets.termfinder import TermFinder
from app.desktop.widgets.verdictbanner import SHOWN, VerdictBanner
from app.desktop.workbench import RecordInHand, Workbench
from app.desktop.worker import Job
from app.words import counted

LOW = 620  # height of a page on which all reasons of a verdict have room
TWO_PICTURES = 670  # height of a page on which two pictures have room
LONG = 200_000  # samples; more are cut, because a fit gains little from them


class IdentifyPage(Page):
    """Model and channels to the left; to the right method, verdict, the fit as a picture, and its numbers."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self._fitting: RecordInHand | None = None  # the record that the fit in progress is made to
        self._fitting_channels: dict[str, str] = {}
        self._said_missing = ""
        self.chosen = ""  # which orbits the fit in progress balances, in words
        self.model_card = ModelCard(bench)
        self.finder: TermFinder | None = None
        self._found_channels: dict[str, str] = {}  # of an equation that was taken over, until it is read
        self.find_button = button(
            "Find terms…",
            self.find_terms,
            "Search the equation that the record in hand supports, term by term",
        )
        self.model_card.head.addWidget(self.find_button)
        self.mapping = Mapping(self.theme)
        self.convergence, self.picture = Convergence(self.theme), FitPlot(self.theme)
        self._drawing: Job | None = None  # the picture of the newest fit, in the making
        self.result_view, self.compare_view = ResultTable(self.theme), ResultTable(self.theme)
        self.result_view.table.setAccessibleName("Identified parameters")
        self.compare_view.table.setAccessibleName("Parameters of several fits")
        self.profile_panel = ProfilePanel(bench)
        self.result_view.asked.connect(self._ask_profile)
        self.profile_panel.traced.connect(self._take_profile)
        self.states_panel = StatesPanel(bench)
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(self.theme.px(10))
        column.addWidget(self.model_card, 3)
        channels = Card(self.theme, "Channels", "Which measured channel is which quantity of the model")
        self.no_record = label("Take a recording in hand first.", "muted", wrap=True)
        channels.add(self.no_record)
        channels.add(scrolled(self.mapping), 1)
        column.addWidget(channels, 2)
        left.setMinimumWidth(self.theme.px(340))
        right = QWidget()
        beside = QVBoxLayout(right)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(self.theme.px(10))
        beside.addWidget(self._fit_card())
        self.banner = VerdictBanner(self.theme)
        beside.addWidget(self.banner)
        lower = QSplitter(Qt.Orientation.Vertical)
        lower.setHandleWidth(self.theme.px(10))
        lower.setChildrenCollapsible(False)
        lower.addWidget(self.picture)
        results = Card(self.theme)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.result_view, "Result")
        self.tabs.addTab(self.profile_panel, "Profile")
        self.tabs.addTab(self.states_panel, "States")
        self.tabs.addTab(self.compare_view, "Compare")
        self.tabs.addTab(self.convergence, "Convergence")
        self.tabs.currentChanged.connect(lambda _: self._make_room())
        results.add(self.tabs, 1)
        lower.addWidget(results)
        lower.setSizes([130, 120])
        beside.addWidget(lower, 1)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        for part in (left, right):
            self.splitter.addWidget(part)
        self.splitter.setStretchFactor(0, 4)
        self.splitter.setStretchFactor(1, 5)
        self.splitter.setHandleWidth(self.theme.px(10))
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setSizes(
            bench.settings.layout.get("identify") or [self.theme.px(430), self.theme.px(680)]
        )
        self.body.addWidget(self.splitter, 1)
        bench.model_changed.connect(self._rebuild)
        bench.record_changed.connect(self._rebuild)
        bench.result_changed.connect(self._show_result)
        bench.restored.connect(self._restored)
        self._restored()
        self._show_result()

    def _fit_card(self) -> QWidget:
        card = Card(self.theme)
        row = QHBoxLayout()
        self.method = Choice()
        for name, entry in METHODS.items():
            self.method.addItem(f"{name}: {entry.words}", name)
            self.method.setItemData(self.method.count() - 1, entry.words, Qt.ItemDataRole.ToolTipRole)
        self.method.setMinimumContentsLength(10)
        self.method.setToolTip("How the parameters are found")
        self.method.setAccessibleName("How the parameters are found")
        best = self.method.findData("auto")
        self.method.setCurrentIndex(best if best >= 0 else max(self.method.findData("path"), 0))
        self.run_button = button(
            "Identify", self.run, "Fit the model to the record in hand", "primary", "Ctrl+Return"
        )
        self.cancel_button = button("Cancel", self.cancel, "End the fit; nothing is lost")
        self.cancel_button.hide()
        row.addWidget(self.method, 1)
        row.addWidget(self.cancel_button)
        row.addWidget(self.run_button)
        card.box.addLayout(row)
        self.bar = progress_bar(1000)
        self.bar.hide()  # while nothing is fitted the room is for the picture
        card.add(self.bar)
        self.state = label("", "small", wrap=True)
        card.add(self.state)
        return card

    # -- what is in hand

    def on_show(self) -> None:
        if not self.model_card.text():
            self.model_card.choose(self._suggested())

    def on_hide(self) -> None:
        self.bench.settings.layout["identify"] = self.splitter.sizes()

    def _suggested(self) -> str:
        """The model that the rig's profile names, the last one used, or the plainest of the library."""
        rig, record = self.bench.rig.rig, self.bench.record
        if record is not None and record.record.metadata.get("model"):
            return str(record.record.metadata["model"])
        if self.bench.settings.model:
            return self.bench.settings.model
        if rig is not None and rig.profile is not None and rig.profile.model:
            return rig.profile.model
        return "duffing"

    def _rebuild(self) -> None:
        """The model or the record has changed."""
        record = self.bench.record
        before = {**self.mapping.chosen(), **self._found_channels}
        self.mapping.rebuild(self.bench.model, record.record if record else None)
        for name, box in self.mapping.boxes.items():
            if name in before:
                box.setCurrentText(before[name] or NONE)
        if self.bench.model is not None and not self.bench.model_problem:
            self._found_channels = {}
        missing = "Take a recording in hand first." if record is None else ""
        if record is not None and self.bench.model is None:
            missing = "They can be chosen once the model's text is understood."
        self.no_record.setText(missing)
        self.no_record.setVisible(bool(missing))
        self.find_button.setEnabled(record is not None)
        self._mark_earlier()
        self._follow()

    def _restored(self) -> None:
        """The channels of the fit that is back."""
        self._found_channels = dict(self.bench.findings.get("mapping", {}))
        self._rebuild()

    def _missing(self) -> str:
        """What keeps a fit from being started, in words."""
        if self.bench.model_checking:
            return "The model's text is being checked."
        if self.bench.model_problem:
            return "The model's text is not understood yet: there is nothing to fit."
        if self.bench.record is None or self.bench.model is None:
            if self.bench.record is None and self.bench.model is None:
                return "A record and a model are needed."
            return f"A {'record' if self.bench.record is None else 'model'} is needed."
        return ""

    def _follow(self) -> None:
        missing = self._missing()
        self.run_button.setEnabled(not missing and self.job is None)
        self.run_button.setToolTip(missing or "Fit the model to the record in hand (Ctrl+Return)")
        if self.job is None and (missing or self.state.text() == self._said_missing):
            self._say(missing, "small")
            self._said_missing = missing

    def _mark_earlier(self) -> None:
        """Numbers of a model or record that is no longer in view are grey, and say so."""
        result = self.bench.result
        if result is not None:
            earlier = self.bench.result_is_of()
            self.banner.show_result(result, earlier)
            self.result_view.table.setEnabled(not earlier)
            self.picture.view.setEnabled(not earlier)
            self._offer_profile(result, earlier)

    # -- fitting

    def run(self) -> None:
        """Start the fit in a process of its own."""
        record, model = self.bench.record, self.bench.model
        if record is None or model is None or self._missing() or self.job is not None:
            return
        self._fitting = record
        data, note = record.record, ""
        if len(data) > LONG:
            data, note = data.cut(0, LONG), f" The first {LONG} samples are used."
        method = str(self.method.currentData())
        options, self.chosen = self._orbits(method, data)
        self.convergence.begin()
        self.tabs.setCurrentWidget(self.convergence)
        self._fitting_channels = self.mapping.values()
        self.job = self.bench.workers.run(
            f"Identifying {model.name}",
            tasks.identify_record,
            model.text,
            data,
            self._fitting_channels,
            method,
            options,
        )
        self.job.stepped.connect(self._step)
        self.job.done.connect(self._done)
        self.job.failed.connect(lambda text: self._say(text, "bad"))
        self.job.cancelled.connect(lambda: self._say("Cancelled; nothing is lost.", "small"))
        self.job.ended.connect(self._ended)
        note += f" {self.chosen}".rstrip()
        self._say(f"Compiling the equations.{note}", "small")
        self.run_button.setEnabled(False)
        self.cancel_button.show()
        self.bar.show()

    def _orbits(self, method: str, data: Record) -> tuple[dict[str, Any], str]:
        """The orbits included on the Orbits page, as options of the balance, and words for them."""
        _, included = self.bench.findings.get("orbits", (None, []))
        known = [o for o in included if o.multiple is not None and o.start + o.period < len(data)]
        if method != "balance" or not known:
            return {}, ""
        options: dict[str, Any] = {
            "orbits": tuple(o.multiple for o in known),
            "starts": tuple(int(o.start) for o in known),
            "most_orbits": len(known),
        }
        if data.excitation is None:
            options["frequency"] = float(data.rate * known[0].multiple / known[0].period)
        return options, f"{counted(len(known), 'orbit')} included on the Orbits page: balanced."

    def cancel(self) -> None:
        if self.job is not None:
            self._say("Ending the fit …", "small")
            self.job.cancel()

    def _step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))
        self._say(step.message, "small")
        self.convergence.take(step.values)

    def _done(self, result: Identification) -> None:
        if self.chosen:
            result = replace(result, chosen=self.chosen)
        if self._fitting is not None and self._fitting.is_same(self.bench.record):
            # Not before: a fit that is given up leaves the one in hand its own channels.
            self.bench.find("mapping", self._fitting_channels)
        self.bench.take_result(result, self._fitting, self._fitting_channels)
        self.tabs.setCurrentIndex(0)
        if result.converged:
            self._say(f"The search ended after {counted(result.iterations, 'step')}.", "small")
        else:
            self._say(
                "The fit did not converge: do not trust the numbers. Try better guesses, fewer "
                "unknowns or another method.",
                "bad",
            )

    def _show_result(self) -> None:
        """Show the result in hand."""
        result = self.bench.result
        if result is None:
            return
        self.convergence.show_history(result.history)
        self.result_view.show_result(result)
        self.compare_view.compare(self.bench.results)
        self._mark_earlier()
        self._draw_fit(result)

    # -- an equation to be found

    def find_terms(self) -> None:
        """Open the search for terms, beside the window: STOP stays in reach."""
        record = self.bench.record
        if record is None:
            return
        if self.finder is not None:
            self.finder.reject()
        self.finder = TermFinder(self.bench, record, self)
        self.finder.taken.connect(lambda *found: self._take_equation(record, *found))
        self.finder.show()

    def _take_equation(
        self, record: RecordInHand, text: str, result: Identification, channels: dict[str, str]
    ) -> None:
        self._found_channels = dict(channels)
        self.bench.find("mapping", dict(channels))
        self.model_card.take_text(text)
        self.bench.take_result(result, record, channels)
        self.tabs.setCurrentWidget(self.result_view)

    # -- one parameter

    def _offer_profile(self, result: Identification, earlier: str) -> None:
        record = self.bench.record.record if self.bench.record is not None else None
        if record is not None and len(record) > LONG:
            record = record.cut(0, LONG)
        refused = f"The fit is of {earlier}." if earlier else ""
        if record is None:
            refused = "The record of this fit is not in hand."
        mapping = dict(self.bench.findings.get("mapping", {}))
        for panel in (self.profile_panel, self.states_panel):
            panel.show_result(result, record, mapping, refused)

    def _ask_profile(self, name: str) -> None:
        self.tabs.setCurrentWidget(self.profile_panel)
        self.profile_panel.choose(name)

    def _take_profile(self, found: Identification) -> None:
        """The fit in hand with one more profile; it may have been left behind meanwhile."""
        old = self.profile_panel.result
        if old is None or not self.bench.complete_result(old, found):
            return
        self.result_view.show_result(found)
        self.profile_panel.result = self.states_panel.result = found

    def _draw_fit(self, result: Identification) -> None:
        """Have the picture made, elsewhere; only for the record in hand."""
        record = self.bench.record
        if self._drawing is not None:
            self._drawing.cancel()
            self._drawing = None
        if record is None or self.bench.result_is_of().startswith("an earlier record"):
            self.picture.show_words("The record of this fit is not in hand.")
            return
        self.picture.show_words("Drawing …")
        mapping = self.bench.findings.get("mapping", {})
        text = result.model_text or (self.bench.model.text if self.bench.model is not None else "")
        data = record.record.cut(0, min(tasks.PICTURED, len(record.record)))
        job = self.bench.workers.run(
            "Drawing the fit", tasks.fit_picture, text, data, mapping, result.values(), quiet=True
        )
        self._drawing = job
        job.done.connect(lambda picture: self._drawn(job, picture))
        job.failed.connect(lambda words: self._drawn(job, tasks.FitPicture(problem=words)))

    def _drawn(self, job: Job, picture: tasks.FitPicture) -> None:
        if job is self._drawing:  # a newer fit may have come
            self._drawing = None
            self.picture.show_picture(picture)

    def _ended(self) -> None:
        self.job = None
        self.bar.setValue(0)
        self.bar.hide()
        self.cancel_button.hide()
        self._follow()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        """On a low screen: one reason of the verdict, all in its tooltip; and one picture, not two."""
        self.banner.show_reasons(1 if self.height() < self.theme.px(LOW) else SHOWN)
        drawn = self.tabs.currentWidget() in (self.profile_panel, self.states_panel)
        self.picture.setVisible(not drawn or self.height() >= self.theme.px(TWO_PICTURES))

    def _say(self, text: str, role: str) -> None:
        self.state.setText(text)
        self.state.setVisible(bool(text))
        set_role(self.state, role)
