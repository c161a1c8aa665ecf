"""schedule_coverage.py goes red on what schedules do not reach, and on an excuse for what they do."""
import unittest

from planted import PlantedTree

import schedule_coverage

PAGE = """| gate | a pod passes when | otherwise |
|---|---|---|
| 1. window | Time has passed. | `WaitingForWindow`; beside another verdict `NoPolicy` |
| 2. holders | The others pass. | any of the above, `GangHeld` |
"""


class Coverage(PlantedTree):
    def setUp(self):
        super().setUp()
        self.write("docs/verdicts.md", PAGE)
        self.write("tests/scenarios/unreached.txt", "# none\n")

    def count(self, cells, first=0, end=500, kind="faults"):
        lines = [f"schedules\t{kind}\t{first}\t{end}", "order\twindow", *("\t".join(cell) for cell in cells)]
        self.write(f"counts/{kind}-{first}-{end}.txt", "\n".join(lines) + "\n")

    def check(self, *kinds):
        kinds = list(kinds or ["faults"])
        return schedule_coverage.mistakes(self.root, schedule_coverage.usual(self.root / "counts", kinds), kinds)

    def reached(self, times="3"):
        return [("incident", "Open", "Began", times, "2"), ("gate", "window", "WaitingForWindow", "5", "1")]

    def test_what_is_reached_is_green(self):
        self.count(self.reached())
        self.assertEqual(self.check(), [])

    def test_a_cell_that_no_schedule_reaches_is_found(self):
        self.count(self.reached("0"))
        self.assert_one(self.check(), "incident Open Began", "no schedule reaches it")

    def test_a_reason_of_a_gate_that_no_schedule_reaches_is_found(self):
        self.count(self.reached()[:1])
        self.assert_one(self.check(), "gate window WaitingForWindow", "no schedule reaches it")

    def test_an_excuse_for_what_is_reached_is_found(self):
        self.write("tests/scenarios/unreached.txt", "incident Open|Ended Began: it cannot be\n")
        self.count([*self.reached(), ("incident", "Ended", "Began", "0", "0")])
        self.assert_one(self.check(), "incident Open Began", "says that it cannot be")

    def test_an_excuse_for_what_does_not_exist_is_found(self):
        self.write("tests/scenarios/unreached.txt", "reason Gone: it cannot be\n")
        self.count(self.reached())
        self.assert_one(self.check(), "reason Gone", "names what does not exist")

    def test_a_reason_that_the_page_lacks_is_found(self):
        self.count([*self.reached(), ("gate", "window", "NoPolicy2", "1", "1")])
        self.assert_one(self.check(), "gate window NoPolicy2", "docs/verdicts.md")

    def test_schedules_that_were_not_counted_are_found(self):
        self.count(self.reached())
        self.assert_one(self.check("faults", "jobs"), "of jobs have not been counted")

    def test_parts_add_up_and_none_counts_twice(self):
        self.count(self.reached(), 0, 500)
        self.count(self.reached(), 500, 700)
        self.count(self.reached(), 600, 900)
        sums = schedule_coverage.sums_of(sorted((self.root / "counts").glob("*.txt")))
        self.assertEqual(sums.ranges, {"faults": [(0, 700)]})
        self.assertEqual(sums.cells[schedule_coverage.Cell("incident", "Open", "Began")], (6, 4))
        self.assert_one(sums.mistakes, "600 to 900", "counted already")


if __name__ == "__main__":
    unittest.main()
