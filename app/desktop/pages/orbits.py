"""Orbits."""

from __future__ import annotations

from app.desktop.page import Page
from app.desktop.widgets.basics import Empty
from app.desktop.workbench import Workbench


class OrbitsPage(Page):
    """Waits for a record."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        empty = Empty(
            self.theme,
            "orbits",
            "Take a recording in hand to search it for periodic orbits.",
            "Go to Recordings",
        )
        empty.button.clicked.connect(lambda: bench.go("recordings"))
        self.body.addWidget(empty)
