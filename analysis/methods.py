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

from analysis.errors import ShakedownError
from analysis.progress import SILENT, Progress
from analysis.record import Record

if TYPE_CHECKING:
    from analysis.identification import Identification
    from analysis.model import Model

# name: module, what it is for (shown by --help and in the desktop's chooser)
METHODS: dict[str, tuple[str, str]] = {
    "auto": ("analysis.auto", "the method that suits the data, said why"),
    "weak": ("analysis.weak", "weak form with B-spline test functions: fast, all states measured"),
    "path": ("analysis.path", "maximum likelihood over the states at all samples and the parameters"),
    "balance": ("analysis.balance", "harmonic balance on the periodic orbits hidden in a chaotic record"),
    "surface": ("analysis.surface", "restoring force over displacement, without a model of its shape"),
    "homotopy": (
        "analysis.homotopy",
        "few sensors and poor guesses: couple the model to the record, then let go",
    ),
    "global": (
        "analysis.global_search",
        "differential evolution, particle swarm or genetic search, as a baseline",
    ),
    "energetic": ("analysis.energetic", "unknown damping c(t) or restoring force H(x), H(x,v) as curves"),
    "beam": ("analysis.beam", "stiffness, mass and damping along a beam from point sensors or frequencies"),
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
