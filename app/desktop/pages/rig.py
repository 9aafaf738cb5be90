"""Rig: choose a rig profile, check its channels, let it test itself."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import QModelIndex, QRect, QSize, Qt
from PyQt6.QtGui import QFontMetrics
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from analysis import ShakedownError
from app.desktop.opening import rig_of, rig_paths, rigs_folder
from app.desktop.page import Page
from app.desktop.widgets.basics import Card, button, label, sentence
from app.desktop.widgets.calibrationpanel import CalibrationPanel
from app.desktop.widgets.channeltable import ChannelTable
from app.desktop.widgets.controllers import ControllersPanel
from app.desktop.widgets.devices import DevicesPanel
from app.desktop.widgets.leaverig import may_leave_rig
from app.desktop.widgets.selftest import SelfTest
from app.desktop.widgets.specimen import SpecimenLine
from app.desktop.workbench import Workbench
from app.numbers import localised
from app.project import NAME as PROJECT
from app.words import counted
from drivers.rig.profile import RigProfile, load_rig

NAME = Qt.ItemDataRole.UserRole


class _Wrapped(QStyledItemDelegate):
    """Names over as many lines as they need: Qt forgets the padding when it counts the lines."""

    def __init__(self, view: QListWidget, padding: int) -> None:
        super().__init__(view)
        self._view, self._padding = view, padding

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        viewport = self._view.viewport()
        assert viewport is not None
        width = viewport.width() - 2 * self._view.spacing()
        room = QRect(0, 0, width - 3 * self._padding, 10_000)
        wrap = Qt.TextFlag.TextWordWrap
        text = QFontMetrics(option.font).boundingRect(room, wrap, str(index.data()))
        return QSize(width, text.height() + 2 * self._padding)


class RigPage(Page):
    """Profiles to the left; the chosen one to the right: channels, self-test."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.profile: RigProfile | None = None
        self.list = QListWidget()
        self.list.setAccessibleName("Rigs")
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.list.setWordWrap(True)
        self.list.setResizeMode(QListWidget.ResizeMode.Adjust)  # names wrap anew when the width is known
        self.list.setItemDelegate(_Wrapped(self.list, self.theme.px(8)))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setSpacing(self.theme.px(2))
        self.list.currentItemChanged.connect(lambda *_: self._chosen())
        self.list.itemActivated.connect(lambda _: self.open())
        left = Card(self.theme, "Rigs", "Profiles that come with the program, and your own")
        left.add(self.list, 1)
        self.new_button = button(
            "New rig …", self.ask_new, "From a connected instrument: channels, sensors, limits, self-test"
        )
        left.add(self.new_button)
        left.add(
            label("A rig is a plain text file; save a changed one under a new name.", "small", wrap=True)
        )
        self.title, self.about = label("", "title", wrap=True), label("", "muted", wrap=True)
        self.facts = label("", "small", wrap=True)
        self.open_button = button(
            "Open this rig", self._press, "Connect its instruments and start the stream", "primary"
        )
        head = Card(self.theme)
        row, words = QHBoxLayout(), QVBoxLayout()
        words.setSpacing(self.theme.px(4))
        for text in (self.title, self.about, self.facts):
            words.addWidget(text)
        row.addLayout(words, 1)
        row.addWidget(self.open_button, 0, Qt.AlignmentFlag.AlignTop)
        head.box.addLayout(row)
        self.specimen = SpecimenLine(bench)
        head.add(self.specimen)
        self.channels = ChannelTable(bench)
        self.self_test = SelfTest(bench)
        self.calibration = CalibrationPanel(bench)
        self.controllers = ControllersPanel(bench)
        self.devices = DevicesPanel(bench)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.channels, "Channels")
        self.tabs.addTab(self.self_test, "Self-test")
        self.tabs.addTab(self.calibration, "Calibration")
        self.tabs.addTab(self.controllers, "Sensor controllers")
        self.tabs.addTab(self.devices, "Devices")
        right = QWidget()
        column = QVBoxLayout(right)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(self.theme.px(10))
        column.addWidget(head)
        column.addWidget(self.tabs, 1)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.addWidget(left)
        self.splitter.addWidget(right)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(self.theme.px(10))
        self.splitter.setSizes([self.theme.px(size) for size in bench.settings.layout.get("rig", [252, 950])])
        self.body.addWidget(self.splitter, 1)
        self.channels.saved.connect(self._saved)
        self.channels.edit_wanted.connect(self.ask_channels)
        self.calibration.saved.connect(self._saved)
        self.controllers.saved.connect(self._saved)
        for change in (bench.rig.opening, bench.rig.opened, bench.rig.closed, bench.rig.failed):
            change.connect(self._follow)
        self.reload(bench.settings.rig)

    def on_hide(self) -> None:
        self.bench.settings.layout["rig"] = [round(size / self.theme.scale) for size in self.splitter.sizes()]

    def reload(self, choose: str) -> None:
        """Read the list of profiles again."""
        self.list.blockSignals(True)
        self.list.clear()
        for name, path in self._paths().items():
            item = QListWidgetItem(_title(path))
            item.setData(NAME, name)
            item.setToolTip(str(path))
            self.list.addItem(item)
            if name == choose:
                self.list.setCurrentItem(item)
        self.list.blockSignals(False)
        if self.list.currentItem() is None:
            self.list.setCurrentRow(0)
        self._chosen()

    def _paths(self) -> dict[str, Path]:
        """Every profile that can be chosen; the project's own one first, where it is not a known one."""
        project = self.bench.project
        own = "" if project is None else rig_of(project)
        known = rig_paths()
        return known if not own or own in known else {own: Path(own), **known}

    def name(self) -> str:
        item = self.list.currentItem()
        return str(item.data(NAME)) if item is not None else ""

    def _chosen(self) -> None:
        name = self.name()
        if not name:
            return
        self.self_test.show_rig(name)
        try:
            self.profile = load_rig(self._paths()[name])
        except ShakedownError as error:
            self.profile = None
            self.title.setText(name)
            self.about.setText(str(error))
            self.facts.setText("")
            self.channels.show_profile(None, None)
            self.calibration.show_profile(None)
            self._follow()
            return
        profile = self.profile
        self.specimen.show_rig(name)
        self.title.setText(profile.name)
        self.about.setText(profile.description)
        kind = "Virtual rig" if profile.virtual else "Real instruments"
        drive = f"  ·  at most {profile.limits.peak:g} V" if "exciter" in profile.instruments else ""
        drive += "" if profile.drive is None else f"  ·  drives {profile.drive.kind}"
        channels = counted(len(profile.channels), "channel")
        rate = f"{profile.rate:g} samples per second"
        self.facts.setText(sentence(f"{kind}  ·  {rate}  ·  {channels}{drive}"))
        self.channels.show_profile(profile, self._paths()[name])
        self.calibration.show_profile(profile)
        self._follow()

    def open(self) -> None:
        """Connect the chosen rig."""
        if self.profile is not None and may_leave_rig(self.bench.rig, self):
            self.bench.settings.rig = self.name()
            self.bench.rig.open(self.name())

    def _press(self) -> None:
        """Open the chosen rig, or give it up while it is being opened."""
        if self._is_coming():
            self.bench.rig.cancel_opening()
            self.bench.say(f"{self.title.text()} was given up: no rig is open.")
        else:
            self.open()

    def ask_new(self) -> None:
        """Put a rig together; it is opened, and its self-test comes to the front."""
        from app.desktop.newrig import NewRigDialog

        dialog = NewRigDialog(self.bench, self)
        dialog.search()
        if dialog.exec():
            self.take_new(dialog.key)

    def ask_channels(self) -> None:
        """Change the channels of the chosen rig; it is opened anew, and its self-test comes to the front."""
        from app.desktop.newrig import NewRigDialog

        try:
            dialog = NewRigDialog(self.bench, self, self._paths()[self.name()])
        except ShakedownError as error:
            self.bench.say(str(error), "bad")
            return
        if dialog.exec():
            self.take_new(dialog.key)

    def take_new(self, key: str) -> None:
        """Open a rig that was just made, ready to test itself."""
        self.reload(key)
        self.open()
        self.tabs.setCurrentWidget(self.self_test)

    def _follow(self) -> None:
        is_open = self.bench.rig.name == self.name() and bool(self.name())
        words = "Cancel opening" if self._is_coming() else "Open again" if is_open else "Open this rig"
        self.open_button.setText(words)
        self.open_button.setEnabled(self.profile is not None)

    def _is_coming(self) -> bool:
        """Whether the chosen rig is on its way to be the one in use."""
        return bool(self.name()) and self.bench.rig.being_opened == self.name()

    def _saved(self, name: str) -> None:
        self.reload(name)


def _title(path: Path) -> str:
    """The name in a profile, or the file's own if it cannot be read."""
    try:
        profile = load_rig(path)
    except ShakedownError:
        return f"{path.stem} (has a mistake)"
    kind = "virtual" if profile.virtual else "real instruments"
    own = "of this project, " if (path.parent.parent / PROJECT).is_file() else ""
    if path.parent == rigs_folder():
        own = f"{path.stem}, "  # a copy has the name of its original
    return f"{profile.name}\n{own}{kind}, {localised(f'{profile.rate:g}')}\u00a0Hz"
