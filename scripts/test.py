#!/usr/bin/env python3
"""Builds and runs every suite, says what it is doing, and counts. Nothing is skipped: what cannot run has failed.

usage: test.py [SUITE]...      suites: see --list; without one, all of them

The last line is "N passed, N failed", summed over the suites that ran.
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "results"
JOBS = str(os.cpu_count())
START = time.monotonic()


def say(text: str) -> None:
    minutes, seconds = divmod(int(time.monotonic() - START), 60)
    print(f"[{minutes:02}:{seconds:02}] {text}", flush=True)


class Failed(Exception):
    """A step that could not be carried out; its text says which."""


def run(*command: str, log: str | None = None, env: dict[str, str] | None = None) -> str:
    """Runs a command; with a log its output goes there and is shown only when the command fails."""
    lines = []
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          env={"UBSAN_OPTIONS": "print_stacktrace=1", **os.environ, **(env or {})}) as process:
        for line in process.stdout:
            lines.append(line)
            if not log:
                print(line, end="", flush=True)
    code = process.returncode
    output = "".join(lines)
    if log:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{log}.log").write_text(output)
    if code != 0:
        if log:
            print("".join(lines[-80:]), flush=True)
        raise Failed(f"{shlex.join(command)} ended with {code}", output)
    return output


def build(preset: str, *targets: str, define: tuple[str, ...] = ()) -> None:
    say(f"{preset}: configure and build {' '.join(targets) or 'everything'}")
    run("cmake", "--preset", preset, *define, log=f"{preset}-configure")
    run("cmake", "--build", "--preset", preset, *(f"--target={target}" for target in targets), log=f"{preset}-build")


def ctest(preset: str, label: str, pattern: str = ".") -> tuple[int, int]:
    """Runs the tests of one label; returns how many passed and failed. No test at all is a failure."""
    report = RESULTS / f"{preset}-{label}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    say(f"{preset}: run {label}")
    try:
        run("ctest", "--test-dir", f"build/{preset}", "-L", f"^{label}$", "-R", pattern, "-j", JOBS, "--output-on-failure",
            "--no-tests=error", "--output-junit", str(report), log=f"{preset}-{label}")
    except Failed:
        if not report.exists():
            raise
    suite = xml.parse(report).getroot()
    total, failed = int(suite.get("tests", 0)), int(suite.get("failures", 0))
    failed += int(suite.get("skipped", 0)) + int(suite.get("disabled", 0))
    if total == 0:
        raise Failed(f"{preset}: no test is labelled {label}")
    return total - failed, failed


def each(preset: str, *labels: str) -> tuple[int, int]:
    """Runs the tests of several labels; a label that could not run counts as one failure and the others still run."""
    counts = []
    for label in labels:
        try:
            counts.append(ctest(preset, label))
        except Failed as error:
            say(str(error.args[0]))
            counts.append((0, 1))
    return add(*counts)


def add(*counts: tuple[int, int]) -> tuple[int, int]:
    return sum(passed for passed, _ in counts), sum(failed for _, failed in counts)


def counted(output: str) -> tuple[int, int]:
    """The counts that a suite printed itself: its last "N passed, N failed", or go test's own verdicts."""
    found = re.findall(r"^(\d+) passed, (\d+) failed\b", output, re.M)
    if found:
        return int(found[-1][0]), int(found[-1][1])
    verdicts = re.findall(r"^--- (PASS|FAIL|SKIP)", output, re.M)
    return verdicts.count("PASS"), len(verdicts) - verdicts.count("PASS")


def script(*command: str, **keywords) -> tuple[int, int]:
    """A suite that is a program of its own and counts by itself."""
    if not (ROOT / command[0]).is_file():
        raise Failed(f"{command[0]} is missing")
    try:
        passed, failed = counted(run(*command, **keywords))
    except Failed as error:
        passed, failed = counted(error.args[1])
        return passed, max(failed, 1)
    if passed + failed == 0:
        raise Failed(f"{command[0]} ran no test")
    return passed, failed


def suite_format():
    say("format: clang-format")
    run("scripts/lint.sh", "format", log="format")
    return 1, 0


def suite_dev():
    build("dev", "all", "all_verify_interface_header_sets")
    return each("dev", "core", "scenarios", "loopback", "checks", "schema")


def suite_core():
    build("dev", "core_tests", "scenario_tests")
    return each("dev", "core", "scenarios")


