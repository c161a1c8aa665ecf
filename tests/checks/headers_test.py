"""The target all_headers goes red on a header that does not stand alone."""
import os
import pathlib
import subprocess
import tempfile
import unittest

from planted import ROOT

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(planted LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH "{cmake}")
include(options)
include(library)
dhc_library(planted good.cc good.h {header})
"""


class Headers(unittest.TestCase):
    def build(self, header):
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            (folder / "CMakeLists.txt").write_text(PROJECT.format(cmake=ROOT / "cmake", header=header))
            (folder / "good.h").write_text("#pragma once\n#include <string>\nstd::string f();\n")
            (folder / "bad.h").write_text("#pragma once\nstd::string g();\n")
            (folder / "good.cc").write_text('#include "good.h"\n#include "bad.h"\nstd::string f() { return {}; }\n')
            configure = ["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", "-DDHC_PCH=OFF"]
            subprocess.run(configure, check=True, capture_output=True, env=os.environ)
            build = ["cmake", "--build", folder / "build", "--target", "all", "all_headers"]
            return subprocess.run(build, capture_output=True, text=True)

    def test_headers_that_stand_alone_are_green(self):
        self.assertEqual(self.build("").returncode, 0)

    def test_a_header_that_lacks_an_include_is_found(self):
        built = self.build("bad.h")
        self.assertNotEqual(built.returncode, 0)
        self.assertIn("bad.h", built.stdout)


if __name__ == "__main__":
    unittest.main()
