"""The identification methods, by name. Each is a frozen dataclass in a file of its own (see start.py).

Methods are imported when asked for, so that a start does not pay for what is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from importlib import import_module
from importlib.metadata import EntryPoint
from itertools import combinations
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from analysis.base.errors import DataError, ShakedownError
from analysis.base.plugins import PluginError, load_plugin, package_of, plugged, summary_of
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record

if TYPE_CHECKING:
    from analysis.base.identification import Identification
    from analysis.estimate.finish.finish import Ending
    from analysis.estimate.start import Method, Start
    from analysis.experiment import Experiment
    from analysis.model import Model

_BEGINNING = 64  # samples by which two records are told apart before they are compared whole
STARTED = 0.3  # of the progress when the method has its start and maximum likelihood begins


def _weak() -> type[Method]:
    from analysis.estimate.weak.method import Weak

    return Weak


def _path() -> type[Method]:
    from analysis.estimate.path.method import Path

    return Path


def _shooting() -> type[Method]:
    from analysis.estimate.shooting.method import Shooting

    return Shooting


def _auto() -> type[Method]:
    from analysis.estimate.auto import Auto

    return Auto


def _balance() -> type[Method]:
    from analysis.estimate.balance.method import HarmonicBalance

    return HarmonicBalance


def _homotopy() -> type[Method]:
    from analysis.estimate.homotopy.method import Homotopy

    return Homotopy


def _global() -> type[Method]:
    from analysis.estimate.search.global_search import GlobalSearch

    return GlobalSearch


def _surface() -> type[Method]:
    from analysis.estimate.functions.surface import RestoringForce

    return RestoringForce


@dataclass(frozen=True)
class Entry:
    """A method of the registry: how to get it, and what it is for (shown by --help and the chooser)."""

    words: str
    load: Callable[[], type[Method]] | None = None
    module: str = ""  # of a method that describes its own kind of specimen: Options and identify


METHODS: dict[str, Entry] = {
    "auto": Entry("every method that suits the data, cheap ones first, until one follows it", _auto),
    "weak": Entry("weak form with B-spline test functions: fast, all states measured", _weak),
    "path": Entry("maximum likelihood over the states at all samples and the parameters", _path),
    "shooting": Entry("few sensors and poor guesses: growing and windowed output error", _shooting),
    "balance": Entry("harmonic balance on the periodic orbits hidden in a chaotic record", _balance),
    "surface": Entry("restoring force over displacement, without a model of its shape", _surface),
    "homotopy": Entry("few sensors and poor guesses: couple the model to the record, then let go", _homotopy),
    "global": Entry("differential evolution, particle swarm or genetic search, as a baseline", _global),
    "energetic": Entry(
        "unknown damping c(t) or restoring force H(x), H(x,v) as curves",
        module="analysis.estimate.functions.energetic",
    ),
    "beam": Entry(
        "stiffness, mass and damping along a beam from point sensors or frequencies",
        module="analysis.estimate.functions.beam",
    ),
}


def _plugged() -> dict[str, Entry]:
    """Methods of other packages: a frozen dataclass each, like ours; its package's summary is its words."""
    found = {}
    for name, plugin in plugged("methods", METHODS).items():
        words = f"{summary_of(plugin) or 'no description'} (from {package_of(plugin)})"
        found[name] = Entry(words, _loader(plugin))
    return found


def _loader(plugin: EntryPoint) -> Callable[[], type[Method]]:
    def load() -> type[Method]:
        method: type[Method] = load_plugin(plugin)
        if not (isinstance(method, type) and is_dataclass(method)):
            raise PluginError(f"'{plugin.name}' ({plugin.value}) is no method: a dataclass with a start.")
        return method

    return load


OWN_METHODS = tuple(METHODS)  # before those of other packages
METHODS |= _plugged()


def entry(name: str) -> Entry:
    """A method's entry; an unknown name is an error that lists the known ones."""
    if name not in METHODS:
        raise ShakedownError(f"No method '{name}': choose one of {', '.join(METHODS)}.")
    return METHODS[name]


def own_module(name: str) -> ModuleType | None:
    """The module of a method that describes its own kind of specimen; None for those of equations."""
    module = entry(name).module
    return import_module(module) if module else None


def option_types(name: str) -> tuple[type, ...]:
    """The dataclasses whose fields are the options of a method, its own first."""
    from analysis.estimate.finish.finish import Ending
    from analysis.experiment import Conditions

    load = entry(name).load
    if load is not None:
        return load(), Conditions, Ending
    module = own_module(name)
    assert module is not None
    return (module.Options,)


