"""How many tests passed and failed. No test at all is a failure, and so is a skipped one."""
from __future__ import annotations

import pathlib
import re
import xml.etree.ElementTree as xml
from typing import NamedTuple


class Counts(NamedTuple):
    passed: int = 0
    failed: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed)


def printed(output: str) -> Counts:
    """What a program counted itself: its last "N passed, N failed", or the verdicts of go test."""
    found = re.findall(r"^(\d+) passed, (\d+) failed\b", output, re.M)
    if found:
        return Counts(int(found[-1][0]), int(found[-1][1]))
    verdicts = re.findall(r"^--- (PASS|FAIL|SKIP)", output, re.M)
    return Counts(verdicts.count("PASS"), len(verdicts) - verdicts.count("PASS"))


def doctest(output: str) -> Counts:
    """The summary of one doctest executable."""
    verdict = re.search(r"test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed", output)
    return Counts(int(verdict[2]), int(verdict[3])) if verdict else Counts()


def junit(report: pathlib.Path) -> Counts:
    """The report of ctest --output-junit."""
    suite = xml.parse(report).getroot()
    total = int(suite.get("tests", 0))
    failed = sum(int(suite.get(kind, 0)) for kind in ("failures", "skipped", "disabled"))
    return Counts(total - failed, failed)
