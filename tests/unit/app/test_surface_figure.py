"""Functions of two arguments in the figure of an identification."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from analysis.base.identification import Estimate, Identification, Surface
from app.figures.identification import save_figure


def test_given_a_surface_then_it_is_drawn_and_its_coefficients_are_not_listed(tmp_path: Path) -> None:
    x, y = np.linspace(-1, 1, 9), np.linspace(-2, 2, 9)
    z = np.add.outer(x**3, y)
    width = np.where(np.add.outer(x**2, y**2 / 4) > 1, 5.0, 0.01)  # little is known in the corners
    band = (z - width).tolist(), (z + width).tolist()
    surface = Surface(
        x.tolist(), y.tolist(), z.tolist(), *band, x_label="x", y_label="v", formula="H is x**3."
    )
    parameters = {n: Estimate.normal(1.0, 0.1) for n in ("c", "H_0_0", "H_0_11", "H_1")}
    result = Identification("path", "spring", True, parameters, surfaces={"H": surface})
    assert list(result.listed) == ["c", "H_1"] and result.formulas == [surface.formula]
    assert Identification.from_json(result.to_json()) == result
    save_figure(result, str(tmp_path / "found.svg"))
    drawn = (tmp_path / "found.svg").read_text(encoding="utf-8")
    assert "<pattern" in drawn
