"""scripts/test.py counts what ran, calls it a failure when nothing did, and leaves nothing behind."""
import contextlib
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from planted import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import test as driver
from testing import failures, record, steps
from testing.counts import Counts
from testing.job import Failed, Job
from testing.schedule import Schedule, Step


class Folder(unittest.TestCase):
    """Gives each test a root of its own, and what was said."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)
        self.results = self.root / "build/results"
        self.said = io.StringIO()
        quiet = contextlib.redirect_stdout(self.said)
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.getsignal(number))


class Jobs(Folder):
    def program(self, text):
        path = self.root / "run"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return Job("a job", self.root, self.results).counted("./run")

    def ctest(self, tests):
        folder = self.root / "build/dev"
        folder.mkdir(parents=True)
        (folder / "CTestTestfile.cmake").write_text(tests)
        return Job("a job", self.root, self.results).ctest("dev", "core")

    def test_the_last_count_of_a_program_is_taken(self):
        self.assertEqual(self.program("echo 1 passed, 0 failed\necho 7 passed, 0 failed\n"), (7, 0))

    def test_verdicts_of_go_tests_are_counted_and_a_skipped_one_has_failed(self):
        self.assertEqual(self.program("echo '--- PASS: TestA'\necho '    --- PASS: TestA/part'\necho '--- SKIP: TestB'\n"), (1, 1))

    def test_a_program_that_ran_no_test_has_failed(self):
        with self.assertRaises(Failed):
            self.program("echo done\n")

    def test_a_program_that_ends_with_an_error_has_a_failure_whatever_it_counted(self):
        self.assertEqual(self.program("echo 3 passed, 0 failed\nexit 1\n"), (3, 1))

    def test_a_missing_program_has_failed(self):
        with self.assertRaises(Failed):
            Job("a job", self.root, self.results).counted("./nowhere")

    def test_a_label_without_tests_has_failed(self):
        with self.assertRaises(Failed):
            self.ctest('add_test(a "true")\nset_tests_properties(a PROPERTIES LABELS checks)\n')

    def test_tests_of_a_label_are_counted_by_verdict(self):
        text = ""
        for name, command in (("a", "true"), ("b", "false"), ("c", "true"), ("d", "/no/such/program")):
            text += f'add_test({name} "{command}")\nset_tests_properties({name} PROPERTIES LABELS core)\n'
        self.assertEqual(self.ctest(text), (2, 2))

    def whole(self, part):
        """A suite of ten tests in two processes; `part` is what the second one does."""
        folder = self.root / "build/asan"
        folder.mkdir(parents=True)
        program = folder / "core_tests"
        summary = 'echo "[doctest] test cases: 10 | $((10 - $1)) passed | $1 failed | 0 skipped"'
        program.write_text(f'#!/bin/sh\nends() {{ {summary}; exit $(($1 > 0)); }}\ncase "$*" in\n'
                           f'  *--count*) echo "[doctest] unskipped test cases passing the current filters: 10" ;;\n'
                           f'  *--first=1\ *) ends 0 ;;\n  *) {part} ;;\nesac\n')
        program.chmod(0o755)
        self.addCleanup(setattr, steps, "CORES", steps.CORES)
        steps.CORES = 2
        return steps.whole("asan", "core_tests")(Job("a job", self.root, self.results))

    def test_parts_of_a_suite_add_up(self):
        self.assertEqual(self.whole("ends 0"), (10, 0))

    def test_what_failed_in_a_part_has_failed_once(self):
        self.assertEqual(self.whole("ends 2"), (8, 2))

    def test_a_part_that_died_or_counted_something_else_than_its_code_says_has_failed_as_a_whole(self):
        for part in ("exit 139", "kill -9 $$", "true", "(ends 0); exit 1", "(ends 3); exit 0"):
            with self.subTest(part), contextlib.ExitStack() as ended:
                ended.callback(shutil.rmtree, self.root / "build/asan")
                self.assertEqual(self.whole(part), (5, 5))

    def test_a_suite_without_tests_has_failed(self):
        (self.root / "build/none").mkdir(parents=True)
        program = self.root / "build/none/core_tests"
        program.write_text("#!/bin/sh\necho '[doctest] unskipped test cases passing the current filters: 0'\n")
        program.chmod(0o755)
        with self.assertRaises(Failed):
            steps.whole("none", "core_tests")(Job("a job", self.root, self.results))

    def test_processor_time_is_that_of_all_that_a_command_started(self):
        job = Job("a job", self.root, self.results)
        job.run("sh", "-c", f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'; true")
        self.assertGreaterEqual(job.cpu, 0.3)


class Schedules(Folder):
    def run_steps(self, *steps):
        self.schedule = Schedule(list(steps), self.root, self.results)
        return self.schedule.run()

    def test_a_step_that_yields_runs_beside_all_that_do_not_and_takes_what_they_leave(self):
        together = threading.Barrier(2, timeout=10)
        found = {}

        def work(job):
            together.wait()
            found[job.name] = int(job.run("nice"))

        self.run_steps(Step("compile", work, cores=99, yields=True), Step("story", work, cores=99))
        self.assertEqual(found, {"compile": 19, "story": os.nice(0)})

    def test_counts_are_added_and_a_build_counts_nothing(self):
        total = self.run_steps(Step("build", lambda job: None), Step("one", lambda job: Counts(3, 0), after=("build",)), Step("two", lambda job: Counts(4, 1)))
        self.assertEqual(total, (7, 1))
        self.schedule.table()
        self.assertRegex(self.said.getvalue(), r"two +00:00 +00:00 +0 +4 +1")

    def test_a_step_waits_for_what_it_needs(self):
        order = []
        self.run_steps(Step("last", lambda job: order.append("last"), after=("first", "second")), Step("first", lambda job: order.append("first")),
                       Step("second", lambda job: order.append("second"), after=("first",)))
        self.assertEqual(order, ["first", "second", "last"])

    def test_what_needs_a_step_that_failed_is_not_run_and_has_failed_and_the_others_still_run(self):
        ran = []
        total = self.run_steps(Step("build", lambda job: job.run("no-such-tool")), Step("core", ran.append, after=("build",)), Step("cover", ran.append, after=("core",)),
                               Step("other", lambda job: Counts(5, 0)))
        self.assertEqual((total, ran), (Counts(5, 3), []))
        self.assertIn("core: FAILED: not run: it needs build, which failed", self.said.getvalue())

    def test_what_needs_a_step_with_failed_tests_is_run(self):
        self.assertEqual(self.run_steps(Step("core", lambda job: Counts(1, 1)), Step("more", lambda job: Counts(1, 0), after=("core",))), (2, 1))

    def test_a_fault_of_the_driver_itself_is_a_failure(self):
        self.assertEqual(self.run_steps(Step("broken", lambda job: 1 / 0)), (0, 1))

    def test_the_log_of_the_first_failure_is_shown_and_of_the_others_named(self):
        self.run_steps(Step("one", lambda job: job.run("sh", "-c", "echo words of one; exit 1")),
                       Step("two", lambda job: job.run("sh", "-c", "echo words of two; exit 1"), alone="x", after=()), Step("three", lambda job: None, alone="x"))
        shown = [words for words in ("  | words of one", "  | words of two") if words in self.said.getvalue()]
        self.assertEqual(len(shown), 1, self.said.getvalue())
        self.assertIn("build/results/one.log", self.said.getvalue())
        self.assertIn("build/results/two.log", self.said.getvalue())

    def test_a_step_of_a_package_in_a_folder_has_a_log_as_the_others_do(self):
        self.run_steps(Step("stories cmd/one", lambda job: job.run("sh", "-c", "echo its words; exit 1")))
        self.assertIn("  | its words", self.said.getvalue())
        self.assertIn("build/results/stories-cmd-one.log", self.said.getvalue())

    def test_the_tests_that_failed_are_named_with_their_last_words_at_the_end(self):
        text = "=== NAME  TestA\n    a_test.go:1: seen\n=== NAME  TestB\n    b_test.go:2: fine\n=== NAME  TestA/part\n    a_test.go:9: 2 pods, want 3\n        a picture\n    a_test.go:7: ---- pods\n" \
               "--- FAIL: TestA (1s)\n    --- FAIL: TestA/part (1s)\n--- PASS: TestB (1s)\n"
        self.run_steps(Step("stories", lambda job: (job.log.write_text(text), Counts(1, 1))[1]), Step("good", lambda job: Counts(1, 0)))
        self.assertEqual(self.schedule.failures(), ["  stories: 1 failed", "    TestA/part", "      a_test.go:9: 2 pods, want 3"])

    def test_what_failed_without_naming_a_test_ends_with_its_last_lines(self):
        def broken(job):
            job.log.write_text("".join(f"line {number}\n" for number in range(20)))
            raise Failed("the compiler ended with 1")

        self.run_steps(Step("build", broken))
        self.assertEqual(self.schedule.failures(), ["  build: the compiler ended with 1", *(f"    line {number}" for number in range(14, 20))])

    def test_tests_that_ctest_lists_are_named_with_what_did_not_hold(self):
        text = "core/a_test.cc:12: ERROR: CHECK( a == b ) is NOT correct!\n\nThe following tests FAILED:\n\t 12 - core.a thing of two words (Failed)\n"
        self.assertEqual(failures.told(text), ["core.a thing of two words", "  core/a_test.cc:12: ERROR: CHECK( a == b ) is NOT correct!"])

    def test_steps_that_share_a_thing_never_overlap(self):
        inside, most = [], []

        def work(job):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.02)
            inside.pop()

        self.run_steps(*(Step(f"step {number}", work, cores=0.1, alone="folder") for number in range(5)))
        self.assertEqual(max(most), 1)

    def test_steps_that_need_each_other_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, "one, two"):
            self.run_steps(Step("one", lambda job: None, after=("two",)), Step("two", lambda job: None, after=("one",)))

    def test_a_signal_ends_every_process_and_the_program_with_130(self):
        pids = self.root / "pids"
        program = f"""