def suite_schedules():
    """Random schedules of Jobs on failing hardware, by the thousand, split over the cores."""
    build("dev", "scenario_tests")
    count, parts = int(os.environ.get("DHC_SCHEDULES", "10000")), os.cpu_count()
    say(f"schedules: run {count} in {parts} parts")
    running = []
    for part in range(parts):
        bounds = {"DHC_FIRST_SCHEDULE": str(count * part // parts), "DHC_SCHEDULES": str(count * (part + 1) // parts)}
        running.append(subprocess.Popen(["build/dev/scenario_tests", "--test-case=in any schedule*", "--no-version"], cwd=ROOT,
                                        env={**os.environ, **bounds}, stdout=subprocess.PIPE, text=True))
    passed = failed = 0
    for process in running:
        output, _ = process.communicate()
        verdict = re.search(r"test cases: +(\d+) \| +(\d+) passed \| +(\d+) failed", output)
        if process.returncode != 0 or not verdict or int(verdict[1]) == 0:
            print(output[-4000:], flush=True)
            failed += 1
        else:
            passed += int(verdict[2])
    return passed, failed


def suite_release():
    build("release")
    counts = ctest("release", "checks", "core asks for nothing")
    run("build/release/device-health-controller", "version", log="release-version")
    return add(counts, (1, 0))


def suite_cpprest():
    """The program over the second transport; the transport's own conformance runs in dev's loopback suite."""
    build("cpprest", "device-health-controller")
    if "libcpprest" not in run("ldd", "build/cpprest/device-health-controller", log="cpprest-ldd"):
        raise Failed("cpprest: the program does not use cpprestsdk")
    run("build/cpprest/device-health-controller", "version", log="cpprest-version")
    listed = run("ctest", "--test-dir", "build/dev", "-N", "-R", "cpprest", log="cpprest-conformance")
    if "Total Tests: 0" in listed:
        raise Failed("cpprest: no conformance test names it")
    return 1, 0


def suite_sanitize():
    build("asan-ubsan", "core_tests", "scenario_tests", "loopback_tests", "device-health-controller")
    counts = each("asan-ubsan", "core", "scenarios", "loopback")
    build("tsan", "loopback_tests", "device-health-controller")
    return add(counts, each("tsan", "loopback"))


def suite_fuzz():
    say("fuzz: build the targets and run each for 20 s (FUZZ_SECONDS=60 for longer)")
    return script("scripts/fuzz.sh", os.environ.get("FUZZ_SECONDS", "20"))


def gofmt(folder: str) -> None:
    unformatted = run("gofmt", "-l", folder, log="gofmt").split()
    if unformatted:
        raise Failed(f"gofmt would change {', '.join(unformatted)}")


def suite_image():
    """The image, compared with the program that the release preset builds here."""
    build("release", "device-health-controller")
    say("image: build it from the Dockerfile, look into it, run it")
    return script("tests/image/run", "build/release/device-health-controller", log="image")


def suite_packaging():
    build("dev", "device-health-controller")  # quick if the dev suite has just built it, and never an old one
    gofmt("tests/packaging")
    say("packaging: render manifests and chart, check alerts and dashboard")
    return script("tests/packaging/run", log="packaging", env={"DHC_BINARY": str(ROOT / "build/dev/device-health-controller")})


def suite_cluster():
    build("dev", "device-health-controller")
    gofmt("tests/cluster")
    say("cluster: build a control plane and run the controller against it")
    return script("tests/cluster/run", "control-plane", env={"DHC_BINARY": str(ROOT / "build/dev/device-health-controller")})


def suite_node():
    build("dev", "device-health-controller")
    say("node: build kubelet, containerd and runc (and the image, if no other suite has), and run the stories on a real node")
    return script("tests/cluster/run", "node", env={"DHC_BINARY": str(ROOT / "build/dev/device-health-controller")})


def suite_tidy():
    say("tidy: clang-tidy over every file")
    run("scripts/lint.sh", "tidy", log="tidy")
    return 1, 0


SUITES = {
    "format": suite_format,
    "dev": suite_dev,
    "cpprest": suite_cpprest,
    "release": suite_release,
    "packaging": suite_packaging,
    "image": suite_image,
    "cluster": suite_cluster,
    "node": suite_node,
    "sanitize": suite_sanitize,
    "fuzz": suite_fuzz,
}
# Run only by name: a part of another suite, what is better run by the thousand, and the quarter of an hour of clang-tidy (make lint).
PARTS = {"core": suite_core, "schedules": suite_schedules, "tidy": suite_tidy}


def main() -> int:
    names = sys.argv[1:] or list(SUITES)
    if names == ["--list"]:
        print(" ".join([*SUITES, *PARTS]))
        return 0
    unknown = [name for name in names if name not in SUITES and name not in PARTS]
    if unknown:
        print(f"test.py: no suite {', '.join(unknown)}; there are: {' '.join([*SUITES, *PARTS])}", file=sys.stderr)
        return 2
    counts = {}
    for name in names:
        began = time.monotonic()
        try:
            counts[name] = (SUITES | PARTS)[name]()
        except (Failed, OSError) as error:
            say(f"{name}: FAILED: {error.args[0] if isinstance(error, Failed) else error}")
            counts[name] = (0, 1)
        passed, failed = counts[name]
        say(f"{name}: {passed} passed, {failed} failed in {time.monotonic() - began:.0f} s")
    say("summary")
    for name, (passed, failed) in counts.items():
        print(f"  {name:<10}{passed:>6} passed {failed:>4} failed")
    passed, failed = add(*counts.values())
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
