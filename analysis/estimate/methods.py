"""The identification methods, by name. Each lives in its own file and has the same shape.

A method module holds a frozen dataclass ``Options`` (every option with a default and a comment) and

    def identify(model: Model, records: Sequence[Record], options: Options, progress: Progress)
        -> Identification

Modules are imported when asked for, so that a start does not pay for what is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record

if TYPE_CHECKING:
    from analysis.base.identification import Identification
    from analysis.model import Model

# name: module, what it is for (shown by --help and in the desktop's chooser)
METHODS: dict[str, tuple[str, str]] = {
    "auto": ("analysis.estimate.auto", "the method that suits the data, said why"),
    "weak": (
        "analysis.estimate.weak.method",
        "weak form with B-spline test functions: fast, all states measured",
    ),
    "path": (
        "analysis.estimate.path.method",
        "maximum likelihood over the states at all samples and the parameters",
    ),
    "balance": (
        "analysis.estimate.balance.method",
        "harmonic balance on the periodic orbits hidden in a chaotic record",
    ),
    "surface": (
        "analysis.estimate.functions.surface",
        "restoring force over displacement, without a model of its shape",
    ),
    "homotopy": (
        "analysis.estimate.homotopy.method",
        "few sensors and poor guesses: couple the model to the record, then let go",
    ),
    "global": (
        "analysis.estimate.search.global_search",
        "differential evolution, particle swarm or genetic search, as a baseline",
    ),
    "energetic": (
        "analysis.estimate.functions.energetic",
        "unknown damping c(t) or restoring force H(x), H(x,v) as curves",
    ),
    "beam": (
        "analysis.estimate.functions.beam",
        "stiffness, mass and damping along a beam from point sensors or frequencies",
    ),
}


def method_module(name: str) -> ModuleType:
    """The module of a method; an unknown name is an error that lists the known ones."""
    if name not in METHODS:
        raise ShakedownError(f"No method '{name}': choose one of {', '.join(METHODS)}.")
    return import_module(METHODS[name][0])


def identify(
    model: Model,
    record: Record | Sequence[Record],
    method: str = "auto",
    progress: Progress = SILENT,
    **options: Any,
) -> Identification:
    """Identify the free parameters of a model from one record or several, by the named method."""
    module = method_module(method)
    try:
        chosen = module.Options(**options)
    except TypeError as error:
        raise ShakedownError(f"Method {method}: {error}.") from None
    records = [record] if isinstance(record, Record) else list(record)
    result: Identification = module.identify(model, records, chosen, progress)
    return result
