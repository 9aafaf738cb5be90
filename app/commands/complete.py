"""shakedown complete: a model with the terms and filters that it lacks, found from the recordings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import project as projects
from app import project_names as names
from app.arguments import add_channel_options
from app.commands.project import keep_in_project
from app.output import add_json_option, plain, table, terminal_progress, write_json

if TYPE_CHECKING:
    from analysis import Completion


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=names.recording, help="recordings of one specimen"
    )
    parser.add_argument("model", type=names.model, metavar="MODEL", help=names.MODEL)
    parser.add_argument("--method", default="auto", metavar="M", help="that fits the model as it is given")
    parser.add_argument("--most", type=int, default=6, help="additions at most (default 6)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE",
        help="how the recordings are to be read, such as inputs=bandlimited",
    )  # fmt: skip
    add_channel_options(parser)
    parser.add_argument("--out", metavar="MODEL", help="write the completed model as a model file")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from analysis import Conditions, ShakedownError, complete, parse_options
    from app.commands.identify import exit_code, mapped, with_sources
    from drivers.base.files import replaced
    from drivers.formats import read
    from drivers.library import load_model

    if args.most < 1:
        raise ShakedownError("At least one addition must be allowed.")
    model = load_model(args.model)
    conditions = Conditions(**parse_options(Conditions, args.option))
    recordings = [mapped(read(path, rate=args.rate), args.map) for path in args.files]
    found = complete(model, recordings, args.method, conditions, terminal_progress(), args.most)
    if not write_json(args.json, payload(found)):
        _show(found)
    first = Path(args.files[0])
    text = found.model.to_toml()
    result = with_sources(replace(found.result, model_text=text), args.files)
    keep_in_project(lambda project: projects.keep_fit(project, result, first.stem))
    keep_in_project(lambda project: projects.keep_analysis(project, payload(found), (first.stem, "complete")))
    if args.out:
        with replaced(args.out) as partial:
            partial.write_text(text, encoding="utf-8")
    return exit_code(found.result)


def payload(found: Completion) -> dict[str, Any]:
    """The completion as JSON values with stable keys."""
    answer: dict[str, Any] = plain(
        {
            "verdict": found.result.verdict,
            "reasons": list(found.result.reasons),
            "steps": [
                {"added": s.added, "t": s.t, "fitted": s.fitted, "set_aside": s.predicted}
                for s in found.steps
            ],
            "refused": list(found.refused),
            "dispersion": found.conditions.dispersion,
            "parameters": {
                n: {"value": e.value, "stderr": e.stderr, "lower": e.lower, "upper": e.upper, "unit": e.unit}
                for n, e in found.result.parameters.items()
            },
            "converged": found.result.converged,
            "warnings": list(found.result.warnings),
            "model": found.model.to_toml(),
        }
    )
    return answer


def _show(found: Completion) -> None:
    from analysis import with_error

    outputs = list(found.steps[0].predicted)
    rows = [
        (s.added or "as given", f"{s.t:.1f}" if s.added else "", *(s.fitted[n] for n in outputs),
         *(s.predicted[n] for n in outputs))
        for s in found.steps
    ]  # fmt: skip
    print(
        table(("added", "t", *(f"left of {n}" for n in outputs), *(f"set aside, {n}" for n in outputs)), rows)
    )
    if found.refused:
        print(f"\nOf no help in predicting what was set aside: {', '.join(found.refused)}.")
    print(f"\nThe model {found.result.headline}.")
    for reason in found.result.reasons:
        print(f"- {reason}")
    print()
    for equation in found.model.to_text().splitlines()[: len(found.model.states)]:
        print(f"  {equation}")
    print()
    values = [(n, with_error(e), e.unit) for n, e in found.result.parameters.items()]
    print(table(("parameter", "value ± std. error", "unit"), values))
    for sentence in (*found.result.undetermined, *found.result.warnings):
        print(f"! {sentence}")
