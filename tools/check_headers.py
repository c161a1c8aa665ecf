#!/usr/bin/env python3
"""Holds each header to including, itself or through headers of this project, the standard headers that it needs.

usage: check_headers.py [ROOT]

Only of those that cmake/options.cmake precompiles, and by name, since one standard header often brings another along: compile_headers.py compiles
each header alone, and finds everything else that one lacks.
"""
import pathlib
import re
import sys

from check_includes import INCLUDE, code_lines, resolve
from lists import read_lists
from report import report

# What says that a header needs it, and what brings it along by the standard or in every library there is.
NEEDS = {
    "algorithm": r"std::(sort|stable_sort|find|find_if|min|max|clamp|any_of|all_of|none_of|count_if|transform|copy|equal|lower_bound|upper_bound"
    r"|ranges::(sort|stable_sort|find|find_if|any_of|all_of|none_of|min|max|copy|transform|contains|lower_bound|upper_bound|equal|count|count_if"
    r"|max_element|min_element|for_each))\b",
    "chrono": r"std::chrono::",
    "expected": r"std::(expected|unexpected)\b",
    "functional": r"std::(function|move_only_function|hash|invoke|identity|bind_front)\b",
    "map": r"std::(multi)?map\b",
    "memory": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|addressof|enable_shared_from_this)\b",
    "optional": r"std::(optional|nullopt|make_optional)\b",
    "ranges": r"std::(views::|ranges::(subrange|view|range|input_range|views))",
    "string": r"std::(string|to_string|stoi)\b",
    "string_view": r"std::string_view\b",
    "unordered_map": r"std::unordered_(multi)?map\b",
    "variant": r"std::(variant|visit|monostate|get_if|holds_alternative)\b",
    "vector": r"std::vector\b",
}
ALSO = {"string_view": {"string"}}


def reached(root: pathlib.Path, path: str, listed: dict[str, str], known: dict[str, set[str]]) -> set[str]:
    """The library headers that a file includes, itself or through files of this project."""
    if path in known:
        return known[path]
    found = known[path] = set()
    for _, line in code_lines((root / path).read_text()):
        include = INCLUDE.match(line)
        if not include:
            continue
        if include.group(1) == "<":
            found.add(include.group(2))
        elif target := resolve(root, path, include.group(2), listed):
            found |= reached(root, target, listed, known)
    return found


def check(root: pathlib.Path) -> list[str]:
    listed = {path: name for name, entries in read_lists(root).items() for path in entries if (root / path).is_file()}
    bad, known = [], {}
    for path in sorted(path for path in listed if path.endswith(".h")):
        have = reached(root, path, listed, known)
        lacking = {header for header in NEEDS if header not in have and not ALSO.get(header, set()) & have}
        for number, line in code_lines((root / path).read_text()):
            for header in sorted(lacking):
                if used := re.search(NEEDS[header], line):
                    bad.append(f"{path}:{number}: {used.group(0)} without <{header}>: include it")
                    lacking.remove(header)
    return bad


if __name__ == "__main__":
    sys.exit(report(check))
