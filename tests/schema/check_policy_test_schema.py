#!/usr/bin/env python3
"""Holds the JSON Schema of PolicyTest to the shipped cases, to the parser's keys, to the reasons of verdicts, and to mistakes that the program refuses.

usage: check_policy_test_schema.py PROGRAM [ROOT]
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

from check_schema import described, documents, properties

SCHEMA = "schema/device-health.io_policytest_v1alpha1.json"
CASES = "manifests/examples/policy-tests"
PARSER = "src/cli/policy_case.cc"
REASONS = "domain/contract/reasons.cc"
OF_SUBJECTS = {"pod", "job", "node"}  # which the parser has in a table of another name
OF_METADATA = {"name", "labels", "annotations"}

CASE = {
    "apiVersion": "device-health.io/v1alpha1",
    "kind": "PolicyTest",
    "metadata": {"name": "a"},
    "spec": {
        "policies": ["a.yaml"],
        "nodes": [{"name": "node-a", "drivers": {"gpu.nvidia.com": 4}}],
        "workloads": [{"job": "train", "driver": "gpu.nvidia.com"}],
        "budgets": [{"name": "one", "maxUnavailable": 1}],
        "steps": [{"at": "1m", "device": "of train-*", "health": "Unhealthy", "message": "Xid 79"}, {"node": "node-a", "cordoned": True}],
        "expect": [{"pod": "train-*", "is": "Evicted", "by": "2m"}, {"device": "node-a/gpu-0", "never": "Tainted"}],
    },
}

# What is put where, and None takes it away: each alone makes the case one that the program refuses.
MISTAKES = [
    (("kind",), "PolicyTests"),
    (("spec", "policies"), None),
    (("spec", "expect"), None),
    (("spec", "mode"), "dry-run"),
    (("spec", "for"), "5 minutes"),
    (("spec", "step"), []),
    (("spec", "nodes", 0, "name"), "Node A"),
    (("spec", "nodes", 0, "drivers", "gpu.nvidia.com"), 0),
    (("spec", "workloads", 0, "pod"), "one-too-many"),
    (("spec", "workloads", 0, "resource"), "nvidia.com/gpu"),
    (("spec", "workloads", 0, "driver"), None),
    (("spec", "workloads", 0, "replicas"), 1001),
    (("spec", "budgets", 0, "minAvailable"), 1),
    (("spec", "budgets", 0, "maxUnavailable"), None),
    (("spec", "steps", 0, "vanishes"), True),
    (("spec", "steps", 0, "health"), None),
    (("spec", "steps", 0, "device"), "gpu-0"),
    (("spec", "steps", 1, "node"), None),
    (("spec", "steps", 1, "message"), "of nothing"),
    (("spec", "expect", 0, "is"), "Evictted"),
    (("spec", "expect", 0, "at"), "1m"),
    (("spec", "expect", 0, "by"), None),
    (("spec", "expect", 0, "never"), "Tainted"),
    (("spec", "expect", 0, "node"), "node-a"),
    (("spec", "expect", 1, "device"), None),
    (("spec", "expect", 1, "by"), "2m"),
]


def spoilt(path: tuple, value) -> dict:
    case = copy.deepcopy(CASE)
    at = case
    for part in path[:-1]:
        at = at[part]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return case


def refused(program: str, folder: pathlib.Path, case: dict) -> bool:
    """Whether `test` names a mistake of the case itself, with line and column, and plays nothing."""
    file = folder / "case.yaml"
    file.write_text(yaml.safe_dump(case, sort_keys=False))
    ended = subprocess.run([program, "test", file], capture_output=True, text=True, check=False)
    return ended.returncode == 1 and re.search(r"case\.yaml \(the file\)\n\s+\S*case\.yaml:\d+:\d+: ", ended.stdout) is not None


def check(program: str, root: pathlib.Path) -> list[str]:
    schema = json.loads((root / SCHEMA).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    bad = [f"{SCHEMA}: {line}" for line in described(schema)]
    cases = [(path.name, document) for path in sorted((root / CASES).glob("*.yaml")) for document in documents(path)]
    if not cases:
        bad.append(f"{CASES}: no case")
    for name, case in [*cases, ("the case of this file", CASE)]:
        bad += [f"{name}: {'.'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(case)]
    bad += [f"the schema accepts {value!r} at {'.'.join(map(str, path))}" for path, value in MISTAKES if validator.is_valid(spoilt(path, value))]
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "a.yaml").write_text((root / "manifests/examples/training-gpus.yaml").read_text())
        if refused(program, place, CASE):
            bad.append("the program refuses the case of this file")
        bad += [
            f"the program accepts {value!r} at {'.'.join(map(str, path))}"
            for path, value in MISTAKES
            if not refused(program, place, spoilt(path, value))
        ]
    read = set()
    for keys in re.findall(r"kKeys\s*=\s*\{([^}]*)\}", (root / PARSER).read_text()):
        read |= set(re.findall(r'"([^"]+)"', keys))
    known = properties(schema)
    bad += [f"{SCHEMA}: no {key}, which the parser reads" for key in sorted(read - known)]
    bad += [f"{SCHEMA}: {key}, which the parser does not read" for key in sorted(known - read - OF_SUBJECTS - OF_METADATA)]
    reasons = set(re.findall(r'(?:quiet|normal|warning)\(\s*Reason::\w+,\s*"(\w+)"', (root / REASONS).read_text()))
    told = set(schema["$defs"]["spec"]["properties"]["expect"]["items"]["properties"]["is"]["enum"])
    if not reasons or reasons != told:
        bad.append(f"{SCHEMA}: not the reasons of {REASONS}: {sorted(reasons ^ told)}")
    return bad


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: check_policy_test_schema.py PROGRAM [ROOT]", file=sys.stderr)
        return 2
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parents[2]).resolve()
    bad = check(str(pathlib.Path(sys.argv[1]).resolve()), root)
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
