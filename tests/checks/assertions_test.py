"""tests/support/main.cc fails a case that made no assertion, whatever its text looks like."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from planted import ROOT

CASES = """
#include "tests/support/main.cc"
static int run_for(int seconds) { return seconds; }
static void check_each(int times) {
  for (int i = 0; i < times; ++i) {
    CHECK(i >= 0);
  }
}
TEST_CASE("asserts") { CHECK(true); }
TEST_CASE("only runs") { run_for(5); }
TEST_CASE("asserts in a helper") { check_each(1); }
TEST_CASE("asserts in a loop that never turns") { check_each(0); }
TEST_CASE("asserts before its subcases") {
  CHECK(true);
  SUBCASE("one") { run_for(1); }
  SUBCASE("other") { run_for(2); }
}
TEST_CASE("asserts in each subcase") {
  SUBCASE("one") { CHECK(true); }
  SUBCASE("other") { CHECK(true); }
}
TEST_CASE("asserts in one subcase of two") {
  SUBCASE("one") { CHECK(true); }
  SUBCASE("other") { run_for(2); }
}
TEST_CASE("says something") { MESSAGE("words"); }
TEST_CASE("throws first") { throw 1; }
"""


class Assertions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        folder = pathlib.Path(cls.holder.name)
        (folder / "cases.cc").write_text(CASES)
        cls.binary = folder / "cases"
        subprocess.run([os.environ.get("CXX", "g++"), "-std=c++23", "-I", ROOT, folder / "cases.cc", "-o", cls.binary], check=True)

    def run_case(self, name):
        return subprocess.run([self.binary, f"--test-case={name}", "--no-version"], capture_output=True, text=True)

    def assert_silent(self, name, *words):
        done = self.run_case(name)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"test cases: +1 \| +0 passed \| +1 failed")
        self.assertIn("asserts nothing", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_cases_that_assert_are_green(self):
        for name in ("asserts", "asserts in a helper", "asserts before its subcases", "asserts in each subcase"):
            done = self.run_case(name)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertRegex(done.stdout, r"test cases: +1 \| +1 passed")

    def test_a_case_that_only_runs_something_fails(self):
        self.assert_silent("only runs", "only runs")

    def test_a_helper_whose_loop_never_turns_is_no_assertion(self):
        self.assert_silent("asserts in a loop that never turns")

    def test_a_message_is_no_assertion(self):
        self.assert_silent("says something")

    def test_a_way_through_the_subcases_without_an_assertion_fails(self):
        self.assert_silent("asserts in one subcase of two", "one way through its subcases")

    def test_a_case_that_throws_first_fails_once(self):
        done = self.run_case("throws first")
        self.assertRegex(done.stdout, r"test cases: +1 \| +0 passed \| +1 failed")
        self.assertNotIn("asserts nothing", done.stderr)

    def test_of_all_cases_exactly_these_fail(self):
        done = subprocess.run([self.binary, "--no-version"], capture_output=True, text=True)
        self.assertRegex(done.stdout, r"test cases: +9 \| +4 passed \| +5 failed")


if __name__ == "__main__":
    unittest.main()
