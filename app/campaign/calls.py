"""The program's own studies: one function called many times, on all processors or on a cluster.

A draw of a Monte Carlo, a published table: the same engines do them that do the fits of a campaign, with the
same care for processes that die or hang. Answers are kept in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from analysis import DataError, Progress
from app.campaign.child import DONE, Outcome
from app.campaign.engine import engine
from app.campaign.jobs import Call
from app.campaign.run import run

LIMIT = 4 * 3600.0  # s that one call may take


class _Answers:
    """Keeps what comes back, and tells whoever waits."""

    def __init__(self, place: Mapping[str, int], came: Callable[[int, Any], None]) -> None:
        self.done: set[str] = set()
        self.found: dict[int, Any] = {}
        self._place, self._came = place, came

    def keep(self, outcome: Outcome) -> None:
        if outcome.status == DONE:
            number = self._place[outcome.key]
            self.found[number] = json.loads(outcome.result)
            self._came(number, self.found[number])


def call_all(
    function: str,
    arguments: Sequence[Mapping[str, Any]],
    progress: Progress,
    came: Callable[[int, Any], None] = lambda number, answer: None,
    cluster: str | None = None,
    workers: int = 0,
) -> tuple[dict[int, Any], dict[int, str]]:
    """Answers of a function (``module:name``), and sentences why there is none, by the number of the call.

    ``came`` gets each answer when it is there. No two calls may have the same arguments.
    """
    calls = [Call(function, each) for each in arguments]
    place = {call.key: number for number, call in enumerate(calls)}
    answers = _Answers(place, came)
    tally = run(calls, answers, lambda: engine(cluster, workers, LIMIT), progress)
    return answers.found, {place[key]: words for key, words in tally.failures.items()}


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
