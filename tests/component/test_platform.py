"""Posix and its twin for Windows keep the same contract.

On Windows the twin runs on the system's own functions, elsewhere on stand-ins for them.
"""

from __future__ import annotations

import ast
import errno
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import pytest

from analysis import DataError, Record
from app.campaign.child import _watch_parent
from app.campaign.store import Store
from app.library import free_path
from drivers.base.drive_page import DrivePage
from drivers.base.files import replaced
from drivers.base.system import LOCKED_BYTE, Posix, System, Windows, safe_stem
from drivers.formats import write

if sys.platform != "win32":
    import fcntl

ROOT = Path(__file__).parents[2]
ON_WINDOWS = sys.platform == "win32"


def locking(handle: int, mode: int, count: int) -> None:
    """msvcrt.locking on POSIX: a mandatory lock of bytes from the position on, refused if another has it."""
    assert mode == 2 and count == 1 and os.lseek(handle, 0, os.SEEK_CUR) == LOCKED_BYTE
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(13, "Permission denied") from None


class Dll:
    """kernel32 and winmm: keeps what it was asked."""

    asked: ClassVar[list[tuple[str, tuple[Any, ...]]]] = []

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, function: str) -> Any:
        def call(*args: Any) -> int:
            self.asked.append((f"{self.name}.{function}", args))
            return -1

        return call


@pytest.fixture(params=["posix", "windows"])
def system(request: pytest.FixtureRequest) -> System:
    Dll.asked = []
    if request.param == "windows":
        return Windows() if ON_WINDOWS else Windows(locking, Dll)
    if ON_WINDOWS:
        pytest.skip("another system")
    return Posix()


def test_given_a_locked_file_then_nobody_else_locks_it_until_it_is_closed(
    system: System, tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"0123456789")
    first, second = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    os.lseek(first, 4, os.SEEK_SET)
    assert system.lock(first)
    assert os.read(first, 2) == b"45"  # the position is where it was
    assert not system.lock(second)
    assert path.read_bytes() == b"0123456789"  # a reader is not hindered
    os.close(first)
    assert system.lock(second)
    os.close(second)


def test_given_a_process_when_it_is_killed_then_it_is_gone(system: System) -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    system.kill(process.pid)
    assert process.wait(30) != 0


