#!/usr/bin/env python3
"""Measures everything and writes what the commands print into docs/performance.md, whole.

usage: page.py [bench|peer]... [-- ARGUMENTS OF bench/peer/run]      default: both
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"


def printed(*command: str) -> str:
    """What the command printed; what is wrong with its figures ends this program."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def parts() -> str:
    program = "build/release/device-health-controller"
    return f"```text\n{printed('build/release/bench')}\n\n{printed('bench/first_request.py', program)}\n```"


def replaced(page: str, name: str, text: str) -> str:
    """The page with what stands between <!-- NAME --> and <!-- end of NAME --> replaced."""
    page, count = re.subn(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", lambda found: f"{found[1]}{text}\n{found[2]}", page, flags=re.S)
    if count != 1:
        raise SystemExit(f"page.py: {PAGE.name} has no place for {name}")
    return page


def main(arguments: list[str]) -> None:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    names, flags = arguments[:at] or ["bench", "peer"], arguments[at + 1:]
    if not {"bench", "peer"}.issuperset(names):
        raise SystemExit(__doc__)
    for name in names:
        text = parts() if name == "bench" else printed("bench/peer/run", *flags)
        PAGE.write_text(replaced(PAGE.read_text(), name, text))


if __name__ == "__main__":
    main(sys.argv[1:])
