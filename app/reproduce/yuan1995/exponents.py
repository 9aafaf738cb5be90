"""Lyapunov exponents of chapter 3."""

from __future__ import annotations

from analysis.progress import Progress
from app.reproduce import Table
from drivers.library import load_model

EXPONENTS = {
    "duffing": ((0.18, -0.468), 4000.0, "a short run; 0.211 and -0.499 are right"),
    "coulomb": ((0.13, -39.8), 2000.0, "a short run"),
    "parametric": ((2.03, -32.35), 40_000.0, "misplaced: these are Lorenz's"),
    "lorenz": ((2.03, -32.35), 400.0, "printed under the parametric system"),
}


def exponents(progress: Progress) -> Table:
    """Lyapunov exponents in bits per unit time, largest and smallest."""
    from analysis.lyapunov import lyapunov_spectrum

    rows = []
    for done, (name, (printed, duration, words)) in enumerate(EXPONENTS.items()):
        progress.report(done / len(EXPONENTS), name)
        found = lyapunov_spectrum(load_model(name), duration, transient=0.05 * duration)
        rows.append(
            (
                name,
                printed[0],
                float(found.bits[0]),
                float(found.bits_stderr[0]),
                printed[1],
                float(found.bits[-1]),
                words,
            )
        )
    return Table(
        "yuan1995-exponents",
        "Lyapunov exponents of chapter 3, bits per unit time",
        ("system", "printed largest", "ours", "std. error", "printed smallest", "ours smallest", "note"),
        rows,
        notes=("Their sum is minus the damping over ln 2 where damping is viscous, which checks ours.",),
    )
