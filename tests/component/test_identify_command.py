"""The command identify, run as a user would."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.identification import Identification
from app.cli import main

MODEL = """name = "Hardening spring"
[states]
x = "v"
v = "-c*v - k1*x - k3*x**3 + a*cos(1.33*t)"
[parameters]
c = { guess = 0.3, lower = 0, upper = 3, unit = "1/s" }
k1 = 0.5
k3 = { guess = 1.4 }
a = { guess = 20 }
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("identify")
    times = np.arange(1200) * 0.08

    def rhs(t, z):
        return [z[1], -0.2 * z[1] - 0.5 * z[0] - z[0] ** 3 + 27 * np.cos(1.33 * t)]

    clean = solve_ivp(rhs, (0, times[-1]), [1, 0], t_eval=times, rtol=1e-10, atol=1e-10, method="DOP853").y
    noisy = clean + 0.05 * np.random.default_rng(0).standard_normal(clean.shape)
    np.savetxt(folder / "run.csv", np.vstack([times, noisy]).T, delimiter=",", header="t,disp,v", comments="")
    (folder / "spring.toml").write_text(MODEL)
    return folder


def test_given_a_recording_when_identified_then_json_and_figure_hold_the_truth(files, capsys):
    figure = files / "fit.png"
    command = ["identify", str(files / "run.csv"), str(files / "spring.toml"), "--map", "x=disp"]
    code = main([*command, "--method", "path", "--guess", "k1=0.3", "--json", "-", "--plot", str(figure)])
    result = Identification.from_json(capsys.readouterr().out)
    assert code == 0
    assert result.converged
    assert result.recordings[0]["file"] == str(files / "run.csv")
    assert len(result.recordings[0]["sha256"]) == 64
    for name, truth in {"c": 0.2, "k1": 0.5, "k3": 1.0, "a": 27.0}.items():
        found = result.parameters[name]
        assert abs(found.value - truth) < 4 * found.stderr
    assert result.parameters["c"].unit == "1/s"
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_given_wrong_words_when_identified_then_one_sentence_and_code_one(files, capsys):
    command = ["identify", str(files / "run.csv"), str(files / "spring.toml"), "--method", "path"]
    assert main([*command, "--option", "colour=red"]) == 1
    assert "this method takes" in capsys.readouterr().err
    assert main([*command, "--map", "x=nothing"]) == 1
    assert "No channel 'nothing'" in capsys.readouterr().err
    assert main([*command, "--set", "k9=1"]) == 1
    assert "k9" in capsys.readouterr().err
    assert capsys.readouterr().out == ""


def test_given_a_model_when_identified_then_the_verdict_stands_first_and_decides_the_exit_code(files, capsys):
    command = ["identify", str(files / "run.csv"), str(files / "spring.toml"), "--map", "x=disp"]
    assert main([*command, "--method", "path"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("Hardening spring: fits the data to their noise (R² 0.999")
    kept = files / "wrong.json"
    wrong = [*command, "--method", "path", "--set", "k3=0.5", "--free", "c,a"]
    code = main([*wrong, "--json", str(kept)])
    result = Identification.from_json(kept.read_text())
    assert (code, result.verdict) in ((1, "cannot tell"), (3, "misses"))
    assert result.reasons
    assert "MISSES" in result.headline or "CANNOT TELL" in result.headline
    assert "do not" in capsys.readouterr().err
