"""What is left out of a report is named in it, and a verdict never goes without its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.text import Text
from PyQt6.QtCore import QLocale

from analysis import DataError, Estimate, Excitation, Identification, Record
from analysis.base.identification import Residual
from app.figures.identification import draw_identification
from app.report import write_document
from app.report.blocks import Document, Grid, Heading, Paragraph, Picture
from app.report.content import document
from app.report.findings import PARTS, Findings, Measured, Study
from app.report.localised import as_it_stands, localised_block, localised_but
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


@pytest.fixture
def german() -> Iterator[None]:
    before = QLocale()
    QLocale.setDefault(QLocale("de_DE"))
    yield
    QLocale.setDefault(before)


@pytest.mark.usefixtures("german")
def test_given_a_locale_then_numbers_and_dates_are_its_own_and_words_of_others_stay() -> None:
    drive = Excitation(frequency=7.5, amplitude=1.25)
    record = Record.from_arrays(10.5, {"x": 0.5 + np.sin(np.arange(50.0))}, excitation=drive)
    record = replace(record, start="2026-11-18T14:05:09+01:00", metadata={"notes": "gap of 0.3 mm"})
    fit = Identification(
        "path", "spring", True, {"k": Estimate.normal(-2.0, 0.1)}, warnings=("In run 2.5.h5 k is 3.5e-05.",)
    )
    findings = Findings("t", "bolt 1.5 turns", recordings=[Measured("run 2.5.h5", record, "abc")])
    made = document(replace(findings, studies=[Study(fit)]))
    texts = [b.text for b in made.blocks if isinstance(b, Heading | Paragraph)]
    cells = [cell for b in made.blocks if isinstance(b, Grid) for row in b.rows for cell in row]
    assert {"In run 2.5.h5 k is 3,5e−05.", "bolt 1.5 turns", "Recording run 2.5.h5"} <= set(texts)
    assert {"−2,00 ± 0,10", "gap of 0.3 mm", "sine 1,25 at 7,5 Hz"} <= set(cells)
    assert "18.11.2026  14:05 (2026-11-18T14:05:09+01:00)" in cells
    assert any("50 samples at 10,5 Hz" in cell for cell in cells)
    assert any(f"numpy {np.__version__}" in cell for cell in cells)
    assert re.search(r"written \d\d\.\d\d\.\d{4} ", made.subtitle)


@pytest.mark.usefixtures("german")
def test_given_a_locale_then_figures_have_its_decimal_mark() -> None:
    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharex=True)
        left.plot([0.0, 1.0], [1e-3, 1.0])
        left.set(yscale="log", title="f = 2.5 Hz, $c_1 = 0.5, d$")
        right.plot([0.0, 1.0], [0.0, 0.5])

    figure = Figure(layout="constrained")
    picture = localised_block(Picture(draw, "Up to 0.5 mm."))
    assert isinstance(picture, Picture) and picture.caption == "Up to 0,5 mm."
    picture.draw(figure)
    figure.draw_without_rendering()
    texts = {text.get_text() for text in figure.findobj(Text)}
    assert {"0,5", "0,2", "f = 2,5 Hz, $c_1 = 0{,}5, d$"} <= texts
    assert not any(re.search(r"\d\.\d", text) for text in texts)


@pytest.mark.usefixtures("german")
def test_given_names_with_points_when_localised_then_only_the_numbers_around_them_change() -> None:
    words = localised_but(["f2.5", "run 2.5 b", "run 2.5"])
    assert words("k = 2.5 (run 2.5 b), 3.5 (run 2.5)") == "k = 2,5 (run 2.5 b), 3,5 (run 2.5)"
    grid = Grid(["", "k"], [["f2.5", "2.5"], ["4.5 s", "-1.5"]], "of f2.5: 0.5", numeric=(1,))
    told = localised_block(grid, words)
    assert told == Grid(["", "k"], [["f2.5", "2,5"], ["4,5 s", "-1,5"]], "of f2.5: 0,5", numeric=(1,))
    printed = localised_block(Grid(["", "k"], [["eq. 4.1", "2.5"]], "table 4.2", numeric=(1,)), as_it_stands)
    assert printed == Grid(["", "k"], [["eq. 4.1", "2,5"]], "table 4.2", numeric=(1,))


def test_given_numbers_in_a_row_then_their_separator_is_no_decimal_mark() -> None:
    QLocale.setDefault(QLocale("de_DE"))
    try:
        residual = Residual(chi2=2.5, dof=3, rms={"x": 0.25, "v": 1.5})
        fit = Identification("path", "spring", True, {"k": Estimate.normal(2.0, 0.1)}, residual=residual)
        made = [localised_block(b) for b in document(Findings("t", studies=[Study(fit)])).blocks]
    finally:
        QLocale.setDefault(QLocale("C"))
    (told,) = [b.text for b in made if isinstance(b, Paragraph) and b.text.startswith("Residual")]
    assert "rms x 0,25; rms v 1,5" in told and not re.search(r"\d, ", told)


def test_given_words_in_lines_then_they_stay_in_lines(tmp_path: Path) -> None:
    html, _ = write_document(Document("t", blocks=[Paragraph("one <\ntwo")]), tmp_path / "report")
    assert "<p>one &lt;<br>two</p>" in html.read_text(encoding="utf-8")


def test_given_a_short_search_then_its_steps_are_counted_in_whole_ones() -> None:
    history = [{"step": 0.3}, {"step": 0.001}]
    fit = Identification("path", "spring", True, {"k": Estimate.normal(2.0, 0.1)}, history=history)
    figure = Figure()
    draw_identification(figure, fit, {})
    ticks = next(a for a in figure.axes if a.get_xlabel() == "iteration").get_xticks()
    assert all(float(tick).is_integer() for tick in ticks)
