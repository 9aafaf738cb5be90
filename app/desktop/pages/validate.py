"""Validate."""

from __future__ import annotations

from app.desktop.page import Page
from app.desktop.widgets.basics import Empty
from app.desktop.workbench import Workbench


class ValidatePage(Page):
    """Waits for a record."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        empty = Empty(
            self.theme,
            "validate",
            "Take a recording in hand and fit a model to compare the two.",
            "Go to Recordings",
        )
        empty.button.clicked.connect(lambda: bench.go("recordings"))
        self.body.addWidget(empty)
