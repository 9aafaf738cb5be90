"""The manual is whole: every command and method has its place, and the site builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.methods import METHODS
from app.cli import COMMANDS
from docs import command_line
from tests.waiting import LONG

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WANTED = (
    "tutorial.md",
    "how-to/connect-ni-hardware.md",
    "how-to/calibrate-a-strain-bridge.md",
    "how-to/sweep.md",
    "how-to/import-recordings.md",
    "how-to/write-a-model.md",
    "how-to/choose-a-method.md",
    "how-to/read-the-error-bars.md",
    "how-to/run-headless.md",
    "reference/command-line.md",
    "reference/model-language.md",
    "reference/file-formats.md",
    "reference/python.md",
    "explanation/architecture.md",
    "explanation/coverage.md",
    "explanation/benchmarks.md",
    "explanation/published.md",
)


def test_given_the_page_of_the_command_line_then_it_is_what_the_parsers_say() -> None:
    kept = command_line.PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", kept, re.MULTILINE) == list(COMMANDS)
    assert kept == command_line.page(), "make docs writes it anew"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_given_the_site_then_every_page_is_reached_from_its_navigation(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    navigation = set(re.findall(r'href="([^"]+)/"[^>]*class="md-nav__link"', front))
    methods = {f"methods/{name}" for name in METHODS}
    wanted = {name.removesuffix(".md") for name in WANTED} | methods
    assert wanted <= navigation, wanted - navigation
    written = {str(p.relative_to(DOCS).with_suffix("")) for p in DOCS.rglob("*.md")} - {"index"}
    assert written == navigation


def test_given_the_site_then_nothing_in_it_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//')
    assert not [p.name for p in site.rglob("*.html") if fetched.search(p.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("name", METHODS)
def test_given_a_method_then_its_page_has_an_example_limits_and_a_way_to_it(name: str) -> None:
    text = (DOCS / "methods" / f"{name}.md").read_text(encoding="utf-8")
    assert "```python" in text or "```console" in text, "no example that runs"
    assert re.search(r"(?i)limits|signs of|cannot know", text), "no word on limits"
    chooser = (DOCS / "how-to" / "choose-a-method.md").read_text(encoding="utf-8")
    assert f"methods/{name}.md" in chooser, "the how-to does not lead to it"
