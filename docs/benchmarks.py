"""The page of the benchmarks and its plot, from the kept results: `python -m docs.benchmarks`."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.__main__ import names
from benchmarks.store import runs

PAGE = Path(__file__).parent / "explanation" / "benchmarks.md"
PLOT = Path(__file__).parent / "images" / "benchmark-growth.svg"
HEAD = """# How fast, beside the peers

Ours and a peer do the same work on the same data in one run; the time is processor time in seconds, the ratio
how many times faster we are, and *agrees* tells whether the answer is the same (or right, where the truth is
known). A row without a peer's time shows our growth with the size of the work, or work that no peer does.
`make bench` installs the peers into an environment of their own, runs everything, keeps the results in
`benchmarks/results/` with a description of the machine, says what became slower since the last run, and
writes this page.
"""
COLUMNS = (
    "| work | peer | peer s | ours s | ratio | agrees | note |",
    "| --- | --- | ---: | ---: | ---: | --- | --- |",
)
SIZED = re.compile(r"^(?P<work>.*), N = (?P<size>[\d ]+)$")

Run = dict[str, Any]


def latest() -> dict[str, Run]:
    """The last kept run of every benchmark that has one."""
    # coverage has a page of its own
    kept = {name: runs(name) for name in names() if name != "coverage"}
    return {name: many[-1] for name, many in kept.items() if many}


def page(kept: dict[str, Run]) -> str:
    parts = [HEAD]
    if any(growth(kept).values()):
        parts += [
            "## Growth",
            f"![Our time against the number of samples](../images/{PLOT.name})",
            "",
        ]
    parts += [_section(name, run) for name, run in kept.items()]
    return "\n".join(parts)


def growth(kept: dict[str, Run]) -> dict[str, list[tuple[int, float]]]:
    """Our seconds by the number of samples, for work that was measured at several sizes."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for run in kept.values():
        for row in run["rows"]:
            match = SIZED.match(row["work"])
            if (
                match and row["peer_seconds"] is None
            ):  # data shared with a peer are other data
                size = int(match["size"].replace(" ", ""))
                found[match["work"]][size] = row["our_seconds"]
    return {
        work: sorted(sizes.items()) for work, sizes in found.items() if len(sizes) > 1
    }


def draw(kept: dict[str, Run], path: Path = PLOT) -> None:
    """Growth as a plot with both axes logarithmic, and a line of proportional growth beside it."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams["svg.hashsalt"] = (
        "shakedown"  # the same picture from the same numbers
    )
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    for work, points in growth(kept).items():
        axis.loglog(*zip(*points, strict=True), "o-", ms=4, lw=1.2, label=work)
    low, high = axis.get_xlim()
    axis.loglog(
        [low, high], [1e-6 * low, 1e-6 * high], "k:", lw=1, label="1 µs a sample"
    )
    axis.set(xlabel="samples N", ylabel="processor time [s]")
    axis.grid(True, which="major", alpha=0.3)
    axis.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def _section(name: str, run: Run) -> str:
    machine = run["machine"]
    where = f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']}, Python {machine['python']}"
    lines = [f"## {name}", "", f"{run['date'][:10]}; {where}.", "", *COLUMNS]
    return "\n".join([*lines, *(_row(row) for row in run["rows"]), ""])


def _row(row: dict[str, Any]) -> str:
    agrees = {True: "yes", False: "**no**", None: ""}[row["agrees"]]
    ratio = "" if row["ratio"] is None else f"{row['ratio']:.3g}"
    if row["wanted"] is not None and row["ratio"] is not None:
        ratio += f" (wanted {row['wanted']:g})"
    peer_seconds = "" if row["peer_seconds"] is None else f"{row['peer_seconds']:.3g}"
    peer = "" if row["peer"] == "-" else row["peer"]
    cells = (
        row["work"],
        peer,
        peer_seconds,
        f"{row['our_seconds']:.3g}",
        ratio,
        agrees,
        row["note"],
    )
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    kept = latest()
    if any(growth(kept).values()):
        draw(kept)
    PAGE.write_text(page(kept), encoding="utf-8")
