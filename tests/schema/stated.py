"""What the comments of all-keys.yaml and the tables of docs/configuration.md say of a key, held to the schema: its default, its limits, its words."""
import pathlib
import re
from collections.abc import Iterator

EXAMPLE = "manifests/examples/all-keys.yaml"
PAGE = "docs/configuration.md"
KINDS = {"DeviceHealthPolicy": "policy", "ControllerLimits": "limits"}
SPAN = re.compile(r"(\w+) to (\w+)\b")


def resolved(schema: dict, value: dict) -> dict:
    reference = value.get("$ref", "")
    return schema["$defs"][reference.rsplit("/", 1)[1]] if reference else value


def property_at(schema: dict, kind: str, path: tuple) -> dict | None:
    """The schema of this key of a kind's spec; none: below a free map."""
    value = schema["$defs"][KINDS[kind]]
    for key in path:
        value = resolved(schema, value)
        value = value.get("items", value).get("properties", {}).get(key)
        if value is None:
            return None
    return resolved(schema, value)


def shown(default) -> str:
    if isinstance(default, list):
        return f"[{', '.join(map(shown, default))}]"
    if default is None or isinstance(default, bool):
        return {None: "null", True: "true", False: "false"}[default]
    return f'"{default}"' if default in ("True", "False") else str(default)


def span_of(value: dict) -> str | None:
    """The limits in the words of our pages; those of a time stand in its description."""
    if "minimum" in value:
        low, refused = value["minimum"], value.get("not", {}).get("enum")
        return f"{low}, {max(refused) + 1} to {value['maximum']}" if refused else f"{low} to {value['maximum']}"
    found = SPAN.findall(value.get("description", "")) if value.get("type") == "string" else []
    return " to ".join(found[-1]) if found and found[-1][1][-1] in "hms" else None


def wanted(value: dict) -> list[str]:
    """What must be said of the key."""
    words = [f"({shown(value['default'])})"] if "default" in value and value["default"] != "" else []
    if (span := span_of(value)) is not None:
        words.append(span)
    if len(value.get("enum", ())) > 1:
        words.append(" | ".join(shown(word) for word in value["enum"]))
    return words


def commented(text: str) -> Iterator[tuple[str, tuple, str]]:
    """Kind, path below spec and comment of each key; the comment of a map that says `each` is also one of its keys'."""
    kind, stack = "", []
    for line in text.splitlines():
        if found := re.match(r"kind: (\w+)", line):
            kind, stack = found[1], []
        found = re.match(r"( *)(- )?(\w+):(?:[^#'\"]|'[^']*'|\"[^\"]*\")*(?:#\s*(.*))?$", line)
        if found is None or line.startswith("#"):
            continue
        depth = len(found[1]) + len(found[2] or "")
        while stack and stack[-1][0] >= depth:
            stack.pop()
        outer = stack[-1][2] if stack and stack[-1][2].startswith("each ") else ""
        comment = found[4] or ""
        stack.append((depth, found[3], comment))
        path = tuple(name for _, name, _ in stack)
        if path[0] == "spec" and len(path) > 1:
            yield kind, path[1:], f"{comment} {outer}".strip()


def rows(text: str) -> Iterator[tuple[tuple, str, str]]:
    """Path below spec, default and values of each row of the page's tables; below a heading `key` without spec before it."""
    above = ()
    for line in text.splitlines():
        if found := re.match(r"#+ (\w+)$", line):
            above = () if found[1] in KINDS else (found[1],)
        elif found := re.match(r"\| `spec\.([\w.]+)` \| ([^|]*) \| ([^|]*) \|", line):
            yield tuple(found[1].split(".")), found[2].strip(), found[3].strip()
        elif above and (found := re.match(r"\| `([\w.]+)` \| ([^|]*) \| ([^|]*) \|", line)):
            yield (*above, *found[1].split(".")), found[2].strip(), found[3].strip()


def misstated(root: pathlib.Path, schema: dict) -> list[str]:
    bad, seen = [], 0
    for kind, path, comment in commented((root / EXAMPLE).read_text()):
        value = property_at(schema, kind, path)
        if value is None:
            continue
        for words in wanted(value):
            seen += 1
            if words not in comment:
                bad.append(f"{EXAMPLE}: {'.'.join(path)}: the comment does not say '{words}', as the schema does")
    if seen < 100:
        bad.append(f"{EXAMPLE}: only {seen} statements compared")
    compared = 0
    for path, default, values in rows((root / PAGE).read_text()):
        kinds = [kind for kind in KINDS if property_at(schema, kind, path) is not None]
        if not kinds:
            bad.append(f"{PAGE}: {'.'.join(path)}: no kind has this key")
            continue
        value = property_at(schema, kinds[0], path)
        if "default" in value and value["default"] != "":
            compared += 1
            if default.strip("`") != shown(value["default"]):
                bad.append(f"{PAGE}: spec.{'.'.join(path)}: the default is {shown(value['default'])} in the schema, not {default}")
        span = span_of(value)
        if span is not None:
            compared += 1
            if span not in values:
                bad.append(f"{PAGE}: spec.{'.'.join(path)}: the values are {span} in the schema, not {values}")
    if compared < 90:
        bad.append(f"{PAGE}: only {compared} statements compared")
    return bad
