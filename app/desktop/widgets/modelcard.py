"""The model: chosen from the library or written, checked while one types, shown as mathematics."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import QRectF, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QColor, QPainter, QPaintEvent, QPixmap
from PyQt6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from analysis import FUNCTIONS, DataError, Model, Parameter, ShakedownError, with_parameter
from app.desktop import tasks
from app.desktop.tasks import CheckedModel
from app.desktop.theme import Theme
from app.desktop.widgets.basics import Card, Choice, IconButton, label, scrolled, set_role, timer
from app.desktop.widgets.editor import ModelEditor
from app.desktop.widgets.parameters import ParameterTable
from app.desktop.workbench import CHECKING, Workbench
from drivers.base.files import read_text

SMALLEST = 0.32  # of a formula's resolution: below it nobody can read the indices
TYPING = 350  # ms without a key before the text is checked


class FittedPicture(QWidget):
    """A formula at half its resolution, or smaller where it would not fit, in the colour of text.

    Pale while disabled. It is never made smaller than can be read: a longer one is scrolled.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._image = QPixmap()
        self._theme = theme
        theme.changed.connect(self._colour)
        policy = self.sizePolicy()
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_image(self, image: QPixmap) -> None:
        self._image = image
        self.setMinimumWidth(round(SMALLEST * image.width()))
        self._colour()
        self.updateGeometry()

    def _colour(self) -> None:
        """Ink in the colour of the theme's text, at once: a formula in the other colour cannot be seen."""
        if not self._image.isNull():
            painter = QPainter(self._image)
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
            painter.fillRect(self._image.rect(), QColor(self._theme.colours.text))
            painter.end()
        self.update()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if self._image.isNull():
            return 0
        return round(self._image.height() * self._factor(width)) + 2

    def _factor(self, width: int) -> float:
        return max(SMALLEST, min(0.5, width / max(self._image.width(), 1)))

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self._image.isNull():
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.setOpacity(1.0 if self.isEnabled() else 0.3)
        factor = self._factor(self.width())
        box = QRectF(0, 0, self._image.width() * factor, self._image.height() * factor)
        painter.drawPixmap(box, self._image, QRectF(self._image.rect()))


