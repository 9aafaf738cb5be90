"""Identify."""

from __future__ import annotations

from app.desktop.page import Page
from app.desktop.widgets.basics import Empty
from app.desktop.workbench import Workbench


class IdentifyPage(Page):
    """Waits for a record."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        empty = Empty(
            self.theme, "identify", "Take a recording in hand to fit an equation to it.", "Go to Recordings"
        )
        empty.button.clicked.connect(lambda: bench.go("recordings"))
        self.body.addWidget(empty)
