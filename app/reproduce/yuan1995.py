"""Tables of Yuan 1995: models of chaotic systems from the periodic orbits in their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.balance import Options
from analysis.balance_orbits import choose, extract
from analysis.balance_setting import read_setting
from analysis.identification import Identification
from analysis.methods import identify
from analysis.model import Model
from analysis.progress import SILENT, Progress
from analysis.record import Excitation, Record
from analysis.simulation import simulate
from app.reproduce import Table
from drivers.library import load_model

Array = NDArray[np.float64]
Printed = Mapping[str, float]

COLUMNS = ("case", "parameter", "actual", "printed", "plain", "ours", "std. error", "verdict")
NOISE_NOTE = (
    "Noise is uniform within +- the given share of each channel's largest value. 'plain' has it added to the "
    "orbits after they were extracted, as in the thesis; 'ours' to the whole record before."
)
SEED = 1995


def verdict(actual: float, printed: float, ours: float, error: float, rounding: float) -> str:
    """How ours compares with the print, whose digits end at ``rounding``."""
    if np.isnan(printed):
        return "not legible in print"
    off = abs(ours - actual)
    if off <= abs(printed - actual) + 0.5 * rounding:
        return "at least as close"
    return "within 2 std. errors" if off <= 2 * error else "farther off"


def _rows(
    case: str, truth: Printed, printed: Printed, plain: Identification, ours: Identification, rounding: float
) -> list[tuple[Any, ...]]:
    rows = []
    for name, value in printed.items():
        actual, found = truth.get(name, 0.0), ours.parameters[name]
        words = verdict(actual, value, found.value, found.stderr, rounding)
        rows.append((case, name, actual, value, plain.values()[name], found.value, found.stderr, words))
    return rows


def _printed(names: str, values: str) -> dict[str, float]:
    return dict(zip(names.split(), map(float, values.split()), strict=True))


# Systems: the thesis' models with all their superfluous terms, and their records


def powers(prefix: str, count: int, factor: str = "") -> str:
    """prefix1*x + prefix2*x**2 + ..., each term times ``factor``."""
    return " + ".join(f"{prefix}{i}*x**{i}{factor}" for i in range(1, count + 1))


def _oscillator(
    name: str, force: str, unknown: Sequence[str], known: Printed, input_: str, guesses: Printed
) -> Model:
    guess = {n: {"guess": guesses.get(n, 0.0)} for n in unknown}
    given = {n: {"value": value} for n, value in known.items()}
    return Model.from_equations(
        {"x": "v", "v": f"({force})/m"}, {**guess, **given}, name=name, inputs={"f": input_}
    )


@lru_cache(maxsize=1)
def duffing_model() -> Model:
    """Eq. (3.4) with seven powers."""
    names = ["m", "c", *(f"b{i}" for i in range(1, 8))]
    guesses = {"m": 1.5, "c": 0.5}
    return _oscillator(
        "Duffing's equation, eq. (3.4)",
        f"f - c*v - ({powers('b', 7)})",
        names,
        {"a": 27.0, "w": 1.33},
        "a*cos(w*t)",
        guesses,
    )


@lru_cache(maxsize=1)
def coulomb_model() -> Model:
    """Eq. (3.6) with tanh(50 dx/dt) and five powers each."""
    friction = " + ".join(f"b{i}*x**{i - 1}" for i in range(1, 6)).replace("*x**0", "")
    names = ["m", "c", *(f"a{i}" for i in range(1, 6)), *(f"b{i}" for i in range(1, 6))]
    return _oscillator(
        "Smooth Coulomb friction, eq. (3.6)",
        f"f - c*v - ({powers('a', 5)}) - ({friction})*tanh(s*v)",
        names,
        {"s": 50.0, "force": 1.9, "w": 1.3},
        "force*cos(w*t)",
        {"m": 1.5, "a1": 0.5, "b1": 0.5},
    )


@lru_cache(maxsize=1)
def parametric_model() -> Model:
    """Eq. (3.8) with five powers; the mass is 1."""
    names = ["c", *(f"b{i}" for i in range(1, 6)), *(f"g{i}" for i in range(1, 6))]
    return _oscillator(
        "Parametric excitation, eq. (3.8)",
        f"-c*v - ({powers('b', 5)}) - ({powers('g', 5)})*f",
        names,
        {"m": 1.0, "w": 0.28},
        "sin(w*t)",
        {},
    )


@lru_cache(maxsize=1)
def series_model() -> Model:
    """Eqs. (3.15) and (3.16): nine powers and tanh(x); the force is a measured channel."""
    names = ["m", "c", *(f"b{i}" for i in range(1, 10)), "g"]
    return _oscillator(
        "Saturating spring, eq. (3.15)",
        f"f - c*v - ({powers('b', 9)}) - g*tanh(x)",
        names,
        {},
        "measured",
        {"m": 1.5, "c": 0.5},
    )


PAIRS = ("x*x", "x*y", "x*z", "y*y", "y*z", "z*z")


@lru_cache(maxsize=1)
def lorenz_model() -> Model:
    """Eqs. (3.10) to (3.12): every linear and quadratic term in each equation."""
    states, names = {}, []
    for state in "xyz":
        terms = [(f"{state}_{term.replace('*', '')}", term) for term in ("x", "y", "z", *PAIRS)]
        states[state] = " + ".join(f"{name}*{term}" for name, term in terms)
        names += [name for name, _ in terms]
    return Model.from_equations(states, {n: {"guess": 0.0} for n in names}, name="Lorenz, eqs. (3.10)-(3.12)")


DUFFING = {"m": 1.0, "c": 0.2, "b1": 1.0, "b3": 1.0}
COULOMB = {"m": 1.0, "c": 0.03, "a1": 1.0, "b1": 1.0, "b2": 1.5}
PARAMETRIC = {"c": 0.01, "b1": 0.25, "b3": 0.25, "g1": 0.55, "g3": -0.55 / 3}
LORENZ = {"x_x": -16.0, "x_y": 16.0, "y_x": 45.92, "y_y": -1.0, "y_xz": -1.0, "z_z": -4.0, "z_xy": 1.0}
SERIES = {"m": 1.0, "c": 0.3, "b1": 1.0, "g": 0.5}


@lru_cache(maxsize=4)
def states_of(name: str, samples: int, step: float, skipped: int) -> Array:
    """A library model's motion at its own values, after ``skipped`` samples, which must be whole periods."""
    model = load_model(name)
    return simulate(model, np.asarray(step * np.arange(samples + skipped), dtype=np.float64)).states[
        :, skipped:
    ]


