#!/usr/bin/env python3
"""Holds every source file to its room and its folder.

usage: check_includes.py [ROOT]

1. Every .cc and .h under base/, k8s-client/, domain/, reconcilers/, src/ and simulator/ is in exactly one list of CMakeLists.txt,
   every entry is a file, entries are in alphabetical order.
2. A core file's own #include lines name only the headers allowed below, and it never says ::now( .
3. Each folder includes only what stands before it in the order of a turn, in both rooms (docs/architecture.md).

Transitive includes are not looked at: <memory> alone reaches <pthread.h>. What the compiled code asks for is the
business of check_core_symbols.py.
"""
import pathlib
import re
import sys

from lists import ROOMS, files_on_disk, read_lists
from report import report

STD = set(
    """algorithm array bit bitset cassert cctype charconv chrono cmath compare concepts cstddef cstdint cstring deque
    exception expected forward_list functional initializer_list iterator limits list map memory new numbers numeric
    optional queue ranges ratio set span stack stdexcept string string_view tuple type_traits unordered_map
    unordered_set utility variant vector""".split()
)
LIBRARIES = re.compile(
    r"^(simdjson\.h|protozero/(pbf_reader|exception|varint)\.hpp|nlohmann/json(_fwd)?\.hpp|yaml-cpp/(yaml|eventhandler)\.h|re2/(re2|set|stringpiece)\.h|fmt/(core|format|ranges|compile)\.h)$"
)
# Beast's parser is a pure function of bytes. Only the files that read HTTP messages may use it.
HTTP_FILES = re.compile(r"^k8s-client/protocol/http_\w+\.(cc|h)$")
HTTP_HEADERS = re.compile(r"^boost/(asio/buffer|optional(/optional)?|system/error_code|beast/http/\w+|beast/core/(error|string_type))\.hpp$")

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')

# The order of a turn: a folder includes itself and what stands before it.
ORDER = (
    "base",
    "k8s-client",
    "domain/contract",
    "domain/policy",
    "domain/cluster",
    "domain/findings",
    "domain/history",
    "domain/limits",
    "domain/incidents",
    "domain/tuning",
    "reconcilers/shared",
    "reconcilers",  # each of them; none includes another
    "src/app",
    "src/cli",
)
# A cluster of its own, which knows nothing of the controller.
SIMULATOR = ("base", "k8s-client", "simulator/api", "simulator/controllers", "simulator/node", "simulator/script", "simulator")
SUBFOLDERS = {"domain", "reconcilers", "src", "simulator"}


def folder_of(path: str) -> str:
    """The folder of the order in which a file stands; `main` for the program's own file, which includes all."""
    parts = path.split("/")
    if path == "src/app/main.cc":
        return "main"
    return "/".join(parts[:2]) if parts[0] in SUBFOLDERS and len(parts) > 2 else parts[0]


def place_in(order: tuple[str, ...], folder: str) -> int | None:
    """Where a folder stands in the order; every reconciler in the same place."""
    if folder not in order and folder.startswith("reconcilers/"):
        folder = "reconcilers"
    return order.index(folder) if folder in order else None


def may_include(source: str, target: str) -> bool:
    """Whether a file of folder `source` may include one of folder `target`; rooms are checked apart from this."""
    if source == target or source == "main":
        return True
    if source == "src/cli" and target in SIMULATOR:  # the demo's cluster
        return True
    order = SIMULATOR if source in SIMULATOR[2:] else ORDER
    here, there = place_in(order, source), place_in(order, target)
    return here is not None and there is not None and there < here


def code_lines(text: str):
    """Numbered lines without comments and without the inside of string literals (include lines keep theirs)."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        if not re.match(r"\s*#\s*include\b", line):
            line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
        yield number, re.sub(r"//.*", "", line)


def check_lists(root: pathlib.Path, lists: dict[str, list[str]]) -> list[str]:
    bad = []
    where: dict[str, str] = {}
    disk = files_on_disk(root)
    for name, entries in lists.items():
        if entries != sorted(entries):
            first = next(b for a, b in zip(entries, entries[1:]) if b < a)
            bad.append(f"CMakeLists.txt: {name} is not in alphabetical order at {first}")
        for entry in entries:
            if entry in where:
                bad.append(f"CMakeLists.txt: {entry} is in {where[entry]} and in {name}: one list only")
            where[entry] = name
            if entry not in disk:
                bad.append(f"CMakeLists.txt: {entry} of {name} is not a file")
    bad += [f"{path}: in no list of CMakeLists.txt" for path in sorted(disk - set(where))]
    return bad


def resolve(root: pathlib.Path, path: str, header: str, room: dict[str, str]) -> str | None:
    """The listed file that a quoted include means, or None."""
    for candidate in (header, f"src/{header}", f"{pathlib.PurePosixPath(path).parent}/{header}"):
        if candidate in room or (root / candidate).is_file():
            return candidate
    return None


def check_file(root: pathlib.Path, path: str, room: dict[str, str]) -> list[str]:
    bad = []
    core = room[path] == "core"
    for number, line in code_lines((root / path).read_text()):
        here = f"{path}:{number}"
        if core and "::now(" in line:
            bad.append(f"{here}: core may not read a clock: take Now as a parameter")
        found = INCLUDE.match(line)
        if not found:
            continue
        quoted, header = found.group(1) == '"', found.group(2)
        if not quoted:
            allowed = header in STD or LIBRARIES.match(header) or (HTTP_FILES.match(path) and HTTP_HEADERS.match(header))
            # What is shared is counted, as in std::shared_ptr: records are made by one thread and dropped by another.
            allowed = allowed or (path in ("base/shared_text.h", "k8s-client/model/shared_list.h") and header == "atomic")
            if core and not allowed:
                bad.append(f"{here}: core may not include <{header}>")
            continue
        target = resolve(root, path, header, room)
        if target is None:
            bad.append(f'{here}: "{header}" is no file of this project')
        elif target not in room:
            bad.append(f'{here}: "{header}" is in no list of CMakeLists.txt')
        elif header.startswith("../") or target == f"{pathlib.PurePosixPath(path).parent}/{header}" != header:
            bad.append(f'{here}: include "{header}" by its path from the root or from src: "{target.removeprefix("src/")}"')
        elif core and room[target] != "core":
            bad.append(f'{here}: core may not include "{header}", which is of the shell')
        elif path.startswith("domain/") and target.startswith("k8s-client/auth/"):
            bad.append(f'{here}: the domain may not include "{header}": it knows no credentials')
        elif not may_include(folder_of(path), folder_of(target)):
            bad.append(f'{here}: {folder_of(path)} may not include "{header}" of {folder_of(target)}')
    return bad


def check(root: pathlib.Path) -> list[str]:
    lists = read_lists(root)
    bad = check_lists(root, lists)
    room = {path: ROOMS[name] for name, entries in lists.items() for path in entries if (root / path).is_file()}
    for path in sorted(room):
        bad += check_file(root, path, room)
    return bad


if __name__ == "__main__":
    sys.exit(report(check))
