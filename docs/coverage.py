"""The page of the Monte Carlo study, from its kept results: `python -m docs.coverage`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.coverage.core import Coverage, Tally, read_kept

PAGE = Path(__file__).parent / "explanation" / "coverage.md"
HEAD = """# Do the error bars keep their promise?

Each case is a system whose truth is known. Its noise is drawn anew for every run, the parameters are
identified with the default options (unless said otherwise), and it is counted how often the 95 % interval
holds the truth.

- **covered** counts the runs whose interval held the truth. Beside it stand the counts that honest 95 %
  intervals give by chance in 19 of 20 studies of that many runs: *within* them a case agrees with 95 %. Of
  the many rows here about one in twenty must fall outside by chance alone. *Too rarely* means intervals
  that are too short, *too often* intervals that are longer than need be.
- **scatter/error** is the standard deviation of the estimates over the mean of the errors that they state:
  1 is honest, above 1 the method is too sure of itself.
- **failed** counts the runs without an answer or without convergence.

For a recovered function `H(0.6)` is its value at 0.6 and the interval is the pointwise band there. Such a
band also counts what smoothing may have taken away; where the truth is smoother than the method has to allow
for, it covers more often than 95 %. The restoring force surface and the global search give no error bars and
have no rows.

A single case is run anew by `python -m benchmarks.coverage CASE --runs 200 --keep`, this page by
`python -m docs.coverage`.
"""


def page(kept: dict[str, Coverage]) -> str:
    """Overview of all cases, then a table for each."""
    rows = [
        _overview(name, found)
        for name, found in sorted(kept.items(), key=lambda item: item[1].method)
    ]
    head = [
        "## Overview",
        "",
        "| method | case | runs | failed | covered, all parameters | within | CPU s a run |",
    ]
    head.append("| --- | --- | ---: | ---: | ---: | --- | ---: |")
    parts = [_section(name, found) for name, found in kept.items()]
    return "\n".join([HEAD, *head, *rows, "", *parts])


def expected(runs: int) -> tuple[int, int]:
    """Counts that a chance of 95 % gives in 95 % of studies of this many runs."""
    from scipy.stats import binom

    low, high = binom.interval(0.95, runs, 0.95)
    return int(low), int(high)


def verdict(covered: int, runs: int) -> str:
    low, high = expected(runs)
    return "too rarely" if covered < low else "too often" if covered > high else "yes"


def _overview(name: str, found: Coverage) -> str:
    tallies = found.parameters.values()
    share = sum(t.covered for t in tallies) / max(found.answered * len(tallies), 1)
    agree = sum(verdict(t.covered, found.answered) == "yes" for t in tallies)
    return (
        f"| {found.method} | [{name}](#{_anchor(name)}) | {found.runs} | {found.failed} "
        f"| {100 * share:.1f} % | {agree} of {len(tallies)} | {found.cpu_seconds:.2g} |"
    )


def _section(name: str, found: Coverage) -> str:
    low, high = expected(found.answered)
    lines = [
        f"## {name}",
        "",
        f"{found.about}. Method {found.method}, {found.runs} runs, {found.failed} failed.",
        "",
        f"| parameter | covered of {found.answered} | by chance | within | covered | scatter/error |",
        "| --- | ---: | ---: | --- | ---: | ---: |",
    ]
    lines += [
        _row(p, tally, found.answered, f"{low} to {high}")
        for p, tally in found.parameters.items()
    ]
    return "\n".join([*lines, ""])


def _row(parameter: str, tally: Tally, runs: int, chance: str) -> str:
    return (
        f"| `{parameter}` | {tally.covered} | {chance} | {verdict(tally.covered, runs)} "
        f"| {100 * tally.covered / runs:.1f} % | {tally.ratio:.2f} |"
    )


def _anchor(name: str) -> str:
    return name.replace(".", "")


if __name__ == "__main__":
    PAGE.write_text(page(read_kept()), encoding="utf-8")
