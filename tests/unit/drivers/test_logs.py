"""The log: every process writes to it what nobody caught; a full file is turned over, nothing is lost."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from app.campaign.child import Child
from app.campaign.jobs import Call
from app.campaign.version import full_version
from drivers.base import logs
from drivers.base.child import environment
from drivers.formats.guard import Helper

BROKEN = {
    "second guard": (
        "from drivers.acquisition import second_guard as m; "
        "from drivers.base.drive_page import DrivePage; "
        "m.SecondGuard.run = lambda self: 1 / 0; "
        "from pathlib import Path; page = DrivePage.create(Path(sys.argv[1]) / 'a.drive', {}); "
        "m.main(str(page.path))"
    ),
    "finishing": (
        "from drivers.recording import __main__ as m; m.finish_here = lambda path: 1 / 0; m.main(sys.argv[1])"
    ),
}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("process", BROKEN)
def test_given_a_process_that_fails_then_the_log_has_its_traceback(process: str, state: Path) -> None:
    code = f"import sys; {BROKEN[process]}"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code, str(state)], env=environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 1
    written = logs.log_path().read_text()
    assert f" {process} " in written and "uncaught in the main thread" in written
    assert "ZeroDivisionError" in written


def test_given_a_helper_that_is_sent_nonsense_then_the_log_has_its_traceback(state: Path) -> None:
    helper = Helper()
    try:
        assert helper._process.stdin is not None
        helper._process.stdin.write("no list\n")
        helper._process.stdin.flush()
        with pytest.raises(EOFError):
            helper._wait(60.0)
    finally:
        helper.end()
    written = logs.log_path().read_text()
    assert " file guard " in written and "JSONDecodeError" in written


def test_given_a_job_of_a_campaign_that_fails_by_mistake_then_the_log_has_its_traceback(state: Path) -> None:
    child = Child(60.0)
    try:
        outcome = child.perform(Call("app.campaign.version:full_version", {"beam": 1}), full_version())
    finally:
        child.close()
        child.join()
    assert "This should not have happened: TypeError" in outcome.sentence
    written = logs.log_path().read_text()
    assert (
        " campaign " in written and "Traceback" in written and "unexpected keyword argument 'beam'" in written
    )


def test_given_a_full_log_then_it_is_turned_over_and_the_oldest_is_let_go(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "LARGEST", 2000)
    undo = logs.begin_log("test")
    try:
        for number in range(200):
            logging.getLogger("drivers.test").info("entry %d %s", number, 80 * "x")
        logs.flush_log()
    finally:
        undo()
    files = sorted((state / "shakedown").iterdir())
    assert [f.name for f in files] == [logs.NAME, *(f"{logs.NAME}.{n}" for n in range(1, logs.OLDER + 1))]
    assert all(f.stat().st_size < 2200 for f in files)
    oldest_first = [*reversed(files[1:]), files[0]]
    kept = [
        int(line.split("entry ")[1].split()[0]) for f in oldest_first for line in f.read_text().splitlines()
    ]
    assert kept == list(range(kept[0], 200))  # the youngest, in order, without a hole
    assert len(kept) > 50


def test_given_a_command_that_opens_the_window_then_each_entry_is_written_once(state: Path) -> None:
    command = logs.begin_log("command")
    window = logs.begin_log("window")
    logging.getLogger("drivers.test").warning("in the window")
    window()
    logging.getLogger("drivers.test").warning("after the window")
    command()
    written = logs.log_path().read_text().splitlines()
    assert [" window " in w for w in written] == [True, False]
    assert " command " in written[1] and written[1].endswith("after the window")


def test_given_a_failure_that_comes_again_and_again_then_the_log_keeps_what_was_before_it(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slot of a timer that fails ten times a second would turn all five logs over within minutes."""
    monkeypatch.setattr(logs, "LARGEST", 2000)
    stopped: list[BaseException] = []
    undo = logs.begin_log("window", on_crash=stopped.append)
    try:
        logging.getLogger("drivers.test").info("what led to it")
        for text in (*250 * ["0"], "none"):
            try:
                1 / int(text)
            except (ZeroDivisionError, ValueError) as error:
                sys.excepthook(type(error), error, error.__traceback__)
        logs.flush_log()
    finally:
        undo()
    written = "".join(file.read_text() for file in logs.log_path().parent.iterdir())
    assert "what led to it" in written and len(stopped) == 251  # the drive is stopped each time
    assert written.count("ZeroDivisionError: division by zero") == 1 and "for the 100th time" in written
    assert written.count("Traceback") == 2 and "ValueError: invalid literal" in written
