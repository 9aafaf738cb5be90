"""shakedown identify: parameters of a model from one recording or several, with error bars."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from analysis import METHODS, ShakedownError, identify, option_types, own_module, parse_options
from app import project as projects
from app import project_names as names
from app.arguments import add_channel_options
from app.commands.project import keep_in_project
from app.output import add_json_option, table, terminal_progress, write_json

if TYPE_CHECKING:
    from analysis import Estimate, Identification, Model, Record


def configure(parser: argparse.ArgumentParser) -> None:
    methods = "; ".join(f"{name}: {entry.words}" for name, entry in METHODS.items())
    parser.add_argument(
        "files",
        nargs="*",
        type=names.recording,
        metavar="FILE",
        help="recordings, or results of `hold`, fitted together; or tables of measured curves (frequency, "
        "amplitude, phase, force)",
    )
    parser.add_argument("model", type=names.model, metavar="MODEL", help=names.MODEL)
    parser.add_argument("--method", default="auto", choices=list(METHODS), metavar="M", help=methods)
    _pairs(parser, "--set", "a parameter that is known")
    _pairs(parser, "--guess", "a parameter to be identified, and where to start")
    parser.add_argument("--free", metavar="A,B", help="identify exactly these parameters")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="an option of the method"
    )
    parser.add_argument(
        "--no-finish", action="store_true", help="the method by itself, no maximum likelihood"
    )
    parser.add_argument(
        "--profile", metavar="A,B", help="trace the profile likelihood of these parameters, or of all"
    )
    parser.add_argument(
        "--bootstrap", type=int, default=0, metavar="N", help="error bars also from N draws of the record"
    )
    parser.add_argument(
        "--draws", default="parametric", choices=("parametric", "block"),
        help="what is drawn: white noise, or the fit's own residuals in blocks",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    add_channel_options(parser)
    parser.add_argument("--plot", metavar="FILE", help="draw the result (png, svg or pdf)")
    parser.add_argument(
        "--states",
        metavar="FILE",
        help="write the recording with the model's states, hidden ones included, and their "
        "standard errors as further channels",
    )
    add_json_option(parser)


def _pairs(parser: argparse.ArgumentParser, flag: str, words: str) -> None:
    parser.add_argument(flag, action="append", default=[], metavar="NAME=VALUE", help=words)


def run(args: argparse.Namespace) -> int:
    from app.held_orbits import held_records, is_held
    from drivers.formats import read

    if args.files and (curves := _curves(args)):
        return _finished(curves, args)
    model = _described(own_module(args.method), args)
    records: list[Record] = []
    for path in args.files:
        own = held_records(path, args.method == "balance") if is_held(path) else [read(path, rate=args.rate)]
        records += [mapped(record, args.map) for record in own]
    kinds = option_types(args.method)
    options = parse_options(kinds, args.option)
    known = {f.name for kind in kinds for f in fields(kind)}
    if args.no_finish:
        if "finish" not in known:
            raise ShakedownError(f"Method {args.method} has no finish to leave out.")
        options["finish"] = False
    if args.profile:
        if "profile" not in known:
            raise ShakedownError("A profile likelihood is traced by the methods homotopy and path.")
        options["profile"] = tuple(name.strip() for name in args.profile.split(","))
    if args.states:
        _check_states(args)
    if args.bootstrap:
        _check_bootstrap(args)
    result = identify(model, records, args.method, terminal_progress(), **options)
    result = with_sources(result, args.files, _pairs_of(args.map))
    if args.bootstrap:
        result = _bootstrapped(result, model, args)
    if args.states and result.usable:
        _write_states(result, records[0], args.states)
    return _finished(result, args)


def _curves(args: argparse.Namespace) -> Identification | None:
    """A fit to measured curves, where the files are such; None where they are recordings."""
    from drivers.formats.curves import is_curve, read_curve

    kinds = [is_curve(path) for path in args.files]
    if not any(kinds):
        return None
    if not all(kinds):
        raise ShakedownError("Recordings and measured curves cannot be fitted together.")
    if (
        args.method != "auto"
        or args.option
        or args.profile
        or args.bootstrap
        or args.states
        or args.no_finish
    ):
        raise ShakedownError(
            "Measured curves have a method of their own: leave the method and its options out."
        )
    from analysis import identify_curves

    model = _described(None, args)
    output = {channel: name for name, channel in _pairs_of(args.map).items()}.get(
        "amplitude", model.outputs[0]
    )
    result = identify_curves(model, [read_curve(path, output) for path in args.files], terminal_progress())
    return with_sources(result, args.files)


def _finished(result: Identification, args: argparse.Namespace) -> int:
    """Shown, written and kept; the exit code."""
    if not write_json(args.json, result.to_json()):
        _show(result)
    keep_in_project(lambda project: projects.keep_fit(project, result, Path(args.files[0]).stem))
    if args.plot:
        from app.figures.identification import save_figure

        save_figure(result, args.plot)
    if not result.converged:
        print("shakedown: the identification did not converge; do not trust the numbers.", file=sys.stderr)
    elif not result.usable:
        print(f"shakedown: the verdict is `{result.verdict}`; do not use the numbers.", file=sys.stderr)
    return exit_code(result)


def _check_states(args: argparse.Namespace) -> None:
    """Refuse before the work what could only fail after it."""
    from drivers.formats import format_for_writing

    if len(args.files) != 1 or own_module(args.method) is not None or args.no_finish:
        raise ShakedownError("States are told of one recording and a model of equations with its finish.")
    format_for_writing(Path(args.states))


def _write_states(result: Identification, record: Record, path: str) -> None:
    """The recording with every state of the model and its standard error as further channels."""
    from analysis import latent_states
    from app.latent import with_states
    from drivers.formats import write

    found = latent_states(result, record, terminal_progress())
    write(with_states(record, result, found), path)
    print(f"states: {', '.join(found.names)} with their standard errors in {path}", file=sys.stderr)
    for sentence in found.words:
        print(f"! {sentence}", file=sys.stderr)


def _check_bootstrap(args: argparse.Namespace) -> None:
    """Refuse before the work what could only fail after it."""
    from app.campaign.bootstrap import LEAST

    if len(args.files) != 1 or own_module(args.method) is not None:
        raise ShakedownError("A bootstrap is made of one recording and a model of equations.")
    if args.bootstrap < LEAST:
        raise ShakedownError(f"{args.bootstrap} draws say little about an error bar: {LEAST} at least.")


def _bootstrapped(result: Identification, model: Any, args: argparse.Namespace) -> Identification:
    """The result with standard deviations and intervals of the draws among its findings; where the draws give
    none, the fit itself stands, and says so."""
    from app.campaign.bootstrap import bootstrapped

    options = {name: value for name, value in result.options.items() if name in _given(args)}
    try:
        return bootstrapped(
            result, args.files[0], model, args.method, options, _pairs_of(args.map), args.rate,
            (args.draws, args.bootstrap, args.seed), terminal_progress(),
        )  # fmt: skip
    except ShakedownError as error:
        return replace(result, warnings=[*result.warnings, f"There is no bootstrap: {error}"])


def _given(args: argparse.Namespace) -> set[str]:
    """Options that were given; those of the profile concern the fit alone."""
    named = {text.partition("=")[0].strip().replace("-", "_") for text in args.option}
    return named | ({"finish"} if args.no_finish else set())


def _pairs_of(texts: list[str]) -> dict[str, str]:
    pairs = (text.partition("=") for text in texts)
    return {name.strip(): channel.strip() for name, _, channel in pairs}


def exit_code(result: Identification) -> int:
    """0 done, 1 no convergence, 3 done but not to be used."""
    if not result.converged:
        return 1
    return 0 if result.usable else 3


def _described(module: ModuleType | None, args: argparse.Namespace) -> Any:
    """A model of equations, or whatever description the method reads with a ``load`` of its own."""
    from drivers.formats.descriptions import load_description
    from drivers.library import load_model

    if module is not None and hasattr(module, "load"):
        if args.set or args.guess or args.free:
            raise ShakedownError(
                f"--set, --guess and --free are for models of equations; with {args.method} change the "
                f"description instead."
            )
        return module.load(*load_description(args.model, module.FOLDER))
    if not args.files:
        raise ShakedownError("There is no recording to identify from: shakedown identify FILE MODEL.")
    return _model(load_model(args.model), args)


def with_sources(
    result: Identification, files: list[str], channels: Mapping[str, str] | None = None
) -> Identification:
    """The result with the names and fingerprints of what it was found from, for the report.

    ``channels``: which of them stood for a quantity of the model of another name.
    """
    from dataclasses import replace

    from app.session import fingerprint

    known = {"channels": json.dumps(channels)} if channels else {}
    sources = [{"file": name, "sha256": fingerprint(name), **known} for name in files]
    return replace(result, recordings=sources)


def _model(model: Model, args: argparse.Namespace) -> Model:
    known, guesses = numbers(args.set), numbers(args.guess)
    model = model.with_values({**known, **guesses})
    free = [name for name in model.free if name not in known]
    free += [name for name in guesses if name not in free]
    if args.free:
        free = [name.strip() for name in args.free.split(",")]
    return model.with_free(free)


def numbers(texts: list[str]) -> dict[str, float]:
    """NAME=VALUE texts of the command line as a mapping."""
    numbers = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            numbers[name.strip()] = float(value)
        except ValueError:
            raise ShakedownError(f"`{text}` should read NAME=NUMBER.") from None
    return numbers


def mapped(record: Record, texts: list[str]) -> Record:
    from dataclasses import replace

    channels = dict(record.channels)
    for text in texts:
        name, sign, channel = (part.strip() for part in text.partition("="))
        if not sign:
            raise ShakedownError(f"`{text}` should read NAME=CHANNEL.")
        record[channel]  # an unknown channel is refused here, with the list of those there are
        channels[name] = record.channels[channel]
    return replace(record, channels=channels)


def _show(result: Identification) -> None:
    from analysis import interval_ends, with_error

    rows: list[tuple[Any, ...]] = [
        (name, with_error(e), *interval_ends(e), e.unit, _ideal(e)) for name, e in result.listed.items()
    ]
    state = "converged" if result.converged else "NOT converged"
    print(f"{result.model}: {result.headline}")
    for sentence in result.reasons:
        print(f"- {sentence}")
    print(f"by {result.method}, {state} after {result.iterations} iterations")
    print(table(("parameter", "value ± std. error", "95 % from", "to", "unit", "ideal error"), rows))
    if result.chosen:
        print(f"chosen: {result.chosen}")
    if figures := result.residual.figures():
        print("residual: " + ", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
    for profile in result.profiles.values():
        print(profile.words)
    for formula in result.formulas:
        print(formula)
    if "bootstrap" in result.extra:
        _show_bootstrap(result.extra["bootstrap"])
    for sentence in (*result.undetermined, *result.warnings):
        print(f"! {sentence}")


def _show_bootstrap(found: dict[str, Any]) -> None:
    print(f"bootstrap, {found['done']} draws ({found['kind']}):")
    rows = [(n, e["stderr"], e["lower"], e["upper"]) for n, e in found["parameters"].items()]
    print(table(("parameter", "std. deviation", "95 % from", "to"), rows))


def _ideal(estimate: Estimate) -> str:
    """Standard error that white noise and a right model would give; a dash where it is the same."""
    ideal = estimate.stderr_ideal
    same = not math.isfinite(ideal) or ideal == estimate.stderr
    return "–" if same else f"{ideal:.2g}"
