"""The set-up script says in a sentence what it lacks, on Pythons that are too old for the program, too."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import setup_environment

ROOT = Path(setup_environment.__file__).parent


def test_given_an_old_python_then_it_can_read_the_script_and_says_what_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ast.parse((ROOT / "setup_environment.py").read_text(encoding="utf-8"), feature_version=(3, 8))
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    with pytest.raises(SystemExit, match=r"needs Python 3\.11 or newer, and .* is 3\.10\."):
        setup_environment.main(["run"])


def test_then_the_oldest_python_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=" + ".".join(map(str, setup_environment.OLDEST))


def test_given_a_python_that_makes_no_environments_then_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_environment, "BIN", tmp_path / ".venv" / "bin")
    monkeypatch.setattr(setup_environment, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"cannot make environments .*python3-venv"):
        setup_environment.environment()
    assert not (tmp_path / ".venv").exists()


@pytest.mark.parametrize("words", [[], ["nonsense"], ["run", "now"]])
def test_given_words_that_it_does_not_know_then_it_says_those_that_it_does(words: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"setup \| check \| test"):
        setup_environment.main(words)


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_given_ctrl_c_while_a_command_runs_then_the_command_ends_it_in_its_own_time() -> None:
    """subprocess.run kills it 0.25 s after Ctrl-C; a window ramps its shaker down and saves."""
    slow = "import signal, time; signal.signal(signal.SIGINT, lambda *_: None); time.sleep(1.5); exit(7)"
    program = f"import setup_environment as s, sys\ns.run(sys.executable, '-c', {slow!r})"
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, start_new_session=True) as process:
        time.sleep(0.7)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 7
