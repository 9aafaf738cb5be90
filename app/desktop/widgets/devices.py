"""What is connected: found on demand, because asking instruments takes time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PyQt6.QtWidgets import QHBoxLayout, QHeaderView, QTableWidget, QTableWidgetItem

from analysis import Progress
from app.desktop.widgets.basics import Card, button, label
from app.desktop.workbench import Workbench
from drivers.instruments.discovery import Device, Terminals, find_devices, terminals_of
from drivers.instruments.teds import SensorData, sensor_data


def search(progress: Progress) -> tuple[list[Device], list[str]]:
    """Runs in a worker: drivers of instruments may be slow, or crash."""
    progress.report(0.0, "Looking for instruments")
    return find_devices()


def ask_terminals(device: Device, progress: Progress) -> Terminals:
    """Runs in a worker, too."""
    progress.report(0.0, f"Asking {device.address}")
    return terminals_of(device)


def ask_sensor(kind: str, terminal: str, source: Mapping[str, Any], progress: Progress) -> SensorData:
    """Runs in a worker, too."""
    progress.report(0.0, f"Asking the sensor at {terminal}")
    return sensor_data(kind, terminal, source)


class DevicesPanel(Card):
    """A list of the instruments that answer, and what could not be asked."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.theme)
        self.bench = bench
        row = QHBoxLayout()
        self.words = label(
            "Data acquisition, serial ports and virtual rigs of this machine.", "muted", wrap=True
        )
        row.addWidget(self.words, 1)
        self.search_button = button("Search", self.run, "Look for connected instruments", "primary")
        row.addWidget(self.search_button)
        self.box.addLayout(row)
        self.table = QTableWidget(0, 3)
        self.table.setAccessibleName("Instruments that were found")
        self.table.setHorizontalHeaderLabels(["Kind", "Address", "Description"])
        header, side = self.table.horizontalHeader(), self.table.verticalHeader()
        assert header is not None and side is not None
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        side.hide()
        self.table.setShowGrid(False)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.add(self.table, 1)

    def run(self) -> None:
        self.search_button.setEnabled(False)
        self.words.setText("Looking for instruments …")
        job = self.bench.workers.run("Looking for instruments", search)
        job.done.connect(self._show)
        job.failed.connect(self.words.setText)
        job.ended.connect(lambda: self.search_button.setEnabled(True))

    def _show(self, found: tuple[list[Device], list[str]]) -> None:
        devices, remarks = found
        self.table.setRowCount(len(devices))
        for r, device in enumerate(devices):
            for c, text in enumerate((device.kind, device.address, device.description)):
                self.table.setItem(r, c, QTableWidgetItem(text))
        self.words.setText(" ".join(remarks) or f"{len(devices)} found.")
