#!/usr/bin/env python3
"""Makes the image's file system from a built program: the program, what it loads, and what says where that came from.

usage: make_root.py PROGRAM ROOT       SOURCE_DATE_EPOCH in the environment is the time of every file (default 0)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import sbom

NAME = "device-health-controller"
USER = 65532
# The name service of glibc reads these; the program itself needs neither.
FILES = {
    "etc/passwd": f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/:/sbin/nologin\n",
    "etc/group": f"root:x:0:\nnonroot:x:{USER}:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


def output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def loaded_by(program: pathlib.Path) -> list[str]:
    """Paths of the shared libraries and the loader, as the loader itself finds them."""
    paths = re.findall(r"(/\S+) \(0x", output("ldd", str(program)))
    if not paths:
        raise SystemExit(f"make_root.py: {program} loads nothing: ldd says so")
    return sorted(set(paths))


def owner(path: str) -> str:
    """The Debian package of a file. dpkg knows a file by the name under which it was shipped, before /lib became a link to /usr/lib."""
    real = os.path.realpath(path)
    for name in (path, real, real.removeprefix("/usr"), "/usr" + path):
        found = subprocess.run(("dpkg-query", "--search", name), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise SystemExit(f"make_root.py: no Debian package has {path}")


def copy(source: str, root: pathlib.Path, name: str) -> pathlib.Path:
    target = root / name.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(os.path.realpath(source), target)
    return target


def same_time(root: pathlib.Path, seconds: int) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        os.utime(path, (seconds, seconds), follow_symlinks=False)
    os.utime(root, (seconds, seconds))


def main(program: pathlib.Path, root: pathlib.Path) -> None:
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    shutil.rmtree(root, ignore_errors=True)
    binary = copy(str(program), root, f"usr/bin/{NAME}")
    output("strip", "--strip-all", "--remove-section=.comment", str(binary))
    binary.chmod(0o755)
    packages = set()
    for path in loaded_by(program):
        copy(path, root, path).chmod(0o755)
        packages.add(owner(path))
    for package in sorted(packages):
        copy(f"/usr/share/doc/{package}/copyright", root, f"usr/share/doc/{package}/copyright").chmod(0o644)
        record = root / "var/lib/dpkg/status.d" / package
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(output("dpkg-query", "--status", package))
    copy("LICENSE", root, f"usr/share/doc/{NAME}/copyright").chmod(0o644)
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "sbom.spdx.json").write_text(sbom.document(binary, packages, seconds))
    same_time(root, seconds)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
