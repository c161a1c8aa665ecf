#!/usr/bin/env python3
"""Runs the training examples against a written notice: they save, end only where that is safe, and go on when it is called off."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import yaml

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "manifests/examples/training"
sys.path.insert(0, str(EXAMPLES))
import train  # noqa: E402

VOLUME = {"name": "device-health", "downwardAPI": {"items": [{"path": "notice", "fieldRef": {"fieldPath": "metadata.annotations['device-health.io/notice']"}}]}}
DEADLINE = 30


def notice(action="evict", exit="unsafe", at="2026-11-20T12:01:00Z", version=1):
    # A message that looks like fields must not be read as such.
    message = 'Xid 79: "action":"none" "exit":"safe"'
    return json.dumps({"v": version, "n": 1, "action": action, "device": "d", "container": "c", "reason": "DeviceUnhealthy", "message": message,
                       "at": at, "deadline": "2026-11-20T12:06:00Z", "retry": "none", "exit": exit, "restarts": 0}, separators=(",", ":"))


class Program(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.file = self.folder / "notice"
        self.file.write_text("")

    def say(self, text):
        new = self.folder / "notice.new"
        new.write_text(text)
        os.replace(new, self.file)  # as the kubelet does it

    def start(self, *command):
        env = os.environ | {"DEVICE_HEALTH_NOTICE": str(self.file), "CHECKPOINT": str(self.folder / "step"), "STEP": "0.01", "POLL": "0.01"}
        process = subprocess.Popen(command, env=env, cwd=self.folder, start_new_session=True)
        self.addCleanup(lambda: process.poll() is None and os.killpg(process.pid, signal.SIGKILL))
        return process

    def until(self, what, is_so):
        end = time.monotonic() + DEADLINE
        while not is_so():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    def stays(self, process, seconds=0.3):
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(seconds)


class Loop(Program):
    def saved(self):
        path = self.folder / "step"
        return int(path.read_text()) if path.exists() else 0

    def test_it_saves_at_once_and_ends_where_that_is_safe(self):
        process = self.start(sys.executable, str(EXAMPLES / "train.py"))
        self.stays(process)
        self.assertEqual(self.saved(), 0)
        self.say(notice(exit="safe"))
        self.assertEqual(process.wait(DEADLINE), 143)
        self.assertGreater(self.saved(), 0)

    def test_it_computes_nothing_further_until_the_end_is_safe(self):
        process = self.start(sys.executable, str(EXAMPLES / "train.py"))
        self.say(notice())
        self.until("a checkpoint", self.saved)
        saved = self.saved()
        self.stays(process)
        self.assertEqual(self.saved(), saved)
        self.say(notice(exit="safe"))
        self.assertEqual(process.wait(DEADLINE), 143)
        self.assertEqual(self.saved(), saved)

    def test_it_goes_on_when_the_eviction_is_called_off_and_from_its_checkpoint_when_it_begins_anew(self):
        process = self.start(sys.executable, str(EXAMPLES / "train.py"))
        self.say(notice())
        self.until("a checkpoint", self.saved)
        first = self.saved()
        self.say(notice(action="none"))
        self.stays(process)
        self.say(notice(at="2026-11-20T13:01:00Z", exit="safe"))
        self.assertEqual(process.wait(DEADLINE), 143)
        second = self.saved()
        self.assertGreater(second, first)
        self.say(notice(exit="safe"))
        again = self.start(sys.executable, str(EXAMPLES / "train.py"))
        self.assertEqual(again.wait(DEADLINE), 143)
        self.assertEqual(self.saved(), second + 1)

    def test_it_saves_once_and_goes_on_when_another_pod_of_its_owner_is_to_go(self):
        process = self.start(sys.executable, str(EXAMPLES / "train.py"))
        self.say(notice(action="peer"))
        self.until("a checkpoint", self.saved)
        saved = self.saved()
        self.stays(process)
        self.assertEqual(self.saved(), saved)
        self.say(notice(exit="safe", at="2026-11-20T12:02:00Z"))
        self.assertEqual(process.wait(DEADLINE), 143)
        self.assertGreater(self.saved(), saved + 5)

    def test_what_is_no_notice_of_its_version_is_none(self):
        process = self.start(sys.executable, str(EXAMPLES / "train.py"))
        for text in ("", "{", "[]", "null", notice(version=2, exit="safe"), notice(action="dance", exit="safe"), notice(action="none", exit="safe")):
            self.say(text)
            self.stays(process, 0.1)
        self.assertEqual(self.saved(), 0)

    def test_a_notice_that_comes_just_after_the_look_for_one_is_saved_for_before_the_end(self):
        looks = iter([None])
        done = []
        with unittest.mock.patch.object(train, "notice", lambda *_: next(looks, json.loads(notice(exit="safe")))), self.assertRaises(SystemExit):
            train.run(lambda _: done.append("step"), lambda _: done.append("save"), 0, 9, 100)
        self.assertEqual(done, ["step", "step", "save"])


class Launcher(Program):
    # A launcher that passes SIGUSR1 on to a program that saves.
    LAUNCHER = """
