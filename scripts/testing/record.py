"""What `make test` found, for a `make verify` that follows it.

Not a cache: `make verify` alone runs everything, however often it has passed. Only who has just run `make test` himself, and says so (--after-test, as .ci/run
does), has its counts added instead of its steps repeated, its failures included; and only if not a byte of the files has changed since.
"""
from __future__ import annotations

import hashlib
import json
import pathlib
import subprocess
from typing import NamedTuple

from .counts import Counts


class Found(NamedTuple):
    counts: Counts
    failures: list[str]  # Schedule.failures()


def fingerprint(root: pathlib.Path) -> str:
    """Of the content of every file of the project, committed or not. Empty where git cannot tell: such a tree is never the same as another."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    whole = hashlib.sha256()
    for name in sorted(filter(None, listed.split(b"\0"))):
        path = root / name.decode()
        mode = "gone" if not path.is_file() else f"{path.stat().st_mode & 0o111}"
        whole.update(name + b"\0" + mode.encode() + b"\0" + (hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""))
    return whole.hexdigest()


def forget(file: pathlib.Path) -> None:
    file.unlink(missing_ok=True)


def keep(file: pathlib.Path, tree: str, found: Found) -> None:
    file.write_text(json.dumps({"tree": tree, "passed": found.counts.passed, "failed": found.counts.failed, "failures": found.failures}) + "\n")


def find(file: pathlib.Path, tree: str) -> Found | None:
    """None if there was no such run to its end, or the files were others."""
    try:
        found = json.loads(file.read_text())
        counts, failures = Counts(int(found["passed"]), int(found["failed"])), [str(line) for line in found["failures"]]
        return Found(counts, failures) if tree and found["tree"] == tree else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
