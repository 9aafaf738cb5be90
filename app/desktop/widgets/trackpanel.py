"""Tracking a branch on the rig: which one, how far; the branch as it grows, and what it is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QComboBox, QVBoxLayout, QWidget

from analysis import Estimate, ShakedownError, percent, with_error
from app.desktop import looptasks
from app.desktop.plots.branch import BranchPlot
from app.desktop.widgets.basics import (
    Card,
    add_row,
    button,
    form,
    label,
    sentence,
)
from app.desktop.widgets.looppanel import OPENING, LoopPanel, loop_words
from app.desktop.widgets.number import Count, Number
from app.desktop.workbench import Workbench
from app.tracking.request import LEAST, TrackChannels, TrackRequest, check_model, track_channels
from app.words import counted

TITLE = "Tracking a branch"
KINDS = (("Backbone", "backbone"), ("Response over force", "force"), ("Response over frequency", "frequency"))
SEES = ("by its unit", "displacement", "velocity", "acceleration")
NO_MODEL, RIGS_MODEL, FIT = "none", "rig's, library values", "the newest fit"
VERDICTS = {
    "tracked": ("Tracked: the whole branch, and the same at half the speed.", "good"),
    "moved": ("Moved: at half the speed the branch lies elsewhere.", "warn"),
    "incomplete": ("Incomplete.", "warn"),
}


class TrackPanel(LoopPanel):
    """What to track to the left, the branch to the right."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.points: list[dict[str, Any]] = []
        self.plot = BranchPlot(self.theme)
        self._asked: tuple[TrackRequest, TrackChannels] | None = None
        self._model: tuple[str, Mapping[str, float]] | None = None
        self._drawing = False  # the model's branch is being computed
        row = self._beside(self._controls())
        right = QVBoxLayout()
        right.setSpacing(self.theme.px(10))
        right.addWidget(self.plot, 1)
        found = Card(self.theme, "Found")
        self.verdict = label("", "small", wrap=True)
        self.verdict.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        found.add(self.verdict)
        self.found = found
        found.hide()
        right.addWidget(found)
        row.addLayout(right, 1)
        bench.rig.opened.connect(self.reload)
        self.kind.currentIndexChanged.connect(self._kind_chosen)
        self._kind_chosen()
        self.reload()

    def _controls(self) -> QWidget:
        theme = self.theme
        side = QWidget()
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, theme.px(2), 0)
        card = Card(theme, "Track", "The rig's own control loop makes the drive and follows the branch")
        self.fields = form(theme)
        self.kind, self.response, self.force = QComboBox(), QComboBox(), QComboBox()
        self.sees, self.model = QComboBox(), QComboBox()
        for words, key in KINDS:
            self.kind.addItem(words, key)
        self.sees.addItems(SEES)
        for box in (self.kind, self.response, self.force, self.sees, self.model):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(8)
        self.model.addItems([NO_MODEL, RIGS_MODEL, FIT])
        self.to = Number(0.001, 0.0, 1e6, "", 6, drives=True)
        self.begin_at = Number(0.0, 0.0, 1e6, "", 6, drives=True, empty="1/20 of it")
        self.at = Number(0.0, 0.0, 1e6, "Hz", 5, drives=True)
        self.near = Number(0.0, 0.0, 1e6, "Hz", 4, drives=True, empty="as the drive")
        self.count = Count(20, LEAST, 200)
        for words, field, tip in (
            ("Branch", self.kind, "What is followed"),
            ("At", self.at, "The frequency, or the force, at which the curve is followed"),
            ("Up to", self.to, "Largest response amplitude; at 1.5 times as much the drive ends"),
            ("From", self.begin_at, "Smallest response amplitude"),
            ("Points", self.count, "On the way out; some are visited again on the way back"),
            ("Near", self.near, "Where the resonance of small motions is, about"),
            ("Response", self.response, "The channel of the response"),
            ("Force", self.force, "The channel of the force"),
            ("Sees", self.sees, "What the response's sensor sees"),
            ("Model", self.model, "Whose branch is drawn under the points"),
        ):
            add_row(theme, self.fields, words, field, tip)
        card.box.addLayout(self.fields)
        self.button = button("Track", self.toggle, "Test, track and come back; or end it", "primary")
        card.add(self.button)
        self._add_progress(card)
        column.addWidget(card)
        column.addStretch(1)
        return side

    # -- what is asked for

    def reload(self) -> None:
        """The channels of the rig that was opened."""
        opened = self.bench.rig.rig
        if opened is None or opened.profile is None or self.run is not None:
            return
        channels = opened.profile.channels
        for box in (self.response, self.force):
            before = box.currentText()
            box.clear()
            box.addItems([c.name for c in channels])
            if before in [c.name for c in channels]:
                box.setCurrentText(before)
        try:
            found = track_channels(opened.profile)
        except ShakedownError as error:
            self._say(str(error), "warn")
        else:
            self.response.setCurrentText(found.response.name)
            self.force.setCurrentText(found.force.name)
        self._units()

    def _units(self) -> None:
        opened = self.bench.rig.rig
        units = {c.name: c.unit for c in opened.profile.channels} if opened and opened.profile else {}
        for box in (self.to, self.begin_at):
            box.set_unit(units.get(self.response.currentText(), ""))
        over_force = self.kind.currentData() == "force"
        self.at.set_unit("Hz" if over_force else units.get(self.force.currentText(), ""))

    def _kind_chosen(self) -> None:
        self.fields.setRowVisible(self.at, self.kind.currentData() != "backbone")
        self._units()

    def request(self) -> tuple[TrackRequest, TrackChannels]:
        """What the fields ask for; refused in a sentence where it cannot be done."""
        opened = self.bench.rig.rig
        if opened is None or opened.profile is None:
            raise ShakedownError("Open a rig with a control loop first, on the Rig page.")
        sees = self.sees.currentText()
        channels = track_channels(
            opened.profile, self.response.currentText(), self.force.currentText(),
            None if sees == SEES[0] else sees,
        )  # fmt: skip
        asked = TrackRequest(
            self.kind.currentData(), self.to.read(), self.begin_at.read() or None, self.count.read(),
            self.at.read(), self.near.read() or None,
        )  # fmt: skip
        asked.nearby(opened.profile)
        return asked, channels

    def _chosen_model(self, channels: TrackChannels) -> tuple[str, Mapping[str, float]] | None:
        """Text and values of the model that is set beside the branch."""
        from analysis import Model
        from drivers.library import load_model

        choice, opened = self.model.currentText(), self.bench.rig.rig
        if choice == NO_MODEL or opened is None or opened.profile is None:
            return None
        if choice == FIT:
            result = self.bench.result
            if result is None or not result.model_text:
                raise ShakedownError("There is no fit yet whose branch could be drawn.")
            check_model(Model.from_toml(result.model_text), channels)
            return result.model_text, result.values()
        if not opened.profile.model:
            raise ShakedownError(f"The rig '{opened.profile.key}' does not name a model.")
        model = load_model(opened.profile.model)
        check_model(model, channels)
        return model.to_toml(), {}

    # -- on the rig

    def toggle(self) -> None:
        """Begin, or end what runs."""
        if self._end_running():
            return
        try:
            request, channels = self.request()
            model = self._chosen_model(channels)
            opened = self.bench.rig.rig
            assert opened is not None
            self._begin(TITLE, "tracked", looptasks.track_branch, opened.profile, channels, request, model)
        except ShakedownError as error:
            self._say(str(error), "bad")
            return
        self._asked, self._model, self.points = (request, channels), model, []
        over = "force" if request.kind == "force" else "frequency"
        self.plot.begin(over, channels.force.unit, channels.response.unit)
        self.found.hide()
        self.button.setText("End tracking")
        self._say(OPENING, "small")

    def _news(self, news: object) -> None:
        if isinstance(news, dict):
            self.points.append(news)
            self.plot.show_points(self.points, [])
            self._draw_model()
        elif isinstance(news, tuple):
            doing, status = news
            self._say(f"{doing[:1].upper()}{doing[1:]} …", "small")
            self.loop.setText(sentence(loop_words(status.state, status.delay, status.missed)))

    def _draw_model(self) -> None:
        """The model's branch as far as the points go, computed elsewhere."""
        if self._model is None or self._asked is None or len(self.points) < 2 or self._drawing:
            return
        request, channels = self._asked
        self._drawing = True
        job = self.bench.workers.run(
            "The model's branch", looptasks.branch_of_model, self._model, channels.response.name,
            request.kind, request.at, list(self.points), quiet=True,
        )  # fmt: skip
        job.done.connect(lambda line: self.plot.show_model(*line))
        job.failed.connect(lambda text: self._say(f"The model's branch: {text}", "warn"))
        job.ended.connect(self._drawn)

    def _drawn(self) -> None:
        self._drawing = False

    def _done(self, result: dict[str, Any]) -> None:
        if result["points"]:
            self.points = result["points"]
            self.plot.show_points(self.points, result["folds"])
            self._draw_model()
        words, role = VERDICTS.get(result["verdict"] or "", ("Nothing was tracked.", "warn"))
        if result["reason"]:
            words += f" {result['reason'][:1].upper()}{result['reason'][1:]}."
        if result["problem"]:
            words, role = f"{result['problem']} {counted(len(self.points), 'point')} kept.", "warn"
        self._say(words, role)
        self.verdict.setText(sentence(" ".join(found_words(result)) or words))
        self.found.show()
        if result["table"]:
            self.bench.say("The branch lies as a table beside its recording.", "good", "recordings")

    def _ended(self) -> None:
        super()._ended()
        self.button.setText("Track")
        self.button.setEnabled(False)  # until the rig is opened as it was before

    def _returned(self) -> None:
        self.button.setEnabled(True)


