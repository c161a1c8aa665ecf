"""A small tree like the repository's, in which a test plants one bad thing."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

GOOD = {
    "base/error.h": "core",
    "domain/cluster/world.h": "core",
    "domain/contract/names.h": "core",
    "domain/limits/brake.h": "core",
    "k8s-client/auth/token.h": "core",
    "k8s-client/model/pod.h": "core",
    "k8s-client/protocol/watch.h": "core",
    "k8s-client/transport.h": "shell",
    "reconcilers/eviction/execute.h": "shell",
    "reconcilers/eviction/plan.h": "core",
    "reconcilers/shared/plan_input.h": "core",
    "reconcilers/taint/plan.h": "core",
    "simulator/api/store.h": "core",
    "simulator/node/kubelet.h": "core",
    "src/app/controller.h": "core",
    "src/app/main.cc": "main",
    "src/app/run_loop.h": "shell",
    "src/cli/run.h": "shell",
}


class PlantedTree(unittest.TestCase):
    """Gives each test a tree in which every check is green."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)
        self.lists = {name: [path for path, room in GOOD.items() if room == name] for name in ("core", "shell", "cpprest", "main")}
        for path in GOOD:
            self.write(path, "#pragma once\n")
        self.write_lists()

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def write_lists(self):
        text = ""
        for name, entries in self.lists.items():
            text += f"set(DHC_{name.upper()}_SOURCES  # a comment\n" + "".join(f"  {entry}\n" for entry in entries) + ")\n"
        self.write("CMakeLists.txt", text)

    def assert_one(self, bad, *words):
        self.assertEqual(len(bad), 1, bad)
        for word in words:
            self.assertIn(word, bad[0])