def forced_record(name: str, drive: float, noise: float = 0.0, samples: int = 50_000) -> Record:
    """x and v of a library model, 100 samples a drive period; ``drive`` is the circular frequency."""
    step = 2 * np.pi / drive / 100
    states = states_of(name, samples, step, 5000)
    return _record(("x", "v"), states, step, noise, Excitation(drive / (2 * np.pi), phase=0.0))


def _record(
    names: Sequence[str], states: Array, step: float, noise: float, drive: Excitation | None = None
) -> Record:
    rng = np.random.default_rng(SEED)
    added = noise * np.abs(states).max(axis=1, keepdims=True) * rng.uniform(-1, 1, states.shape)
    return Record.from_arrays(1 / step, dict(zip(names, states + added, strict=True)), excitation=drive)


def _found(clean: Record, model: Model, periods: tuple[int, ...], count: int) -> dict[str, Any]:
    """Options that balance the orbits found in the clean record, whatever record they are applied to."""
    options = Options(plain=True, orbits=periods, most_orbits=count)
    chosen = choose(extract(read_setting(model, clean, options), options, SILENT), options)
    return {
        "orbits": tuple(int(o.multiple or 0) for o in chosen),
        "starts": tuple(int(o.start) for o in chosen),
    }


def _both(
    model: Model,
    free: Sequence[str],
    clean: Record,
    noisy: Record,
    periods: tuple[int, ...],
    count: int,
    **options: Any,
) -> tuple[Identification, Identification]:
    """The thesis' method on the orbits of the clean record, and ours on the record as it is."""
    chosen = model.with_free(list(free))
    fixed = {n: 0.0 for n in model.free if n not in free}
    chosen = chosen.with_values(fixed)
    known = _found(clean, chosen, periods, count)
    plain = identify(chosen, noisy, "balance", plain=True, **known, **options)
    ours = identify(chosen, noisy, "balance", orbits=periods, most_orbits=count, **options)
    return plain, ours


