"""shakedown embed: delay, dimension, singular values and invariants of one channel."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from app.output import add_json_option, plain, table, terminal_progress, write_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RULES = ("information", "zero", "minimum", "fraction")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a recording in any format")
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


def run(args: argparse.Namespace) -> None:
    from app.drive import drive_period
    from drivers.formats import read

    record = read(args.file, args.rate)
    samples = record[args.channel]  # first: an unknown name gets its sentence here
    samples = _longest_valid(record.channels[args.channel].valid(), samples)
    period, remarks = drive_period(record, args, samples)
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


def _longest_valid(valid: NDArray[np.bool_], samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """The longest stretch without lost or clipped samples: neighbours across a gap would be false."""
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate(([0], valid.astype(np.int8), [0]))))
    starts, stops = edges[::2], edges[1::2]
    if len(starts) == 0:
        return samples[:0]
    best = int(np.argmax(stops - starts))
    return samples[starts[best] : stops[best]]


def _analyse(
    samples: NDArray[np.float64], dt: float, args: argparse.Namespace, period: float | None
) -> dict[str, Any]:
    from analysis import (
        ShakedownError,
        correlation_dimension,
        delay_by_autocorrelation,
        delay_by_mutual_information,
        delay_coordinates,
        exponent_spectrum,
        false_neighbours,
        largest_exponent,
        mean_period,
        noise_level,
        singular_spectrum,
        theiler_window,
        wolf_exponent,
    )

    progress = terminal_progress()
    progress.report(0.0, "delay")
    noise = noise_level(samples)
    theiler = args.theiler if args.theiler is not None else theiler_window(samples)
    delays = {
        "information": delay_by_mutual_information(samples, dt),
        "zero": delay_by_autocorrelation(samples, dt, "zero"),
        "minimum": delay_by_autocorrelation(samples, dt, "minimum"),
        "fraction": delay_by_autocorrelation(samples, dt, "fraction"),
    }
    delay = _chosen_delay(args.delay, delays)
    progress.report(0.1, "false neighbours")
    false = false_neighbours(samples, delay, theiler=theiler, noise=noise.value)
    dimension = args.dimension or false.dimension
    points = delay_coordinates(samples, dimension, delay)
    progress.report(0.3, "correlation dimension")
    level = noise.value * dimension**0.5
    correlation = correlation_dimension(points, theiler=theiler, noise=level)
    window = args.window or max(min(int(mean_period(samples) / 4), 60), dimension + 2)
    singular = singular_spectrum(samples, window, noise.value)
    progress.report(0.5, "exponents")
    results: dict[str, Any] = {}
    messages = []
    for name, work in {
        "rosenstein": lambda: largest_exponent(points, dt, theiler=theiler, noise=noise.value),
        "kantz": lambda: largest_exponent(points, dt, method="kantz", theiler=theiler, noise=noise.value),
        "wolf": lambda: wolf_exponent(points, dt, theiler=theiler),
        "spectrum": lambda: exponent_spectrum(points, dt, period=period, scale=points.max() - points.min()),
    }.items():
        try:
            results[name] = work()
        except ShakedownError as error:
            messages.append(f"{name}: {error}")
    progress.report(1.0, "done")
    return {
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


def _chosen_delay(wanted: str, delays: dict[str, Any]) -> int:
    from analysis import DataError

    if wanted in delays:
        return int(delays[wanted].samples)
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    raise DataError(f"The delay is a number of samples or one of {', '.join(RULES)}, not '{wanted}'.")


def _described(found: dict[str, Any]) -> dict[str, Any]:
    from analysis import kaplan_yorke

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
    messages = [x.message for x in (noise, false, correlation, singular) if x.message]
    messages += [f"{n}: {e['message']}" for n, e in exponents.items() if e["message"]] + found["messages"]
    phases = found["period"]
    if phases is not None and abs(phases - round(phases)) < 1e-3:
        messages.append(
            f"The drive is sampled at {round(phases)} fixed phases only: at radii below the distance between "
            "samples the correlation slope is that of a section, one less than that of the motion."
        )
    return {
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
        "correlation_dimension": {
            "value": correlation.value,
            "stderr": correlation.stderr,
            "region": correlation.region,
            "radii": correlation.radii,
            "sums": correlation.sums,
        },
        "singular": {
            "rank": singular.rank,
            "floor": singular.floor,
            "window": singular.window,
            "values": singular.values,
        },
        "exponents": exponents,
        "messages": messages,
    }


def _show(payload: dict[str, Any]) -> None:
    unit = f" {payload['unit']}" if payload["unit"] else ""
    rules = payload["delay"]["rules"]
    d2, singular = payload["correlation_dimension"], payload["singular"]
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
            f"{', '.join(f'{d}: {100 * f:.2g} %' for d, f in fractions.items())})",
        ],
        [
            "correlation dim.",
            f"{d2['value']:.2f} ± {d2['stderr']:.2f}  "
            f"(radii {d2['region'][0]:.3g} to {d2['region'][1]:.3g}{unit})",
        ],
        ["singular values", f"{singular['rank']} of {singular['window']} above the noise floor"],
    ]
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
