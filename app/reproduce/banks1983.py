"""Banks, Crowley 1983: the table of the simply supported beam, as published and in the production form."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.beam import Options, identify
from analysis.beam.examples import banks_beam, banks_coverage, banks_error, banks_record, banks_stiffness
from analysis.identification import Identification
from analysis.progress import SILENT, Progress
from app.reproduce import Figure, Table

PRINTED = {  # M: ((J, E) for N = 2, 4, 6)
    1: ((2.1e-4, 0.0207), (4.3e-5, 0.0106), (2.0e-5, 0.0055)),
    2: ((1.8e-4, 0.0213), (1.3e-5, 0.0115), (1.6e-5, 0.0060)),
    3: ((1.8e-4, 0.0048), (9.1e-6, 0.0146), (3.4e-6, 0.0010)),
}
ELEMENTS = (2, 4, 6)
SEEDS = 10


def table(progress: Progress) -> Table:
    """The published table: plain least squares from near the truth and from the flat guess."""
    readings = {1.0: banks_record(np.linspace(0.0, 1.0, 11)), 0.5: banks_record(np.linspace(0.0, 0.5, 6))}
    near = banks_beam().with_profile("stiffness", shape=banks_stiffness)
    rows: list[list[Any]] = []
    cells = [(m, i, n) for m in PRINTED for i, n in enumerate(ELEMENTS)]
    for done, (m, i, n) in enumerate(cells):
        progress.report(done / len(cells), f"N = {n}, M = {m}")
        options = Options(fit="published", elements=n, intervals=m)
        row: list[Any] = [n, m, *PRINTED[m][i]]
        for beam, end in ((near, 1.0), (near, 0.5), (banks_beam(), 1.0)):
            result = identify(beam, [readings[end]], options, SILENT)
            row += [result.residual["chi2"], banks_error(result)]
        rows.append(row)
    progress.report(1.0, "done")
    columns = (
        "N",
        "M",
        "J printed",
        "E printed",
        "J t<=1",
        "E t<=1",
        "J t<=.5",
        "E t<=.5",
        "J flat",
        "E flat",
    )
    return Table(
        "banks1983-table",
        "Stiffness of a simply supported beam by plain least squares (E: L2 error)",
        columns,
        rows,
        notes=(
            "Columns 't<=1' and 't<=.5' start at the truth, data at t = .1 to 1 and to .5; 'flat' starts at "
            "0.15.",
            "The printed J for N = 2 lies below what any function of that space can reach for data to t = 1; "
            "it fits data to t = .5.",
            "With the stiffness kept positive, as the admissible set asks, plain Levenberg-Marquardt from "
            "the flat guess ends in a local minimum for M >= 2: the printed errors are reached only from "
            "near the truth.",
            "E of cells with few elements depends on unknowns that the data hardly determine: J can be "
            "compared, E only where N >= 4.",
        ),
    )


def production(progress: Progress) -> Table:
    """Log-spline with the penalty let go, from the flat guess: exact data, then noise."""
    cases = [("t = .1 to 1, exact", np.linspace(0.0, 1.0, 11), 0.0, 1)]
    cases += [
        (f"400 times to t = 2, noise {100 * s:g} %", np.linspace(0.0, 2.0, 401), s, SEEDS)
        for s in (1e-3, 1e-2)
    ]
    rows: list[list[Any]] = []
    curves: dict[str, Any] = {}
    for i, (name, times, noise, seeds) in enumerate(cases):
        results = []
        for seed in range(seeds):
            progress.report((i + seed / seeds) / len(cases), name)
            results.append(identify(banks_beam(), [banks_record(times, noise, seed)], Options(), SILENT))
        errors = [banks_error(r) for r in results]
        covered = float(np.mean([banks_coverage(r) for r in results])) if noise else None
        rows.append([name, seeds, float(np.median(errors)), max(errors), "-" if covered is None else covered])
        curves[name] = _line(results[0])
    x = np.linspace(0.0, 1.0, 101)
    curves["truth"] = (x.tolist(), banks_stiffness(x).tolist())
    progress.report(1.0, "done")
    return Table(
        "banks1983-production",
        "The same beam from the flat guess 0.15, N = 16, M = 8, penalty by restricted likelihood",
        ("data", "seeds", "E median", "E largest", "inside the 95 % band"),
        rows,
        notes=(
            "Noise in parts of the largest displacement. The band of exact data is not comparable: what is "
            "left there is the error of the splines, not noise.",
        ),
        figures=(Figure("Stiffness along the beam", "x", "alpha", curves),),
    )


def _line(result: Identification) -> tuple[list[float], list[float]]:
    return result.curves["EI"].x, result.curves["EI"].y