import sys
sys.path.insert(0, {str(ROOT / "scripts")!r})
import pathlib
from testing.schedule import Schedule, Step
root = pathlib.Path({str(self.root)!r})
command = "trap '' INT; echo $$ >> {pids}; sleep 1000 & echo $! >> {pids}; wait"
steps = [Step(name, lambda job: job.run("sh", "-c", command), cores=0.1) for name in ("one", "two")]
import testing.job
testing.job.Job.stop.__defaults__ = (0.2,)
Schedule(steps, root, root / "build/results").run()
"""
        started = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.addCleanup(started.stdout.close)
        deadline = time.monotonic() + 60
        while not pids.exists() or len(pids.read_text().split()) < 4:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        started.send_signal(signal.SIGTERM)
        self.assertEqual(started.wait(timeout=60), 130)
        for pid in map(int, pids.read_text().split()):
            while pathlib.Path(f"/proc/{pid}").exists() and "Z" not in pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]:
                self.assertLess(time.monotonic(), deadline, f"{pid} is still there")
                time.sleep(0.02)


class Records(Folder):
    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "-q", self.root], check=True)
        (self.root / "a").write_text("text")
        self.kept = self.root / "kept.json"
        (self.root / ".gitignore").write_text("kept.json\nbuild\n")

    def test_what_was_found_is_taken_while_no_file_has_changed(self):
        tree = record.fingerprint(self.root)
        found = record.Found(Counts(3, 1), ["  one: 1 failed"])
        record.keep(self.kept, tree, found)
        self.assertEqual(record.find(self.kept, record.fingerprint(self.root)), found)

    def test_a_file_that_changed_came_or_went_makes_it_another_tree(self):
        tree = record.fingerprint(self.root)
        (self.root / "a").write_text("texts")
        changed = record.fingerprint(self.root)
        (self.root / "b").write_text("")
        came = record.fingerprint(self.root)
        (self.root / "a").unlink()
        self.assertEqual(len({tree, changed, came, record.fingerprint(self.root)}), 4)

    def test_without_git_no_tree_is_the_same_as_another(self):
        with tempfile.TemporaryDirectory() as holder:
            tree = record.fingerprint(pathlib.Path(holder))
        record.keep(self.kept, tree, record.Found(Counts(3, 0), []))
        self.assertIsNone(record.find(self.kept, tree))

    def test_a_run_that_did_not_come_to_its_end_is_no_record(self):
        self.assertIsNone(record.find(self.kept, "tree"))
        self.kept.write_text('{"tree": "tree"')
        self.assertIsNone(record.find(self.kept, "tree"))


class Driver(Folder):
    def setUp(self):
        super().setUp()
        subprocess.run(["git", "init", "-q", self.root], check=True)
        (self.root / ".gitignore").write_text("build\n")
        self.ran = []
        for name, value in (("ROOT", self.root), ("RESULTS", self.results)):
            self.addCleanup(setattr, driver, name, getattr(driver, name))
            setattr(driver, name, value)
        for name, value in (("every_step", self.every_step), ("suites", lambda every: {"test": ("one",), "verify": ("one", "two")})):
            self.addCleanup(setattr, steps, name, getattr(steps, name))
            setattr(steps, name, value)
        self.one = Counts(5, 0)

    def every_step(self):
        def step(name, counts):
            return Step(name, lambda job: self.ran.append(name) or counts)

        return [step("one", self.one), step("two", Counts(7, 0))]

    def last_line(self):
        return self.said.getvalue().splitlines()[-1]

    def test_verify_alone_runs_everything_although_test_has_passed(self):
        self.assertEqual(driver.main(["test"]), 0)
        self.assertEqual(driver.main(["verify"]), 0)
        self.assertEqual((sorted(self.ran), self.last_line()), (["one", "one", "two"], "12 passed, 0 failed"))

    def test_verify_after_test_runs_the_rest_and_prints_the_sum(self):
        self.assertEqual(driver.main(["test"]), 0)
        self.assertEqual(driver.main(["--after-test", "verify"]), 0)
        self.assertEqual((self.ran, self.last_line()), (["one", "two"], "12 passed, 0 failed"))

    def test_what_failed_in_test_fails_in_verify_after_it(self):
        self.one = Counts(4, 1)
        self.assertEqual(driver.main(["test"]), 1)
        self.assertEqual(driver.main(["--after-test", "verify"]), 1)
        self.assertEqual((self.ran, self.said.getvalue().splitlines()[-2:]), (["one", "two"], ["  one: 1 failed", "11 passed, 1 failed"]))

    def test_verify_after_a_test_of_other_files_runs_everything(self):
        self.assertEqual(driver.main(["test"]), 0)
        (self.root / "changed").write_text("")
        self.assertEqual(driver.main(["--after-test", "verify"]), 0)
        self.assertEqual(sorted(self.ran), ["one", "one", "two"])

    def test_the_counts_of_test_are_taken_once(self):
        self.assertEqual(driver.main(["test"]), 0)
        self.assertEqual(driver.main(["--after-test", "verify"]), 0)
        self.assertEqual(driver.main(["--after-test", "verify"]), 0)
        self.assertEqual(sorted(self.ran), ["one", "one", "two", "two"])

    def test_an_unknown_suite_is_named(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(driver.main(["none"]), 2)
        self.assertIn("no suite none", said.getvalue())


class Suites(unittest.TestCase):
    def test_every_package_with_a_story_is_run_by_verify(self):
        every = steps.every_step()
        cluster = ROOT / "tests/cluster"
        found = {file.parent.relative_to(cluster).as_posix() for file in cluster.rglob("*_test.go")}
        self.assertEqual({name.removeprefix("stories ") for name in steps.suites(every)["verify"] if name.startswith("stories ")}, found)

    def test_every_step_that_is_asked_for_or_needed_exists_once(self):
        every = steps.every_step()
        names = [step.name for step in every]
        self.assertEqual(len(names), len(set(names)))
        needed = {name for step in every for name in step.after} | {name for asked in steps.suites(every).values() for name in asked}
        self.assertLessEqual(needed, set(names))

    def test_every_step_belongs_to_a_suite(self):
        every = steps.every_step()
        asked = {step.name for suite in steps.suites(every).values() for step in steps.wanted(every, set(suite))}
        self.assertEqual({step.name for step in every} - asked, set())


if __name__ == "__main__":
    unittest.main()
