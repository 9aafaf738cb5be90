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


def test_given_a_spectrum_of_a_uniform_cantilever_then_its_stiffness_and_the_next_resonances(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Roots of cosh(b) cos(b) = -1; five peaks over 3 dB of noise."""
    roots = np.array([1.875104068712, 4.694091132974, 7.854757438238, 10.995540734875, 14.137168391046])
    at = roots**2 / (2 * np.pi * 0.759**2) * np.sqrt(90.0 / 2.044)
    f = np.arange(8000) * 0.085333
    size = 1e-4 + sum(1.0 / np.abs(1 - (f / p) ** 2 + 0.003j * f / p) for p in at) / 100
    level = 20 * np.log10(size) + 3.0 * np.random.default_rng(4).normal(size=len(f))
    (tmp_path / "cantilever").mkdir()
    rows = "\n".join(f"{a:.6f}\t{b:.6f}" for a, b in zip(f, level, strict=True))
    (tmp_path / "cantilever" / "FFT_data.lvm").write_text("header\n" * 24 + rows, encoding="utf-8")
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    found = {row.quantity: row for row in make_table("real-cantilever", SILENT).rows}
    assert found["EI [N m^2]"].ours == pytest.approx(90.0, rel=0.01)
    assert found["resonance 4 [Hz]"].ours == pytest.approx(at[3], rel=0.005)
    assert {found[f"resonance {n} [Hz]"].verdict for n in (4, 5)} == {"agrees"}