def found_words(result: Mapping[str, Any]) -> list[str]:
    """What a tracked branch says, in sentences."""
    linear, check = result.get("linear"), result.get("ramp_check")
    words = []
    if linear is not None:
        words.append(f"Small motions: {linear['frequency']:.5g} Hz, damping {percent(linear['damping'], 3)}.")
    for fold in result["folds"]:
        unit = "Hz" if fold["over"] == "frequency" else result["units"]["force"]
        place = with_error(Estimate(fold["at"], fold["stderr"]))
        words.append(f"Fold at {fold['over']} {place} {unit}.".replace(" .", "."))
    kinds = {True: "stable", False: "unstable", None: "not told"}
    counts = {word: sum(p["stable"] is key for p in result["points"]) for key, word in kinds.items()}
    if any(p["stable"] is not None for p in result["points"]):
        words.append("Motions: " + ", ".join(f"{n} {word}" for word, n in counts.items() if n) + ".")
    if check is not None:
        words.append(f"At half the speed {counted(check['compared'], 'point')} again, largest difference "
                     f"{percent(check['largest'])}.")  # fmt: skip
    forces = [p["force"] / p["model_force"] - 1 for p in result["points"] if p.get("model_force")]
    if forces:
        words.append(f"Force against the model's: at most {percent(max(map(abs, forces)))} off.")
    return words
