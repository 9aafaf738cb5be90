"""Branches of periodic motions against SciPy shooting, AUTO-07p and closed forms.

The first example of NLvib (Krack and Gross 2019, section 5.1): Duffing's response from 0.5 to 1.6 rad/s, with
two folds. SciPy's shooting gets the points of our branch with some of their steps, begins each where the two
before it point, and corrects it at a right angle to that by Newton's method with hand-written variational
equations (DOP853 at our tolerance). AUTO-07p (Fortran, orthogonal collocation on 20 intervals) follows the
whole branch by itself, where Debian's package (or the folder that AUTO_DIR names) and a C compiler are found.

Closed forms: the oscillator x'' + c x' + x + g (x^2 + (x'/w)^2) x = a cos wt moves on a circle of size A with
((1 + g A^2 - w^2)^2 + (c w)^2) A^2 = a^2, so that its folds are roots of a polynomial; the edges of Mathieu's
tongues are characteristic values.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import mathieu_a, mathieu_b

from analysis import Model, follow
from analysis.dynamics.continuation import Branch
from benchmarks.measure import Measurement, median_times

Array = NDArray[np.float64]

ZETA, GAMMA, FORCE = 0.05, 0.1, 0.18
LOWEST, HIGHEST = 0.5, 1.6  # rad/s
RTOL = 1e-10
EVERY = 4  # each so many-th point is corrected by SciPy, and its time taken for the others as well
SAME = 1e-7  # of the motion: points of two programs
DUFFING = f"""
[states]
x = "v"
v = "-{ZETA}*v - x - {GAMMA}*x**3 + {FORCE}*cos(w*t)"
[parameters]
w = {LOWEST}
[outputs]
x = "x"
"""
CIRCLING = f"""
[states]
x = "v"
v = "-{ZETA}*v - x - {GAMMA}*(x**2 + (v/w)**2)*x + {FORCE}*cos(w*t)"
[parameters]
w = {LOWEST}
[outputs]
x = "x"
"""
MATHIEU = """
[states]
x = "v"
v = "-(a - 2*q*cos(2*t))*x"
[parameters]
a = 0.1
q = 0.5
[outputs]
x = "x"
"""
Q = 0.5
TONGUES = ((0.1, 2.0), (3.5, 4.5))  # a tongue must be wider than a step, which is at most 4 % of the range
AUTO = Path(os.environ.get("AUTO_DIR", "/usr/lib/auto-07p"))
EQUATIONS = f"""
#include "auto_f2c.h"
#define R const doublereal *
#define I const integer *
int func(integer n, R u, I i, R p, integer j, doublereal *f, doublereal *d, doublereal *e) {{
  double r = 1 - u[2]*u[2] - u[3]*u[3];
  f[0] = u[1]; f[1] = -{ZETA}*u[1] - u[0] - {GAMMA}*u[0]*u[0]*u[0] + {FORCE}*u[2];
  f[2] = u[2]*r - p[0]*u[3]; f[3] = u[3]*r + p[0]*u[2]; return 0; }}
int stpnt(integer n, doublereal t, doublereal *u, doublereal *p) {{
  double w = {LOWEST}, s = 2*M_PI*t, d = 1 - w*w, c = {ZETA}*w, m = {FORCE}/(d*d + c*c), a = m*d, b = m*c;
  p[0] = w; p[10] = 2*M_PI/w; u[0] = a*cos(s) + b*sin(s); u[1] = w*(b*cos(s) - a*sin(s));
  u[2] = cos(s); u[3] = sin(s); return 0; }}
int bcnd(integer n, R p, I i, integer b, R u, R v, integer j, doublereal *f, doublereal *d) {{ return 0; }}
int icnd(integer n, R p, I i, integer k, R u, R o, R d, R v, integer j, doublereal *f, doublereal *e)
  {{ return 0; }}
