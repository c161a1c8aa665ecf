"""The completion scripts in the shells that they are for: bash, zsh (sourced, and found by its name in fpath) and fish.

usage: completion_test.py PROGRAM

A person's keys go to a shell in a terminal of its own; what the shell then has on its line, or lists, is looked at.
"""
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # seconds; other steps keep the same cores busy
READY = "echo READY-$((40 + 2))\n"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
NAMES = ("device-health-controller", "kubectl-device_health")


class Terminal:
    """A shell with its keyboard and screen."""

    def __init__(self, command: list[str], home: pathlib.Path, path: str) -> None:
        self.screen = ""
        environment = {"HOME": str(home), "PATH": path, "TERM": "dumb", "LANG": "C.UTF-8", "ZDOTDIR": str(home)}
        self.pid, self.keyboard = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execvpe(command[0], command, environment)

    def type(self, keys: str) -> None:
        self.screen = ""
        os.write(self.keyboard, keys.encode())

    def await_(self, wanted: str) -> bool:
        """Whether the screen shows it in time."""
        end = time.monotonic() + PATIENCE
        while not re.search(wanted, self.screen):
            if not select.select([self.keyboard], [], [], max(0.0, end - time.monotonic()))[0]:
                return False
            try:
                self.screen += ESCAPES.sub("", os.read(self.keyboard, 65536).decode(errors="replace"))
            except OSError:  # the shell has ended
                return False
        return True

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.keyboard)


def by_hand(command: list[str], home: pathlib.Path, path: str, lines: list[str]) -> list[str]:
    """The faults of a shell in which the script is loaded by these lines."""
    faults = []
    terminal = Terminal(command, home, path)
    try:
        for line in lines:
            terminal.type(line + "; " + READY)
            if not terminal.await_(r"READY-42"):
                return [f"{command[0]} does not take {line!r}: {terminal.screen[-400:]!r}"]
        for keys, wanted in (
            ("kubectl-device_health dev\t", r"devices "),
            ("device-health-controller valid\t", r"validate "),
            ("kubectl-device_health devices -o js\t", r"json"),
            ("kubectl-device_health devices --al\t", r"--all-"),
            ("device-health-controller replay rec\t", r"recording\.jsonl"),
            ("device-health-controller validate --config pol\t", r"policies\.yaml"),
        ):
            terminal.type(keys)
            if not terminal.await_(wanted):
                faults.append(f"{command[0]} after {lines[-1]!r}: {keys!r} shows {terminal.screen!r} and not {wanted!r}")
            terminal.type("\x15" + READY)  # takes the line back: a signal could meet a shell that still completes
            if not terminal.await_(r"READY-42"):
                return [*faults, f"{command[0]} is lost after {keys!r}: {terminal.screen!r}"]
    finally:
        terminal.close()
    return faults


def fish(home: pathlib.Path, path: str) -> list[str]:
    """fish says by itself what it would offer."""
    faults = []
    environment = {"HOME": str(home), "PATH": path, "TERM": "dumb", "LANG": "C.UTF-8"}
    for line, wanted in (
        ("kubectl-device_health dev", "devices\tList bad devices"),
        ("kubectl-device_health ", "explain\t"),
        ("device-health-controller valid", "validate\t"),
        ("kubectl-device_health devices -o js", "json"),
        ("kubectl-device_health devices --al", "--all-"),
        ("device-health-controller replay rec", "recording.jsonl"),
        ("device-health-controller validate --config pol", "policies.yaml"),
    ):
        script = f"device-health-controller completion fish | source; complete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, env=environment, cwd=home, timeout=PATIENCE, check=False)
        offered = done.stdout.splitlines()
        if not any(one.startswith(wanted) for one in offered):
            faults.append(f"fish offers {offered} and not {wanted!r} for {line!r}: {done.stderr}")
        if wanted.startswith(("devices", "json")) and any("policies.yaml" in one for one in offered):
            faults.append(f"fish offers files for {line!r}, which takes none")
    return faults


def main() -> int:
    program = pathlib.Path(sys.argv[1]).resolve()
    lacking = [shell for shell in ("bash", "zsh", "fish") if not shutil.which(shell)]
    if lacking:
        print(f"completion_test.py: {', '.join(lacking)} not found: scripts/install-debian.sh test", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        (home / "bin").mkdir()
        (home / "fpath").mkdir()
        for name in NAMES:
            (home / "bin" / name).symlink_to(program)
        for name in ("recording.jsonl", "policies.yaml"):
            (home / name).touch()
        path = f"{home / 'bin'}:/usr/bin:/bin"
        script = subprocess.run([program, "completion", "zsh"], capture_output=True, text=True, check=True).stdout
        (home / "fpath" / "_device-health-controller").write_text(script)
        load = "source <(device-health-controller completion {})"
        zsh = ["zsh", "-f", "-i"]
        begun = "PS1='%% '; unsetopt zle_bracketed_paste; autoload -U compinit"
        faults = [
            *by_hand(["bash", "--norc", "--noprofile", "-i"], home, path, ["PS1='$ '", load.format("bash")]),
            *by_hand(zsh, home, path, [begun, "compinit -u -D", load.format("zsh")]),
            *by_hand(zsh, home, path, [begun, "fpath=($HOME/fpath $fpath)", "compinit -u -D"]),
            *fish(home, path),
        ]
    print("\n".join(faults) or "completed in bash, zsh and fish")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
