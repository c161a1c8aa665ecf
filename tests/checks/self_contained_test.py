"""check_headers.py goes red on a header that lacks a standard header which is precompiled, and only then."""
import re
import unittest

from planted import ROOT, PlantedTree

import check_headers


class Headers(PlantedTree):
    def check(self):
        return check_headers.check(self.root)

    def test_a_header_that_includes_what_it_needs_is_green(self):
        self.write("base/error.h", "#pragma once\n#include <string>\nstruct Error { std::string text; };\n")
        self.write("domain/cluster/world.h", '#pragma once\n#include <vector>\n#include "base/error.h"\nstd::vector<std::string> names();\nstd::string_view x();\n')
        self.assertEqual(self.check(), [])

    def test_a_header_that_lacks_one_is_found_where_it_first_uses_it(self):
        self.write("domain/cluster/world.h", "#pragma once\n#include <string>\nint f();\nstd::vector<std::string> names();\nstd::vector<int> more();\n")
        self.assert_one(self.check(), "domain/cluster/world.h:4", "std::vector without <vector>")

    def test_a_string_view_is_no_string(self):
        self.write("domain/cluster/world.h", "#pragma once\n#include <string_view>\nstd::string_view x();\n")
        self.assertEqual(self.check(), [])

    def test_each_of_them_is_missed(self):
        uses = {"algorithm": "std::ranges::sort(x)", "chrono": "std::chrono::seconds x", "expected": "std::expected<int, int> x", "functional": "std::function<void()> x",
                "map": "std::map<int, int> x", "memory": "std::unique_ptr<int> x", "optional": "std::optional<int> x", "ranges": "std::views::keys(x)",
                "string": "std::string x", "string_view": "std::string_view x", "unordered_map": "std::unordered_map<int, int> x", "variant": "std::variant<int> x",
                "vector": "std::vector<int> x"}
        self.assertEqual(set(uses), set(check_headers.NEEDS))
        for header, use in uses.items():
            with self.subTest(header):
                self.write("domain/cluster/world.h", f"#pragma once\n{use};\n")
                self.assert_one(self.check(), f"without <{header}>")

    def test_it_knows_every_header_that_is_precompiled(self):
        options = (ROOT / "cmake/options.cmake").read_text()
        listed = re.search(r"target_precompile_headers\(\$\{target\} PRIVATE([^)]*)\)", options).group(1)
        self.assertEqual(set(re.findall(r"<(\w+)>", listed)), set(check_headers.NEEDS))


if __name__ == "__main__":
    unittest.main()
