"""What is left out of a report is named in it, and a verdict never goes without its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imsave

from analysis import DataError, Estimate, Identification, Record
from app.report import write_document
from app.report.blocks import Document, Grid, Heading, Paragraph
from app.report.content import document
from app.report.findings import PARTS, Findings, Measured, Study
from app.report.logo import HIGHEST, read_logo


def _fit(method: str) -> Study:
    return Study(Identification(method, "spring", True, {"k": Estimate.normal(2.0, 0.1)}, verdict="misses"))


def _texts(left_out: frozenset[str]) -> list[str]:
    record = Record.from_arrays(10.0, {"x": np.sin(np.arange(50.0))})
    findings = Findings(
        "t",
        recordings=[Measured("run", record, "abc")],
        studies=[_fit("weak"), _fit("path")],
        left_out=left_out,
    )
    blocks = document(findings).blocks
    texts = [b.text for b in blocks if isinstance(b, Heading | Paragraph)]
    return texts + [" ".join(map(str, row)) for b in blocks if isinstance(b, Grid) for row in b.rows]


def test_given_parts_left_out_then_they_are_named_and_the_verdict_stays() -> None:
    whole = _texts(frozenset())
    assert not any("Left out" in text for text in whole) and any("SHA-256" in text for text in whole)
    assert sum("identified by the method" in text for text in whole) == 2
    part = _texts(frozenset({"earlier", "again", "checks", "orbits"}))
    # of what was not there nothing is said
    (said,) = [text for text in part if text.startswith("Left out")]
    assert said == "Left out of this report: earlier fits, what it takes to run it again."
    assert sum("identified by the method" in text for text in part) == 1
    assert any("MISSES" in text for text in part) and not any("SHA-256" in text for text in part)
    bare = _texts(frozenset(PARTS))
    assert not any("k 2" in text for text in bare) and any("the fits" in text for text in bare)


def test_given_negative_numbers_then_the_minus_is_a_true_one_and_names_keep_their_hyphens() -> None:
    record = Record.from_arrays(10.0, {"x": np.sin(np.arange(50.0))})
    fit = Identification("path", "sine-2", True, {"k": Estimate.normal(-2.0, 0.1)})
    made = document(Findings("t", recordings=[Measured("sine-2", record, "abc")], studies=[Study(fit)]))
    cells = [cell for b in made.blocks if isinstance(b, Grid) for row in b.rows for cell in row]
    assert "−2.00 ± 0.10" in cells and "sine-2" in " ".join(cells)
    assert "T" not in made.subtitle.partition("written ")[2].partition(" (UTC")[0]


def test_given_a_logo_then_it_stands_in_both_files_and_what_is_no_picture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "logo.png"
    imsave(path, np.ones((2 * HIGHEST, 600, 3)))
    logo = read_logo(path)
    assert int.from_bytes(logo[20:24], "big") == HIGHEST  # made small
    html, pdf = write_document(Document("t", blocks=[Paragraph("p")], logo=logo), tmp_path / "report")
    text = html.read_text(encoding="utf-8")
    assert text.index('alt="logo"') < text.index("<h1>")
    assert b"/Image" in pdf.read_bytes()
    path.write_text("no picture", encoding="utf-8")
    for wrong in (path, tmp_path / "gone.png"):
        with pytest.raises(DataError, match="cannot be used as a logo"):
            read_logo(wrong)
