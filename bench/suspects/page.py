#!/usr/bin/env python3
"""Plays schedules with a planted truth, and writes the table that the program prints into its decision.

usage: page.py PROGRAM FROM TO      a run that was stopped goes on where its file of build/suspects ends
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "decisions" / "2026-11-24-a-workload-is-suspected-by-its-share.md"
BEGIN, END = "<!-- suspects -->\n", "<!-- end of suspects -->"


def replaced(page: str, text: str) -> str:
    """The page with what stands between its marks replaced."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise SystemExit(f"page.py: {PAGE.name} must have one line {BEGIN.strip()} and one line {END}")
    return page[:page.index(BEGIN)] + BEGIN + text.strip() + "\n" + page[page.index(END):]


def main(program: str, first: str, end: str) -> None:
    saved = ROOT / "build" / "suspects" / first
    saved.parent.mkdir(parents=True, exist_ok=True)
    played = subprocess.run([program, first, end, str(saved)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(played)
    PAGE.write_text(replaced(PAGE.read_text(), f"Schedules {first} to {int(end) - 1}:\n\n{played}"))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
