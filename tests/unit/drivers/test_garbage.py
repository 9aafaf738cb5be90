"""No full garbage collection comes by itself in the rig's process, and the one before a drive is whole."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from drivers.base.garbage import collect_little, settle_memory


class Node:
    """Something that holds itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generation of each collection that is made; afterwards everything is as it was."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    thresholds = gc.get_threshold()
    gc.callbacks.append(note)
    yield seen
    gc.callbacks.remove(note)
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def keep_many(count: int) -> list[list[int]]:
    return [[i] for i in range(count)]


def test_given_much_that_stays_alive_then_only_what_is_new_is_collected(collections: list[int]) -> None:
    gc.set_threshold(700, 10, 10)
    many = 100_000 + len(gc.get_objects())  # a full collection waits for a quarter more than there was
    settle_memory()
    collections.clear()
    kept = keep_many(many)
    assert 2 in collections  # what happens by itself, and holds STOP up
    collect_little()
    collections.clear()
    kept += keep_many(many)
    assert 1 in collections and 2 not in collections


def test_given_a_settled_memory_then_garbage_is_gone_and_the_rest_is_left_alone(
    collections: list[int],
) -> None:
    lost, kept = weakref.ref(Node()), keep_many(1000)
    settle_memory()
    assert lost() is None and collections[-1] == 2
    assert gc.get_freeze_count() > len(kept)
    assert not any(kept is found for found in gc.get_objects())
