"""Does the model fit the data? Verdict, reasons and honest error bars of a fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Z95
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.identifiability import covariance_of

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a person must know before using the numbers of a fit."""

    verdict: str  # fits | close | misses | cannot tell; empty: not judged
    reasons: list[str]  # sentences, each with its number
    estimate: Array  # [P] of the unknowns, as reported
    covariance: Array  # [P, P] as reported; undetermined unknowns have infinite variance
    quantile: Array  # [P] half-width of the 95 % interval over the standard error
    warnings: list[str] = field(default_factory=list)
    findings: dict[str, Any] = field(default_factory=dict)  # figures behind the verdict, JSON values only


def judge(fitted: Fitted) -> Judgement:
    """The fit as white noise and a right model would have it; nothing is judged yet."""
    covariance = covariance_of(fitted.information) + fitted.input_covariance
    return Judgement("", [], fitted.estimate, covariance, np.full(len(fitted.estimate), Z95))
