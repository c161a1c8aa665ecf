#!/usr/bin/env python3
"""Every folder says in a README.md of at most 40 lines what lives there and what may not, and no page was rewritten by clang-format.

A formatter for C++ that is let loose on Markdown takes a heading for a preprocessor line and joins paths, and the page still looks like text.

usage: check_folders.py [ROOT]
"""
import pathlib
import re
import sys

from lists import FOLDERS, files_on_disk
from report import report

LINES = 40
MANGLED = re.compile(r"^ {20,}\S|^#[^#\s]|^# \S+ - \S+ / |^# .* : ", re.M)
QUOTED = re.compile(r"^```.*?^```", re.M | re.S)
OTHERS = ("bench", "cmake", "conformance", "docs", "docs/decisions", "docs/runbooks", "image", "manifests", "manifests/components", "manifests/presets", "schema", "scripts", "tests", "tools")


def pages_of(root: pathlib.Path) -> list[pathlib.Path]:
    """Every page of ours: those in the root, and all under the folders that the repository has."""
    tops = {folder.split("/")[0] for folder in FOLDERS + OTHERS}
    return sorted(root.glob("*.md")) + sorted(page for top in tops for page in (root / top).rglob("*.md"))


def is_mangled(text: str) -> bool:
    return not text.startswith("# ") or bool(MANGLED.search(QUOTED.sub("", text)))


def check(root: pathlib.Path) -> list[str]:
    folders = {folder for folder in FOLDERS + OTHERS if (root / folder).is_dir()}
    folders |= {pathlib.PurePosixPath(path).parent.as_posix() for path in files_on_disk(root)}
    folders |= {path.relative_to(root).as_posix() for path in (root / "tests").glob("*") if path.is_dir() and path.name != "__pycache__"}
    bad = [f"{folder}: no README.md" for folder in sorted(folders) if not (root / folder / "README.md").is_file()]
    for page in pages_of(root):
        name, text = page.relative_to(root).as_posix(), page.read_text()
        if is_mangled(text):
            bad.append(f"{name}: no heading `# name`, or paths taken apart, as clang-format leaves it: restore it")
        elif page.name == "README.md" and name not in ("README.md", "docs/README.md") and len(text.splitlines()) > LINES:
            bad.append(f"{name}: more than {LINES} lines")
    return bad


if __name__ == "__main__":
    sys.exit(report(check))
