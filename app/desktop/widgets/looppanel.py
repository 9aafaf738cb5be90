"""What panels that work with the rig's control loop have in common: the run, its progress and words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from PyQt6.QtWidgets import QHBoxLayout, QWidget

from analysis import Step
from app.desktop.looprun import LoopRun
from app.desktop.widgets.basics import Card, label, progress_bar, scrolled, sentence, set_role
from app.desktop.workbench import Workbench
from app.words import counted

OPENING = "The rig is opened with its control loop …"


class LoopPanel(QWidget):
    """Controls to the left, what is found to the right; ``run`` is the work that is under way."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench, self.theme = bench, bench.theme
        self.run: LoopRun | None = None
        self.bar = progress_bar(1000)
        self.state, self.loop = label("", "small", wrap=True), label("", "small", wrap=True)

    def _beside(self, controls: QWidget) -> QHBoxLayout:
        """The controls in a column that scrolls; what is found comes into the row that is given back."""
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(self.theme.px(10))
        side = scrolled(controls)
        side.setFixedWidth(self.theme.px(310))
        row.addWidget(side)
        return row

    def _add_progress(self, card: Card) -> None:
        for widget in (self.bar, self.state, self.loop):
            card.add(widget)

    def _end_running(self) -> bool:
        """End what runs, softly; whether anything did."""
        if self.run is None:
            return False
        self.run.cancel()
        self._say("Ending: the drive ramps down …", "small")
        return True

    def _begin(self, title: str, recording: str, task: Callable[..., Any], *args: Any) -> None:
        """Take the rig for a piece of work; refused in a sentence where it cannot be had.

        ``recording``: how the name of what is recorded begins.
        """
        name = datetime.now().strftime(f"{recording}-%Y-%m-%d-%H%M%S")
        run = LoopRun(self.bench.rig, self.bench.workers, title, name, task, *args)
        run.begin()
        self.run = run
        run.told.connect(self._news)
        run.stepped.connect(self._step)
        run.done.connect(self._done)
        run.failed.connect(lambda text: self._say(text, "bad"))
        run.ended.connect(self._ended)
        run.returned.connect(self._returned)

    def _news(self, news: object) -> None:
        """What the work tells while it runs."""

    def _done(self, result: dict[str, Any]) -> None:
        """What the work has found."""

    def _ended(self) -> None:
        """The work is over; the rig is on its way back."""
        self.run = None
        self.bar.setValue(0)
        self.loop.setText("")

    def _returned(self) -> None:
        """The rig is as it was before."""

    def _step(self, step: Step) -> None:
        self.bar.setValue(round(1000 * step.fraction))

    def _say(self, text: str, role: str) -> None:
        self.state.setText(sentence(text))
        set_role(self.state, role)


def loop_words(state: str, delay: float, missed: int) -> str:
    """How the loop is doing; ``delay`` in seconds."""
    return f"Loop {state}, delay {1e3 * delay:.3g} ms, {counted(missed, 'deadline')} missed."
