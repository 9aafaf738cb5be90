"""The version is said in one place; what must repeat it agrees."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from analysis import __version__

ROOT = Path(__file__).parents[3]


def test_given_the_version_then_package_and_citation_agree() -> None:
    assert version("shakedown-lab") == __version__
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None and cited[1] == __version__
