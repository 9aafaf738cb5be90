"""What rests on a law that the record cannot test is said."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis import Identification, Model, Record, identify

_RESTS = "The numbers rest on the law assumed with q"


def fitted(law: str, steady: bool) -> Identification:
    """An oscillator with a damping of 0.1 v + 0.3 v|v| under one steady sine, or two sines from rest."""
    t = np.arange(1200) * 0.05

    def force(s: np.ndarray) -> np.ndarray:
        return np.cos(1.8 * s) if steady else 1.5 * np.cos(1.8 * s) + 1.5 * np.cos(2.45 * s)

    begun = round(120.0 / 0.05) * 0.05 if steady else 0.0
    x = solve_ivp(
        lambda s, y: [y[1], -0.1 * y[1] - 0.3 * y[1] * abs(y[1]) - 4.0 * y[0] + force(s)],
        (0, begun + t[-1]), [0.0, 0.0], t_eval=begun + t, rtol=1e-8, atol=1e-10, max_step=0.2,
    ).y[0]  # fmt: skip
    x = x + 0.01 * x.std() * np.random.default_rng(4).standard_normal(len(x))
    model = Model.from_equations(
        {"x": "v", "v": f"-c*v - q*{law} - k*x + f"},
        {"c": {"guess": 0.2}, "q": {"guess": 0.2}, "k": {"guess": 4.5}},
        inputs={"f": "measured"}, outputs={"x": "x"},
    )  # fmt: skip
    return identify(model, Record.from_arrays(20.0, {"x": x, "f": force(begun + t)}), "path")


def said(found: Identification) -> str:
    return next((w for w in found.warnings if w.startswith(_RESTS)), "")


def test_given_one_steady_sine_then_the_law_that_follows_it_as_well_is_named_with_its_numbers() -> None:
    assumed = fitted("v**3", True)
    assert assumed.verdict == "fits"  # the record cannot tell
    assert abs(assumed.parameters["c"].value - 0.1) > 8 * assumed.parameters["c"].stderr
    words = said(assumed)
    assert "with v|v| in its place the record is followed as well" in words and "c would be 0." in words
    would_be = float(words.split("c would be ")[1].split()[0])
    assert would_be == pytest.approx(0.1, abs=0.06)  # where it was 0.25


def test_given_motions_of_many_sizes_then_the_law_rests_on_the_record() -> None:
    right = fitted("v*abs(v)", False)
    assert right.verdict == "fits" and said(right) == ""
