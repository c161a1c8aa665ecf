#!/usr/bin/env python3
"""Says what random schedules have reached: cells of the incident table, gates with their reasons, reasons.

usage: schedule_coverage.py FOLDER            the sums of all counts in FOLDER, as tables
       schedule_coverage.py FOLDER --fold     likewise, and leave one file of them
       schedule_coverage.py FOLDER KIND...    only what is wrong, of the first 500 schedules of these kinds: the code is 1 then

The tests of schedules write the counts (tests/support/core/coverage.h). What must be reached is every cell, every gate with each
of its reasons in docs/verdicts.md and every reason but those in tests/scenarios/unreached.txt, which must not be.
"""
from __future__ import annotations

import argparse
import pathlib
import re
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
USUAL = (0, 500)


class Cell(NamedTuple):
    table: str  # incident, gate or reason
    row: str  # the phase, the gate, nothing
    column: str  # the event, the reason

    def __str__(self) -> str:
        return " ".join(part for part in self if part)


class Sums:
    def __init__(self) -> None:
        self.cells: dict[Cell, tuple[int, int]] = {}  # how often, in how many schedules
        self.ranges: dict[str, list[tuple[int, int]]] = {}  # of schedules, by kind
        self.gates: list[str] = []  # in their order
        self.mistakes: list[str] = []

    def add(self, file: pathlib.Path) -> None:
        lines = [line.split("\t") for line in file.read_text().splitlines()]
        ranges = [(kind, int(first), int(end)) for word, kind, first, end in (line for line in lines if line[0] == "schedules")]
        for kind, first, end in ranges:
            if any(first < other_end and other < end for other, other_end in self.ranges.get(kind, ())):
                self.mistakes.append(f"{file}: schedules {first} to {end} of {kind} are counted already: left out")
                return
        for kind, first, end in ranges:
            self.ranges[kind] = joined([*self.ranges.get(kind, ()), (first, end)])
        order = [name for word, name in (line for line in lines if line[0] == "order")]
        self.gates = self.gates if order == self.gates else self.gates + [name for name in order if name not in self.gates]
        for table, row, column, times, schedules in (line for line in lines if line[0] not in ("schedules", "order")):
            cell = Cell(table, row, column)
            known = self.cells.get(cell, (0, 0))
            self.cells[cell] = (known[0] + int(times), known[1] + int(schedules))

    def write(self, file: pathlib.Path) -> None:
        lines = [f"schedules\t{kind}\t{first}\t{end}" for kind, ranges in self.ranges.items() for first, end in ranges]
        lines += [f"order\t{gate}" for gate in self.gates]
        lines += ["\t".join((*cell, *map(str, count))) for cell, count in self.cells.items()]
        file.write_text("\n".join(lines) + "\n")


def joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    whole: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if whole and whole[-1][1] == first:
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((first, end))
    return whole


def sums_of(files: list[pathlib.Path]) -> Sums:
    sums = Sums()
    for file in files:
        sums.add(file)
    return sums


def usual(folder: pathlib.Path, kinds: list[str]) -> Sums:
    """Of the schedules that the usual run has of each kind."""
    files = [folder / f"{kind}-{USUAL[0]}-{USUAL[1]}.txt" for kind in kinds]
    return sums_of([file for file in files if file.is_file()])


def reasons_of_gates(page: str) -> dict[str, set[str]]:
    """By gate, as the page names them; a row of `any of the above` has those of the rows before, too."""
    gates: dict[str, set[str]] = {}
    for name, words in re.findall(r"^\| \d+\. ([a-z ]+) \|[^|]*\|([^|]*)\|$", page, re.M):
        gates[name] = set(re.findall(r"`(\w+)`", words.split("beside")[0]))
        if "any of the above" in words:
            gates[name].add("*")
    return gates


def unreached(text: str) -> dict[Cell, str]:
    """Which cells no schedule reaches, and why: `incident PHASE|PHASE EVENT: why`."""
    cells = {}
    for line in text.splitlines():
        found = re.fullmatch(r"(incident|gate|reason) (?:([\w |]+) )?(\w+): (.+)", line)
        if found:
            table, rows, column, why = found.groups()
            cells |= {Cell(table, row, column): why for row in (rows or "").split("|")}
        elif line and not line.startswith("#"):
            raise ValueError(f"tests/scenarios/unreached.txt: not a cell and its reason: {line}")
    return cells


