"""Tables 4 and 5: Coulomb friction (section 3.2)."""

from __future__ import annotations

from functools import lru_cache

from analysis import Model, Progress
from app.reproduce import Table
from app.reproduce.yuan1995.comparison import NOISE_NOTE, comparison_table
from app.reproduce.yuan1995.family import Family
from app.reproduce.yuan1995.systems import oscillator, powers


@lru_cache(maxsize=1)
def coulomb_model() -> Model:
    """Eq. (3.6) with tanh(50 dx/dt) and five powers each."""
    friction = " + ".join(f"b{i}*x**{i - 1}" for i in range(1, 6)).replace("*x**0", "")
    names = ["m", "c", *(f"a{i}" for i in range(1, 6)), *(f"b{i}" for i in range(1, 6))]
    return oscillator(
        "Smooth Coulomb friction, eq. (3.6)",
        f"f - c*v - ({powers('a', 5)}) - ({friction})*tanh(s*v)",
        names,
        {"s": 50.0, "force": 1.9, "w": 1.3},
        "force*cos(w*t)",
        {"m": 1.5, "a1": 0.5, "b1": 0.5},
    )


COULOMB = {"m": 1.0, "c": 0.03, "a1": 1.0, "b1": 1.0, "b2": 1.5}
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


def coulomb_names(p: int) -> list[str]:
    return ["m", "c", *(f"a{i}" for i in range(1, p + 1)), *(f"b{i}" for i in range(1, p + 1))]


FAMILY = Family("coulomb", 1.3, coulomb_model, coulomb_names, COULOMB, tuple(range(1, 9)))


def table_4(progress: Progress) -> Table:
    """Four orbits, without noise."""
    rows = FAMILY.without_noise(TABLE_4, 4, progress)
    return comparison_table(
        "4",
        "Table 4: Coulomb friction from four orbits, without noise",
        rows,
        "Friction is tanh(50 dx/dt); the printed tanh(50 x) lets the motion escape. The print's note a names "
        "the fifth coefficients alpha3, beta3.",
    )


def table_5(progress: Progress) -> Table:
    """Three orbits, with noise."""
    rows = FAMILY.with_noise(TABLE_5, 3, progress)
    return comparison_table(
        "5",
        "Table 5: Coulomb friction from three orbits, with noise",
        rows,
        NOISE_NOTE,
        "The second and third rows of the print have their noise levels exchanged, as its damping shows.",
    )
