#!/usr/bin/env python3
"""Finds tests that would pass without testing anything.

usage: check_tests.py [ROOT]

A ';' in a test's name splits it in two filters that match nothing and pass; a skipped test is hidden from ctest; two
tests of one name run each other; a pause hides a race. That each case asserts something is seen when it runs: tests/support/main.cc.
"""
import pathlib
import re
import sys

from report import report

CASE = re.compile(r'^\s*(?:TEST_CASE|TEST_CASE_FIXTURE|SCENARIO|TEST_CASE_TEMPLATE)\s*\(\s*(?:[\w:]+\s*,\s*)?((?:"(?:\\.|[^"\\])*"\s*)+)', re.M)
SKIPPED = re.compile(r"doctest::(skip|may_fail|should_fail|no_breaks|expected_failures)\b")
PAUSE = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(")
# The folders of one executable -> may wait for a real socket.
SUITES = {("core", "controller"): False, ("scenarios",): False, ("loopback",): True}


def check_file(path: pathlib.Path, shown: str, may_pause: bool, seen: dict[str, str]) -> list[str]:
    bad = []
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        code = re.sub(r"//.*", "", line)
        if SKIPPED.search(code):
            bad.append(f"{shown}:{number}: {SKIPPED.search(code).group(0)} hides a failure")
        if not may_pause and PAUSE.search(code):
            bad.append(f"{shown}:{number}: no pause in a test: hand the time in")
    for case in CASE.finditer(text):
        name = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', case.group(1)))
        here = f"{shown}:{text.count(chr(10), 0, case.start(1)) + 1}"
        if ";" in name:
            bad.append(f"{here}: no ';' in a test's name: {name}")
        if name in seen:
            bad.append(f"{here}: the same name as {seen[name]}: {name}")
        seen[name] = here
    return bad


def check(root: pathlib.Path) -> list[str]:
    bad = []
    for folders, may_pause in SUITES.items():
        seen: dict[str, str] = {}
        for path in sorted(path for folder in folders for path in (root / "tests" / folder).rglob("*.cc")):
            bad += check_file(path, path.relative_to(root).as_posix(), may_pause, seen)
    return bad


if __name__ == "__main__":
    sys.exit(report(check))
