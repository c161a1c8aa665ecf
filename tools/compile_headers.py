#!/usr/bin/env python3
"""Holds each header to standing alone: it includes, itself or through what it includes, all that it names.

usage: compile_headers.py [ROOT]

clang compiles each header as a module of its own, once, and reads it wherever another includes it: a tenth of the time of compiling each with all that it
includes. Such a module sees nothing but what it includes. Headers with libraries that do not compile as modules are compiled alone, by g++.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from check_headers import reached
from check_includes import STD
from lists import read_lists
from report import report

# Libraries that are read from modules of their own: the header that brings all of each.
MODULES = {"fmt": ("fmt/core.h", "fmt/format.h"), "nlohmann": ("nlohmann/json.hpp",), "simdjson": ("simdjson.h",), "protozero": ("protozero/pbf_reader.hpp",)}
# Declares what a header of a module defines: no module can be made of both.
TEXTUAL = {"nlohmann": ("nlohmann/json_fwd.hpp",)}
SYSTEM = pathlib.Path("/usr/include")
FLAGS = ("-std=c++23", "-fsyntax-only")
SHOWN = 40  # lines of a compiler's words


def standard_folder() -> pathlib.Path:
    """Where clang finds the standard headers: beside the newest g++, as it says."""
    said = subprocess.run(["clang++-19", "-E", "-x", "c++", "-", "-v"], input="", capture_output=True, text=True, check=True).stderr
    found = re.search(r"^ (/\S*/c\+\+/\d+)$", said, re.M)
    if not found:
        raise SystemExit("compile_headers.py: clang++-19 names no folder of standard headers: install libstdc++'s")
    return pathlib.Path(os.path.normpath(found[1]))


def module_map(root: pathlib.Path, headers: list[str], standard: pathlib.Path, used: set[str]) -> str:
    """Of the standard library, of each library in MODULES, and of each header."""
    def module(name: str, kind: str, entries: list[str]) -> str:
        return f"module {name}{kind} {{\n" + "".join(f"  {entry}\n" for entry in entries) + "}\n"

    def part(index: int, path: pathlib.Path) -> str:
        return f'module part_{index} {{ header "{path}" export * }}'

    text = module("standard", " [system]", [part(index, standard / name) for index, name in enumerate(sorted(STD | used)) if (standard / name).is_file()])
    for name, files in MODULES.items():
        if used & {*files, *TEXTUAL.get(name, ())}:
            entries = [part(index, SYSTEM / file) for index, file in enumerate(files)]
            text += module(f"library_{name}", " [system]", entries + [f'textual header "{SYSTEM / file}"' for file in TEXTUAL.get(name, ())])
    return text + "".join(module(f"header_{index}", "", [f'header "{root / header}"', "export *"]) for index, header in enumerate(headers))


def words_of(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    # That a header cannot be read because one that it includes cannot says nothing new.
    lines = [line for line in done.stderr.splitlines() if "could not build module" not in line]
    return lines[:SHOWN] or [f"{' '.join(command[:2])} ended with {done.returncode}"]


def check(root: pathlib.Path) -> list[str]:
    listed = {path: name for name, entries in read_lists(root).items() for path in entries if (root / path).is_file()}
    known: dict[str, set[str]] = {}
    standard = standard_folder()
    readable = {file for group in (*MODULES.values(), *TEXTUAL.values()) for file in group}
    headers = sorted(path for path in listed if path.endswith(".h"))
    as_modules = [path for path in headers if all(name in readable or (standard / name).is_file() for name in reached(root, path, listed, known))]
    alone = [path for path in headers if path not in as_modules]
    used = set().union(*(known[path] for path in as_modules)) if as_modules else set()
    folders = (f"-I{root}", f"-I{root / 'src'}")
    with tempfile.TemporaryDirectory() as holder:
        work = pathlib.Path(holder)
        (work / "module.map").write_text(module_map(root, as_modules, standard, used))
        reading = ("clang++-19", *FLAGS, *folders, "-ferror-limit=0", "-fmodules", "-fno-implicit-module-maps", f"-fmodule-map-file={work / 'module.map'}",
                   f"-fmodules-cache-path={work / 'modules'}")
        commands = [["g++", *FLAGS, *folders, "-x", "c++", str(root / path)] for path in alone]
        cores = os.cpu_count() or 1
        for part in range(cores):
            if share := as_modules[part::cores]:
                source = work / f"part_{part}.cc"
                source.write_text("".join(f'#include "{root / path}"\n' for path in share))
                commands.insert(0, [*reading, str(source)])
        with concurrent.futures.ThreadPoolExecutor(cores) as pool:
            bad = [line for lines in pool.map(words_of, commands) for line in lines]
    return bad


if __name__ == "__main__":
    sys.exit(report(check))
