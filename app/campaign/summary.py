"""What the recordings of a campaign say together: mean and spread, outliers, changes, models compared.

Only results that may be used are counted: converged, and not refused by their verdict. The rates of false
alarms hold for a whole campaign: they are divided among all parameters and series that are looked at.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from analysis import (
    DRIFT,
    WANDERING,
    ChangePoint,
    Control,
    Estimate,
    RandomEffects,
    ShakedownError,
    change_points,
    control,
    percent,
    random_effects,
    with_draws,
    with_error,
)
from app.campaign.child import DONE
from app.campaign.jobs import BLOCK, HELD_OUT, PARAMETRIC, SEGMENT, WHOLE
from app.campaign.recordings import few
from app.campaign.table import OWN, Row, parameters

LEVEL = 0.05  # chance that a campaign without any change reports one; the same for outliers
FEWEST = 3  # specimens that have a spread
UNUSABLE = ("misses", "cannot tell")


@dataclass(frozen=True)
class Point:
    """One estimate of a parameter."""

    recording: str
    segment: int | None  # of the recording, from 0; None: the whole
    specimen: str
    place: Any  # what the series is ordered by
    value: float
    error: float
    others: Mapping[str, float] = field(default_factory=dict)  # numbers that the recording carries

    @property
    def words(self) -> str:
        """Where it was found."""
        return self.recording if self.segment is None else f"{self.recording}, segment {self.segment + 1}"


@dataclass(frozen=True)
class Change:
    """A step in the series of one specimen, or of all recordings."""

    series: str  # specimen; empty: all recordings
    last: Point  # the last one before the step
    number: int  # of that point in the series, from 1
    point: ChangePoint

    def words(self, parameter: str) -> str:
        """Such as: k1 fell by 2.1 ± 0.3 % after recording 214."""
        p, percent = self.point, self.point.percent
        if math.isfinite(percent.value):
            size = _pm(abs(percent.value), percent.stderr) + " %"
        else:
            size = _pm(abs(p.change.value), p.change.stderr)
        went = "fell" if p.change.value < 0 else "rose"
        where = f" of {self.series}" if self.series else ""
        sure = f"95 %: after {p.first} to {p.last}" if p.first != p.last else "95 %: there and nowhere else"
        kind = "recording" if self.last.segment is None else "segment"
        text = f"{parameter}{where} {went} by {size} after {kind} {self.number} ({self.last.words}; {sure})"
        return text + (f", though {self._rival(parameter)} describes the series as well" if p.rival else "")

    def _rival(self, parameter: str) -> str:
        words = {DRIFT: "a steady drift", WANDERING: "a level that wanders from recording to recording"}
        return words.get(self.point.rival, f"{parameter} as a linear function of {self.point.rival}")


@dataclass(frozen=True, eq=False)
class ParameterSummary:
    """One parameter of one model over all recordings."""

    name: str
    points: tuple[Point, ...]  # in order
    unit: str = ""
    effects: RandomEffects | None = None  # None: too few specimens
    control: Control | None = None
    specimens: tuple[str, ...] = ()  # those that the control limits are of, in order of first appearance
    changes: tuple[Change, ...] = ()
    undetermined: tuple[str, ...] = ()  # recordings whose fit says nothing about it

    @property
    def label(self) -> str:
        """Name and unit, for an axis."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def outliers(self) -> list[str]:
        return [] if self.control is None else [self.specimens[i] for i in self.control.outliers]


@dataclass(frozen=True, eq=False)
class FitSummary:
    """One model by one method with one choice of the grid."""

    model: str
    label: str
    fits: int
    usable: int
    unusable: Mapping[str, int]  # how many of the others failed, did not converge, or have which verdict
    unjudged: int  # of the usable ones: without a verdict, such as those of a method by itself
    parameters: tuple[ParameterSummary, ...]
    bic: float | None  # summed over the recordings that every model has a score of
    predicted: float | None  # median over recordings of R² on what the fit had not seen
    draws: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)  # bootstrap, by recording


@dataclass(frozen=True, eq=False)
class Summary:
    """All of a campaign."""

    fits: tuple[FitSummary, ...]
    causes: Mapping[str, list[str]]  # recordings by the sentence why they have no result

    def sentences(self) -> list[str]:
        """What a person should know first."""
        return [text for fit in self.fits for text in _sentences(fit, len(self.fits) > 1)]

    def to_dict(self) -> dict[str, Any]:
        return {"fits": [_fit_dict(fit) for fit in self.fits], "failures": dict(self.causes)}


