#!/usr/bin/env python3
"""Prints what a fault campaign has told and found as a table in Markdown, or writes it into a page between its marks.

usage: table.py FOLDER [PAGE]
"""
import json
import pathlib
import re
import sys

WORDS = {
    "writes": "a crash or a lost connection before and after each write",
    "bytes": "a crash after 1 of every 5 bytes of each answer",
    "codes": "nine codes for six requests with five values of Retry-After",
    "streams": "a watch of each kind cut after each byte",
    "machine": "a server or a machine that is not well",
}
MARKS = ("<!-- campaign -->\n", "<!-- /campaign -->\n")


def results(folder: pathlib.Path) -> list[dict]:
    """The last result of each fault: who was told twice counts once."""
    last = {}
    for line in (folder / "results.jsonl").read_text().splitlines():
        one = json.loads(line)
        last[one["Part"], one["Place"], one["Fault"]] = one
    return list(last.values())


def table(found: list[dict]) -> str:
    lines = ["| faults | there are | told | not reached | ended otherwise | longest from the fault to the end |", "|---|---|---|---|---|---|"]
    for part, words in WORDS.items():
        of_part = [one for one in found if one["Part"] == part]
        if not of_part:
            continue
        told = [one for one in of_part if one["Reached"] or not one["Same"]]
        # A part's whole is what its first story asked; a later one may know of more.
        whole = max(len(of_part), *(one["Of"] for one in of_part))
        seconds = max((one["Seconds"] for one in told), default=0)
        longest = f"{seconds:.0f} s" if part != "machine" else f"{seconds:.0f} s for the whole story"
        lines.append(f"| {words} | {whole:,} | {len(told):,} | {len(of_part) - len(told)} | {sum(not one['Same'] for one in of_part)} | {longest} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    found = results(pathlib.Path(arguments[0]))
    text = table(found)
    for one in found:
        if not one["Same"]:
            print(f"ended otherwise: {one['Part']} {one['Place']}: {one['Fault']}", file=sys.stderr)
    if len(arguments) == 1:
        print(text, end="")
        return 0
    page = pathlib.Path(arguments[1])
    changed, count = re.subn(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), lambda _: MARKS[0] + "\n" + text + "\n" + MARKS[1], page.read_text(), flags=re.S)
    if count != 1:
        print(f"{page} has no {MARKS[0].strip()} ... {MARKS[1].strip()}", file=sys.stderr)
        return 1
    page.write_text(changed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
