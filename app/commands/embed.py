"""shakedown embed: delay, dimension, singular values and invariants of one channel."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import percent
from app import project as projects
from app import project_names as names
from app.commands.project import keep_in_project
from app.output import add_json_option, plain, table, terminal_progress, write_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RULES = ("information", "zero", "minimum", "fraction")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=names.recording, help="a recording in any format")
    parser.add_argument("--channel", required=True, help="the channel to reconstruct phase space from")
    parser.add_argument(
        "--rate", type=float, metavar="HZ", help="sample rate of a file that does not tell it"
    )
    parser.add_argument(
        "--delay", default="information", metavar="N", help=f"samples, or a rule: {', '.join(RULES)}"
    )
    parser.add_argument("--dimension", type=int, metavar="D", help="instead of the one by false neighbours")
    parser.add_argument("--theiler", type=int, metavar="N", help="Theiler window in samples")
    parser.add_argument("--window", type=int, metavar="N", help="window of the singular values in samples")
    drive = parser.add_mutually_exclusive_group()
    drive.add_argument("--period-of", metavar="CHANNEL", help="channel with the periodic drive")
    drive.add_argument("--frequency", type=float, metavar="HZ", help="frequency of the periodic drive")
    drive.add_argument("--autonomous", action="store_true", help="there is no drive")
    parser.add_argument("--plot", metavar="FILE", help="draw the curves (png, svg or pdf)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.drive import drive_period
    from app.motion import longest_valid
    from drivers.formats import read

    _checked_delay(args.delay)
    record = read(args.file, args.rate)
    samples = record[args.channel]  # first: an unknown name gets its sentence here
    samples, gaps = longest_valid(record.channels[args.channel].valid(), samples)
    period, remarks = drive_period(record, args, samples)
    remarks = [*gaps, *remarks]
    found = _analyse(samples, record.dt, args, period)
    payload = {
        "file": args.file,
        "channel": args.channel,
        "unit": record.channels[args.channel].unit,
        "rate": record.rate,
        "samples": len(samples),
        "drive_period": period,
        **_described(found),
    }
    payload["messages"] = [*remarks, *payload["messages"]]
    if args.plot:
        from app.figures.embedding import save_embedding

        save_embedding(found, args.channel, record.channels[args.channel].unit, args.plot)
    if not write_json(args.json, plain(payload)):
        _show(payload)
    of = (Path(args.file).stem, "embed", args.channel)
    keep_in_project(lambda project: projects.keep_analysis(project, plain(payload), of))
    return 3 if payload["motion"] == "cannot tell" else 0


def _exponents(
    points: NDArray[np.float64], dt: float, theiler: int, noise: float, period: float | None
) -> tuple[dict[str, Any], list[str]]:
    """Lyapunov exponents by every method, and a sentence for each that could not tell."""
    from analysis import ShakedownError, coarse, exponent_spectrum, largest_exponent, wolf_exponent

    results: dict[str, Any] = {}
    messages = []
    works = {
        "rosenstein": lambda: largest_exponent(points, dt, theiler=theiler, noise=noise),
        "kantz": lambda: largest_exponent(points, dt, method="kantz", theiler=theiler, noise=noise),
        "wolf": lambda: wolf_exponent(points, dt, theiler=theiler),
        "spectrum": lambda: exponent_spectrum(points, dt, period=period, scale=points.max() - points.min()),
    }
    if period is None and coarse(points[0]):
        del works["spectrum"]
        messages.append("spectrum: needs a flow; the record has few samples a turn, as a map has.")
    for name, work in works.items():
        try:
            results[name] = work()
        except ShakedownError as error:
            messages.append(f"{name}: {error}")
    return results, messages


def _delays(samples: NDArray[np.float64], dt: float) -> dict[str, Any]:
    """The delay by every rule."""
    from analysis import delay_by_autocorrelation, delay_by_mutual_information

    by_correlation = {
        rule: delay_by_autocorrelation(samples, dt, rule) for rule in ("zero", "minimum", "fraction")
    }
    return {"information": delay_by_mutual_information(samples, dt), **by_correlation}


def _analyse(
    samples: NDArray[np.float64], dt: float, args: argparse.Namespace, period: float | None
) -> dict[str, Any]:
    import numpy as np

    from analysis import (
        coarse,
        delay_coordinates,
        dimension_of_all,
        examine,
        false_neighbours,
        mean_period,
        noise_beside_motion,
        singular_spectrum,
        theiler_window,
    )

    progress = terminal_progress()
    rng = np.random.default_rng(0)
    motion = examine(samples, dt, period=period, rng=rng, progress=progress.part(0.0, 0.5))
    progress.report(0.5, "delay")
    noise = noise_beside_motion(samples)
    theiler = args.theiler if args.theiler is not None else theiler_window(samples)
    delays = _delays(samples, dt)
    # Samples of a map are the coordinates themselves: information is lost from each to the next.
    delay = 1 if coarse(samples) and args.delay == RULES[0] else _chosen_delay(args.delay, delays)
    progress.report(0.55, "false neighbours")
    false = false_neighbours(samples, delay, theiler=theiler, noise=noise.value)
    dimension = args.dimension or false.dimension
    points = delay_coordinates(samples, dimension, delay)
    # Of anything else no exponent or dimension is told, nor of chaos of which the estimates disagree.
    shown = motion.told is not None or motion.kind == "cannot tell"
    correlation = None
    if shown:
        progress.report(0.6, "correlation dimension")
        unfolded = dimension if period is None else max(dimension - 1, 2)  # the phase stands for one
        # Of a map (few samples a turn) nothing is known beforehand.
        flow = motion.kind == "chaotic" and not coarse(samples)
        least = 2.0 if flow else 0.0
        correlation = dimension_of_all(samples, delay, unfolded, theiler, noise.value, period, rng, least)
    window = args.window or max(min(int(mean_period(samples) / 4), 60), dimension + 2)
    singular = singular_spectrum(samples, window, noise.value)
    progress.report(0.75, "exponents")
    results, messages = _exponents(points, dt, theiler, noise.value, period) if shown else ({}, [])
    progress.report(1.0, "done")
    return {
        "motion": motion,
        "noise": noise,
        "theiler": theiler,
        "mean_period": mean_period(samples),
        "dt": dt,
        "delay": delay,
        "delays": delays,
        "false": false,
        "dimension": dimension,
        "points": points,
        "correlation": correlation,
        "singular": singular,
        "period": period,
        "messages": messages,
        **results,
    }


def _checked_delay(wanted: str) -> None:
    from analysis import DataError

    if wanted not in RULES and not (wanted.isdigit() and int(wanted) > 0):
        raise DataError(f"The delay is a number of samples or one of {', '.join(RULES)}, not '{wanted}'.")


def _chosen_delay(wanted: str, delays: dict[str, Any]) -> int:
    return int(delays[wanted].samples) if wanted in delays else int(wanted)


def _described(found: dict[str, Any]) -> dict[str, Any]:
    from analysis import kaplan_yorke
    from app.motion import described_motion

    false, correlation, singular, noise = (found[k] for k in ("false", "correlation", "singular", "noise"))
    exponents: dict[str, Any] = {}
    for name in ("rosenstein", "kantz", "wolf"):
        if name in found:
            e = found[name]
            exponents[name] = {"value": e.value, "stderr": e.stderr, "region": e.region, "message": e.message}
    if "spectrum" in found:
        spectrum = found["spectrum"]
        exponents["spectrum"] = {
            "values": spectrum.values,
            "stderrs": spectrum.stderrs,
            "kaplan_yorke": kaplan_yorke(spectrum.values),
            "message": spectrum.message,
        }
    curve = None if correlation is None else correlation.curve
    messages = [x.message for x in (noise, false, curve, singular) if x is not None and x.message]
    messages += [f"{n}: {e['message']}" for n, e in exponents.items() if e["message"]] + found["messages"]
    return {
        **described_motion(found["motion"]),
        "noise": {
            "value": noise.value,
            "stderr": noise.stderr,
            "order": noise.order,
            "settled": noise.settled,
        },
        "mean_period": found["mean_period"] * found["dt"],
        "theiler": found["theiler"],
        "delay": {
            "samples": found["delay"],
            "time": found["delay"] * found["dt"],
            "rules": {name: d.samples for name, d in found["delays"].items()},
        },
        "dimension": {
            "value": found["dimension"],
            "false_neighbours": dict(zip(false.dimensions.tolist(), false.fractions.tolist(), strict=True)),
        },
        "correlation_dimension": _described_dimension(correlation),
        "singular": {
            "rank": singular.rank,
            "floor": singular.floor,
            "window": singular.window,
            "values": singular.values,
        },
        "exponents": exponents,
        "messages": messages,
    }


def _described_dimension(found: Any) -> dict[str, Any]:
    """Value, errors and curve; only null where the motion has no dimension to be told."""
    keys = ("value", "stderr", "lower", "upper", "estimates", "region", "radii", "sums")
    if found is None:
        return dict.fromkeys(keys)
    return {k: getattr(found if hasattr(found, k) else found.curve, k) for k in keys}


def _show(payload: dict[str, Any]) -> None:
    unit = f" {payload['unit']}" if payload["unit"] else ""
    rules = payload["delay"]["rules"]
    d2, singular = payload["correlation_dimension"], payload["singular"]
    print(f"motion: {payload['motion']}: {'; '.join(payload['evidence']['reasons'])}.")
    if payload["motion"] == "cannot tell":
        print("The numbers below are shown as evidence and are not to be used.")
    fractions = payload["dimension"]["false_neighbours"]
    rows: list[list[object]] = [
        ["noise", f"{payload['noise']['value']:.3g} ± {payload['noise']['stderr']:.1g}{unit}"],
        ["mean period", f"{payload['mean_period']:.4g} s, Theiler window {payload['theiler']} samples"],
        [
            "delay",
            f"{payload['delay']['samples']} samples = {payload['delay']['time']:.4g} s  "
            f"({', '.join(f'{k} {v}' for k, v in rules.items())})",
        ],
        [
            "dimension",
            f"{payload['dimension']['value']}  (false neighbours "
            f"{', '.join(f'{d}: {percent(f, 3)}' for d, f in fractions.items())})",
        ],
        ["singular values", f"{singular['rank']} of {singular['window']} above the noise floor"],
    ]
    if d2["value"] is not None:
        rows.append(
            [
                "correlation dim.",
                f"{d2['value']:.2f} ± {d2['stderr']:.2f}  "
                f"(radii {d2['region'][0]:.3g} to {d2['region'][1]:.3g}{unit})",
            ]
        )
    rows += _evidence_rows(payload["evidence"])
    for name, e in payload["exponents"].items():
        if name == "spectrum":
            values = ", ".join(f"{v:.4g} ± {s:.1g}" for v, s in zip(e["values"], e["stderrs"], strict=True))
            rows.append(["spectrum", f"{values} /s  (Kaplan-Yorke {e['kaplan_yorke']:.3g})"])
        else:
            bits = e["value"] / 0.6931471805599453
            rows.append([f"λ1, {name}", f"{e['value']:.4g} ± {e['stderr']:.1g} /s = {bits:.4g} bits/s"])
    print(table(["quantity", f"of {payload['channel']}"], rows))
    for text in payload["messages"]:
        print(f"! {text}")


def _evidence_rows(evidence: dict[str, Any]) -> list[list[object]]:
    """What else the verdict rests on."""
    rows: list[list[object]] = []
    largest, recurrence = evidence["largest_exponent"], evidence["recurrence"]
    if largest is not None:
        rows.append(["largest exponent", _largest_words(largest)])
    if evidence["zero_one"] is not None:
        rows.append(["0-1 test", f"{evidence['zero_one']:.2f}  (0 regular, 1 chaos or noise)"])
    if evidence["far_correlation"] is not None:
        rows.append(["correlation long after", f"{evidence['far_correlation']:.2f}  (1 regular, 0 mixing)"])
    if evidence["permutation_entropy"] is not None:
        rows.append(["permutation entropy", f"{evidence['permutation_entropy']:.3f} of that of white noise"])
    if recurrence is not None:
        rows.append(
            [
                "recurrence",
                f"determinism {recurrence['determinism']:.2f}, laminarity {recurrence['laminarity']:.2f}, "
                f"mean diagonal {recurrence['mean_diagonal']:.3g} samples, "
                f"entropy {recurrence['entropy']:.2f}",
            ]
        )
    return rows


def _largest_words(largest: dict[str, Any]) -> str:
    """The exponent with its interval, or why there is none."""
    if largest["value"] is None:
        every = [value for values in largest["estimates"].values() for value in values]
        return f"not told  (estimates from {min(every):.3g} to {max(every):.3g} /s)"
    return (
        f"{largest['value']:.4g} ± {largest['stderr']:.2g} /s  (95 %: {largest['lower']:.4g} to "
        f"{largest['upper']:.4g}; methods, delays and dimensions counted)"
    )
