"""Compiled code that is kept on disk and goes stale."""

import os
from pathlib import Path

from analysis.model.compiled import FILES, forget_stale_code


def test_given_a_newer_source_when_code_is_looked_through_then_only_older_code_goes(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "__pycache__").mkdir()
    for name in FILES:
        source = tmp_path / f"{name}.py"
        source.write_text("")
        os.utime(source, (1000, 1000))
    old, new, other = (
        tmp_path / "__pycache__" / f"{name}.nbi" for name in ("integrate.rk4", "section.cut", "basin.x")
    )
    for index, time in ((old, 900), (new, 1100), (other, 900)):
        index.write_text("")
        os.utime(index, (time, time))
    assert forget_stale_code(tmp_path) == [old]
    assert not old.exists()
    assert new.exists()
    assert other.exists()


def test_given_no_sources_when_code_is_looked_through_then_nothing_happens(tmp_path: Path) -> None:
    assert forget_stale_code(tmp_path) == []
