#!/usr/bin/env python3
"""Holds docs/invariants.md to the tests: every test, and every property of the model, that it names exists.

usage: check_invariants.py [ROOT]
"""
import pathlib
import re
import sys

from report import report

CASE = re.compile(r'TEST_CASE\s*\(\s*((?:"(?:\\.|[^"\\])*"\s*)+)')
PROPERTY = re.compile(r'^ {4}"([^"]+)": "[^"]+",$', re.M)  # of PROPERTIES in the model's runner
STORY = re.compile(r"^func (Test\w+)\(t \*testing\.T\)", re.M)


def names(root: pathlib.Path) -> set[str]:
    """Every test of the tree, as it is called."""
    found: set[str] = set()
    for path in (root / "tests").rglob("*.cc"):
        for case in CASE.finditer(path.read_text()):
            found.add("".join(re.findall(r'"((?:\\.|[^"\\])*)"', case.group(1))))
    for path in (root / "tests").rglob("*_test.go"):
        found.update(STORY.findall(path.read_text()))
    model = root / "tests/model/run"
    if model.is_file():
        found.update(PROPERTY.findall(model.read_text()))
    return found


def check(root: pathlib.Path) -> list[str]:
    page = root / "docs/invariants.md"
    if not page.is_file():
        return ["docs/invariants.md is missing"]
    known, bad, rows = names(root), [], 0
    for number, line in enumerate(page.read_text().splitlines(), 1):
        row = re.match(r"\| (I\d+) \|[^|]*\|(.*)\|$", line)
        if not row:
            continue
        rows += 1
        shown = re.findall(r"`([^`]+)`", row.group(2))
        if not shown:
            bad.append(f"docs/invariants.md:{number}: {row.group(1)} is shown by no test")
        bad += [f"docs/invariants.md:{number}: {row.group(1)}: there is no test {name}" for name in shown if name not in known]
    return bad if rows else bad + ["docs/invariants.md has no invariant"]


if __name__ == "__main__":
    sys.exit(report(check))
