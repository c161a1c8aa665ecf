#!/usr/bin/env python3
"""Writes what `tune` prints for the trace in the tree into docs/tuning.md.

usage: tune_page.py PROGRAM
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tuning.md"
TRACE = "bench/traces/infinitehbd/fault_trace.json"
BEGIN, END = "<!-- tune -->\n", "<!-- end of tune -->"


def main(program: str) -> None:
    text = subprocess.run([program, "tune", TRACE], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    page = PAGE.read_text()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise SystemExit(f"tune_page.py: {PAGE.name} must have one line {BEGIN.strip()} and one line {END}")
    PAGE.write_text(page[:page.index(BEGIN)] + BEGIN + text + page[page.index(END):])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(str(pathlib.Path(sys.argv[1]).resolve()))
