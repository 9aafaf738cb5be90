"""The one result type of every identification method."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.parsing import parse_json, read_as
from analysis.base.words import percent

Z95 = 1.959963984540054  # two-sided 95 % point of the normal distribution


VERDICTS = ("", "fits", "close", "misses", "cannot tell")


@dataclass(frozen=True)
class Estimate:
    """A parameter with its uncertainty. ``lower`` and ``upper`` bound the 95 % interval."""

    value: float
    stderr: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    unit: str = ""
    stderr_ideal: float = math.nan  # standard error if the noise were white and the model right

    @classmethod
    def normal(cls, value: float, stderr: float, unit: str = "") -> Estimate:
        """Value with a symmetric 95 % interval of a normal estimate."""
        return cls(
            float(value), float(stderr), float(value - Z95 * stderr), float(value + Z95 * stderr), unit
        )

    def covers(self, truth: float) -> bool:
        return self.lower <= truth <= self.upper


@dataclass(frozen=True)
class Curve:
    """An identified function with its pointwise 95 % band, such as a restoring force over displacement."""

    x: list[float]
    y: list[float]
    lower: list[float]
    upper: list[float]
    x_label: str = ""  # with unit, such as "x [mm]"
    y_label: str = ""
    formula: str = ""  # a sentence on the simplest formulas within the band


@dataclass(frozen=True)
class Surface:
    """An identified function of two arguments with its pointwise 95 % band; values by x, then by y."""

    x: list[float]
    y: list[float]
    z: list[list[float]]
    lower: list[list[float]]
    upper: list[list[float]]
    x_label: str = ""
    y_label: str = ""
    z_label: str = ""
    formula: str = ""  # a sentence on the simplest formulas within the band


@dataclass(frozen=True)
class Profiled:
    """The interval that a traced profile likelihood gives a parameter, and that in words."""

    lower: float = math.nan
    upper: float = math.nan
    words: str = ""


@dataclass(frozen=True)
class Residual:
    """What a fit leaves unexplained."""

    chi2: float = math.nan  # sum of squares over the noise
    dof: float = math.nan  # degrees of freedom: samples less unknowns
    rms: dict[str, float] = field(default_factory=dict)  # by output, in its unit
    noise: dict[str, float] = field(default_factory=dict)  # standard deviation by output, known or estimated
    r2: dict[str, float] = field(default_factory=dict)  # share of each output's variance that is explained
    other: dict[str, float] = field(default_factory=dict)  # a method's own measures, by name
    held_out_r2: dict[str, float] = field(default_factory=dict)  # the same share of data that were not fitted
    missed: float = math.nan  # systematic part, rms over the spread: share of the motion the model misses

    @property
    def per_dof(self) -> float:
        """Reduced chi-square, 1 where noise is all that is left; nan where it has no meaning."""
        return self.chi2 / self.dof if self.dof > 0 else math.nan

    def figures(self) -> dict[str, float]:
        """All that is known, by a short name, for a person to read."""
        found = {"chi2": self.chi2, "dof": self.dof, "chi2/dof": self.per_dof}
        found = {name: value for name, value in found.items() if not math.isnan(value)}
        for what, by_output in (("rms", self.rms), ("noise", self.noise), ("R2", self.r2)):
            found |= {f"{what} {output}": value for output, value in by_output.items()}
        return found | self.other


@dataclass(frozen=True)
class Identification:
    """Parameters with error bars, how they were found, and what the data could not tell.

    Parameters of a single record among several are named ``X0[1]``, ``X0[2]``; initial values ``x(0)``.
    """

    method: str
    model: str
    converged: bool
    parameters: dict[str, Estimate]
    iterations: int = 0
    evaluations: int = 0
    residual: Residual = field(default_factory=Residual)
    undetermined: list[str] = field(default_factory=list)  # sentences naming what the data cannot determine
    warnings: list[str] = field(default_factory=list)
    verdict: str = ""  # fits | close | misses | cannot tell; empty: nothing was judged
    reasons: list[str] = field(default_factory=list)  # sentences behind the verdict
    # In the order of ``parameters``; initial values that these do not list are left free, not held.
    covariance: list[list[float]] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)  # one entry per iteration: cost, parameters
    curves: dict[str, Curve] = field(default_factory=dict)
    surfaces: dict[str, Surface] = field(default_factory=dict)
    profiles: dict[str, Profiled] = field(default_factory=dict)  # by parameter; ``curves`` has their lines
    chosen: str = ""  # which method was taken and why, where that was left to the program
    recordings: list[dict[str, str]] = field(
        default_factory=list
    )  # file and sha256 of what it was found from; channels: JSON, the channel by name of the model
    extra: dict[str, Any] = field(default_factory=dict)  # method's own findings, JSON values only
    options: dict[str, Any] = field(default_factory=dict)  # with model_text: what is needed to run it again
    model_text: str = ""
    references: list[str] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether the numbers may be used: found, and not refused by the verdict."""
        return self.converged and self.verdict not in ("misses", "cannot tell")

    @property
    def stated_miss(self) -> float | None:
        """Share of the motion that a model called `close` is said to miss; None of any other."""
        if self.verdict != "close":
            return None
        return self.residual.missed if math.isfinite(self.residual.missed) else 0.0

    @property
    def channels(self) -> dict[str, str]:
        """The channel that stood for each quantity of the model, as far as that is known; empty: none did."""
        known = self.recordings[0].get("channels", "") if self.recordings else ""
        try:
            found = json.loads(known or "{}")
        except ValueError:
            return {}
        pairs = found.items() if isinstance(found, dict) else ()
        return {name: channel for name, channel in pairs if isinstance(channel, str)}

    @property
    def headline(self) -> str:
        """The verdict in words, with the share of the variance explained and the share that is missed."""
        left = self.residual
        r2 = [share for share in left.r2.values() if math.isfinite(share)]
        figures = [f"R² {_nines(min(r2))}"] if r2 else []
        predicted = [share for share in left.held_out_r2.values() if math.isfinite(share)]
        if predicted:
            figures.append(f"{_nines(min(predicted))} on a held-out fifth")
        if self.verdict in ("close", "misses") and math.isfinite(left.missed):
            figures.append(f"{percent(left.missed)} of the motion missed")
        words = {
            "fits": "fits the data to their noise",
            "close": "is close: explains the data but for a small part, error bars widened",
            "misses": "MISSES the data: do not use the numbers",
            "cannot tell": "CANNOT TELL: the data do not settle the numbers",
            "": "not judged",
        }[self.verdict]
        return words + (f" ({', '.join(figures)})" if figures else "")

    @property
    def listed(self) -> dict[str, Estimate]:
        """The parameters but the coefficients of functions of two arguments, too many for a table."""
        grids = [re.compile(rf"{re.escape(name)}_\d+_\d+$") for name in self.surfaces]
        return {n: e for n, e in self.parameters.items() if not any(grid.match(n) for grid in grids)}

    @property
    def formulas(self) -> list[str]:
        """A sentence for each identified function: the simplest formulas within its band."""
        curves = [curve.formula for curve in self.curves.values()]
        surfaces = [surface.formula for surface in self.surfaces.values()]
        return [formula for formula in curves + surfaces if formula]

    def values(self) -> dict[str, float]:
        return {name: estimate.value for name, estimate in self.parameters.items()}

    def to_json(self) -> str:
        """Text that :meth:`from_json` reads back equal; not-a-number becomes null."""
        return json.dumps(_without_nan(asdict(self)), indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Identification:
        """A result as :meth:`to_json` wrote it; DataError for a field missing or of another type."""
        try:
            result = read_as(cls, _today(parse_json(text)))
            if result.verdict not in VERDICTS:
                raise ValueError("verdict is not one that can be given")
            for name, e in result.parameters.items():
                if e.stderr < 0 or e.lower > e.value or e.upper < e.value:
                    raise ValueError(f"{name} is outside of its own interval")
            return result
        except ValueError as error:
            raise DataError(f"This is not a result of an identification ({error}).") from None

    def __eq__(self, other: object) -> bool:
        """Equal in every field, not-a-number counting as equal to itself."""
        return isinstance(other, Identification) and self.to_json() == other.to_json()

    def __str__(self) -> str:
        state = "" if self.converged else ", NOT converged"
        head = f"{self.model} by {self.method}{state}: {self.headline}"
        rows = [f"  {name:12s} {with_error(e)} {e.unit}".rstrip() for name, e in self.parameters.items()]
        notes = [f"  ! {text}" for text in (*self.reasons, *self.undetermined, *self.warnings)]
        return "\n".join([head, *rows, *notes])


def _nines(share: float) -> str:
    """A share below one with as many digits as tell it from one."""
    if 0.99 < share < 1.0:
        return f"{share:.{min(math.ceil(-math.log10(1.0 - share)) + 1, 9)}f}"
    return f"{share:.3g}"


def estimates(
    names: list[str],
    values: NDArray[np.float64],
    covariance: NDArray[np.float64],
    units: Mapping[str, str] | None = None,
) -> dict[str, Estimate]:
    """Estimates by name from a vector and its covariance."""
    units = units or {}
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return {n: Estimate.normal(v, s, units.get(n, "")) for n, v, s in zip(names, values, errors, strict=True)}


_PLAIN = (1e-4, 1e7)  # sizes that are shown without a power of ten
_MOST_DIGITS = 12  # of a value that are shown beside its error


def with_error(estimate: Estimate) -> str:
    """Value with its standard error and a sensible number of digits, such as ``0.1234 ± 0.0012``.

    Where plain decimals would be mostly zeros both share a power of ten: ``(-0.3 ± 1.4)e-09``.
    """
    value, error = estimate.value, estimate.stderr
    digits = _decimals(estimate)
    if digits is not None:
        return f"{_plain(value, digits)} ± {_plain(error, digits)}"
    size = max(abs(value), error)
    if not (error > 0 and math.isfinite(size) and error > 10.0**-_MOST_DIGITS * size):
        return f"{value:.6g}" + (f" ± {error:.2g}" if error > 0 else "")
    power = math.floor(math.log10(size))
    digits = 1 + power - math.floor(math.log10(error))
    return f"({value / 10.0**power:.{digits}f} ± {error / 10.0**power:.{digits}f})e{power:+03d}"


def interval_ends(estimate: Estimate) -> tuple[str, str]:
    """Both ends of the 95 % interval with the digits that tell them apart; a dash where there is none."""
    digits = _decimals(estimate)
    significant = _significant(max(abs(estimate.lower), abs(estimate.upper)), estimate.stderr)
    lower, upper = (
        "–" if not math.isfinite(end) else f"{end:.{significant}g}" if digits is None else _plain(end, digits)
        for end in (estimate.lower, estimate.upper)
    )
    return lower, upper


def with_bounds(value: float, below: float, above: float) -> tuple[str, str, str]:
    """A value and its distances to both ends of an interval, with two digits of the shorter distance."""
    shorter = min(below, above)
    digits = _decimals(Estimate.normal(value, shorter))
    if digits is not None:
        return _plain(value, digits), _plain(below, digits), _plain(above, digits)
    return f"{value:.{_significant(abs(value), shorter)}g}", f"{below:.2g}", f"{above:.2g}"


def _significant(size: float, error: float) -> int:
    """Significant digits of a value of this size that show two of its error; six where that says nothing."""
    if not (size > 0 and error > 0 and math.isfinite(size) and math.isfinite(error)):
        return 6
    return min(max(2 + math.floor(math.log10(size)) - math.floor(math.log10(error)), 2), _MOST_DIGITS + 2)


def _decimals(estimate: Estimate) -> int | None:
    """Decimals that show two digits of the error (-2: hundreds); None where plain decimals would not do."""
    value, error = estimate.value, estimate.stderr
    if not (math.isfinite(error) and error > 0 and _PLAIN[0] <= max(abs(value), error) < _PLAIN[1]):
        return None
    digits = 1 - math.floor(math.log10(error))
    return digits if -3 <= digits <= _MOST_DIGITS else None


def _plain(number: float, digits: int) -> str:
    """A number rounded to so many decimals, or to hundreds: -2."""
    return f"{round(number, digits):.{max(digits, 0)}f}"


# What older files have among the findings: fields of the result, and figures of its residual.
_FIELDS = {"chosen": "chosen", "recordings": "recordings", "profile": "profiles"}
_FIGURES = {"R2": "r2", "held out R2": "held_out_r2", "missed share": "missed"}


def _today(raw: Any) -> Any:
    """The data of a result file as they are written today; older ones are brought into that form."""
    if not isinstance(raw, dict):
        return raw
    new = dict(raw)
    if isinstance(raw.get("parameters"), dict):  # older: `x offset` for `offset x`
        new["parameters"] = {
            re.sub(r"^(\w+) (offset|delay|drift)\b", r"\2 \1", n): e for n, e in raw["parameters"].items()
        }
    residual = raw.get("residual")
    if isinstance(residual, dict) and not set(residual) <= {f.name for f in fields(Residual)}:
        new["residual"] = _residual_by_field(residual)
    extra = raw.get("extra")
    if isinstance(extra, dict):  # older: what has fields of its own lay among the method's findings
        new["extra"] = {k: v for k, v in extra.items() if k not in (*_FIELDS, *_FIGURES)}
        new |= {name: extra[k] for k, name in _FIELDS.items() if k in extra}
        figures = {name: extra[k] for k, name in _FIGURES.items() if k in extra}
        left = new.get("residual", {})
        if figures and isinstance(left, dict):
            new["residual"] = figures | left
    return new


def _residual_by_field(flat: dict[str, Any]) -> dict[str, Any]:
    """Figures by short names, as older files have them, by field."""
    found: dict[str, Any] = {"rms": {}, "noise": {}, "other": {}}
    for name, value in flat.items():
        what, _, output = name.partition(" ")
        if name in ("chi2", "dof"):
            found[name] = value
        elif what in ("rms", "noise") and output and " " not in output:
            found[what][output] = value
        elif name not in ("chi2/dof", "chi2 per dof"):
            found["other"][name] = value
    return found


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _without_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(v) for v in value]
    if isinstance(value, np.ndarray):
        return _without_nan(value.tolist())
    if isinstance(value, np.generic):
        return _without_nan(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
