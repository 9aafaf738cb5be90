"""Long work runs elsewhere, reports, can be cancelled, and its accidents stay its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.desktop import worker
from app.desktop.worker import NICENESS, Job, Workers
from tests import desktop_jobs
from tests.waiting import GUARD_MS as GUARD


@pytest.fixture
def workers(qtbot: QtBot) -> Iterator[Workers]:
    pool = Workers()
    yield pool
    pool.close()


def _ended(qtbot: QtBot, job: Job) -> None:
    with qtbot.waitSignal(job.ended, timeout=GUARD):
        pass


def test_given_work_when_run_then_its_steps_and_its_result_arrive(qtbot: QtBot, workers: Workers) -> None:
    job = workers.run("double", desktop_jobs.double, 21.0)
    steps, results = [], []
    job.stepped.connect(steps.append)
    job.done.connect(results.append)
    _ended(qtbot, job)
    assert results == [42.0]
    assert [(s.fraction, s.message, dict(s.values)) for s in steps] == [(0.5, "half way", {"cost": 1.0})]


def test_given_work_that_fails_when_run_then_one_sentence_comes_and_the_pool_goes_on(
    qtbot: QtBot, workers: Workers
) -> None:
    messages: list[str] = []
    for function in (desktop_jobs.refuse, desktop_jobs.trip, desktop_jobs.vanish):
        job = workers.run("fail", function)
        job.failed.connect(messages.append)
        _ended(qtbot, job)
    assert messages[0] == "There is nothing to work on."
    assert "by accident" in messages[1]
    assert "Nothing recorded is affected" in messages[2]
    good = workers.run("double", desktop_jobs.double, 1.0)
    results: list[float] = []
    good.done.connect(results.append)
    _ended(qtbot, good)
    assert results == [2.0]


@pytest.mark.parametrize("function", [desktop_jobs.patient, desktop_jobs.deaf])
def test_given_running_work_when_cancelled_then_it_ends_even_if_it_does_not_listen(
    qtbot: QtBot, workers: Workers, function: object
) -> None:
    job = workers.run("long", function)  # type: ignore[arg-type]
    qtbot.waitUntil(lambda: job.fraction > 0, timeout=GUARD)
    seen: list[str] = []
    job.cancelled.connect(lambda: seen.append("cancelled"))
    job.failed.connect(seen.append)
    job.cancel()
    _ended(qtbot, job)
    assert seen == ["cancelled"]


def test_given_running_work_when_the_pool_is_closed_then_nobody_hears_of_it_and_nothing_is_complained_of(
    qtbot: QtBot, qtlog: Any, workers: Workers
) -> None:
    job = workers.run("long", desktop_jobs.patient)
    qtbot.waitUntil(lambda: job.fraction > 0, timeout=GUARD)
    heard: list[object] = []
    for signal in (job.stepped, job.cancelled, job.failed, job.ended):
        signal.connect(lambda *_: heard.append("something"))
    workers.close()
    heard.clear()
    qtbot.wait(200)
    assert not heard and not qtlog.records


def test_given_work_whose_listeners_were_let_go_of_when_it_ends_then_the_pool_forgets_it(
    qtbot: QtBot, workers: Workers
) -> None:
    job = workers.run("long", desktop_jobs.patient)
    heard: list[object] = []
    job.ended.connect(lambda: heard.append("ended"))
    qtbot.waitUntil(lambda: job.fraction > 0, timeout=GUARD)
    job.silence()
    job.cancel()
    qtbot.waitUntil(lambda: not workers.jobs, timeout=GUARD)
    assert not job.running and not heard


@pytest.mark.skipif(sys.platform == "win32", reason="priority classes there")
def test_given_a_busy_machine_then_work_steps_back_and_keeps_a_share(
    qtbot: QtBot, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "NICENESS", NICENESS)  # the product's own
    found: list[int] = []
    job = workers.run("how nice", desktop_jobs.own_niceness)
    job.done.connect(found.append)
    _ended(qtbot, job)
    share = 1.25 ** -found[0]  # of the processor beside one busy program: each step costs a fifth
    assert found[0] > 0
    assert share > 0.25
