"""`shakedown project`: a folder with all that belongs to a test; made, described, archived, unpacked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import ShakedownError
from app.output import add_json_option, sentence, table, terminal_progress, write_json

if TYPE_CHECKING:
    from app.project import Project

ACTIONS = ("new", "info", "set", "archive", "unpack")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=ACTIONS,
        help="make one; tell what is in it; change what it says; pack it into one file; unpack that",
    )
    parser.add_argument(
        "place",
        nargs="?",
        metavar="FOLDER",
        help="of the project (default: the one we are in); or the archive",
    )
    parser.add_argument("--out", metavar="FILE", help="the archive to write; the new folder to unpack into")
    parser.add_argument("--title", help="what the test is called")
    parser.add_argument("--specimen", help="what is tested")
    parser.add_argument("--operator", help="who tests")
    parser.add_argument("--temperature", type=float, metavar="C", help="of the test, in °C")
    parser.add_argument("--notes", help="anything worth knowing later")
    parser.add_argument("--rig", help="the rig that `acquire` takes if none is named")
    parser.add_argument(
        "--field",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="a field of one's own; without a text it is removed",
    )
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app import project as projects
    from app.project_archive import archive, unpack

    if args.action == "unpack":
        if not args.place or not args.out:
            raise ShakedownError("unpack needs the archive and --out, the new folder.")
        return _show(unpack(Path(args.place), Path(args.out), terminal_progress()), args.json)
    if args.action == "new":
        if not args.place:
            raise ShakedownError("new needs the folder of the project.")
        return _show(projects.create(Path(args.place), **_values(args, {})), args.json)
    project = project_at(args.place)
    if args.action == "set":
        values = _values(args, project.own)
        if not values:
            raise ShakedownError("set needs something to change, such as --specimen.")
        project = projects.change(project.folder, **values)
    elif args.action == "archive":
        target = Path(args.out) if args.out else project.folder.parent / f"{project.folder.name}.zip"
        return _archived(
            archive(project, _new_file(target, args.force), terminal_progress()), target, args.json
        )
    return _show(project, args.json)


def project_at(place: str | None) -> Project:
    """The project in a folder, or the one we are in."""
    from app import project as projects

    if place:
        return projects.load(place)
    found = projects.find()
    if found is None:
        raise ShakedownError(
            "This folder is in no project: name one, or make it with `shakedown project new`."
        )
    return found


def keep_in_project(keep: Callable[[Project], Path]) -> None:
    """Keep a result in the project we are in, if any; where that fails it is said, and all else goes on."""
    from app import project as projects

    try:
        found = projects.find()
        if found is not None:
            print(f"shakedown: kept as {keep(found)}", file=sys.stderr)
    except ShakedownError as error:
        print(f"shakedown: not kept in the project: {sentence(error)}", file=sys.stderr)


def _new_file(target: Path, force: bool) -> Path:
    if target.exists() and not force:
        raise ShakedownError(f"{target} is already there (--force replaces it).")
    return target


def _values(args: argparse.Namespace, own: Any) -> dict[str, Any]:
    """What the options say of the project."""
    from app.reading import pairs

    names = ("title", "specimen", "operator", "temperature", "notes", "rig")
    values = {name: value for name in names if (value := getattr(args, name)) is not None}
    if args.field:
        fields = {**own, **pairs(args.field)}
        values["own"] = {name: text for name, text in fields.items() if text}
    return values


def _describe(project: Project) -> dict[str, Any]:
    from app import project as projects

    return {
        "folder": str(project.folder),
        "title": project.title,
        "specimen": project.specimen,
        "operator": project.operator,
        "temperature": project.temperature,
        "notes": project.notes,
        "rig": project.rig,
        "created": project.created,
        "fields": dict(project.own),
        "recordings": [p.name for p in projects.recordings(project)],
        "fits": [p.name for p in projects.fits(project)],
        "analyses": [p.name for p in projects.analyses(project)],
    }


def _show(project: Project, json: str | None) -> int:
    about = _describe(project)
    if write_json(json, about):
        return 0
    rows = [
        (name, about[name]) for name in ("folder", "specimen", "operator", "rig", "created") if about[name]
    ]
    if project.temperature is not None:
        rows.append(("temperature", f"{project.temperature:g} °C"))
    rows += [*project.own.items(), *((kind, len(about[kind])) for kind in ("recordings", "fits", "analyses"))]
    print(project.name)
    print(table(["", ""], rows))
    if project.notes:
        print(project.notes)
    return 0


def _archived(left_out: list[Path], target: Path, json: str | None) -> int:
    if not write_json(json, {"file": str(target), "left_out": [str(p) for p in left_out]}):
        print(target)
        for path in left_out:
            print(f"left out: {path} (being written, or a link)")
    return 0
