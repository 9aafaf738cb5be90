"""STOP for every drive of this machine, from any process. Standard library only: it starts in milliseconds.

Our own drives are found by their pages in the control folder; those of others, and ours that were started in
another environment, by the second guard that runs beside each of them.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from drivers.acquisition.second_guard import MARK
from drivers.base.control_folder import page_paths, restricted
from drivers.base.drive_page import SILENT_SECONDS, DrivePage, alive, process_state
from drivers.base.system import user_name
from drivers.base.zeroing import ZeroingFailed, zero_output

ANSWER_SECONDS = 0.12  # for the rig's process to ramp down, or for the second guard to act in its place
LONGEST_SECONDS = 1.5  # for those that take longer, such as a generator on a slow line


@dataclass(frozen=True)
class StoppedDrive:
    """A drive that runs on this machine, and what came of STOP."""

    rig: str
    user: str
    pid: int
    stopped: bool
    word: str  # what happened, or how it can be stopped


def stop_all(reason: str = "") -> list[StoppedDrive]:
    """STOP every drive that can be reached, the rest named with how to stop it."""
    reason = reason or f"STOP from another process (shakedown stop, {os.getpid()})"
    pages, foreign = _find()
    for page in pages:  # all are told before any is waited for
        page.request_stop(reason)
    found = [_outcome(page) for page in pages]
    return [drive for drive in found if drive is not None] + foreign


def _outcome(page: DrivePage) -> StoppedDrive | None:
    """Wait for silence; zero the output from here where nobody else does."""
    about, pid = page.about, page.rig_pid
    rig, user = str(about.get("rig", "?")), str(about.get("user", "?"))
    if pid and not page.rig_lives():
        return _zero_abandoned(page, rig, user)
    if not page.served:
        if alive(page.window_pid or pid):
            return StoppedDrive(rig, user, pid, True, "it was being opened and is latched now")
        page.remove()
        return None
    began, deadline = time.monotonic(), time.monotonic() + LONGEST_SECONDS
    while not (silent := _is_silent(page)) and time.monotonic() < deadline:
        time.sleep(0.002)
        if time.monotonic() - began > ANSWER_SECONDS and not _is_looked_after(page):
            return _zero_here(page, rig, user)
    if silent:
        return StoppedDrive(rig, user, pid, True, page.guard_acted or "stopped")
    return _zero_here(page, rig, user)


def _is_silent(page: DrivePage) -> bool:
    """Zero, and latched by the rig's process or taken over by the second guard."""
    if page.closed or page.guard_acted:
        return page.closed or page.zeroed
    return page.output == 0.0 and not page.stop_requested and (page.status.latched or not page.served)


def _is_looked_after(page: DrivePage) -> bool:
    now = time.monotonic()
    rig = now - page.rig_beat < SILENT_SECONDS and process_state(page.rig_pid) != "T"
    return rig or (alive(page.guard_pid) and now - page.guard_beat < SILENT_SECONDS)


def _zero_here(page: DrivePage, rig: str, user: str) -> StoppedDrive:
    pid = page.rig_pid
    word = "STOP; the rig's process did not answer, the output was set to zero from outside"
    page.take_over("STOP; the rig's process did not answer")
    if problem := _zero(page):
        return StoppedDrive(
            rig, user, pid, False,
            f"it does not answer and its output cannot be reached ({problem}): switch off the amplifier",
        )  # fmt: skip
    page.take_over(word, zeroed=True)
    return StoppedDrive(rig, user, pid, True, word)


def _zero_abandoned(page: DrivePage, rig: str, user: str) -> StoppedDrive | None:
    """The page of a process that is gone: usually nothing is left to do, but nobody knows."""
    if not page.closed and page.served:
        if problem := _zero(page):
            word = (
                f"its process is gone and its output cannot be reached ({problem}): switch off the amplifier"
            )
            return StoppedDrive(rig, user, page.rig_pid, False, word)
        page.remove()
        if page.output > 0:
            return StoppedDrive(rig, user, page.rig_pid, True, "its process was gone; the output was zeroed")
    page.remove()
    return None


def _zero(page: DrivePage) -> str:
    problems = []
    for how in page.outputs:
        try:
            zero_output(how)
        except ZeroingFailed as error:
            problems.append(str(error))
    return "; ".join(problems)


def _find() -> tuple[list[DrivePage], list[StoppedDrive]]:
    """The pages that we may write to, and the drives of others."""
    me = os.getuid() if hasattr(os, "getuid") else None
    owners: dict[Path, int | None] = dict.fromkeys(page_paths(), me)
    pids: dict[Path, int] = {}
    for path, user, pid in _guards():
        owners.setdefault(path, user)
        pids[path] = pid
    pages, foreign = [], []
    for path, owner in owners.items():
        try:
            page = _opened(path, owner, pids.get(path, 0))
        except FileNotFoundError:
            continue  # it has just ended
        except (OSError, ValueError):
            if owner != me:
                foreign.append(_of_another(path, owner, pids.get(path, 0)))
            continue
        if page.outputs or not page.served:
            pages.append(page)
    return pages, foreign


def _opened(path: Path, owner: int | None, guard: int) -> DrivePage:
    """The page by its name, or, if somebody has removed that, as its second guard holds it."""
    try:
        return DrivePage.open(path, owner)
    except FileNotFoundError:
        if not guard:
            raise
        return DrivePage.open_held(path, guard, owner)


def _of_another(path: Path, owner: int | None, pid: int) -> StoppedDrive:
    user = user_name(owner or 0)
    word = (
        f"it belongs to {user}: have {user} press STOP, run `sudo shakedown stop`, "
        "or switch off the amplifier"
    )
    return StoppedDrive("?", user, pid, False, word)


def _guards() -> list[tuple[Path, int, int]]:
    """Page, user and process of every second guard on this machine, where the system shows processes."""
    found: list[tuple[Path, int, int]] = []
    if restricted():
        return found
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 (pathlib costs start-up time)
            if not name.isdigit():
                continue
            with contextlib.suppress(OSError, ValueError):
                with open(f"/proc/{name}/cmdline", "rb") as file:  # noqa: PTH123
                    words = file.read().split(b"\0")
                if len(words) > 3 and words[-2] == MARK.encode():
                    owner = os.stat(f"/proc/{name}").st_uid  # noqa: PTH116
                    found.append((Path(os.fsdecode(words[-3])), owner, int(name)))
    return found


def others_are_hidden() -> bool:
    """Whether the system hides the processes of other users, so that their drives cannot be named."""
    return os.path.isdir("/proc/self") and not os.path.exists("/proc/1/cmdline")  # noqa: PTH110, PTH112
