"""Every code block and command of the documentation runs as printed.

```python blocks of a page run in order in one process; lines starting with `$ ` in ```console blocks run in
the same folder, or where `cd` went. The commands of the page that a newcomer starts with, and what only a
shell understands, run in a shell, with the program on the path; the other commands through the program's own
entry in the process of their page, which begins with everything imported. `make` targets are what continuous
integration runs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import names
from tests.waiting import LONG

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
IN_A_SHELL = {
    "README.md",
    "docs/how-to/install.md",
    "docs/how-to/run-a-campaign.md",  # it starts processes of its own
}
MORE_THAN_WORDS = re.compile(r"[|<>&;$`#*?~]")
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def runnable(page: Path) -> list[tuple[str, str]]:
    return [(kind, body) for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")) if body.strip()]


def commands(body: str) -> list[str]:
    joined = body.replace("\\\n", " ")
    lines = [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
    return [line for line in lines if not line.startswith("make ")]


def is_plain(line: str) -> bool:
    """Whether a line is a command of the program and nothing that only a shell understands."""
    quoted = re.sub(r"'[^']*'|\"[^\"$`]*\"", "", line)
    return line.startswith("shakedown ") and not MORE_THAN_WORDS.search(quoted)


def script(page: Path) -> str:
    """One Python program that runs the page from top to bottom."""
    in_a_shell = page.relative_to(ROOT).as_posix() in IN_A_SHELL
    parts = ["import os as _os", "import subprocess as _subprocess", "from app.cli import main as _main"]
    for kind, body in runnable(page):
        if kind == "python":
            parts.append(body)
            continue
        for line in commands(body):
            if line.startswith("cd "):
                parts.append(f"_os.chdir({line[3:]!r})")
            elif in_a_shell or not is_plain(line):
                parts.append(f"_subprocess.run({line!r}, shell=True, check=True)")
            else:
                parts.append(f"assert _main({shlex.split(line)[1:]!r}) == 0, {line!r}")
    return "\n".join(parts)


@pytest.fixture(scope="module")
def runner() -> Iterator[subprocess.Popen[str]]:
    """One process that has everything imported, from which each page's own begins."""
    command = [sys.executable, "-m", "tests.component.page_runner"]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "MPLBACKEND": "Agg"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        yield running
        assert running.stdin is not None
        running.stdin.close()  # its end


@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("page", [p for p in PAGES if runnable(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_given_a_page_when_its_examples_run_then_they_succeed(
    page: Path, tmp_path: Path, runner: subprocess.Popen[str]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "data").symlink_to(ROOT / "tests" / "data")  # as in the source tree
    program, output = tmp_path / "page.py", tmp_path / "printed.txt"
    program.write_text(script(page), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "QT_QPA_PLATFORM": "offscreen",
        "MPLBACKEND": "Agg",
    }
    assert runner.stdin is not None and runner.stdout is not None
    asked = {
        "program": str(program),
        "folder": str(tmp_path),
        "environment": environment,
        "output": str(output),
    }
    runner.stdin.write(json.dumps(asked) + "\n")
    runner.stdin.flush()
    code = runner.stdout.readline().strip()
    assert code == "0", f"exit code {code or 'none'}\n{output.read_text(errors='replace')[-6000:]}"


def test_given_the_pages_then_every_link_between_them_leads_somewhere() -> None:
    link = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
    links = [(page, target) for page in PAGES for target in link.findall(page.read_text(encoding="utf-8"))]
    made = ROOT / "docs" / names.PAGE  # when the manual is built, whose links are checked then
    broken = [
        f"{page.name} -> {target}"
        for page, target in links
        if not (page.parent / target).exists() and (page.parent / target) != made
    ]
    assert not broken