def identify(
    model: Model,
    record: Record | Sequence[Record],
    method: str | Method = "auto",
    progress: Progress = SILENT,
    **options: Any,
) -> Identification:
    """Identify the free parameters of a model from one record or several, by a method or its name.

    ``options``: those of the method (unless it is given as an object), of the data
    (:class:`analysis.experiment.Conditions`) and of the finish.
    """
    from analysis.model import Model

    records = [record] if isinstance(record, Record) else list(record)
    name = method if isinstance(method, str) else method.name
    if isinstance(model, Model) and model.equations.functions:  # a beam has other equations
        from analysis.estimate.function_range import with_ranges

        model = with_ranges(model, records, name, bool(options.get("finish", True)))
    module = own_module(name) if isinstance(method, str) else None
    if module is None:
        return _identify(model, records, method, progress, options)
    try:
        chosen = module.Options(**options)
    except TypeError as error:
        raise ShakedownError(f"Method {method}: {error}.") from None
    result: Identification = module.identify(model, records, chosen, progress)
    return result


def _identify(
    model: Model,
    records: Sequence[Record],
    method: str | Method,
    progress: Progress,
    options: dict[str, Any],
) -> Identification:
    from analysis.estimate.finish import assemble_start, finish

    begun = begin(model, records, method, progress, options)
    start = begun.start
    if start.verdict is not None or not begun.ending.finish:
        return assemble_start(begun.experiment, start, begun.said)
    if start.fitted is None and not start.finishable:  # the method saw by itself that the model is wrong
        refused = replace(start, verdict="misses", reasons=list(start.warnings))
        return assemble_start(begun.experiment, refused, begun.said)
    return finish(
        begun.experiment,
        start,
        progress.part(STARTED, 1.0),
        max_iterations=begun.ending.max_iterations,
        profile=begun.ending.profile,
        options=begun.said,
    )


@dataclass(frozen=True)
class Begun:
    """An identification up to the start that its method gives."""

    experiment: Experiment
    start: Start
    ending: Ending
    said: dict[str, Any]  # every option with its value


def _check_choice(kind: type, key: str, value: object) -> None:
    """A misspelt word would silently mean one of the others."""
    try:
        wanted = get_type_hints(kind)[key]
    except NameError:  # another package's types, imported for the type checker only
        return
    if get_origin(wanted) is Literal and value not in get_args(wanted):
        raise ShakedownError(f"No {key} '{value}': choose one of {', '.join(get_args(wanted))}.")


def _check_copies(records: Sequence[Record]) -> None:
    """The same samples twice would count as twice the data."""
    for i, j in combinations(range(len(records)), 2):
        if _same_samples(records[i], records[j]):
            raise DataError(
                f"Records {i + 1} and {j + 1} hold the same samples: give each recording once, or the error "
                "bars count it twice."
            )


def _same_samples(one: Record, other: Record) -> bool:
    """Whether two records hold the same channels; their beginnings, which tell nearly always, first."""
    return set(one.names) == set(other.names) and all(
        np.array_equal(one[name][:stop], other[name][:stop], equal_nan=True)
        for stop in (_BEGINNING, None)
        for name in one.names
    )


def begin(
    model: Model,
    records: Sequence[Record],
    method: str | Method,
    progress: Progress,
    options: dict[str, Any],
) -> Begun:
    """Sort the options to those who take them, read the records, and let the method find its start."""
    from analysis.estimate.finish.finish import Ending
    from analysis.experiment import Conditions, Experiment

    name = method if isinstance(method, str) else method.name
    own = option_types(name)[0]
    parts: dict[type, dict[str, Any]] = {kind: {} for kind in (own, Conditions, Ending)}
    for key, value in options.items():
        kind = next((k for k in parts if key in {f.name for f in fields(k)}), None)
        if kind is None or (kind is own and not isinstance(method, str)):
            known = ", ".join(f.name for k in parts for f in fields(k))
            raise ShakedownError(f"Method {name} has no option '{key}': it takes {known}.")
        _check_choice(kind, key, value)
        parts[kind][key] = value
    chosen = own(**parts[own]) if isinstance(method, str) else method
    conditions, ending = Conditions(**parts[Conditions]), Ending(**parts[Ending])
    experiment = Experiment(model, records, conditions)
    _check_copies(experiment.records)
    mine = {f.name: getattr(chosen, f.name) for f in fields(own)}
    said = {**mine, **asdict(conditions), **asdict(ending)}
    share = STARTED if ending.finish else 1.0
    start = chosen.start(experiment, progress.part(0.0, share), alone=not ending.finish)
    return Begun(experiment, start, ending, said)
