"""scripts/test.py counts what ran, and calls it a failure when nothing did."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

from planted import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import test as driver


class Driver(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.addCleanup(setattr, driver, "ROOT", driver.ROOT)
        self.addCleanup(setattr, driver, "RESULTS", driver.RESULTS)
        driver.ROOT = pathlib.Path(holder.name)
        driver.RESULTS = driver.ROOT / "build/results"
        quiet = contextlib.redirect_stdout(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)

    def program(self, text):
        path = driver.ROOT / "run"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return driver.script("./run")

    def ctest(self, tests):
        folder = driver.ROOT / "build/dev"
        folder.mkdir(parents=True)
        (folder / "CTestTestfile.cmake").write_text(tests)
        return driver.ctest("dev", "core")

    def test_the_last_count_of_a_program_is_taken(self):
        self.assertEqual(self.program("echo 1 passed, 0 failed\necho 7 passed, 0 failed\n"), (7, 0))

    def test_verdicts_of_go_tests_are_counted_and_a_skipped_one_has_failed(self):
        self.assertEqual(self.program("echo '--- PASS: TestA'\necho '    --- PASS: TestA/part'\necho '--- SKIP: TestB'\n"), (1, 1))

    def test_a_program_that_ran_no_test_has_failed(self):
        with self.assertRaises(driver.Failed):
            self.program("echo done\n")

    def test_a_program_that_ends_with_an_error_has_a_failure_whatever_it_counted(self):
        self.assertEqual(self.program("echo 3 passed, 0 failed\nexit 1\n"), (3, 1))

    def test_a_missing_program_has_failed(self):
        with self.assertRaises(driver.Failed):
            driver.script("./nowhere")

    def test_a_label_without_tests_has_failed(self):
        with self.assertRaises(driver.Failed):
            self.ctest('add_test(a "true")\nset_tests_properties(a PROPERTIES LABELS checks)\n')

    def test_tests_of_a_label_are_counted_by_verdict(self):
        text = ""
        for name, command in (("a", "true"), ("b", "false"), ("c", "true"), ("d", "/no/such/program")):
            text += f'add_test({name} "{command}")\nset_tests_properties({name} PROPERTIES LABELS core)\n'
        self.assertEqual(self.ctest(text), (2, 2))

    def test_a_tool_that_is_missing_fails_its_suite_and_the_others_still_run(self):
        def missing():
            driver.run("no-such-tool", log="missing")

        self.addCleanup(setattr, driver, "SUITES", driver.SUITES)
        self.addCleanup(setattr, sys, "argv", sys.argv)
        driver.SUITES = {"one": missing, "two": lambda: (5, 0)}
        sys.argv = ["test.py"]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(driver.main(), 1)
        self.assertEqual(said.getvalue().splitlines()[-1], "5 passed, 1 failed")


if __name__ == "__main__":
    unittest.main()