def _table(name: str, title: str, rows: Sequence[Sequence[Any]], *notes: str) -> Table:
    return Table(f"yuan1995-{name}", title, COLUMNS, rows, notes=notes)


# Duffing's equation

PERIODS = (3, 4, 5, 6)
TABLE_1 = {
    3: "0.9999 .1997 0.9915 -.0023 1.0009 .0002 .0000",
    4: "1.0008 .2002 1.0498 -.0050 0.9803 .0007 .0010",
    5: "0.9997 .1998 0.9659 -.0020 1.0124 .0001 -.0006",
    6: "1.0001 .1999 1.0015 .0016 1.0009 -.0002 -.0061",
}
TABLE_2 = {
    4: "1.000 0.200 1.005 -0.001 1.000 0.000",
    5: "1.000 0.200 1.015 -0.001 0.996 0.000 0.000",
    6: "1.000 0.200 1.010 0.004 0.998 -0.001 0.000 0.000",
    7: "1.000 0.200 1.005 0.004 1.000 -0.001 0.000 0.000 -0.000",
}
TABLE_3 = {
    (1, 3): "1.000 .200 0.999 -.006 1.000",
    (1, 4): "1.000 .200 1.000 -.001 1.000 .000",
    (1, 5): "1.000 .200 1.058 .016 0.983 .001 .001",
    (2, 3): "1.000 .200 0.999 -.013 1.002",
    (2, 4): "1.000 .200 1.004 -.029 1.001 .001",
    (2, 5): "1.001 .201 0.947 .016 1.036 -.009 -.005",
    (3, 3): "1.000 .200 0.995 -.020 1.002",
    (3, 4): "1.000 .200 1.002 -.042 1.001 .001",
    (3, 5): "1.001 .201 1.136 -.044 0.958 .002 .002",
    (5, 3): "1.000 .200 0.977 -.032 1.002",
    (5, 4): "0.999 .200 0.988 -.069 1.001 .002",
    (5, 5): "1.001 .201 1.202 -.073 0.931 .003 .003",
}


def _duffing_names(p: int) -> list[str]:
    return ["m", "c", *(f"b{i}" for i in range(1, p + 1))]


def table_1(progress: Progress) -> Table:
    """Each orbit by itself, five powers."""
    rows: list[tuple[Any, ...]] = []
    names, record = _duffing_names(5), forced_record("duffing", 1.33)
    for k, text in TABLE_1.items():
        progress.report((k - 3) / 4, f"period {k}")
        plain, ours = _both(duffing_model(), names, record, record, (k,), 1)
        rows += _rows(f"period {k}", DUFFING, _printed(" ".join(names), text), plain, ours, 1e-4)
    return _table(
        "1",
        "Table 1: Duffing's equation from single orbits, without noise",
        rows,
        "The thesis' 'within 1 %' does not hold for its own b1 of periods 4 (5 %) and 5 (3.4 %).",
    )


def table_2(progress: Progress) -> Table:
    """Four orbits together, four to seven powers."""
    rows: list[tuple[Any, ...]] = []
    record = forced_record("duffing", 1.33)
    for p, text in TABLE_2.items():
        progress.report((p - 4) / 4, f"p = {p}")
        names = _duffing_names(p)
        plain, ours = _both(duffing_model(), names, record, record, PERIODS, 4)
        rows += _rows(f"p = {p}", DUFFING, _printed(" ".join(names), text), plain, ours, 1e-3)
    return _table("2", "Table 2: Duffing's equation from four orbits, without noise", rows)


