"""Live views side by side: the drive decides which ones, until a person chooses others for the rig."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QMenu, QSplitter

from app.desktop.plots.live import LivePlot
from app.desktop.theme import Theme
from app.desktop.widgets.basics import IconButton, menu_heading
from app.settings import Settings

SUGGESTED = {
    "sine": ("spectrum", "portrait", "section"),  # a loop, and one dot in each period
    "broadband": ("response", "spectrum"),  # many frequencies at once: how the specimen answers each
    "undriven": ("spectrum", "waterfall", "portrait"),
}
SINES = ("sine", "stepped sine")
NARROW = 190  # width that a view needs
ALWAYS = 3  # views that may be shown in the narrowest window


def kind_of_drive(waveform: str) -> str:
    """What a waveform is for the eye: sine, broadband or undriven."""
    if waveform in ("", "none"):
        return "undriven"
    return "sine" if waveform in SINES else "broadband"


class Views(QSplitter):
    """Some of the live views, each with a menu to exchange, add and close; kept by rig and kind of drive."""

    def __init__(self, theme: Theme, settings: Settings, plots: Mapping[str, LivePlot]) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._theme, self._settings, self._plots = theme, settings, plots
        self._rig = self._kind = ""
        self.shown: tuple[str, ...] = ()
        self.setHandleWidth(theme.px(8))
        self.setChildrenCollapsible(False)
        for name, plot in plots.items():
            self.addWidget(plot)
            switch = IconButton(theme, "down", f"Other views in place of the {name}, or beside it")
            menu = QMenu(switch)
            menu.aboutToShow.connect(lambda name=name, menu=menu: self._fill(menu, name))
            switch.clicked.connect(
                lambda _=False, menu=menu, tool=switch: menu.popup(tool.mapToGlobal(tool.rect().bottomLeft()))
            )
            plot.head.insertWidget(1, switch)
        self._show(SUGGESTED["sine"])

    # -- which

    def follow(self, rig: str, waveform: str) -> None:
        """Show what suits this rig and its drive; nothing happens while both are of the same kind."""
        kind = kind_of_drive(waveform)
        if (rig, kind) != (self._rig, self._kind):
            self.keep_sizes()
            self._rig, self._kind = rig, kind
            self._show(self._own() or SUGGESTED[kind])

    def choose(self, names: Sequence[str]) -> None:
        """A person's choice: it is kept for this rig and this kind of drive."""
        self.keep_sizes()
        self._settings.views[self._key()] = list(names)
        self._show(names)

    def suggest(self) -> None:
        """Forget the choice: what the drive suggests is shown again."""
        self._settings.views.pop(self._key(), None)
        self._settings.layout.pop(self._key(), None)
        self._show(SUGGESTED[self._kind or "sine"])

    def _own(self) -> list[str]:
        """What was chosen before, as far as it is understood: a person may have edited the settings."""
        kept = self._settings.views.get(self._key())
        known = list(self._plots)
        names = [name for name in kept if name in known] if isinstance(kept, list) else []
        return list(dict.fromkeys(names))

    def _key(self) -> str:
        return f"{self._rig} {self._kind or 'sine'}"

    # -- drawing

    def _show(self, names: Sequence[str]) -> None:
        self.shown = tuple(names)
        for place, name in enumerate(names):
            self.insertWidget(place, self._plots[name])
        for name, plot in self._plots.items():
            plot.setVisible(name in names)
        sizes = self._settings.layout.get(self._key())
        if not (isinstance(sizes, list) and len(sizes) == len(names) and all(type(s) is int for s in sizes)):
            sizes = [100] * len(names)
        self.setSizes([*sizes, *(0 for _ in range(self.count() - len(names)))])

    def keep_sizes(self) -> None:
        """Keep how wide the views were made."""
        if self._kind and self.isVisible():
            self._settings.layout[self._key()] = self.sizes()[: len(self.shown)]

    def _room(self) -> int:
        """How many views may stand side by side."""
        return max(ALWAYS, self.width() // self._theme.px(NARROW))

    def _fill(self, menu: QMenu, name: str) -> None:
        menu.clear()
        place = self.shown.index(name)
        others = [other for other in self._plots if other not in self.shown]
        before, after = self.shown[:place], self.shown[place + 1 :]
        if others:
            menu_heading(menu, "Show here instead")
            for other in others:
                self._offer(menu, self._plots[other].title, (*before, other, *after))
        if others and len(self.shown) < self._room():
            menu_heading(menu, "Show beside it")
            for other in others:
                self._offer(menu, self._plots[other].title, (*before, name, other, *after))
        menu.addSeparator()
        if len(self.shown) > 1:
            self._offer(menu, "Close this view", (*before, *after))
        own = menu.addAction("As the drive suggests")
        assert own is not None
        own.setCheckable(True)
        own.setChecked(self._key() not in self._settings.views)
        own.triggered.connect(lambda _=False: self.suggest())

    def _offer(self, menu: QMenu, words: str, names: Sequence[str]) -> None:
        action = menu.addAction(words)
        assert action is not None
        action.triggered.connect(lambda _=False: self.choose(names))
