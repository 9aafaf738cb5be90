"""The program's own studies: one function called many times, on all processors or on a cluster.

A draw of a Monte Carlo, a published table: the same engines do them that do the fits of a campaign, with the
same care for processes that die or hang. Answers are kept in memory, and on the disk where that is asked for:
a second start then does only what is missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from analysis import DataError, Progress, ShakedownError, parse_json
from app.campaign.child import DONE, Outcome
from app.campaign.engine import engine
from app.campaign.jobs import Call
from app.campaign.run import run
from app.campaign.version import full_version
from drivers.base.files import read_text, replaced

LIMIT = 4 * 3600.0  # s that one call may take


class Shelf:
    """A folder of answers, each under a key of the call, the program's version and the function's sources."""

    def __init__(self, folder: Path, function: str) -> None:
        self.folder, self.found = folder, 0  # answers that were there
        room = Path(str(import_module(function.partition(":")[0]).__file__)).parent
        self._sources = hashlib.sha256(full_version().encode())
        for path in sorted(room.rglob("*.py")):
            self._sources.update(path.relative_to(room).as_posix().encode() + path.read_bytes())

    def read(self, call: Call) -> Any:
        """The answer; None where there is none, or none that can be read."""
        try:
            answer = parse_json(read_text(self._path(call.key), "an answer"))
        except (ShakedownError, ValueError):
            return None
        self.found += 1
        return answer

    def keep(self, key: str, answer: str) -> None:
        with contextlib.suppress(DataError, OSError):  # a full disk costs the next start time, no answer
            self.folder.mkdir(parents=True, exist_ok=True)
            with replaced(self._path(key)) as part:
                part.write_text(answer, encoding="utf-8")

    def _path(self, key: str) -> Path:
        whole = self._sources.copy()
        whole.update(key.encode())
        return self.folder / f"{whole.hexdigest()}.json"


class _Answers:
    """Keeps what comes back, and tells whoever waits."""

    def __init__(self, calls: Sequence[Call], came: Callable[[int, Any], None], shelf: Shelf | None) -> None:
        self.done: set[str] = set()
        self.found: dict[int, Any] = {}
        self.place = {call.key: number for number, call in enumerate(calls)}
        self._came, self._shelf = came, shelf
        for call in calls:
            if shelf is not None and (answer := shelf.read(call)) is not None:
                self.done.add(call.key)
                self._take(call.key, answer)

    def keep(self, outcome: Outcome) -> None:
        if outcome.status == DONE:
            if self._shelf is not None:
                self._shelf.keep(outcome.key, outcome.result)
            self._take(outcome.key, json.loads(outcome.result))

    def _take(self, key: str, answer: Any) -> None:
        number = self.place[key]
        self.found[number] = answer
        self._came(number, answer)


def call_all(
    function: str,
    arguments: Sequence[Mapping[str, Any]],
    progress: Progress,
    came: Callable[[int, Any], None] = lambda number, answer: None,
    cluster: str | None = None,
    workers: int = 0,
    shelf: Shelf | None = None,
) -> tuple[dict[int, Any], dict[int, str]]:
    """Answers of a function (``module:name``), and sentences why there is none, by the number of the call.

    ``came`` gets each answer when it is there; ``shelf`` keeps them for the next start. No two calls may have
    the same arguments.
    """
    calls = [Call(function, each) for each in arguments]
    answers = _Answers(calls, came, shelf)
    tally = run(calls, answers, lambda: engine(cluster, workers, LIMIT), progress)
    return answers.found, {answers.place[key]: words for key, words in tally.failures.items()}


def draws(
    function: str,
    arguments: Sequence[Mapping[str, Any]],
    progress: Progress,
    cluster: str | None = None,
    workers: int = 0,
    came: Callable[[int, Any], None] = lambda number, answer: None,
) -> list[Any]:
    """The answers of a Monte Carlo in order; DataError where one is missing: it would be another study."""
    found, failures = call_all(function, arguments, progress, came, cluster, workers)
    for number, words in failures.items():
        raise DataError(f"Draw {dict(arguments[number])} of the study has no answer: {words}")
    return [found[number] for number in range(len(arguments))]
