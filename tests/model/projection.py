"""What a recording tells of one pod, its bad device and its Job, in the words of the model.

A recording (docs/replay.md) is cut down to the pods that were evicted or credited, each with its device. What is left of each is a list of steps: what
the controller was shown, what it ordered, and what was answered, in the order in which it took that in. recording.pml says what a step is in the model.
"""
from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator

LABELS = ("begins", "ends", "mask", "pod", "rule", "job", "state", "taint", "give", "spend", "regive", "free", "write", "evict", "written", "notwritten",
          "accepted", "refused", "doubtful", "quiet")
NUMBERS = {label: number for number, label in enumerate(LABELS, 1)}

OF_TAINT, OF_CREDIT, SHOWS_HEALTH, OF_STATE, IS_TOLD = 1, 2, 4, 8, 16
NOT_YET, RUNS, TERMINATING, GONE = range(4)
NO_RULE, OURS, REMOVED = range(3)
NO_CREDIT, GIVEN, SPENT, UNSPENT = range(4)
UNTOLD = 2  # of a health, and of a charge
NOT_CHARGED, CHARGED, COUNTED = 0, 1, 3

STATES = {"given": GIVEN, "spent": SPENT, "unspent": UNSPENT}
PHASES_OVER = (2, 3)  # Succeeded, Failed
UNHEALTHY = 2
DOUBTFUL = (9, 13, 14)  # ErrorKind: Doubtful, Unavailable, TimedOut
EVICT_ALL_THE_SAME = 0  # whenNotCreditable
NEVER = 0  # taint.device
LIMITLESS = 2147483647
CREDITS = "device-health.io/retry-credits"
TAINT = "device-health.io/unhealthy"
STATE = "device-health-incidents"
QUIET = 60_000  # milliseconds after which all that was under way has come to its end

Step = tuple[str, int]
Steps = tuple[Step, ...]


@dataclasses.dataclass(frozen=True)
class Trace:
    """One pod's steps in one recording."""
    pod: str
    device: str
    steps: Steps
    ended: str  # why no more is told; empty: to the end of the recording


def words(steps: Steps) -> str:
    return " ".join(f"{label}={value}" if value else label for label, value in steps)


def notes_of(patch: dict) -> dict[str, dict]:
    """The credits that a patch of a Job writes, by pod."""
    for note in patch.get("notes", ()):
        name, _, text = note.partition("=")
        if name == CREDITS:
            return {credit["podUID"]: credit for credit in json.loads(text)["credits"]}
    return {}


def credits_in(job: dict) -> dict | None:
    for name, text in job.get("meta", {}).get("notes", {}).items():
        if name == CREDITS:
            try:
                return json.loads(text)
            except ValueError:
                return None
    return None


def claimed(lines: Iterable[str]) -> set[str]:
    """The devices of claims, but those that their drivers taint: others are a device plugin's, and no rule of ours taints them."""
    results = (one for line in lines if line.startswith('{"ResourceClaim"') for one in json.loads(line)["ResourceClaim"].get("results", ()))
    slices = (json.loads(line)["ResourceSlice"] for line in lines if line.startswith('{"ResourceSlice"') and '"taints":' in line)
    tainted = {f"{one['driver']}/{one['pool']}/{device['name']}" for one in slices for device in one.get("devices", ()) if device.get("taints")}
    return {f"{one.get('driver')}/{one.get('pool')}/{one.get('device')}" for one in results} - tainted


def followed(lines: Iterable[str]) -> dict[str, str]:
    """Which pods are worth it: by UID the device for which they were evicted or credited."""
    pods: dict[str, str] = {}
    credited: dict[str, str] = {}
    for line in lines:
        if not line.startswith('{"plan"') or not ('"EvictPod"' in line or '"PatchJob"' in line):
            continue
        for action in json.loads(line).get("do", ()):
            if action["do"] == "EvictPod":
                pods.setdefault(action["uid"], action["what"])
            elif action["do"] == "PatchJob":
                for uid, credit in notes_of(action).items():
                    credited.setdefault(uid, credit["device"])
    return credited | pods


