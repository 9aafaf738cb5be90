"""Shared fixtures. Random draws come from a seeded generator; kernels are cached once for all tests."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples each time and no limits of time: what failed can be repeated, whatever the machine.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260501)


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Rigs leave their stop port in the temporary folder: with one of its own, no test process stops the
    drives of another one, nor those of a program in use on this machine."""
    before = os.environ.get("TMPDIR")
    folder = str(tmp_path_factory.mktemp("temporary"))
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    yield
    tempfile.tempdir = None
    if before is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = before
