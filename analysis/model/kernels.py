"""A model's equations as machine code, compiled when first needed and kept on disk between runs.

The generated source is written to a cache folder as ``gen_<sha256>.py`` (a compiler cache needs a real
file), the only file that analysis ever writes. The folder is ``$SHAKEDOWN_CACHE``, else the platform's cache
folder; if that cannot be written, a temporary folder serves for this run. All functions release the GIL;
compiling may happen on any thread.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.compiler_lock import global_compiler_lock

from analysis.base.compiling import njit_at_once
from analysis.base.errors import ShakedownError
from analysis.model.code import source
from analysis.model.equations import Equations
from analysis.model.tiles import TILE_SIGNATURE, ManySamples

_TIME = types.float64
_VECTOR = types.float64[::1]
_MATRIX = types.float64[:, ::1]
_CUBE = types.float64[:, :, ::1]
_SAMPLE = (_TIME, _VECTOR, _VECTOR, _VECTOR)  # t, x[n], u[m], p[k]
# Kernels over many samples: what computes one tile, run by the loop that all models share.
MANY = (
    "rhs_many",
    "jac_many",
    "out_many",
    "out_jac_many",
    "jac_sparse_many",
    "jac_p_sparse_many",
    "rhs_sets",
)
STEPPING = ("rk4_sensitivities", "rk4_sets")  # they hold arrays on the stack

SIGNATURES = {
    "rhs": types.void(*_SAMPLE, _VECTOR),
    "jac": types.void(*_SAMPLE, _VECTOR, _MATRIX, _MATRIX),
    "jac_u": types.void(*_SAMPLE, _MATRIX),
    "out": types.void(*_SAMPLE, _VECTOR),
    "out_jac": types.void(*_SAMPLE, _VECTOR, _MATRIX, _MATRIX),
    **dict.fromkeys(MANY, TILE_SIGNATURE),
    "rk4_sensitivities": types.int64(
        *(_VECTOR, types.int64, _VECTOR, _VECTOR, types.int64[::1]),
        *(_TIME, _TIME, _CUBE, _TIME, _MATRIX, _MATRIX),
    ),
    "dop853": types.void(_TIME, _TIME, _VECTOR, _VECTOR, _MATRIX, _VECTOR),
    "rk4_sets": types.void(_VECTOR, _VECTOR, types.int64, _MATRIX, _MATRIX),
}
# Kernels as arguments of functions that are themselves compiled once: integrators and solvers.
RHS_TYPE = types.FunctionType(SIGNATURES["rhs"])
JAC_TYPE = types.FunctionType(SIGNATURES["jac"])
JAC_U_TYPE = types.FunctionType(SIGNATURES["jac_u"])
OUT_TYPE = types.FunctionType(SIGNATURES["out"])
OUT_JAC_TYPE = types.FunctionType(SIGNATURES["out_jac"])
STEP_TYPE = types.FunctionType(SIGNATURES["dop853"])

MAX_CACHED = 1000  # models whose code is kept on disk

# Fused multiply-add, reciprocals and unsigned zeros are allowed; NaN and infinity keep their meaning.
FASTMATH = frozenset({"contract", "arcp", "nsz"})


class Kernels:
    """The compiled functions of one set of equations (n states, m measured inputs, k parameters, q outputs).

    All arrays are float64 and C-contiguous; results are written into the last arguments.
    """

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._ready: dict[str, Any] = {}

    def _compiled(self, name: str) -> Any:
        if name in self._ready:  # without the lock: another thread may be compiling another kernel
            return self._ready[name]
        with global_compiler_lock:
            if name not in self._ready:
                function = getattr(self._module, name)
                try:
                    compiled = _compile(name, function)
                except Exception:  # whatever a damaged cache file makes the unpickling raise
                    _forget(self._module)
                    compiled = _compile(name, function)
                many = name in MANY
                self._ready[name] = ManySamples(compiled, self._module.LAYOUTS[name]) if many else compiled
            return self._ready[name]

    def is_ready(self, name: str) -> bool:
        """Whether a kernel has been compiled or loaded in this process."""
        return name in self._ready

    def prepare(self, *names: str) -> None:
        """Compile some kernels (all without names) now, such as on a worker thread before they are needed."""
        for name in names or SIGNATURES:
            getattr(self, name)

    @property
    def rhs(self) -> Any:
        """rhs(t, x[n], u[m], p[k], dx[n])"""
        return self._compiled("rhs")

    @property
    def jac(self) -> Any:
        """jac(t, x, u, p, dx[n], Jx[n, n], Jp[n, k])"""
        return self._compiled("jac")

    @property
    def jac_u(self) -> Any:
        """jac_u(t, x, u, p, Ju[n, m])"""
        return self._compiled("jac_u")

    @property
    def out(self) -> Any:
        """out(t, x, u, p, y[q])"""
        return self._compiled("out")

    @property
    def out_jac(self) -> Any:
        """out_jac(t, x, u, p, y[q], Yx[q, n], Yp[q, k])"""
        return self._compiled("out_jac")

    @property
    def rhs_many(self) -> Any:
        """rhs_many(t[N], X[n, N], U[m, N], p[k], dX[n, N])"""
        return self._compiled("rhs_many")

    @property
    def jac_many(self) -> Any:
        """jac_many(t[N], X[n, N], U[m, N], p[k], dX[n, N], Jx[n, n, N], Jp[n, k, N])"""
        return self._compiled("jac_many")

    @property
    def out_many(self) -> Any:
        """out_many(t[N], X[n, N], U[m, N], p[k], Y[q, N])"""
        return self._compiled("out_many")

    @property
    def out_jac_many(self) -> Any:
        """out_jac_many(t[N], X[n, N], U[m, N], p[k], Y[q, N], Yx[q, n, N], Yp[q, k, N])"""
        return self._compiled("out_jac_many")

    @property
    def jac_sparse_many(self) -> Any:
        """jac_sparse_many(t[N], X[n, N], U[m, N], p[k], dX[n, N], Vx[a, N], Vp[b, N]): the entries of the
        Jacobians that are not zero by structure, in the order of pattern_x[2, a] and pattern_p[2, b]"""
        return self._compiled("jac_sparse_many")

    @property
    def jac_p_sparse_many(self) -> Any:
        """jac_p_sparse_many(t[N], X[n, N], U[m, N], p[k], dX[n, N], Vp[b, N])"""
        return self._compiled("jac_p_sparse_many")

    @property
    def pattern_x(self) -> np.ndarray:
        """Rows and columns of the entries of Jx that are not zero by structure, int64[2, a]."""
        return np.array(self._module.PATTERN_X)

    @property
    def pattern_p(self) -> np.ndarray:
        """Rows and columns of the entries of Jp that are not zero by structure, int64[2, b]."""
        return np.array(self._module.PATTERN_P)

    @property
    def rk4_sensitivities(self) -> Any:
        """rk4_sensitivities(times[N], substeps, y[n + n*m], p[k], columns[m], t0, dt, coefficients, bound,
        work[2, n + n*m], out[n + n*m, N]): states and their derivatives by the parameters ``columns`` (-1: an
        initial value) at all times, from y; the number of columns filled. None for large models."""
        return self._compiled("rk4_sensitivities") if hasattr(self._module, "rk4_sensitivities") else None

    @property
    def has_own_step(self) -> bool:
        """Whether the model is small enough for :attr:`dop853`."""
        return hasattr(self._module, "dop853")

    @property
    def dop853(self) -> Any:
        """dop853(t, h, x[n], p[k], k[16, n], x_new[n]): a step of order 8 from the slope k[0] at (t, x), its
        slopes in k[1..12]; None for large models and those with measured inputs."""
        return self._compiled("dop853") if self.has_own_step else None

    @property
    def rk4_sets(self) -> Any:
        """rk4_sets(t[N], h[N], steps, X[n, N], P[k, N]): each column moves by Runge-Kutta steps of its own
        size; None for models with measured inputs."""
        return self._compiled("rk4_sets") if hasattr(self._module, "rk4_sets") else None

    @property
    def rhs_sets(self) -> Any:
        """rhs_sets(t[N], X[n, N], U[m, N], P[k, N], dX[n, N]): each column has its own parameters"""
        return self._compiled("rhs_sets")


def _compile(name: str, function: Any) -> Any:
    options: dict[str, Any] = {
        "nogil": True,
        "cache": True,
        "error_model": "numpy",
        "fastmath": set(FASTMATH),
        "_nrt": name in STEPPING,  # the others allocate nothing
        "no_cpython_wrapper": name in MANY,  # what computes a tile is called by compiled code only
    }
    compiled = njit_at_once(SIGNATURES[name], **options)(function)
    _keep_addresses(compiled, SIGNATURES[name])
    return compiled


def _keep_addresses(compiled: Any, signature: Any) -> None:
    """Remember where the machine code is: handed to a solver, a kernel is asked for it at every call, and
    the compiler looks for it anew each time, which takes longer than many a short run."""
    result, look_up = compiled.get_compile_result(signature), compiled.get_compile_result
    result.library.get_pointer_to_function = lru_cache(result.library.get_pointer_to_function)
    compiled.get_compile_result = lambda asked: result if asked.args == signature.args else look_up(asked)


def _forget(module: ModuleType) -> None:
    """Remove the compiled code of a module from the disk."""
    path = Path(str(module.__file__))
    for file in (path.parent / "__pycache__").glob(f"{path.stem}.*.nb?"):
        file.unlink(missing_ok=True)


_loaded: dict[str, Kernels] = {}


def kernels_of(equations: Equations) -> Kernels:
    """The kernels of the equations; the same object for equal equations."""
    with global_compiler_lock:
        text = source(equations)
        key = hashlib.sha256(f"{numba.__version__}\n{text}".encode()).hexdigest()
        if key not in _loaded:
            _loaded[key] = Kernels(_module(key, text))
        return _loaded[key]


def _module(key: str, text: str) -> ModuleType:
    path = _cache_folder() / f"gen_{key}.py"
    if not _holds(path, text):
        path = _kept(path, text)
    name = f"shakedown_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the compiler finds the functions of a module by its name
    spec.loader.exec_module(module)
    return module


def _holds(path: Path, text: str) -> bool:
    """Whether the file is whole; it is left alone then, for its time stamp is part of the cache."""
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _kept(path: Path, text: str) -> Path:
    """Write the file there; where the disk is full, among the temporary files."""
    try:
        _write(path, text)
    except OSError as full:
        try:
            path = Path(tempfile.mkdtemp(prefix="shakedown-kernels-")) / path.name
            _write(path, text)
        except OSError:
            raise ShakedownError(
                f"The equations cannot be compiled: {_cache_folder()} and the folder of temporary files "
                f"take no more data ({full.strerror})."
            ) from None
    return path


def _write(path: Path, text: str) -> None:
    """Write the file whole or not at all, so that another process never sees half of it."""
    handle, temporary = tempfile.mkstemp(suffix=".tmp", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)
    _prune(path.parent)


def _prune(folder: Path) -> None:
    """Keep the newest models: a search over many equations must not fill the disk."""
    files = sorted(folder.glob("gen_*.py"), key=_age)
    for old in files[MAX_CACHED:]:
        for file in [old, *(folder / "__pycache__").glob(f"{old.stem}.*")]:
            file.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:  # another process has just removed it
        return 0.0


@lru_cache(maxsize=1)
def _cache_folder() -> Path:
    folder = _wanted_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="shakedown-kernels-"))


def _wanted_folder() -> Path:
    given = os.environ.get("SHAKEDOWN_CACHE")
    if given:
        return Path(given) / "kernels"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "shakedown" / "kernels"
