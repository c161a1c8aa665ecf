"""How spin makes a program of a model, and gcc of that."""
import pathlib
import shlex
import subprocess


def build(model: pathlib.Path, defines: list[str], flags: list[str], folder: pathlib.Path) -> None:
    """Makes `folder`/pan."""
    spin = ["spin", "-a", *defines, str(model)]
    for command in (spin, ["gcc", "-w", *flags, "-o", "pan", "pan.c"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0 or not list(folder.glob("pan.c")):
            raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
