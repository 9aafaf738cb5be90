"""Banks, Crowley 1983: the table of the simply supported beam, as published and in the production form."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis import SILENT, Identification, Progress, Record
from analysis.estimate.functions.beam import Options, identify
from analysis.estimate.functions.beam.examples import (
    banks_beam,
    banks_coverage,
    banks_error,
    banks_record,
    banks_stiffness,
)
from analysis.estimate.functions.beam.galerkin import spline_space
from app.reproduce import Figure, Table
from app.reproduce.rows import WRONG, Row, least

PRINTED = {  # M: ((J, E) for N = 2, 4, 6)
    1: ((2.1e-4, 0.0207), (4.3e-5, 0.0106), (2.0e-5, 0.0055)),
    2: ((1.8e-4, 0.0213), (1.3e-5, 0.0115), (1.6e-5, 0.0060)),
    3: ((1.8e-4, 0.0048), (9.1e-6, 0.0146), (3.4e-6, 0.0010)),
}
ELEMENTS = (2, 4, 6)
SEEDS = 10
SMOOTH = Options(losses=0)  # the stiffness of the document has no crack


def table(progress: Progress) -> Table:
    """The published table: plain least squares beside the penalised fit that is the default."""
    whole, half = (banks_record(np.linspace(0.0, end, round(10 * end) + 1)) for end in (1.0, 0.5))
    near = banks_beam().with_profile("stiffness", shape=banks_stiffness)
    ours = identify(banks_beam(), [whole], SMOOTH, SILENT)
    rows: list[Row] = []
    figures: dict[str, Any] = {}
    for done, (m, i, n) in enumerate((m, i, n) for m in PRINTED for i, n in enumerate(ELEMENTS)):
        progress.report((done + 1) / 10, f"N = {n}, M = {m}")
        case, options = f"N = {n}, M = {m}", Options(fit="published", elements=n, intervals=m)
        cost, error = PRINTED[m][i]
        fitted = identify(near, [whole], options, SILENT)
        short = identify(near, [half], options, SILENT)
        flat = identify(banks_beam(), [whole], options, SILENT)
        rows.append(_misfit(case, cost, fitted.residual.chi2, least_misfit(n, whole), _total(ours)))
        rows.append(least(case, "J, data to t = .5", cost, short.residual.chi2, None, tolerance=0.5))
        started = f"plain from the flat guess {banks_error(flat):.3f}"
        rows.append(least(case, "E", error, banks_error(fitted), banks_error(ours), note=started))
        if n == ELEMENTS[-1]:
            figures[f"plain, {case}"] = _line(fitted)
    figures["default, N = 16, M = 8"] = _line(ours)
    return Table(
        "banks1983-table",
        "Stiffness of a simply supported beam (J: sum of squares, E: L2 error of the stiffness)",
        rows,
        notes=(
            "Data at t = .1 to 1. 'plain' is least squares with N elements and M intervals, started at the "
            "truth; 'ours' is the default (N = 16, M = 8, penalty by restricted likelihood), started at the "
            "flat guess 0.15, the same in all rows.",
            "With the stiffness kept positive, as the admissible set asks, plain Levenberg-Marquardt from "
            "the flat guess ends in a local minimum for M >= 2: the printed errors are reached only from "
            "near the truth.",
            "E of cells with few elements depends on unknowns that the data hardly determine: J can be "
            "compared, E only where N >= 4.",
        ),
        figures=(_with_truth("Stiffness along the beam, exact data", figures),),
    )


def least_misfit(elements: int, record: Record) -> float:
    """The least J that any displacement in the spline space can reach, whatever the stiffness."""
    places = np.arange(1, 10) / 10
    shapes = spline_space(1.0, elements, "pinned", "pinned").at(places)
    measured = np.array([record[name] for name in record.names])
    rest = measured - shapes @ np.linalg.lstsq(shapes, measured, rcond=None)[0]
    return float(np.sum(rest**2))


def _misfit(case: str, printed: float, plain: float, bound: float, ours: float) -> Row:
    row = least(case, "J, data to t = 1", printed, plain, ours)
    if printed < bound:
        return row.but(f"{WRONG}: no function of this space comes below {bound:.2g}")
    if printed < 0.5 * plain:
        return row.but(f"{WRONG}: least squares with this M leaves {plain:.2g}; it fits data to t = .5")
    return row


def _total(result: Identification) -> float:
    """J of the default fit, whose own sum of squares is weighted by the noise."""
    return result.residual.other["noise"] ** 2 * result.residual.other["samples"]


def noise(progress: Progress) -> Table:
    """Log-spline with the penalty let go, from the flat guess: noise of two sizes."""
    times = np.linspace(0.0, 2.0, 401)
    rows: list[Row] = []
    curves: dict[str, Any] = {}
    for i, level in enumerate((1e-3, 1e-2)):
        results = []
        for seed in range(SEEDS):
            progress.report((i + seed / SEEDS) / 2, f"noise {100 * level:g} %")
            results.append(identify(banks_beam(), [banks_record(times, level, seed)], SMOOTH, SILENT))
        errors = [banks_error(r) for r in results]
        case = f"noise {100 * level:g} %"
        rows += [
            least(case, "E, median", None, None, float(np.median(errors))),
            least(case, "E, largest", None, None, max(errors)),
            least(case, "% inside the 95 % band", None, None, _inside(results)),
        ]
        curves[case] = _line(results[0])
    return Table(
        "banks1983-noise",
        f"The same beam with noise, 400 times to t = 2, {SEEDS} seeds, from the flat guess",
        rows,
        notes=("The document has no noise. Noise is in parts of the largest displacement.",),
        figures=(_with_truth("Stiffness along the beam, noise", curves),),
    )


def _inside(results: list[Identification]) -> float:
    return 100 * float(np.mean([banks_coverage(r) for r in results]))


def _with_truth(title: str, curves: dict[str, Any]) -> Figure:
    x = np.linspace(0.0, 1.0, 101)
    truth = (x.tolist(), banks_stiffness(x).tolist())
    return Figure(title, "x", "alpha", {"truth": truth, **curves})


def _line(result: Identification) -> tuple[list[float], list[float]]:
    return result.curves["EI"].x, result.curves["EI"].y
