"""Method ``auto``: a portfolio of methods with evidence as its judge.

Cheap ways first: the weak form where the outputs show every state at an instant; then uncoupled output error
(growing and windowed, with scans and several starts); then maximum likelihood over the path from the longest
windows that follow the record (chaos, noisy inputs) or from the guesses; then homotopy. The first fit whose
residuals are as small and as white as the sensors' own noise ends the search; without one the best fit is
kept, never a point worse than one that was seen. What was tried stands in the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import Cancelled, ModelError, ShakedownError
from analysis.base.progress import Progress
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.judge import absurd
from analysis.estimate.identifiability import covariance_of
from analysis.estimate.observability import observability
from analysis.estimate.shooting.build import noise_from_differences
from analysis.estimate.shooting.evidence import Evidence, evidence
from analysis.estimate.shooting.input_noise import InputNoise, input_noise
from analysis.estimate.shooting.interpolation import other_interpolations
from analysis.estimate.shooting.method import Shooting, start_of
from analysis.estimate.shooting.search import STARTS, Search
from analysis.estimate.start import Start

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_JITTER = 0.01  # of a state's spread, added to a motion that the path starts from: an exact one has no slack
_RIVAL = 4.0  # standard errors between two fits that follow the record equally well: the data do not choose
_EQUALLY = 15.0  # of chi-square between two such fits
_EXPLAINED = 0.5  # R² below which a single motion beside windows that follow the record is not worth a fit


@dataclass(frozen=True)
class Auto:
    """Options of the automatic choice."""

    name: ClassVar[str] = "auto"
    starts: int = STARTS  # of the Latin hypercube around the guess, if the guess itself leads nowhere
    seed: int = 0  # of that hypercube

    def start(self, experiment: Experiment, progress: Progress, alone: bool = False) -> Start:
        """The best fit of the portfolio; ``alone``: the cheapest method that suits, by itself."""
        if not experiment.model.free:
            raise ModelError(
                f"{experiment.model.name} has no free parameter: give one a guess instead of a value."
            )
        seen = observability(experiment)
        for sentence in seen.words:
            progress.report(0.0, sentence)
        if alone:
            return _alone(self, experiment, not seen.hidden, progress)
        portfolio = _Portfolio(experiment)
        for name, found in _attempts(self, portfolio, not seen.hidden, progress):
            if portfolio.offer(name, found):
                break
        return portfolio.winner(seen.words)


@dataclass(frozen=True)
class _Candidate:
    name: str
    fitted: Fitted
    evidence: Evidence

    @property
    def good(self) -> bool:
        return self.fitted.converged and self.evidence.good and not absurd(self.fitted)

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Good before converged before the rest; then by the residuals of all outputs together."""
        size = 0.0
        for i in range(self.fitted.sigma.shape[1]):
            left = np.concatenate([piece.residuals[i] for piece in self.fitted.pieces])
            left = left[np.isfinite(left)]
            if len(left):
                size += len(left) * float(np.log(np.sqrt(np.mean(left**2)) + 1e-300))
        return not self.good, not self.fitted.converged, size


@dataclass
class _Portfolio:
    """The fits so far, and what could not be done."""

    experiment: Experiment
    candidates: list[_Candidate] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    agreed: bool = False  # several starts of the output error ended at one fit that explains the record

    def offer(self, name: str, found: Fitted | str) -> bool:
        """Take a fit, or the sentence that says why there is none; whether the search may end."""
        if isinstance(found, str):
            self.failures.append(f"{name} could not: {found}")
            return False
        noise = noise_from_differences(found.experiment)
        outputs = [piece.run.outputs[:, piece.first : piece.stop] for piece in found.pieces]
        judged = evidence(
            outputs,
            [piece.residuals for piece in found.pieces],
            [noise[piece.record] for piece in found.pieces],
        )
        candidate = _Candidate(name, found, judged)
        self.candidates.append(candidate)
        ended = "" if found.converged else ", not converged"
        self.tried.append(f"{name}: {judged.words}{ended}")
        return candidate.good

    @property
    def followed(self) -> bool:
        """Whether one motion of the model follows the record as closely as homotopy asks for at its end: what
        is left is the model's, and a coupling that is let go leads to no better place."""
        from analysis.estimate.homotopy.search import TRUSTED

        return any(
            c.fitted.engine == "shooting" and c.fitted.converged and c.evidence.r2 > 1.0 - TRUSTED**2
            for c in self.candidates
        )

    def rivals(self, best: _Candidate) -> list[str]:
        """Sentences on fits that follow the record as well as the best one, with other numbers."""
        words = []
        for other in self.candidates:
            if (
                other is best
                or not other.good
                or other.fitted.chi2_at(best.fitted.sigma)
                > (best.fitted.chi2_at(best.fitted.sigma) + _EQUALLY)
            ):
                continue
            names = _apart(best.fitted, other.fitted)
            if names:
                words.append(
                    f"{other.name} follows the record as well as {best.name}, with other numbers for "
                    f"{', '.join(names)}: the data do not choose between them."
                )
        return words

    def _best(self) -> _Candidate:
        return min(self.candidates, key=lambda c: c.rank)

    def winner(self, before: list[str]) -> Start:
        """The best fit as a start that is finished already."""
        if not self.candidates:
            raise ShakedownError(" ".join(self.failures))
        best = self._best()
        chosen = f"{best.name}: {best.evidence.words}" + "".join(f"; {f}" for f in self.failures)
        findings = {**best.fitted.start.findings, "tried": self.tried + self.failures}
        if before:
            findings["before the fit"] = before
        words = [] if best.fitted.converged else best.fitted.start.warnings  # of a start that was left behind
        start = replace(best.fitted.start, findings=findings, warnings=words, finishable=True)
        start = replace(start, chosen=chosen, rivals=self.rivals(best))
        return replace(start, fitted=replace(best.fitted, start=start))


