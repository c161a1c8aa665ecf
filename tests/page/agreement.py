"""What the page shows against what the same process says in JSON: /verdicts, and the stream's first event, which holds every entry.

A page is compared only with the version that it has: each event of the stream carries an id, and a fresh reader is told the newest at once. If that
is the same before and after, and the page's own last event carries it, then nothing has changed in between, and every difference is the page's.
"""
from __future__ import annotations

import json
import re
import time
import urllib.request
from collections import Counter

from browser import Failed, Page

# docs/live-page.md, "mark": what is written of a device in its node.
MARKS = {"bad": "bad", "quarantined": "quarantined", "unknown": "health unknown", "recovering": "recovering", "probation": "on probation", "ok": "healthy",
         "free": "not held by a pod, so nobody reports its health"}
PHASES = {"open": "bad", "pending": "bad, waiting", "quarantined": "quarantined", "unknown": "unknown", "recovering": "recovering", "acknowledged": "acknowledged",
          "probation": "on probation", "past": "past"}

# As it is drawn, not as the page's script knows it; with every line, node and panel opened, which changes nothing that is said.
LOOK = """(async () => {
  await new Promise(requestAnimationFrame);
  const text = (element) => element ? element.textContent : null, at = (element) => element && element.querySelector('time') ? element.querySelector('time').dateTime : null;
  const verdicts = [...document.querySelectorAll('#verdict-table tbody tr')].map((row) => { const cells = [...row.cells];
    return { reason: text(cells[0]), subject: text(cells[1]), device: text(cells[2]), message: text(cells[3]), policy: text(cells[4]), since: at(cells[5]), next: at(cells[6]) }; });
  const incidents = [...document.querySelectorAll('.incident')].map((one) => ({
    device: one.dataset.device, isPast: !!one.closest('#history'), phase: text(one.querySelector('summary .pill')), name: text(one.querySelector('.device b')),
    said: [...one.querySelectorAll('.said-by > li')].map((li) => ({ reason: text(li.querySelector('.pill')), subject: text(li.querySelector('b')), message: text(li.children[1]), next: at(li),
      holds: text(li.querySelector('.gates .holds')) })),
    steps: [...one.querySelectorAll('.timeline li:not(.coming)')].map((li) => ({ at: at(li), what: text(li.querySelector('span')) })),
    facts: Object.fromEntries([...one.querySelectorAll('dl dt')].map((dt) => [text(dt), text(dt.nextElementSibling)])) }));
  const nodes = [...document.querySelectorAll('.node')].map((tile) => {
    tile.click();
    const rows = [...document.querySelectorAll('#detail-body tbody tr')].filter((row) => row.cells.length === 5).map((row) => ({
      mark: row.cells[0].firstElementChild.className, device: text(row.cells[1]), state: text(row.cells[2]), pods: text(row.cells[3]) }));
    document.getElementById('detail').close();
    return { name: tile.dataset.name, cells: [...tile.querySelectorAll('.cell')].map((cell) => cell.className.replace(' begins', '')), rows }; });
  const tiles = Object.fromEntries([...document.querySelectorAll('#summary .tile')].map((tile) => [text(tile.children[1]), text(tile.children[0])]));
  return { verdicts, incidents, nodes, tiles, counts: { verdicts: text(document.getElementById('verdict-count')), incidents: text(document.getElementById('incident-count')) } };
})()"""


def whole(url: str) -> tuple[str, dict]:
    """The newest version, and every entry of it, as a reader is told that has just come."""
    with urllib.request.urlopen(url + "events", timeout=10) as stream:
        event: dict[str, str] = {}
        for line in stream:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if not name:
                break
            event[name] = value
    if event.get("event") != "whole":
        raise Failed(f"a stream does not begin with every entry: {event}")
    return event["id"], json.loads(event["data"])["set"]


def verdicts_of(url: str) -> list[dict]:
    with urllib.request.urlopen(url + "verdicts", timeout=10) as answer:
        return json.load(answer)["verdicts"] or []


def version_of(page: Page) -> str:
    """The id of the last event that the page's own stream has brought it."""
    return next((event["eventId"] for event in reversed(page.events("Network.eventSourceMessageReceived")) if event["eventId"]), "")


class Moment:
    """A page and the JSON of one and the same version."""

    def __init__(self, version: str, entries: dict, verdicts: list[dict], shown: dict) -> None:
        self.version, self.entries, self.verdicts, self.shown = version, entries, verdicts, shown

    def of(self, kind: str) -> list[dict]:
        return [entry for key, entry in self.entries.items() if key.startswith(kind + "/")]


def quiet_moment(page: Page, url: str) -> Moment | None:
    """None: something has changed meanwhile, or the page has not been told yet; nothing can be said of that."""
    verdicts = verdicts_of(url)
    version, entries = whole(url)
    if version_of(page) != version:
        return None
    shown = page.run(LOOK)
    stands = whole(url)[0] == version == version_of(page) and verdicts_of(url) == verdicts
    return Moment(version, entries, verdicts, shown) if stands else None  # type: ignore[arg-type]


def compare(moment: Moment, url: str) -> None:
    found = differences(moment)
    if not found:
        return
    # /verdicts is written just before the stream: what it is ahead by follows at once.
    time.sleep(0.5)
    if whole(url)[0] == moment.version:
        raise Failed(f"at version {moment.version}: " + "; ".join(found[:6]))


