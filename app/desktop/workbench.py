"""What is in hand: the rig, the record, the model, the results. Pages share it and nothing else."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import QObject, pyqtSignal

from analysis import DataError, Progress, ShakedownError
from app import project as projects
from app.commands.validate import payload
from app.desktop.feed import Feed
from app.desktop.kept import Kept
from app.desktop.opening import rig_of, rig_paths
from app.desktop.rigdesk import RigDesk
from app.desktop.theme import Theme
from app.desktop.widgets.basics import timer
from app.desktop.worker import Job, Workers
from app.project import Project
from app.settings import Settings
from drivers.base.files import read_text
from drivers.virtual.specimens import new_number

if TYPE_CHECKING:
    from analysis import Identification, Model, Record

CHECKING = "The model's text is being checked."
KEEPING = 2000  # ms without a change before the work is written down for the next start
MOST_RESULTS = 20  # fits that are kept for the next start
FINISHING = 30.0  # s given to the rig's process of a window that was lost
MOST_IN_HAND = 40_000_000  # samples of all channels together


@dataclass(frozen=True)
class Notice:
    """A sentence for the user. ``level`` is info, good, warn or bad; bad ones stay until dismissed."""

    text: str
    level: str = "info"
    action: str = ""  # page to offer a way to
    undo: Callable[[], object] | None = None  # takes back what the sentence tells of


@dataclass(frozen=True)
class RecordInHand:
    """The record that the analysis pages work on, and where it came from."""

    record: Record
    name: str
    path: Path | None = None

    def is_same(self, other: RecordInHand | None) -> bool:
        """Whether both are the same recording."""
        if other is None or self is other or self.path is None:
            return self is other
        return self.path == other.path

    @classmethod
    def elsewhere(cls, path: str) -> RecordInHand:
        """A record that is not read: only its name is known."""
        from analysis import Record

        return cls(Record(1.0, {}), Path(path).stem or "not kept", Path(path))


class Workbench(QObject):
    """Shared state of the window. Setting anything tells every page through a signal."""

    record_changed = pyqtSignal()
    model_changed = pyqtSignal()
    finding_changed = pyqtSignal(str)  # name of what was found, such as "embedding" or "orbits"
    result_changed = pyqtSignal()  # a new identification is in hand
    noticed = pyqtSignal(object)  # Notice
    opening_changed = pyqtSignal()  # a recording is on its way to be the record in hand, or no longer
    marker_asked = pyqtSignal()  # this moment of the recording is to be marked
    asked_for = pyqtSignal(str)  # page to bring to the front
    project_changed = pyqtSignal()  # what is known of the test
    restored = pyqtSignal()  # the work of the last time is back in hand

    def __init__(self, settings: Settings, theme: Theme) -> None:
        super().__init__()
        self.settings = settings
        self.theme = theme
        self.workers = Workers(self)
        self.rig = RigDesk(self._library)
        self.project: Project | None = None
        self.project_problem = ""  # why the project of the last time is not in hand
        self._take_project()
        self.rig.specimen = new_number() if settings.new_specimens else 0
        self.rig.recording_changed.connect(self._mark_recording)
        self.feed = Feed(self.rig)
        self._record: RecordInHand | None = None
        self._model: Model | None = None
        self.model_text = ""  # as it stands in the editor, understood or not
        self.model_problem = ""  # what is wrong with the text being written; it is not the model in hand then
        self._fitted: RecordInHand | None = None  # the record that the newest result was found from
        self.results: list[Identification] = []  # newest last; the last one is in hand
        self.findings: dict[str, Any] = {}  # what pages hand on to later ones; cleared with the record
        self._bringing_back = False  # the record of the last time is being read
        self.opening = ""  # name of the recording that is being opened
        self._opened: Job | None = None
        self._found_more = False  # findings that are not on disk yet
        self._keeping = timer(self, KEEPING, self.keep_work, single=True)
        for changed in (self.record_changed, self.result_changed, self.finding_changed):
            changed.connect(lambda *_: self.keep_soon(findings=True))
        self.model_changed.connect(self.keep_soon)

    @property
    def record(self) -> RecordInHand | None:
        return self._record

    @property
    def model(self) -> Model | None:
        return self._model

    @property
    def result(self) -> Identification | None:
        return self.results[-1] if self.results else None

    @property
    def fitted(self) -> RecordInHand | None:
        """The record that the newest result was found from."""
        return self._fitted

    def take_record(self, record: Record, name: str, path: Path | None = None) -> None:
        """Put a record in hand; what was found in the one before is dropped."""
        self._record = RecordInHand(record, name, path)
        self.findings.clear()
        if path is not None:
            self.settings.remember(path)
        self.record_changed.emit()

    def take_file(self, path: Path) -> None:
        """Read a recording, elsewhere, and take it in hand."""
        job = self.workers.run(f"Opening {path.name}", read_file, path)
        self._await(path.stem, job)
        job.done.connect(lambda answer: self._taken(answer[0], answer[1], path))
        job.failed.connect(lambda text: self.say(text, "bad"))

    def _await(self, name: str, job: Job) -> None:
        """Tell that a recording is being opened, until it is in hand or cannot be."""
        self._opened, self.opening = job, name
        job.ended.connect(lambda: self._came(job))
        self.opening_changed.emit()

    def _came(self, job: Job) -> None:
        if job is self._opened:  # and no later one
            self.opening = ""
            self.opening_changed.emit()

    # -- the project

    def _take_project(self) -> None:
        """The project of the settings, its rig and what its recordings say; without one if it is gone."""
        settings = self.settings
        if settings.project:
            try:
                self.project = projects.load(settings.project)
                settings.project = str(self.project.folder)
                settings.remember_project(settings.project)
                settings.rig = rig_of(self.project) or settings.rig
            except ShakedownError as error:
                self.project_problem = f"{error} The window works without a project."
                settings.forget_project(settings.project)
                settings.project = ""
        self._describe_test()
        self.rig.recorded.connect(self._keep_rig)

    def _describe_test(self) -> None:
        project = self.project
        self.rig.test = {} if project is None else project.metadata()
        self.rig.operator = (project.operator if project is not None else "") or self.settings.operator

    def reload_project(self) -> Project | None:
        """Read the project anew: somebody else may have changed it; None, and said, if it is gone."""
        if self.project is None:
            return None
        try:
            self.project = projects.load(self.project.folder)
        except ShakedownError as error:
            self.say(str(error), "bad")
            return None
        self._describe_test()
        self.project_changed.emit()
        return self.project

    def _library(self) -> Path:
        """Where recordings go; refused if the project's folder is gone, such as with the disk it was on."""
        project = self.project
        if project is not None and not (project.folder / projects.NAME).is_file():
            raise DataError(f"the folder of the project, {project.folder}, is not there any more.")
        return self.settings.library_folder

    def _keep_rig(self) -> None:
        """The project keeps the profile that its newest recording was made with."""
        opened = self.rig.rig
        if self.project is None or opened is None or opened.profile is None:
            return
        path = rig_paths().get(opened.name)
        if path is not None:  # the project's own profile is there already
            self._keep(
                lambda project: projects.keep_rig(project, opened.name, read_text(path, "a rig profile"))
            )

    def _keep(self, keep: Callable[[Project], object]) -> None:
        """Keep something in the project, if there is one; what goes wrong is said."""
        if self.project is not None:
            try:
                keep(self.project)
            except ShakedownError as error:
                self.say(f"Not kept in the project: {error}", "warn")

    # -- from one start to the next

    def kept(self) -> Kept:
        """The work in hand, for the next start."""
        record, fitted = self._record, self._fitted
        return Kept(
            str(record.path) if record is not None and record.path is not None else "",
            self.model_text,
            self.settings.model,
            self.results[-MOST_RESULTS:],
            str(fitted.path) if fitted is not None and fitted.path is not None else "",
            self.findings,
            "" if self.project is None else str(self.project.folder),
        )

    def restore(self, kept: Kept) -> None:
        """Take the record of the last time in hand, and what was found from it."""
        path = Path(kept.record)
        if not kept.record or not path.is_file():
            self._restore_findings(kept, None)
            return
        self._bringing_back = True
        job = self.workers.run(f"Opening {path.name}", read_file, path)
        self._await(path.stem, job)
        job.done.connect(
            lambda answer: self._restore_findings(kept, RecordInHand(answer[0], path.stem, path))
        )
        job.failed.connect(lambda text: self.say(text, "warn"))
        job.ended.connect(self._brought_back)

    def _brought_back(self) -> None:
        self._bringing_back = False

    def _restore_findings(self, kept: Kept, record: RecordInHand | None) -> None:
        """Only while nothing newer is in hand."""
        if self._record is not None or self.results:
            return
        if record is not None:
            self.take_record(record.record, record.name, record.path)
            self.findings.update(kept.findings)
        if kept.results:
            self.results = list(kept.results)
            same = record is not None and kept.results_of == kept.record
            self._fitted = self._record if same else RecordInHand.elsewhere(kept.results_of)
            self.result_changed.emit()
        self.restored.emit()

    def _taken(self, record: Record, whole: bool, path: Path) -> None:
        self.take_record(record, path.stem, path)
        if whole:
            self.say(f"{path.stem} is in hand.", "good", "embed")
        else:
            part = f"The first {record.duration:.0f} s of {path.stem} are in hand"
            self.say(
                f"{part}: it is too long to be analysed whole. Cut out another piece if you like.", "warn"
            )

    def take_model(self, model: Model, source: str = "") -> None:
        self._model, self.model_problem = model, ""
        self.settings.model = source or self.settings.model
        self.model_changed.emit()

    def miss_model(self, problem: str) -> None:
        """The text being written is not the model in hand, for this reason; empty: it is again."""
        if problem != self.model_problem:
            self.model_problem = problem
            self.model_changed.emit()

    @property
    def model_checking(self) -> bool:
        """Whether the text being written has not been read yet; nothing is wrong with it so far."""
        return self.model_problem == CHECKING

    def take_result(
        self,
        result: Identification,
        record: RecordInHand | None = None,
        channels: Mapping[str, str] | None = None,
    ) -> None:
        """Put a fit in hand; ``record``: what it was found from, by default the record in hand.

        ``channels``: which of them stood for each quantity of the model.
        """
        self._fitted = record or self._record
        if not result.recordings and self._fitted is not None and self._fitted.path is not None:
            known = {"channels": json.dumps(channels)} if channels else {}
            result = replace(result, recordings=[{"file": str(self._fitted.path), **known}])
        self.results.append(result)
        name = self._fitted.name if self._fitted is not None else "record"
        self._keep(lambda project: projects.keep_fit(project, result, name))
        self.findings.pop("validation", None)  # it was of the result before
        self.result_changed.emit()

    def complete_result(self, old: Identification, new: Identification) -> bool:
        """Put ``new`` in the place of ``old``: the same fit, of which more is known; whether it was there."""
        for place, result in enumerate(self.results):
            if result is old:
                self.results[place] = new
                return True
        return False

    def results_of_record(self) -> list[Identification]:
        """The fits that were made to the record in hand, those that repeat another without it.

        Those of other records are none of its report.
        """
        record = self._record
        if record is None:
            return []
        own: list[Identification] = []
        for result in self.results:
            files = [Path(str(r.get("file", ""))) for r in result.recordings]
            newest = result is self.result and self._fitted is not None and self._fitted.is_same(record)
            if any(self._is_file_of(record, file) for file in files) if files else newest:
                own = [*(earlier for earlier in own if not _repeats(earlier, result)), result]
        return own

    def _is_file_of(self, record: RecordInHand, file: Path) -> bool:
        """Whether what a fit calls its recording is this one; one that is no longer there may have moved.

        A project may be a copy, and its fits name the files of the first one.
        """
        path, project = record.path, self.project
        if path is None or file.name != path.name:
            return False
        if not file.is_absolute() or (project is not None and path.parent == project.recordings):
            return True
        with contextlib.suppress(OSError):
            return file == path or not file.exists() or file.samefile(path)
        return False

    def result_is_of(self) -> str:
        """“an earlier model” or “an earlier record”, if the newest result is of one; empty otherwise."""
        result = self.result
        if result is None:
            return ""
        if self.model_checking and result.model_text == self.model_text:
            return ""  # the text is the fit's own, and only waits to be read
        if self.model_problem or self._model is None or result.model_text not in ("", self._model.text):
            return f"an earlier model ({result.model})"
        if self._fitted is not None and not self._fitted.is_same(self._record):
            return f"an earlier record ({self._fitted.name})"
        return ""

    def _mark_recording(self) -> None:
        """Keep on disk what is being recorded, so that the next start knows if this window is lost."""
        path = self.rig.recording_path if self.rig.recording else None
        self.settings.recording = "" if path is None else str(path)
        try:
            self.settings.save()
        except OSError as error:
            self.say(f"The settings could not be saved: {error.strerror}.", "warn")

    def restore_unfinished(self) -> None:
        """Finish what a crash left in the library, elsewhere, and offer it."""
        lost, self.settings.recording = self.settings.recording, ""
        job = self.workers.run(
            "Looking for unfinished recordings", restore, self.settings.library_folder, lost, quiet=True
        )
        job.done.connect(self._restored)
        job.failed.connect(lambda text: self.say(text, "warn"))

    def _restored(self, paths: list[Path]) -> None:
        for path in paths:
            self.rig.recorded.emit(path)
        if paths:
            names = ", ".join(path.stem for path in paths)
            self.say(
                f"The window was lost while recording. Everything recorded is saved and restored: {names}.",
                "warn",
                "recordings",
            )

    def find(self, name: str, value: Any) -> None:
        """Hand a finding on to later pages."""
        self.findings[name] = value
        if name == "validation" and self.result is not None and self._record is not None:
            answer, of, model = payload(value), self._record.name, self.result.model
            self._keep(lambda project: projects.keep_validation(project, answer, of, model))
        self.finding_changed.emit(name)

    def start_drive(self) -> None:
        """Start the drive that the rig's profile suggests."""
        rig = self.rig.rig
        if rig is not None and rig.drive is not None:
            try:
                self.rig.play(rig.drive)
            except ShakedownError as error:
                self.say(str(error), "bad")

    def say(
        self, text: str, level: str = "info", action: str = "", undo: Callable[[], object] | None = None
    ) -> None:
        self.noticed.emit(Notice(text, level, action, undo))

    def go(self, page: str) -> None:
        self.asked_for.emit(page)

    def keep_soon(self, findings: bool = False) -> None:
        """Have the work written down a moment after the last change; ``findings``: the arrays too."""
        self._found_more = self._found_more or findings
        self._keeping.start()

    def keep_work(self) -> None:
        """Write down what is in hand, unless that of the last time is still on its way here."""
        if self._bringing_back:
            self._keeping.start()
            return
        try:
            self.kept().save(self._found_more)
            self._found_more = False
            self.settings.save()
        except OSError as error:
            self.say(f"The work in hand could not be kept: {error.strerror or error}.", "warn")

    def close(self) -> None:
        """Ramp down, save what is being recorded, end the workers, write the settings."""
        self.rig.close()
        self.settings.recording = ""  # it is saved
        self.keep_work()
        self._keeping.stop()
        self.workers.close()
        self.settings.save()


