"""The demo's colours: on a terminal, and neither with NO_COLOR nor on TERM=dumb nor into a pipe.

usage: demo_test.py PROGRAM
"""
import os
import pty
import subprocess
import sys

COMMAND = ("demo", "--act", "dra", "--speed", "10")
TOLD = "Act 1 of 1, dra"


def on_terminal(program: str, **environment: str) -> str:
    """What it writes there until it ends."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(program, [program, *COMMAND], {"PATH": "/usr/bin:/bin", **environment})
    written = b""
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # the terminal has nobody on it any more
            break
        if not more:
            break
        written += more
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    return written.decode(errors="replace") + ("" if code == 0 else f"\nended with {code}")


def main(program: str) -> int:
    faults = []
    for name, written, coloured in (
            ("on a terminal", on_terminal(program, TERM="xterm"), True),
            ("on a terminal with NO_COLOR", on_terminal(program, TERM="xterm", NO_COLOR="1"), False),
            ("on TERM=dumb", on_terminal(program, TERM="dumb"), False),
            ("into a pipe", subprocess.run((program, *COMMAND), stdout=subprocess.PIPE, text=True, check=False).stdout, False)):
        if TOLD not in written or "It adds up" not in written:
            faults.append(f"{name} it does not play: {written[-600:]!r}")
        elif ("\x1b[" in written) != coloured:
            faults.append(f"{name} it is {'not ' if coloured else ''}coloured: {written[:600]!r}")
    print("\n".join(faults) or "coloured where it should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
