#!/usr/bin/env python3
"""Every folder says in a README.md of at most 40 lines what lives there and what may not, under a heading of its own.

A formatter for C++ that is let loose on such a file takes its heading for a preprocessor line: that is found here.

usage: check_folders.py [ROOT]
"""
import pathlib
import re
import sys

from lists import FOLDERS, files_on_disk
from report import report

LINES = 40
MANGLED = re.compile(r"^ {20,}\S|^#[^#\s]|^# \S+ - \S+ / ", re.M)
OTHERS = ("bench", "cmake", "docs", "docs/decisions", "docs/runbooks", "image", "manifests", "manifests/components", "manifests/presets", "scripts", "tests", "tools")


def check(root: pathlib.Path) -> list[str]:
    folders = {folder for folder in FOLDERS + OTHERS if (root / folder).is_dir()}
    folders |= {pathlib.PurePosixPath(path).parent.as_posix() for path in files_on_disk(root)}
    folders |= {path.relative_to(root).as_posix() for path in (root / "tests").glob("*") if path.is_dir() and path.name != "__pycache__"}
    bad = []
    for folder in sorted(folders):
        readme = root / folder / "README.md"
        if not readme.is_file():
            bad.append(f"{folder}: no README.md")
        elif not readme.read_text().startswith("# ") or MANGLED.search(readme.read_text()):
            bad.append(f"{folder}/README.md: no heading `# name`, or paths taken apart, as clang-format leaves it: restore it")
        elif folder not in ("docs",) and len(readme.read_text().splitlines()) > LINES:
            bad.append(f"{folder}/README.md: more than {LINES} lines")
    return bad


if __name__ == "__main__":
    sys.exit(report(check))
