"""Held orbits beside a model whose only orbit is known in closed form: the driven linear oscillator."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis import DataError, prepare_subject
from analysis.validation.held import HeldMotion, check_held
from app.held_orbits import read_held
from tests.unit.validation.test_grades import driven_record, oscillator


def _held(noise: float = 1e-3) -> HeldMotion:
    """x'' + 0.2 x' + 4 x = cos 1.5 t, as it would have been averaged."""
    phase = 2 * np.pi * np.arange(40) / 40
    amplitude = 1 / (4 - 1.5**2 + 0.3j)
    x = (amplitude * np.exp(1j * phase)).real
    v = (1.5j * amplitude * np.exp(1j * phase)).real
    seen = x + noise * np.random.default_rng(1).standard_normal(40)
    return HeldMotion(1, 1, np.array([x, v]), {"x": seen}, {"x": np.full(40, noise)}, 0.6, 0.01)


def test_when_the_model_has_the_held_orbit_then_it_passes_and_one_with_another_stiffness_fails() -> None:
    subject = prepare_subject(oscillator(), driven_record(), {})
    check = check_held(subject, [_held()])
    assert check.status == "passed", check.sentence
    assert 0.6 < check.numbers["over errors"] < 1.4
    stiffer = prepare_subject(oscillator(), driven_record(), {"k": 4.6})
    assert check_held(stiffer, [_held()]).status == "failed"
    assert check_held(subject, []).status == "not possible"
    other = replace(_held(), outputs={"y": np.zeros(40)})
    assert check_held(subject, [other]).status == "failed"


def test_when_a_result_of_hold_is_read_then_only_held_orbits_count(tmp_path: Path) -> None:
    orbit = {"number": 3, "periods": 1, "verdict": "held", "states": {"x": [0.0] * 4, "v": [1.0] * 4},
             "orbit": {"x": {"mean": [0.0] * 4, "stderr": [0.1] * 4}}, "multipliers": [[2.0, 0.0]],
             "multiplier_errors": [0.1]}  # fmt: skip
    path = tmp_path / "held.json"
    path.write_text(json.dumps({"orbits": [orbit, {**orbit, "verdict": "lost"}]}))
    (found,) = read_held(str(path), oscillator())
    assert found.number == 3 and found.states.shape == (2, 4) and found.multiplier == 2.0
    flat = json.dumps({"orbits": [{**orbit, "states": [1.0]}]})
    for text in ('{"orbits": []}', '{"orbits": [{"verdict": "held"}]}', "[]", flat):
        path.write_text(text)
        with pytest.raises(DataError, match=r"nothing to compare|not a result of"):
            read_held(str(path), oscillator())