def summarise(
    table: Sequence[Row],
    order: str = "start",
    varied: Sequence[str] = (),
    units: Mapping[tuple[str, str], str] | None = None,
) -> Summary:
    """The summary of a table; ``order``: start, name or a column that the series run over; ``varied``:
    columns of the grid, each of whose values is a fit of its own; ``units``: by model and parameter."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    columns = parameters(table)
    entries = _entries(table, columns, varied)
    for row in table:
        key = (row["model"], row["method"], *(row[name] for name in varied))
        groups.setdefault(key, []).append(row)
    common = _common(groups.values())
    tests = sum(_tests(rows, name) for rows in groups.values() for name in columns)
    fits = tuple(
        _fit(
            key,
            varied,
            rows,
            {name: (units or {}).get((key[0], name), "") for name in columns},
            entries,
            common,
            order,
            LEVEL / max(tests, 1),
        )
        for key, rows in groups.items()
    )
    causes: dict[str, list[str]] = {}
    for row in table:
        if row["status"] != DONE:
            causes.setdefault(_cause(row), []).append(row["recording"])
    return Summary(fits, causes)


def _scored(row: Row) -> bool:
    return row["part"] == WHOLE and row.get("BIC") is not None


def _common(groups: Iterable[Sequence[Row]]) -> set[str]:
    """Recordings that every model has a score of: sums over others could not be compared."""
    return set.intersection(*({row["recording"] for row in rows if _scored(row)} for rows in groups))


def _cause(row: Row) -> str:
    """Why a row has no result, the same words for all recordings that share the reason."""
    return re.sub(rf"(?<!\w){re.escape(row['recording'])}(?=\.\w)", "…", str(row["failure"]))


def usable(row: Row) -> bool:
    """Whether the numbers of a row may be used."""
    return row["status"] == DONE and bool(row["converged"]) and row["verdict"] not in UNUSABLE


def _state(row: Row) -> str:
    """Why the numbers of a row may not be used."""
    if row["status"] != DONE:
        return "failed"
    return str(row["verdict"]) if row["converged"] else "not converged"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def ordered(rows: Iterable[Row], order: str) -> list[Row]:
    """Rows by start, name or a column; those that do not say come last, in the order of their names."""

    def key(row: Row) -> tuple[Any, ...]:
        value: Any = natural(row["recording"]) if order == "name" else row.get(order)
        value = moment(value) if order == "start" else value
        value = None if isinstance(value, float) and math.isnan(value) else value
        return value is None, value if value is not None else 0, natural(row["recording"]), row["number"]

    rows = list(rows)
    if len({isinstance(row.get(order), str) for row in rows if row.get(order) is not None}) > 1:
        order = "name"  # numbers and texts have no common order
    return sorted(rows, key=key)


def natural(name: str) -> list[tuple[int, int, str]]:
    """What names are ordered by: numbers in them count as numbers, so that run2 comes before run10."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]


def moment(start: str | None) -> float | None:
    """Seconds of a date with its time, whatever the zone it is written in; UTC where it has none."""
    try:
        found = datetime.fromisoformat(start or "")
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _entries(table: Sequence[Row], parameters: Sequence[str], varied: Sequence[str]) -> list[str]:
    """Columns that tell a number about every recording, such as a temperature."""
    ends = ("", " stderr", " lower", " upper")
    own = {*OWN, *varied, *(f"{name}{end}" for name in parameters for end in ends)}
    return [
        name
        for name in (table[0] if table else ())
        if name not in own
        and all(type(row[name]) in (int, float) and math.isfinite(row[name]) for row in table)
    ]


def _tests(rows: Sequence[Row], name: str) -> int:
    """Series of a parameter that are looked at."""
    of = [
        row["recording" if row["part"] == SEGMENT else "specimen"]
        for row in rows
        if _counts(row) and _determined(row, name)
    ]
    return len(set(of)) if len(of) > len(set(of)) else min(len(of), 1)


def _counts(row: Row) -> bool:
    return usable(row) and row["part"] in (WHOLE, SEGMENT)


