"""Numba's ``njit``, whose results are kept on disk where that is possible and never outlive their sources.

The compiler looks only at the file of the function it keeps, not at those of the functions that it compiles
into it. Here the stamp of kept code is a hash over everything that may be part of it: the sources of all
modules with compiled code that the function's module uses, directly or through others, and the values of the
constants that they take from elsewhere. A disk that is full, or a folder that nobody may write to, costs the
time to compile again and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import caching, dispatcher
from numba.core.compiler_lock import global_compiler_lock

__all__ = ["njit", "njit_at_once", "source_stamp"]

OWN_PACKAGES = ("analysis", "drivers", "app", "tests", "benchmarks")
GENERATED = "shakedown_"  # how the names of modules begin that are made from a model's equations
_MARKS = (b"njit", b"overload", b"intrinsic")  # one of them stands in every module with compiled code
_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, frozenset, np.ndarray, np.generic)

_stamps: dict[str, str] = {}  # by module: imports stand first, so nothing that counts is bound later


def source_stamp(module: ModuleType) -> str | None:
    """Hash over what compiled functions of the module may contain; None where there are no sources."""
    if module.__name__ not in _stamps:
        found: dict[str, bytes] = {}
        waiting = [module]
        while waiting:
            one = waiting.pop()
            text = _compiled_source(one)
            if text is None or one.__name__ in found:
                continue
            found[one.__name__] = hashlib.sha256(text + _constants(one)).digest()
            waiting += _used_modules(one)
        if not found:
            return None
        total = b"".join(name.encode() + found[name] for name in sorted(found))
        _stamps[module.__name__] = hashlib.sha256(total).hexdigest()
    return _stamps[module.__name__]


def _is_own(name: str) -> bool:
    return name.partition(".")[0] in OWN_PACKAGES or name.startswith(GENERATED)


def _compiled_source(module: ModuleType) -> bytes | None:
    """The source of a module of ours that holds compiled functions; None for any other."""
    path = getattr(module, "__file__", None)
    if path is None or not _is_own(module.__name__):
        return None
    try:
        text = Path(path).read_bytes()
    except OSError:  # a frozen program: its own file is looked at instead
        return None
    generated = module.__name__.startswith(GENERATED)
    return text if generated or any(mark in text for mark in _MARKS) else None


def _used_modules(module: ModuleType) -> Iterator[ModuleType]:
    """Modules of ours from which something that can be compiled was imported: functions, compiled or not (an
    ``overload`` hangs on a plain one), intrinsics, and modules themselves."""
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            yield value
            continue
        function = getattr(value, "py_func", None) or getattr(value, "_defn", None) or value
        if isinstance(function, FunctionType) and function.__module__ != module.__name__:
            other = sys.modules.get(function.__module__)
            if other is not None:
                yield other


def _constants(module: ModuleType) -> bytes:
    """The values (their names are in capitals) that compiled functions may have taken in as constants."""
    parts = []
    for name, value in sorted(vars(module).items()):
        if not (name.isupper() and isinstance(value, _PLAIN)):
            continue
        shown = value.tobytes() if isinstance(value, np.ndarray) else _shown(value).encode()
        parts += [name.encode(), shown]
    return b"\0".join(parts)


def _shown(value: Any) -> str:
    """A text that is the same in every process: sets have no order of their own, objects have addresses."""
    if isinstance(value, dict):
        return str(sorted((_shown(k), _shown(v)) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return str(sorted(map(_shown, value)))
    if isinstance(value, tuple | list):
        return str([_shown(v) for v in value])
    return repr(value) if isinstance(value, _PLAIN) else type(value).__name__


njit_at_once = numba.njit  # compiles the signature that it is given where it stands


def njit(*signature: Any, **options: Any) -> Any:
    """``numba.njit`` that compiles the one signature it is given when the function is first called, not when
    its module is imported: a run pays only for what it uses."""
    if not signature or isinstance(signature[0], FunctionType):
        return numba.njit(*signature, **options)

    def decorate(function: Any) -> Any:
        compiled: Any = numba.njit(**options)(function)

        def compile_first(*args: Any, **named: Any) -> Any:
            """What a call without matching machine code ends in; returns what is to be called instead."""
            with global_compiler_lock:
                if "_compile_for_args" in vars(compiled):  # no other thread has done it in the meantime
                    compiled.compile(signature[0])
                    compiled.disable_compile()
                    del compiled._compile_for_args
            return compiled

        compiled._compile_for_args = compile_first
        return compiled

    return decorate


class _Cache(caching.FunctionCache):
    """Numba's cache of one function, with the stamp above."""

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        module = sys.modules.get(py_func.__module__)
        stamp = source_stamp(module) if module is not None else None
        if stamp is not None:
            self._cache_file = caching.IndexDataCacheFile(
                cache_path=self._cache_path, filename_base=self._impl.filename_base, source_stamp=stamp
            )

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def _cache_of(py_func: Any) -> Any:
    """The cache of a function; one that keeps nothing where no folder takes it."""
    try:
        return _Cache(py_func)
    except RuntimeError:  # neither beside the sources nor in the user's home may anything be written
        return caching.NullCache()


dispatcher.FunctionCache = _cache_of  # type: ignore[attr-defined]  # there is no setting for it