def _alone(method: Auto, experiment: Experiment, shown: bool, progress: Progress) -> Start:
    if shown:
        from analysis.estimate.weak.method import Weak

        return Weak().start(experiment, progress, alone=True)
    return Shooting(method.starts, method.seed).start(experiment, progress, alone=True)


Attempt = tuple[str, Fitted | str]


def _attempts(method: Auto, portfolio: _Portfolio, shown: bool, progress: Progress) -> Iterator[Attempt]:
    """Fits of the portfolio, cheap ones first; made one by one as they are asked for."""
    experiment = portfolio.experiment
    noisy = any(run.input_noise.any() for run in experiment.runs)
    if shown and not noisy:
        yield from _weak(experiment, progress)
    yield from _shooting(method, portfolio, progress)
    if shown and noisy:
        yield from _weak(experiment, progress)
    if portfolio.agreed:  # what is left is the model's: other ways to the same minimum would not mend it
        return
    yield from _fitted("path", experiment, lambda: Start("path", experiment.guesses()), progress)
    if not portfolio.followed:
        yield from _homotopy(experiment, progress)


def _apart(one: Fitted, other: Fitted) -> list[str]:
    """Parameters of two fits that differ by more than their errors allow."""
    variance = np.diag(covariance_of(one.information)) + np.diag(covariance_of(other.information))
    error = np.sqrt(np.maximum(variance, 0.0))
    return [
        u.name
        for u, a, b, e in zip(one.unknowns, one.estimate, other.estimate, error, strict=True)
        if u.kind == "parameter" and abs(a - b) > _RIVAL * e
    ]


def _weak(experiment: Experiment, progress: Progress) -> Iterator[Attempt]:
    from analysis.estimate.weak.method import Weak

    yield from _fitted("weak", experiment, lambda: Weak().start(experiment, progress), progress)


def _homotopy(experiment: Experiment, progress: Progress) -> Iterator[Attempt]:
    from analysis.estimate.methods import entry

    load = entry("homotopy").load
    if load is not None:
        yield from _fitted("homotopy", experiment, lambda: load()().start(experiment, progress), progress)


def _shooting(method: Auto, portfolio: _Portfolio, progress: Progress) -> Iterator[Attempt]:
    """Output error; with noisy inputs or where no single motion follows, the path from what it found."""
    experiment, search = portfolio.experiment, Shooting(0, method.seed)
    try:
        found = search.search(experiment, progress)
        if not _is_good(found) and found.windowed is None:
            experiment, found = other_interpolations(experiment, found, search, progress)
        if not _is_good(found) and found.windowed is None and method.starts:
            found = Shooting(method.starts, method.seed).continue_search(experiment, found, progress)
    except Cancelled:
        raise
    except ShakedownError as error:
        yield "shooting", str(error)
        return
    portfolio.agreed = found.agreed
    yield from _finished(experiment, found, progress)
    if found.windowed is not None and not _is_good(found) and method.starts:
        found = Shooting(method.starts, method.seed).continue_search(experiment, found, progress)
        yield from _finished(experiment, found, progress)


def _finished(experiment: Experiment, found: Search, progress: Progress) -> Iterator[Attempt]:
    """Fits from a search: the path where inputs are noisy or only windows follow, and the whole motion."""
    if found.best is None and found.windowed is None:
        yield "shooting", "no motion of the model stays near the record."
        return
    claimed = input_noise(experiment, found)
    windowed = found.windowed is not None and not _is_good(found)
    if claimed is InputNoise.MATTERS or windowed:
        loose = _with_jitter(start_of(experiment, found, "shooting"))
        yield from _fitted("path from shooting", experiment, lambda: loose, progress)
    if found.best is not None and not (windowed and _lost(found)):
        start = start_of(experiment, found, "shooting", whole=True)
        yield from _fitted("shooting", experiment, lambda: start, progress)


def _is_good(found: Search) -> bool:
    return found.judged is not None and found.judged.good


def _lost(found: Search) -> bool:
    """Whether the best single motion explains little: chaos, not a poor fit."""
    return found.judged is None or found.judged.r2 < _EXPLAINED


def _with_jitter(start: Start) -> Start:
    rng = np.random.default_rng(0)
    states = []
    for path in start.states:
        assert path is not None
        spread = np.std(path, axis=1, keepdims=True)
        states.append(path + _JITTER * spread * rng.standard_normal(path.shape))
    return replace(start, states=states, engine="path")


def _fitted(name: str, experiment: Experiment, start: object, progress: Progress) -> Iterator[Attempt]:
    try:
        yield name, fit(experiment, start(), progress)  # type: ignore[operator]
    except Cancelled:
        raise
    except ShakedownError as error:
        yield name, str(error)
