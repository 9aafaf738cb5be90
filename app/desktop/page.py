"""What every page of the window is: a widget that shares the workbench with the others."""

from __future__ import annotations

from PyQt6.QtWidgets import QVBoxLayout, QWidget

from app.desktop.workbench import Workbench


class Page(QWidget):
    """Base of the stages. A page reads what is in hand from the workbench and writes its findings back."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.setObjectName("page")
        self.bench = bench
        self.theme = bench.theme
        gap = bench.theme.px(12)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(gap, gap, gap, gap)
        self.body.setSpacing(gap)

    def on_show(self) -> None:
        """The page has come to the front."""

    def on_hide(self) -> None:
        """Another page has come to the front: stop what only serves the eye."""
