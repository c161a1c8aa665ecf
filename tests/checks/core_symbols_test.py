"""check_core_symbols.py goes red on each kind of stray code, compiled for real, and stays green on what core does."""
import concurrent.futures
import os
import pathlib
import subprocess
import tempfile
import unittest

from planted import ROOT  # noqa: F401  (sets the path of the tools)

import check_core_symbols

BAD = {
    "clock": ("#include <chrono>\nnamespace dhc { auto f() { return std::chrono::steady_clock::now(); } }", "now"),
    "time": ("#include <ctime>\nnamespace dhc { auto f() { return std::time(nullptr); } }", "time()"),
    "thread": ("#include <thread>\nnamespace dhc { void f() { std::jthread t([] {}); } }", "thread"),
    "pause": ("#include <thread>\nnamespace dhc { void f() { std::this_thread::sleep_for(std::chrono::seconds(1)); } }", "nanosleep"),
    "atomic_wait": ("#include <atomic>\nnamespace dhc { void f(std::atomic<int>& a) { a.wait(0); } }", "syscall"),
    "socket": ("#include <sys/socket.h>\nnamespace dhc { int f() { return socket(AF_INET, SOCK_STREAM, 0); } }", "socket()"),
    "asio": ("#include <boost/asio/io_context.hpp>\nnamespace dhc { void f() { boost::asio::io_context c; c.run(); } }", "core asks for"),
    "file": ("#include <fstream>\nnamespace dhc { void f() { std::ifstream in(\"x\"); } }", "ifstream"),
    "fopen": ("#include <cstdio>\nnamespace dhc { void f() { std::fopen(\"x\", \"r\"); } }", "fopen()"),
    "printf": ("#include <cstdio>\nnamespace dhc { void f(int n) { std::printf(\"%d\", n); } }", "printf"),
    "cout": ("#include <iostream>\nnamespace dhc { void f() { std::cout << 1; } }", "cout"),
    "fmt_print": ("#include <fmt/core.h>\nnamespace dhc { void f() { fmt::print(\"{}\", 1); } }", "print"),
    "log": ("#include <spdlog/spdlog.h>\nnamespace dhc { void f() { spdlog::info(\"x\"); } }", "core asks for"),
    "yaml_file": ("#include <yaml-cpp/yaml.h>\nnamespace dhc { void f() { YAML::LoadFile(\"x\"); } }", "LoadFile"),
    "random": ("#include <random>\nnamespace dhc { unsigned f() { return std::random_device{}(); } }", "random_device"),
    "rand": ("#include <cstdlib>\nnamespace dhc { int f() { return std::rand(); } }", "rand()"),
    "getenv": ("#include <cstdlib>\nnamespace dhc { char* f() { return std::getenv(\"x\"); } }", "getenv()"),
    "global": ("namespace dhc { int counter = 0; int f() { return ++counter; } }", "keeps state in dhc::counter"),
    "hidden_global": ("namespace { int counter; }\nnamespace dhc { int f() { return ++counter; } }", "keeps state in"),
    "static_local": ("#include <string>\nnamespace dhc { std::string& f() { static std::string s(\"x\"); return s; } }", "keeps state in"),
    "thread_local": ("namespace dhc { int f() { thread_local int n = 0; return ++n; } }", "keeps state in"),
    "inline_global": ("namespace dhc { inline int counter = 0; int f() { return ++counter; } }", "keeps state in"),
}
GOOD = r"""
#include <fmt/format.h>
#include <re2/re2.h>
#include <yaml-cpp/yaml.h>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
namespace dhc {
constexpr std::array<std::string_view, 2> kNames{"a", "b"};
const char* const kTable[] = {"x", "y"};
struct Base { virtual ~Base() = default; virtual int f() const { return 1; } };
struct Derived : Base { int f() const override { return 2; } };
std::string g(std::string_view s, std::chrono::milliseconds ms) {
  std::map<std::string, int> m{{std::string(s), 1}};
  std::shared_ptr<Base> b = std::make_shared<Derived>();
  if (dynamic_cast<Derived*>(b.get()) == nullptr) throw std::runtime_error("no");
  double d = 0;
  std::from_chars(s.data(), s.data() + s.size(), d);
  RE2 re("x+", RE2::Quiet);
  if (RE2::PartialMatch(re2::StringPiece(s.data(), s.size()), re)) return YAML::Load(std::string(s)).as<std::string>();
  return fmt::format("{} {} {} {}", kNames[0], kTable[1], ms.count(), nlohmann::json(m).dump() + std::to_string(d));
}
}
"""


class CoreSymbols(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def check(self, name, text, *flags):
        source, object_file, archive = (self.folder / (name + end) for end in (".cc", ".o", ".a"))
        source.write_text(text)
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, "-std=c++23", "-w", *flags, "-c", source, "-o", object_file], check=True)
        subprocess.run(["ar", "rc", archive, object_file], check=True)
        return check_core_symbols.check(str(archive))

    def test_what_core_does_is_green_in_both_builds(self):
        for flags in (("-O0",), ("-O2", "-D_FORTIFY_SOURCE=3", "-D_GLIBCXX_ASSERTIONS", "-fstack-protector-strong")):
            with self.subTest(flags=flags):
                self.assertEqual(self.check("good", GOOD, *flags), [])

    def test_each_kind_of_stray_code_is_found(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = {name: pool.submit(self.check, name, text, "-O1") for name, (text, _) in BAD.items()}
        for name, (_, word) in BAD.items():
            with self.subTest(name):
                bad = runs[name].result()
                self.assertTrue(any(word in line for line in bad), f"{name}: {bad}")


if __name__ == "__main__":
    unittest.main()
