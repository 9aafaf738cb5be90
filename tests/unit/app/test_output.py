"""What is printed: nothing that a terminal would obey, one line for each error."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import pytest

import app.commands.models
from analysis.base.errors import DataError
from analysis.base.record import Record
from app.cli import UNEXPECTED, main
from app.output import PrintableStream, sentence, table
from drivers.formats import write

HOSTILE = "x\x1b]0;owned\x07\x1b[2J\u202eevil\u2066\x9b31m"


def test_given_escapes_in_a_file_then_they_are_shown_not_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Record.from_arrays(
        100.0, {HOSTILE: np.arange(50.0), "two\nlines": np.arange(50.0)}, {HOSTILE: "mm\x1b[0m"},
        metadata={"note\x1b[1m": "bad\x1b[31m\rnews"},
    )  # fmt: skip
    path = tmp_path / "a.h5"
    write(record, path)
    assert main(["info", str(path)]) == 0
    assert main(["embed", str(path), "--channel", "none"]) == 1
    assert main(["info", str(tmp_path / f"{HOSTILE}.csv")]) == 1
    shown = capsys.readouterr()
    for text in (shown.out, shown.err):
        assert not any(c in text for c in "\x1b\x07\r\u202e\u2066\x9b")
        assert "\\x1b" in text
    assert shown.err.count("\n") == 2
    assert "two lines" in shown.out  # a name is one cell of a table


def test_given_a_terminal_without_our_letters_then_they_are_escaped() -> None:
    raw = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    PrintableStream(raw).write("µ – \udcff\n")
    raw.flush()
    assert raw.buffer.getvalue() == b"\\xb5 \\u2013 \\udcff\n"  # type: ignore[attr-defined]


def test_given_any_error_then_one_line() -> None:
    assert sentence("a\nb\r\n\tc \x00") == "a b c \\x00"
    assert len(sentence("x" * 5000)) <= 1000


def test_given_words_in_a_table_then_columns_stay_aligned() -> None:
    lines = table(("a", "b"), [("x\ny", 1.0), ("\x1b[1m", 2.0)]).split("\n")
    assert len(lines) == 4
    assert len(set(map(len, lines))) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "duffing", "--set=--"],
        ["embed", "a.csv", "--plot=--"],
        ["orbits", "a.csv", "--channel", "x", "--list", "1e3"],
        ["embed"],
        ["identify", "a", "b", "--method", "guess\x1b[2J"],
        ["info", "a", "--nope\n--nope"],
    ],
)
def test_given_wrong_usage_then_one_sentence_and_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "\x1b" not in said.err
    assert len(said.err) < 500


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["orbits", "a.csv", "--channel", "x", "--longest=-inf"], "--longest needs a finite number"),
        (["simulate", "duffing", "--rate", "nan"], "--rate needs a finite number"),
        (["simulate", "duffing", "--gain", "1e999"], "--gain needs a finite number"),
        (["simulate", "duffing", "--seed=-1"], "seed must not be negative"),
        (["acquire", "two_well_beam", "--seed", "-1", "--out", "a"], "seed must not be negative"),
        (["demo", "--seed", "9" * 5000], "--seed cannot be as large"),
        (["orbits", "a.csv", "--channel", "x", "--delay", str(1 << 70)], "--delay cannot be as large"),
        (["embed", "a.csv", "--channel", "x", "--plot", "a.h5"], "png, svg or pdf"),
    ],
)
def test_given_an_impossible_number_then_one_sentence_and_code_1(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert word in said
    assert said.count("\n") == 1
    assert len(said) < 200


def test_given_a_mistake_of_ours_then_one_sentence_names_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def broken(args: object) -> None:
        warnings.warn("noise", RuntimeWarning, stacklevel=1)
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(app.commands.models, "run", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["models"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"shakedown: {UNEXPECTED}: ZeroDivisionError in test_output.py:")
    assert said.count("\n") == 1
    (log,) = (tmp_path / "shakedown").iterdir()
    assert str(log) in said
    assert "by\nzero" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_given_no_place_for_a_log_then_the_sentence_stands_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app.commands.models, "run", lambda args: 1 // 0)
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/nowhere")
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/dev/null")
    assert main(["models"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_given_an_error_for_people_then_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(args: object) -> None:
        raise DataError("This is\n why.")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(app.commands.models, "run", refused)
    assert main(["models"]) == 1
    assert capsys.readouterr().err == "shakedown: This is why.\n"
    assert list(tmp_path.iterdir()) == []
