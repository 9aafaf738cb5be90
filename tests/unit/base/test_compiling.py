"""Compiled code that is kept on disk follows its sources, however deep they lie."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# It only calls: a function through another module, and a constant of a module without machine code.
CALLER = """
from analysis.base.compiling import njit
from analysis.signal.constant import LEVEL
from analysis.simulation.flow import piece_values

@njit(cache=True)
def call(piece, s, coefficients, u):
    piece_values(piece, s, coefficients, u)
    return u[0]

@njit(cache=True)
def level(x):
    return LEVEL*x
"""
USE = """
import json
import numpy as np
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation import caller, flow
from analysis.simulation.simulate import sensitivities, simulate
from numba.core import event

compiled = []
class Listener(event.Listener):
    def on_start(self, e): compiled.append(e.data["dispatcher"].py_func.__name__)
    def on_end(self, e): pass
event.register("numba:compile", Listener())

inputs = Inputs.from_samples(0.0, 1.0, np.ones(4), "linear")
driven = Model.from_equations({"x": "u - a*x"}, {"a": 1.0}, inputs={"u": "measured"})
turned = Model.from_equations({"x": "sin(x)"}, {"a": 1.0})
u, slopes, coefficients = np.empty(1), np.empty((1, 16)), np.ones((1, 2, 4))
turned.kernels().rhs_many(np.zeros(16), np.full((1, 16), 0.5), np.empty((0, 16)), np.ones(1), slopes)
answers = {
    "integrator": simulate(
        driven, [0.0, 1.0], [0.0], inputs=inputs, method="rk4", substeps=50).states[0, -1],
    "generated run": sensitivities(
        driven, [0.0, 1.0], [0.0], inputs=inputs, wrt=["a"], method="rk4", substeps=20)[0][0, -1],
    "inputs": inputs.values(np.array([0.5]))[0, 0],
    "generated kernel": slopes[0, 3],
    "caller": caller.call(0, 0.0, coefficients, u),
    "level": caller.level(1.0),
}
print(json.dumps([{name: float(v) for name, v in answers.items()}, compiled]))
"""
CHANGES = {
    "signal/inputs.py": ("position = (t - t0) / dt", "u[:] = 0.0\n        return"),
    "model/runtime.py": ("    return r + (z * r) *", "    return r + 2.0 * (z * r) *"),
    "simulation/flow.py": ("u[i] = c[0]", "u[i] = 3.0 * c[0]"),
    "signal/constant.py": ("LEVEL = 1.0", "LEVEL = 2.0"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "analysis", tmp_path / "analysis", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "analysis" / "simulation" / "caller.py").write_text(CALLER)
    (tmp_path / "analysis" / "signal" / "constant.py").write_text("LEVEL = 1.0\n")
    return tmp_path


def answers(tree: Path) -> tuple[dict[str, float], list[str]]:
    environment = {**os.environ, "SHAKEDOWN_CACHE": str(tree / "cache"), "PYTHONPATH": str(tree)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", USE], env=environment, capture_output=True, text=True, cwd=tree, check=False
    )
    assert done.returncode == 0, done.stderr
    found, compiled = json.loads(done.stdout)
    return found, compiled


def test_given_a_change_in_the_deepest_functions_then_every_dependent_answer_changes(tree: Path) -> None:
    before, compiled = answers(tree)
    assert before["integrator"] == pytest.approx(0.6321205588)  # 1 - exp(-1)
    assert before["generated kernel"] == pytest.approx(0.4794255386)
    assert compiled
    for file in CHANGES:
        (tree / "analysis" / file).touch()  # a new time of the same text is no change
    again, compiled = answers(tree)
    assert again == before and compiled == []

    for file, (old, new) in CHANGES.items():
        path = tree / "analysis" / file
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
    after, compiled = answers(tree)
    assert compiled
    assert after["integrator"] == after["generated run"] == after["inputs"] == 0.0
    assert after["generated kernel"] == pytest.approx(0.4794255386 - (0.5 - 0.4794255386))
    assert after["caller"] == 3 * before["caller"]
    assert after["level"] == 2.0
