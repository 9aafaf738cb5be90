"""Liu, Chen, Chang 2019: the six examples and Table 1 from boundary data, and from the whole record."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.energetic import identify
from analysis.energetic.boundary import BoundaryResult
from analysis.energetic.examples import EXAMPLES, Example
from analysis.progress import SILENT, Progress
from app.reproduce import Figure, Table

# m, tolerance, printed maximum error, printed iterations ("-": not legible)
TABLE_1: tuple[tuple[int, float, float, Any], ...] = (
    (2, 1e-3, 0.153, 5),
    (3, 1e-3, 0.556, 10),
    (4, 1e-3, 1.224, 93),
    (2, 1e-2, 0.107, "-"),
    (2, 1e-4, 0.759, 54),
    (3, 1e-2, 0.496, "-"),
    (3, 8e-4, 0.569, "-"),
)
WHY = (
    "Corrected (sign of the t^2 terms, a^2 in B_j, E_k instead of its derivative in (22), work of H linear "
    "in the velocity), every energetic function makes the present estimate satisfy (22): the iteration "
    "stands still after one sweep, and with zero initial coefficients the result is the Hermite interpolant.",
    "The printed errors are matched only by particular initial coefficients: boundary data fix little more.",
)
COLUMNS = ("printed error", "printed iterations", "ours, b = 0", "iterations", "ours, b = 1", "iterations")
SEEDS = 10


def examples(progress: Progress) -> Table:
    """The six examples from boundary values."""
    rows: list[list[Any]] = []
    figures = []
    for number, example in EXAMPLES.items():
        progress.report(number / 7, f"example {number}")
        zero = example.from_boundary()
        one = example.from_boundary(guess=np.ones(example.terms))
        rows.append(
            [
                number,
                example.unknown,
                example.printed_error,
                example.printed_iterations,
                _error(example, zero),
                zero.iterations,
                _error(example, one),
                one.iterations,
            ]
        )
        t = np.linspace(0.0, example.end, 101)
        curves = {
            "truth": (t.tolist(), example.truth_in_time(t).tolist()),
            "found": (t.tolist(), zero.function(t).tolist()),
        }
        figures.append(Figure(f"Example {number}", "t", example.symbol, curves))
    columns = ("example", "unknown", *COLUMNS)
    return Table(
        "liu2019-examples",
        "Maximum error from boundary data alone",
        columns,
        rows,
        notes=WHY,
        figures=tuple(figures),
    )


def table_1(progress: Progress) -> Table:
    """Number of terms and tolerance in example 1."""
    rows: list[list[Any]] = []
    for i, (terms, tolerance, error, iterations) in enumerate(TABLE_1):
        progress.report(i / len(TABLE_1), f"m = {terms}")
        zero = EXAMPLES[1].from_boundary(terms, tolerance)
        one = EXAMPLES[1].from_boundary(terms, tolerance, np.ones(terms))
        ours = (_error(EXAMPLES[1], zero), zero.iterations, _error(EXAMPLES[1], one), one.iterations)
        rows.append([terms, tolerance, error, iterations, *ours])
    columns = ("m", "tolerance", *COLUMNS)
    notes = (*WHY, "m of the last two rows is not legible in the document; 3 is assumed.")
    return Table("liu2019-table1", "Example 1 with other m and tolerance", columns, rows, notes=notes)


def record(progress: Progress) -> Table:
    """The six examples from 201 samples of the motion, boundary values known."""
    rows: list[list[Any]] = []
    for number, example in EXAMPLES.items():
        row: list[Any] = [number, example.unknown, example.printed_error]
        for noise, seeds in ((0.0, 1), (1e-3, SEEDS), (1e-2, SEEDS)):
            progress.report((number - 1 + noise) / 6, f"example {number}")
            data = [example.record(noise, seed) for seed in range(seeds)]
            results = [identify(example.model(), [r], example.options(), SILENT) for r in data]
            row.append(float(np.median([example.error(r) for r in results])))
            if noise:
                row.append(float(np.mean([example.coverage(r) for r in results])))
        rows.append(row)
    progress.report(1.0, "done")
    columns = (
        "example",
        "unknown",
        "printed (boundary)",
        "exact",
        "noise 1e-3",
        "in band",
        "noise 1e-2",
        "in band",
    )
    return Table(
        "liu2019-record",
        "Maximum error from the whole record",
        columns,
        rows,
        notes=(
            f"201 samples, noise in parts of the amplitude, medians of {SEEDS} seeds; values and slopes at "
            "the ends are known, as in the document.",
            "Example 6 does not give the end of the motion: a = 1.15 reaches the printed maximum of 391.",
        ),
    )


def _error(example: Example, result: BoundaryResult) -> float:
    t = np.linspace(0.0, example.end, 401)
    return float(np.max(np.abs(result.function(t) - example.truth_in_time(t))))
