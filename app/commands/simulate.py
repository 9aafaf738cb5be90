"""shakedown simulate: a model's motion as a sensor would record it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError, ShakedownError
from app import project_names as names
from app.output import add_json_option, table, terminal_progress, write_json

if TYPE_CHECKING:
    from analysis import Inputs, Model, Record, Sensor


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=names.model, metavar="MODEL", help=names.MODEL)
    parser.add_argument("--seconds", type=float, metavar="S", help="length, in the model's unit of time")
    parser.add_argument("--rate", type=float, metavar="HZ", help="samples per unit of time")
    parser.add_argument(
        "--transient", type=float, metavar="S", default=0.0, help="simulated first and not recorded"
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter")
    parser.add_argument(
        "--initial", action="append", default=[], metavar="NAME=VALUE", help="a state's start"
    )
    parser.add_argument(
        "--input", type=names.recording, metavar="FILE",
        help="recording with the measured inputs, by channel name",
    )  # fmt: skip
    parser.add_argument(
        "--map", action="append", default=[], metavar="NAME=CHANNEL",
        help="the channel of that recording that stands for an input of the model",
    )  # fmt: skip
    parser.add_argument(
        "--interpolate", default="cubic", choices=("cubic", "linear", "hold"), help="between input samples"
    )
    parser.add_argument(
        "--method", default="adaptive", choices=("adaptive", "rk4", "implicit"), help="the integrator"
    )
    parser.add_argument("--rtol", type=float, default=1e-9, help="relative error of an adaptive step")
    sensor = parser.add_argument_group("the sensor of every output")
    sensor.add_argument("--snr", type=float, metavar="DB", help="channel variance over noise variance")
    sensor.add_argument(
        "--noise-percent", type=float, metavar="P", help="noise in per cent of the channel's rms"
    )
    sensor.add_argument("--bits", type=int, metavar="N", help="of the converter")
    sensor.add_argument("--limit", type=float, metavar="V", help="largest value the converter can see")
    sensor.add_argument("--gain", type=float, default=1.0)
    sensor.add_argument("--offset", type=float, default=0.0)
    sensor.add_argument("--drift", type=float, default=0.0, help="of the offset, per unit of time")
    sensor.add_argument("--cutoff", type=float, metavar="HZ", help="of the anti-alias filter")
    sensor.add_argument("--jitter", type=float, default=0.0, metavar="S", help="of the sampling times, rms")
    sensor.add_argument("--clock-ppm", type=float, default=0.0, metavar="PPM", help="error of the clock")
    sensor.add_argument("--gaps", type=int, default=0, metavar="N", help="stretches of lost samples")
    sensor.add_argument("--gap-samples", type=int, default=20, metavar="N", help="length of each stretch")
    parser.add_argument("--seed", type=int, default=0, help="of everything random")
    parser.add_argument("--out", metavar="FILE", help="recording to write; its ending names the format")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    import numpy as np

    from analysis import virtual_record
    from drivers.library import load_model

    if args.out:
        from drivers.formats import format_for_writing

        format_for_writing(Path(args.out))  # an unknown ending is better known before the work
    model = load_model(args.model)
    inputs, seconds, rate = _inputs(model, args)
    if args.seed < 0:
        raise ShakedownError("The seed must not be negative.")
    record = virtual_record(
        model,
        seconds,
        rate,
        np.random.default_rng(args.seed),
        _sensor(args),
        pairs(args.initial, "--initial"),
        pairs(args.set, "--set"),
        inputs,
        args.transient,
        args.method,
        args.rtol,
        terminal_progress(),
    )
    summary = _summary(record)
    if args.out:
        from drivers.formats import write

        write(record, Path(args.out))
    payload = {
        "model": model.name,
        "file": args.out,
        "rate": rate,
        "samples": len(record),
        "seed": args.seed,
        "parameters": record.metadata["parameters"],
        "channels": summary,
    }
    if not write_json(args.json, payload):
        _show(model, record, summary, args.out)
    return 0


def pairs(texts: list[str], flag: str) -> dict[str, float]:
    """NAME=VALUE arguments as numbers by name."""
    result: dict[str, float] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            result[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise ShakedownError(f"{flag} {text}: write NAME=NUMBER, such as {flag} c=0.3.")
    return result


def _inputs(model: Model, args: argparse.Namespace) -> tuple[Inputs | None, float, float]:
    """Measured inputs, and length and rate, which the input file gives when the user does not."""
    inputs, seconds, rate = None, args.seconds, args.rate
    if args.input:
        from analysis import Inputs
        from app.commands.identify import mapped
        from drivers.formats import read

        record = mapped(read(args.input), args.map)
        inputs = Inputs.from_record(record, model.inputs, args.interpolate)
        seconds = record.duration - args.transient if seconds is None else seconds
        rate = record.rate if rate is None else rate
    elif args.map:
        raise ShakedownError("--map names channels of a recording: give it with --input.")
    elif model.inputs:
        raise DataError(
            f"{model.name} needs the measured inputs {', '.join(model.inputs)}: "
            "give a recording that has them with --input."
        )
    if seconds is None or rate is None:
        raise ShakedownError("Say how long and how fast to sample: --seconds and --rate.")
    return inputs, seconds, rate


def _sensor(args: argparse.Namespace) -> Sensor:
    from analysis import Sensor

    return Sensor(
        gain=args.gain,
        offset=args.offset,
        drift=args.drift,
        snr_db=args.snr,
        noise_percent=args.noise_percent,
        limit=args.limit,
        bits=args.bits,
        cutoff=args.cutoff,
        jitter=args.jitter,
        clock_ppm=args.clock_ppm,
        gaps=args.gaps,
        gap_samples=args.gap_samples,
    )


def _summary(record: Record) -> dict[str, dict[str, Any]]:
    import numpy as np

    result: dict[str, dict[str, Any]] = {}
    for name, channel in record.channels.items():
        data = channel.data[np.isfinite(channel.data)]
        result[name] = {
            "unit": channel.unit,
            "min": float(data.min()),
            "max": float(data.max()),
            "rms": float(np.sqrt(np.mean(data**2))),
            "clipped": sum(b - a for a, b in channel.clipped),
            "lost": sum(b - a for a, b in channel.gaps),
        }
    return result


def _show(model: Model, record: Record, summary: dict[str, dict[str, Any]], out: str | None) -> None:
    rows = [[n, s["unit"], s["min"], s["max"], s["rms"], s["clipped"], s["lost"]] for n, s in summary.items()]
    print(table(["channel", "unit", "min", "max", "rms", "clipped", "lost"], rows))
    where = f" in {out}" if out else ", not written (--out FILE)"
    print(f"{model.name}: {len(record)} samples at {record.rate:g} a unit of time{where}.")