class ModelCard(Card):
    """Chooser, rendered mathematics and editor. A text without mistakes becomes the model in hand."""

    checked = pyqtSignal()

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.theme, "Model")
        self.bench, theme = bench, bench.theme
        self.source = ""
        self._saved = ""  # text of the file that the source names
        self._running = False
        self._again = False
        self.chooser = Choice()
        self.chooser.setToolTip("Models of the library")
        self.chooser.setAccessibleName("Models of the library")
        self.chooser.activated.connect(self._picked)
        load = IconButton(theme, "folder", "Open a model file")
        load.clicked.connect(self._open)
        save = IconButton(theme, "export", "Save this text as a model file")
        save.clicked.connect(self._save)
        row = QHBoxLayout()
        row.addWidget(self.chooser, 1)
        row.addWidget(load)
        row.addWidget(save)
        self.box.addLayout(row)
        self.picture = FittedPicture(theme)
        self.about = label("", "small", wrap=True)
        shown = QWidget()
        column = QVBoxLayout(shown)
        column.setContentsMargins(0, theme.px(6), 0, 0)
        column.addWidget(self.picture)
        column.addWidget(self.about)
        column.addStretch(1)
        self.editor = ModelEditor(theme)
        self.editor.offer([*FUNCTIONS, "pi", "measured"])
        self.parameters = ParameterTable(theme)
        self.parameters.changed.connect(self._set_parameter)
        self.parameters.refused.connect(lambda words: bench.say(words, "warn"))
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        area = scrolled(shown)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.tabs.addTab(area, "Mathematics")
        self.tabs.addTab(self.parameters, "Parameters")
        self.tabs.addTab(self.editor, "Text")
        self.tabs.tabBarClicked.connect(self._ready_to_type)
        self.add(self.tabs, 1)
        self.verdict = label("", "small", wrap=True)
        self.verdict.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.add(self.verdict)
        self._later = timer(self, TYPING, self.check, single=True)
        self.editor.textChanged.connect(self._typed)
        self._list()

    def _ready_to_type(self, tab: int) -> None:
        """Whoever presses on the text means to write."""
        if tab == self.tabs.indexOf(self.editor):
            QTimer.singleShot(0, self.editor.setFocus)

    def _list(self) -> None:
        from drivers.library import model_files

        self.chooser.clear()
        for name, path in model_files().items():
            self.chooser.addItem(name.replace("_", " "), str(path))
        self.chooser.setCurrentIndex(-1)

    def choose(self, name: str) -> None:
        """Take a model of the library by its name, or a file by its path."""
        from drivers.library import model_files

        self.load(model_files().get(name, Path(name)), name)

    def restore(self, text: str, source: str) -> bool:
        """Bring back a text; whether it is nobody's but the user's: written, and not saved to a file."""
        from drivers.library import model_files

        path = model_files().get(source, Path(source) if source else None)
        try:
            saved = path.read_text(encoding="utf-8") if path is not None else ""
        except (OSError, UnicodeDecodeError):
            saved = ""
        self.source, self._saved = source, saved
        self.editor.setPlainText(text)
        self._name_text()
        self.check()
        return text != saved

    def load(self, path: Path, source: str) -> None:
        try:
            text = read_text(path, "a model")
        except DataError as error:
            self.bench.say(str(error), "bad")
            return
        self.source, self._saved = source, text
        self.editor.setPlainText(text)
        self._name_text()
        self.check()

    def _name_text(self) -> None:
        """The library's name for the text, as long as it is the library's."""
        from drivers.library import model_files

        path = model_files().get(self.source, Path(self.source)) if self._is_saved() else None
        self.chooser.setCurrentIndex(-1 if path is None else self.chooser.findData(str(path)))
        own = "your own text, not saved" if path is None else path.name
        self.chooser.setPlaceholderText(own)

    def _is_saved(self) -> bool:
        return bool(self.source) and self.text() == self._saved

    def take_text(self, text: str) -> None:
        """A text that was found or made elsewhere; Ctrl+Z in the editor brings back the one before."""
        self.source = ""
        self.editor.replace_text(text)
        self.check()

    def text(self) -> str:
        return self.editor.toPlainText()

    def _typed(self) -> None:
        """Until the text is understood it is not the model in hand."""
        if self.text() == self.bench.model_text:
            return  # only its colours changed
        self.bench.model_text = self.text()
        self._name_text()
        self.bench.keep_soon()
        model = self.bench.model
        if model is None or model.text != self.text():
            self.bench.miss_model(CHECKING)
            self._say("Checking …", "small")
        self._later.start()

    def check(self) -> None:
        """Have the text read elsewhere; the newest text wins."""
        self._later.stop()
        if not self.text().strip():
            self._refuse("The model's text is empty.")
            return
        if self._running:
            self._again = True
            return
        self._running = True
        theme = self.bench.theme
        job = self.bench.workers.run(
            "Reading the model",
            tasks.check_model,
            self.text(),
            Path(self.source).name if self._is_saved() else "model",
            theme.colours.text,
            15 * theme.scale,
            quiet=True,
        )
        job.done.connect(self._answer)
        job.failed.connect(self._refuse)
        job.ended.connect(self._finished)

    def _finished(self) -> None:
        self._running = False
        if self._again:
            self._again = False
            self.check()

    def _answer(self, found: CheckedModel) -> None:
        if found.text != self.text():
            return
        if found.model is None:
            self._refuse(found.problem)
            return
        model = found.model
        image = QPixmap()
        image.loadFromData(found.picture)
        self.picture.setEnabled(True)
        self.picture.show_image(image)
        self.about.setText("\n".join(filter(None, (model.description, model.reference))))
        self.editor.mark_problem("")
        self.editor.offer([*FUNCTIONS, "pi", "measured", *_names(model)])
        self.parameters.setEnabled(True)
        self.parameters.show_model(model)
        count = len(model.free)
        self._say(f"Understood: {len(model.states)} states, {count} unknown parameters.", "good")
        if self.bench.model is None or self.bench.model.text != model.text:
            self.bench.take_model(model, self.source)
        self.bench.miss_model("")
        self.checked.emit()

    def _set_parameter(self, name: str, parameter: Parameter) -> None:
        """What was typed into the table becomes part of the text."""
        try:
            self.editor.replace_text(with_parameter(self.text(), name, parameter))
        except ShakedownError as error:
            self.bench.say(str(error), "warn")
            model = self.bench.model
            if model is not None and name in model.parameters:
                self.parameters.put_back(name, model.parameters[name])
            return
        self.check()

    def _refuse(self, problem: str) -> None:
        self._say(problem, "bad")
        self.editor.mark_problem(problem)
        self.parameters.setEnabled(False)
        self.picture.setEnabled(False)  # it shows the last text that was understood
        self.picture.update()
        if self.bench.model is None:  # there is no mathematics to show, only the text to be mended
            self.tabs.setCurrentWidget(self.editor)
        self.bench.miss_model(problem)

    def _say(self, text: str, role: str) -> None:
        self.verdict.setText(text)
        set_role(self.verdict, role)

    def _picked(self, index: int) -> None:
        path = Path(self.chooser.itemData(index))
        self.load(path, path.stem)

    def _open(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Open a model", str(Path.home()), "Models (*.toml)")
        if name:
            self.load(Path(name), name)

    def _save(self) -> None:
        name, _ = QFileDialog.getSaveFileName(
            self, "Save the model", str(Path.home() / "model.toml"), "Models (*.toml)"
        )
        if not name:
            return
        try:
            Path(name).write_text(self.text(), encoding="utf-8")
        except OSError as error:
            self.bench.say(f"The model could not be saved: {error.strerror}.", "bad")
            return
        self.source, self._saved = name, self.text()
        self._name_text()


def _names(model: Model) -> list[str]:
    """Everything that an expression of the model may name."""
    equations = model.equations
    return [*model.states, *model.inputs, *model.parameters, *equations.driven, *equations.definitions]
