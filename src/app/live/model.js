// What the page knows: the entries that the controller streams, and what they mean together. No document here.

/** Entries by key, as the stream brings them. */
export class Model {
  constructor() { this.entries = new Map(); this.nodes = new Map(); this.changed = new Set(); }

  /** An event `whole` or `change`. */
  take(update, isWhole) {
    if (isWhole) {
      for (const key of this.entries.keys()) if (!(key in update.set)) this.drop(key);
    }
    for (const [key, value] of Object.entries(update.set)) {
      this.entries.set(key, value);
      if (key.startsWith("node/")) { this.nodes.set(key, value); this.changed.add(key); }
    }
    for (const key of update.gone) this.drop(key);
  }

  drop(key) {
    this.entries.delete(key);
    if (this.nodes.delete(key)) this.changed.add(key);
  }

  get(key) { return this.entries.get(key); }
  *all(kind) { for (const [key, value] of this.entries) if (key.startsWith(kind + "/")) yield value; }
  reason(word) { return this.get("reason/" + word) || { meaning: "", remedy: "", warns: false, forGood: false }; }
}

/** How a device's cell looks. */
export function stateOf(device) {
  if (device.incident === "quarantined") return "quarantined";
  if (device.health === "Unhealthy") return "bad";
  if (device.health === "Unknown") return "unknown";
  if (device.incident === "open") return device.health === "Healthy" ? "recovering" : "bad";
  if (device.incident === "probation") return "probation";
  return device.health === "Healthy" ? "ok" : "free";
}

const kWords = { bad: "bad", quarantined: "quarantined", unknown: "health unknown", recovering: "recovering", probation: "on probation",
  ok: "healthy", free: "not held by a pod, so nobody reports its health" };
export const wordsOf = (state) => kWords[state];

/** 2: something is bad; 1: something is to be known; 0: all is well. */
export function rankOf(node) {
  let rank = node.notReady || node.tainted || node.leaving || (node.gone && node.name) ? 1 : 0;
  for (const group of node.groups) {
    if (group.contested) rank = Math.max(rank, 1);
    if (group.allocatable !== undefined && group.allocatable < group.capacity) rank = Math.max(rank, 1);
    for (const device of group.devices) {
      const state = stateOf(device);
      if (state === "bad" || state === "quarantined") return 2;
      if (state === "unknown" || state === "recovering" || state === "probation") rank = Math.max(rank, 1);
    }
  }
  return rank;
}

/** What is said of a node beside its devices. */
export function tagsOf(node) {
  const tags = [];
  if (node.gone && node.name) tags.push("the node is gone");
  if (node.notReady) tags.push("not ready");
  if (node.tainted) tags.push("tainted by us");
  if (node.cordoned) tags.push("cordoned");
  if (node.leaving) tags.push("leaving: " + node.leaving);
  for (const group of node.groups) {
    if (group.contested) tags.push("pool " + group.pool + " is contested");
    if (group.unpublished) tags.push(group.scope + " publishes nothing");
    if (group.allocatable !== undefined && group.allocatable < group.capacity) tags.push(`${group.allocatable} of ${group.capacity} allocatable`);
  }
  return tags;
}

/** A plugin's devices without a name: nobody holds them, so nobody has told their IDs. */
export function namelessOf(group) { return Math.max(0, (group.capacity || 0) - group.devices.length); }

/** All of a node that a search may mean, in small letters. */
export function hayOf(node) {
  const parts = [node.name];
  for (const group of node.groups) {
    parts.push(group.scope, group.pool || "");
    for (const device of group.devices) parts.push(device.id, stateOf(device), device.incident || "", ...(device.pods || []));
  }
  return parts.join(" ").toLowerCase();
}

const kPhaseOrder = ["open", "pending", "uncovered", "quarantined", "unknown", "recovering", "acknowledged", "probation", "past"];
export const phaseWords = { open: "bad", pending: "bad, waiting", uncovered: "no policy", quarantined: "quarantined", unknown: "unknown",
  recovering: "recovering", acknowledged: "acknowledged", probation: "on probation", past: "past" };
export const phaseTone = { open: "bad", pending: "bad", uncovered: "bad", quarantined: "quarantined", unknown: "unknown", recovering: "recovering", acknowledged: "good", probation: "probation", past: "" };

/**
 * Every device of which anything is said: incidents, and verdicts about devices without one. The worst first, then what has lasted
 * longest.
 */
