"""Recordings: the library of runs; import, look, trim, replay, and take one in hand."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import QModelIndex, QPoint, QRect, QSize, Qt
from PyQt6.QtGui import (
    QColor,
    QDragEnterEvent,
    QDropEvent,
    QKeySequence,
    QPainter,
    QPolygon,
    QResizeEvent,
    QShortcut,
)
from PyQt6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QSplitter,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from analysis import ShakedownError
from app import library
from app.dates import moment_text
from app.desktop.page import Page
from app.desktop.plots.recordview import RecordView
from app.desktop.theme import Theme
from app.desktop.widgets.basics import (
    Card,
    Choice,
    Elided,
    Empty,
    IconButton,
    add_row,
    button,
    dialog_buttons,
    form,
    label,
)
from app.desktop.widgets.basics import entry as text_field
from app.desktop.widgets.importing import ask_import
from app.desktop.widgets.leaverig import may_leave_rig
from app.desktop.widgets.notes import LINES, Notes
from app.desktop.widgets.number import Number
from app.desktop.widgets.question import NumberDialog
from app.desktop.widgets.statusbar import quantity
from app.desktop.workbench import Workbench
from app.library import Entry
from app.numbers import localised
from app.words import counted, duration
from drivers.recording.lazy import Recording

if TYPE_CHECKING:
    from app.desktop.widgets.campaignpanel import CampaignPanel

ENTRY = Qt.ItemDataRole.UserRole
NONE = "No recording yet.\nMake one on the Acquire page, or drop a file here."
LOW = 560  # height of a page on which several lines of notes have room
DETAILS_AT_A_TIME = 50  # recordings that one job looks at before the list shows what it found


class RecordingsPage(Page):
    """The list to the left, the chosen recording to the right."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench)
        self.folder = bench.settings.library_folder
        self.entries: dict[Path, Entry] = {}
        self.recording: Recording | None = None
        self._wanted: Path | None = None  # to be chosen when the list is read
        self._reading = self._stale = False  # the folder is being read; it has changed meanwhile
        self._binned: list[list[tuple[Path, Path]]] = []  # moves to the bin: from, to
        self._detailing = False  # recordings that are listed already are being looked at
        self.setAcceptDrops(True)
        self.search = text_field("", "Search names, tags, notes")
        self.search.setToolTip("Shows the recordings that contain every word (Ctrl+F)")
        self.search.setAccessibleName("Search the recordings")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._fill)
        self.list = QListWidget()
        self.list.setItemDelegate(EntryDelegate(self.theme))
        self.list.setAccessibleName("Recordings")
        self.list.setMouseTracking(True)
        self.list.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.list.setToolTip("Ctrl or Shift with a click chooses several")
        self.list.itemSelectionChanged.connect(self._several_chosen)
        self.list.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.list.currentItemChanged.connect(self._chosen)
        self.list.itemActivated.connect(lambda _: self.use())
        left = Card(self.theme)
        row = QHBoxLayout()
        row.addWidget(self.search, 1)
        self.import_button = button(
            "Import", self.ask_import, "Bring files in: or drop them on this page", "", "Ctrl+O"
        )
        row.addWidget(self.import_button)
        left.box.addLayout(row)
        self.examples_button = button(
            "Load the examples", self.load_examples, "Copy the recordings that come with the program", "quiet"
        )
        self.all_button = button(
            "Identify all",
            self.show_campaign,
            "Fit one model to the chosen recordings, or to all in the list, and see how its parameters move",
        )
        left.add(self.list, 1)
        left.add(self.all_button)
        left.add(label("Drop files anywhere on this page to import them.", "small"))
        left.add(self.examples_button)
        self.right = QStackedWidget()
        self.empty = Empty(
            self.theme,
            "recordings",
            "Reading the library …",
            "Go to Acquire",
        )
        self.empty.button.hide()
        self.empty.button.clicked.connect(lambda: bench.go("acquire"))
        self.right.addWidget(self.empty)
        self.right.addWidget(self._details())
        self.campaign: CampaignPanel | None = None  # made when it is first asked for
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.addWidget(left)
        self.splitter.addWidget(self.right)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.setHandleWidth(self.theme.px(10))
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setSizes(
            [self.theme.px(size) for size in bench.settings.layout.get("recordings", [330, 900])]
        )
        self.body.addWidget(self.splitter, 1)
        bench.rig.recorded.connect(lambda path: self.refresh(path))
        for keys, action in (("Ctrl+F", self._find), ("Ctrl+Z", self.undo_bin)):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(action)
        delete = QShortcut(QKeySequence(Qt.Key.Key_Delete), self.list)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(self.bin)

    def _find(self) -> None:
        self.search.setFocus()
        self.search.selectAll()

    def _details(self) -> QWidget:
        whole = QWidget()
        box = QVBoxLayout(whole)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(self.theme.px(10))
        head = Card(self.theme)
        self.name, self.facts = Elided("title"), label("", "muted", wrap=True)
        row = QHBoxLayout()
        row.addWidget(self.name, 1)
        self.use_button = button(
            "Use this record", self.use, "Take it in hand for the analysis pages", "primary"
        )
        self.replay_button = button("Replay", self.replay, "Play it through the Acquire page like a live rig")
        row.addWidget(self.replay_button)
        row.addWidget(self.use_button)
        head.box.addLayout(row)
        head.add(self.facts)  # over the whole width: beside the buttons it would be cut
        fields = form(self.theme)
        self.tags, self.notes = (
            text_field("", "chaos, 7.5 Hz"),
            Notes(self.theme, "none yet"),
        )
        self.tags.setToolTip("Words to find it by, separated by commas")
        for text, field in (("Tags", self.tags), ("Notes", self.notes)):
            add_row(self.theme, fields, text, field)
            field.editingFinished.connect(self._keep_notes)
        head.box.addLayout(fields)
        box.addWidget(head)
        self.view = RecordView(self.theme, "Overview")
        self.beside = Choice()
        self.beside.setAccessibleName("Another recording behind this one")
        self.beside.setToolTip("Another recording, drawn in grey behind this one, from its own beginning")
        self.beside.setMinimumContentsLength(14)
        self.beside.activated.connect(lambda _: self._show_beside())
        self.other: Recording | None = None
        self.view.head.insertSpacing(1, self.theme.px(8))
        self.view.head.insertWidget(2, self.beside)
        box.addWidget(self.view, 1)
        tools = QHBoxLayout()
        tools.addWidget(label("Each makes a new one.", "small", wrap=True), 1)
        self.cut_button = button("Cut", self._cut, "Keep only a stretch: mark it by dragging, then cut")
        self.cut_button.setCheckable(True)
        self._offered: tuple[tuple[int, int] | None, float] = None, 0.0  # a stretch to be changed, and when
        tools.addWidget(self.cut_button)
        for text, action, tip in (
            ("Resample", self.resample, "Change the sample rate"),
            ("Calibrate", self.calibrate, "Correct the scale, offset or unit of a channel"),
            ("Export", self.export, "Save a copy in another format"),
        ):
            tools.addWidget(button(text, action, tip))
        self.bin_button = IconButton(
            self.theme, "trash", "Move this recording to the bin folder of the library"
        )
        self.bin_button.clicked.connect(self.bin)
        tools.addWidget(self.bin_button)
        box.addLayout(tools)
        return whole

    # -- the list

    def on_show(self) -> None:
        self.refresh()

    def on_hide(self) -> None:
        self.bench.settings.layout["recordings"] = [
            round(size / self.theme.scale) for size in self.splitter.sizes()
        ]

    def refresh(self, choose: Path | None = None) -> None:
        """Read the folder again, elsewhere; ``choose`` is brought to the front when it is there."""
        self._wanted = choose or self._wanted
        if self._reading:
            self._stale = True  # what changed may have been read before it did
            return
        self._reading, self._stale = True, False
        job = self.bench.workers.run(
            "Reading the library", library.scan, self.folder, self.entries, quiet=True
        )
        job.done.connect(self._read)
        job.failed.connect(lambda text: self.bench.say(text, "bad"))
        job.ended.connect(self._read_ended)

    def _read_ended(self) -> None:
        self._reading = False
        missing = self._wanted is not None and self._wanted not in self.entries and self._wanted.exists()
        if self._stale or missing:
            self.refresh()
        self._read_details()

    def _read(self, entries: list[Entry]) -> None:
        self.entries = {e.path: e for e in entries}
        self.empty.button.show()
        self._fill()

    def _read_details(self) -> None:
        """Look at the next recordings of which only the names are known, the chosen one first."""
        pending = [e.path for e in self.entries.values() if e.pending]
        if self._detailing or not pending:
            return
        chosen = self.current()
        if chosen is not None and chosen.pending:
            pending.insert(0, chosen.path)
        self._detailing = True
        some = list(dict.fromkeys(pending))[:DETAILS_AT_A_TIME]
        job = self.bench.workers.run("Reading the library", library.details, self.folder, some, quiet=True)
        job.done.connect(self._detailed)
        job.ended.connect(self._details_ended)

    def _detailed(self, entries: list[Entry]) -> None:
        """Fill in what was found, in place: the list neither jumps nor is it made anew."""
        found = {e.path: e for e in entries if e.path in self.entries}
        self.entries.update(found)
        for row in range(self.list.count()):
            item = self.list.item(row)
            assert item is not None
            if (entry := found.get(item.data(ENTRY).path)) is not None:
                self._show(item, entry)
        chosen = self.current()
        if chosen is not None and chosen.path in found:
            self._chosen()

    def _details_ended(self) -> None:
        self._detailing = False
        self._read_details()

    def _show(self, item: QListWidgetItem, entry: Entry) -> None:
        item.setData(ENTRY, entry)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, entry.name)
        item.setToolTip("\n".join(filter(None, (entry.name, entry.problem or entry.notes))))

    def _fill(self) -> None:
        """Show the entries that match the search, keeping the chosen one."""
        chosen = self.current()
        keep = self._wanted or (chosen.path if chosen else None)
        many = self.campaign is not None and self.right.currentWidget() is self.campaign and not self._wanted
        several = {item.data(ENTRY).path for item in self.list.selectedItems()}
        self.list.blockSignals(True)
        self.list.clear()
        for entry in self.entries.values():
            if entry.matches(self.search.text()):
                item = QListWidgetItem()
                self._show(item, entry)
                self.list.addItem(item)
        rows = [self.list.item(i).data(ENTRY).path for i in range(self.list.count())]  # type: ignore[union-attr]
        if many:  # their table stays: whoever opened a fit from it comes back for the next one
            for i, path in enumerate(rows):
                self.list.item(i).setSelected(path in several)  # type: ignore[union-attr]
        self.list.blockSignals(False)
        if many:
            self.show_campaign()
            return
        if keep in rows:
            self._wanted = None
            self.list.setCurrentRow(rows.index(keep))
        elif rows:
            self.list.setCurrentRow(0)
        elif self.entries:
            self.empty.text.setText("No recording contains all these words.")
        else:
            self.empty.text.setText(NONE)
        self._chosen()

    def chosen_entries(self) -> list[Entry]:
        """The recordings that are chosen in the list, in its order; all that it shows if it is only one."""
        count = self.list.count()
        items = [item for i in range(count) if (item := self.list.item(i)) is not None]
        several = [item for item in items if item.isSelected()]
        entries = [item.data(ENTRY) for item in (several if len(several) > 1 else items)]
        return [entry for entry in entries if not entry.problem]

    def show_campaign(self) -> None:
        """Many recordings at once: to the right, in place of the one that was chosen."""
        if self.campaign is None:
            from app.desktop.widgets.campaignpanel import CampaignPanel

            self.campaign = CampaignPanel(self.bench)
            self.right.addWidget(self.campaign)
        self.campaign.choose([entry.path for entry in self.chosen_entries()])
        self.right.setCurrentWidget(self.campaign)

    def _several_chosen(self) -> None:
        if len(self.list.selectedItems()) > 1:
            self.show_campaign()
        elif self.campaign is not None and self.right.currentWidget() is self.campaign:
            self._chosen()

    def current(self) -> Entry | None:
        item = self.list.currentItem()
        entry: Entry | None = item.data(ENTRY) if item is not None else None
        return entry

    def _chosen(self, *_: Any) -> None:
        entry = self.current()
        self.right.setCurrentIndex(0 if entry is None else 1)
        if entry is None:
            return
        if self.recording is not None:
            self.view.show_recording(None)
            self.recording.close()
            self.recording = None
        self._offer_beside(entry)
        self.cut_button.setChecked(False)
        self.cut_button.setText("Cut")
        self.name.setText(entry.name)
        self.name.setToolTip(entry.name)
        self.facts.setText(entry.problem or facts(entry))
        self.tags.setText(", ".join(entry.tags))
        self.notes.setText(entry.notes)
        for widget in (self.use_button, self.replay_button, self.view):
            widget.setEnabled(not entry.problem and not entry.pending)
        if entry.problem or entry.pending:
            return
        from drivers.formats import open_lazily

        try:
            self.recording = open_lazily(entry.path)
            self.view.show_recording(self.recording)
        except ShakedownError as error:
            self.bench.say(str(error), "bad")

    def _offer_beside(self, entry: Entry) -> None:
        """The others of the library, none of them drawn yet."""
        self._close_other()
        self.beside.clear()
        self.beside.addItem("alone", None)
        for other in self.entries.values():
            if other.path != entry.path and not other.problem:
                self.beside.addItem(f"with {other.name}", other.path)
        self.beside.setEnabled(self.beside.count() > 1)

    def _close_other(self) -> None:
        if self.other is not None:
            self.view.show_beside(None)
            self.other.close()
            self.other = None

    def _show_beside(self) -> None:
        """Draw the chosen other recording behind this one."""
        from drivers.formats import open_lazily

        self._close_other()
        path = self.beside.currentData()
        if path is None or self.recording is None:
            return
        try:
            self.other = open_lazily(path)
        except ShakedownError as error:
            self.bench.say(str(error), "bad")
            self.beside.setCurrentIndex(0)
            return
        left_out = self.view.show_beside(self.other)
        if left_out:
            self.bench.say(f"Not drawn, because the units differ: {left_out}.", "warn")

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """On a low screen the room is for the signals."""
        super().resizeEvent(event)
        self.notes.show_lines(1 if self.height() < self.theme.px(LOW) else LINES)

    def _keep_notes(self) -> None:
        entry = self.current()
        if entry is None:
            return
        tags = tuple(t.strip() for t in self.tags.text().split(",") if t.strip())
        if (self.notes.text(), tags) == (entry.notes, entry.tags):
            return
        try:
            library.write_notes(entry.path, self.notes.text(), tags)
        except OSError as error:
            self.bench.say(f"The notes could not be saved: {error.strerror}.", "bad")
        self.refresh(entry.path)

    # -- acting

    def use(self) -> None:
        """Take the chosen recording in hand."""
        entry = self.current()
        if entry is None or entry.problem or entry.pending:
            return
        self.bench.take_file(entry.path)

    def replay(self) -> None:
        entry = self.current()
        if entry is not None and may_leave_rig(self.bench.rig, self):
            self.bench.rig.open_replay(entry.path)
            self.bench.go("acquire")

    def ask_import(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(self, "Import recordings", str(Path.home()))
        self.import_with_preview([Path(n) for n in names])

    def import_with_preview(self, paths: list[Path]) -> None:
        """Show how the files are read, let every guess be changed, then bring them in."""
        if not paths:
            return
        how = ask_import(self.bench, paths, self)
        if how is None:
            return
        job = self.bench.workers.run(f"Importing {paths[0].name}", library.import_as, paths, self.folder, how)
        job.done.connect(self._all_made)
        job.failed.connect(lambda text: self.bench.say(text, "bad"))

    def _all_made(self, paths: list[Path]) -> None:
        for path in paths:
            self._made(path)
        if len(paths) == 1 and self.bench.record is None and not self.bench.opening:
            self.bench.take_file(paths[0])  # the first one: what else would one want to look at?

    def load_examples(self) -> None:
        """Bring the recordings that come with the program into the library, unless they are there."""
        wanted = [p for p in example_files() if not (self.folder / p.name).exists()]
        if not wanted:
            self.bench.say("The examples are in the library already.")
        self.import_files(wanted)

    def import_files(self, paths: list[Path], rate: float | None = None) -> None:
        """Bring files into the library, one job each."""
        for path in paths:
            job = self.bench.workers.run(
                f"Importing {path.name}", library.import_file, path, self.folder, rate
            )
            job.done.connect(self._made)
            job.failed.connect(lambda text, path=path: self._import_failed(text, path, rate))

    def _import_failed(self, text: str, path: Path, rate: float | None) -> None:
        if (rate is None and "--rate" in text) or "sample rate" in text:
            question = f"{path.name} does not say its sample rate. Samples per second:"
            number = Number(1000.0, 0.001, 1e9, "Hz", 3)
            given = NumberDialog(self.theme, self, "Sample rate", question, number).ask()
            if given is not None:
                self.import_files([path], given)
            return
        self.bench.say(text, "bad")

    def _made(self, path: Path) -> None:
        self.bench.say(f"{path.stem} is in the library.", "good")
        self.refresh(path)

    def _derive(self, title: str, function: Any, *args: Any) -> None:
        job = self.bench.workers.run(title, function, *args)
        job.done.connect(self._made)
        job.failed.connect(lambda text: self.bench.say(text, "bad"))

    def _cut(self) -> None:
        """First click: mark a stretch. Second click: cut it."""
        entry, marked = self.current(), self.view.selected()
        if entry is None:
            return
        if marked is None:
            self.view.select(True)
            self.cut_button.setChecked(True)
            self.cut_button.setText("Cut the marked piece")
            self._offered = self.view.selected(), time.monotonic()
            return
        offered, at = self._offered
        if marked == offered and time.monotonic() - at < QApplication.doubleClickInterval() / 1000:
            self.cut_button.setChecked(True)  # a double click: nobody has marked anything yet
            return
        if marked[0] == marked[1]:
            self.cut_button.setChecked(True)
            self.bench.say("The marked piece is empty: drag one of its edges.", "warn")
            return
        self.view.select(False)
        self.cut_button.setChecked(False)
        self.cut_button.setText("Cut")
        self._derive("Cutting", library.cut, entry.path, *marked, self.folder)

    def resample(self) -> None:
        entry = self.current()
        if entry is None:
            return
        number = Number(entry.rate / 2, 0.001, 100 * entry.rate, "Hz", 3)
        rate = NumberDialog(self.theme, self, "Resample", "New sample rate:", number).ask()
        if rate is not None:
            self._derive("Resampling", library.resampled, entry.path, rate, self.folder)

    def calibrate(self) -> None:
        entry = self.current()
        if entry is None or self.recording is None:
            return
        dialog = CalibrationDialog(self.theme, self.recording, self)
        if dialog.exec():
            self._derive("Calibrating", library.calibrated, entry.path, *dialog.values(), self.folder)

    def export(self) -> None:
        from drivers.formats import formats

        entry = self.current()
        if entry is None:
            return
        kinds = ";;".join(
            f"{f.title} ({' '.join('*' + s for s in f.suffixes)})" for f in formats() if f.writable
        )
        name, _ = QFileDialog.getSaveFileName(self, "Export", str(Path.home() / entry.name), kinds)
        if name:
            job = self.bench.workers.run("Exporting", library.export, entry.path, Path(name))
            written = f"{Path(name).name} is written."
            job.done.connect(
                lambda lost: self.bench.say(f"{written} {lost}".strip(), "warn" if lost else "good")
            )
            job.failed.connect(lambda text: self.bench.say(text, "bad"))

    def bin(self) -> None:
        """Nothing is deleted: the files move into the folder ``bin`` of the library."""
        entry = self.current()
        if entry is None:
            return
        if self.recording is not None:
            self.recording.close()
            self.recording = None
            self.view.show_recording(None)
        target = self.folder / "bin"
        moved: list[tuple[Path, Path]] = []
        try:
            target.mkdir(exist_ok=True)
            whole = library.free_path(target, entry.path.stem)
            for path in library.companions(entry.path):
                to = whole.with_name(whole.stem + path.name.removeprefix(entry.path.stem))
                path.rename(to)
                moved.append((path, to))
        except OSError as error:
            self.bench.say(f"{entry.name} could not be moved: {error.strerror}.", "bad")
        else:
            self.list.setFocus()  # in a box for text Ctrl+Z would be that of the text
            self.bench.say(f"{entry.name} is in the bin.", undo=self.undo_bin)
        if moved:
            self._binned.append(moved)
        self.refresh()

    def undo_bin(self) -> None:
        """Bring back what was moved to the bin last."""
        if not self._binned:
            return
        moved = self._binned.pop()
        try:
            for before, now in moved:
                if before.exists():
                    self.bench.say(
                        f"There is another {before.name} by now: {now.name} stays in the bin.", "warn"
                    )
                    return
                now.rename(before)
        except OSError as error:
            self.bench.say(f"It could not be brought back: {error.strerror}.", "bad")
            return
        back = min((before for before, _ in moved), key=lambda path: len(path.name))  # others: its notes
        self.bench.say(f"{back.stem} is back.", "good")
        self.refresh(back)

    # -- drag and drop

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:
        assert event is not None
        data = event.mimeData()
        if data is not None and any(u.isLocalFile() for u in data.urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent | None) -> None:
        assert event is not None
        data = event.mimeData()
        if data is not None:
            self.import_files([Path(u.toLocalFile()) for u in data.urls() if u.isLocalFile()])
            event.acceptProposedAction()


def example_files() -> list[Path]:
    """Recordings that come with the program."""
    from importlib.resources import files

    return sorted((Path(str(files("resources"))) / "recordings").glob("*.h5"))


class EntryDelegate(QStyledItemDelegate):
    """Draws an entry: thumbnail, name, when and how long, tags."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        return QSize(self._theme.px(200), self._theme.px(72))

    def paint(self, painter: QPainter | None, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        assert painter is not None
        c, px = self._theme.colours, self._theme.px
        entry: Entry = index.data(ENTRY)
        box = option.rect.adjusted(px(2), px(2), -px(2), -px(2))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.setPen(QColor(c.accent if selected else c.border))
        painter.setBrush(QColor(c.accent_soft if selected else c.surface))
        painter.drawRoundedRect(box, px(8), px(8))
        picture = QRect(box.left() + px(8), box.top() + px(8), px(92), box.height() - px(16))
        self._thumbnail(painter, picture, entry)
        left = picture.right() + px(10)
        width = box.right() - left - px(6)

        def line(text: str, y: int, colour: str, size: float, bold: bool = False) -> None:
            painter.setFont(self._theme.font(size, bold))
            painter.setPen(QColor(colour))
            # names of a series begin alike and end in a number
            cut = Qt.TextElideMode.ElideMiddle if bold else Qt.TextElideMode.ElideRight
            shown = painter.fontMetrics().elidedText(text, cut, width)
            painter.drawText(left, box.top() + px(y), shown)

        line(entry.name, 21, c.text, 13, bold=True)
        if entry.problem:
            line("cannot be opened", 39, c.bad, 11.5)
        elif entry.pending:
            line(f"{quantity(entry.size)}B", 39, c.muted, 11.5)
            line(moment_text(entry.changed), 56, c.muted, 11.5)
        else:
            line(
                f"{duration(entry.seconds)} · {len(entry.channels)} ch · {quantity(entry.rate)}Hz",
                39,
                c.muted,
                11.5,
            )
            line(" · ".join(entry.tags) or moment_text(entry.start), 56, c.muted, 11.5)
        painter.restore()

    def _thumbnail(self, painter: QPainter, box: QRect, entry: Entry) -> None:
        c = self._theme.colours
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(c.window))
        painter.drawRoundedRect(box, 4, 4)
        count = len(entry.low)
        finite = entry.low[entry.low == entry.low]
        if count < 2 or len(finite) == 0:
            return
        bottom, top = float(finite.min()), float(entry.high[entry.high == entry.high].max())
        span = (top - bottom) or 1.0
        shape = QPolygon()
        rows = [(entry.high, range(count)), (entry.low, range(count - 1, -1, -1))]
        for values, order in rows:
            for i in order:
                v = values[i]
                if v == v:
                    y = box.bottom() - 2 - (v - bottom) / span * (box.height() - 4)
                    shape.append(
                        QPoint(round(box.left() + 2 + i / (count - 1) * (box.width() - 4)), round(y))
                    )
        painter.setBrush(QColor(c.accent))
        painter.setPen(QColor(c.accent))
        painter.drawPolygon(shape)


class CalibrationDialog(QDialog):
    """Which channel, by what factor and offset, into which unit."""

    def __init__(self, theme: Theme, recording: Recording, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Calibrate a channel")
        self.recording = recording
        self.channel = QComboBox()
        self.channel.addItems(list(recording.names))
        self.factor, self.offset = Number(1.0, -1e12, 1e12, "", 9), Number(0.0, -1e12, 1e12, "", 9)
        self.unit = QLineEdit(recording.unit(recording.names[0]))
        self.channel.currentTextChanged.connect(lambda name: self.unit.setText(recording.unit(name)))
        box = QVBoxLayout(self)
        box.addWidget(label("new value = factor × old value + offset", "muted"))
        fields = form(theme)
        for words, field in (
            ("Channel", self.channel),
            ("Factor", self.factor),
            ("Offset", self.offset),
            ("Unit", self.unit),
        ):
            add_row(theme, fields, words, field)
        box.addLayout(fields)
        buttons = dialog_buttons(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        box.addWidget(buttons)

    def values(self) -> tuple[str, float, float, str]:
        return self.channel.currentText(), self.factor.value(), self.offset.value(), self.unit.text().strip()

    def accept(self) -> None:
        """Close, unless a number cannot be read: its field says why."""
        if self.factor.apply() and self.offset.apply():
            super().accept()


def facts(entry: Entry) -> str:
    """One line about a recording."""
    if entry.pending:
        return f"{quantity(entry.size)}B  ·  {moment_text(entry.changed)}  ·  being read"
    parts = [
        duration(entry.seconds),
        f"{quantity(entry.samples)}samples at {quantity(entry.rate)}Hz",
        ", ".join(entry.channels),
        localised(entry.drive),
        counted(entry.gaps, "gap") if entry.gaps else "no gaps",
        moment_text(entry.start),
        entry.rig,
    ]
    return "  ·  ".join(p for p in parts if p)
