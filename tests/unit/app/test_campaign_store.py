"""The folder of results survives what may happen to it; a process for jobs survives what may happen in it."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from analysis import DataError, Estimate, Identification, Progress
from app.campaign.child import DONE, FAILED, LOST, Child, Outcome, _answer
from app.campaign.jobs import Job
from app.campaign.recordings import INDEX
from app.campaign.store import Store, rows
from app.campaign.study import plan, read_study
from app.campaign.version import full_version
from tests.ringing import make

RESULT = Identification("weak", "ring", True, {"k": Estimate.normal(4.0, 0.1, "N/m")}, verdict="fits")


def keep(folder: Path, count: int) -> list[str]:
    keys = [f"{i:064x}" for i in range(count)]
    with Store(folder) as store:
        for key in keys:
            store.keep(Outcome(key, DONE, RESULT.to_json()))
    return keys


def test_what_was_kept_is_there_at_the_next_start(tmp_path: Path) -> None:
    keys = keep(tmp_path, 5)
    with Store(tmp_path) as store:
        assert store.done == set(keys)
    assert Identification.from_json(store.fit_path(keys[0]).read_text()) == RESULT


def test_a_lost_or_torn_index_is_made_anew_from_the_results(tmp_path: Path) -> None:
    keys = keep(tmp_path, 5)
    index = tmp_path / INDEX
    whole = sorted(index.read_bytes().splitlines())
    index.write_bytes(index.read_bytes()[:-30])
    for _ in range(2):
        with Store(tmp_path) as store:
            assert store.done == set(keys)
        found = sorted(index.read_bytes().splitlines())
        assert [json.loads(line)["parameters"] for line in found] == [
            json.loads(line)["parameters"] for line in whole
        ]
        index.unlink()
    assert len(list(rows(tmp_path))) == 0


def test_a_damaged_or_removed_result_is_done_again(tmp_path: Path) -> None:
    keys = keep(tmp_path, 3)
    store_path = tmp_path / "fits" / keys[0][:2]
    (store_path / f"{keys[0]}.json").unlink()
    (store_path / f"{keys[1]}.json").write_text("{")
    (tmp_path / INDEX).unlink()
    with Store(tmp_path) as store:
        assert store.done == {keys[2]}


def test_a_failure_is_kept_until_it_is_to_be_tried_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.keep(Outcome("a" * 64, FAILED, sentence="The record is too short."))
        store.keep(Outcome("b" * 64, DONE, RESULT.to_json()))
    with Store(tmp_path) as store:
        assert store.done == {"a" * 64, "b" * 64}
        store.forget_failures()
        assert store.done == {"b" * 64}


def test_one_folder_is_for_one_program_at_a_time(tmp_path: Path) -> None:
    with Store(tmp_path), pytest.raises(DataError, match="Another campaign is writing"):
        Store(tmp_path)


def test_a_full_disk_is_one_sentence_and_what_is_kept_stays(tmp_path: Path) -> None:
    keys = keep(tmp_path, 3)
    script = (
        "import resource, signal, sys; from pathlib import Path; sys.path.insert(0, '.')\n"
        "from tests.unit.app.test_campaign_store import *\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); \n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "store = Store(Path(sys.argv[1]))\n"
        "try: store.keep(Outcome('f' * 64, DONE, RESULT.to_json()))\n"
        "except DataError as error: print(error)\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, cwd=root, check=False
    )
    assert "cannot be written: File too large." in done.stdout
    with Store(tmp_path) as store:
        assert store.done == set(keys)
    assert not list(tmp_path.rglob("*.partial*"))


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, ...]:
    path = make(tmp_path_factory.mktemp("campaign") / "a", 2)
    return plan(read_study(path), path.parent, path.parent, {}, Progress()).jobs


def test_a_process_that_hangs_or_is_killed_costs_one_job_and_is_replaced(jobs: tuple[Job, ...]) -> None:
    child = Child(limit=60.0)
    try:
        first = child.perform(jobs[0], full_version())
        assert first.status == DONE, first.sentence
        assert child._process is not None
        os.kill(child._process.pid, signal.SIGSTOP)  # it hangs
        child.limit = 0.3
        assert "limit for one job" in child.perform(jobs[0], full_version()).sentence
        child.limit = 60.0
        assert child.perform(jobs[0], full_version()).result == first.result  # to the last bit
        pid = child._process.pid
        os.kill(pid, signal.SIGSTOP)  # still busy when it is killed
        killing = threading.Timer(0.2, os.kill, (pid, signal.SIGKILL))
        killing.start()
        outcome = child.perform(jobs[0], full_version())
        killing.join()
        assert outcome.status == LOST and "signal 9" in outcome.sentence
    finally:
        child.close()
        child.join()


def test_threads_of_a_dask_worker_do_not_take_each_others_answers_and_leave_no_process(
    jobs: tuple[Job, ...],
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from app.campaign import dask_engine

    def done(job: Job) -> str:
        (one,) = dask_engine._perform_bundle([job.to_dict()], full_version(), 60.0)
        return str(json.loads(one["result"])["recordings"][0]["file"])

    many = [jobs[i % 2] for i in range(8)]
    try:
        with ThreadPoolExecutor(2) as threads:  # as `dask worker` has unless it is told otherwise
            assert list(threads.map(done, many)) == [job.recording for job in many]
        started = [place.child._process for place in dask_engine._places]
    finally:
        dask_engine._end_processes()
    assert len(started) == 2 and all(p is not None and p.poll() is not None for p in started)


def test_another_version_and_a_file_that_is_gone_or_changed_are_said(
    jobs: tuple[Job, ...], tmp_path: Path
) -> None:
    from dataclasses import replace

    told = _answer(jobs[0], "Shakedown 0.0.9")
    assert (
        told["status"] == LOST
        and "runs Shakedown" in told["sentence"]
        and "install the same" in told["sentence"]
    )
    told = _answer(replace(jobs[0], recording=str(tmp_path / "gone.h5")), full_version())
    assert told["status"] == LOST and told["unseen"] and "cannot see" in told["sentence"]
    told = _answer(replace(jobs[0], sha256="0" * 64), full_version())
    assert told["status"] == LOST and not told["unseen"]
    assert "has changed since the study began" in told["sentence"]


def test_a_job_that_cannot_be_done_says_why(jobs: tuple[Job, ...]) -> None:
    from dataclasses import replace

    told = _answer(replace(jobs[0], kind="segment", number=0, count=60), full_version())
    assert told["status"] == FAILED and "too few to identify anything" in told["sentence"]


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("mine")
    with pytest.raises(DataError, match=r"table\.csv is not of a campaign and would be overwritten"):
        Store(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_lines_of_a_foreign_index_are_left_out(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text('{"key": 3}\n{"key": "a"}\n[1]\nnull\n{"key": "b", "status": "failed"}\n')
    with Store(tmp_path) as store:
        assert store.done == {"b"}
