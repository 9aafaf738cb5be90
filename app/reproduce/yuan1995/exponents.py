"""Lyapunov exponents of chapter 3."""

from __future__ import annotations

from analysis import Progress
from app.reproduce import Table
from app.reproduce.rows import AGREES, WRONG, Row, same
from app.reproduce.yuan1995.comparison import comparison_table
from app.reproduce.yuan1995.portraits import portrait
from drivers.library import load_model

# printed largest and smallest; unit of time of our run; the largest that is right, and what is wrong in print
EXPONENTS = {
    "duffing": ((0.18, -0.468), 4000.0, "a short run; the sum must be -0.2885"),
    "coulomb": ((0.13, -39.8), 2000.0, "a short run"),
    "parametric": ((2.03, -32.35), 40_000.0, "these are Lorenz's"),
    "lorenz": ((2.03, -32.35), 400.0, "a short run, printed under the parametric system"),
}


def exponents(progress: Progress) -> Table:
    """Lyapunov exponents in bits per unit time, largest and smallest."""
    from analysis import lyapunov_spectrum

    rows: list[Row] = []
    figures = []
    for done, (name, (printed, duration, words)) in enumerate(EXPONENTS.items()):
        progress.report(done / len(EXPONENTS), name)
        found = lyapunov_spectrum(load_model(name), duration, transient=0.05 * duration)
        for which, index, number in (("largest", 0, printed[0]), ("smallest", -1, printed[1])):
            row = same(name, f"{which} exponent", number, float(found.bits[index]), 0.05)
            row = row._replace(stderr=float(found.bits_stderr[index]))
            rows.append(row if row.verdict == AGREES else row.but(f"{WRONG}: {words}"))
        figures.append(portrait(name))
    return comparison_table(
        "exponents",
        "Lyapunov exponents of chapter 3, bits per unit time",
        rows,
        "Their sum is minus the damping over ln 2 where damping is viscous, which checks ours.",
        figures=figures,
    )
