"""shakedown plan: which drive to play next, so that the error bars of a fit shrink most."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError, percent
from app import project_names as names
from app.output import add_json_option, table, terminal_progress, write_json

if TYPE_CHECKING:
    from analysis import Identification, Model
    from app.planning.plan import Plan
    from app.planning.rival import RivalPlan
    from drivers.base.waveform import Segments
    from drivers.rig.profile import RigProfile

CERTAIN = 25.0  # chi-square: odds of a quarter of a million to one, however the models were weighed before


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=names.model, metavar="MODEL", help=names.MODEL)
    parser.add_argument("--fit", required=True, type=names.fit, metavar="RESULT", help=names.FIT)
    parser.add_argument("--rig", required=True, help="name of a rig (see `shakedown rigs`) or a profile file")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the plan (default 60)")
    parser.add_argument(
        "--criterion", choices=("D", "A"), default="D",
        help="D: volume of the uncertainty (default); A: mean variance over the present one",
    )  # fmt: skip
    parser.add_argument(
        "--target", metavar="PERCENT", help="how long until every parameter is known this well, such as 1%%"
    )
    parser.add_argument(
        "--rival",
        type=names.model,
        metavar="MODEL",
        help="instead: the drive that best tells this model apart",
    )
    parser.add_argument(
        "--rival-fit", type=names.fit, metavar="RESULT", help="what identify wrote of the rival"
    )
    parser.add_argument("--out", metavar="FILE", help="write the drive for `acquire --drive` (.toml)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws of what the truth may be")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.planning.plan import make_plan, plan_table
    from drivers.library import load_model
    from drivers.rig.profile import load_rig

    target = None if args.target is None else _share(args.target)
    if args.out and Path(args.out).suffix != ".toml":
        raise DataError(f"--out {args.out}: the drive is written as .toml.")
    if bool(args.rival) != bool(args.rival_fit):
        raise DataError("--rival and --rival-fit go together: a model and what identify found of it.")
    model, profile, fit = load_model(args.model), load_rig(args.rig), _fit(args.fit)
    if args.rival:
        return _separate(args, model, fit, profile)
    plan = make_plan(
        model, fit, profile, args.seconds, args.criterion, target, args.seed, terminal_progress()
    )
    if args.out:
        _write(plan_table(plan), Path(args.out))
    if not write_json(args.json, payload(plan)):
        _show(plan, args)
    return 0


def _fit(path: str) -> Identification:
    from analysis import Identification
    from drivers.base.files import read_text

    return Identification.from_json(read_text(path, "a result of identify"))


def _separate(args: argparse.Namespace, model: Model, fit: Identification, profile: RigProfile) -> int:
    from app.planning.plan import drive_table
    from app.planning.rival import make_rival_plan
    from drivers.library import load_model

    rival, rival_fit = load_model(args.rival), _fit(args.rival_fit)
    plan = make_rival_plan(
        model, fit, rival, rival_fit, profile, args.seconds, args.seed, terminal_progress()
    )
    if args.out:
        name = f"{plan.model} or {plan.rival}"
        _write(drive_table(name, plan.rig, plan.seconds, plan.drive), Path(args.out))
    if not write_json(args.json, rival_payload(plan)):
        _show_rival(plan, args)
    return 0


def _share(text: str) -> float:
    try:
        share = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise DataError(f"--target {text}: write a percentage between 0 and 100, such as 1%.")
    return share


def _write(table: dict[str, Any], path: Path) -> None:
    import tomli_w

    from drivers.base.files import replaced

    with replaced(path) as partial:
        partial.write_text(tomli_w.dumps(table), encoding="utf-8")


def payload(plan: Plan) -> dict[str, Any]:
    """The plan as JSON values with stable keys."""
    known = plan.knowledge
    columns = (known.values, known.stderr, plan.predicted, plan.alone, plan.by_multisine)
    parameters = {
        name: {
            "value": value, "unit": known.unit(name), "stderr": now, "predicted": after,
            "predicted_alone": alone, "multisine_alone": plain,
        }
        for name, value, now, after, alone, plain in zip(plan.names, *columns, strict=True)
    }  # fmt: skip
    return {
        "model": known.model.name,
        "rig": plan.rig,
        "criterion": plan.criterion,
        "seconds": plan.seconds,
        "drive": plan.drive.describe(),
        "parameters": parameters,
        "limits_broken": plan.broken,
        "limits": [{"name": b.name, "lower": b.lower, "upper": b.upper, "why": b.why} for b in plan.bounds],
        "without_sensor": {
            name: dict(zip(plan.names, errors.tolist(), strict=True)) for name, errors in plan.without.items()
        },
        "target": plan.target,
        "seconds_needed": plan.needed,
        "warnings": list(plan.warnings),
    }


def rival_payload(plan: RivalPlan) -> dict[str, Any]:
    """The plan that tells two models apart as JSON values with stable keys."""
    plain = plan.by_multisine
    return {
        "model": plan.model,
        "rival": plan.rival,
        "rig": plan.rig,
        "seconds": plan.seconds,
        "drive": plan.drive.describe(),
        "separation": {"if_model": plan.separation.if_model, "if_rival": plan.separation.if_rival},
        "multisine": None if plain is None else {"if_model": plain.if_model, "if_rival": plain.if_rival},
        "limits_broken": plan.broken,
    }


def _show_rival(plan: RivalPlan, args: argparse.Namespace) -> None:
    print(f"{plan.model} or {plan.rival} on {plan.rig}: {plan.seconds:g} s.")
    _show_drive(plan.drive)
    rows = [("plan", plan.separation.if_model, plan.separation.if_rival)]
    if plan.by_multisine is not None:
        rows.append(("multisine", plan.by_multisine.if_model, plan.by_multisine.if_rival))
    head = ("chi-square that the wrong model leaves", f"{plan.model} true", f"{plan.rival} true")
    print(table(head, rows))
    certain = (
        "tells them apart" if plan.separation.smaller > CERTAIN else "does not tell them apart for certain"
    )
    print(f"\nAbove {CERTAIN:g} one of them is out: this drive {certain}.")
    if args.out:
        print(f"Play it: shakedown acquire {args.rig} --drive {args.out} --out NEW")


def _show_drive(drive: Segments) -> None:
    rows = [(p.waveform.kind, f"{p.waveform.amplitude:.4g}", *p.waveform.band, p.seconds)
            for p in drive.parts]  # fmt: skip
    print(table(("drive", "amplitude", "from [Hz]", "to [Hz]", "seconds"), rows))
    print()


def _show(plan: Plan, args: argparse.Namespace) -> None:
    known = plan.knowledge
    print(f"{known.model.name} on {plan.rig}: {plan.seconds:g} s in {len(plan.drive.parts)} segments.")
    _show_drive(plan.drive)
    columns = (known.values, known.stderr, plan.predicted, plan.alone, plan.by_multisine)
    rows = [
        (name, *(f"{x:.4g}" for x in (value, now, after, alone, plain)), f"{now / after:.2g}")
        for name, value, now, after, alone, plain in zip(plan.names, *columns, strict=True)
    ]
    head = (
        "parameter",
        "value",
        "stderr now",
        "with the plan",
        "plan alone",
        "multisine alone",
        "smaller by",
    )
    print(table(head, rows))
    print(f"\nLimits are broken in {percent(plan.broken)} of the draws of the present uncertainty.")
    for name, errors in plan.without.items():
        worse = errors / plan.predicted
        worst = int(worse.argmax())
        print(f"Without {name}: error bars up to {worse[worst]:.2g} times larger ({plan.names[worst]}).")
    if plan.target is not None and plan.needed is not None:
        print(_target_words(plan.target, plan.needed))
    for sentence in plan.warnings:
        print(sentence)
    if args.out:
        print(f"Play it: shakedown acquire {args.rig} --drive {args.out} --out NEW")


def _target_words(target: float, needed: float) -> str:
    wanted = f"{100 * target:g} %"
    if not math.isfinite(needed):
        return f"No length of this drive makes every parameter known to {wanted}."
    if needed == 0:
        return f"Every parameter is known to {wanted} already."
    return f"Every parameter is known to {wanted} after about {needed:.3g} s of this drive."