def differences(moment: Moment) -> list[str]:
    shown, out = moment.shown, []

    def same(what: str, on_page: object, in_json: object) -> None:
        if on_page != in_json:
            out.append(f"{what}: the page shows {on_page}, the JSON says {in_json}")

    def same_rows(what: str, on_page: list[dict], in_json: list[dict]) -> None:
        left, right = (Counter(json.dumps(row, sort_keys=True) for row in rows) for rows in (on_page, in_json))
        same(what, sorted((left - right).elements()), sorted((right - left).elements()))

    same_rows("verdicts", shown["verdicts"], [row_of(verdict) for verdict in moment.verdicts])
    same("the number of verdicts", shown["counts"]["verdicts"], str(len(moment.verdicts) or ""))

    known = {incident["device"]: incident for incident in moment.of("incident")}
    about: dict[str, list[dict]] = {device: [] for device in known}
    for verdict in moment.verdicts:
        if verdict["device"]:
            about.setdefault(verdict["device"], []).append(verdict)
    phases = {device: phase_of(known.get(device), verdicts) for device, verdicts in about.items()}
    same("devices with an incident or a verdict", sorted(one["device"] for one in shown["incidents"]), sorted(about))
    same("the number of incidents", shown["counts"]["incidents"], str(sum(phase != "past" for phase in phases.values()) or ""))
    for one in shown["incidents"]:
        device, incident = one["device"], known.get(one["device"])
        if device not in about:
            continue
        same(f"{device} is", (one["phase"], one["isPast"], one["name"]), (PHASES[phases[device]], phases[device] == "past", device.rsplit("/", 1)[-1]))
        for said in one["said"]:
            said["holds"] = said["holds"] and re.sub(r".*?\d+\. (.*?): .*", r"\1", said["holds"], flags=re.DOTALL)
        same_rows(f"what is decided of {device}", one["said"], [decided_of(verdict) for verdict in about[device]])
        if incident and phases[device] != "pending":
            same(f"what happened to {device}", one["steps"], incident["timeline"])
        if incident:
            facts = {"Policy": f"{incident['policy']} ({incident['mode']})" if incident["policy"] else "none", "Known by": incident["source"], "Identity": incident["identity"],
                     "Incidents": str(incident["incidents"]), "Our taint": "stands" if incident["tainted"] else "none"}
            same(f"facts of {device}", one["facts"], {name: value for name, value in facts.items() if value})

    nodes = {node["name"]: node for node in moment.of("node")}
    same("nodes", sorted(one["name"] for one in shown["nodes"]), sorted(nodes))
    for one in shown["nodes"]:
        devices = sorted((device for group in nodes.get(one["name"], {"groups": []})["groups"] for device in group["devices"]), key=lambda device: natural(device["id"]))
        same(f"devices of {one['name']}", one["rows"], [{"mark": mark_of(device), "device": device["id"], "state": state_words(device), "pods": ", ".join(device.get("pods", []))}
                                                     for device in devices])
        same(f"cells of {one['name']}", one["cells"][:len(devices)], [mark_of(device) for device in devices])
    states = Counter(state_of(device) for node in nodes.values() for group in node["groups"] for device in group["devices"])
    for words, state in (("devices bad", "bad"), ("quarantined", "quarantined"), ("health unknown", "unknown")):
        same(words, shown["tiles"].get(words), str(states[state]))
    return out


def subject_of(verdict: dict) -> str:
    subject = verdict["subject"]
    return f"{subject['kind']} " + (f"{subject['namespace']}/" if subject["namespace"] else "") + subject["name"]


def row_of(verdict: dict) -> dict:
    policy = verdict["policy"] + (f" ({verdict['mode']})" if verdict["policy"] and verdict["mode"] else "")
    return {"reason": verdict["reason"], "subject": subject_of(verdict), "device": verdict["device"], "message": verdict["message"], "policy": policy, "since": verdict["since"],
            "next": verdict["nextStepAt"]}


def decided_of(verdict: dict) -> dict:
    return {"reason": verdict["reason"], "subject": subject_of(verdict), "message": verdict["message"], "next": verdict["nextStepAt"], "holds": verdict["gate"]}


def phase_of(incident: dict | None, verdicts: list[dict]) -> str:
    """Of what the demo's acts bring about."""
    reasons = {verdict["reason"] for verdict in verdicts}
    phase = incident["phase"] if incident else ""
    if phase == "open" and "WaitingWhileUnknown" in reasons:
        return "unknown"
    if phase not in ("", "past", "probation"):
        return phase
    return "pending" if "WaitingForWindow" in reasons else phase or ("past" if "Recovered" in reasons else "pending")


def state_of(device: dict) -> str:
    health, incident = device.get("health"), device.get("incident")
    if incident == "quarantined":
        return "quarantined"
    if health in ("Unhealthy", "Unknown"):
        return {"Unhealthy": "bad", "Unknown": "unknown"}[health]
    if incident == "open":
        return "recovering" if health == "Healthy" else "bad"
    if incident == "probation":
        return "probation"
    return "ok" if health == "Healthy" else "free"


def mark_of(device: dict) -> str:
    return f"cell {state_of(device)}" + (" ring" if device.get("taint") else "")


def state_words(device: dict) -> str:
    taint = {"ours": ", tainted by us", "driver": ", tainted by its driver"}.get(device.get("taint", ""), "")
    return MARKS[state_of(device)] + (", acknowledged" if device.get("incident") == "acknowledged" else "") + taint


def natural(name: str) -> list:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
