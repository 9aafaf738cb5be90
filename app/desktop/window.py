"""The main window: stages down the left, what is in hand on top, STOP always in reach, status below."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from PyQt6.QtCore import QEvent, QLockFile, QObject, QPoint, QSize, Qt, QTimer
from PyQt6.QtGui import QCloseEvent, QIcon, QKeyEvent, QKeySequence, QResizeEvent, QShortcut, QWheelEvent
from PyQt6.QtWidgets import (
    QApplication,
    QButtonGroup,
    QComboBox,
    QDialog,
    QFrame,
    QHBoxLayout,
    QMainWindow,
    QMessageBox,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.desktop import tasks
from app.desktop.help import Help
from app.desktop.icons import icon, pixmap
from app.desktop.kept import Kept, from_project
from app.desktop.page import Page
from app.desktop.pages import STAGES, Stage
from app.desktop.projectmenu import ProjectMenu
from app.desktop.tour import Tour
from app.desktop.widgets.basics import Elided, IconButton, label, timer
from app.desktop.widgets.drivepill import DrivePill, DriveStrip
from app.desktop.widgets.jobbar import JobBar
from app.desktop.widgets.notice import NoticeBar
from app.desktop.widgets.statusbar import StatusBar
from app.desktop.workbench import Workbench
from app.settings import config_folder

ROOMY = 1250  # width of a window in which the names of what is in hand are shown whole
WIDE = 1400  # one in which a stage's sentence is too
AHEAD = 60  # ms between two pieces of pages that are built before they are asked for
PLOTS = 6  # of a page, about


def load_ahead() -> None:
    """What pages need later and takes long to load; in a thread, while the window is already of use."""
    import_module("h5py")
    import_module("drivers.formats.guard").warm()
    import_module("analysis").why_no_states  # noqa: B018 loads what a fit that is shown asks for


class MainWindow(QMainWindow):
    """One window for the whole work."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench, self.theme = bench, bench.theme
        self.setWindowTitle("Shakedown")
        self.setStyleSheet(self.theme.sheet)
        self.setWindowIcon(QIcon(pixmap("shakedown", "#fff", 256)))
        self.setMinimumSize(self._smallest())
        self.pages: dict[str, Page] = {}
        self._buttons: dict[str, QPushButton] = {}
        self.page: Page | None = None
        self.tour: Tour | None = None
        self.help_window: Help | None = None
        self.next_project: str | None = None  # the window ends for this project
        with contextlib.suppress(OSError):  # a home that cannot be written is told of when settings are saved
            config_folder().mkdir(parents=True, exist_ok=True)
        self._only = QLockFile(str(config_folder() / "window.lock"))  # held by the first window
        self._escape_closes = False  # the press of Esc under way closes a list, a menu or a dialog
        self._unasked = False  # it is closed without a question
        self._waited = False  # for a rig that takes long to open
        self._ahead = timer(self, AHEAD, self._build_ahead)
        self._build()
        self._keys()
        self._listen()
        self._restore()
        self.theme.changed.connect(self._colour)
        self._colour()
        self.theme.changed.connect(lambda: self.setStyleSheet(self.theme.sheet))

    # -- building

    def _build(self) -> None:
        centre = QWidget()
        self.setCentralWidget(centre)
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._sidebar())
        column = QVBoxLayout()
        column.setSpacing(0)
        column.addWidget(self._header())
        self.strip = DriveStrip(self.bench, self.pill)
        column.addWidget(self.strip)
        self.stack = QStackedWidget()
        column.addWidget(self.stack, 1)
        self.status = StatusBar(self.bench)
        column.addWidget(self.status)
        row.addLayout(column, 1)
        self.notice = NoticeBar(self.theme, self.stack)
        self.notice.followed.connect(self.show_page)
        self.notice.toggled.connect(self._place_tour)

    def _sidebar(self) -> QWidget:
        px = self.theme.px
        side = QFrame()
        side.setObjectName("sidebar")
        side.setFixedWidth(px(176))
        box = QVBoxLayout(side)
        box.setContentsMargins(px(10), px(14), px(10), px(6))
        box.setSpacing(px(4))
        brand = QHBoxLayout()
        brand.setSpacing(px(9))
        sign = label("")
        sign.setPixmap(
            pixmap("shakedown", "#fff").scaled(
                px(28), px(28), Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
            )
        )
        brand.addWidget(sign)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(label("Shakedown", "brand"))
        self.project_name = Elided("small")
        words.addWidget(self.project_name)
        brand.addLayout(words, 1)
        box.addLayout(brand)
        box.addSpacing(px(12))
        group = QButtonGroup(self)
        for number, stage in enumerate(STAGES, 1):
            entry = self._stage_button(stage, number)
            group.addButton(entry)
            box.addWidget(entry)
        box.addStretch(1)
        box.addWidget(JobBar(self.theme, self.bench.workers))
        foot = QHBoxLayout()
        foot.setSpacing(px(4))
        self.theme_button = IconButton(self.theme, "sun", "Light or dark (Ctrl+T)")
        self.settings_button = IconButton(self.theme, "settings", "Settings (Ctrl+,)")
        self.tour_button = IconButton(self.theme, "help", "Show me around")
        self.project_button = IconButton(self.theme, "folder", "Project: open, make, archive")
        self.project_menu = ProjectMenu(self.bench, self, self.turn_to)
        self.project_button.clicked.connect(
            lambda: self.project_menu.popup(self.project_button.mapToGlobal(QPoint(0, 0)))
        )
        for tool in (self.theme_button, self.settings_button, self.tour_button, self.project_button):
            tool.setIconSize(QSize(px(20), px(20)))
            foot.addWidget(tool)
        foot.addStretch(1)
        box.addLayout(foot)
        self.theme_button.clicked.connect(self.toggle_theme)
        self.settings_button.clicked.connect(self.open_settings)
        self.tour_button.clicked.connect(self.start_tour)
        return side

    def _stage_button(self, stage: Stage, number: int) -> QPushButton:
        entry = QPushButton(f"  {stage.title}")
        entry.setObjectName("stage")
        entry.setCheckable(True)
        entry.setToolTip(f"{stage.help} (Ctrl+{number})")
        entry.setIconSize(QSize(self.theme.px(22), self.theme.px(22)))
        entry.setCursor(Qt.CursorShape.PointingHandCursor)
        entry.clicked.connect(lambda _=False, key=stage.key: self.show_page(key))
        self._buttons[stage.key] = entry
        return entry

    def _header(self) -> QWidget:
        px = self.theme.px
        head = QFrame()
        head.setObjectName("header")
        row = QHBoxLayout(head)
        row.setContentsMargins(px(16), px(8), px(14), px(8))
        row.setSpacing(px(10))
        words = QVBoxLayout()
        words.setSpacing(0)
        self.title, self.help = Elided("title"), Elided("help")
        for text in (self.title, self.help):
            words.addWidget(text)
        row.addLayout(words, 1)
        self.record_chip = self._chip(
            "Record in hand: what the analysis pages work on. Click to choose another."
        )
        self.record_chip.clicked.connect(lambda: self.show_page("recordings"))
        self.model_chip = self._chip("Model in hand: the equation being fitted. Click to choose another.")
        self.model_chip.clicked.connect(lambda: self.show_page("identify"))
        row.addWidget(self.record_chip)
        row.addWidget(self.model_chip)
        self.pill = DrivePill(self.bench)
        row.addWidget(self.pill)
        self.stop_button = QPushButton("STOP")
        self.stop_button.setObjectName("stop")
        self.stop_button.setToolTip("Ramp the shaker to zero at once, from any page (Esc or F12)")
        self.stop_button.setAccessibleName("Stop the shaker")
        self.stop_button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.stop_button.pressed.connect(self.stop)  # on the press: the release may come late
        row.addWidget(self.stop_button)
        return head

    def _chip(self, tip: str) -> QPushButton:
        chip = QPushButton()
        chip.setObjectName("chip")
        chip.setWhatsThis(tip)
        chip.setIconSize(QSize(self.theme.px(18), self.theme.px(18)))
        return chip

    def _keys(self) -> None:
        for number, stage in enumerate(STAGES, 1):
            self._key(f"Ctrl+{number}", partial(self.show_page, stage.key))
        self._key("Ctrl+T", self.toggle_theme)
        self._key("Ctrl+,", self.open_settings)
        self._key("F1", self.open_help)
        self._key("Shift+F1", self.open_about)
        self._key("F11", self._full_screen)
        marking = self._key("M", self.bench.marker_asked.emit)  # where somebody types, M is a letter
        marking.setEnabled(False)
        self.bench.rig.recording_changed.connect(lambda: marking.setEnabled(self.bench.rig.recording))
        self._key(QKeySequence.StandardKey.Quit, self.close)
        app = QApplication.instance()
        assert app is not None
        app.installEventFilter(self)  # STOP must work inside dialogs and menus too

    def _key(self, keys: str | QKeySequence.StandardKey, action: Callable[[], object]) -> QShortcut:
        shortcut = QShortcut(QKeySequence(keys), self)
        shortcut.setContext(Qt.ShortcutContext.ApplicationShortcut)
        shortcut.activated.connect(action)
        return shortcut

    def _listen(self) -> None:
        bench = self.bench
        bench.noticed.connect(self.notice.show_notice)
        bench.asked_for.connect(self.show_page)
        bench.record_changed.connect(self._show_in_hand)
        bench.opening_changed.connect(self._show_in_hand)
        bench.model_changed.connect(self._show_in_hand)
        bench.project_changed.connect(self._show_project)
        self._show_in_hand()
        self._show_project()

    # -- behaviour

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        # Every event of the program comes by here: asking for its class is much cheaper than for its type.
        if isinstance(event, QKeyEvent):
            if not event.isAutoRepeat() and self._is_stop(event):
                self.stop()
        elif isinstance(event, QWheelEvent) and isinstance(watched, QComboBox):
            event.ignore()  # the wheel scrolls what lies around; it never chooses a waveform or a channel
            return True
        return False

    def _is_stop(self, event: QKeyEvent) -> bool:
        """F12 always; Esc unless it closes a list, a menu or a dialog."""
        if event.key() == Qt.Key.Key_Escape:
            if event.type() == QEvent.Type.KeyRelease:
                self._escape_closes = False
            elif event.type() == QEvent.Type.KeyPress:
                # The same press comes by several times, and again when the list is already closed.
                is_open = QApplication.activePopupWidget() or QApplication.activeModalWidget()
                beside = isinstance(QApplication.activeWindow(), QDialog)  # one that leaves STOP in reach
                self._escape_closes = self._escape_closes or is_open is not None or beside
                if self._escape_closes:
                    QTimer.singleShot(0, self._escape_done)
                return not self._escape_closes
        return event.key() == Qt.Key.Key_F12 and event.type() == QEvent.Type.KeyPress

    def _escape_done(self) -> None:
        self._escape_closes = False

    def stop(self) -> None:
        """Ramp the drive to zero, now."""
        self.bench.rig.stop("STOP was pressed")

    def show_page(self, key: str) -> None:
        """Bring a stage to the front, building its page if nobody has done so yet."""
        stage = next(s for s in STAGES if s.key == key)
        page = self._built(stage)
        if self.page is page:
            return
        if self.page is not None:
            self.page.on_hide()
        self.page = page
        self.stack.setCurrentWidget(page)
        self.notice.raise_()  # a page that was built later would cover it
        self._buttons[key].setChecked(True)
        self.title.setText(stage.title)
        self.help.setText(stage.help)
        for text in (self.title, self.help):
            text.setToolTip(stage.help)
        self.bench.settings.page = key
        page.on_show()
        QTimer.singleShot(0, self._replace)
        page.setFocus()

    def _built(self, stage: Stage) -> Page:
        if stage.key not in self.pages:
            page = stage.build(self.bench)
            self.pages[stage.key] = page
            self.stack.addWidget(page)
        return self.pages[stage.key]

    def _build_ahead(self) -> None:
        """One page at a time while nobody waits for it: the first visit is then as quick as any other.

        It is loaded and its plots are made before, each in a moment of its own: together they keep a click
        waiting.
        """
        missing = [stage for stage in STAGES if stage.key not in self.pages]
        stock = self.theme.plots_ahead
        if not missing or not self.isVisible():
            self._ahead.stop()
            stock.clear()
            return
        if not missing[0].loaded:
            missing[0].load()
            return
        if len(stock) < PLOTS:
            from app.desktop.plots.plot import empty_plot

            stock.append(empty_plot())
            return
        page = self._built(missing[0])
        page.resize(self.stack.size())
        page.ensurePolished()

    def toggle_theme(self) -> None:
        choice = "light" if self.theme.colours.name == "dark" else "dark"
        self.bench.settings.theme = choice
        self.theme.choose(choice)

    def open_settings(self) -> None:
        from app.desktop.preferences import Preferences

        Preferences(self.bench, self).exec()

    def open_about(self) -> None:
        from app.desktop.about import About

        About(self.bench, self).exec()

    def open_help(self) -> None:
        """The chapter of the page in view."""
        if self.help_window is None:
            self.help_window = Help(self.theme, self)
        self.help_window.show_chapter(next(k for k, page in self.pages.items() if page is self.page))

    def start_tour(self) -> None:
        Tour.start(self)

    def _full_screen(self) -> None:
        self.showNormal() if self.isFullScreen() else self.showFullScreen()

    def _show_in_hand(self) -> None:
        record, model = self.bench.record, self.bench.model
        missing = f"Opening {self.bench.opening} …" if self.bench.opening else "No record"
        ends = Qt.TextElideMode.ElideMiddle  # names of a series begin alike and end in a number
        self._fill(self.record_chip, record.name if record else missing, ends)
        self._fill(self.model_chip, model.name if model else "No model", Qt.TextElideMode.ElideRight)

    def _show_project(self) -> None:
        project = self.bench.project
        self.project_name.setVisible(project is not None)
        self.setWindowTitle("Shakedown" if project is None else f"{project.name} – Shakedown")
        if project is not None:
            self.project_name.setText(project.name)
            self.project_name.setToolTip(f"Project in {project.folder}")

    def turn_to(self, project: str) -> None:
        """End this window as closing it does; the next one works in another project (empty: in none)."""
        before = self.bench.settings.project
        self.bench.settings.project, self.next_project = project, project
        if not self.close():  # a recording is running, and is to go on
            self.bench.settings.project, self.next_project = before, None

    def _fill(self, chip: QPushButton, text: str, cut: Qt.TextElideMode) -> None:
        metrics = chip.fontMetrics()
        room = chip.width() - self.theme.px(62)
        chip.setText("  " + metrics.elidedText(text, cut, room))
        chip.setAccessibleName(text)
        chip.setToolTip(f"{text}\n{chip.whatsThis()}")

    def _colour(self) -> None:
        c = self.theme.colours
        for stage in STAGES:
            self._buttons[stage.key].setIcon(icon(stage.key, c.muted, c.accent))
        self.record_chip.setIcon(icon("recordings", c.accent))
        self.model_chip.setIcon(icon("model", c.accent))

    # -- life

    def begin(self, files: list[str]) -> None:
        """What can wait until the window is on the screen: open the rig, shake, warm the workers."""
        self.bench.rig.opened.connect(self._rig_opened)
        self.bench.rig.failed.connect(lambda text: self.bench.say(text, "bad"))
        self.bench.rig.delayed.connect(self._rig_delayed)
        self.bench.rig.refused.connect(lambda text: self.bench.say(text, "bad"))
        self.bench.rig.notice.connect(lambda text: self.bench.say(text, "warn"))
        self.bench.rig.recorded.connect(self._recorded)
        self.bench.rig.open(self.bench.settings.rig)
        self.bench.workers.warm(tasks.warm_up)
        self._ahead.start()
        threading.Thread(target=load_ahead, name="loading", daemon=True).start()
        self.bench.restore_unfinished()
        if self.bench.project_problem:
            self.bench.say(self.bench.project_problem, "bad")
        self._bring_back(with_record=not files)
        self._tell_of_another()  # behind what is said of the work that is back: the newest message is shown
        if self.bench.settings.problem:
            self.bench.say(self.bench.settings.problem, "bad")
        for name in files:
            self.bench.take_file(Path(name))
        if not self.bench.settings.tour_done:
            self.start_tour()

    def _rig_delayed(self, what: str) -> None:
        self._waited = True
        self.bench.say(f"Still waiting for {what}. The Rig page can give it up.", "warn")

    def _tell_of_another(self) -> None:
        if not self._only.tryLock(0) and self._only.error() == QLockFile.LockError.LockFailedError:
            words = (
                "Another window is open. Both share the library; settings are kept by the one closed last."
            )
            self.bench.say(words, "warn")

    def _bring_back(self, with_record: bool) -> None:
        """The work of the last time: the model's text, the record, and what was found from it."""
        kept = Kept.load(self.bench.settings.project)
        if self.bench.project is not None and not kept.results:
            kept = from_project(self.bench.project, kept)
        if kept.model.strip():
            page = self._built(next(s for s in STAGES if s.key == "identify"))
            if page.model_card.restore(kept.model, kept.model_source):  # type: ignore[attr-defined]
                self.bench.say(
                    "Your own model is back as you left it. It is not saved to a file yet.",
                    "info",
                    "identify",
                )
        if with_record:
            self.bench.restore(kept)

    def _rig_opened(self) -> None:
        """A virtual rig begins to shake by itself: there is nothing it could break."""
        rig = self.bench.rig.rig
        if self._waited:  # what was said then is over
            self._waited = False
            self.bench.say(f"{self.bench.rig.title} is open.", "good")
        if self.bench.rig.in_use:  # its drive is not ours
            return
        if rig is not None and rig.virtual and self.bench.settings.start_shaking:
            self.bench.start_drive()

    def _recorded(self, path: Path) -> None:
        in_hand = self.bench.record
        stays = f" {in_hand.name} stays the record in hand." if in_hand is not None else ""
        self.bench.say(f"{path.stem} is saved in the library.{stays}", "good", "recordings")
        if in_hand is None and path == self.bench.rig.recording_path:
            self.bench.take_file(path)  # the first one: what else would one want to look at?

    def _smallest(self) -> QSize:
        """What all pages have room in, at the size of things on this screen; no more than the screen."""
        size = QSize(self.theme.px(1024), self.theme.px(600))
        screen = QApplication.primaryScreen()
        return size if screen is None else size.boundedTo(screen.availableGeometry().size())

    def _restore(self) -> None:
        settings = self.bench.settings
        screen = QApplication.primaryScreen()
        area = screen.availableGeometry() if screen is not None else None
        if len(settings.window) == 4 and area is not None:
            x, y, width, height = settings.window
            self.resize(min(width, area.width()), min(height, area.height()))
            if area.contains(x + 50, y + 20):
                self.move(x, y)
        elif area is not None:
            self.resize(min(self.theme.px(1440), area.width()), min(self.theme.px(860), area.height()))
        if settings.maximized:
            self.setWindowState(Qt.WindowState.WindowMaximized)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        for chip in (self.record_chip, self.model_chip):  # they give way in a small window
            chip.setFixedWidth(self.theme.px(200 if self.width() >= self.theme.px(ROOMY) else 148))
        self.help.setVisible(self.width() >= self.theme.px(WIDE))
        self._show_in_hand()
        QTimer.singleShot(0, self._replace)

    def _replace(self) -> None:
        """Put what floats above the pages back in its place."""
        self.notice.place()
        self._place_tour()

    def _place_tour(self) -> None:
        if self.tour is not None:
            self.tour.place()

    def closeEvent(self, event: QCloseEvent | None) -> None:
        assert event is not None
        rig = self.bench.rig
        busy = rig.recording or rig.sequencer.running
        if busy and not self._unasked and not self._confirmed_end():
            event.ignore()
            return
        app = QApplication.instance()
        assert app is not None
        app.removeEventFilter(self)
        if self.page is not None:
            self.page.on_hide()
        self._remember()
        self.hide()  # finishing a recording may take a moment
        self.bench.close()
        self._only.unlock()
        event.accept()

    def close_unasked(self) -> None:
        """Close as if "Save and close" were the answer: nobody is there to be asked."""
        self._unasked = True
        self.close()

    def _confirmed_end(self) -> bool:
        box = QMessageBox(self)
        box.setObjectName("closing")
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle("A recording is running")
        box.setText("A recording is running. Close anyway?")
        box.setInformativeText(
            "The recording is saved and the shaker is ramped to zero before the window closes."
        )
        save = box.addButton("Save and close", QMessageBox.ButtonRole.AcceptRole)
        box.addButton("Keep recording", QMessageBox.ButtonRole.RejectRole)
        box.exec()
        return box.clickedButton() is save

    def _remember(self) -> None:
        settings = self.bench.settings
        settings.maximized = self.isMaximized()
        if not self.isMaximized() and not self.isFullScreen():
            box = self.geometry()
            settings.window = [box.x(), box.y(), box.width(), box.height()]