int fopt(integer n, R u, I i, R p, integer j, doublereal *f, doublereal *d, doublereal *e) {{ return 0; }}
int pvls(integer n, const void *u, doublereal *p) {{ return 0; }}
"""
CONSTANTS = f"""
NDIM=4, IPS=2, IRS=0, ILP=1
ICP=[1, 11]
NTST=20, NCOL=4, IAD=3, ISP=2, ISW=1, IPLT=0, NBC=0, NINT=0
NMX=2000, NPR=2000, MXBF=0, IID=0, ITMX=8, ITNW=7, NWTN=3, JAC=0
EPSL=1e-9, EPSU=1e-9, EPSS=1e-8
DS=0.01, DSMIN=1e-5, DSMAX=0.05, IADS=1
NPAR=11
UZSTOP={{1: {HIGHEST}}}
"""


def measure() -> list[Measurement]:
    model = Model.from_toml(DUFFING)
    ours = median_times({"ours": lambda: _response(model)}, 5)["ours"]
    branch = _response(model)
    return [_scipy_row(branch, ours), _auto_row(branch, ours), _circling_row(), _tongues_row()]


def _response(model: Model) -> Branch:
    """From the motion of the linear oscillator at the lowest frequency."""
    detuned, damped = 1 - LOWEST**2, ZETA * LOWEST
    size = FORCE / (detuned**2 + damped**2)
    start = {"x": size * detuned, "v": LOWEST * size * damped}
    return follow(model, "w", LOWEST, HIGHEST, start, rtol=RTOL)


def _folds(branch: Branch) -> list[float]:
    return sorted(s.point.parameter for s in branch.specials if s.kind == "fold")


# -- SciPy


def _rates(t: float, y: Array, w: float) -> list[float]:
    """Motion, its derivatives by the start (two columns) and by the frequency."""
    x, v, ax, av, bx, bv, cx, cv = y
    stiff = -1 - 3 * GAMMA * x * x
    return [
        v, -ZETA * v - x - GAMMA * x**3 + FORCE * np.cos(w * t),
        av, stiff * ax - ZETA * av, bv, stiff * bx - ZETA * bv,
        cv, stiff * cx - ZETA * cv - FORCE * t * np.sin(w * t),
    ]  # fmt: skip


def _closing(z: Array) -> tuple[Array, Array]:
    """By how much a motion from z = (x, v, w) misses its start after a period, and the derivatives."""
    period = 2 * np.pi / z[2]
    begin = [z[0], z[1], 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    run = solve_ivp(_rates, (0, period), begin, method="DOP853", rtol=RTOL, atol=1e-12, args=(z[2],))
    end = run.y[:, -1]
    by_start = np.array([[end[2], end[4]], [end[3], end[5]]]) - np.eye(2)
    slope = np.array(_rates(period, end, z[2])[:2])
    by_frequency = end[6:] - slope * period / z[2]
    return end[:2] - z[:2], np.column_stack([by_start, by_frequency])


def _corrected(guess: Array, through: Array, tangent: Array) -> Array:
    """The periodic motion in the plane through a point, at a right angle to the tangent."""
    z = guess.copy()
    for _ in range(10):
        miss, slopes = _closing(z)
        system = np.vstack([slopes, tangent])
        step = np.linalg.solve(system, -np.append(miss, tangent @ (z - through)))
        z += step
        if np.abs(step).max() < 1e-9:
            break
    return z


def _scipy_row(branch: Branch, ours: float) -> Measurement:
    points = np.array([[*p.nodes[0], p.parameter] for p in branch.points])
    some = range(2, len(points), EVERY)
    far = 0.0
    began = time.process_time()
    for i in some:
        tangent = points[i - 1] - points[i - 2]
        tangent /= np.linalg.norm(tangent)
        guess = points[i - 1] + np.linalg.norm(points[i] - points[i - 1]) * tangent
        far = max(far, float(np.abs(_corrected(guess, points[i], tangent) - points[i]).max()))
    seconds = (time.process_time() - began) * len(points) / len(some)
    note = f"apart by {far:.1e} at most; SciPy on {len(some)} of {len(points)} points, without folds"
    return Measurement(
        "Duffing's response, two folds", "SciPy shooting", seconds, ours, far < SAME, None, note
    )


# -- AUTO


def _auto_row(branch: Branch, ours: float) -> Measurement:
    work, compiler = "the same", shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not (AUTO / "lib").is_dir():
        return Measurement(work, "AUTO-07p", None, ours, note="not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = _auto_program(compiler, folder)
        (folder / "fort.2").write_text(CONSTANTS)
        run = _timed([str(program)], folder)
        seconds = min(run(), run(), run())
        rows = [line.split() for line in (folder / "fort.7").read_text().splitlines()]
    points = [row for row in rows if int(row[0]) < 0]
    found = sorted(float(row[4]) for row in points if row[2] == "5")
    own = _folds(branch)
    agrees = len(found) == len(own) and bool(np.allclose(found, own, atol=1e-6))
    note = f"folds {', '.join(f'{w:.8f}' for w in own)}; AUTO {', '.join(f'{w:.8f}' for w in found)}"
    return Measurement(work, "AUTO-07p", seconds, ours, agrees, None, f"{note} ({len(points)} points)")


def _auto_program(compiler: str, folder: Path) -> Path:
    """AUTO with our equations. Its objects want the run-time library of Fortran."""
    (folder / "equations.c").write_text(EQUATIONS)
    program, include = folder / "equations.exe", AUTO / "include"
    objects = [str(p) for p in sorted((AUTO / "lib").glob("*.o"))]
    headers = ["-I", str(include)] if include.is_dir() else []
    library = str(AUTO / "lib" / "libauto_c.a")
    subprocess.run(
        [compiler, "-O2", *headers, "equations.c", *objects, library, "-l:libgfortran.so.5", "-lm",
         "-fopenmp", "-o", str(program)],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return program


def _timed(command: list[str], folder: Path) -> Callable[[], float]:
    """Processor seconds of a program that works on one core."""

    def run() -> float:
        before = os.times()
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, cwd=folder, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, **quiet)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    return run


# -- closed forms


def _circling_row() -> Measurement:
    model = Model.from_toml(CIRCLING)
    ours = median_times({"ours": lambda: _response(model)}, 3)["ours"]
    branch, exact = _response(model), _exact_folds()
    own = _folds(branch)
    far = max(abs(a - b) for a, b in zip(own, exact, strict=True)) if len(own) == len(exact) else np.inf
    sizes = np.abs(branch.harmonics(0)) ** 2
    miss = ((1 + GAMMA * sizes - branch.parameters**2) ** 2 + (ZETA * branch.parameters) ** 2) * sizes
    along = float(np.abs(miss / FORCE**2 - 1).max())
    note = f"folds {far:.1e} off; a^2 along the branch {along:.1e}"
    return Measurement(
        "oscillator on a circle", "closed form", None, ours, far < 1e-8 and along < 1e-6, None, note
    )


def _exact_folds() -> list[float]:
    """Frequencies at which two real sizes of the circle become one: a cubic in A^2 has a double root."""

    def discriminant(w: float) -> float:
        a, b = GAMMA**2, 2 * GAMMA * (1 - w * w)
        c, d = (1 - w * w) ** 2 + (ZETA * w) ** 2, -(FORCE**2)
        return 18 * a * b * c * d - 4 * b**3 * d + (b * c) ** 2 - 4 * a * c**3 - 27 * (a * d) ** 2

    places = np.linspace(LOWEST, HIGHEST, 2000)
    signs = np.sign([discriminant(w) for w in places])
    return [
        float(brentq(discriminant, places[i], places[i + 1], xtol=1e-14))
        for i in np.flatnonzero(np.diff(signs))
    ]


def _tongues_row() -> Measurement:
    """Edges of the tongues: branch points of rest over a, in the period pi."""
    model = Model.from_toml(MATHIEU)

    def edges() -> list[float]:
        rest = {"x": 0.0, "v": 0.0}
        branches = [follow(model, "a", *range_, rest, rtol=RTOL) for range_ in TONGUES]
        return sorted(s.point.parameter for branch in branches for s in branch.specials)

    ours = median_times({"ours": edges}, 3)["ours"]
    exact = [float(mathieu_b(n, Q)) for n in (1, 2)] + [float(mathieu_a(n, Q)) for n in (1, 2)]
    exact.sort()
    found = edges()
    far = max(abs(a - b) for a, b in zip(found, exact, strict=True)) if len(found) == len(exact) else np.inf
    began = time.process_time()
    by_scipy = [
        brentq(_half_trace, value - 0.01, value + 0.01, args=(n,), xtol=1e-10) for n, value in _sides(exact)
    ]
    seconds = time.process_time() - began
    agrees = far < 1e-7 and bool(np.allclose(by_scipy, exact, atol=1e-7))
    note = f"{len(found)} edges, {far:.1e} off; SciPy is told where each lies"
    return Measurement("Mathieu's tongues", "SciPy monodromy", seconds, ours, agrees, None, note)


def _sides(edges: list[float]) -> list[tuple[float, float]]:
    """For each edge the value that half of the trace has there."""
    return [(-1.0 if round(np.sqrt(value)) % 2 else 1.0, value) for value in edges]


def _half_trace(a: float, side: float) -> float:
    def rates(t: float, y: Array) -> list[float]:
        stiff = a - 2 * Q * np.cos(2 * t)
        return [y[1], -stiff * y[0], y[3], -stiff * y[2]]

    end = solve_ivp(rates, (0, np.pi), [1.0, 0.0, 0.0, 1.0], method="DOP853", rtol=RTOL, atol=1e-12).y[:, -1]
    return float(0.5 * (end[0] + end[3]) - side)
