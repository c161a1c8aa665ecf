"""A copy of the tree in which mutants are built and tested."""
from __future__ import annotations

import contextlib
import os
import shutil
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


@contextlib.contextmanager
def copy_of_tree() -> Iterator[Path]:
    """Configured, not built."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        tree = Path(scratch) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build", ".git"))
        if not run(tree, "cmake", "--preset", "dev"):
            sys.exit("the copy cannot be configured: run cmake --preset dev here to see why")
        yield tree
