#!/usr/bin/env python3
"""Builds and runs suites, beside each other where they may, says what it is doing, and counts. Nothing is skipped: what cannot run has failed.

usage: test.py [--after-test] SUITE...     suites: test.py --list

Each step's output is in build/results. The last line is "N passed, N failed", summed over all that ran. --after-test: who has just run `test.py test` on the
same files has its counts added here instead of its steps repeated.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from testing import record, steps
from testing.counts import Counts
from testing.schedule import Schedule

ROOT = steps.ROOT
RESULTS = ROOT / "build" / "results"


def main(arguments: list[str]) -> int:
    every = steps.every_step()
    suites = steps.suites(every)
    names = [argument for argument in arguments if argument != "--after-test"]
    if names == ["--list"]:
        print(" ".join(suites))
        return 0
    unknown = [name for name in names if name not in suites]
    if unknown or not names:
        print(f"test.py: {'no suite ' + ', '.join(unknown) if unknown else 'which suite?'}; there are: {' '.join(suites)}", file=sys.stderr)
        return 2
    wanted = {step for name in names for step in suites[name]}
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept, tree = RESULTS / "test.json", record.fingerprint(ROOT)
    before = record.find(kept, tree) if "--after-test" in arguments else None
    if before:
        wanted -= set(suites["test"])
    record.forget(kept)
    schedule = Schedule(steps.wanted(every, wanted), ROOT, RESULTS)
    if before:
        schedule.say(f"make test, just now, on these very files: {before.counts.passed} passed, {before.counts.failed} failed")
    total = schedule.run().plus(before.counts if before else Counts())
    if names == ["test"] and record.fingerprint(ROOT) == tree:
        record.keep(kept, tree, record.Found(total, schedule.failures()))
    schedule.table()
    for line in (before.failures if before else []) + schedule.failures():
        print(line)
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
