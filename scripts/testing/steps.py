"""Every step there is, and which of them a suite asks for."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import shutil

from . import counts
from .counts import Counts
from .job import Failed, Job
from .schedule import CORES, Step

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEV_PROGRAM = {"DHC_BINARY": str(ROOT / "build/dev/device-health-controller")}

# Stories on a real API server that `make test` tells: what is seen, noticed, tainted, evicted once and replaced; all others belong to `make verify`.
STORIES_OF_TEST = ("controller", "taint")
SCHEDULES_OF_A_PART = 500  # of each kind: some minutes
CAMPAIGN = {"writes": 60, "codes": 60, "streams": 400, "machine": 1, "bytes": 120}  # parts, and so many places before what was found is said
CAMPAIGN_RESULTS = ROOT / "build/campaign"
RECORDINGS = ROOT / "build/recordings"  # of scenarios and stories
SCHEDULE_COUNTS = ROOT / "build/schedules/coverage"  # what they have reached, from FROM=0 on
STORIES_OF_NODES = ("realnode", "node", "incluster")  # a kubelet and containerd of their own, as root


def format_(job: Job) -> Counts:
    job.run("scripts/lint.sh", "format")
    unformatted = job.run("gofmt", "-l", "tests/cluster", "tests/packaging", "bench/peer", "conformance").split()
    if unformatted:
        raise Failed(f"gofmt would change {', '.join(unformatted)}")
    return Counts(1, 0)


def only(*command: str):
    """A command that counts nothing."""
    def work(job: Job) -> None:
        job.run(*command)

    return work


def configure(preset: str) -> Step:
    return Step(f"{preset} configure", only("cmake", "--preset", preset), alone=f"build/{preset}")


def build(preset: str, target: str, name: str = "") -> Step:
    """A part of a build folder: parts follow each other, so that the first is tested while the next is compiled."""
    work = only("cmake", "--build", "--preset", preset, f"--target={target}", "--parallel", str(CORES))
    return Step(f"{preset} {name or target}", work, after=(f"{preset} configure",), cores=2, alone=f"build/{preset}")


def ctest(preset: str, label: str, pattern: str = "."):
    return lambda job: job.ctest(preset, label, pattern, CORES)


def cases_of(job: Job, *command: str) -> int:
    """How many test cases a suite of doctest has under its filters."""
    found = re.search(r"test cases passing the current filters: (\d+)", job.run(*command, "--count"))
    return int(found[1]) if found else 0


def whole(preset: str, target: str, *options: str, **environment: str):
    """A suite of doctest in one process a core instead of one a test: with sanitizers a process needs a fifth of a second only to start."""
    def work(job: Job) -> Counts:
        program = f"build/{preset}/{target}"
        total = cases_of(job, program, *options)
        if not total:
            raise Failed(f"{program} has no test")
        bounds = [(total * part // CORES + 1, total * (part + 1) // CORES) for part in range(CORES)]
        # By chance, but the same one in each process: what takes long is not all in one of them. A test that hangs ends here.
        one = ("timeout", "1500", program, *options, "--no-version", "--order-by=rand", "--rand-seed=1")
        ended = job.beside([((*one, f"--first={first}", f"--last={last}"), environment) for first, last in bounds])
        # A summary counts as passed what stands outside of the part, too: only what has failed is of the part.
        failed = 0
        for (first, last), (code, output) in zip(bounds, ended):
            found = counts.doctest(output)
            failed += found.failed if found != (0, 0) and (code == 0) == (found.failed == 0) else last - first + 1
        return Counts(total - failed, failed)

    return work


def scenarios(job: Job) -> Counts:
    """Every scenario and the first schedules of each kind, and whether these have reached what they are to reach."""
    folder = ROOT / "build/dev/coverage"
    shutil.rmtree(folder, ignore_errors=True)
    total = ctest("dev", "scenarios")(job)
    sources = "".join(file.read_text() for file in sorted((ROOT / "tests/scenarios").glob("*_test.cc")))
    kinds = re.findall(r'run_schedules\("([^"]+)"', sources)
    code, output = job.attempt("tools/schedule_coverage.py", str(folder), *kinds)
    if code != 0:
        print("".join(f"  {line}\n" for line in output.splitlines()), end="", flush=True)
    return total.plus(Counts(1, 0) if kinds and code == 0 else Counts(0, 1))


def emptied(folder: pathlib.Path) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return str(folder)


def stories(package: str, place: str = "control-plane"):
    return lambda job: job.counted("tests/cluster/run", place, f"./{package}", **DEV_PROGRAM, DHC_RECORDINGS=emptied(RECORDINGS / "stories" / package))


def job_stories(job: Job) -> Counts:
    """Those of the package `controller` that are about Jobs: on an older release the Job controller is another."""
    found = set()
    for file in sorted((ROOT / "tests/cluster/controller").glob("*_test.go")):
        tests = re.findall(r"^func (Test\w+)", file.read_text(), re.M)
        found.update(name for name in tests if "job" in file.name or "Job" in name)
    names = "|".join(sorted(found))
    return job.counted("tests/cluster/run", "control-plane", "./controller", "-run", f"^({names})$", **DEV_PROGRAM)


def conform(job: Job) -> Counts:
    """Whether the model can go the ways of all that the scenarios record."""
    folder = emptied(RECORDINGS / "scenarios")
    played = whole("dev", "scenario_tests", DHC_RECORDINGS=folder, DHC_COVERAGE=folder, DHC_SCHEDULES=os.environ.get("DHC_SCHEDULES", "12"))(job)
    if played.failed:
        raise Failed(f"{played.failed} scenarios failed")
    return job.counted("tests/model/conform", folder)


def story_packages() -> list[str]:
    """The packages of tests/cluster that have tests."""
    return sorted({file.parent.relative_to(ROOT / "tests/cluster").as_posix() for file in (ROOT / "tests/cluster").rglob("*_test.go")})


def vet(job: Job) -> Counts:
    """go vet, which the runs of the Go tests leave out."""
    for module in ("tests/cluster", "tests/packaging", "bench/peer", "conformance"):
        job.run(f"{module}/run", "vet")
    return Counts(1, 0)


def schedules(job: Job) -> Counts:
    """Random schedules of each kind by number, $FROM up to $TO, a part at a time on each core: an interrupted run is taken up where its last line says."""
    first, last = int(os.environ.get("FROM") or 0), int(os.environ.get("TO") or 10_000)
    command = ("build/schedules/scenario_tests", "--test-case=in any schedule*", "--no-version")
    kinds = cases_of(job, *command)
    if first >= last or not kinds:
        raise Failed(f"no schedule of {kinds} kinds is in FROM={first} TO={last}")
    if first == 0:
        shutil.rmtree(SCHEDULE_COUNTS, ignore_errors=True)
    total = Counts()
    while first < last:
        end = min(last, first + SCHEDULES_OF_A_PART * CORES)
        bounds = [(first + (end - first) * part // CORES, first + (end - first) * (part + 1) // CORES) for part in range(CORES)]
        for code, output in job.beside([(command, {"DHC_FIRST_SCHEDULE": str(low), "DHC_SCHEDULES": str(high)}) for low, high in bounds if low < high]):
            verdict = counts.doctest(output)
            total = total.plus(verdict if code == 0 and verdict.passed == kinds else Counts(verdict.passed, max(verdict.failed, 1)))
        first = end
        reached = job.run("tools/schedule_coverage.py", str(SCHEDULE_COUNTS), "--fold")
        print(f"  schedules up to {first} of each of {kinds} kinds: {total.failed} failed; to go on: FROM={first} TO={last}", flush=True)
    print(reached, flush=True)
    return total


def campaign(job: Job) -> Counts:
    """$PART of the fault campaign, or all of it, by the numbers of its places from $FROM up to $TO: an interrupted one is taken up where its last line says."""
    first, last = int(os.environ.get("FROM") or 0), int(os.environ.get("TO") or 1_000_000)
    part = os.environ.get("PART")
    if part and part not in CAMPAIGN or not part and (first, last) != (0, 1_000_000):
        raise Failed(f"PART is one of {', '.join(CAMPAIGN)}, and FROM and TO are of one part")
    CAMPAIGN_RESULTS.mkdir(parents=True, exist_ok=True)
    for name in [part] if part else CAMPAIGN:
        low, high = first, last
        while low < high:
            end = min(high, low + CAMPAIGN[name])
            # A failed place is in the results, and others go on.
            code, output = job.attempt("tests/cluster/run", "control-plane", "./campaign", "-timeout", "5h", "-parallel", os.environ.get("DHC_CAMPAIGN_PLANES", "2"), **DEV_PROGRAM,
                                       DHC_CAMPAIGN=name, DHC_CAMPAIGN_FROM=str(low), DHC_CAMPAIGN_TO=str(end), DHC_CAMPAIGN_RESULTS=str(CAMPAIGN_RESULTS))
            told = re.search(rf"{name}: \d+ of (\d+) places", output)
            if code != 0 and not re.search(r"^--- FAIL", output, re.M):
                raise Failed(f"{name} from {low} to {end} did not run")
            high, low = min(high, int(told[1]) if told else 0), end
            if low < high:
                print(f"  {name} up to {low}; to go on: PART={name} FROM={low} TO={high}", flush=True)
    print(job.run("tests/cluster/campaign/table.py", str(CAMPAIGN_RESULTS)), flush=True)
    found = [json.loads(line) for line in (CAMPAIGN_RESULTS / "results.jsonl").read_text().splitlines()]
    latest = {(one["Part"], one["Place"], one["Fault"]): one["Same"] for one in found}
    return Counts(sum(latest.values()), len(latest) - sum(latest.values()))


def program_says_its_version(preset: str):
    def work(job: Job) -> Counts:
        job.run(f"build/{preset}/device-health-controller", "version")
        return Counts(1, 0)

    return work


def second_transport(job: Job) -> Counts:
    """The program over cpprestsdk, from the object files of the dev preset; and that the preset which builds it from nothing is there."""
    job.run("cmake", "--preset", "cpprest")
    if "libcpprest" not in job.run("ldd", "build/dev/program_over_cpprest"):
        raise Failed("the program over the second transport does not use cpprestsdk")
    job.run("build/dev/program_over_cpprest", "demo", "--act", "dra", "--speed", "10")
    return Counts(1, 0)


def tidy(scope: str):
    def work(job: Job) -> Counts:
        output = job.run("scripts/lint.sh", scope)
        print("".join(f"  {line}\n" for line in re.findall(r"^tidy: .*", output, re.M)), end="", flush=True)
        return Counts(1, 0)

    return work


def image(*arguments: str):
    return lambda job: job.counted("tests/image/run", *arguments)


def is_timed(name: str) -> bool:
    """What plays against clocks of others, and waits for them most of the time."""
    return name.startswith(("stories ", "campaign", "page", "peer", "packaging", "conformance")) or name.endswith("loopback")


def every_step() -> list[Step]:
    """In the order in which they should start: what others wait for first."""
    program = "dev device-health-controller"
    programs = (program, "dev audit-check")
    others = sorted(set(story_packages()) - {*STORIES_OF_TEST, *STORIES_OF_NODES})
    also = {"upgrade": ("release 0.1.0",), "owners": ("owner controllers",), "queue": ("kueue",)}
    steps = [
        Step("format", format_),
        Step("control plane", only("tests/cluster/run", "prepare"), cores=2),
        Step("release 0.1.0", only("tests/cluster/run", "prepare", "earlier"), after=("control plane",), cores=2),
        Step("owner controllers", only("tests/cluster/run", "prepare", "owners"), after=("control plane",), cores=2),
        Step("kueue", only("tests/cluster/run", "prepare", "kueue"), after=("control plane",), cores=2),
        Step("node programs", only("tests/cluster/run", "prepare", "node"), after=("control plane",), cores=2),
        configure("dev"),
        build("dev", "device-health-controller"),
        build("dev", "audit-check"),
        build("dev", "core_tests"),
        build("dev", "scenario_tests"),
        build("dev", "loopback_tests"),
        Step("core", ctest("dev", "core"), after=("dev core_tests",), cores=CORES),
        Step("scenarios", scenarios, after=("dev scenario_tests",), cores=CORES),
        Step("loopback", ctest("dev", "loopback"), after=("dev loopback_tests",)),
        Step("schema", ctest("dev", "schema"), after=(program,)),
        Step("packaging", lambda job: job.counted("tests/packaging/run", **DEV_PROGRAM), after=(program,), cores=2),
        Step("checks", ctest("dev", "checks"), after=(program,)),
        *(Step(f"stories {package}", stories(package), after=("control plane", *also.get(package, ()), *programs), cores=0.5)
          for package in (*STORIES_OF_TEST, *others)),
        Step("job stories", job_stories, after=("control plane", program), cores=0.5),
        Step("peer", lambda job: job.counted("bench/peer/run", "test", **DEV_PROGRAM), after=(program,), cores=0.5),
        Step("conformance", lambda job: job.counted("conformance/run", "test")),
        build("dev", "page_cluster"),
        Step("page", lambda job: job.counted("tests/page/run"), after=(program, "dev page_cluster")),
        Step("model", lambda job: job.counted("tests/model/run")),
        Step("conform", conform, after=("dev scenario_tests",), cores=CORES),
        # Those of `make test` have begun long before, or in the run before this one.
        Step("conform stories", lambda job: job.counted("tests/model/conform", str(RECORDINGS / "stories")),
             after=tuple(f"stories {package}" for package in (*others, *STORIES_OF_NODES))),
        configure("release"),
        build("release", "all", "build"),
        Step("image build", only("tests/image/run", "--only-build"), cores=2, alone="image"),
        *(Step(f"stories {package}", stories(package, "node"), cores=2, alone="node",
               after=("node programs", *programs, *(("image build",) if package == "incluster" else ()))) for package in STORIES_OF_NODES),
        configure("asan-ubsan"),
        build("asan-ubsan", "core_tests"),
        build("asan-ubsan", "scenario_tests"),
        build("asan-ubsan", "loopback_tests"),
        build("asan-ubsan", "fuzzers"),
        # What plays the same code for days or on thousands of nodes says nothing more to a sanitizer, nor does a second plan of each turn.
        Step("asan core", whole("asan-ubsan", "core_tests", "--test-suite-exclude=long", DHC_FEW_PLANS="1"), after=("asan-ubsan core_tests",), cores=CORES),
        # Each schedule runs the same code: a part of them is enough for a sanitizer, which is ten times as slow.
        Step("asan scenarios", whole("asan-ubsan", "scenario_tests", DHC_FEW_PLANS="1", DHC_SCHEDULES="12", DHC_LEASE_SCHEDULES="100"), after=("asan-ubsan scenario_tests",), cores=CORES),
        Step("asan loopback", ctest("asan-ubsan", "loopback"), after=("asan-ubsan loopback_tests",), cores=CORES),
        configure("tsan"),
        build("tsan", "loopback_tests"),
        Step("tsan loopback", ctest("tsan", "loopback"), after=("tsan loopback_tests",), cores=CORES),
        Step("tidy changed", tidy("changed"), cores=CORES),
        build("dev", "program_over_cpprest"),
        Step("second transport", second_transport, after=("dev program_over_cpprest",)),
        build("dev", "cpprest_tests"),
        Step("cpprest", ctest("dev", "cpprest"), after=("dev cpprest_tests",)),
        Step("headers", ctest("dev", "headers"), after=("dev configure",), cores=CORES),
        Step("release", ctest("release", "checks", "core asks for nothing"), after=("release build",)),
        Step("release program", program_says_its_version("release"), after=("release build",)),
        Step("image", image("build/release/device-health-controller"), after=("release build", "image build"), alone="image"),
        Step("fuzz", lambda job: job.counted("scripts/fuzz.sh", os.environ.get("FUZZ_SECONDS", "20")), after=("asan-ubsan fuzzers",), alone="build/asan-ubsan"),
        Step("go vet", vet),
        Step("tidy quick", tidy("quick"), cores=CORES),
        Step("tidy", tidy("tidy"), cores=CORES),
        Step("campaign", campaign, after=("control plane", *programs), cores=CORES),
        configure("schedules"),
        build("schedules", "scenario_tests"),
        Step("schedules", schedules, after=("schedules scenario_tests",), cores=CORES),
    ]
    return [dataclasses.replace(step, yields=not is_timed(step.name)) for step in steps]


TEST = ("format", "core", "scenarios", "loopback", "checks", "schema", "packaging", *(f"stories {package}" for package in STORIES_OF_TEST))


def suites(steps: list[Step]) -> dict[str, tuple[str, ...]]:
    """The steps that each suite asks for; what they need comes with them."""
    every_story = tuple(step.name for step in steps if step.name.startswith("stories "))
    of_nodes = tuple(f"stories {package}" for package in STORIES_OF_NODES)
    sanitize = ("asan core", "asan scenarios", "asan loopback", "tsan loopback")
    verify = (*TEST, *every_story, "headers", "release", "release program", "second transport", "cpprest", "peer", "conformance", "page", "model", "conform", "image", *sanitize, "fuzz", "go vet", "tidy quick")
    return {
        "test": TEST,
        "verify": tuple(dict.fromkeys(verify)),
        "core": ("core", "scenarios"),
        "dev": ("core", "scenarios", "loopback", "checks", "headers", "schema"),
        "cluster": tuple(name for name in every_story if name not in of_nodes),
        # What the Deployment needs of a node is the same in every release.
        "node": of_nodes if not os.environ.get("DHC_K8S") else of_nodes[:2],
        "older": (*of_nodes[:2], "job stories", *(f"stories {package}" for package in ("joblag", "owners", "rbac", "taint"))),
        "packaging": ("packaging",),
        "peer": ("peer",),
        "page": ("page",),
        "model": ("model",),
        "conform": ("conform",),
        "conform-stories": ("conform stories",),  # not of verify: of most packages nobody has looked at what it says
        "image": ("image",),
        "sanitize": sanitize,
        "fuzz": ("fuzz",),
        "lint": ("format", "tidy", "go vet"),
        "lint-quick": ("format", "tidy quick"),
        "lint-changed": ("tidy changed",),
        "campaign": ("campaign",),
        "schedules": ("schedules",),
    }


def wanted(steps: list[Step], names: set[str]) -> list[Step]:
    """Those steps and what they need, in the order of the whole."""
    needs = {step.name: step.after for step in steps}
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += needs[name]
    return [step for step in steps if step.name in found]