def test_given_a_target_then_it_is_replaced_in_one_step(system: System, tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    new.write_text("new")
    old.write_text("old")
    system.replace(new, old)
    assert old.read_text() == "new" and not new.exists()


def test_given_a_file_that_we_hold_then_it_can_be_removed(system: System, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"0")
    handle = os.open(path, os.O_RDONLY)
    assert system.lock(handle)
    system.remove(path, handle)
    assert not path.exists()
    with pytest.raises(OSError):
        os.fstat(handle)


def test_given_a_target_that_is_open_elsewhere_then_windows_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_elsewhere = threading.Event()
    really = Path.replace

    def refused(source: Path, target: Path) -> Path:
        if not open_elsewhere.is_set():
            raise PermissionError(13, "The process cannot access the file")
        return really(source, target)

    monkeypatch.setattr(Path, "replace", refused)
    (tmp_path / "new").write_text("new")
    threading.Timer(0.1, open_elsewhere.set).start()
    Windows(locking, Dll).replace(tmp_path / "new", tmp_path / "old")
    assert (tmp_path / "old").read_text() == "new"


def test_given_priorities_sessions_and_timers_then_asking_never_fails(system: System) -> None:
    if isinstance(system, Posix):
        words = "from drivers.base.system import *; import os; set_priority(7); lead_session(); fine_timers()"
        ask = f"{words}; print(os.nice(0), os.getsid(0) == os.getpid())"
        done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
        assert done.stdout == "7 True\n"
        return
    system = Windows(locking, Dll)  # not the real functions: they would take the console from the tests
    for steps in (-10, 0, 15):
        system.set_priority(steps)
    system.lead_session()
    system.fine_timers()
    assert ("kernel32.FreeConsole", ()) in Dll.asked
    classes = [args[1] for name, args in Dll.asked if name == "kernel32.SetPriorityClass"]
    assert classes == [0x8000, 0x20, 0x4000]  # above normal, normal, below normal
    assert ("winmm.timeBeginPeriod", (1,)) in Dll.asked


def test_given_a_process_of_its_own_session_then_the_keys_of_our_terminal_do_not_reach_it(
    system: System,
) -> None:
    if isinstance(system, Windows):
        new_process_group, no_window = 0x200, 0x08000000  # of CreateProcess
        assert system.own_session() == {"creationflags": new_process_group | no_window}
        return
    ask = [sys.executable, "-c", "import os; print(os.getsid(0), os.getpid())"]
    session, process = subprocess.check_output(ask, text=True, **system.own_session()).split()
    assert session == process != str(os.getsid(0))


def test_given_files_that_are_written_then_only_handles_open_for_writing_are_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FlushFileBuffers of Windows refuses a handle that is open for reading only."""
    flushed: list[int] = []

    def fsync(handle: int) -> None:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            flushed.append(handle)
            if ON_WINDOWS:
                really(handle)  # refuses by itself
            elif fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                raise OSError(errno.EBADF, "Bad file descriptor")

    really = os.fsync
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.delattr(os, "fdatasync", raising=False)
    with replaced(tmp_path / "settings.toml") as partial:
        partial.write_text("rig = 1")
    assert (tmp_path / "settings.toml").read_text() == "rig = 1" and len(flushed) == 1
    record = Record.from_arrays(100.0, {"x": np.arange(50.0)})
    for ending in ("h5", "csv", "tdms"):
        flushed.clear()
        write(record, tmp_path / f"copy.{ending}")
        assert flushed


def test_given_a_page_that_another_process_has_open_then_its_end_is_not_hindered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = DrivePage.create(tmp_path / "drive.page", {"rig": "beam"})

    def refused(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "The process cannot access the file")

    monkeypatch.setattr(Path, "unlink", refused)
    page.closed = True
    page.remove()
    monkeypatch.undo()
    page.remove()
    assert not page.path.exists()


def test_given_a_campaign_under_way_then_no_second_one_writes_there_on_any_system(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivers.base.system.lock", system.lock)
    with Store(tmp_path / "results"), pytest.raises(DataError, match="Another campaign"):
        Store(tmp_path / "results")
    with Store(tmp_path / "results"):
        pass


def test_given_a_parent_whose_number_stays_when_it_is_gone_then_the_child_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parent = subprocess.Popen([sys.executable, "-c", ""])
    parent.wait()
    monkeypatch.setattr(os, "getppid", lambda: parent.pid)

    def ended(code: int) -> NoReturn:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", ended)
    with pytest.raises(SystemExit):
        _watch_parent(parent.pid)


def test_given_our_modules_then_no_name_in_them_depends_on_the_system() -> None:
    """Types are checked for the other systems in the modules that use what differs, each by itself."""
    which = re.compile(r"sys\.platform|os\.name|platform\.system")
    modules = (m for package in ("app", "drivers", "analysis") for m in (ROOT / package).rglob("*.py"))
    asking = {m: text for m in modules if which.search(text := m.read_text(encoding="utf-8"))}
    assert ROOT / "drivers" / "base" / "system.py" in asking
    found = [
        f"{module.relative_to(ROOT)}:{node.lineno}"
        for module, text in asking.items()
        for node in _outside_functions(ast.parse(text))
        if isinstance(node, ast.If) and which.search(ast.unparse(node.test))
    ]
    assert not found


def test_given_the_tests_that_the_workflow_runs_on_other_systems_then_they_can_be_loaded_there() -> None:
    posix = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
    workflow = (ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    (named,) = re.findall(r"setup_environment\.py test (.+)", workflow)
    files = [
        f
        for name in named.split()
        for f in ((ROOT / name).rglob("*.py") if "." not in name else [ROOT / name])
    ]
    assert len(files) > 100
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in files
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if (isinstance(node, ast.Import) and posix & {name.name for name in node.names})
        or (isinstance(node, ast.ImportFrom) and node.module in posix)
    ]
    assert not found


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for part in ast.iter_child_nodes(node):
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield part
            yield from _outside_functions(part)


def test_given_a_long_path_then_windows_is_told_that_it_is_long() -> None:
    windows = Windows(locking, Dll)
    deep = "C:\\" + "\\".join(["measured"] * 40)
    assert str(windows.long_path(Path(deep))) == f"\\\\?\\{deep}"
    share = "\\\\server\\share\\" + "x" * 250
    assert str(windows.long_path(Path(share))) == f"\\\\?\\UNC{share[1:]}"
    assert str(windows.long_path(Path("C:\\short"))) == "C:\\short"
    assert Posix().long_path(Path("/" + "x" * 300)) == Path("/" + "x" * 300)


@pytest.mark.parametrize(
    ("given", "kept"),
    [("run 1", "run-1.h5"), ("CON", "CON_.h5"), ("lpt1.old", "lpt1_.old.h5"), ('a:b*c?"d', "a-b-c-d.h5"),
     ("x" * 300, "x" * 120 + ".h5"), ("ends.", "ends.h5")],
)  # fmt: skip
def test_given_words_of_a_user_then_the_file_name_is_taken_by_every_system(
    given: str, kept: str, tmp_path: Path
) -> None:
    assert free_path(tmp_path, given).name == kept
    assert safe_stem(Path(kept).stem) == Path(kept).stem


def test_given_a_wait_of_ten_milliseconds_then_it_ends_near_that_time() -> None:
    begun = time.perf_counter()
    time.sleep(0.01)
    assert time.perf_counter() - begun >= 0.0099
