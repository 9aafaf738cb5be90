"""Holding orbits on the rig: choose them, see what to expect, watch, and read what was found."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QSplitter, QTableWidget, QVBoxLayout, QWidget

from analysis import Identification, ShakedownError, Step, percent
from app.desktop import looptasks
from app.desktop.looptasks import HoldableOrbits
from app.desktop.plots.heldorbit import HeldOrbitPlot
from app.desktop.plots.orbit import OrbitTile
from app.desktop.widgets.basics import (
    Card,
    add_row,
    button,
    form,
    label,
    scrolled,
    sentence,
    set_role,
)
from app.desktop.widgets.flow import FlowLayout
from app.desktop.widgets.looppanel import OPENING, LoopPanel, loop_words
from app.desktop.widgets.number import Count, Number
from app.desktop.widgets.tables import fill_table
from app.desktop.workbench import Workbench
from app.desktop.worker import Job
from app.holding.told import largest_multiplier, measured_multiplier
from app.holding.work import LEAST_PERIODS, TEST_SECONDS, HoldRequest, HoldState
from app.words import counted, duration, with_minus

TITLE = "Holding orbits"
NO_FIT = "Fit a model to this record first, on the Identify page: its orbits are held."
HEADINGS = {  # and what they mean
    "Orbit": "Its number above",
    "Verdict": "Only held orbits are orbits of the specimen",
    "Model": "Largest multiplier of the model on its own orbit",
    "On the orbit": "Largest multiplier on the measured orbit, with its standard error",
    "Mean %": "Mean correction that stays, in % of the drive: what the orbit is forced by",
    "Floor %": "What noise alone leaves in the mean correction, in % of the drive",
}


class HoldPanel(LoopPanel):
    """What to hold and how to the left; the orbits, and what came of each, to the right."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.found: HoldableOrbits | None = None
        self.results: dict[int, dict[str, Any]] = {}  # by the orbit's number
        self.tiles: list[OrbitTile] = []
        self.job: Job | None = None  # the search for candidates
        self._fit: Identification | None = None  # whose orbits these are
        self._held: tuple[HoldableOrbits | None, int] = (
            None,
            0,
        )  # of the newest run, and how many were asked for
        self._returning = False  # the rig is opened as it was before
        self._beside(self._controls()).addWidget(self._orbits(), 1)
        bench.record_changed.connect(self._reset)
        bench.result_changed.connect(self._fit_changed)
        bench.restored.connect(self._restored)
        self._reset()
        self._restored()

    # -- layout

    def _controls(self) -> QWidget:
        theme = self.theme
        side = QWidget()
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, theme.px(2), 0)
        column.setSpacing(theme.px(10))
        search = Card(theme, "Orbits of the model", "Nothing moves while they are looked for")
        fields = form(theme)
        self.longest = Count(6, 1, 12)
        add_row(theme, fields, "Longest", self.longest, "Longest orbit, in periods of the drive")
        search.box.addLayout(fields)
        self.search_button = button(
            "Look for orbits", self.search, "Unstable orbits of the fitted model near this record"
        )
        search.add(self.search_button)
        self.fit_words = label("", "small", wrap=True)
        search.add(self.fit_words)
        column.addWidget(search)
        hold = Card(theme, "Hold", "The loop corrects the drive by a fraction of a percent")
        fields = form(theme)
        self.periods = Count(200, LEAST_PERIODS, 100_000)
        self.wait = Number(400.0, 1.0, 1e6, "periods", 0)
        add_row(theme, fields, "Periods", self.periods, "Periods of the drive to hold and average")
        add_row(theme, fields, "Wait at most", self.wait, "For the motion to come near an orbit")
        hold.box.addLayout(fields)
        self.plan = label("", "small", wrap=True)
        hold.add(self.plan)
        self.hold_button = button(
            "Hold", self.toggle, "Catch, hold and average the chosen orbits; or end it", "primary"
        )
        hold.add(self.hold_button)
        self._add_progress(hold)
        column.addWidget(hold)
        column.addStretch(1)
        self.periods.valueChanged.connect(lambda _: self._tell())
        return side

    def _orbits(self) -> QWidget:
        theme = self.theme
        gallery = Card(theme, "Orbits to hold", "Click an orbit to hold it or leave it out")
        self.count = label("", "small")
        gallery.head.addWidget(self.count)
        gallery.head.addWidget(button("All", lambda: self._choose(True), "Hold every orbit"))
        gallery.head.addWidget(button("None", lambda: self._choose(False), "Hold none"))
        grid = QWidget()
        self.flow = FlowLayout(theme.px(10))
        grid.setLayout(self.flow)
        self.hint = label("Look for orbits of the fitted model: those to be held are chosen here.", "muted")
        gallery.add(self.hint)
        gallery.add(scrolled(grid), 1)
        self.table = QTableWidget()
        self.table.setObjectName("narrow")
        heads = self.table.verticalHeader()
        assert heads is not None
        heads.hide()
        heads.setDefaultSectionSize(theme.px(32))
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QTableWidget.SelectionMode.SingleSelection)
        self.table.setAccessibleName("Held orbits")
        self.table.itemSelectionChanged.connect(self._show_selected)
        self.reason = label("", "small", wrap=True)
        self.reason.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        listed = Card(theme, "What came of them")
        listed.add(self.table, 1)
        listed.add(self.reason)
        self.plot = HeldOrbitPlot(theme)
        self.below = QSplitter(Qt.Orientation.Horizontal)
        self.below.addWidget(listed)
        self.below.addWidget(self.plot)
        self.below.setSizes([theme.px(450), theme.px(310)])
        self.below.setChildrenCollapsible(False)
        whole = QSplitter(Qt.Orientation.Vertical)
        whole.addWidget(gallery)
        whole.addWidget(self.below)
        whole.setSizes([theme.px(270), theme.px(320)])
        whole.setChildrenCollapsible(False)
        for splitter in (whole, self.below):
            splitter.setHandleWidth(theme.px(8))
        return whole

    # -- candidates

    def _reset(self) -> None:
        """Another record: its orbits are others."""
        if self.job is not None:
            self.job.cancel()
            self.job = None
        if self.run is not None:
            self.run.cancel()
        self._show(None, {})
        self._fit_changed()

    def _fit_changed(self) -> None:
        fits = self.bench.results_of_record()
        fit = next((f for f in reversed(fits) if f.model_text), None)
        self.search_button.setEnabled(fit is not None and self.job is None and self.run is None)
        if fit is None:
            self._say_fit(NO_FIT, "warn" if self.bench.record is not None else "small")
        elif self.found is not None and self._fit is not None and fit is not self._fit:
            self._say_fit("These are orbits of an earlier fit: look again for those of the newest.", "warn")
        elif self.found is None:
            self._say_fit(f"Of {fit.model}, fitted by {fit.method}.", "small")

    def search(self) -> None:
        """Look for orbits of the newest fit near the record, elsewhere."""
        record, opened = self.bench.record, self.bench.rig.rig
        fits = [f for f in self.bench.results_of_record() if f.model_text]
        if record is None or not fits or self.job is not None or self.run is not None:
            return
        if opened is None or opened.profile is None:
            self._say_fit("Open the rig of this record first, on the Rig page.", "bad")
            return
        try:
            longest = self.longest.read()
        except ShakedownError as error:
            self._say_fit(str(error), "bad")
            return
        self._fit = fits[-1]
        self.job = job = self.bench.workers.run(
            "Looking for orbits to hold", looptasks.holdable_orbits, opened.profile, record.record, fits[-1],
            longest,
        )  # fmt: skip
        mine = self._of(job)
        job.stepped.connect(mine(lambda step: self._say_fit(f"{step.message} …", "small")))
        job.done.connect(mine(lambda found: self._show(found, {})))
        job.failed.connect(mine(lambda text: self._say_fit(text, "bad")))
        job.cancelled.connect(mine(lambda: self._say_fit("Cancelled.", "small")))
        job.ended.connect(mine(self._searched))
        self.search_button.setEnabled(False)

    def _of(self, job: Job) -> Any:
        """Wraps what hears of ``job``: only until another one is begun."""

        def heard(listener: Any) -> Any:
            return lambda *answer: listener(*answer) if job is self.job else None

        return heard

    def _searched(self) -> None:
        self.job = None
        self.search_button.setEnabled(True)

    def _show(self, found: HoldableOrbits | None, results: dict[int, dict[str, Any]]) -> None:
        self.found, self.results = found, dict(results)
        while (item := self.flow.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.deleteLater()
        self.tiles = []
        self.hint.setVisible(found is None)
        if found is not None:
            frame = _frame(found.orbits)
            for told, states in zip(found.listed["orbits"], found.orbits, strict=True):
                closed = np.concatenate([states, states[:, :1]], axis=1)
                second = closed[1] if len(closed) > 1 else np.roll(closed[0], closed.shape[1] // 8)
                tile = OrbitTile(self.theme, closed[0], second, frame, self._words(told))
                tile.setChecked(told["number"] <= 1)
                tile.toggled.connect(self._tell)
                self.flow.addWidget(tile)
                self.tiles.append(tile)
            count, stable = len(found.orbits), found.listed["stable"]
            more = f" {counted(stable, 'stable one')} left out." if stable else ""
            seen = ", ".join(found.listed["channels"])
            self._say_fit(f"{counted(count, 'unstable orbit')}, seen by {seen}.{more}", "small")
        self._fill()
        self._tell()

    def _words(self, told: dict[str, Any]) -> tuple[str, ...]:
        """Period, multiplier and the wait to be expected, or the verdict."""
        result = self.results.get(told["number"])
        wait = told["expected_wait"] / self._frequency()
        last = f"wait about {duration(wait)}" if math.isfinite(wait) else "never came near"
        if result is not None:
            last = result["verdict"]
        first = f"{told['number']}: period {told['periods']}"
        return first, with_minus(f"multiplier {largest_multiplier(told['multipliers'])}"), last

    def _frequency(self) -> float:
        return 1.0 if self.found is None else float(self.found.listed["drive"]["frequency"])

    def _choose(self, on: bool) -> None:
        for tile in self.tiles:
            tile.setChecked(on)

    def chosen(self) -> list[int]:
        """Places of the orbits to hold in the list of candidates."""
        return [place for place, tile in enumerate(self.tiles) if tile.isChecked()]

    def _tell(self) -> None:
        """How many, and how long at least."""
        chosen = self.chosen()
        self.count.setText(f"{len(chosen)} of {len(self.tiles)} chosen" if self.tiles else "")
        if self.run is not None:
            return
        self.hold_button.setEnabled(bool(chosen) and not self._returning)
        self.hold_button.setText(f"Hold {counted(len(chosen), 'orbit')}" if chosen else "Hold")
        if self.found is None or not chosen:
            self.plan.setText("")
            return
        waits = [self.found.listed["orbits"][place]["expected_wait"] for place in chosen]
        periods = sum(w for w in waits if math.isfinite(w)) + len(chosen) * self.periods.value()
        least = TEST_SECONDS + periods / self._frequency()
        self.plan.setText(
            sentence(f"At least {duration(least)}: a test at rest, then waiting and holding. The rig is "
                     "opened anew for it, and its drive starts and ends by itself.")
        )  # fmt: skip

    # -- on the rig

    def toggle(self) -> None:
        """Begin, or end what runs."""
        if self._end_running() or self.found is None:
            return
        try:
            request = HoldRequest(self.periods.read(), self.wait.read())
            chosen = self.chosen()
            self._begin(TITLE, "held", looptasks.hold_orbits, self.found.study, request, chosen)
        except ShakedownError as error:
            self._say(str(error), "bad")
            return
        self._held = self.found, len(chosen)
        self.hold_button.setText("End holding")
        self.search_button.setEnabled(False)
        for place in chosen:
            self.results.pop(place + 1, None)
        self._fill()
        self._say(OPENING, "small")

    def _news(self, news: object) -> None:
        if isinstance(news, HoldState):
            self._watch(news)
        elif isinstance(news, dict):
            self._take(news)

    def _watch(self, state: HoldState) -> None:
        words = state.doing[:1].upper() + state.doing[1:]
        if state.orbit:
            words = f"Orbit {state.orbit}: {state.doing}"
            if "waiting" in state.doing and math.isfinite(state.expected_wait):
                words += f", about {duration(state.expected_wait / self._frequency())}"
        self._say(f"{words} …", "small")
        lines = []
        if state.loop is not None:
            lines.append(loop_words(state.loop.state, state.loop.delay, state.loop.missed))
        if math.isfinite(state.control):
            lines.append(f"Corrections {percent(state.control)} of the drive (rms).")
        if math.isfinite(state.mean_control):
            lines.append(f"Mean {percent(state.mean_control)}, floor {percent(state.floor)}.")
        self.loop.setText(sentence(" ".join(lines)))

    def _take(self, told: dict[str, Any]) -> None:
        """What came of one orbit."""
        if self.found is not self._held[0]:  # another record is in hand meanwhile
            return
        self.results[told["number"]] = told
        self._fill()
        self.table.selectRow(self.table.rowCount() - 1)
        self._keep()  # also where the work comes to a bad end

    def _step(self, step: Step) -> None:
        super()._step(step)
        if step.fraction >= looptasks.AFTERWARDS:  # nobody tells of the rig any more
            self._say(step.message, "small")

    def _done(self, result: dict[str, Any]) -> None:
        found, asked = self._held
        if self.found is found:
            self.results |= {o["number"]: o for o in result["orbits"]}  # multipliers of the completed model
            self._fill()
        held = f"{result['held']} of {counted(asked, 'orbit')} held."
        problem = result["problem"]
        self._say(f"{problem} {held}" if problem else held, "warn" if problem else "good")
        if result["result_file"]:
            self.bench.say(f"{held} The result lies beside its recording.", "good", "recordings")
        self._keep()

    def _keep(self) -> None:
        if self.found is not None:
            self.bench.find("held", (self.found, self.results, self._fit))

    def _ended(self) -> None:
        super()._ended()
        self._returning = True
        self.search_button.setEnabled(True)
        self._tell()

    def _returned(self) -> None:
        self._returning = False
        self._tell()

    # -- results

    def _fill(self) -> None:
        numbers = sorted(self.results)
        self.below.setVisible(bool(numbers))
        before = self._selected()
        rows = [_row(self.results[number]) for number in numbers]
        fill_table(self.table, tuple(HEADINGS), rows, tuple(HEADINGS)[2:])
        for column, words in enumerate(HEADINGS.values()):
            head = self.table.horizontalHeaderItem(column)
            assert head is not None
            head.setToolTip(words)
        if self.found is not None:
            for tile, told in zip(self.tiles, self.found.listed["orbits"], strict=True):
                tile.tell(self._words(told))
        if numbers:
            self.table.selectRow(numbers.index(before) if before in numbers else len(numbers) - 1)
        self._show_selected()

    def _selected(self) -> int:
        row = self.table.currentRow()
        cell = self.table.item(row, 0) if row >= 0 else None
        return int(cell.text()) if cell is not None else 0

    def _show_selected(self) -> None:
        told = self.results.get(self._selected())
        if told is None or self.found is None:
            self.plot.show_orbit(None, {}, {})
            self.reason.setText("")
            return
        record = self.bench.record
        units = {} if record is None else {n: c.unit for n, c in record.record.channels.items()}
        beside = self.found.shown[told["number"] - 1]
        self.plot.show_orbit(told if told.get("orbit") else None, beside, units)
        waited = "" if told.get("wait") is None else f" Waited {told['wait']:.0f} periods."
        averaged = f" {told['averaged_periods']} periods averaged." if told.get("averaged_periods") else ""
        self.reason.setText(
            sentence(f"Orbit {told['number']}: {told['verdict']}: {told['reason']}.{waited}{averaged}")
        )

    def _restored(self) -> None:
        """What was held the last time."""
        if "held" in self.bench.findings and self.found is None:
            found, results, self._fit = self.bench.findings["held"]
            self._show(found, results)

    def _say_fit(self, text: str, role: str) -> None:
        self.fit_words.setText(sentence(text[:1].upper() + text[1:]))
        set_role(self.fit_words, role)


def _row(told: dict[str, Any]) -> list[str]:
    return [
        str(told["number"]), told["verdict"], largest_multiplier(told["model_multipliers"]),
        measured_multiplier(told), _percent(told.get("mean_control")), _percent(told.get("floor")),
    ]  # fmt: skip


def _percent(value: float | None) -> str:
    return "–" if value is None or value != value else f"{100 * value:.2g}"


def _frame(orbits: list[Any]) -> tuple[float, float, float, float]:
    """The frame that holds the first two states of all."""
    x = np.concatenate([o[0] for o in orbits])
    y = np.concatenate([o[1] if len(o) > 1 else o[0] for o in orbits])
    return float(x.min()), float(x.max()), float(y.min()), float(y.max())