def table_3(progress: Progress) -> Table:
    """Four orbits together, noise of 1 to 5 %."""
    rows: list[tuple[Any, ...]] = []
    clean = forced_record("duffing", 1.33)
    for done, ((percent, p), text) in enumerate(TABLE_3.items()):
        progress.report(done / len(TABLE_3), f"{percent} %, p = {p}")
        names, noisy = _duffing_names(p), forced_record("duffing", 1.33, percent / 100)
        plain, ours = _both(duffing_model(), names, clean, noisy, PERIODS, 4)
        case = f"{percent} %, p = {p}"
        rows += _rows(case, DUFFING, _printed(" ".join(names), text), plain, ours, 1e-3)
    return _table(
        "3",
        "Table 3: Duffing's equation from four orbits, with noise",
        rows,
        NOISE_NOTE,
        "The printed rows p = 3 and 4 at 5 % are closer than the method allows on average: one lucky draw.",
    )


# Coulomb friction

TABLE_4 = {
    3: ".9977 .0291 .9997 .0086 -.016 1.002 1.501 -.009",
    4: ".9971 .0294 .9904 .0192 .0036 -.021 1.002 1.503 -.006 -.008",
    5: ".993 .030 .970 .030 .0170 -.021 -.003 1.000 1.515 -.000 -.036 .009",
}
TABLE_5 = {
    (1, 2): "1.002 0.093 0.998 -.021 0.968 1.508",
    (2, 2): "0.994 0.165 0.96 -.005 0.933 1.515",
    (1, 3): "0.996 0.084 1.019 0.017 -.083 0.979 1.518 -.041",
    (2, 3): "0.982 0.150 1.004 0.072 -.168 0.953 1.532 -.074",
}


def _coulomb_names(p: int) -> list[str]:
    return ["m", "c", *(f"a{i}" for i in range(1, p + 1)), *(f"b{i}" for i in range(1, p + 1))]


def table_4(progress: Progress) -> Table:
    """Four orbits, without noise."""
    rows: list[tuple[Any, ...]] = []
    record = forced_record("coulomb", 1.3)
    for p, text in TABLE_4.items():
        progress.report((p - 3) / 3, f"p = {p}")
        names = _coulomb_names(p)
        plain, ours = _both(coulomb_model(), names, record, record, tuple(range(1, 9)), 4)
        rows += _rows(f"p = {p}", COULOMB, _printed(" ".join(names), text), plain, ours, 1e-3)
    return _table(
        "4",
        "Table 4: Coulomb friction from four orbits, without noise",
        rows,
        "Friction is tanh(50 dx/dt); the printed tanh(50 x) lets the motion escape. The print's note a names "
        "the fifth coefficients alpha3, beta3.",
    )


def table_5(progress: Progress) -> Table:
    """Three orbits, with noise."""
    rows: list[tuple[Any, ...]] = []
    clean = forced_record("coulomb", 1.3)
    for done, ((percent, p), text) in enumerate(TABLE_5.items()):
        progress.report(done / len(TABLE_5), f"{percent} %, p = {p}")
        names, noisy = _coulomb_names(p), forced_record("coulomb", 1.3, percent / 100)
        plain, ours = _both(coulomb_model(), names, clean, noisy, tuple(range(1, 9)), 3)
        case = f"{percent} %, p = {p}"
        rows += _rows(case, COULOMB, _printed(" ".join(names), text), plain, ours, 1e-3)
    return _table(
        "5",
        "Table 5: Coulomb friction from three orbits, with noise",
        rows,
        NOISE_NOTE,
        "The second and third rows of the print have their noise levels exchanged, as its damping shows.",
    )


# Parametric excitation

