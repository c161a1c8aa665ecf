#!/usr/bin/env python3
"""Fails when an object of a core library can wait, speak, read a clock or keep state between calls.

usage: check_core_symbols.py ARCHIVE...

The linker does not do this: since glibc 2.34 sockets and threads are in libc itself. So the names that the compiled
code asks for are read with nm: C names must be on an allow-list, C++ names must not be on a deny-list, and no writable
data may be in our namespaces. A bare std::mutex leaves no trace here; check_includes.py sees its header.
"""
import re
import subprocess
import sys

# C names core may need: memory, strings, numbers, the language's own run time. Nothing else.
ALLOWED_C = re.compile(
    r"""^(_GLOBAL_OFFSET_TABLE_|_Unwind_\w+|__cxa_\w+|__gxx_personality_v0|__dso_handle|__dynamic_cast|__stack_chk_fail
    |__assert_fail|__u?(div|mod|mul)ti3|__u?divmodti4|__popcountdi2|__libc_single_threaded|__errno_location|abort|localeconv
    |(__isoc23_)?(strto(l|ll|ul|ull|d|f|ld))
    |mem(cpy|move|set|cmp|chr|rchr)|__mem\w+_chk|bcmp
    |str(n?len|cmp|ncmp|chr|rchr|str|ncpy|error_r)|__str\w+_chk|v?snprintf|__v?snprintf_chk
    |pthread_mutex_(un)?lock  # Beast's error category
    |is(alnum|alpha|digit|lower|print|punct|space|upper|xdigit)|to(lower|upper)
    |f?(min|max|abs)|floor|ceil|l?l?round|trunc|pow|log\w*|exp2?|ldexp|frexp|scalbn)$""",
    re.X,
)
# C++ names core may not use, whoever brings them.
DENIED_CXX = re.compile(
    r"""std::chrono::_V2::\w+::now|std::thread|std::jthread|std::this_thread|std::condition_variable|std::random_device
    |std::(__cxx11::)?basic_.?fstream|std::basic_filebuf|std::c(out|err|log|in)\b|std::ios_base::Init|std::filesystem
    |std::__basic_file|std::locale::global|std::__atomic_futex|std::(__basic_)?future|std::call_once
    |std::pmr::set_default|std::get_terminate
    |boost::asio::(detail::)?(socket_ops|scheduler|epoll_reactor|posix|io_context|execution_context|ip::)
    |YAML::LoadFile|YAML::LoadAllFromFile|simdjson::padded_string::load|spdlog::|prometheus::|fmt::v\d+::(v?print|detail::print)""",
    re.X,
)
# Writable data of our own: a global or a static local.
STATE = re.compile(r"(^|guard variable for )(dhc::|\(anonymous namespace\)::)")
NOT_DATA = re.compile(r"^(vtable|typeinfo|VTT|construction vtable)")


def nm(*arguments: str) -> list[str]:
    return subprocess.run(["nm", *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def constant_tables(archive: str) -> set[str]:
    """Tables of pointers and inline constants: read-only, though nm calls them data or unique.

    g++ 12 puts `constexpr std::array x = {...}` (without its arguments) into writable data: write the type out.
    """
    names = set()
    for line in nm("-f", "sysv", archive):
        columns = line.split("|")
        if len(columns) == 7 and columns[6].strip().startswith((".data.rel.ro", ".rodata")):
            names.add(columns[0].strip())
    return names


def check(archive: str) -> list[str]:
    raw, plain = nm("-A", archive), nm("-A", "-C", archive)
    if not raw:
        return [f"{archive}: no symbols at all"]
    defined = {line.split()[-1] for line in raw if not re.search(r"\s[Uw] ", line)}
    constant = constant_tables(archive)
    bad = set()
    for mangled, line in zip(raw, plain, strict=True):
        found = re.match(r"[^:]+:([^:]+):\s*[0-9a-f]*\s+([A-Za-z]) (.*)$", line)
        if not found:
            continue
        member, kind, name = found.groups()
        symbol = mangled.split()[-1]
        if kind in "Uw" and symbol not in defined:
            if symbol.startswith("_Z"):
                if DENIED_CXX.search(name):
                    bad.add(f"{member}: core asks for {name}")
            elif not ALLOWED_C.match(symbol) and kind == "U":
                bad.add(f"{member}: core asks for {name}()")
        elif kind in "bBdDuvV" and symbol not in constant and STATE.search(name) and not NOT_DATA.match(name):
            bad.add(f"{member}: core keeps state in {name}")
    return sorted(bad)


def main() -> int:
    if len(sys.argv) < 2:
        print("usage: check_core_symbols.py ARCHIVE...", file=sys.stderr)
        return 2
    bad = [line for archive in sys.argv[1:] for line in check(archive)]
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
