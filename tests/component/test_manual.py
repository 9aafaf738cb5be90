"""The manual is whole: every command and method has its place, and the site builds without a warning."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mkdocs.exceptions import PluginError

import analysis
from analysis.estimate.methods import METHODS
from app.cli import COMMANDS
from docs import command_line, equations, names
from tests.waiting import LONG

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WIDEST = 88  # characters of a code line in the column of a window of 1300 pixels
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


def test_given_the_home_page_then_every_page_written_by_hand_is_one_click_away() -> None:
    home = DOCS / "index.md"
    linked = set(re.findall(r"\]\(([\w/-]+\.md)\)", home.read_text(encoding="utf-8")))
    assert linked == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}


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
    assert written | {names.PAGE.removesuffix(".md")} == navigation


def test_given_the_site_then_every_public_name_stands_there_with_what_its_source_says(site: Path) -> None:
    html = (site / "reference" / "names" / "index.html").read_text(encoding="utf-8")
    told = re.findall(r'<h3 id="[^"]+"><code>([^<]+)<', html)
    assert sorted(told) == sorted(analysis.__all__)
    assert (inspect.getdoc(analysis.identify) or "?").split("\n")[0] in html
    assert "samples[m, N] taken at t0 + k dt" in html  # a member's own line
    assert "resample(record: Record, rate: float) -&gt; Record" in re.sub(r"<[^>]+>", "", html)


def test_given_the_site_then_nothing_in_it_is_fetched_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//')
    assert not [p.name for p in site.rglob("*.html") if fetched.search(p.read_text(encoding="utf-8"))]


def test_given_the_site_then_its_parts_come_in_the_order_of_a_first_reading(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8")
    tabs = re.findall(r'md-tabs__link">\s*(.+?)\s*</a>', front)
    assert tabs == ["Home", "Tutorial", "How to", "Methods", "Reference", "Explanation", "Decisions"]


def built(site: Path, page: Path) -> str:
    """The HTML of a page."""
    folder = site / page.relative_to(DOCS).with_suffix("") if page.stem != "index" else site
    return (folder / "index.html").read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """A page without its code blocks."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", sorted((DOCS / "methods").glob("*.md")), ids=lambda p: p.stem)
def test_given_a_method_page_then_its_equations_are_drawn(page: Path, site: Path) -> None:
    fences = len(re.findall(r"^ *\$\$$", prose(page), re.MULTILINE))
    assert fences >= 2 and fences % 2 == 0, "no display equation, or one without an end"
    html = built(site, page)
    assert html.count('display="block"') == fences // 2
    assert "$$" not in html and "arithmatex" not in html
    tex = re.findall(r"\$\$.+?\$\$|\$[^$\n]+\$", prose(page), re.DOTALL)
    assert not [e for e in tex if re.search(r"\\[^a-zA-Z]|\\operatorname|\n *[-+=] ", e)], "not for GitHub"


def test_given_the_site_then_options_in_its_text_are_not_parted(site: Path) -> None:
    html = built(site, DOCS / "how-to" / "run-headless.md")
    assert '<code><span class="unbroken">--json</span> FILE</code>' in html


def test_given_an_equation_that_cannot_be_drawn_then_the_build_fails_with_it() -> None:
    marked = r'<span class="arithmatex">\(\nosuchcommand x\)</span>'
    with pytest.raises(PluginError, match="nosuchcommand"):
        equations.on_page_content(marked)
    assert "<math" in equations.on_page_content(r'<div class="arithmatex">\[\sin x &lt; 1\]</div>')


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda p: str(p.relative_to(DOCS)))
def test_given_a_page_then_its_lists_are_whole_and_its_code_fits_the_column(page: Path, site: Path) -> None:
    """What belongs to an item is indented by four, or the list breaks there and begins at 1 again."""
    html = built(site, page)
    assert html.count("<ol>") == len(re.findall(r"^1\. ", prose(page), re.MULTILINE))
    paragraphs = re.findall(r"<p>(.*?)</p>", html, re.DOTALL)
    assert not [p for p in paragraphs if re.search(r"\n\s*(?:- |\d+\. |\|)", p)], (
        "a list or table in a paragraph"
    )
    blocks = re.findall(r"^```\w+\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert not [line for block in blocks for line in block.splitlines() if len(line) > WIDEST]


@pytest.mark.parametrize("name", METHODS)
def test_given_a_method_then_its_page_has_an_example_limits_and_a_way_to_it(name: str) -> None:
    text = (DOCS / "methods" / f"{name}.md").read_text(encoding="utf-8")
    assert "```python" in text or "```console" in text, "no example that runs"
    assert re.search(r"(?i)limits|signs of|cannot know", text), "no word on limits"
    chooser = (DOCS / "how-to" / "choose-a-method.md").read_text(encoding="utf-8")
    assert f"methods/{name}.md" in chooser, "the how-to does not lead to it"


def test_given_the_page_of_diagnosis_then_the_messages_it_quotes_are_the_programs_own() -> None:
    folders = (ROOT / name for name in ("analysis", "drivers", "app"))
    texts = [p.read_text(encoding="utf-8") for folder in folders for p in folder.rglob("*.py")]
    joined = re.sub(r'"\s*\n\s*f?"', "", "\n".join(texts))  # sentences broken over lines
    page = (DOCS / "how-to" / "when-it-gives-nonsense.md").read_text(encoding="utf-8")
    quoted = re.findall(r'"([^"]+)"', page.split("## 1.")[1])
    assert len(quoted) >= 10
    assert [words for words in quoted if words not in joined] == []


def test_given_the_gallery_then_it_has_ten_recordings_with_a_command_each() -> None:
    page = (DOCS / "how-to" / "gallery.md").read_text(encoding="utf-8")
    parts = re.split(r"^\*\*(\d+)\. ", page, flags=re.MULTILINE)[1:]
    assert parts[::2] == [str(i) for i in range(1, 11)]
    assert all("$ shakedown " in part for part in parts[1::2])  # run by tests/component/test_docs.py
