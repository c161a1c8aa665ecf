#!/usr/bin/env python3
"""Plants comments and rows that say something else than the schema."""
import copy
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "schema"))
sys.dont_write_bytecode = True

import stated

SCHEMA = json.loads((ROOT / "schema" / "device-health.io_v1alpha1.json").read_text())


def planted(path: str, old: str, new: str) -> list[str]:
    """What is found where this stands in one of the two files."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in (stated.EXAMPLE, stated.PAGE):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        text = (root / path).read_text()
        assert text.count(old) == 1, (old, text.count(old))
        (root / path).write_text(text.replace(old, new))
        return stated.misstated(root, copy.deepcopy(SCHEMA))


class Stated(unittest.TestCase):
    def test_what_is_shipped_says_what_the_schema_says(self):
        self.assertEqual(stated.misstated(ROOT, SCHEMA), [])

    def test_a_comment_with_another_default_limit_or_word_is_found(self):
        for old, new, key in (
            ("# 1s to 168h (72h):", "# 1s to 168h (24h):", "recover.hold"),
            ("# 1 to 1000, fractions too (2):", "# 1 to 100, fractions too (2):", "recover.quarantineAbove"),
            ("# Never | NoSchedule | Staged (NoSchedule):", "# Never | NoSchedule (NoSchedule):", "taint.device"),
            ("# 0, 3 to 100 (3):", "# 3 to 100 (3):", "caps.suspectAfter"),
        ):
            bad = planted(stated.EXAMPLE, old, new)
            self.assertEqual(len(bad), 1, bad)
            self.assertIn(f": {key}: ", bad[0])

    def test_a_comment_of_a_map_speaks_for_its_keys_only_with_each(self):
        self.assertEqual(len(planted(stated.EXAMPLE, "# each number 1 to 10000", "# numbers")), 4)

    def test_a_row_with_another_default_or_limit_is_found(self):
        for old, new in (("| `hold` | `72h` |", "| `hold` | `24h` |"), ("| `spec.brake.trialRuns` | `5m` | 1s to 720h", "| `spec.brake.trialRuns` | `5m` | 1s to 72h")):
            bad = planted(stated.PAGE, old, new)
            self.assertEqual(len(bad), 1, bad)

    def test_a_row_of_a_key_that_nobody_has_is_found(self):
        self.assertEqual(len(planted(stated.PAGE, "| `spec.brake.trialRuns` |", "| `spec.brake.trialRun` |")), 1)


if __name__ == "__main__":
    unittest.main()