def _determined(row: Row, name: str) -> bool:
    """Whether a row has the parameter with an error that it can be weighed by."""
    value, error = row.get(name), row.get(f"{name} stderr")
    return value is not None and error is not None and math.isfinite(value) and 0 < error < math.inf


def _fit(
    key: tuple[Any, ...],
    varied: Sequence[str],
    rows: Sequence[Row],
    columns: Mapping[str, str],
    entries: Sequence[str],
    common: Container[str],
    order: str,
    level: float,
) -> FitSummary:
    model, method, *chosen = key
    grid = "".join(f", {n} = {_short(v)}" for n, v in zip(varied, chosen, strict=True) if v is not None)
    counted = ordered((row for row in rows if _counts(row)), order)
    told = [_parameter(name, unit, counted, entries, order, level) for name, unit in columns.items()]
    bics = [row["BIC"] for row in rows if _scored(row) and row["recording"] in common]
    scored = [row for row in rows if row.get("predicted R2") is not None]
    scores = [row["predicted R2"] for row in scored if row["part"] == HELD_OUT] or [
        row["predicted R2"] for row in scored
    ]
    return FitSummary(
        model,
        f"{model} by {method}{grid}",
        len(rows),
        sum(usable(row) for row in rows),
        Counter(_state(row) for row in rows if not usable(row)),
        sum(usable(row) and not row["verdict"] for row in rows),
        tuple(p for p in told if p.points or p.undetermined),
        float(sum(bics)) if bics else None,
        float(np.median(scores)) if scores else None,
        _draws(rows, list(columns)),
    )


def _parameter(
    name: str, unit: str, rows: Sequence[Row], entries: Sequence[str], order: str, level: float
) -> ParameterSummary:
    points = tuple(
        Point(
            row["recording"],
            row["number"] if row["part"] == SEGMENT else None,
            row["specimen"],
            row.get(order),
            row[name],
            row[f"{name} stderr"],
            {entry: row[entry] for entry in entries},
        )
        for row in rows
        if _determined(row, name)
    )
    undetermined = tuple(
        row["recording"] for row in rows if row.get(name) is not None and not _determined(row, name)
    )
    specimens = tuple(dict.fromkeys(p.specimen for p in points))
    effects = limits = None
    if len(specimens) >= FEWEST:
        values, errors, names = zip(*((p.value, p.error, p.specimen) for p in points), strict=True)
        try:
            effects = random_effects(values, errors, names)
            limits = control(*_means(points, specimens, effects), LEVEL)
        except ShakedownError:  # such as an error bar of no width: there is nothing to weigh by
            effects = limits = None
    return ParameterSummary(
        name,
        points,
        unit,
        effects,
        limits,
        specimens,
        tuple(_changes(points, level)),
        undetermined,
    )


def _means(
    points: Sequence[Point], specimens: Sequence[str], effects: RandomEffects
) -> tuple[list[float], list[float]]:
    """Mean of each specimen's estimates and its error."""
    extra = effects.within.value**2 if effects.within is not None else 0.0
    by: dict[str, list[Point]] = {name: [] for name in specimens}
    for point in points:
        by[point.specimen].append(point)
    values, errors = [], []
    for many in by.values():
        w = np.array([1.0 / (p.error**2 + extra) for p in many])
        values.append(float(np.sum(w * [p.value for p in many]) / w.sum()))
        errors.append(float(1.0 / math.sqrt(w.sum())))
    return values, errors


def _changes(points: Sequence[Point], level: float) -> Iterable[Change]:
    """Steps in the series of each specimen that was recorded again and again, else of all recordings.

    Segments are a series within their recording: what differs from recording to recording is common to the
    segments of each, and would pass for steps between them.
    """
    by: dict[str, list[Point]] = {}
    for p in points:
        by.setdefault(p.specimen if p.segment is None else p.recording, []).append(p)
    series = by if len(points) > len(by) > 1 else {"": list(points)}
    for name, many in series.items():
        others = {
            entry: np.array([p.others[entry] for p in many]) for entry in (many[0].others if many else ())
        }
        for step in change_points([p.value for p in many], [p.error for p in many], level, others=others):
            yield Change(name, many[step.after - 1], step.after, step)


