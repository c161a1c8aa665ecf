"""How every check of the tree ends: it prints what is wrong, a line each, and says by its exit code whether anything is."""
import pathlib
import sys
from collections.abc import Callable


def report(check: Callable[[pathlib.Path], list[str]]) -> int:
    """Runs the check on the tree named by the first argument, or on this one; 1 if it found something."""
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    bad = check(root)
    for line in bad:
        print(line)
    return 1 if bad else 0