def mistakes(root: pathlib.Path, sums: Sums, kinds: list[str]) -> list[str]:
    """What schedules 0 to 500 of each of these kinds should have reached and have not, or the other way round."""
    bad = [*sums.mistakes]
    bad += [f"the first {USUAL[1]} schedules of {kind} have not been counted" for kind in kinds if sums.ranges.get(kind) != [USUAL]]
    if bad:
        return bad
    known = unreached((root / "tests/scenarios/unreached.txt").read_text())
    told = reasons_of_gates((root / "docs/verdicts.md").read_text())
    wanted = [cell for cell in sums.cells if cell.table != "gate"]
    wanted += [Cell("gate", gate, reason) for gate in sums.gates for reason in sorted(told.get(gate, ())) if reason != "*"]
    for cell in wanted:
        is_reached = sums.cells.get(cell, (0, 0))[0] > 0
        if not is_reached and cell not in known:
            bad.append(f"{cell}: no schedule reaches it: let one, or say in tests/scenarios/unreached.txt why none can")
        if is_reached and cell in known:
            bad.append(f"{cell}: it is reached, and tests/scenarios/unreached.txt says that it cannot be")
    bad += [f"{cell}: tests/scenarios/unreached.txt names what does not exist" for cell in known if cell not in wanted]
    for cell in sums.cells:
        # Of the other pods of a gang it is said with the gate that holds the one.
        if cell.table == "gate" and cell.column != "GangHeld" and not told.get(cell.row, set()) & {cell.column, "*"}:
            bad.append(f"{cell}: docs/verdicts.md does not say that this gate holds a pod for that reason")
    return bad


def tables(sums: Sums, known: dict[Cell, str]) -> str:
    def shown(cell: Cell) -> str:
        times, schedules = sums.cells.get(cell, (0, 0))
        return f"{times} in {schedules}" if times else "-" if cell in known else "NEVER"

    lines = ["Schedules: " + "; ".join(f"{kind} {', '.join(f'{first} to {end}' for first, end in ranges)}" for kind, ranges in sums.ranges.items())]
    lines += ["How often it was reached, and in how many schedules; - : it cannot be (tests/scenarios/unreached.txt).", ""]
    steps = [cell for cell in sums.cells if cell.table == "incident"]
    phases, events = list(dict.fromkeys(cell.row for cell in steps)), list(dict.fromkeys(cell.column for cell in steps))
    rows = [["event / phase", *phases], *([event, *(shown(Cell("incident", phase, event)) for phase in phases)] for event in events)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines += ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]
    lines += ["", "gate, and why it held a pod:"]
    for gate in sums.gates:
        cells = [cell for cell in sums.cells if cell.table == "gate" and cell.row == gate]
        lines.append(f"  {gate}: " + (", ".join(f"{cell.column} {shown(cell)}" for cell in cells) or "none"))
    lines += ["", "reason, of anything:"]
    lines += [f"  {cell.column}: {shown(cell)}" for cell in sums.cells if cell.table == "reason"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1], description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--fold", action="store_true")
    parser.add_argument("kinds", nargs="*")
    wanted = parser.parse_args()
    if wanted.kinds:
        bad = mistakes(ROOT, usual(wanted.folder, wanted.kinds), wanted.kinds)
        print("\n".join(bad))
        return 1 if bad else 0
    sums = sums_of(sorted(wanted.folder.glob("*.txt")))
    for mistake in sums.mistakes:
        print(mistake, file=sys.stderr)
    if wanted.fold:
        parts = list(wanted.folder.glob("*.txt"))
        sums.write(wanted.folder / "all.tmp")
        for part in parts:
            part.unlink()
        (wanted.folder / "all.tmp").rename(wanted.folder / "all.txt")
    print(tables(sums, unreached((ROOT / "tests/scenarios/unreached.txt").read_text())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
