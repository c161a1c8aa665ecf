"""Which tests failed, and their last words, out of what go test or ctest printed: what a reader needs who sees only the end of a run."""
from __future__ import annotations

import re

WORDS = 3  # messages of a failed test
TESTS = 5  # of a step; the log has them all
WIDTH = 300


def told(output: str) -> list[str]:
    """A line for each failed test and some of its messages, or the last lines when no test is named."""
    lines = go_tests(output) or ctests(output)
    return [line[:WIDTH] for line in lines or output.splitlines()[-2 * WORDS:]]


def go_tests(output: str) -> list[str]:
    """The innermost tests that failed, or were cut short or skipped, with what each said last; with -v every message stands under its test's name."""
    failed: list[str] = re.findall(r"^ *--- (?:FAIL|SKIP): (\S+)", output, re.M)
    failed = [name for name in failed if not any(other.startswith(name + "/") for other in failed)]
    lines: list[str] = re.findall(r"^(?:panic: |fatal error: ).*", output, re.M)[:1]
    said: dict[str, list[str]] = {}
    current = ""
    for line in output.splitlines():
        if begins := re.match(r"=== (?:RUN|NAME|CONT|PAUSE) +(\S+)", line):
            current = begins[1]
        elif re.match(r" +\S+\.go:\d+: (?!---- )", line):  # "----" heads a dump of what surrounds the test
            said.setdefault(current, []).append(line.strip())
    for name in failed[:TESTS]:
        lines += [name, *("  " + message for message in said.get(name, [])[-WORDS:])]
    return lines + ([f"and {len(failed) - TESTS} more"] if len(failed) > TESTS else [])


def ctests(output: str) -> list[str]:
    """What ctest lists at its end, and the first assertions that doctest says did not hold."""
    failed = re.findall(r"^\s+\d+ - (.*\S) +\((?:Failed|Timeout|Not Run|Subprocess aborted|SEGFAULT|.*Exception.*)\)", output, re.M)
    if not failed:
        return []
    errors = re.findall(r"^\S+:\d+: (?:FATAL )?ERROR: .*|^(?:FAIL|ERROR): .*", output, re.M)
    return [*failed[:TESTS], *("  " + error for error in errors[:WORDS]), *([f"and {len(failed) - TESTS} more"] if len(failed) > TESTS else [])]
