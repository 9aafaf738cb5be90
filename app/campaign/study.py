"""The study file: which recordings, which models and methods, what varies, what is collected.

title = "Beams of lot 7"
models = ["duffing", "softening.toml"]   # of the library, or files beside the study
methods = ["auto"]
free = ["c", "k1"]                       # identify exactly these
[recordings]
files = ["lot7/*.h5"]                    # names and globs, relative to the study file, or in the project
folder = "more"                          # every recording of a folder
tags = ["lot7"]                          # recordings of the library that carry all of these
specimen = "serial"                      # metadata entry that says which recordings are of one specimen
order = "start"                          # what the trends run over: start, name or a metadata entry
[channels]
x = "laser"                              # channel that stands for an output or input of the model
[options]                                # of the method
[set]
m = 0.2                                  # known parameters
[guess]
k1 = 40.0
[vary]                                   # a list: one job for each entry, in every combination
guess = { k1 = [10.0, 40.0, 90.0] }
options = { seed = [1, 2, 3] }
segments = 4                             # each recording in so many pieces
held_out = 5                             # each of so many parts left out once, and predicted
bootstrap = 200                          # draws of each fit; `draws = "block"` resamples its residuals
[run]
limit = 600                              # s that one job may take
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_type_hints

from analysis import (
    DataError,
    Model,
    Progress,
    ShakedownError,
    option_types,
    own_module,
    parse_toml,
    read_as,
)
from app import project_names
from app.campaign.jobs import BLOCK, HELD_OUT, PARAMETRIC, SEGMENT, WHOLE, Job
from app.campaign.recordings import Seen, check_units, few, find, look_at_all
from drivers.base.files import read_text
from drivers.formats.descriptions import load_description
from drivers.library import load_model, model_files

MOST_JOBS = 1_000_000
LEAST_LIMIT = 1.0  # s


@dataclass(frozen=True)
class Recordings:
    files: tuple[str, ...] = ()
    folder: str = ""
    tags: tuple[str, ...] = ()
    library: str = ""  # folder of the library; empty: that of the window
    specimen: str = ""  # metadata entry; empty: each recording is a specimen of its own
    order: str = "start"
    rate: float | None = None  # Hz, of files that do not say
    unsuitable: Literal["refuse", "skip"] = "refuse"  # recordings that a model does not fit


@dataclass(frozen=True)
class Vary:
    options: Mapping[str, list[Any]] = field(default_factory=dict)
    set: Mapping[str, list[float]] = field(default_factory=dict)
    guess: Mapping[str, list[float]] = field(default_factory=dict)
    segments: int = 1
    held_out: int = 0
    bootstrap: int = 0
    draws: Literal["parametric", "block"] = "parametric"
    seed: int = 0  # of the first draw


@dataclass(frozen=True)
class Running:
    limit: float = 600.0  # s that one job may take
    workers: int = 0  # processes; 0: one for each processor


@dataclass(frozen=True)
class Study:
    """The study file, read; what it says of itself is in order."""

    models: tuple[str, ...]
    recordings: Recordings
    title: str = ""
    methods: tuple[str, ...] = ("auto",)
    free: tuple[str, ...] = ()
    channels: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    set: Mapping[str, float] = field(default_factory=dict)
    guess: Mapping[str, float] = field(default_factory=dict)
    vary: Vary = field(default_factory=Vary)
    run: Running = field(default_factory=Running)
    collect: tuple[str, ...] = ()  # metadata entries of the recordings that become columns of the table


@dataclass(frozen=True)
class Plan:
    """What a study comes to: the recordings as they are now, and every job."""

    study: Study
    seen: tuple[Seen, ...]
    jobs: tuple[Job, ...]
    unsuitable: Mapping[str, str]  # a sentence by recording


def read_study(path: Path | str) -> Study:
    """A study file; DataError in one sentence for a typo or a value that makes no sense."""
    path = Path(path)
    try:
        raw = parse_toml(read_text(path, "a study"))
        _check_words(Study, raw, "")
        study = read_as(Study, raw)
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise DataError(f"{path.name} is not a study: {error}.") from None
    try:
        _check(study)
    except ShakedownError as error:
        raise DataError(f"{path.name}: {error}") from None
    return study


def plan(
    study: Study,
    base: Path,
    library: Path,
    known: Mapping[str, Seen],
    progress: Progress,
    done: Set[str] = frozenset(),
    project: Path | None = None,
) -> Plan:
    """Everything that is to be done, checked against the models and the recordings before anything runs.

    ``project``: folder of the project we are in; its recordings and models are known by their names.
    ``done``: keys of jobs that are finished; the options of a fit that has one were in order then, and
    checking them again would load the numerics for nothing.
    """
    fits = list(_fits(study, base))
    _check_texts(fits)
    told = study.recordings
    _check_channels(study, fits)
    if not done:
        _check_options(fits)
    folder = Path(told.library).expanduser() if told.library else library
    places = [base] if project is None else [base, project, project / "recordings"]
    paths = find(places, told.files, told.folder, told.tags, folder)
    seen, bad = look_at_all(paths, known, told.rate, progress)
    for fit in fits:
        bad |= misfits(fit.name, fit.outputs, fit.inputs, study.channels, seen)
    if bad and told.unsuitable == "refuse":
        first, reason = next(iter(bad.items()))
        more = (
            f" (and {len(bad) - 1} more: {few(Path(p).name for p in list(bad)[1:])})" if len(bad) > 1 else ""
        )
        reason = reason.removeprefix(f"{Path(first).name} ")  # many sentences begin with the file's name
        raise DataError(
            f"{Path(first).name}{more}: {reason} Leave out what does not fit, or say "
            f'`unsuitable = "skip"` under [recordings].'
        )
    seen = [s for s in seen if s.path not in bad]
    if not seen and not bad:
        raise DataError(f"What the study names in {base} are folders, not recordings: `folder` names one.")
    if not seen:
        raise DataError(f"None of the recordings fits the study: {next(iter(bad.values()))}")
    needed = {study.channels.get(n, n) for fit in fits for n in (*fit.outputs, *fit.inputs)}
    check_units(seen, sorted(needed))
    known_entries = sorted({name for s in seen for name in s.metadata})
    if told.specimen and not any(told.specimen in s.metadata for s in seen):
        raise DataError(f"No recording has the metadata entry `{told.specimen}` that names its specimen.")
    if told.order not in ("start", "name") and not any(told.order in s.metadata for s in seen):
        raise DataError(
            f"No recording has the metadata entry `{told.order}` that `order` names"
            f"{_meant(told.order, ['start', 'name', *known_entries])}."
        )
    for name in study.collect:
        if name not in known_entries:
            raise DataError(
                f"No recording has the metadata entry `{name}` to collect{_meant(name, known_entries)}."
            )
    parts = _parts(study.vary)
    if len(seen) * len(fits) * len(parts) > MOST_JOBS:
        raise DataError(f"The study comes to more than {MOST_JOBS} jobs: vary less at once.")
    jobs = tuple(
        Job(
            s.path, s.sha256, fit.text, fit.name, fit.method, fit.options, study.channels, told.rate,
            kind, number, count, study.vary.seed if kind in (PARAMETRIC, BLOCK) else 0, fit.varied,
        )
        for s in seen
        for fit in fits
        for kind, number, count in parts
    )  # fmt: skip
    if done:
        each = len(parts)
        own = (jobs[i * each : (i + 1) * each] for i in range(len(fits)))  # those of the first recording
        _check_options([f for f, j in zip(fits, own, strict=True) if j[0].key not in done])
    return Plan(study, tuple(seen), jobs, bad)


@dataclass(frozen=True)
class _Fit:
    """A model with its guesses, a method with its options."""

    name: str
    text: str
    method: str
    options: Mapping[str, Any]
    varied: Mapping[str, float | str]
    outputs: tuple[str, ...] = ()  # one of them at least must be in a recording
    inputs: tuple[str, ...] = ()  # all of them must be


def _fits(study: Study, base: Path) -> Iterator[_Fit]:
    vary = study.vary
    grids = [("options", n, v) for n, v in vary.options.items()]
    grids += [("set", n, v) for n, v in vary.set.items()] + [("guess", n, v) for n, v in vary.guess.items()]
    for name, method in itertools.product(study.models, study.methods):
        for chosen in itertools.product(*(values for _, _, values in grids)):
            given = {"options": dict(study.options), "set": dict(study.set), "guess": dict(study.guess)}
            for (kind, entry, _), value in zip(grids, chosen, strict=True):
                given[kind][entry] = value
            varied = {_column(k, n): v for (k, n, _), v in zip(grids, chosen, strict=True)}
            options = given["options"]
            if own_module(method) is not None:
                yield _described(study, base, name, method, options, varied)
                continue
            model = _model(load_model(_where(base, name)), study.free, given["set"], given["guess"])
            yield _Fit(
                Path(name).stem, model.text, method, options, varied, model.outputs, tuple(model.inputs)
            )


def _column(kind: str, name: str) -> str:
    """Name of an entry of the grid in the table: beside a guess stands the parameter that was found."""
    return f"guess {name}" if kind == "guess" else name


def varied_columns(vary: Vary) -> list[str]:
    """The columns of the table that tell what the grid chose."""
    return [_column(kind, n) for kind in ("options", "set", "guess") for n in getattr(vary, kind)]


def _described(
    study: Study, base: Path, name: str, method: str, options: Mapping[str, Any], varied: Mapping[str, Any]
) -> _Fit:
    """A method that reads its own kind of specimen."""
    module = own_module(method)
    if module is None or not hasattr(module, "load"):
        raise DataError(f"Method {method} cannot be part of a study.")
    if study.free or study.set or study.guess or study.vary.set or study.vary.guess:
        raise DataError(f"`free`, `set` and `guess` are for models of equations, not for method {method}.")
    text, source = load_description(_where(base, name), module.FOLDER)
    module.load(text, source)
    return _Fit(Path(name).stem, text, method, options, varied)


def _where(base: Path, name: str) -> str:
    """A model of the library or of the project by its name, a file relative to the study."""
    beside = base / name
    return str(beside) if name not in model_files() and beside.is_file() else project_names.model(name)


def _model(
    model: Model, wanted: Sequence[str], known: Mapping[str, float], guesses: Mapping[str, float]
) -> Model:
    model = model.with_values({**known, **guesses})
    free = [name for name in model.free if name not in known]
    free += [name for name in guesses if name not in free]
    if wanted:
        free = list(wanted)
    if not free:
        raise DataError(f"{model.name} has no parameter left to identify.")
    return model.with_free(free)


def _check_texts(fits: Iterable[_Fit]) -> None:
    """DataError for two models that are one: their jobs would have the same keys."""
    texts: dict[str, str] = {}
    for fit in fits:
        if texts.setdefault(fit.text, fit.name) != fit.name:
            raise DataError(f"Models {texts[fit.text]} and {fit.name} are the same: leave one out.")


def _check_channels(study: Study, fits: Sequence[_Fit]) -> None:
    """DataError for a channel that is to stand for something which no model knows."""
    known = {name for fit in fits for name in (*fit.outputs, *fit.inputs)}
    for name in study.channels if known else ():
        if name not in known:
            raise DataError(
                f"`{name}` under [channels] is no output or input of the models{_meant(name, sorted(known))}."
            )


def _check_options(fits: Sequence[_Fit]) -> None:
    """DataError unless every option is one of its method and of the type that it takes."""
    for fit in fits:
        kinds = option_types(fit.method)
        hints = {name: hint for kind in reversed(kinds) for name, hint in get_type_hints(kind).items()}
        known = [f.name for kind in kinds for f in fields(kind)]
        for name, value in fit.options.items():
            if name not in known:
                raise DataError(f"Method {fit.method} has no option `{name}`{_meant(name, known)}.")
            try:
                read_as(hints[name], value, name)
            except (ValueError, TypeError) as error:
                raise DataError(f"Option {error}.") from None


def misfits(
    model: str,
    outputs: Sequence[str],
    inputs: Sequence[str],
    channels: Mapping[str, str],
    seen: Sequence[Seen],
) -> dict[str, str]:
    """A sentence for each recording without the channels that a model needs."""
    words = {own: _misfit(model, outputs, inputs, channels, own) for own in {s.channels for s in seen}}
    return {s.path: words[s.channels] for s in seen if words[s.channels]}


def _misfit(
    model: str, outputs: Sequence[str], inputs: Sequence[str], channels: Mapping[str, str], own: Sequence[str]
) -> str:
    """What a recording with these channels lacks; empty if it lacks nothing."""
    there = {*own, *channels}
    if strange := [c for c in channels.values() if c not in own]:
        lacking = f"no channel {', '.join(strange)} for the inputs and outputs"
    elif outputs and not there.intersection(outputs):
        lacking = f"none of the outputs {', '.join(outputs)}"
    elif missing := [name for name in inputs if name not in there]:
        lacking = f"no channel {', '.join(missing)}"
    else:
        return ""
    return (
        f"it has {lacking} of model {model} (its channels are {', '.join(own)}; [channels] names those that "
        f"stand for others)."
    )


def _parts(vary: Vary) -> list[tuple[str, int, int]]:
    if vary.held_out:
        return [(WHOLE, 0, 1)] + [(HELD_OUT, i, vary.held_out) for i in range(vary.held_out)]
    if vary.segments > 1:
        return [(SEGMENT, i, vary.segments) for i in range(vary.segments)]
    if vary.bootstrap:
        return [(WHOLE, 0, 1)] + [(vary.draws, i, vary.bootstrap) for i in range(vary.bootstrap)]
    return [(WHOLE, 0, 1)]


def _check(study: Study) -> None:
    vary = study.vary
    if not study.models:
        raise DataError("`models` is empty: there is nothing to fit.")
    first: dict[str, str] = {}
    for name in study.models:
        if (stem := Path(name).stem) in first:
            raise DataError(
                f"Models {first[stem]} and {name} have one name: the table could not tell them apart."
            )
        first[stem] = name
    if not study.methods:
        raise DataError("`methods` is empty.")
    for method in study.methods:
        own_module(method)  # an unknown one is refused, with the list of those there are
    for grid in (vary.options, vary.set, vary.guess):
        for name, values in grid.items():
            if not values:
                raise DataError(f"The list of `{name}` under [vary] is empty.")
    known = {*study.set, *vary.set}
    for name in (*study.free, *study.guess, *vary.guess):
        if name in known:
            raise DataError(
                f"`{name}` cannot be known (`set`) and to be identified (`free`, `guess`) at once."
            )
    if not 1 <= vary.segments <= 10_000:
        raise DataError(f"`segments` is 1 or more, not {vary.segments}.")
    if vary.held_out and not 2 <= vary.held_out <= 100:
        raise DataError(f"`held_out` is the number of parts, 2 or more, not {vary.held_out}.")
    if vary.bootstrap < 0 or vary.seed < 0:
        raise DataError("`bootstrap` and `seed` must not be negative.")
    if (vary.segments > 1) + bool(vary.held_out) + bool(vary.bootstrap) > 1:
        raise DataError("`segments`, `held_out` and `bootstrap` are studies of their own: choose one.")
    if study.recordings.rate is not None and not 0 < study.recordings.rate < math.inf:
        raise DataError(f"`rate` is a number of samples a second, not {study.recordings.rate:g}.")
    if not study.run.limit >= LEAST_LIMIT:
        raise DataError(f"`limit` is the time that a job may take, {LEAST_LIMIT:g} s at least.")
    if study.run.workers < 0:
        raise DataError("`workers` must not be negative.")


def _check_words(kind: Any, raw: Mapping[str, Any], where: str) -> None:
    """An entry that no table knows is a typo, and the sentence says what was probably meant."""
    hints = get_type_hints(kind)
    for name, value in raw.items():
        if name not in hints:
            raise ValueError(f"`{where}{name}` is not known{_meant(name, list(hints))}")
        if is_dataclass(hints[name]) and isinstance(value, dict):
            _check_words(hints[name], value, f"{name}.")


def _meant(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, 1, 0.5)
    return f" (did you mean `{close[0]}`?)" if close else f"; there are {', '.join(known)}"