TABLE_6 = {
    3: ".011 .250 .001 .254 .550 -.00 nan",
    4: ".011 .250 -.00 .252 .011 .550 -.00 nan .010",
    5: ".011 .249 -.01 .249 .018 .012 .559 -.00 nan .022 .034",
}
TABLE_7 = {
    (1, 3): ".011 .250 -.00 .253 .547 .001 -.177",
    (1, 4): ".011 .251 -.01 .252 .01 .547 -.00 -.177 .01",
    (1, 5): ".011 .251 -.01 .243 .01 .02 .553 -.00 -.208 .01 .03",
    (2, 3): ".011 .251 -.00 .253 .544 -.00 -.173",
    (2, 4): ".011 .251 -.01 .252 .01 .544 -.00 -.173 .01",
    (2, 5): ".011 .253 -.01 .238 .01 .02 .548 -.00 -.195 .01 .02",
    (3, 3): ".011 .251 -.00 .253 .541 -.00 -.168",
    (3, 4): ".011 .252 -.01 .252 .01 .541 -.00 -.168 .01",
    (3, 5): ".011 .254 -.01 .234 .00 .02 .543 -.00 -.183 .00 .02",
    (5, 3): ".011 .251 -.01 .254 .535 -.00 -.158",
    (5, 4): ".011 .252 -.01 .252 .01 .535 -.00 -.158 .01",
    (5, 5): ".011 .257 -.01 .227 -.00 .02 .533 -.00 -.159 -.01 .01",
}
MANY_HARMONICS = 12  # the drive is slow against the motion in a well


def _parametric_names(p: int) -> list[str]:
    return ["c", *(f"b{i}" for i in range(1, p + 1)), *(f"g{i}" for i in range(1, p + 1))]


def table_6(progress: Progress) -> Table:
    """Four orbits, without noise."""
    rows: list[tuple[Any, ...]] = []
    record = forced_record("parametric", 0.28)
    for p, text in TABLE_6.items():
        progress.report((p - 3) / 3, f"p = {p}")
        names = _parametric_names(p)
        plain, ours = _both(
            parametric_model(), names, record, record, tuple(range(1, 11)), 4, harmonics=MANY_HARMONICS
        )
        rows += _rows(f"p = {p}", PARAMETRIC, _printed(" ".join(names), text), plain, ours, 1e-3)
    return _table(
        "6",
        "Table 6: parametric excitation from four orbits, without noise",
        rows,
        "gamma3 is illegible in the copy at hand (nan); few orbits close within 0.5 %, so that is relaxed.",
    )


def table_7(progress: Progress) -> Table:
    """Four orbits, with noise."""
    rows: list[tuple[Any, ...]] = []
    clean = forced_record("parametric", 0.28)
    for done, ((percent, p), text) in enumerate(TABLE_7.items()):
        progress.report(done / len(TABLE_7), f"{percent} %, p = {p}")
        names, noisy = _parametric_names(p), forced_record("parametric", 0.28, percent / 100)
        plain, ours = _both(
            parametric_model(), names, clean, noisy, tuple(range(1, 11)), 4, harmonics=MANY_HARMONICS
        )
        case = f"{percent} %, p = {p}"
        rows += _rows(case, PARAMETRIC, _printed(" ".join(names), text), plain, ours, 1e-3)
    return _table("7", "Table 7: parametric excitation from four orbits, with noise", rows, NOISE_NOTE)


# Lorenz's equations

TABLE_8 = {
    "x": "-15.951 15.971 -0.098 -0.030 .019 -.003 .000 .003 .003",
    "y": "45.748 -.927 .230 .039 -.028 -.995 .003 -.004 -.006",
    "z": "-.089 .041 -3.877 .031 .980 .003 .000 -0.003 -.004",
}
TABLE_9 = {
    "x": "-16.011 15.953 -0.006 0.001 0.0002 0.0011",
    "y": "45.900 -1.0228 -0.0127 0.0020 -0.9996 0.0021",
    "z": "0.0041 0.007 -3.9991 0.9999 -0.0001 -0.0002",
}
TABLE_10 = {
    "x": "-15.5813 15.9582 0.0757 0.0006 -0.0087 0.0011",
    "y": "47.4206 -1.8632 0.0256 0.0034 -1.0252 0.0112",
    "z": "-0.9178 0.5717 -3.9468 0.9902 0.0200 -0.0129",
}
ALL_TERMS = ("x", "y", "z", "xx", "xy", "xz", "yy", "yz", "zz")
NO_SQUARES = ("x", "y", "z", "xy", "xz", "yz")
LORENZ_STEP = 0.025


