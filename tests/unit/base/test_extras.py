"""The command that a missing extra's sentence tells, for each way in which the program can be installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from analysis.base import extras
from analysis.base.extras import EXTRAS, install_command

RECEIPT = """[tool]
requirements = [
    { name = "shakedown-lab", path = "/lab/shakedown_lab-0.1.0-py3-none-any.whl" },
    { name = "shakedown-tcp", directory = "/lab/tcp-source" },
    { name = "shakedown-odd", specifier = ">=1" },
]
"""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that came from the index and has no extra but that for searches."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(extras, "_package", lambda names: f"shakedown-lab[{','.join(names)}]")
    absent = extras.Extra("Nothing", ("no_such_module",))
    present = extras.Extra("Something", ("json",))
    for name in EXTRAS:
        monkeypatch.setitem(EXTRAS, name, present if name == "search" else absent)
    return tmp_path


def test_given_a_tool_of_uv_then_its_extras_and_the_packages_beside_it_are_kept(prefix: Path) -> None:
    (prefix / "uv-receipt.toml").write_text(RECEIPT)
    tool = 'uv tool install "shakedown-lab[ni,search]"'
    assert install_command("ni") == f'{tool} --with "/lab/tcp-source" --with "shakedown-odd"'


def test_given_a_receipt_that_cannot_be_read_then_the_command_is_told_without_it(prefix: Path) -> None:
    (prefix / "uv-receipt.toml").write_text("[tool]\nrequirements = 7\n")
    assert install_command("ni") == 'uv tool install "shakedown-lab[ni,search]"'


def test_given_pipx_then_its_own_pip_adds_the_extra(prefix: Path) -> None:
    (prefix / "pipx_metadata.json").write_text("{}")
    assert install_command("visa") == 'pipx runpip shakedown-lab install "shakedown-lab[visa]"'


def test_given_any_other_environment_then_pip_adds_it(prefix: Path) -> None:
    assert install_command("visa") == 'pip install "shakedown-lab[visa]"'
