"""Information criterion over the number of terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures.saving import save
from app.figures.style import MEASURED, MODEL, SOFT, new_figure, styled

if TYPE_CHECKING:
    from analysis import Selection


def save_sizes(found: Selection, path: str) -> None:
    """The criterion of the best set of each size; the kept one is marked, and what each has more is named."""
    sizes = [len(ranked.terms) for ranked in found.sizes]
    lowest = min(ranked.criterion for ranked in found.sizes)
    heights = [ranked.criterion - lowest + 1.0 for ranked in found.sizes]
    with styled():
        figure = new_figure(6.4, 3.8)
        axis = figure.subplots()
        axis.semilogy(sizes, heights, "o-", color=MEASURED, ms=5)
        best = min(range(len(heights)), key=heights.__getitem__)
        axis.semilogy(sizes[best], heights[best], "o", color=MODEL, ms=10, label="kept", zorder=0)
        before: set[str] = set()
        for x, y, ranked in zip(sizes, heights, found.sizes, strict=True):
            words = ", ".join(str(found.library.candidates[n]) for n in ranked.terms if n not in before)
            before = set(ranked.terms)
            axis.annotate(
                f"+ {words}" if words else "none", (x, y), (6, 8), textcoords="offset points", fontsize=7,
                rotation=30, color=SOFT,
            )  # fmt: skip
        axis.set_xlim(min(sizes) - 0.6, max(sizes) + 2.5)
        axis.set_xticks(sorted(sizes))
        axis.margins(y=0.2)
        axis.set(xlabel="number of terms", ylabel="criterion above the best, + 1")
        axis.set_title("Best set of each size")
        axis.legend(loc="upper right")
        save(figure, path, dpi=150)
