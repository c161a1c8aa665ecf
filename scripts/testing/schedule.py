"""Runs steps beside each other, as far as they may and the cores go. What could not run has failed."""
from __future__ import annotations

import dataclasses
import os
import pathlib
import queue
import signal
import threading
import time
from collections.abc import Callable

from . import failures
from .counts import Counts
from .job import Failed, Job, log_of

CORES = os.cpu_count() or 1
QUIET = 60  # seconds without a line before one says what runs
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """One of the signals of ENDING, wherever the main thread was."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    work: Callable[[Job], Counts | None]  # None: nothing to count, as of a build
    after: tuple[str, ...] = ()  # steps that must have been carried out before
    cores: float = 1  # how many it keeps busy, of those that steps of its kind share
    # To those that do not: it gets what time they leave. A story waits most of its time, and a kubelet that is short of it ends pods later than their
    # owners replace them.
    yields: bool = False
    alone: str = ""  # of the steps that name the same thing, one at a time


@dataclasses.dataclass
class Ended:
    counts: Counts
    built: bool  # what needs this step may run
    why: str = ""  # it failed
    began: float = 0
    took: float = 0
    cpu: float = 0


class Schedule:
    """Steps run in the order in which they are given, unless one must wait while a later one may run."""

    def __init__(self, steps: list[Step], root: pathlib.Path, results: pathlib.Path) -> None:
        self.steps = {step.name: step for step in steps}
        self.root, self.results = root, results
        self.ended: dict[str, Ended] = {}
        self._jobs: dict[str, tuple[Job, float]] = {}
        self._news: queue.Queue[tuple[str, Ended]] = queue.Queue()
        self._start = time.monotonic()
        self._said = self._start

    def run(self) -> Counts:
        """Returns the sum. Ctrl-C, SIGTERM and SIGHUP end every process that was started, and the program with 130."""
        for number in ENDING:
            signal.signal(number, _interrupt)
        try:
            self._run()
        except Interrupted as interrupted:
            self._end(interrupted.number)
        total = Counts()
        for ended in self.ended.values():
            total = total.plus(ended.counts)
        return total

    def _run(self) -> None:
        while len(self.ended) < len(self.steps):
            self._start_what_can()
            if not self._jobs and self._news.empty():
                waiting = [name for name in self.steps if name not in self.ended]
                if not waiting:
                    return
                raise RuntimeError(f"steps wait for each other or for none of this run: {', '.join(waiting)}")
            try:
                name, ended = self._news.get(timeout=5)
            except queue.Empty:
                if time.monotonic() - self._said > QUIET:
                    self.say("still running: " + ", ".join(f"{name} ({_clock(time.monotonic() - began)})" for name, (_, began) in self._jobs.items()))
                continue
            self._take(name, ended)

    def say(self, text: str) -> None:
        self._said = time.monotonic()
        print(f"[{_clock(self._said - self._start)}] {text}", flush=True)

    def table(self) -> None:
        """What each step counted and cost, in the order in which they began."""
        width = max(map(len, self.ended), default=0)
        print(f"  {'step':<{width}} {'began':>6} {'took':>6} {'cpu s':>6} {'passed':>7} {'failed':>7}")
        for name, ended in sorted(self.ended.items(), key=lambda entry: entry[1].began):
            print(f"  {name:<{width}} {_clock(ended.began):>6} {_clock(ended.took):>6} {ended.cpu:>6.0f} {ended.counts.passed:>7} {ended.counts.failed:>7}")
        whole = time.monotonic() - self._start
        print(f"  {'in all':<{width}} {'':>6} {_clock(whole):>6} {sum(ended.cpu for ended in self.ended.values()):>6.0f}   ({CORES} cores; logs in {self.results.relative_to(self.root)})")

    def failures(self) -> list[str]:
        """What failed, a step each, and under it its tests by name: the last thing printed, since of a long run often only the end is kept."""
        lines = []
        for name, ended in self.ended.items():
            if ended.why:
                log = self._log(name)
                told = failures.told(log.read_text(errors="replace")) if log.is_file() else []
                lines += [f"  {name}: {ended.why}", *("    " + line for line in told)]
        return lines

    def _log(self, name: str) -> pathlib.Path:
        return log_of(self.results, name)

    def _start_what_can(self) -> None:
        for step in list(self.steps.values()):
            if step.name in self.ended or step.name in self._jobs:
                continue
            lost = [name for name in step.after if name in self.ended and not self.ended[name].built]
            if lost:
                self._take(step.name, Ended(Counts(0, 1), False, f"not run: it needs {lost[0]}, which failed", time.monotonic() - self._start))
                return self._start_what_can()
            running = [self.steps[name] for name in self._jobs]
            if not all(name in self.ended for name in step.after) or (step.alone and any(other.alone == step.alone for other in running)):
                continue
            alike = [other for other in running if other.yields == step.yields]
            if alike and sum(other.cores for other in alike) + step.cores > CORES:
                continue
            self.say(f"{step.name} ...")
            job = Job(step.name, self.root, self.results, step.yields)
            self._jobs[step.name] = (job, time.monotonic())
            threading.Thread(target=self._work, args=(step, job), daemon=True).start()

    def _work(self, step: Step, job: Job) -> None:
        began = time.monotonic()
        try:
            counts = step.work(job)
            ended = Ended(counts or Counts(), True)
            if counts is not None and counts.failed:
                ended.why = f"{counts.failed} failed"
        except Failed as error:
            ended = Ended(Counts(0, 1), False, str(error))
        except Exception as error:  # a fault of this program must not look like a success either
            ended = Ended(Counts(0, 1), False, f"{type(error).__name__}: {error}")
        ended.began, ended.took, ended.cpu = began - self._start, time.monotonic() - began, job.cpu
        self._news.put((step.name, ended))

    def _take(self, name: str, ended: Ended) -> None:
        first = ended.why and not any(other.why for other in self.ended.values())
        self._jobs.pop(name, None)
        self.ended[name] = ended
        log = self._log(name)
        tests = f": {ended.counts.passed} passed, {ended.counts.failed} failed" if ended.counts != (0, 0) else ""
        self.say(f"{name}{tests}, {ended.took:.0f} s" if not ended.why else f"{name}: FAILED: {ended.why} ({log.relative_to(self.root)})")
        if first and log.is_file():  # the first is the one to look at; the others may only follow from it
            print("".join(f"  | {line}\n" for line in log.read_text(errors="replace").splitlines()[-80:]), end="", flush=True)

    def _end(self, number: int) -> None:
        for ignored in ENDING:
            signal.signal(ignored, signal.SIG_IGN)
        self.say(f"{signal.Signals(number).name}: ending {', '.join(self._jobs) or 'nothing'}")
        stops = [threading.Thread(target=job.stop) for job, _ in self._jobs.values()]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        raise SystemExit(130)


def _interrupt(number: int, _frame: object) -> None:
    raise Interrupted(number)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes:02}:{seconds:02}"
