"""One running step: its processes, its log, its processor time."""
from __future__ import annotations

import contextlib
import os
import pathlib
import shlex
import signal
import subprocess
import threading
import time

from . import counts


class Failed(Exception):
    """A step that could not be carried out; its text says why."""


def log_of(results: pathlib.Path, name: str) -> pathlib.Path:
    """Where the output of the step of this name goes; a package in a folder of packages has a slash in its name."""
    return results / f"{name.replace(' ', '-').replace('/', '-')}.log"


class Job:
    """Runs commands one after the other, in the repository's root, with their output in one log."""

    def __init__(self, name: str, root: pathlib.Path, results: pathlib.Path, yields: bool = False) -> None:
        self.name, self.root, self.results, self.yields = name, root, results, yields
        self.log = log_of(results, name)
        self.cpu = 0.0  # seconds of user and system time of all commands so far
        self._processes: set[subprocess.Popen] = set()
        self._lock = threading.Lock()
        self._stopped = False
        results.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")

    def run(self, *command: str, **environment: str) -> str:
        """Returns what the command printed; a code other than 0 is a failure."""
        code, output = self.attempt(*command, **environment)
        if code != 0:
            raise Failed(f"{shlex.join(command)} ended with {code}")
        return output

    def attempt(self, *command: str, **environment: str) -> tuple[int, str]:
        return self.beside([(command, environment)])[0]

    def beside(self, commands: list[tuple[tuple[str, ...], dict[str, str]]]) -> list[tuple[int, str]]:
        """Runs all of them at once; returns the code and the output of each. A session of its own each, so that all it started can be ended."""
        started = []
        for index, (command, environment) in enumerate(commands):
            output = self.log if index == 0 else self.log.with_suffix(f".{index}.log")
            with output.open("ab" if index == 0 else "wb") as file:
                file.write(f"$ {shlex.join(command)}\n".encode())
                file.flush()
                offset = file.tell()
                with self._lock:
                    if self._stopped:
                        raise Failed("stopped")
                    try:
                        process = subprocess.Popen((*(("nice", "-n", "19") if self.yields else ()), *command), cwd=self.root, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                                   start_new_session=True, env={"UBSAN_OPTIONS": "print_stacktrace=1", **os.environ, **environment})
                    except OSError as error:
                        raise Failed(f"{command[0]}: {error.strerror}") from error
                    self._processes.add(process)
                    if self.yields:
                        _yield_with_all(process)
            started.append((process, output, offset))
        return [(self._wait(process), _text(output, offset)) for process, output, offset in started]

    def _wait(self, process: subprocess.Popen) -> int:
        # Waiting without taking the process: its number stays its own until nobody can signal it any more.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu += used.ru_utime + used.ru_stime
            self._processes.discard(process)
        return process.returncode

    def stop(self, patience: float = 60) -> None:
        """Ends what runs, and lets nothing more start: asks as Ctrl-C does, then insists."""
        for sent, seconds in ((signal.SIGINT, patience), (signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            with self._lock:
                self._stopped = True
                for process in self._processes:
                    with contextlib.suppress(ProcessLookupError, PermissionError):  # gone, or sudo's, which passes the signal on
                        os.killpg(process.pid, sent)
            end = time.monotonic() + seconds
            while self._processes and time.monotonic() < end:
                time.sleep(0.05)
            if not self._processes:
                return

    def counted(self, *command: str, **environment: str) -> counts.Counts:
        """A suite that is a program of its own and counts by itself."""
        if not (self.root / command[0]).is_file():
            raise Failed(f"{command[0]} is missing")
        code, output = self.attempt(*command, **environment)
        found = counts.printed(output)
        if code != 0:
            return counts.Counts(found.passed, max(found.failed, 1))
        if found == (0, 0):
            raise Failed(f"{command[0]} ran no test")
        return found

    def ctest(self, preset: str, label: str, pattern: str = ".", jobs: int = 1) -> counts.Counts:
        """The tests of one label. None at all is a failure."""
        report = self.results / f"{preset}-{label}.xml"
        report.unlink(missing_ok=True)
        code, _ = self.attempt("ctest", "--test-dir", f"build/{preset}", "-L", f"^{label}$", "-R", pattern, "-j", str(jobs), "--output-on-failure",
                               "--no-tests=error", "--output-junit", str(report))
        found = counts.junit(report) if report.exists() else counts.Counts()
        if found == (0, 0):
            raise Failed(f"{preset}: no test is labelled {label}")
        return counts.Counts(found.passed, max(found.failed, 0 if code == 0 else 1))


def _yield_with_all(process: subprocess.Popen) -> None:
    """Where the kernel groups the processes of a session, niceness counts within a session alone, and the group has one of its own."""
    with contextlib.suppress(OSError):  # no groups, or not ours to say
        pathlib.Path(f"/proc/{process.pid}/autogroup").write_text("19")


def _text(file: pathlib.Path, offset: int) -> str:
    with file.open("rb") as stream:
        stream.seek(offset)
        return stream.read().decode(errors="replace")
