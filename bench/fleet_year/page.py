#!/usr/bin/env python3
"""Plays fleets' years and writes what the program prints into docs/evaluation.md, with its picture.

usage: page.py PROGRAM [KEY=VALUE]...      the keys are the program's
"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evaluation.md"
PICTURE = ROOT / "docs" / "evaluation.svg"
BEGIN, END = "<!-- fleet-year -->\n", "<!-- end of fleet-year -->"


def replaced(page: str, text: str) -> str:
    """The page with what stands between its marks replaced."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise SystemExit(f"page.py: {PAGE.name} must have one line {BEGIN.strip()} and one line {END}")
    return page[:page.index(BEGIN)] + BEGIN + text.strip() + "\n" + page[page.index(END):]


def main(program: str, wishes: list[str]) -> None:
    played = subprocess.run([program, f"svg={PICTURE}", *wishes], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    print(played)
    picture = "![GPU-hours lost, by contender](evaluation.svg)"
    PAGE.write_text(replaced(PAGE.read_text(), f"{played.strip()}\n\n{picture}"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(sys.argv[1], sys.argv[2:])