class Follower:
    """Follows one pod through a recording."""

    def __init__(self, pod: str, device: str):
        self.pod, self.device = pod, device
        self.steps: list[Step] = []
        self.at = 0  # of the last step
        self.ended = ""  # why no more is said
        self.mask = OF_TAINT | OF_CREDIT | SHOWS_HEALTH | OF_STATE
        self.shown: dict[str, int] = {}
        self.views = {"pod": NOT_YET, "rule": NO_RULE, "job": NO_CREDIT, "state": NOT_CHARGED}
        self.health = UNTOLD
        self.job: str | None = None
        self.most = LIMITLESS  # maxPerJob
        self.begun = False
        self.accepted: int | None = None  # when
        self.untainted = False

    # --- what is told of it -------------------------------------------------------------------------------------------------------------------------
    def cut(self, why: str) -> None:
        self.ended = self.ended or why

    def without(self, part: int) -> None:
        self.mask &= ~part

    def say(self, label: str, value: int = 0, at: int | None = None) -> None:
        if self.begun and not self.ended:
            self.steps.append((label, value))
            if at is not None:
                self.at = at

    def see(self, view: str, value: int, at: int) -> None:
        self.views[view] = value
        if self.begun and self.shown.get(view) != value:
            self.shown[view] = value
            self.say(view, value, at)

    def see_pod(self, pod: dict | None, at: int) -> None:
        if pod is None:
            state = GONE if self.views["pod"] else NOT_YET
        else:
            if "holds" in pod:
                self.health = self.health_in(pod)
            owner = pod["meta"].get("owner", {})
            if owner.get("kind") == "Job" and owner.get("api", "").startswith("batch/"):
                self.job = owner["uid"]
            else:
                self.without(OF_CREDIT)
            state = GONE if pod.get("phase") in PHASES_OVER else TERMINATING if pod["meta"].get("end") else RUNS
        if self.health == UNTOLD and state == RUNS:
            self.without(SHOWS_HEALTH)
        self.see("pod", state * 4 + self.health if state else NOT_YET, at)

    def health_in(self, pod: dict) -> int:
        """The last word of the pod's own status about the device."""
        said = [one for resource in pod["holds"] for one in resource.get("devices", ()) if self.is_device(resource["name"], one["id"], pod.get("node", ""))]
        return int(any(one["h"] == UNHEALTHY for one in said)) if said else UNTOLD

    def is_device(self, resource: str, name: str, node: str) -> bool:
        return self.device in (name, f"{node}/{resource}/{name}")

    def parts(self) -> tuple[str, str, str]:
        driver, _, rest = self.device.partition("/")
        pool, _, device = rest.rpartition("/")
        return driver, pool, device

    def see_rule(self, rules: Iterable[dict], at: int) -> None:
        stands = False
        for rule in rules:
            if any(rule.get(part, own) != own for part, own in zip(("driver", "pool", "device"), self.parts())):
                continue
            taint = rule.get("taint", {})
            if taint.get("key") != TAINT:
                self.without(OF_TAINT)  # another's, and as good
            elif taint.get("effect") != "None":
                stands = True
        had = self.views["rule"]
        if stands or had != OURS:
            return self.see("rule", OURS if stands else had, at)
        if self.untainted:
            return self.cut("the taint is taken back")
        return self.see("rule", REMOVED, at)

    def see_job(self, job: dict | None, at: int) -> None:
        if job is None or job.get("conditions") or job["meta"].get("end"):
            return self.cut("the Job ends") if self.mask & OF_CREDIT and self.begun else self.without(OF_CREDIT)
        others = ("rules", "indexLimit", "by", "manual", "suspended")
        if any(job.get(one) for one in others) or job["limit"] >= LIMITLESS or job["meta"].get("owner") or job["meta"].get("owner2") or job["meta"].get("labels"):
            self.without(OF_CREDIT)
        record = credits_in(job)
        if CREDITS in job["meta"].get("notes", {}) and record is None:
            return self.without(OF_CREDIT)
        record = record or {"limit": 0, "credits": []}
        if len(record["credits"]) >= self.most:
            self.without(OF_CREDIT)  # whenNotCreditable decides
        state = next((STATES[credit["state"]] for credit in record["credits"] if credit["podUID"] == self.pod), NO_CREDIT)
        self.see("job", state + 4 * int(job["limit"] < record["limit"]), at)
        return None

    def see_policy(self, policy: dict) -> None:
        if not policy.get("ns"):
            self.without(OF_STATE)  # there is no place to write it to
        for rules in policy.get("policies", ()):
            match = rules.get("match", {})
            if match.get("health") != [UNHEALTHY] or any(match.get(one) for one in ("words", "message", "claimConditions", "deviceTaints")):
                self.without(SHOWS_HEALTH)
            taint, evict, job = rules.get("taint"), rules.get("evict", {}), rules.get("job")
            if not taint or taint["device"] == NEVER or evict.get("untainted"):
                self.without(OF_TAINT)
            self.most = min(self.most, job["most"]) if job else self.most
            if not job or not job["credit"] or job["otherwise"] == EVICT_ALL_THE_SAME or job.get("takeBack"):
                self.without(OF_CREDIT)

    # --- what it comes to ---------------------------------------------------------------------------------------------------------------------------
    def begin(self, at: int) -> None:
        """The process leads and plans."""
        if self.begun or not self.views["pod"]:
            return
        self.begun = True
        self.say("begins", 0, at)
        self.shown = {}
        for view, value in self.views.items():
            self.see(view, value, at)

    def end(self, at: int) -> None:
        self.say("ends", 0, at)
        self.begun = False

    def trace(self, at: int, leads: bool, owes: bool) -> Trace:
        if self.begun and leads and self.accepted is not None and self.mask & OF_STATE and not owes and at - self.at >= QUIET:
            self.say("quiet")
        kept: list[Step] = []
        for label, value in self.steps:
            if label in ("rule", "taint") and not self.mask & OF_TAINT:
                continue
            if label in ("job", "give", "spend", "regive", "free") and not self.mask & OF_CREDIT:
                continue
            if label in ("state", "write", "written", "notwritten") and not self.mask & OF_STATE:
                continue
            if label == "pod" and not self.mask & SHOWS_HEALTH:
                value = value // 4 * 4 + UNTOLD
                if kept and ("pod", value) == next((one for one in reversed(kept) if one[0] in ("pod", "begins")), None):
                    continue
            kept.append((label, value))
            # Writes of nothing about the pod: two in a row say as much as many.
            if kept[-6:] == [("write", 0), ("written", 0)] * 3:
                del kept[-2:]
            if label == "begins":
                kept.append(("mask", IS_TOLD | self.mask))
        return Trace(self.pod, self.device, tuple(kept), self.ended)


