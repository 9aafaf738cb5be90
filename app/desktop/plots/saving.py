"""What can be done with every picture of data: saved as a file, or copied, as picture or as values."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from PyQt6.QtCore import QPoint, QRect, QSize, Qt
from PyQt6.QtGui import QPainter, QPixmap
from PyQt6.QtWidgets import QApplication, QFileDialog, QMenu, QWidget

from app.numbers import decimal_mark

Rows = Iterable[Sequence[object]]
KINDS = {"png": "Picture (PNG)", "svg": "Drawing (SVG)", "csv": "Table of values (CSV)"}


def plot_menu(
    parent: QWidget, save: Callable[[str], object], others: Mapping[str, Callable[[], object]]
) -> QMenu:
    """The kinds of files, then other things by their words; ``save`` is given the ending of the file."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    for kind, words in KINDS.items():
        action = menu.addAction(words)
        assert action is not None
        action.triggered.connect(lambda _=False, kind=kind: save(kind))
    menu.addSeparator()
    for words, act in others.items():
        action = menu.addAction(words)
        assert action is not None
        action.triggered.connect(lambda _=False, act=act: act())
    return menu


def ask_where(parent: QWidget, title: str, kind: str) -> Path | None:
    """A file of this kind, named after the picture unless somebody names it otherwise."""
    suggested = title.lower().replace(" ", "-") + "." + kind
    name, _ = QFileDialog.getSaveFileName(parent, "Save plot", suggested, f"*.{kind}")
    return Path(name) if name else None


def saved(export: Callable[[Path], object], path: Path) -> str:
    """Have a picture or its values written; words for what became of it."""
    try:
        export(path)
    except OSError as error:
        return f"Not saved: {error.strerror or error}."
    return f"Saved as {path.name}."


def save_picture(path: Path, picture: QPixmap) -> None:
    """A picture as a PNG file."""
    with path.open("wb"):
        pass  # says why a file cannot be written; Qt only says that it was not
    if not picture.save(str(path), "PNG"):
        raise OSError(f"{path.name} could not be written")


def draw_svg(path: Path, title: str, size: QSize, paint: Callable[[QPainter], object]) -> None:
    """A drawing in an SVG file."""
    from PyQt6.QtSvg import QSvgGenerator

    with path.open("wb"):
        pass
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(size)
    generator.setViewBox(QRect(QPoint(0, 0), size))
    generator.setTitle(title)
    painter = QPainter(generator)
    paint(painter)
    painter.end()


def write_table(path: Path, rows: Rows) -> None:
    """Rows as comma-separated values."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def copy_table(rows: Rows) -> None:
    """Rows to the clipboard, the first one a header, with tabs between the columns, as spreadsheets take it.

    They read numbers by the locale: 1.234 with a point would be a thousand where a comma is the mark.
    """
    board = QApplication.clipboard()
    assert board is not None
    head, *values = ("\t".join(map(str, row)) for row in rows)
    board.setText("\n".join([head, *(row.replace(".", decimal_mark()) for row in values)]))
