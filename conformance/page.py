#!/usr/bin/env python3
"""Writes the list of stories into docs/conformance.md and, from reports of runs, the table of contenders into docs/evaluation.md.

usage: page.py SUITE [REPORT.json]...      SUITE is the program
"""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def write(page: pathlib.Path, mark: str, text: str) -> None:
    """Replace what stands between the page's marks."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before = page.read_text()
    if before.count(begin) != 1 or before.count(end) != 1:
        raise SystemExit(f"page.py: {page.name} must have one line {begin.strip()} and one line {end}")
    page.write_text(before[:before.index(begin)] + begin + text.strip() + "\n" + before[before.index(end):])


def main(suite: str, reports: list[str]) -> None:
    with tempfile.NamedTemporaryFile("r") as listed:
        subprocess.run([suite, "--list", "--markdown", listed.name], check=True)
        write(ROOT / "docs/conformance.md", "stories", listed.read())
    if reports:
        printed = subprocess.run([suite, "--table", *reports], check=True, stdout=subprocess.PIPE, text=True).stdout
        print(printed)
        # Not why a promise was broken: that names pods of the one run.
        write(ROOT / "docs/evaluation.md", "conformance", "".join(line for line in printed.splitlines(keepends=True) if line.startswith("|")))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1], sys.argv[2:])