import pathlib, signal, sys, time
def save(*_):
    pathlib.Path("checkpoint").write_text("saved"); pathlib.Path("marker").touch()
signal.signal(signal.SIGUSR1, save)
pathlib.Path("up").touch()
while not pathlib.Path("finish").exists(): time.sleep(0.01)
sys.exit(7)
"""

    def launch(self):
        process = self.start("sh", str(EXAMPLES / "on-notice.sh"), "marker", sys.executable, "-c", self.LAUNCHER)
        self.until("the program runs", (self.folder / "up").exists)
        return process

    def test_the_program_saves_and_is_ended_once_that_is_safe(self):
        process = self.launch()
        self.say(notice())
        self.until("a checkpoint", (self.folder / "checkpoint").exists)
        self.stays(process)
        self.say(notice(exit="safe"))
        self.assertEqual(process.wait(DEADLINE), 143)

    def test_without_a_notice_it_ends_as_the_launcher_does(self):
        process = self.launch()
        (self.folder / "finish").touch()
        self.assertEqual(process.wait(DEADLINE), 7)
        self.assertFalse((self.folder / "checkpoint").exists())

    def test_a_checkpoint_of_an_earlier_notice_is_none_of_this_one(self):
        process = self.launch()
        self.say(notice())
        self.until("a checkpoint", (self.folder / "marker").exists)
        self.say(notice(action="none"))
        self.stays(process, 0.2)
        (self.folder / "checkpoint").unlink()
        self.say(notice(at="2026-11-20T13:01:00Z", exit="safe"))
        self.assertEqual(process.wait(DEADLINE), 143)
        self.assertTrue((self.folder / "checkpoint").exists())

    def test_the_eviction_reaches_the_launcher(self):
        process = self.launch()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 143)


class Manifests(unittest.TestCase):
    def pod_specs(self, value):
        if isinstance(value, dict):
            if "containers" in value:
                yield value
            for inner in value.values():
                yield from self.pod_specs(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from self.pod_specs(inner)

    def test_each_pod_has_the_volume_and_mounts_its_folder(self):
        files = sorted(EXAMPLES.glob("*.yaml"))
        self.assertEqual([file.name for file in files], ["gang.yaml", "job.yaml", "jobset.yaml", "pytorchjob.yaml"])
        for file in files:
            specs = list(self.pod_specs(list(yaml.safe_load_all(file.read_text()))))
            self.assertEqual(len(specs), 1, file)
            self.assertIn(VOLUME, specs[0]["volumes"], file)
            for container in specs[0]["containers"]:
                self.assertIn({"name": "device-health", "mountPath": "/etc/device-health"}, container["volumeMounts"], file)


if __name__ == "__main__":
    unittest.main()
