"""The experiment on the virtual rig without a window, and the report of it."""

import json
import re
import tomllib

import numpy as np
import pytest

from analysis import Record
from app.cli import main
from app.commands import demo as demo_command
from drivers.rig.profile import load_rig


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Twelve seconds of the demonstration, as a user would run it."""
    folder = tmp_path_factory.mktemp("demo")
    out = folder / "summary.json"
    asked = ["--seconds", "12", "--specimen", "77", "--out", str(folder / "session"), "--json", str(out)]
    code = main(["demo", *asked])
    return code, json.loads(out.read_text()), folder / "session"


def test_given_the_virtual_rig_when_the_demo_runs_then_the_parameters_are_the_true_ones(demo):
    code, summary, _ = demo
    assert code == 0
    assert summary["converged"]
    known = {n: p for n, p in summary["parameters"].items() if p["truth"] is not None}
    assert set(known) == {"c", "k1", "k2", "k3", "k4"} and summary["specimen"] == 77
    assert abs(known["c"]["truth"] / 0.035 - 1) > 0.1  # a beam of its own, not the published one
    for found in known.values():
        assert abs(found["value"] - found["truth"]) < 4 * found["stderr"]
        assert abs(found["error_percent"]) < 1
    assert 2 <= summary["embedding"]["dimension"] <= 6
    assert summary["embedding"]["delay"] <= 187.5 / 7.5 / 4  # samples: a quarter of the drive's period
    exponents = summary["exponents"]
    assert exponents["model"] > 3
    assert (
        abs(exponents["model"] - exponents["truth"])
        < 4 * exponents["model_stderr"] + 4 * exponents["truth_stderr"]
    )
    assert summary["validated"]
    assert summary["checks"]["residuals"] == "passed"


def test_given_exponents_far_apart_or_of_two_motions_when_shown_then_words_say_so():
    alike = {"model": 6.6, "model_stderr": 0.4, "truth": 6.2, "truth_stderr": 0.3}
    alike |= {"model_left_chaos": 0.0, "truth_left_chaos": 0.0}
    words = demo_command._exponent_words
    assert "left chaos" not in words(alike) and "DIFFER" not in words(alike)
    assert "DIFFER by 11.0 standard errors" in words({**alike, "truth": 1.1})
    assert "25 % of the runs of the truth left chaos" in words({**alike, "truth_left_chaos": 0.25})
    assert words({}) == ""


def test_given_a_beam_that_reaches_its_stops_when_shown_then_it_is_said():
    profile = load_rig("two_well_beam")
    motion = np.sin(np.arange(200.0))
    assert demo_command._stop_words(profile, Record.from_arrays(100.0, {"x": 2.0 * motion})) == ""
    assert "struck its stops at 2.4" in demo_command._stop_words(
        profile, Record.from_arrays(100.0, {"x": 2.4 * motion})
    )


def test_given_the_demo_then_the_session_lists_what_was_made_and_the_report_needs_nothing_else(demo):
    _, summary, folder = demo
    session = tomllib.loads((folder / "session.toml").read_text(encoding="utf-8"))
    assert [r["file"] for r in session["recordings"]] == ["beam.h5"]
    assert [r["file"] for r in session["results"]] == ["identification.json"]
    html, pdf = (folder / "report.html").read_text(encoding="utf-8"), (folder / "report.pdf").read_bytes()
    assert summary["files"] == [str(folder / "report.html"), str(folder / "report.pdf")]
    assert session["recordings"][0]["sha256"] in html
    assert not re.search(r'(src|href)="(?!data:)', html)  # self-contained
    assert html.count("data:image/png") >= 6
    assert "max_iterations" in html and "per_record" in html  # options of the method, the data and the finish
    assert "w**2*(-k1*x" in html  # model
    assert pdf.startswith(b"%PDF")


def test_given_a_session_folder_when_reported_then_html_and_pdf_are_written(demo, tmp_path, capsys):
    folder = demo[2]
    assert main(["report", str(folder), "--out", str(tmp_path / "again.html")]) == 0
    assert str(tmp_path / "again.html") in capsys.readouterr().out
    assert "Periodic orbits" in (tmp_path / "again.html").read_text(encoding="utf-8")


def test_given_a_single_result_when_reported_without_its_recording_then_the_rest_is_there(demo, tmp_path):
    result = tmp_path / "fit.json"
    result.write_bytes((demo[2] / "identification.json").read_bytes())
    assert main(["report", str(result), "--out", str(tmp_path / "fit.pdf")]) == 0
    assert (tmp_path / "fit.pdf").read_bytes().startswith(b"%PDF")


def test_given_a_result_and_its_recording_when_reported_then_no_folder_is_named(demo, tmp_path):
    result, recording, out = (
        str(demo[2] / "identification.json"),
        str(demo[2] / "beam.h5"),
        tmp_path / "r.html",
    )
    assert main(["report", result, "--recording", recording, "--out", str(out)]) == 0
    html = out.read_text(encoding="utf-8")
    assert "Recording beam.h5" in html
    assert str(demo[2]) not in html


@pytest.mark.parametrize("text", ["", "not json", '{"method": 1}', "[]"])
def test_given_a_file_that_is_no_result_when_reported_then_one_sentence_says_so(tmp_path, capsys, text):
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    assert main(["report", str(bad)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_given_a_folder_that_is_no_session_when_reported_then_one_sentence_says_so(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 1
    assert "no session" in capsys.readouterr().err
    (tmp_path / "session.toml").write_text("recordings = 3")
    assert main(["report", str(tmp_path)]) == 1
    assert "not the list of a session" in capsys.readouterr().err


def test_given_too_few_seconds_when_the_demo_is_asked_for_then_it_declines(capsys):
    assert main(["demo", "--seconds", "1"]) == 1
    assert "between 4 and 3600" in capsys.readouterr().err
