"""check_includes.py goes red on each thing it is there to find, and stays green on what is allowed."""
import pathlib
import re
import unittest

from planted import PlantedTree

import check_includes


class Includes(PlantedTree):
    def check(self):
        return check_includes.check(self.root)

    def test_the_tree_without_a_plant_is_green(self):
        self.assertEqual(self.check(), [])

    def test_a_file_in_no_list_is_found(self):
        self.write("domain/cluster/stray.h", "#pragma once\n")
        self.assert_one(self.check(), "domain/cluster/stray.h", "in no list")

    def test_a_file_in_two_lists_is_found(self):
        self.lists["shell"] = sorted([*self.lists["shell"], "domain/cluster/world.h"])
        self.write_lists()
        self.assert_one(self.check(), "domain/cluster/world.h", "one list only")

    def test_an_entry_without_a_file_is_found(self):
        self.lists["core"] = sorted([*self.lists["core"], "domain/cluster/zebra.h"])
        self.write_lists()
        self.assert_one(self.check(), "domain/cluster/zebra.h", "is not a file")

    def test_a_list_out_of_order_is_found(self):
        self.lists["core"].reverse()
        self.write_lists()
        self.assert_one(self.check(), "alphabetical")

    def test_core_may_include_what_it_needs(self):
        self.write("domain/cluster/world.h", '#include <map>\n#include <re2/re2.h>\n#include "k8s-client/model/pod.h"\n#include "base/error.h"\n')
        self.write("src/app/controller.h", '#include "reconcilers/eviction/plan.h"\n#include "domain/cluster/world.h"\n#include "k8s-client/auth/token.h"\n')
        self.write("k8s-client/model/pod.h", '#include "k8s-client/protocol/watch.h"\n')
        self.write("simulator/node/kubelet.h", '#include "simulator/api/store.h"\n#include "k8s-client/model/pod.h"\n')
        self.write("reconcilers/taint/plan.h", '#include "reconcilers/shared/plan_input.h"\n#include "domain/limits/brake.h"\n')
        self.write("domain/limits/brake.h", '#include "domain/cluster/world.h"\n')
        self.assertEqual(self.check(), [])

    def test_core_may_not_include_what_waits_or_speaks(self):
        for header in ("mutex", "thread", "atomic", "iostream", "sstream", "fstream", "random", "ctime", "cstdlib", "cstdio", "sys/socket.h",
                       "boost/asio.hpp", "boost/beast/http.hpp", "openssl/ssl.h", "spdlog/spdlog.h", "prometheus/counter.h"):
            with self.subTest(header):
                self.write("domain/cluster/world.h", f"#pragma once\n  #  include <{header}>\n")
                self.assert_one(self.check(), "domain/cluster/world.h:2", f"core may not include <{header}>")

    def test_the_shell_may_include_what_waits_or_speaks(self):
        self.write("src/app/run_loop.h", '#include <mutex>\n#include "reconcilers/eviction/execute.h"\n#include "app/controller.h"\n')
        self.assertEqual(self.check(), [])

    def test_core_may_not_include_the_shell(self):
        self.write("reconcilers/eviction/plan.h", '#include "reconcilers/eviction/execute.h"\n')
        self.assert_one(self.check(), "reconcilers/eviction/plan.h:1", "of the shell")

    def test_core_may_not_read_a_clock(self):
        self.write("domain/cluster/world.h", "auto t = std::chrono::steady_clock::now();\n")
        self.assert_one(self.check(), "domain/cluster/world.h:1", "clock")

    def test_a_clock_named_in_a_comment_or_a_text_is_no_clock(self):
        self.write("domain/cluster/world.h", '// never steady_clock::now()\n/* nor\n system_clock::now() */\nauto s = "x::now()";\n')
        self.assertEqual(self.check(), [])

    def test_one_reconciler_may_not_include_another(self):
        self.write("reconcilers/eviction/plan.h", '#include "reconcilers/taint/plan.h"\n')
        self.assert_one(self.check(), "reconcilers/eviction may not include")

    def test_includes_never_point_up(self):
        for path, header in (
            ("base/error.h", "domain/contract/names.h"),
            ("base/error.h", "k8s-client/model/pod.h"),
            ("k8s-client/model/pod.h", "domain/contract/names.h"),
            ("k8s-client/transport.h", "domain/cluster/world.h"),
            ("domain/contract/names.h", "domain/cluster/world.h"),
            ("domain/cluster/world.h", "domain/limits/brake.h"),
            ("domain/cluster/world.h", "reconcilers/shared/plan_input.h"),
            ("domain/limits/brake.h", "reconcilers/taint/plan.h"),
            ("domain/limits/brake.h", "app/controller.h"),
            ("domain/limits/brake.h", "simulator/node/kubelet.h"),
            ("domain/limits/brake.h", "k8s-client/auth/token.h"),
            ("reconcilers/shared/plan_input.h", "reconcilers/taint/plan.h"),
            ("reconcilers/taint/plan.h", "app/controller.h"),
            ("simulator/api/store.h", "simulator/node/kubelet.h"),
            ("simulator/node/kubelet.h", "domain/contract/names.h"),
            ("simulator/node/kubelet.h", "reconcilers/taint/plan.h"),
            ("src/app/controller.h", "simulator/api/store.h"),
            ("src/app/run_loop.h", "cli/run.h"),
        ):
            with self.subTest(path=path, header=header):
                self.write(path, f'#include "{header}"\n')
                self.assert_one(self.check(), f"{path}:1", "may not include")
                self.write(path, "#pragma once\n")

    def test_an_include_that_is_no_file_is_found(self):
        self.write("domain/cluster/world.h", '#include "domain/cluster/nowhere.h"\n')
        self.assert_one(self.check(), "no file of this project")

    def test_an_include_by_a_path_relative_to_the_file_is_found(self):
        self.write("src/app/controller.h", '#include "run_loop.h"\n')
        self.assert_one(self.check(), "by its path from the root")

    def test_the_page_on_the_architecture_shows_the_folders_in_their_order(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "architecture.md").read_text()
        table = page.split("| folder | holds |", 1)[1].split("\n\n", 1)[0]
        shown = [name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)/`", row.split("|")[1])]
        self.assertEqual([name.replace("reconcilers/*", "reconcilers") for name in shown], list(check_includes.ORDER))


if __name__ == "__main__":
    unittest.main()
