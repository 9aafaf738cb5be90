"""Colours, type and spacing, light and dark. One accent; data colours are safe for colour-blind readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PyQt6.QtCore import QObject, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PyQt6.QtWidgets import QApplication

from app.desktop.icons import FOLDER


@dataclass(frozen=True)
class Colours:
    """One colour scheme."""

    name: str
    window: str
    surface: str  # cards, tables, plots
    sunken: str  # fields
    border: str
    text: str
    muted: str
    accent: str
    accent_soft: str  # selected rows and the current stage
    on_accent: str
    stop: str
    good: str
    warn: str
    bad: str
    grid: str
    data: tuple[str, ...]  # curves, in order


# Okabe and Ito's palette, lightened or darkened to keep at least 3:1 against the plot's ground.
LIGHT = Colours(
    "light",
    window="#f3f5f8",
    surface="#ffffff",
    sunken="#ffffff",
    border="#d5dce4",
    text="#18212c",
    muted="#586474",
    accent="#0a6c96",
    accent_soft="#dcedf5",
    on_accent="#ffffff",
    stop="#cf2027",
    good="#00795a",
    warn="#9a6200",
    bad="#b8340a",
    grid="#e4e9ef",
    data=("#0072b2", "#d55e00", "#00855f", "#a8508a", "#b07800", "#2b8fc4", "#4b5563", "#7a3b00"),
)
DARK = Colours(
    "dark",
    window="#10151b",
    surface="#181f27",
    sunken="#11171e",
    border="#2c3743",
    text="#e8edf3",
    muted="#9aa7b6",
    accent="#45b0de",
    accent_soft="#173547",
    on_accent="#06202c",
    stop="#e0343a",
    good="#2fc295",
    warn="#f0b03a",
    bad="#ff8559",
    grid="#252f3a",
    data=("#5ab4f0", "#f5894f", "#2fc295", "#df93bf", "#f0c04a", "#9ad4ff", "#b6c0cc", "#d9a06a"),
)

FAMILIES = (
    "Inter",
    "Segoe UI",
    "SF Pro Text",
    "Noto Sans",
    "Cantarell",
    "Ubuntu",
    "Open Sans",
    "DejaVu Sans",
)


class Theme(QObject):
    """The scheme in use. Widgets that paint themselves listen to ``changed``."""

    changed = pyqtSignal()

    def __init__(self, choice: str = "system", scale: float = 0.0) -> None:
        super().__init__()
        self.choice = choice
        self.scale = scale or screen_scale()
        self.family = _family()
        self.sheet = ""  # for the window, and not the application: pyqtgraph's unseen menus double the work
        hints = QGuiApplication.styleHints()
        if hints is not None:
            hints.colorSchemeChanged.connect(self._system_changed)
        self.plots_ahead: list[Any] = []  # made in idle moments for pages that are yet to be built
        self.colours = self._resolve()

    def choose(self, choice: str) -> None:
        """Take ``system``, ``light`` or ``dark``."""
        self.choice = choice
        self.apply()

    def px(self, size: float) -> int:
        """A length given for an ordinary screen, on this one."""
        return round(size * self.scale)

    def font(self, size: float = 10.0, bold: bool = False) -> QFont:
        font = QFont(self.family)
        font.setPixelSize(self.px(size))
        font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
        return font

    def apply(self) -> None:
        """Give every widget of the program the colours and sizes of the scheme."""
        self.colours = self._resolve()
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        sheet = stylesheet(self.colours, self.scale)
        if sheet == self.sheet:
            return
        self.sheet = sheet
        style = app.style()
        if style is None or style.objectName().lower() != "fusion":
            app.setStyle("Fusion")  # the same everywhere; the style sheet does the rest
        if app.font() != self.font(13):  # goes through every widget there is, so not without need
            app.setFont(self.font(13))
        app.setPalette(_palette(self.colours))
        import pyqtgraph

        pyqtgraph.setConfigOptions(
            background=self.colours.surface, foreground=self.colours.muted, antialias=False
        )
        self.changed.emit()

    def _resolve(self) -> Colours:
        if self.choice in ("light", "dark"):
            return DARK if self.choice == "dark" else LIGHT
        hints = QGuiApplication.styleHints()
        dark = hints is not None and hints.colorScheme() == Qt.ColorScheme.Dark
        return DARK if dark else LIGHT

    def _system_changed(self) -> None:
        if self.choice == "system":
            self.apply()


def screen_scale() -> float:
    """Size of controls for the screen: 1 where the system scales, more on a bare 4K screen."""
    screen = QGuiApplication.primaryScreen()
    if screen is None or screen.devicePixelRatio() > 1:
        return 1.0
    return max(1.0, round(4 * screen.size().height() / 1080) / 4) if screen.size().height() >= 1800 else 1.0


def _family() -> str:
    known = set(QFontDatabase.families())
    return next((name for name in FAMILIES if name in known), QFont().defaultFamily())


def _palette(c: Colours) -> QPalette:
    palette = QPalette()
    roles = QPalette.ColorRole
    for role, colour in {
        roles.Window: c.window,
        roles.WindowText: c.text,
        roles.Base: c.sunken,
        roles.AlternateBase: c.window,
        roles.Text: c.text,
        roles.Button: c.surface,
        roles.ButtonText: c.text,
        roles.ToolTipBase: c.text,
        roles.ToolTipText: c.surface,
        roles.PlaceholderText: c.muted,
        roles.Highlight: c.accent,
        roles.HighlightedText: c.on_accent,
        roles.Link: c.accent,
    }.items():
        palette.setColor(role, QColor(colour))
    return palette


def _image(name: str) -> str:
    """An icon for the style sheet, in quotation marks: the program's folder may have blanks in its name."""
    path = (FOLDER / f"{name}.svg").as_posix()
    return 'url("' + path.replace('"', r"\"") + '")'


