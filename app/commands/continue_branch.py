"""shakedown continue: branches of a model's periodic motions over a parameter."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import ShakedownError
from app import project_names as names
from app.output import add_json_option, plain, table, terminal_progress, write_json

if TYPE_CHECKING:
    from analysis import Branch, Identification, Model


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=names.model, metavar="MODEL", help=names.MODEL)
    parser.add_argument("--fit", type=names.fit, metavar="RESULT", help=names.FIT)
    parser.add_argument(
        "--over",
        nargs=3,
        required=True,
        metavar=("NAME", "FROM", "TO"),
        help="the parameter, followed from one value to the other",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter")
    parser.add_argument("--each", metavar="NAME=A,B,...", help="a branch for each value of another parameter")
    parser.add_argument(
        "--amplitude", type=float, metavar="A", help="make the measured input a tone of this size"
    )
    parser.add_argument(
        "--initial",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a state's start, from which the model settles",
    )
    parser.add_argument(
        "--periods", type=int, default=1, metavar="N", help="periods of the drive in one of the motion"
    )
    parser.add_argument(
        "--period", type=float, metavar="T", help="a guess of the period, for models without a drive"
    )
    parser.add_argument(
        "--segments", type=int, default=1, metavar="N", help="pieces of an orbit; more for very unstable ones"
    )
    parser.add_argument("--out", metavar="FILE", help="every point of the branches as a table (.csv)")
    parser.add_argument("--plot", metavar="FILE", help="draw the branches (png, svg or pdf)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.commands.identify import numbers
    from drivers.library import load_model

    over, begin, end = _range(args.over)
    if args.periods < 1 or args.segments < 1:
        raise ShakedownError("--periods and --segments count from 1.")
    model, fit = load_model(args.model), _fit(args.fit)
    values = {} if fit is None else {n: v for n, v in fit.values().items() if n in model.parameters}
    model = model.with_values(values)
    if args.amplitude is not None:
        model = _with_tone(model, over, begin, args)
    elif model.inputs:
        raise ShakedownError(
            f"{model.name} has the measured input {model.inputs[0]}: --amplitude makes it a tone, whose "
            "frequency and amplitude are then parameters."
        )
    model = model.with_values(numbers(args.set))
    name, each = _each(args.each)
    branches = []
    for value in each:
        chosen = model if value is None else model.with_values({name: value})
        branches.append((value, _branch(chosen, over, begin, end, args, fit)))
    payload = {"model": model.name, "over": over, "branches": [_payload(b, name, v) for v, b in branches]}
    if args.out:
        _write_table(branches, name, Path(args.out))
    if args.plot:
        from app.figures.branches import save_branches

        save_branches([b for _, b in branches], [_label(name, v) for v, _ in branches], args.plot)
    if not write_json(args.json, payload):
        for value, branch in branches:
            _show(branch, _label(name, value))
    return 1 if any(branch.ended in ("lost", "points") for _, branch in branches) else 0


def _with_tone(model: Model, over: str, begin: float, args: argparse.Namespace) -> Model:
    """The model driven by a tone; over anything but its frequency, that must be told."""
    from analysis import TONE_AMPLITUDE, TONE_FREQUENCY, driven_by_a_tone

    told = any(text.partition("=")[0].strip() == TONE_FREQUENCY for text in (*args.set, args.each or ""))
    if over in (*model.parameters, TONE_AMPLITUDE) and not told:
        raise ShakedownError(
            f"--set {TONE_FREQUENCY}=HZ says the frequency of the tone at which {over} is followed."
        )
    return driven_by_a_tone(model, begin, args.amplitude)


def _branch(
    model: Model, over: str, begin: float, end: float, args: argparse.Namespace, fit: Identification | None
) -> Branch:
    from analysis import follow, period_rule, settled_orbit
    from app.commands.identify import numbers

    lower, upper = sorted((begin, end))
    rule = period_rule(model, over, lower, upper, args.periods)
    start = settled_orbit(model, rule, over, begin, numbers(args.initial), args.period)
    return follow(
        model,
        over,
        lower,
        upper,
        start.state,
        at=begin,
        period=start.period,
        periods=args.periods,
        segments=args.segments,
        covariance=None if fit is None else _covariance(fit, model),
        progress=terminal_progress(),
    )


def _range(texts: list[str]) -> tuple[str, float, float]:
    try:
        name, begin, end = texts[0], float(texts[1]), float(texts[2])
    except ValueError:
        raise ShakedownError(f"--over {' '.join(texts)}: write a name and two numbers.") from None
    if begin == end:
        raise ShakedownError(f"--over {' '.join(texts)}: the two numbers are the same.")
    return name, begin, end


def _each(text: str | None) -> tuple[str, list[float | None]]:
    if text is None:
        return "", [None]
    name, equals, values = text.partition("=")
    try:
        found: list[float | None] = [float(v) for v in values.split(",")]
    except ValueError:
        equals, found = "", []
    if not equals:
        raise ShakedownError(f"--each {text}: write NAME=A,B,... with numbers.")
    return name, found


def _fit(path: str | None) -> Identification | None:
    from analysis import Identification
    from drivers.base.files import read_text

    return None if path is None else Identification.from_json(read_text(path, "a result of identify"))


def _covariance(fit: Identification, model: Model) -> Mapping[tuple[str, str], float] | None:
    """Covariance by names of those parameters that the model has and the data determined."""
    import math

    names = list(fit.parameters)
    if len(fit.covariance) != len(names):
        return None
    known = [
        i for i, n in enumerate(names) if n in model.parameters and math.isfinite(fit.parameters[n].stderr)
    ]
    return {(names[i], names[j]): float(fit.covariance[i][j]) for i in known for j in known}


def _label(name: str, value: float | None) -> str:
    return "" if value is None else f"{name} = {value:g}"


def _peaks(branch: Branch) -> dict[str, dict[str, float]]:
    """Where each output is largest on the branch."""
    found = {}
    for i, output in enumerate(branch.model.outputs):
        size = branch.amplitudes(i)
        top = int(size.argmax())
        found[output] = {"at": float(branch.parameters[top]), "amplitude": float(size[top])}
    return found


def _payload(branch: Branch, name: str, value: float | None) -> dict[str, Any]:
    outputs = branch.model.outputs
    sizes = [branch.amplitudes(i) for i in range(len(outputs))]
    answer: dict[str, Any] = plain(
        {
            "each": {} if value is None else {name: value},
            "ended": branch.ended,
            "peaks": _peaks(branch),
            "special": [
                {
                    "kind": s.kind,
                    "at": s.point.parameter,
                    "stderr": s.stderr,
                    "period": s.point.period,
                    "after": s.after,
                }
                for s in branch.specials
            ],
            "points": [
                {
                    "at": p.parameter,
                    "period": p.period,
                    "stable": p.stable,
                    "largest_multiplier": float(abs(p.multipliers[0])) if len(p.multipliers) else 0.0,
                    "amplitude": {o: float(sizes[i][k]) for i, o in enumerate(outputs)},
                    "state": [float(x) for x in p.nodes[0]],
                }
                for k, p in enumerate(branch.points)
            ],
        }
    )
    return answer


def _write_table(branches: list[tuple[float | None, Branch]], name: str, path: Path) -> None:
    from drivers.base.files import replaced

    if path.suffix != ".csv":
        raise ShakedownError(f"--out {path}: the table is written as .csv.")
    first = branches[0][1]
    head = [*([name] if name else []), first.over, "period", "stable", *first.model.outputs]
    lines = [",".join(head)]
    for value, branch in branches:
        sizes = [branch.amplitudes(i) for i in range(len(branch.model.outputs))]
        for k, point in enumerate(branch.points):
            row = [point.parameter, point.period, int(point.stable), *(s[k] for s in sizes)]
            lines.append(",".join(f"{x:.12g}" for x in ([value] if name else []) + row))
    with replaced(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _show(branch: Branch, label: str) -> None:
    ends = {
        "bound": "to the end of the range",
        "closed": "until it closed upon itself",
        "points": "and given up after too many points",
        "lost": f"and lost at {branch.over} = {branch.parameters[-1]:.6g}",
    }
    stable = int(branch.stable.sum())
    title = f"{branch.model.name}{', ' + label if label else ''}"
    print(f"{title}: {len(branch.points)} motions ({stable} stable), followed {ends[branch.ended]}.")
    for output, peak in _peaks(branch).items():
        print(f"{output} is largest at {branch.over} = {peak['at']:.6g}: amplitude {peak['amplitude']:.5g}.")
    if branch.specials:
        rows = [
            [s.kind, f"{s.point.parameter:.8g}", "" if s.stderr != s.stderr else f"{s.stderr:.2g}",
             f"{s.point.period:.6g}"]
            for s in branch.specials
        ]  # fmt: skip
        print(table(("special point", branch.over, "standard error", "period"), rows))
    print()
