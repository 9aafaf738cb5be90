"""Every code block and command of the documentation runs as printed.

```python blocks of a page run in order in one process; lines starting with `$ ` in ```console blocks run in a
shell, in the same folder, with the program on the path. `make` targets are what continuous integration runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LONG

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def runnable(page: Path) -> list[tuple[str, str]]:
    return [(kind, body) for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")) if body.strip()]


def commands(body: str) -> list[str]:
    joined = body.replace("\\\n", " ")
    lines = [line[2:] for line in joined.splitlines() if line.startswith("$ ")]
    return [line for line in lines if not line.startswith("make ")]


def script(blocks: list[tuple[str, str]]) -> str:
    """One Python program that runs the page from top to bottom."""
    parts = ["import subprocess as _subprocess"]
    for kind, body in blocks:
        if kind == "python":
            parts.append(body)
        else:
            parts += [f"_subprocess.run({line!r}, shell=True, check=True)" for line in commands(body)]
    return "\n".join(parts)


@pytest.mark.parametrize("page", [p for p in PAGES if runnable(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_given_a_page_when_its_examples_run_then_they_succeed(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text(script(runnable(page)), encoding="utf-8")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "QT_QPA_PLATFORM": "offscreen",
        "MPLBACKEND": "Agg",
    }
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def test_given_the_pages_then_every_link_between_them_leads_somewhere() -> None:
    link = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
    links = [(page, target) for page in PAGES for target in link.findall(page.read_text(encoding="utf-8"))]
    broken = [f"{page.name} -> {target}" for page, target in links if not (page.parent / target).exists()]
    assert not broken