def stylesheet(c: Colours, scale: float) -> str:
    """The style sheet of the whole program; sizes follow the scale."""

    def px(size: float) -> str:
        return f"{round(size * scale)}px"

    return f"""
    * {{ outline: none; }}
    QWidget {{ color: {c.text}; }}
    QMainWindow, QDialog, #page {{ background: {c.window}; }}
    QToolTip {{ background: {c.text}; color: {c.surface}; border: none;
        padding: {px(7)}; font-size: {px(13)}; }}
    #sidebar {{ background: {c.surface}; border-right: 1px solid {c.border}; }}
    #header {{ background: {c.surface}; border-bottom: 1px solid {c.border}; }}
    #statusbar {{ background: {c.surface}; border-top: 1px solid {c.border}; }}
    #brand {{ font-size: {px(17)}; font-weight: 700; }}
    #title {{ font-size: {px(20)}; font-weight: 600; }}
    #heading {{ font-size: {px(14)}; font-weight: 600; }}
    #muted, #help {{ color: {c.muted}; }}
    #small {{ color: {c.muted}; font-size: {px(12)}; }}
    #big {{ font-size: {px(26)}; font-weight: 600; }}
    #good {{ color: {c.good}; }} #warn {{ color: {c.warn}; }} #bad {{ color: {c.bad}; }}
    #card {{ background: {c.surface}; border: 1px solid {c.border}; border-radius: {px(10)}; }}
    #chip {{ background: {c.window}; border: 1px solid {c.border}; border-radius: {px(10)};
        padding: {px(4)} {px(12)}; text-align: left; min-height: {px(36)}; }}
    #chip:hover {{ border-color: {c.accent}; }}

    QPushButton, QToolButton {{ background: {c.surface}; border: 1px solid {c.border}; border-radius: {px(8)};
        padding: {px(5)} {px(14)}; min-height: {px(28)}; }}
    QFileDialog QToolButton {{ padding: {px(3)}; }}
    QPushButton:hover, QToolButton:hover {{ border-color: {c.accent}; }}
    QPushButton:focus, QToolButton:focus {{ border: 2px solid {c.accent}; }}
    QPushButton:pressed, QToolButton:pressed {{ background: {c.accent_soft}; }}
    QPushButton:checked, QToolButton:checked {{ background: {c.accent_soft}; border-color: {c.accent}; }}
    QPushButton:disabled, QToolButton:disabled {{ color: {c.muted}; background: {c.window}; }}
    QPushButton#primary {{ background: {c.accent}; color: {c.on_accent}; border: 1px solid {c.accent};
        font-weight: 600; min-height: {px(34)}; }}
    QPushButton#primary:hover {{ border-color: {c.text}; }}
    QPushButton#primary:focus {{ border: 2px solid {c.text}; }}
    QPushButton#primary:disabled {{ background: {c.border}; color: {c.muted}; border-color: {c.border}; }}
    QPushButton#record {{ font-weight: 600; min-height: {px(34)}; }}
    QPushButton#record:checked {{ background: {c.bad}; color: {c.surface}; border-color: {c.bad}; }}
    QPushButton#stop {{ background: {c.stop}; color: #ffffff; border: 2px solid {c.stop}; font-weight: 700;
        font-size: {px(18)}; border-radius: {px(10)}; min-height: {px(38)}; min-width: {px(104)};
        padding: {px(2)} {px(14)}; }}
    QPushButton#stop:hover, QPushButton#stop:focus {{ border-color: {c.text}; }}
    #pill_off, #pill_armed, #pill_ramping, #pill_playing, #pill_latched, #pill_tripped {{
        border-radius: {px(10)}; min-height: {px(38)}; padding: {px(2)} {px(8)}; font-weight: 600;
        font-size: {px(13)}; }}
    #pill_off, #pill_armed {{ background: {c.window}; color: {c.muted}; border: 1px solid {c.border}; }}
    #pill_ramping {{ background: {c.window}; color: {c.warn}; border: 2px solid {c.warn}; }}
    #pill_playing {{ background: {c.accent}; color: {c.on_accent}; border: 2px solid {c.accent}; }}
    #pill_latched {{ background: {c.window}; color: {c.warn}; border: 2px dashed {c.warn}; }}
    #pill_tripped {{ background: {c.window}; color: {c.bad}; border: 2px dashed {c.stop}; }}
    #strip {{ background: {c.surface}; border-bottom: 2px solid {c.warn}; }}
    #banner_none, #banner_fits, #banner_close, #banner_misses, #banner_cannot_tell {{ background: {c.surface};
        border: 1px solid {c.border}; border-left: {px(6)} solid {c.border};
        border-top-right-radius: {px(8)}; border-bottom-right-radius: {px(8)}; }}
    #banner_fits {{ border-left-color: {c.good}; }} #banner_misses {{ border-left-color: {c.stop}; }}
    #banner_close, #banner_cannot_tell {{ border-left-color: {c.warn}; }}
    QTableView:disabled {{ color: {c.muted}; }}
    QPushButton#stage {{ background: transparent; border: none; border-radius: {px(8)}; text-align: left;
        padding: {px(6)} {px(12)}; min-height: {px(32)}; font-size: {px(14)}; }}
    QPushButton#stage:hover {{ background: {c.window}; }}
    QPushButton#stage:focus {{ border: 2px solid {c.accent}; padding: {px(4)} {px(10)}; }}
    QPushButton#stage:checked {{ background: {c.accent_soft}; color: {c.accent}; font-weight: 600; }}
    QToolButton#quiet, QPushButton#quiet {{ background: transparent; border: 1px solid transparent;
        padding: {px(3)}; min-height: {px(20)}; }}
    QToolButton#quiet:hover, QPushButton#quiet:hover {{ background: {c.accent_soft}; }}
    QToolButton#quiet:checked {{ background: {c.accent_soft}; border-color: {c.accent}; }}
    QToolButton#quiet:focus, QPushButton#quiet:focus {{ border: 1px solid {c.accent}; }}
    QPushButton#quiet {{ text-align: left; padding: {px(6)} {px(10)}; min-height: {px(24)}; }}
    #paper {{ background: #ffffff; color: #18212c; }}
    QToolButton::menu-indicator {{ image: none; }}

    QLineEdit, QComboBox, QAbstractSpinBox, QPlainTextEdit, QTextEdit {{ background: {c.sunken};
        border: 1px solid {c.border}; border-radius: {px(7)}; padding: {px(4)} {px(8)}; min-height: {px(24)};
        selection-background-color: {c.accent}; selection-color: {c.on_accent}; }}
    QLineEdit:focus, QComboBox:focus, QAbstractSpinBox:focus, QPlainTextEdit:focus, QTextEdit:focus {{
        border: 2px solid {c.accent}; }}
    QLineEdit[state="pending"] {{ border: 2px solid {c.warn}; }}
    QLineEdit[state="bad"] {{ border: 2px solid {c.stop}; color: {c.bad}; }}
    QLineEdit:disabled, QComboBox:disabled, QAbstractSpinBox:disabled {{ color: {c.muted};
        background: {c.window}; }}
    QComboBox QAbstractItemView {{ background: {c.surface}; border: 1px solid {c.border};
        selection-background-color: {c.accent_soft}; selection-color: {c.text}; padding: {px(4)}; }}
    QComboBox::drop-down {{ border: none; width: {px(24)}; }}
    QComboBox::down-arrow {{ image: {_image("arrow")}; width: {px(14)}; height: {px(14)}; }}
    QCheckBox, QRadioButton {{ spacing: {px(8)}; min-height: {px(26)}; }}
    QCheckBox::indicator, QRadioButton::indicator, QTableView::indicator,
    QListView::indicator {{ width: {px(18)}; height: {px(18)};
        border: 1px solid {c.muted}; border-radius: {px(5)}; background: {c.sunken}; }}
    QRadioButton::indicator {{ border-radius: {px(9)}; }}
    QCheckBox::indicator:checked, QTableView::indicator:checked,
    QListView::indicator:checked {{ background: {c.accent}; border-color: {c.accent};
        image: {_image("tick")}; }}
    QRadioButton::indicator:checked {{ background: {c.accent}; border: {px(5)} solid {c.accent_soft}; }}
    QCheckBox::indicator:focus, QRadioButton::indicator:focus {{ border: 2px solid {c.accent}; }}
    #absent::indicator {{ background: {c.window}; border-color: {c.border}; image: none; }}
    QSlider {{ min-height: {px(26)}; }}
    QSlider::groove:horizontal {{ height: {px(6)}; background: {c.border}; border-radius: {px(3)}; }}
    QSlider::sub-page:horizontal {{ background: {c.accent}; border-radius: {px(3)}; }}
    QSlider::handle:horizontal {{ width: {px(20)}; margin: -{px(8)} 0; border-radius: {px(10)};
        background: {c.surface}; border: 2px solid {c.accent}; }}
    QSlider::handle:horizontal:focus {{ background: {c.accent}; }}
    QProgressBar {{ background: {c.border}; border: none; border-radius: {px(4)}; max-height: {px(8)};
        min-height: {px(8)}; }}
    QProgressBar::chunk {{ background: {c.accent}; border-radius: {px(4)}; }}

    QTabBar {{ qproperty-drawBase: 0; }}
    QTabBar::tab {{ background: transparent; color: {c.muted}; padding: {px(7)} {px(14)}; border: none;
        border-bottom: 2px solid transparent; }}
    QTabBar::tab:selected {{ color: {c.accent}; border-bottom: 2px solid {c.accent}; font-weight: 600; }}
    QTabBar::tab:hover {{ color: {c.text}; }}
    QTabBar::tab:focus {{ border-bottom: 2px solid {c.text}; }}
    QTabWidget::pane {{ border: none; }}
    QTableView, QListView, QTreeView {{ background: {c.surface}; border: none; gridline-color: {c.grid};
        alternate-background-color: {c.window}; selection-background-color: {c.accent_soft};
        selection-color: {c.text}; }}
    QTableView::item, QListView::item {{ padding: {px(5)} {px(8)}; }}
    QTableView#narrow::item {{ padding: {px(5)} {px(3)}; }}
    QTableView#narrow QHeaderView::section {{ padding: {px(7)} {px(3)}; }}
    QTableView QLineEdit, QTableView QComboBox {{ border-radius: 0; padding: 0 {px(4)}; min-height: 0; }}
    QHeaderView {{ background: {c.surface}; }}
    QHeaderView::section {{ background: {c.surface}; color: {c.muted}; border: none;
        border-bottom: 1px solid {c.border}; padding: {px(7)} {px(8)}; font-weight: 600; }}
    QTableCornerButton::section {{ background: {c.surface}; border: none; }}
    QScrollArea {{ background: transparent; border: none; }}
    #scrolled {{ background: transparent; }}
    QScrollBar:vertical {{ background: transparent; width: {px(12)}; margin: 0; }}
    QScrollBar:horizontal {{ background: transparent; height: {px(12)}; margin: 0; }}
    QScrollBar::handle {{ background: {c.border}; border-radius: {px(4)}; margin: {px(2)};
        min-height: {px(30)}; min-width: {px(30)}; }}
    QScrollBar::handle:hover {{ background: {c.muted}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QAbstractScrollArea::corner {{ background: transparent; border: none; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QSplitter::handle {{ background: transparent; }}
    QSplitter::handle:hover {{ background: {c.accent_soft}; }}
    QMenu {{ background: {c.surface}; border: 1px solid {c.border}; padding: {px(6)}; }}
    QMenu::item {{ padding: {px(7)} {px(22)}; border-radius: {px(6)}; }}
    QMenu::item:selected {{ background: {c.accent_soft}; }}
    QMenu::separator {{ height: 1px; background: {c.border}; margin: {px(5)} {px(8)}; }}
    #tour {{ background: {c.surface}; border: 2px solid {c.accent}; border-radius: {px(12)}; }}
    #notice {{ background: {c.text}; border-radius: {px(10)}; }}
    #notice QLabel {{ color: {c.surface}; }}
    #notice QToolButton {{ color: {c.surface}; border: none; background: transparent; }}
    """
