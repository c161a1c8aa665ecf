"""Reads the lists of CMakeLists.txt: which source file stands in which room."""
import pathlib
import re

FOLDERS = ("base", "k8s-client", "domain", "reconcilers", "src", "simulator")
ROOMS = {
    "DHC_CORE_SOURCES": "core",
    "DHC_SHELL_SOURCES": "shell",
    "DHC_CPPREST_SOURCES": "shell",
    "DHC_MAIN_SOURCES": "shell",
}


def read_lists(root: pathlib.Path) -> dict[str, list[str]]:
    """Each list's entries in the order in which they stand there."""
    text = re.sub(r"#.*", "", (root / "CMakeLists.txt").read_text())
    lists = {}
    for name in ROOMS:
        found = re.search(rf"^set\({name}\b([^)]*)\)", text, re.M)
        if not found:
            raise SystemExit(f"CMakeLists.txt has no set({name} ...)")
        lists[name] = found.group(1).split()
    return lists


def files_on_disk(root: pathlib.Path) -> set[str]:
    """All .cc and .h files of the folders whose files must be listed."""
    found = set()
    for folder in FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.suffix in (".cc", ".h", ".cpp", ".hpp"):
                found.add(path.relative_to(root).as_posix())
    return found
