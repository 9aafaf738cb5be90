"""Tables of public measurements, on excerpts of them; where a file is missing, one sentence says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis import SILENT, ShakedownError
from app.reproduce import make_table
from app.reproduce.real import records

DATA = Path(__file__).parents[2] / "data"


def test_given_no_files_then_a_sentence_says_where_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    with pytest.raises(ShakedownError, match=r"silverbox/SNLS80mV.csv is not part .* SHAKEDOWN_DATA"):
        make_table("real-silverbox", SILENT)


def test_given_the_benchmark_file_then_its_official_split_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = np.column_stack([np.arange(131_072.0), np.zeros(131_072)])
    monkeypatch.setattr(records, "_table", lambda *_: rows)
    train, tests = records.silverbox()
    assert (train["u"][0], train["u"][-1]) == (40_650, 105_711)
    ends = {name: (test["u"][0], test["u"][-1]) for name, test in tests.items()}
    assert ends == {
        "multisine": (105_712, 127_399),
        "arrow": (100, 40_574),
        "arrow without extrapolation": (100, 32_099),
    }
