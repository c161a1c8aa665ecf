"""compile_headers.py goes red on a header that does not stand alone, wherever it stands and whatever it lacks."""
import unittest
from unittest import mock

from planted import PlantedTree

import compile_headers


class Headers(PlantedTree):
    def check(self):
        return "\n".join(compile_headers.check(self.root))

    def test_headers_that_include_what_they_name_are_green(self):
        self.write("base/error.h", "#pragma once\n#include <string>\nstruct Error { std::string text; };\n")
        self.write("domain/cluster/world.h", '#pragma once\n#include <nlohmann/json_fwd.hpp>\n#include "base/error.h"\nError f(const nlohmann::json& given);\n')
        self.write("domain/limits/brake.h", '#pragma once\n#include <fmt/format.h>\n#include <nlohmann/json.hpp>\n#include "domain/cluster/world.h"\ninline auto g() { return f(nlohmann::json(fmt::format("{}", 1))); }\n')
        self.assertEqual(self.check(), "")

    def test_what_another_header_would_have_brought_along_is_missed(self):
        self.write("base/error.h", "#pragma once\n#include <string>\nstruct Error { std::string text; };\n")
        self.write("domain/cluster/world.h", "#pragma once\nError f();\n")
        self.write("src/app/controller.h", '#pragma once\n#include "base/error.h"\n#include "domain/cluster/world.h"\nError g();\n')
        self.assertRegex(self.check(), r"domain/cluster/world\.h:2:.*unknown type name 'Error'")

    def test_a_standard_header_is_missed(self):
        self.write("domain/contract/names.h", "#pragma once\nstd::vector<int> f();\n")
        self.assertIn("domain/contract/names.h:2:", self.check())

    def test_a_library_is_missed(self):
        self.write("base/error.h", '#pragma once\n#include <fmt/format.h>\ninline auto f() { return fmt::format("{}", 1); }\n')
        self.write("domain/contract/names.h", '#pragma once\ninline auto g() { return fmt::format("{}", 1); }\n')
        self.assertIn("domain/contract/names.h:2:", self.check())

    def test_a_header_with_a_library_that_is_no_module_is_compiled_too(self):
        self.write("src/app/run_loop.h", "#pragma once\n#include <openssl/bio.h>\nBIO* f(Missing given);\n")
        self.assertRegex(self.check(), r"src/app/run_loop\.h:3:.*Missing")

    def test_what_the_header_before_it_has_brought_along_is_missed_where_one_process_compiles_all(self):
        self.write("base/error.h", "#pragma once\n#include <string>\nstruct Error { std::string text; };\n")
        self.write("src/app/run_loop.h", "#pragma once\nError g(std::string text);\n")
        with mock.patch("os.cpu_count", return_value=1):
            self.assertRegex(self.check(), r"src/app/run_loop\.h:2:.*unknown type name 'Error'")


if __name__ == "__main__":
    unittest.main()
