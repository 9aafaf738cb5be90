"""The command `frf` from a recording to numbers, files that other programs read, and a figure."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import pyuff
from scipy import signal
from scipy.io import loadmat

from analysis import Excitation, Record
from app.cli import main
from app.transfer_table import read_transfer
from drivers.base.waveform import OddMultisine
from drivers.formats import read, write

RATE = 500.0


@pytest.fixture(scope="module")
def shaken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One mode at 20 Hz with 3 % damping under white noise."""
    w = 2 * np.pi * 20.0
    b, a, _ = signal.cont2discrete(([w**2], [1, 0.06 * w, w**2]), 1 / RATE, "zoh")
    u = np.random.default_rng(1).standard_normal(40_000)
    x = signal.lfilter(b.ravel(), a, u)
    path = tmp_path_factory.mktemp("frf") / "shaken.csv"
    write(Record.from_arrays(RATE, {"f": u, "x": x}, {"f": "N", "x": "mm"}), path)
    return path


def test_given_a_recording_then_the_mode_and_files_that_others_read(shaken: Path, tmp_path: Path, capsys):
    outs = {kind: tmp_path / f"response.{kind}" for kind in ("csv", "mat", "uff")}
    for out in outs.values():
        line = f"frf {shaken} --input f --output x --lines 2000 --out {out} --json -"
        assert main(line.split()) == 0
        found = json.loads(capsys.readouterr().out)
    (mode,) = found["resonances"]
    assert mode["frequency"] == pytest.approx(20.0, rel=2e-3)
    assert mode["damping"] == pytest.approx(0.03, rel=0.05)
    truth = np.array(found["real"]) + 1j * np.array(found["imag"])
    table = read_transfer(str(outs["csv"]), read)
    assert table.response == pytest.approx(truth, rel=1e-9)
    assert loadmat(outs["mat"])["response"].ravel() == pytest.approx(truth, rel=1e-12)
    response, coherence = pyuff.UFF(str(outs["uff"])).read_sets()
    assert (response["func_type"], coherence["func_type"]) == (4, 6)
    assert response["data"] == pytest.approx(truth, rel=1e-9)
    assert response["x"] == pytest.approx(found["frequency"], rel=1e-4)
    assert coherence["data"] == pytest.approx(found["coherence"], rel=1e-9)
    assert (response["ordinate_axis_units_lab"].strip(), response["abscissa_spec_data_type"]) == ("mm/N", 18)


def test_given_a_multisine_then_the_kind_of_nonlinearity_a_figure_and_uneven_lines(tmp_path: Path, capsys):
    drive = OddMultisine(1.0, 5.0, 60.0, 0.5, seed=4)
    u = drive.generator(RATE).take(6000)
    x = u + 0.2 * u**3 + 1e-3 * np.random.default_rng(2).standard_normal(len(u))
    path, figure, out = tmp_path / "bent.csv", tmp_path / "bent.png", tmp_path / "bent.uff"
    write(Record.from_arrays(RATE, {"f": u, "x": x}), path)
    line = f"frf {path} --input f --output x --period 2 --plot {figure} --out {out} --json -"
    assert main(line.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert [d["kind"] for d in found["distortions"] if d["clear"]] == ["odd"]
    assert "cubic" in found["verdict"]
    assert figure.stat().st_size > 10_000
    response = pyuff.UFF(str(out)).read_sets()
    assert response["x"] == pytest.approx(found["frequency"], rel=1e-5)
    assert response["data"] == pytest.approx(np.array(found["real"]) + 1j * np.array(found["imag"]), rel=1e-9)


def test_given_a_record_of_a_sine_then_it_says_where_the_response_means_anything(tmp_path: Path, capsys):
    t = np.arange(5000) / RATE
    rng = np.random.default_rng(0)
    drive = Excitation(12.0, 1.0, 0.0)
    tone = Record.from_arrays(
        RATE,
        {"f": np.cos(24 * np.pi * t) + 0.01 * rng.standard_normal(5000), "x": rng.standard_normal(5000)},
        excitation=drive,
    )
    write(tone, tmp_path / "sine.h5")
    assert main(f"frf {tmp_path / 'sine.h5'} --input f --output x".split()) == 0
    assert "only at that frequency" in capsys.readouterr().out


def test_given_what_makes_no_sense_then_one_sentence(shaken: Path, tmp_path: Path, capsys):
    for line, words in (
        (f"frf {shaken} --input q --output x", "No channel 'q'"),
        (f"frf {shaken} --input f --output x --method multisine", "period of a multisine"),
        (f"frf {shaken} --input f --output x --out {tmp_path / 'a.xls'}", ".csv, .mat, .uff"),
        (f"frf {shaken} {shaken} --input f --output x", "one recording"),
    ):
        assert main(line.split()) == 1
        assert words in capsys.readouterr().err
