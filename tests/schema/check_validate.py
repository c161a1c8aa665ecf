#!/usr/bin/env python3
"""Changes each key of manifests/examples/all-keys.yaml, one at a time, and finds those of which `validate` says nothing: it prints the same text for both values.
Leaves each key out, and finds those whose default in the schema is not the program's.

usage: check_validate.py PROGRAM [ROOT]
"""
import copy
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from check_schema import SCHEMA, documents
from stated import property_at

EXAMPLE = "manifests/examples/all-keys.yaml"
ONLY_CHOICE = {"evict.whenBlocked"}  # has one value


def leaves(value, path: tuple = ()) -> Iterator[tuple]:
    """The path of each value that holds no others."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not inner:
        yield path
    for key, one in inner:
        yield from leaves(one, (*path, key))


def enumerations(schema) -> Iterator[str]:
    """Every word of every enumeration: the schema says which of them may stand where."""
    for one in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from enumerations(one)
    if isinstance(schema, dict):
        yield from (word for word in schema.get("enum", ()) if isinstance(word, str))


def others(value, words: list[str]) -> list:
    """Values of which one should be allowed where this one stands."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, value + 100]
    if value is None:
        return [30]
    return [*words, "11m", "3h", f"{value}x", "NoExecute", "35%", "2031-01-01T00:00:00Z"]


def changed(document: dict, path: tuple, value) -> dict:
    result = copy.deepcopy(document)
    place = result["spec"]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return result


def left_out(document: dict, path: tuple) -> dict:
    result = copy.deepcopy(document)
    place = result["spec"]
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return result


def alone(document: dict, path: tuple) -> dict:
    """Only that key of its document, and what must be there: others may forbid the value."""
    result = {"match": {}} if document["kind"] == "DeviceHealthPolicy" else {}
    place, value = result, document["spec"]
    for key in path[:-1]:
        place, value = place.setdefault(key, {}), value[key]
    place[path[-1]] = value[path[-1]]
    return {**document, "spec": result}


def check(root: pathlib.Path, validate: Callable[[dict], str | None]) -> list[str]:
    """`validate` gives the text that says what a document means, or None if the document is refused."""
    schema = json.loads((root / SCHEMA).read_text())
    allows = jsonschema.Draft202012Validator(schema).is_valid
    words = sorted(set(enumerations(schema)))
    bad, seen = [], 0
    for document in documents(root / EXAMPLE):
        whole = validate(document)
        if whole is None:
            bad.append(f"{EXAMPLE}: validate refuses its {document['kind']}")
            continue
        for path in leaves(document["spec"]):
            name = ".".join(str(part) for part in path)
            if name in ONLY_CHOICE:
                continue
            value = document["spec"]
            for key in path:
                value = value[key]
            texts = None
            for other in others(value, words):
                if other == value or texts is not None:
                    continue
                for base in (document, *([alone(document, path)] if not any(isinstance(part, int) for part in path) else [])):
                    to = changed(base, path, other)
                    if texts is None and allows(to) and (text := validate(to)) is not None:
                        texts = (whole if base is document else validate(base), text)
            if texts is None:
                bad.append(f"{name}: no other value than {value!r} is found that validate takes; teach others() one")
            elif texts[0] == texts[1]:
                bad.append(f"{name}: validate prints the same for {value!r} and for another value: domain/policy/config_text.cc does not tell it")
            seen += 1
    if seen < 50:
        bad.append(f"{EXAMPLE}: only {seen} keys")
    return bad


def check_defaults(root: pathlib.Path, validate: Callable[[dict], str | None]) -> list[str]:
    schema = json.loads((root / SCHEMA).read_text())
    bad, seen = [], 0
    for document in documents(root / EXAMPLE):
        for path in leaves(document["spec"]):
            known = property_at(schema, document["kind"], path)
            if known is None or known.get("default", "") == "":
                continue
            without, with_it = validate(left_out(document, path)), validate(changed(document, path, known["default"]))
            if without is None and with_it is None:
                continue  # something beside it needs another value
            seen += 1
            if without != with_it:
                bad.append(f"{'.'.join(path)}: left out it is not {known['default']!r}, which is its default in the schema")
    if seen < 60:
        bad.append(f"{EXAMPLE}: only {seen} defaults compared")
    return bad


def main() -> int:
    program = sys.argv[1]
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parents[2]).resolve()

    def validate(document: dict) -> str | None:
        # JSON is YAML.
        ended = subprocess.run([program, "validate", "-"], input=json.dumps(document), capture_output=True, text=True, check=False)
        return ended.stdout if ended.returncode == 0 else None

    bad = check(root, validate) + check_defaults(root, validate)
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
