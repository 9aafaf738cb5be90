"""What every page of the window is: a widget that shares the workbench with the others."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from app.desktop.widgets.basics import Empty
from app.desktop.workbench import Workbench
from app.desktop.worker import Job


class Page(QWidget):
    """Base of the stages. A page reads what is in hand from the workbench and writes its findings back."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.setObjectName("page")
        self.bench = bench
        self.job: Job | None = None  # the page's own work that runs elsewhere
        self.theme = bench.theme
        gap = bench.theme.px(12)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(gap, gap, gap, gap)
        self.body.setSpacing(gap)

    def or_nothing(self, work: QWidget, picture: str, missing: str, source: str) -> QStackedWidget:
        """The work of the page behind what is shown while there is nothing to work on, and the way to get it.

        ``source``: the title of the page that makes what is ``missing``.
        """
        empty = Empty(self.theme, picture, missing, f"Go to {source}")
        empty.button.clicked.connect(lambda: self.bench.go(source.lower()))
        stack = QStackedWidget()
        stack.addWidget(empty)
        stack.addWidget(work)
        return stack

    def on_show(self) -> None:
        """The page has come to the front."""

    def on_hide(self) -> None:
        """Another page has come to the front: stop what only serves the eye."""

    def mine(self, job: Job, listener: Callable[..., object]) -> Callable[..., None]:
        """``listener``, which hears of ``job`` only until the page has left it."""

        def heard(*answer: object) -> None:
            if job is self.job:
                listener(*answer)

        return heard

    def leave_job(self) -> None:
        """End the work that runs: it is of a record or a fit that is no longer in hand."""
        if self.job is not None:
            self.job.cancel()
            self.job = None
