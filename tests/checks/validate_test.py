#!/usr/bin/env python3
"""Plants a `validate` that says nothing of one key, and one that refuses what it should take."""
import copy
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "schema"))
sys.dont_write_bytecode = True

import check_validate


def told_all(document: dict) -> str | None:
    return json.dumps(document["spec"])


def silent_about(*path: str):
    def told(document: dict) -> str | None:
        spec = copy.deepcopy(document["spec"])
        place = spec
        for key in path[:-1]:
            place = place.get(key, {})
        place.pop(path[-1], None)
        return json.dumps(spec)

    return told


def with_defaults(**others: str):
    """A program whose defaults are those of the schema, but for the keys that are named."""
    schema = json.loads((ROOT / check_validate.SCHEMA).read_text())

    def told(document: dict) -> str | None:
        spec = copy.deepcopy(document["spec"])
        for path in list(check_validate.leaves(spec)):
            known = check_validate.property_at(schema, document["kind"], path)
            place = spec
            for key in path[:-1]:
                place = place[key]
            if known is not None and place[path[-1]] == others.get(path[-1], known.get("default", "")):
                del place[path[-1]]
        return json.dumps(spec)

    return told


class Validate(unittest.TestCase):
    def test_a_text_that_tells_every_key_is_fine(self):
        self.assertEqual(check_validate.check(ROOT, told_all), [])

    def test_a_key_of_which_nothing_is_said_is_found(self):
        for path in (("after",), ("evict", "cordonWait"), ("jobRetry", "blackHole", "within"), ("caps", "perDay", "atLeast"), ("paused",)):
            bad = check_validate.check(ROOT, silent_about(*path))
            self.assertEqual([line.split(":")[0] for line in bad], [".".join(path)], bad)

    def test_an_example_that_is_refused_is_said(self):
        self.assertEqual(len(check_validate.check(ROOT, lambda document: None)), 3)  # both documents, and that nothing was looked at

    def test_a_key_whose_other_values_are_all_refused_is_said(self):
        bad = check_validate.check(ROOT, lambda document: told_all(document) if document["spec"].get("after", "60s") == "60s" else None)
        self.assertEqual(len(bad), 1, bad)
        self.assertIn("after: no other value", bad[0])


class Defaults(unittest.TestCase):
    def test_defaults_as_the_schema_says_are_fine(self):
        self.assertEqual(check_validate.check_defaults(ROOT, with_defaults()), [])

    def test_another_default_is_found(self):
        bad = check_validate.check_defaults(ROOT, with_defaults(hold="24h", perMinute=7))
        self.assertEqual({line.split(":")[0] for line in bad}, {"recover.hold", "evictions.perMinute", "taints.perMinute", "webhook.perMinute"}, bad)

    def test_nothing_to_compare_is_said(self):
        self.assertEqual(len(check_validate.check_defaults(ROOT, lambda document: None)), 1)


if __name__ == "__main__":
    unittest.main()