def _lorenz_table(
    name: str, title: str, texts: Mapping[str, str], terms: Sequence[str], noise: float, *notes: str
) -> Table:
    states = states_of("lorenz", 10_000, LORENZ_STEP, 1000)
    record = _record(("x", "y", "z"), states, LORENZ_STEP, noise)
    printed: dict[str, float] = {}
    for equation, text in texts.items():
        printed |= _printed(" ".join(f"{equation}_{term}" for term in terms), text)
    model = lorenz_model().with_free(list(printed))
    plain = identify(model, record, "balance", plain=True, most_orbits=2, longest=8)
    ours = identify(model, record, "balance", most_orbits=10, longest=8)
    return _table(
        name,
        title,
        _rows("", LORENZ, printed, plain, ours, 1e-3),
        "beta = +4 is meant; with the printed -4 nothing stays bounded. Sampled every 0.025. 'plain' uses "
        "two orbits as printed, 'ours' ten.",
        *notes,
    )


def table_8(progress: Progress) -> Table:
    """Lorenz, all quadratic terms."""
    return _lorenz_table("8", "Table 8: Lorenz's equations, all terms", TABLE_8, ALL_TERMS, 0.0)


def table_9(progress: Progress) -> Table:
    """Lorenz, without squares."""
    return _lorenz_table("9", "Table 9: Lorenz's equations without squares", TABLE_9, NO_SQUARES, 0.0)


def table_10(progress: Progress) -> Table:
    """Lorenz, without squares, 1 % noise."""
    return _lorenz_table(
        "10",
        "Table 10: Lorenz's equations without squares, 1 % noise",
        TABLE_10,
        NO_SQUARES,
        0.01,
        "Noise is uniform within +- 1 % of each channel's largest value, on the whole record.",
    )


# A saturating spring

FORCES = {"a": 0.1, "b": 0.5, "c": 1.0, "d": 2.0}
TABLE_11 = {"a": 0.25, "b": 1.0, "c": 2.0, "d": 3.0}
TABLE_12 = {
    "ab": "1.0006 0.3000 1.0300 -0.0009 -0.0000 0.0000 0.0021 0.4700",
    "abc": "0.9999 0.3000 1.0008 -0.0000 -0.0002 0.0000 0.0000 0.5000",
    "abcd": "1.0000 0.3000 1.0000 .0000 .0000 0.0000 0.0000 0.5001",
}
TABLE_13 = {
    ("ab", 5): "1.01 .300 1.52 .000 -.155 -.000 .036",
    ("abcd", 5): ".951 .300 1.35 .000 -.062 -.000 .003",
    ("ab", 7): ".999 .300 1.50 -.000 -.166 .000 .060 -.000 -.014",
    ("abcd", 7): ".991 .300 1.46 -.000 -.103 .000 .013 -.000 -.001",
    ("ab", 9): "1.00 .300 1.50 .000 -.167 -.000 .067 .000 -.025 -.000 .005",
    ("abcd", 9): "1.01 .300 1.51 .000 -.139 -.000 .031 .000 -.003 -.000 .000",
}


@lru_cache(maxsize=4)
def steady_record(force: float) -> Record:
    """Five periods of the steady response of eq. (3.13), 100 samples each, with the force as a channel."""
    model, step = load_model("tanh_stiffness"), 2 * np.pi / 1.3 / 100
    times = np.asarray(step * np.arange(30_500), dtype=np.float64)
    states = simulate(model, times, values={"a": force}).states[:, 30_000:]
    channels = {"x": states[0], "v": states[1], "f": force * np.cos(1.3 * times[30_000:])}
    return Record.from_arrays(1 / step, channels, excitation=Excitation(1.3 / (2 * np.pi), force, 0.0))


def _steady(cases: str, free: Sequence[str], **options: Any) -> Identification:
    model = series_model().with_free(list(free))
    model = model.with_values({n: 0.0 for n in series_model().free if n not in free})
    records = [steady_record(FORCES[case]) for case in cases]
    return identify(model, records, "balance", orbits=(1,), starts=(200,), **options)


def table_11(progress: Progress) -> Table:
    """Largest response to each force."""
    rows = []
    for case, printed in TABLE_11.items():
        ours = float(np.abs(steady_record(FORCES[case])["x"]).max())
        words = "agrees" if abs(ours - printed) < 0.1 * printed else "differs"
        rows.append((case, FORCES[case], printed, ours, words))
    return Table(
        "yuan1995-11",
        "Table 11: force and largest response of the saturating spring",
        ("case", "force", "printed", "ours", "verdict"),
        rows,
    )


