#!/usr/bin/env python3
"""Makes mutants of the code that plans (a gate skipped, a condition negated, < for <=, a count left out, ...), and shows that a test rejects each.

usage: tools/plan_mutants.py [--list] [--count N] [--folder FOLDER] [NUMBER...]     N of all, evenly spread; all that are named

All are compiled at once in a copy of the tree, each behind a switch that the environment turns (DHC_MUTANT), and are then run one after the other: core
tests, scenarios, and whether the model accepts what the scenarios recorded. The code is 1 when a mutant survives.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mutant_tree import ROOT, SUITES, build, copy_of_tree

FOLDERS = ("reconcilers/eviction", "reconcilers/taint", "reconcilers/job_retry", "reconcilers/incident_state", "domain/limits", "domain/incidents")
ALSO = ("reconcilers/shared/job_credit.cc", "reconcilers/shared/hold_reasons.cc")
# What makes requests, reads and writes texts or speaks, and plans nothing.
NO_PLAN = re.compile(r"/(?:action|build|execute|exchange|speech|state_\w+|\w+_state|earlier_record)\.cc$")
GATES = "reconcilers/eviction/gates.cc"
GATE_OPERATORS = ("a gate left out", "gates swapped")
COUNT = 28
SECONDS = 600  # of processor time of a part of a suite; a mutant that does not come to an end is noticed

# Mutants that change nothing that anybody could see, by file, operator and line, and why.
EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("domain/limits/brake.cc", "precondition dropped", "if (is_same()) return;"): "it only saves work: the device is taken out of its groups and put into the same ones",
}


@dataclasses.dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    operator: str
    text: str  # the line, or the gate
    begin: int
    end: int
    put: str  # {n} is its number

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def why_equivalent(self) -> str | None:
        return EQUIVALENT.get((self.file, self.operator, self.text))


def files() -> list[str]:
    found = [path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.cc"))]
    return [name for name in found if not NO_PLAN.search(name)] + list(ALSO)


def end_of(text: str, opened: int) -> int:
    """Where the parenthesis that is opened here is closed."""
    depth = 0
    for place in range(opened, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError("no end")


OTHER = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " && ": " || ", " || ": " && "}


def of_condition(condition: str) -> Iterator[tuple[str, str]]:
    """Operators, and what they make of it."""
    head, _, last = condition.rpartition("; ")
    declared = re.fullmatch(r"(?:const )?auto\*? ?(\w+) = .*", last, re.S)
    if declared:
        yield "precondition dropped", f"{condition}; !is_mutant({{n}}) && {declared[1]}"
        return
    head = head and head + "; "
    yield "precondition dropped", f"{head}!is_mutant({{n}}) && ({last})"
    yield "condition negated", f"{head}is_mutant({{n}}) ? !({last}) : static_cast<bool>({last})"
    for was, becomes in OTHER.items():
        if was in last and "[" not in last:
            yield f"{becomes.strip()} for {was.strip()}", (
                f"{head}is_mutant({{n}}) ? ({last.replace(was, becomes, 1)}) : static_cast<bool>({last})")


STATEMENTS = (
    ("a count left out", re.compile(r"^ +((?:\+\+|--)[\w.\->\[\]()*]+;|[\w.\->\[\]()]+ [+-]= [^;{}\n]+;)$", re.M)),
    ("a step left out", re.compile(r"^ +([a-z_]\w*(?:(?:\.|->)\w+)*\([^;{}\n]*\);)$", re.M)),
)
IF = re.compile(r"^ *(?:\} else )?if \(", re.M)
RETURN = re.compile(r"^ +return ([^;{}\n\[]* (?:<|<=|>|>=|&&|\|\|) [^;{}\n\[]*);$", re.M)


def mutants_of(name: str) -> Iterator[Mutant]:
    text = (ROOT / name).read_text()

    def made(operator: str, begin: int, end: int, put: str) -> Mutant:
        line = text.count("\n", 0, begin) + 1
        return Mutant(name, line, operator, " ".join(text[text.rfind("\n", 0, begin) + 1:text.find("\n", end)].split()), begin, end, put)

    for found in IF.finditer(text):
        begin = found.end()
        end = end_of(text, begin - 1)
        condition = text[begin:end]
        if "constexpr" in text[found.start():begin] or "{" in condition:
            continue
        for operator, put in of_condition(condition):
            yield made(operator, begin, end, put)
    for found in RETURN.finditer(text):
        for was, becomes in OTHER.items():
            if was in found[1] and "<<" not in found[1]:
                yield made(f"{becomes.strip()} for {was.strip()}", found.start(1), found.end(1),
                           f"is_mutant({{n}}) ? ({found[1].replace(was, becomes, 1)}) : ({found[1]})")
    for operator, pattern in STATEMENTS:
        for found in pattern.finditer(text):
            is_whole = found[1].count("(") == found[1].count(")") and re.search(r"[;{}]\s*(?://.*\s*)*$", text[:found.start()])
            if is_whole and not re.match(r"(?:return|static_assert|assert|throw)\b", found[1]):
                yield made(operator, found.start(1), found.end(1), f"if (!is_mutant({{n}})) {found[1]}")


def gates() -> Iterator[Mutant]:
    """One for each gate that is left out, and one for each that comes after the next."""
    text = (ROOT / GATES).read_text()
    names = re.findall(r'^      \{\{"([a-z ]+)",', text, re.M)
    loop = "for (const auto& gate : in_order()) {\n"
    at = text.index(loop)
    line = text.count("\n", 0, at) + 1
    for place, name in enumerate(names):
        yield Mutant(GATES, line, "a gate left out", name, at, at + len(loop), f"if (&gate - in_order().data() == {place} && is_mutant({{n}})) continue;\n")
    for place, (name, later) in enumerate(zip(names, names[1:])):
        yield Mutant(GATES, line, "gates swapped", f"{later} before {name}", at, at + len(loop), f"if (is_mutant({{n}})) moved = {place};\n")


def all_mutants() -> list[Mutant]:
    found = [*gates()]
    for name in files():
        found += sorted(mutants_of(name), key=lambda one: (one.line, one.operator, one.begin))
    return found


def sample(every: dict[int, Mutant], count: int) -> list[int]:
    """Evenly spread over all that are not known to change nothing; a quarter of them of whole gates."""
    able = [number for number, mutant in every.items() if mutant.why_equivalent is None]
    of_gates = [number for number in able if every[number].operator in GATE_OPERATORS]
    others = [number for number in able if every[number].operator not in GATE_OPERATORS]
    spread = [(group, min(share, len(group))) for group, share in ((of_gates, count // 4), (others, count - count // 4))]
    return [group[place * len(group) // share] for group, share in spread for place in range(share)]


def with_switches(name: str, mutants: list[tuple[int, Mutant]]) -> str:
    """The file with all of its mutants; of those of one place each is put into what the one before it left, by parts."""
    text = (ROOT / name).read_text()
    places: dict[tuple[int, int], list[tuple[int, Mutant]]] = {}
    for number, mutant in mutants:
        places.setdefault((mutant.begin, mutant.end), []).append((number, mutant))
    for (begin, end), those in sorted(places.items(), reverse=True):
        original = text[begin:end]
        if those[0][1].operator in GATE_OPERATORS:
            body = "".join(mutant.put.replace("{n}", str(number)) for number, mutant in those if mutant.operator == "a gate left out")
            moves = "".join(mutant.put.replace("{n}", str(number)) for number, mutant in those if mutant.operator == "gates swapped")
            text = (text[:begin] + "std::ptrdiff_t moved = -1;\n" + moves + "std::ptrdiff_t turn = -1;\nfor ([[maybe_unused]] const auto& nth : in_order()) {\n++turn;\n"
                    "const auto& gate = in_order()[static_cast<std::size_t>(moved < 0 ? turn : turn == moved ? turn + 1 : turn == moved + 1 ? turn - 1 : turn)];\n"
                    + body + text[end:])
            continue
        text = text[:begin] + combined(original, those) + text[end:]
    return HEAD + text


def combined(original: str, those: list[tuple[int, Mutant]]) -> str:
    """A condition in which any of these mutants can be chosen."""
    if len(those) == 1:
        return those[0][1].put.replace("{n}", str(those[0][0]))
    head, _, last = original.rpartition("; ")
    head = head and head + "; "
    whole = f"static_cast<bool>({last})"
    for number, mutant in those:
        put = mutant.put.replace("{n}", str(number)).removeprefix(head)
        other = re.match(rf"is_mutant\({number}\) \? (.*) : (?:static_cast<bool>)?\(", put, re.S)
        chosen = "false" if mutant.operator == "precondition dropped" else other[1]
        whole = f"is_mutant({number}) ? static_cast<bool>({chosen}) : {whole}"
    return head + whole


HEAD = "".join(f'#pragma GCC diagnostic ignored "-W{one}"\n' for one in ("parentheses", "unused-parameter", "unused-variable", "dangling-else")) + """
namespace dhc {
bool is_mutant(int number);
}
"""
SWITCH = """
#include <cstdlib>
namespace dhc {
bool is_mutant(int number);
bool is_mutant(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("DHC_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return number == chosen;
}
}  // namespace dhc
"""


def first_failure(output: str) -> str:
    found = re.search(r"^TEST CASE:\s+(.*?)\s*$", output, re.M)
    return found[1] if found else "it crashes"


def stages_of(mutant: Mutant) -> list[tuple[str, ...]]:
    """The tests of its own folder first, and then those of the whole controller: most mutants end there."""
    own, whole = f"*/{Path(mutant.file).parent.name}/*", "*/tests/controller/*"
    return [("core_tests", f"--source-file={own}"), ("core_tests", f"--source-file={whole}", f"--source-file-exclude={own}"), ("scenario_tests",),
            ("core_tests", f"--source-file-exclude={own},{whole}")]


def rejected_by(tree: Path, number: int, mutant: Mutant) -> str | None:
    """The first test that rejects it; none: it survives."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as recordings:
        env = dict(os.environ, DHC_MUTANT=str(number), DHC_RECORDINGS=recordings, DHC_COVERAGE=recordings,
                   DHC_SCHEDULES=os.environ.get("DHC_SCHEDULES", "20"))
        for suite, *arguments in stages_of(mutant):
            ended = subprocess.run(["prlimit", f"--cpu={SECONDS}", f"build/dev/{suite}", "--abort-after=1", "--no-version", *arguments], cwd=tree, env=env,
                                   capture_output=True, text=True, errors="replace", check=False)
            if ended.returncode == -signal.SIGXCPU or ended.returncode == -signal.SIGKILL:
                return f"{suite}: it does not come to an end"
            if ended.returncode != 0:
                return f"{suite}: {first_failure(ended.stdout + ended.stderr)}"
        ended = subprocess.run([str(ROOT / "tests/model/conform"), recordings], env=env, capture_output=True, text=True, check=False)
        return None if ended.returncode == 0 else "model: " + (ended.stdout.splitlines() or ["?"])[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="only say which mutants there are")
    parser.add_argument("--count", type=int, default=COUNT, help=f"how many of all, evenly spread ({COUNT})")
    parser.add_argument("--folder", type=Path, help="where to build, and what to leave there: a second run compiles less")
    parser.add_argument("numbers", nargs="*", type=int, help="only these")
    wanted = parser.parse_args()
    every = dict(enumerate(all_mutants(), 1))
    chosen = wanted.numbers or ([] if wanted.list else sample(every, wanted.count))
    if wanted.list:
        for number, mutant in every.items():
            if not chosen or number in chosen:
                print(f"{number:4} {mutant.place}: {mutant.operator}: {mutant.text}" + (f" (equivalent: {mutant.why_equivalent})" if mutant.why_equivalent else ""))
        return 0
    began = time.monotonic()
    mutated = {"base/error.cc": (ROOT / "base/error.cc").read_text() + SWITCH}
    for name in files():
        own = [(number, every[number]) for number in chosen if every[number].file == name]
        if own:
            mutated[name] = with_switches(name, own)
    with copy_of_tree(wanted.folder, mutated) as tree:
        for suite in SUITES:
            if not build(tree, suite, quiet=False):
                sys.exit("plan_mutants: a mutant does not compile")
        print(f"built in {time.monotonic() - began:.0f} s", flush=True)
        survivors = 0
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            running = {pool.submit(rejected_by, tree, number, every[number]): number for number in chosen}
            for ended in concurrent.futures.as_completed(running):
                number, killer = running[ended], ended.result()
                survivors += killer is None
                mutant = every[number]
                print(f"{number:4} {mutant.place}: {mutant.operator}: {mutant.text} -> {killer or 'SURVIVES'}", flush=True)
    print(f"in {time.monotonic() - began:.0f} s, of {len(every)} mutants")
    print(f"{len(chosen) - survivors} passed, {survivors} failed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
