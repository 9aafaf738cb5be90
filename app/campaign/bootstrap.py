"""The bootstrap of one identification: draws of the record as jobs of a campaign, on all processors."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError, Estimate, Identification, Progress, with_draws
from app.campaign.engine import Pool
from app.campaign.jobs import Job
from app.campaign.run import run
from app.campaign.store import Store, rows

if TYPE_CHECKING:
    from analysis import Model

LIMIT = 3600.0  # s that one draw may take
LEAST = 20  # draws
FAR = 6.0  # in scatters: no draw of a well-behaved fit lies there


def bootstrapped(
    result: Identification,
    recording: str,
    model: Model,
    method: str,
    options: Mapping[str, Any],
    channels: Mapping[str, str],
    rate: float | None,
    draws: tuple[str, int, int],
    progress: Progress,
) -> Identification:
    """The result with the scatter of its draws under ``extra["bootstrap"]``, and a warning where the stated
    error is another one. ``draws``: kind, number and seed."""
    from app.session import fingerprint

    kind, count, seed = draws
    path = str(Path(recording).absolute())
    base = Job(
        path, fingerprint(path), model.text, model.name, method, _plain(options), channels, rate,
        kind, 0, count, seed,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="shakedown-bootstrap-") as folder, Store(Path(folder)) as store:
        jobs = [replace(base, number=number) for number in range(count)]
        tally = run(jobs, store, lambda: Pool(0, LIMIT), progress)
        found = [row for row in rows(Path(folder)) if row.get("converged")]
    if len(found) < LEAST:
        reason = next(iter(tally.failures.values()), "the fits did not converge")
        raise DataError(f"Only {len(found)} of {count} draws gave a result: {reason}")
    values = {n: [r["parameters"][n][0] for r in found if n in r["parameters"]] for n in result.parameters}
    told = {
        name: with_draws(values[name], stated)
        for name, stated in result.parameters.items()
        if len(values[name]) >= LEAST
    }
    extra = {
        "kind": kind,
        "draws": count,
        "done": len(found),
        "seed": seed,
        "parameters": {name: asdict(e) for name, e in told.items()},
    }
    return replace(
        result,
        extra={**result.extra, "bootstrap": extra},
        warnings=[*result.warnings, *_disagreements(result, told, count, len(found)), *_strays(values, told)],
    )


def _strays(values: Mapping[str, Sequence[float]], told: Mapping[str, Estimate]) -> list[str]:
    """A sentence where draws ended far from all the others."""
    words = []
    for name, e in told.items():
        middle = statistics.median(values[name])
        far = sum(abs(v - middle) > FAR * e.stderr for v in values[name])
        if far:
            words.append(
                f"{far} of {len(values[name])} draws of {name} ended more than {FAR:g} times the scatter of "
                f"the others away: such a record may lead the fit elsewhere."
            )
    return words


def _disagreements(result: Identification, told: Mapping[str, Any], count: int, done: int) -> list[str]:
    """Sentences where the draws scatter otherwise than the error bar says."""
    words = []
    if done < 0.9 * count:
        words.append(
            f"{count - done} of {count} draws gave no result: the scatter of the others is too small."
        )
    for name, e in told.items():
        stated = result.parameters[name].stderr
        if stated > 0 and e.stderr > 0 and not 0.5 < e.stderr / stated < 2.0:
            ratio = f"{e.stderr / stated:.2g} times the error stated"
            words.append(f"The draws of {name} scatter by {e.stderr:.2g}, {ratio}.")
    return words


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as JSON has them."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
