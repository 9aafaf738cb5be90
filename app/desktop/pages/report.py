"""Report."""

from __future__ import annotations

from app.desktop.page import Page
from app.desktop.widgets.basics import Empty
from app.desktop.workbench import Workbench


class ReportPage(Page):
    """Waits for a record."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        empty = Empty(
            self.theme,
            "report",
            "Take a recording in hand and work with it: the report collects what you find.",
            "Go to Recordings",
        )
        empty.button.clicked.connect(lambda: bench.go("recordings"))
        self.body.addWidget(empty)
