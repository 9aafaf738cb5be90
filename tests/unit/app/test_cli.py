"""The command line's manners: exit codes, one sentence, nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from app.cli import COMMANDS, main

ROOT = Path(__file__).parents[3]


def test_given_help_then_every_command_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(re.search(rf"\b{name}\b", shown) for name in COMMANDS)


def test_given_an_unknown_command_then_exit_code_is_two(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["shimmy"])
    assert stop.value.code == 2
    assert "shimmy" in capsys.readouterr().err


@pytest.mark.parametrize("name", list(COMMANDS))
def test_given_any_command_when_asked_for_help_then_it_explains_itself(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(import_module(COMMANDS[name][0]).run)
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert f"shakedown {name}" in capsys.readouterr().out


def test_given_help_then_no_heavy_library_is_loaded() -> None:
    code = (
        "import sys; from app.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = 'numpy scipy sympy numba PyQt6 nidaqmx h5py matplotlib'.split()\n"
        "sys.exit(','.join(set(heavy) & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
