"""check_invariants.py goes red on an invariant that no test shows."""
import unittest

from planted import PlantedTree

import check_invariants


class Invariants(PlantedTree):
    def check(self, shown):
        self.write("tests/core/a_test.cc", 'TEST_CASE(\n    "one "\n    "sentence") { CHECK(true); }\n')
        self.write("tests/cluster/a_test.go", "func TestAStory(t *testing.T) {\n}\n")
        self.write("docs/invariants.md", f"| | holds | shown by |\n|---|---|---|\n| I1 | always | {shown} |\n")
        return check_invariants.check(self.root)

    def test_a_test_and_a_story_that_exist_are_green(self):
        self.assertEqual(self.check("`one sentence`, `TestAStory`"), [])

    def test_a_test_that_is_gone_is_found(self):
        self.assert_one(self.check("`another sentence`"), "invariants.md:3", "there is no test another sentence")

    def test_a_property_of_the_model_is_one_of_its_runner(self):
        self.write("tests/model/run", 'PROPERTIES = {\n    "one property": "word[",\n}\n')
        self.assertEqual(self.check("*model*: `one property`"), [])
        self.assert_one(self.check("*model*: `another property`"), "there is no test another property")

    def test_an_invariant_without_a_test_is_found(self):
        self.assert_one(self.check("the code"), "I1 is shown by no test")

    def test_a_page_without_invariants_is_found(self):
        self.write("docs/invariants.md", "nothing\n")
        self.assert_one(check_invariants.check(self.root), "no invariant")


if __name__ == "__main__":
    unittest.main()