def table_12(progress: Progress) -> Table:
    """The exact function among five powers."""
    rows: list[tuple[Any, ...]] = []
    names = [*_duffing_names(5), "g"]
    for cases, text in TABLE_12.items():
        plain, ours = _steady(cases, names, plain=True), _steady(cases, names, finish=False, harmonics=9)
        rows += _rows(cases, SERIES, _printed(" ".join(names), text), plain, ours, 1e-4)
    return _table("12", "Table 12: saturating spring, the exact function in the model", rows)


def table_13(progress: Progress) -> Table:
    """Power series instead of tanh."""
    series = {"m": 1.0, "c": 0.3, "b1": 1.5, "b3": -1 / 6, "b5": 1 / 15, "b7": -17 / 630, "b9": 31 / 2835}
    rows: list[tuple[Any, ...]] = []
    for (cases, p), text in TABLE_13.items():
        names = _duffing_names(p)
        plain = _steady(cases, names, plain=True)
        for name, value in _printed(" ".join(names), text).items():
            actual, found = series.get(name, 0.0), plain.values()[name]
            words = "as printed" if abs(found - value) < 0.006 + 0.02 * abs(value) else "differs"
            rows.append((f"{cases}, p = {p}", name, actual, value, found, words))
    return Table(
        "yuan1995-13",
        "Table 13: saturating spring modelled by a power series",
        ("case", "parameter", "Taylor series", "printed", "plain", "verdict"),
        rows,
        notes=(
            "The series converges for |x| < pi/2 only. The last row's mass is printed 1.11; 1.01 is meant.",
            "A better method cannot help here: the model is wrong beyond the radius of convergence, and what "
            "comes out depends on the harmonics taken (here five).",
        ),
    )


# The experiment of chapter 4, on a synthetic rig

TABLE_14 = {"c": 0.035, "k1": -0.280, "k2": 0.178, "k3": 0.336, "k4": -0.064}
TABLE_14_SPREAD = {"c": 0.007, "k1": 0.041, "k2": 0.026, "k3": 0.0096, "k4": 0.016}


def rig_record(seed: int, periods: int = 7000) -> Record:
    """Strain alone, 12 bits with two counts of noise, 25 samples a period, the drive's phase unknown."""
    times = np.asarray(2 * np.pi / 25 * np.arange(25 * (periods + 50)), dtype=np.float64)
    x = simulate(load_model("two_well_beam"), times).states[0, 25 * 50 :]
    count = 1.2 * np.ptp(x) / 4096
    read = count * np.round(x / count + 2 * np.random.default_rng(seed).normal(size=len(x)))
    return Record.from_arrays(25 / (2 * np.pi), {"x": read}, excitation=Excitation(1 / (2 * np.pi)))


def table_14(progress: Progress) -> Table:
    """Stiffness and damping of the two-well beam."""
    truth = load_model("two_well_beam")
    start = truth.with_values({"c": 0.1, "k1": -0.1, "k2": 0.1, "k3": 0.2, "k4": 0.0, "a": 0.2})
    record = rig_record(SEED)
    plain = identify(start.with_free(list(TABLE_14)), record, "balance", plain=True, most_orbits=10)
    progress.report(0.4, "the likelihood over the orbits")
    ours = identify(start.with_free([*TABLE_14, "a"]), record, "balance", most_orbits=10)
    cubic = identify(start.with_free(["c", "k1", "k2", "k3"]), record, "balance", plain=True, most_orbits=10)
    rows = []
    for name, printed in TABLE_14.items():
        found, third = ours.parameters[name], cubic.values().get(name, 0.0)
        near = abs(found.value - printed) < TABLE_14_SPREAD[name]
        rows.append(
            (
                name,
                printed,
                TABLE_14_SPREAD[name],
                plain.values()[name],
                third,
                found.value,
                found.stderr,
                "recovered" if near else "missed",
            )
        )
    force = ours.parameters["a"]
    words = "recovered" if abs(force.value - 0.25) < 0.0025 else "missed"
    rows.append(("a", 0.25, np.nan, np.nan, np.nan, force.value, force.stderr, words))
    return Table(
        "yuan1995-14",
        "Table 14: the two-well beam of chapter 4 on a synthetic rig, ten orbits",
        ("parameter", "printed", "its spread", "plain", "plain, cubic", "ours", "std. error", "verdict"),
        rows,
        notes=(
            "The rig moves by the printed model: strain only, 12 bits, 25 samples a period, 7000 periods, "
            "two counts of noise, force and drive phase unknown. The printed values are thus the truth here.",
            "The plain method leaves out the drive's own harmonic; its damping is weak, and wrong with a "
            "cubic alone, as in the thesis. The printed averages of alpha and beta1 do not follow from their "
            "rows.",
        ),
    )


