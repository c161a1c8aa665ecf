#!/usr/bin/env python3
"""Holds the JSON Schema to the examples and to the bad files of the parser's tests, and every key to all places where it must stand.

usage: check_schema.py [ROOT]
"""
import json
import pathlib
import re
import sys

import jsonschema
import yaml

from stated import misstated

SCHEMA = "schema/device-health.io_v1alpha1.json"
EXAMPLES = "manifests/examples"
BAD = "tests/fixtures/config/bad"
BEYOND = "# beyond-schema\n"
PARSER = "domain/policy/config*.cc"
EVERY_KEY = ("manifests/examples/all-keys.yaml", "docs/configuration.md")
EVERYWHERE = {"apiVersion", "kind", "metadata", "name", "labels", "annotations"}  # of each Kubernetes object


class Loader(yaml.SafeLoader):
    """YAML with the booleans of version 1.2, as our parser reads it: `off` is a word. No dates."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false|True|False|TRUE|FALSE)$"), list("tTfF"))


def documents(path: pathlib.Path) -> list:
    with path.open(encoding="utf-8") as text:
        return [document for document in yaml.load_all(text, Loader=Loader) if document is not None]


def mistakes(validator, path: pathlib.Path) -> list[str]:
    return [
        f"{'.'.join(str(part) for part in error.absolute_path)}: {error.message}"
        for document in documents(path)
        for error in validator.iter_errors(document)
    ]


def described(schema: dict, path: str = "") -> list[str]:
    """Properties that say nothing about themselves, but for the four of every Kubernetes object and plain maps."""
    missing = []
    for name, value in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        if not {"description", "$ref", "const", "enum"} & set(value) and path and "metadata" not in path and "labelSelector" not in path:
            missing.append(f"{here}: no description")
        missing += described(value, here)
    for name, value in schema.get("$defs", {}).items():
        missing += described(value, f".{name}")
    return missing


def properties(schema) -> set[str]:
    """The name of every property, at any depth."""
    if isinstance(schema, list):
        return set().union(*(properties(item) for item in schema))
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})).union(*(properties(value) for value in schema.values()))


def forgotten(root: pathlib.Path, known: set[str]) -> list[str]:
    """Keys that the parser reads and the schema lacks, and keys that an example or a page lacks."""
    read = set()
    for path in root.glob(PARSER):
        for keys in re.findall(r"kKeys\s*=\s*\{([^}]*)\}", path.read_text()):
            read |= set(re.findall(r'"([^"]+)"', keys))
    bad = [f"{SCHEMA}: no {key}, which the parser reads" for key in sorted(read - known)]
    if not read:
        bad.append(f"{PARSER}: no kKeys found")
    for path in EVERY_KEY:
        words = set(re.findall(r"\w+", (root / path).read_text()))
        bad += [f"{path}: no {key}" for key in sorted(known - EVERYWHERE - words)]
    return bad


def check(root: pathlib.Path) -> list[str]:
    schema = json.loads((root / SCHEMA).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    bad = [f"{SCHEMA}: {line}" for line in described(schema)] + forgotten(root, properties(schema)) + misstated(root, schema)
    examples = sorted((root / EXAMPLES).glob("*.yaml"))
    refused = sorted((root / BAD).glob("*.yaml"))
    if not examples or not refused:
        bad.append("no examples or no bad files")
    for path in examples:
        found = documents(path)
        if not found:
            bad.append(f"{path.name}: no document")
        bad += [f"{path.name}: {line}" for line in mistakes(validator, path)]
    for path in refused:
        if path.read_text(errors="replace").startswith(BEYOND):
            continue
        if not mistakes(validator, path):
            bad.append(f"{path.name}: the schema accepts it; mend the schema, or mark the file with '{BEYOND.strip()}'")
    # A mark that is not needed hides what the schema can do.
    for path in refused:
        if not path.read_text(errors="replace").startswith(BEYOND):
            continue
        try:
            if mistakes(validator, path):
                bad.append(f"{path.name}: the schema refuses it; remove the mark '{BEYOND.strip()}'")
        except yaml.YAMLError:
            pass
    return bad


def main() -> int:
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    bad = check(root)
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