export function incidentsOf(model) {
  const byDevice = new Map();
  for (const incident of model.all("incident")) byDevice.set(incident.device, { device: incident.device, incident, verdicts: [] });
  for (const verdict of model.all("verdict")) {
    if (!verdict.device) continue;
    const entry = byDevice.get(verdict.device) || { device: verdict.device, incident: null, verdicts: [] };
    byDevice.set(verdict.device, entry);
    entry.verdicts.push(verdict);
  }
  const list = [...byDevice.values()];
  for (const entry of list) {
    entry.phase = phaseOf(entry);
    entry.since = entry.incident && entry.phase !== "pending" ? entry.incident.since : entry.verdicts.map((v) => v.since).sort()[0] || entry.incident.since;
    entry.verdicts.sort((a, b) => weight(model, a) - weight(model, b) || compare(a.reason, b.reason) || compare(a.subject.name, b.subject.name));
  }
  list.sort((a, b) => kPhaseOrder.indexOf(a.phase) - kPhaseOrder.indexOf(b.phase) || compare(a.since, b.since) || compare(a.device, b.device));
  return list;
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

function phaseOf(entry) {
  const reasons = new Set(entry.verdicts.map((verdict) => verdict.reason));
  const phase = entry.incident ? entry.incident.phase : null;
  if (phase && phase !== "past" && phase !== "probation") return reasons.has("WaitingWhileUnknown") && phase === "open" ? "unknown" : phase;
  if (reasons.has("WaitingForWindow") || reasons.has("DriverRolling")) return "pending";
  if (reasons.has("NoPolicy")) return "uncovered";
  if (phase) return phase;
  if (reasons.has("WaitingWhileUnknown") || reasons.has("HealthWordUnknown")) return "unknown";
  if (reasons.has("Recovered")) return "past";
  return entry.verdicts.length ? "pending" : "past";
}

const kAlarms = new Set(["BrakeEngaged", "ConfigRejected", "StateDamaged", "StateNotRead", "StateNotSaved", "StateFromNewerVersion", "JobDiedOfDevice", "DiedOfDevice", "BlackHoleNode",
  "NoPolicy", "Quarantined", "DeviceVanished", "SilentPlugin", "ReplacementStorm", "NodeSuspected", "DriverSuspected", "StuckTerminating", "NotTerminating", "ConditionContested", "PoolContested"]);
const kDone = new Set(["Tainted", "Tainting", "Evicting", "Evicted", "Credited", "Crediting", "Untainted", "Untainting", "Recovered"]);
/** What holds or wants somebody is orange, an alarm red, what is done or in order plain. */
export function toneOf(model, verdict) {
  if (kAlarms.has(verdict.reason)) return "bad";
  return !kDone.has(verdict.reason) && (verdict.gate || model.reason(verdict.reason).warns) ? "warn" : "";
}

/** What is said first of several: what holds an eviction, then what warns, then the rest. */
export function weight(model, verdict) {
  if (verdict.gate) return 0;
  if (verdict.reason === "Evicting" || verdict.reason === "Evicted") return 1;
  return model.reason(verdict.reason).warns ? 2 : 3;
}

/** The pod that a row tells of. */
export const subjectOf = (verdict) => (verdict.subject.namespace ? verdict.subject.namespace + "/" : "") + verdict.subject.name;

/** The next thing that time alone brings, of all that is said of a device: {at, what}, or null. */
export function nextOf(entry) {
  let next = null;
  const note = (at, what) => { if (at && (!next || at < next.at)) next = { at, what }; };
  for (const verdict of entry.verdicts) note(verdict.nextStepAt, kNextWords[verdict.reason] || "next step");
  if (!next && entry.incident) {
    note(entry.incident.endsAt, "incident ends");
    note(entry.incident.probationUntil, "probation ends");
  }
  return next;
}

const kNextWords = { WaitingForWindow: "incident opens", DriverRolling: "incident opens", WaitingForEvictAfter: "eviction due", WaitingForCheckpoint: "its notice runs out", Noticed: "its notice runs out", BackingOff: "tried again", BlockedByBudget: "tried again",
  CapReached: "the cap may have room", RateLimited: "the limit has room", NodeCordoned: "the cordon's wait ends", NoReplacementDevice: "evicted all the same",
  Tainted: "taint may go", OnProbation: "probation ends", Untainted: "forgotten", BrakeEngaged: "brake is tried",
  Paused: "the pause ends" };

/** The numbers at the top. */
export function countsOf(model, incidents) {
  const counts = { bad: 0, unknown: 0, devices: 0, waiting: 0, evicting: 0, open: 0, brakes: [...model.all("brake")].length, quarantined: 0 };
  for (const node of model.nodes.values()) {
    for (const group of node.groups) {
      counts.devices += Math.max(group.devices.length, group.capacity || 0);
      for (const device of group.devices) {
        const state = stateOf(device);
        if (state === "bad") ++counts.bad;
        if (state === "unknown") ++counts.unknown;
        if (state === "quarantined") ++counts.quarantined;
      }
    }
  }
  const held = new Set(), going = new Set();
  for (const verdict of model.all("verdict")) {
    if (verdict.subject.kind !== "Pod") continue;
    if (verdict.gate && verdict.gate !== "eviction") held.add(verdict.subject.uid);
    if (verdict.reason === "Evicting" || verdict.reason === "Evicted") going.add(verdict.subject.uid);
  }
  counts.waiting = held.size;
  counts.evicting = going.size;
  counts.open = incidents.filter((entry) => entry.incident && ["open", "quarantined", "recovering", "unknown"].includes(entry.phase)).length;
  return counts;
}
