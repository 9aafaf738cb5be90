"""The states of the model along the record, hidden ones included, each with its band; kept as a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PyQt6.QtWidgets import QComboBox, QFileDialog, QHBoxLayout, QVBoxLayout, QWidget

from analysis import Identification, Step
from app.desktop import tasks
from app.desktop.plots.states import StatePlot
from app.desktop.widgets.basics import button, label, progress_bar, sentence, set_role
from app.desktop.workbench import Workbench
from app.desktop.worker import Job
from app.words import plain

if TYPE_CHECKING:
    from analysis import LatentStates, Record

UNUSED = "The fit is not to be used, so its states would tell nothing of the specimen."


class StatesPanel(QWidget):
    """Curve to the left; state, buttons and words to the right."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench, theme = bench, bench.theme
        self.job: Job | None = None
        self.result: Identification | None = None
        self.found: LatentStates | None = None
        self._record: Record | None = None
        self._mapping: dict[str, str] = {}
        self._refused = "Identify first."
        self.plot = StatePlot(theme)
        self.plot.setMinimumHeight(theme.px(90))
        self.chooser = QComboBox()
        self.chooser.setAccessibleName("State that is shown")
        self.chooser.setToolTip("Which state of the model is drawn")
        self.chooser.currentIndexChanged.connect(lambda _: self._draw())
        self.find_button = button(
            "Find the states", self.find_states, "Every state of the model along the record, with its error"
        )
        self.cancel_button = button("Cancel", self.cancel, "End it; nothing is lost")
        self.cancel_button.hide()
        self.export_button = button(
            "Save as a recording …", self.ask_export, "The recording with the states as further channels"
        )
        self.bar = progress_bar(1000)
        self.bar.setAccessibleName("Progress of the states")
        self.bar.hide()
        self.state = label("", "small", wrap=True)
        column = QVBoxLayout()
        column.setSpacing(theme.px(6))
        for part in (self.chooser, self.find_button, self.cancel_button, self.export_button, self.bar):
            column.addWidget(part)
        column.addWidget(self.state)
        column.addStretch(1)
        across = QHBoxLayout(self)
        across.setContentsMargins(0, theme.px(4), 0, 0)
        across.setSpacing(theme.px(8))
        across.addWidget(self.plot, 3)
        across.addLayout(column, 2)
        self._follow()
        self._say(self._refused, "small")

    def show_result(
        self, result: Identification, record: Record | None, mapping: dict[str, str], refused: str
    ) -> None:
        """The fit whose states are asked for; ``refused``: why there are none, in words."""
        from analysis import why_no_states

        if result is not self.result:
            self.cancel()
            self.job = self.found = None
            self.chooser.clear()
            self.plot.clear()
        self.result, self._record, self._mapping = result, record, mapping
        self._refused = refused or why_no_states(result)
        if not self._refused and not result.usable:
            self._refused = UNUSED
        self._follow()
        if self.found is None or self._refused:
            self._say(self._refused or "Not found yet.", "small")

    def find_states(self) -> None:
        """Have the states found elsewhere."""
        result, record = self.result, self._record
        if result is None or record is None or self._refused or self.job is not None:
            return
        job = self.bench.workers.run(
            "Finding the states", tasks.states_of, result, record, dict(self._mapping)
        )
        self.job = job
        job.stepped.connect(self._step)
        job.done.connect(lambda found: self._take(job, found))
        job.failed.connect(lambda text: self._say_of(job, text, "bad"))
        job.cancelled.connect(lambda: self._say_of(job, "Cancelled; nothing is lost.", "small"))
        job.ended.connect(lambda: self._ended(job))
        self._say("The fit is made again, then its states are told.", "small")
        self.bar.setValue(0)
        self._follow()

    def cancel(self) -> None:
        if self.job is not None:
            self.job.cancel()

    def _step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))

    def _take(self, job: Job, found: LatentStates) -> None:
        if job is not self.job:  # of a fit that is no longer shown
            return
        self.found = found
        self.chooser.clear()
        self.chooser.addItems(list(found.names))
        measured = {name for name, channel in self._mapping.items() if channel}
        measured |= set(self._record.channels if self._record is not None else ())
        hidden = [i for i, name in enumerate(found.names) if name not in measured]
        self.chooser.setCurrentIndex(hidden[0] if hidden else 0)  # what no sensor shows comes first
        self._draw()

    def _draw(self) -> None:
        found, row, record = self.found, self.chooser.currentIndex(), self._record
        if found is None or record is None or self.result is None or not 0 <= row < len(found.names):
            return
        from analysis import Model

        name, values, errors = found.names[row], found.values[row], found.stderr[row]
        unit = Model.from_toml(self.result.model_text).unit(name)
        self.plot.show_state(record.rate, name, unit, values, errors)
        self.plot.markers.show(record.marked(np.arange(len(values)) / record.rate))
        size = float(np.nanmedian(errors)) if np.isfinite(errors).any() else float("nan")
        told = f"Standard error of {name}: {plain(size)} {unit}".rstrip() + " (median)."
        self._say(" ".join((told, *found.words)), "small")

    def _ended(self, job: Job) -> None:
        if job is self.job:
            self.job = None
            self._follow()

    def _follow(self) -> None:
        busy = self.job is not None
        self.find_button.setEnabled(not self._refused and not busy)
        self.export_button.setEnabled(self.found is not None and not self._refused and not busy)
        self.cancel_button.setVisible(busy)
        self.bar.setVisible(busy)

    # -- as a recording

    def ask_export(self) -> None:
        hand = self.bench.record
        name = f"{hand.name if hand is not None else 'record'}-states.h5"
        start = self.bench.settings.library_folder / name
        path, _ = QFileDialog.getSaveFileName(self, "Save as a recording", str(start))
        if path:
            self.export(Path(path))

    def export(self, path: Path) -> None:
        """Write the recording with the states; never over the one that it comes from."""
        hand = self.bench.record
        if self.found is None or self._record is None or self.result is None:
            return
        if hand is not None and hand.path is not None and path.exists() and path.samefile(hand.path):
            self._say("This is the recording itself: choose another name.", "bad")
            return
        job = self.bench.workers.run(
            "Saving the states", tasks.write_states, self._record, self.result, self.found, path
        )
        job.done.connect(lambda _: self.bench.say(f"The states are saved in {path.name}.", "good"))
        job.failed.connect(lambda text: self._say(text, "bad"))

    def _say_of(self, job: Job, text: str, role: str) -> None:
        """What became of a job, unless another fit is shown by now."""
        if job is self.job:
            self._say(text, role)

    def _say(self, text: str, role: str) -> None:
        self.state.setText(sentence(text))
        self.state.setVisible(bool(text))
        set_role(self.state, role)
