"""The step of the installation that compiles the numerical core."""

from __future__ import annotations

import subprocess
import sys

ASKED = """
from app.prepare import prepare
prepare()
from analysis.estimate.path.solver import backward, forward, linearise
from analysis.estimate.shooting.run import _run
from analysis.estimate.weak.system import _covariance_of_shifts
needed = (backward, forward, linearise, _run, _covariance_of_shifts)
print([f.py_func.__name__ for f in needed if not f.signatures])
"""
REST = """
from app.prepare import main
main(["reconstruction"])
from analysis.orbits.returns import _window_minima
from analysis.reconstruct.exponents import _divergence
from analysis.reconstruct.local_maps import _fit_maps
from analysis.reconstruct.neighbours import _pair_counts
needed = (_window_minima, _divergence, _fit_maps, _pair_counts)
print([f.py_func.__name__ for f in needed if not f.signatures])
"""


def test_given_a_fresh_process_when_the_core_is_prepared_then_what_every_model_needs_is_compiled() -> None:
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_given_a_fresh_process_when_the_rest_is_prepared_then_a_chaotic_record_needs_nothing_more() -> None:
    done = subprocess.run([sys.executable, "-c", REST], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