class Projection:
    """Reads one recording: the lines of one run, from its first file on."""

    def __init__(self, lines: list[str]):
        self.followers = [Follower(pod, device) for pod, device in followed(lines).items()]
        devices = claimed(lines) if self.followers else set()
        for one in self.followers:
            if one.device not in devices:
                one.without(OF_TAINT)
        self.lines = lines
        self.now = 0
        self.leads = True
        self.actions: list[dict] = []
        self.store: dict[str, dict[str, dict]] = {}
        self.list: tuple[str, int, dict[str, dict]] | None = None
        self.total, self.charges = 0, {}
        self.of_earlier_term = 0  # so many actions
        self.owes: set[int] = set()  # states that were written and not answered

    def traces(self) -> Iterator[Trace]:
        if not self.followers:
            return
        for line in self.lines:
            self.read(line)
        for one in self.followers:
            yield one.trace(self.now, self.leads, bool(self.owes))

    def read(self, line: str) -> None:
        key = line[2:line.index('"', 2)]
        if self.list and key == self.list[0]:
            return self.take_listed(json.loads(line)[key])
        if key in ("Pod", "Job", "DeviceTaintRule", "ConfigMap"):
            value = json.loads(line)[key]
            self.store.setdefault(key, {})[value["meta"]["uid"]] = value
            return self.see(key, {value["meta"]["uid"]})
        reader = getattr(self, f"read_{key}", None)
        if reader and key in ("list", "gone", "policy", "leads", "answer", "plan", "take", "idle", "recording"):
            reader(json.loads(line))
        return None

    def read_recording(self, line: dict) -> None:
        if line["file"] != 1:
            for one in self.followers:
                one.cut("the recording goes on in another file")

    def read_list(self, line: dict) -> None:
        head = line["list"]
        if head.get("back"):
            for one in self.followers:
                one.cut("etcd was restored")
        if head["kind"] == "DeviceTaintRule" and not head["served"]:
            for one in self.followers:
                one.without(OF_TAINT)
        self.list = (head["kind"], head["n"], {})
        if head["n"] == 0:
            self.end_list()

    def take_listed(self, value: dict) -> None:
        kind, n, found = self.list
        found[value["meta"]["uid"]] = value
        self.list = (kind, n - 1, found)
        if n == 1:
            self.end_list()

    def end_list(self) -> None:
        kind, _, found = self.list
        self.list = None
        before = self.store.get(kind, {})
        self.store[kind] = found
        self.see(kind, before.keys() | found.keys())

    def read_gone(self, line: dict) -> None:
        gone = line["gone"]
        if self.store.get(gone["kind"], {}).pop(gone["uid"], None) is not None:
            self.see(gone["kind"], {gone["uid"]})

    def see(self, kind: str, uids: set[str]) -> None:
        store = self.store.get(kind, {})
        if kind == "ConfigMap":
            return self.see_state(store)
        for one in self.followers:
            if kind == "Pod" and one.pod in uids:
                known = one.job
                one.see_pod(store.get(one.pod), self.now)
                if one.job != known and one.job in self.store.get("Job", {}):
                    one.see_job(self.store["Job"][one.job], self.now)
            elif kind == "Job" and one.job in uids:
                one.see_job(store.get(one.job), self.now)
            elif kind == "DeviceTaintRule":
                one.see_rule(store.values(), self.now)
        return None

    def see_state(self, store: dict[str, dict]) -> None:
        text = next((map_["data"].get("incidents.json") for map_ in store.values() if map_["meta"]["name"] == STATE and "data" in map_), None)
        try:
            caps = json.loads(text).get("caps", {}) if text else None
        except (ValueError, AttributeError):
            caps = None
        if caps is None:
            if self.charges or self.total:
                for one in self.followers:
                    one.cut("the state was lost")
            return
        pods = [pod for group in caps.get("charges", ()) for pod in group.get("pods", {group.get("pod"): group}).items()]
        charges = {pod: COUNTED if charge.get("counted") else CHARGED for pod, charge in pods}
        total = sum(count["count"] for count in caps.get("evictions", ()))
        settled = [pod for pod, state in self.charges.items() if state == CHARGED and charges.get(pod) != CHARGED]
        grown = total - self.total
        fate = COUNTED if grown >= len(settled) > 0 else NOT_CHARGED if grown == 0 else UNTOLD
        for one in self.followers:
            if one.pod in charges:
                one.see("state", charges[one.pod], self.now)
            elif one.pod in settled:
                one.see("state", fate, self.now)
        self.total, self.charges = total, charges

    def read_policy(self, line: dict) -> None:
        for one in self.followers:
            one.see_policy(line["policy"])

    def read_leads(self, line: dict) -> None:
        if self.leads and not line["leads"]:
            self.of_earlier_term = len(self.actions)
            for one in self.followers:
                one.end(self.now)
        self.leads = line["leads"]

    def read_take(self, line: dict) -> None:
        self.now = line["take"][0]

    def read_idle(self, line: dict) -> None:
        self.begin()
        self.now = max(self.now, sum(line["idle"][::2]))

    def read_plan(self, line: dict) -> None:
        self.now = line["plan"][0]
        self.begin()
        for action in line.get("do", ()):
            self.actions.append(action)
            self.order(action)

    def begin(self) -> None:
        if self.leads:
            for one in self.followers:
                if not one.begun and one.mask & OF_CREDIT and one.job and one.job not in self.store.get("Job", {}):
                    one.without(OF_CREDIT)
                one.begin(self.now)

    def order(self, action: dict) -> None:
        do = action["do"]
        if do == "WriteState":
            self.owes.add(len(self.actions))
        for one in self.followers:
            if do == "WriteState":
                one.say("write")
            elif do == "EvictPod" and action["uid"] == one.pod:
                if action["what"] != one.device:
                    one.cut("it goes for another of its devices")
                if one.views["state"] == COUNTED or (one.accepted is not None and self.now - one.accepted >= QUIET):
                    one.cut("it stays although its eviction was accepted")
                one.say("evict", 0, self.now)
            elif do == "ApplyRule" and action["what"] == one.device:
                if one.views["rule"] == REMOVED:
                    one.cut("a new incident, after somebody has ended the taint of one before")
                one.say("taint", 0, self.now)
            elif do == "DeleteRule" and action["what"] == one.device:
                one.untainted = True
            elif do == "PatchJob" and action["uid"] == one.job:
                self.order_patch(action, one)

    def order_patch(self, action: dict, one: Follower) -> None:
        written = notes_of(action)
        if not written:
            return
        before = one.views["job"] % 4
        after = STATES[written[one.pod]["state"]] if one.pod in written else NO_CREDIT
        label = {(NO_CREDIT, GIVEN): "give", (UNSPENT, GIVEN): "give", (GIVEN, SPENT): "spend", (GIVEN, UNSPENT): "free"}.get((before, after))
        if label == "give" and before == UNSPENT and one.views["pod"] // 4 == TERMINATING:
            label = "regive"
        if label:
            one.say(label, 0, self.now)
        elif before == UNSPENT and after == NO_CREDIT:
            return one.cut("its unspent credit goes to another pod")
        elif before != after:
            one.cut("a retry that the pod's own end has cost is given back")
        return None

    def read_answer(self, line: dict) -> None:
        number = line["answer"]["n"]
        if not 0 < number <= len(self.actions):
            return
        action, error = self.actions[number - 1], line["answer"].get("error")
        self.owes.discard(number)
        if number <= self.of_earlier_term:
            return
        for one in self.followers:
            if action["do"] == "WriteState":
                one.say("notwritten" if error else "written")
            elif action["do"] == "EvictPod" and action["uid"] == one.pod:
                if not error and one.begun:
                    one.accepted = self.now
                one.say("accepted" if not error else "doubtful" if error["kind"] in DOUBTFUL else "refused", 0, self.now)


def runs_in(text: str) -> Iterator[list[str]]:
    """Each run that the text of recordings holds; a line that a crash has torn is left out."""
    run: list[str] = []
    for line in text.splitlines():
        if line.startswith('{"recording"'):
            if run:
                yield run
            run = []
        if line.endswith("}"):
            run.append(line)
    if run:
        yield run


def traces_of(text: str) -> Iterator[Trace]:
    for lines in runs_in(text):
        yield from Projection(lines).traces()
