#!/usr/bin/env python3
"""Drops the marks of what a change touches, one after the other, and shows that a test notices each.

usage: tools/mark_mutants.py [--list] [NUMBER...]     all without a number: some minutes each

Each mutant is built and tested in a copy of the tree; every plan is compared with one from nothing (DHC_EVERY_PLAN). The
code is 1 when a mutant survives.
"""

import argparse
import os
import re
import sys

from mutant_tree import ROOT, SUITES, build, copy_of_tree, run

FILES = [
    "domain/cluster/world.cc",
    "domain/cluster/world_jobs.cc",
    "domain/cluster/world_pools.cc",
    "domain/cluster/world_refresh.cc",
    "domain/cluster/world_reporters.cc",
    "domain/cluster/world_taints.cc",
    "domain/limits/request_tracker.cc",
    "domain/incidents/incident_store.cc",
    "domain/incidents/incident_endings.cc",
    "reconcilers/job_retry/action.cc",
    "reconcilers/owners/action.cc",
    "reconcilers/taint/action.cc",
    "src/app/turn/judging.cc",
    "src/app/turn/messages.cc",
    "src/app/turn/planning.cc",
    "src/app/turn/requests.cc",
]
MARK = re.compile(r"\btouched(?:_|_pods_)?\.(?:device|pod|node|owner|owners_in|pool|everything|insert)\([^;]*\);")


def marks():
    for name in FILES:
        text = (ROOT / name).read_text()
        for found in MARK.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield name, found, line


def is_killed(tree):
    """By which suite; none: it survives."""
    env = dict(os.environ, DHC_EVERY_PLAN="1", DHC_SCHEDULES=os.environ.get("DHC_SCHEDULES", "20"))
    for suite in SUITES:
        if not build(tree, suite):
            return "the compiler"
        if not run(tree, f"build/dev/{suite}", "--abort-after=1", env=env):
            return suite
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="only say which marks there are")
    parser.add_argument("numbers", nargs="*", type=int, help="only these")
    wanted = parser.parse_args()
    chosen = [(i, mark) for i, mark in enumerate(marks(), 1) if not wanted.numbers or i in wanted.numbers]
    if wanted.list:
        for i, (name, found, line) in chosen:
            print(f"{i:3} {name}:{line}: {' '.join(found.group().split())}")
        return 0
    survivors = 0
    with copy_of_tree() as tree:
        for i, (name, found, line) in chosen:
            text = (ROOT / name).read_text()
            whose = found.group().split(".")[0]
            (tree / name).write_text(text[: found.start()] + f"(void){whose};" + text[found.end() :])
            killer = is_killed(tree)
            (tree / name).write_text(text)
            survivors += killer is None
            print(f"{i:3} {name}:{line}: {' '.join(found.group().split())} -> {killer or 'SURVIVES'}", flush=True)
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
