"""Convergence study: the same data identified with several numbers of elements and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.base.identification import Identification
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.estimate.functions.beam import Options, identify
from analysis.estimate.functions.beam.description import Beam


@dataclass(frozen=True)
class StudyRow:
    """One cell of the study. ``distance``: rms relative difference of the curves from the finest cell."""

    elements: int
    intervals: int
    chi2: float
    noise: float
    distance: float
    result: Identification


def convergence(
    beam: Beam,
    records: Sequence[Record],
    elements: Sequence[int] = (8, 16, 32),
    intervals: Sequence[int] = (4, 8, 16),
    options: Options | None = None,
    progress: Progress = SILENT,
) -> list[StudyRow]:
    """Identify for every pair (N, M); when N and M are fine enough the distances vanish within the bands."""
    options = options or Options(losses=0)
    pairs = [(n, m) for n in elements for m in intervals]
    results = []
    for i, (n, m) in enumerate(pairs):
        part = progress.part(i / len(pairs), (i + 1) / len(pairs))
        results.append(identify(beam, records, replace(options, elements=n, intervals=m), part))
    finest = results[-1]
    return [
        StudyRow(n, m, r.residual.chi2, r.residual.other["noise"], _distance(r, finest), r)
        for (n, m), r in zip(pairs, results, strict=True)
    ]


def _distance(result: Identification, finest: Identification) -> float:
    parts = [
        np.log(np.array(result.curves[name].y) / np.array(curve.y)) for name, curve in finest.curves.items()
    ]
    return float(np.sqrt(np.mean(np.concatenate(parts) ** 2))) if parts else 0.0
