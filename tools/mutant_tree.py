"""A copy of the tree in which mutants are built and tested."""
from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUITES = ("core_tests", "scenario_tests")


def run(tree: Path, *command: str, env: dict[str, str] | None = None, quiet: bool = True) -> bool:
    out = subprocess.DEVNULL if quiet else None
    return subprocess.run(command, cwd=tree, stdout=out, stderr=out, env=env, check=False).returncode == 0


def build(tree: Path, suite: str, quiet: bool = True) -> bool:
    return run(tree, "cmake", "--build", "--preset", "dev", "--target", suite, "--parallel", str(os.cpu_count()), quiet=quiet)


def put(path: Path, content: bytes) -> None:
    """Writes what differs: the rest need not be compiled again."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@contextlib.contextmanager
def copy_of_tree(folder: Path | None = None, mutated: dict[str, str] | None = None) -> Iterator[Path]:
    """Configured, not built, with these files as they are given; in `folder`, which stays there, or in one that does not."""
    mutated = mutated or {}
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        tree = (folder or Path(scratch)) / "tree"
        for name in filter(None, listed.split("\0")):
            source = ROOT / name
            if name in mutated:
                put(tree / name, mutated[name].encode())
            elif source.is_file():
                put(tree / name, source.read_bytes())
                (tree / name).chmod(source.stat().st_mode)
        if not run(tree, "cmake", "--preset", "dev"):
            sys.exit("the copy cannot be configured: run cmake --preset dev here to see why")
        yield tree