def read_file(path: Path, progress: Progress) -> tuple[Record, bool]:
    """A recording, as much of it as is sensible in memory, and whether that is all; runs in a worker."""
    from drivers.formats import open_lazily

    progress.report(0.0, f"Reading {path.name}")
    with open_lazily(path) as recording:
        most = MOST_IN_HAND // max(len(recording.names), 1)
        return recording.slice(0, min(len(recording), most)), len(recording) <= most


def restore(folder: Path, lost: str, progress: Progress) -> list[Path]:
    """Recordings that no living program is writing, made whole; runs in a worker.

    ``lost`` was being recorded when the window ended: as a rule the rig's process has finished it by now.
    """
    from drivers.recording import find_unfinished, recover

    deadline = time.monotonic() + FINISHING
    journal = Path(lost + ".journal") if lost else None
    while journal and journal.exists() and journal not in find_unfinished(journal.parent):
        if time.monotonic() > deadline:
            break  # another window is recording it
        progress.report(0.0, f"Waiting for {journal.stem}")
        time.sleep(0.1)
    unfinished = find_unfinished(folder) if folder.is_dir() else []
    done = []
    for number, path in enumerate(unfinished):
        progress.report(number / len(unfinished), f"Restoring {path.name}")
        done.append(recover(path).path)
    if lost and Path(lost).is_file() and Path(lost) not in done:
        done.append(Path(lost))
    return done


def _repeats(one: Identification, other: Identification) -> bool:
    """Whether two fits are of one model by one method and agree to the last digit."""
    first, second = (
        (r.model_text, r.method, r.options, {name: (e.value, e.stderr) for name, e in r.parameters.items()})
        for r in (one, other)
    )
    return first == second
