"""Liu, Chen, Chang 2019: the six examples and Table 1 from boundary data, and from the whole record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis import SILENT, Progress
from analysis.estimate.functions.energetic import identify
from analysis.estimate.functions.energetic.boundary import BoundaryResult
from analysis.estimate.functions.energetic.examples import EXAMPLES, Example
from app.reproduce import Figure, Table
from app.reproduce.rows import NOT_PRINTED, UNATTAINABLE, Row, least

# m, tolerance, printed maximum error, printed iterations (None: not legible)
TABLE_1: tuple[tuple[int, float, float, int | None], ...] = (
    (2, 1e-3, 0.153, 5),
    (3, 1e-3, 0.556, 10),
    (4, 1e-3, 1.224, 93),
    (2, 1e-2, 0.107, None),
    (2, 1e-4, 0.759, 54),
    (3, 1e-2, 0.496, None),
    (3, 8e-4, 0.569, None),
)
WHY = (
    "Corrected (sign of the t^2 terms, a^2 in B_j, E_k instead of its derivative in (22), work of H linear "
    "in the velocity), every energetic function makes the present estimate satisfy (22): the iteration "
    "stands still after one sweep, and with zero initial coefficients the result is the Hermite interpolant.",
    "The printed errors are matched only by particular initial coefficients: boundary data fix little more.",
)
PRINT_IS_EXACT = "the print has exact values at the ends, no record"
NOTHING = (None, None, None)  # no default of ours, its standard error and its error
STILL = f"{UNATTAINABLE}: corrected, the iteration stands still after one sweep"
SEEDS = 10


def examples(progress: Progress) -> Table:
    """The six examples from boundary values, and from the record."""
    rows: list[Row] = []
    figures = []
    for number, example in EXAMPLES.items():
        progress.report(number / 7, f"example {number}")
        zero = example.from_boundary()
        one = example.from_boundary(guess=np.ones(example.terms))
        ours = identify(example.model(), [example.record()], example.options(), SILENT)
        case = f"example {number}"
        rows.append(_largest(case, example, example.printed_error, zero, one, example.error(ours)))
        rows.append(
            Row(case, "iterations", None, example.printed_iterations, zero.iterations, *NOTHING, STILL)
        )
        t = np.linspace(0.0, example.end, 101)
        drawn: dict[str, tuple[Sequence[float], Sequence[float]]] = {
            "truth": (t.tolist(), example.truth_in_time(t).tolist()),
            "from the ends": (t.tolist(), zero.function(t).tolist()),
        }
        figures.append(Figure(f"Example {number}: {example.unknown}", "t", example.symbol, drawn))
    return Table(
        "liu2019-examples",
        "The six examples: 'plain' from the values at both ends alone, 'ours' from 201 exact samples",
        rows,
        notes=(*WHY, "Example 6 does not give the end of the motion: a = 1.15 reaches the printed 391."),
        figures=figures,
    )


def table_1(progress: Progress) -> Table:
    """Number of terms and tolerance in example 1."""
    example = EXAMPLES[1]
    ours = example.error(identify(example.model(), [example.record()], example.options(), SILENT))
    rows: list[Row] = []
    for i, (terms, tolerance, error, iterations) in enumerate(TABLE_1):
        progress.report(i / len(TABLE_1), f"m = {terms}")
        case = f"m = {terms}, tolerance {tolerance:g}"
        zero = example.from_boundary(terms, tolerance)
        one = example.from_boundary(terms, tolerance, np.ones(terms))
        rows.append(_largest(case, example, error, zero, one, ours))
        said = STILL if iterations else NOT_PRINTED
        rows.append(Row(case, "iterations", None, iterations, zero.iterations, *NOTHING, said))
    notes = (*WHY, "m of the last two rows is not legible in the document; 3 is assumed.")
    return Table("liu2019-table1", "Table 1: example 1 with other m and tolerance", rows, notes)


def record(progress: Progress) -> Table:
    """The six examples from 201 samples of the motion with noise, boundary values known."""
    rows: list[Row] = []
    figures = []
    for number, example in EXAMPLES.items():
        for level in (1e-3, 1e-2):
            progress.report((number - 1 + 50 * level) / 6, f"example {number}")
            data = [example.record(level, seed) for seed in range(SEEDS)]
            results = [identify(example.model(), [r], example.options(), SILENT) for r in data]
            case, error = (
                f"example {number}, noise {level:g}",
                float(np.median([*map(example.error, results)])),
            )
            inside = 100 * float(np.mean([*map(example.coverage, results)]))
            quantity = f"largest error of {example.unknown}"
            rows.append(least(case, quantity, example.printed_error, None, error, note=PRINT_IS_EXACT))
            rows.append(least(case, "% inside the 95 % band", None, None, inside))
        curve = results[0].curves[example.symbol]
        truth = example.truth(np.array(curve.x))
        curves: dict[str, tuple[Sequence[float], Sequence[float]]] = {
            "found - true, noise 0.01": (curve.x, (np.array(curve.y) - truth).tolist()),
            "95 % band": (curve.x, (np.array(curve.lower) - truth).tolist()),
            "": (curve.x, (np.array(curve.upper) - truth).tolist()),
        }
        title = f"Example {number}: {example.unknown} from the record"
        figures.append(Figure(title, example.unknown[2], f"error of {example.symbol}", curves))
    return Table(
        "liu2019-record",
        "The six examples from noisy records",
        rows,
        notes=(
            f"201 samples, noise in parts of the amplitude, medians of {SEEDS} seeds; values and slopes at "
            "the ends are known, as in the document.",
        ),
        figures=figures,
    )


def _largest(
    case: str,
    example: Example,
    printed: float,
    zero: BoundaryResult,
    one: BoundaryResult,
    ours: float,
) -> Row:
    note = f"plain with initial coefficients 1: {_error(example, one):.3g}"
    quantity = f"largest error of {example.unknown}"
    return least(case, quantity, printed, _error(example, zero), ours, note=note)


def _error(example: Example, result: BoundaryResult) -> float:
    t = np.linspace(0.0, example.end, 401)
    return float(np.max(np.abs(result.function(t) - example.truth_in_time(t))))