TABLE_15 = {  # damped natural frequency in Hz, damping ratio in %
    ("right", "cubic"): (4.91, 2.68),
    ("right", "quartic"): (4.76, 2.76),
    ("left", "cubic"): (6.47, 2.03),
    ("left", "quartic"): (7.07, 1.86),
}


def table_15(progress: Progress) -> Table:
    """Natural frequencies and damping ratios in the wells, from the linearised model."""
    from analysis.equilibrium import equilibria

    drive = 7.5  # Hz; the model's time is in units of 1/(2 pi 7.5 Hz)
    models = {"quartic": {"a": 0.0}, "cubic": {"a": 0.0, "k4": 0.0}}
    rows = []
    for order, values in models.items():
        left, _, right = equilibria(load_model("two_well_beam"), {"x": (-2.0, 2.0)}, values)[:3]
        for well, point in (("right", right), ("left", left)):
            frequency, damping = (float(v[0]) for v in (point.frequencies, point.damping_ratios))
            printed, printed_damping = TABLE_15[well, order]
            ours = 2 * np.pi * drive * frequency
            agrees = abs(ours / printed - 1) < 0.02 and abs(100 * damping / printed_damping - 1) < 0.02
            rows.append(
                (
                    well,
                    order,
                    printed,
                    ours,
                    printed_damping,
                    100 * damping,
                    "agrees" if agrees else "differs",
                )
            )
    return Table(
        "yuan1995-15",
        "Table 15: small motions in the wells of the identified beam",
        ("well", "model", "printed Hz", "ours", "printed damping %", "ours %", "verdict"),
        rows,
        notes=(
            "From the printed coefficients. Equilibria are solved for, where the thesis reads a figure.",
            "Eq. (4.12) needs -4 beta4 x^3. Measured: 7.7 Hz, 2.73 % right; 8.5 Hz, 2.52 % left.",
        ),
    )


# Lyapunov exponents

EXPONENTS = {
    "duffing": ((0.18, -0.468), 4000.0, "a short run; 0.211 and -0.499 are right"),
    "coulomb": ((0.13, -39.8), 2000.0, "a short run"),
    "parametric": ((2.03, -32.35), 40_000.0, "misplaced: these are Lorenz's"),
    "lorenz": ((2.03, -32.35), 400.0, "printed under the parametric system"),
}


def exponents(progress: Progress) -> Table:
    """Lyapunov exponents in bits per unit time, largest and smallest."""
    from analysis.lyapunov import lyapunov_spectrum

    rows = []
    for done, (name, (printed, duration, words)) in enumerate(EXPONENTS.items()):
        progress.report(done / len(EXPONENTS), name)
        found = lyapunov_spectrum(load_model(name), duration, transient=0.05 * duration)
        rows.append(
            (
                name,
                printed[0],
                float(found.bits[0]),
                float(found.bits_stderr[0]),
                printed[1],
                float(found.bits[-1]),
                words,
            )
        )
    return Table(
        "yuan1995-exponents",
        "Lyapunov exponents of chapter 3, bits per unit time",
        ("system", "printed largest", "ours", "std. error", "printed smallest", "ours smallest", "note"),
        rows,
        notes=("Their sum is minus the damping over ln 2 where damping is viscous, which checks ours.",),
    )