def _draws(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, dict[str, Estimate]]:
    """Errors of the bootstrap for each recording that has draws."""
    found: dict[str, dict[str, Estimate]] = {}
    drawn: dict[str, list[Row]] = {}
    for row in rows:
        if row["part"] in (PARAMETRIC, BLOCK) and row["status"] == DONE and row["converged"]:
            drawn.setdefault(row["recording"], []).append(row)
    for base in rows if drawn else ():
        if base["part"] != WHOLE or base["status"] != DONE:
            continue
        draws = drawn.get(base["recording"], [])
        for name in columns if draws else ():
            values = [row[name] for row in draws if row.get(name) is not None]
            if base.get(name) is None or not values:
                continue
            stderr, lower, upper = (_number(base[f"{name} {what}"]) for what in ("stderr", "lower", "upper"))
            stated = Estimate(base[name], stderr, lower, upper)
            try:
                found.setdefault(base["recording"], {})[name] = with_draws(values, stated)
            except ShakedownError:
                continue
    return found


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _pm(value: float, error: float) -> str:
    return with_error(Estimate.normal(value, error))


def _sentences(fit: FitSummary, several: bool) -> Iterable[str]:
    prefix = f"{fit.label}: " if several else ""
    if fit.usable < fit.fits:
        why = ", ".join(f"{count} {words}" for words, count in fit.unusable.items())
        yield f"{prefix}{fit.usable} of {fit.fits} fits may be used; the others are left out below ({why})."
    if fit.unjudged:
        words = "have no verdict: whether the model fits the data was not looked at (`finish = false`)"
        yield f"{prefix}{fit.unjudged} of {fit.fits} fits {words}."
    for p in fit.parameters:
        if p.effects is not None:
            e, size = p.effects, _size(p)
            between = e.between
            spread = (
                f"specimens differ by {size(between.value)} (95 %: {size(between.lower)} to "
                f"{size(between.upper)})"
                if between.lower > 0
                else f"no spread between specimens beyond {size(between.upper)} is seen"
            )
            typical = f"a single estimate errs by {size(e.error)}"
            mean = f"{p.name} = {with_error(e.mean)} over {e.specimens} specimens"
            yield f"{prefix}{mean}; {spread}, {typical}."
        elif len(p.points) < FEWEST:
            each = "; ".join(f"{_pm(point.value, point.error)} ({point.recording})" for point in p.points)
            yield from [f"{prefix}{p.name} = {each}."] if each else []
        if p.undetermined:
            left = f"{len(p.undetermined)} of {len(p.undetermined) + len(p.points)} fits"
            yield f"{prefix}{p.name} is not determined by {left}, which are left out ({few(p.undetermined)})."
        for change in p.changes:
            yield f"{prefix}{change.words(p.name)}."
        if p.outliers:
            yield f"{prefix}{p.name} lies outside of the control limits for {', '.join(p.outliers)}."


def _size(p: ParameterSummary) -> Callable[[float], str]:
    """Words for a standard deviation: in per cent of the mean, or as it is where the mean may be zero."""
    assert p.effects is not None
    mean = abs(p.effects.mean.value)
    if mean > 2 * max(p.effects.error, p.effects.between.value):
        return lambda value: percent(value / mean)
    return lambda value: f"{value:.2g} {p.unit}".rstrip()


def _fit_dict(fit: FitSummary) -> dict[str, Any]:
    return {
        "fit": fit.label,
        "model": fit.model,
        "jobs": fit.fits,
        "usable": fit.usable,
        "BIC": fit.bic,
        "predicted R2": fit.predicted,
        "parameters": {p.name: _parameter_dict(p) for p in fit.parameters},
        "bootstrap": {r: {n: vars(e) for n, e in many.items()} for r, many in fit.draws.items()},
    }


def _parameter_dict(p: ParameterSummary) -> dict[str, Any]:
    made: dict[str, Any] = {"outliers": p.outliers, "undetermined": list(p.undetermined)}
    if p.effects is not None:
        e = p.effects
        made |= {
            "mean": vars(e.mean),
            "between": vars(e.between),
            "within": None if e.within is None else vars(e.within),
            "error": e.error,
            "specimens": e.specimens,
        }
    made["changes"] = [
        {
            "series": c.series,
            "after": c.last.words,
            "number": c.number,
            "first": c.point.first,
            "last": c.point.last,
            "change": vars(c.point.change),
            "percent": vars(c.point.percent),
            "p_value": c.point.p_value,
            "rival": c.point.rival,
        }
        for c in p.changes
    ]
    return made
