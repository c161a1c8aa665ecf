import { Model, countsOf, hayOf, incidentsOf, namelessOf, nextOf, phaseTone, phaseWords, rankOf, stateOf, subjectOf, tagsOf, toneOf, weight, wordsOf } from "./model.js";
import { breakable, durationWords, gates, keep, make, pill, setServerTime, tick, time, timeline } from "./parts.js";

const $ = (id) => document.getElementById(id);
const model = new Model();
let wanted = "";           // what is searched for
let rows = 200;            // of the verdicts, at most
let incidentRows = 25;     // of the incidents, at most
let heardAt = Date.now();  // the last event
let turned = 0;            // seconds since the controller's loop turned
let link = "waiting";
let ended = false;
const isWanted = (text) => !wanted || wanted.split(/\s+/).every((word) => text.includes(word));
const names = new Intl.Collator(undefined, { numeric: true });

// ---- notices and numbers

function notice(tone, title, ...text) { return make("p", { class: "notice " + tone }, make("strong", {}, title), ...text); }

function showNotices(controller, watches) {
  const list = [];
  const silence = (Date.now() - heardAt) / 1000;
  if (link === "lost") list.push(["lost", "bad", "The connection is lost.", `What is shown is ${durationWords(silence)} old. Trying again every few seconds. Is kubectl port-forward still running?`]);
  else if (link === "stale") list.push(["stale", "bad", "No word from the controller.", `What is shown is ${durationWords(silence)} old.`]);
  else if (turned >= 30) list.push(["turned", "bad", "The controller's loop stands still.", `It has not turned for ${durationWords(turned)}: what is shown is old. See /healthz.`]);
  if (controller && controller.role === "standby") {
    const pod = controller.leader.replace(/_[^_]*$/, "");
    list.push(["standby", "warn", "This replica stands by: it decides nothing.", controller.leader ? `The leader is ${controller.leader}. Ask it: ` : "Nobody is known to lead: see /readyz.",
      controller.leader ? make("code", {}, `kubectl -n NAMESPACE port-forward ${pod} 8082`) : ""]);
  } else if (controller && controller.silent) list.push(["silent", "warn", "Nothing is judged yet.", controller.silent]);
  if (controller && controller.policyProblem) list.push(["policy", "bad", "The configuration was rejected; the last good one stays.", controller.policyProblem]);
  if (controller && controller.electionProblem) list.push(["election", "warn", "Leader election has trouble.", controller.electionProblem]);
  const limits = model.get("limits");
  if (limits && limits.paused) list.push(["paused", "warn", "Paused: nothing is evicted.", `${limits.pausedBecause}.`]);
  for (const why of (limits && limits.pausedParts) || []) list.push(["paused " + why, "warn", "A part is paused: nothing is evicted there.", `${why}.`]);
  for (const brake of model.all("brake"))
    list.push([`brake ${brake.scope} ${brake.node}`, "bad", `The brake is engaged: ${brake.scope}${brake.node ? " on " + brake.node : " in the cluster"}.`, `${brake.what}; ${brake.waitsFor}. Look at the driver first.`]);
  for (const watch of watches || []) {
    if (watch.forbidden) list.push(["w" + watch.kind, "bad", `The watch of ${watch.kind} is forbidden.`, watch.problem]);
    else if (watch.tooOld) list.push(["w" + watch.kind, "bad", `The view of ${watch.kind} is too old to act on.`, watch.problem]);
  }
  keep($("notices"), list, (one) => one[0], (one) => one.map((part) => part.textContent || part).join("|"), ([, tone, title, ...text]) => notice(tone, title, ...text));
}

function showController(controller) {
  const mode = controller.mode === "enforce" ? "enforcing" : controller.mode === "observe" ? "observing: nothing is changed" : controller.mode;
  const role = { alone: "the only replica", leader: "leads", standby: "stands by" }[controller.role];
  $("controller").replaceChildren(pill(mode, controller.mode === "enforce" ? "good" : "warn"), ` ${role} · ${controller.version}`);
  $("controller").title = controller.leader ? "Leader: " + controller.leader : "";
}

function showSummary(counts) {
  const limits = model.get("limits") || {};
  const tiles = [
    ["devices bad", counts.bad, counts.bad ? "bad" : ""], ["quarantined", counts.quarantined, counts.quarantined ? "warn" : ""],
    ["health unknown", counts.unknown, counts.unknown ? "warn" : ""], ["incidents open", counts.open, counts.open ? "warn" : ""],
    ["pods waiting", counts.waiting, counts.waiting ? "warn" : ""],
    ["pods leaving", counts.evicting, ""], ["brakes engaged", counts.brakes, counts.brakes ? "bad" : ""],
    [`devices, ${model.nodes.size} ${model.nodes.size === 1 ? "node" : "nodes"}`, counts.devices, ""]];
  keep($("summary"), tiles, (tile) => tile[0].startsWith("devices,") ? "all" : tile[0], (tile) => tile.join("|") + limits.paused,
    ([words, number, tone]) => make("div", { class: "tile", "data-tone": tone }, make("b", {}, number.toLocaleString("en")), make("span", {}, words)));
  showTitle(counts);
}

function showTitle(counts) { document.title = counts.bad || counts.brakes ? `(${counts.bad} bad) Device health` : "Device health"; }

// ---- incidents

function incidentHay(entry) {
  return [entry.device, entry.phase, entry.incident ? JSON.stringify(entry.incident) : "", ...entry.verdicts.map((v) => `${subjectOf(v)} ${v.reason} ${v.message} ${v.policy}`)].join(" ").toLowerCase();
}

/** What a device is called, and where it is: its node first, or its pool. */
function nameOf(entry) {
  const last = entry.device.lastIndexOf("/"), first = entry.device.indexOf("/");
  if (first < 0) return { name: entry.device, place: "" };
  const begin = entry.device.slice(0, first), rest = entry.device.slice(first + 1, last);
  const isPlugins = model.nodes.has("node/" + begin);
  const node = (entry.incident && entry.incident.node) || (isPlugins ? begin : rest);
  return { name: entry.incident && entry.incident.rejectingNode ? "rejects pods" : entry.device.slice(last + 1), place: `${node} · ${isPlugins ? rest : begin}` };
}

function saidOf(entry) {
  const history = entry.incident ? entry.incident.history : [];
  if (history.length) return history[history.length - 1].said;
  const verdict = entry.verdicts.find((one) => !one.gate) || entry.verdicts[0];
  return verdict ? verdict.message : "";
}

function verdictItem(verdict) {
  const info = model.reason(verdict.reason);
  const list = model.get("gates") || [];
  return make("li", {},
    make("div", {}, pill(verdict.reason, toneOf(model, verdict)), " ", make("b", {}, verdict.subject.kind + " " + subjectOf(verdict)), " ",
      verdict.nextStepAt ? make("span", { class: "next" }, time(verdict.nextStepAt, "in"), " (", time(verdict.nextStepAt, "at"), ")") : ""),
    make("div", {}, verdict.message),
    make("div", { class: "why" }, info.meaning, info.remedy && info.remedy !== "Nothing." ? " → " + info.remedy : ""),
    verdict.gate && list.length ? gates(list, verdict.gate) : "");
}

function comingOf(entry) {
  const coming = [];
  const next = nextOf(entry);
  if (next) coming.push({ at: next.at, what: next.what });
  if (entry.incident && entry.incident.endsAt && (!next || next.at !== entry.incident.endsAt)) coming.push({ at: entry.incident.endsAt, what: "the incident ends, if so it stays: " + entry.incident.endsBy });
  return coming;
}

function incidentRow(entry, isNew) {
  const incident = entry.incident;
  const next = nextOf(entry);
  const { name, place } = nameOf(entry);
  const held = entry.verdicts.find((v) => v.gate && v.gate !== "eviction") || entry.verdicts[0];
  const said = saidOf(entry);
  const pods = [...new Set(entry.verdicts.filter((v) => v.subject.kind === "Pod").map(subjectOf))];
  const steps = incident && entry.phase !== "pending" ? incident.timeline : [{ at: entry.since, what: "bad since" }];
  return make("details", { class: "incident" + (isNew && ready ? " fresh" : ""), "data-phase": entry.phase, "data-device": entry.device },
    make("summary", {},
      make("span", {}, pill(phaseWords[entry.phase], phaseTone[entry.phase])),
      make("span", { class: "device" }, make("b", { class: "mono" }, name), make("small", {}, place)),
      make("span", { class: said ? "said" : "said quiet" }, said || "no words from the driver"),
      make("span", { class: "held" }, pods.length ? pods.slice(0, 3).join(", ") + (pods.length > 3 ? ` and ${pods.length - 3} more` : "") : make("span", { class: "quiet" }, "no pod")),
      make("span", { class: "since" }, entry.since ? time(entry.since, "for") : ""),
      make("span", { class: "next" }, next ? [next.what + " ", time(next.at, "in")] : entry.phase === "past" || !held ? "" : [make("small", {}, held.gate ? "held: " : ""), held.reason])),
    make("div", { class: "body columns" },
      make("div", {}, make("h3", {}, "What is decided, and why"),
        entry.verdicts.length ? make("ul", { class: "said-by" }, entry.verdicts.map(verdictItem)) : make("p", { class: "quiet" }, "No verdict is held about it now."),
        incident && incident.endsBy ? make("p", {}, make("b", {}, "Recovery: "), incident.endsBy) : ""),
      make("div", {}, make("h3", {}, "What happened"), timeline(steps, comingOf(entry)),
        incident ? make("dl", {},
          ...pair("Policy", incident.policy ? `${incident.policy} (${incident.mode})` : "none"), ...pair("Known by", incident.source),
          ...pair("Identity", incident.identity), ...pair("Incidents", String(incident.incidents)), ...pair("Our taint", incident.tainted ? "stands" : "none")) : "")));
}

const pair = (name, value) => (value ? [make("dt", {}, name), make("dd", {}, value)] : []);

function showIncidents(incidents) {
  const now = incidents.filter((entry) => entry.phase !== "past" && isWanted(incidentHay(entry)));
  const past = incidents.filter((entry) => entry.phase === "past" && isWanted(incidentHay(entry)));
  const sign = (entry) => JSON.stringify([entry.phase, entry.incident, entry.verdicts, entry.verdicts.map((v) => model.reason(v.reason).remedy)]);
  keep($("incident-list"), now.slice(0, incidentRows), (entry) => entry.device, sign, incidentRow);
  keep($("history-list"), past.slice(0, 200), (entry) => entry.device, sign, incidentRow);
  $("more-incidents").hidden = now.length <= incidentRows;
  $("more-incidents").textContent = `Show all ${now.length}`;
  $("history").hidden = !past.length;
  $("history-count").textContent = String(past.length);
  $("incident-count").textContent = now.length ? String(now.length) : "";
  const after = Math.min(...(model.get("policies") || []).map((policy) => policy.afterSeconds));
  $("incident-empty").hidden = now.length > 0;
  $("incident-empty").textContent = wanted ? "No incident fits the search." : !ready ? "Waiting for the first facts." :
    "No device is bad. " + (Number.isFinite(after) ? `A device that is reported bad is here at once; its incident opens after ${durationWords(after)}.` : "");
}

// ---- nodes

const tiles = new Map();  // key -> {element, rank, hay, place}

/** Made by the ten thousand: no attribute but the class. */
function cell(state, isTainted) {
  const element = document.createElement("i");
  element.className = isTainted ? `cell ${state} ring` : `cell ${state}`;
  return element;
}

function fillTile(element, node, rank) {
  const cells = [];
  let bad = 0, devices = 0;
  for (const group of node.groups) {
    const nameless = namelessOf(group), begin = cells.length;
    devices += group.devices.length + nameless;
    for (const device of [...group.devices].sort((a, b) => names.compare(a.id, b.id)).slice(0, 64)) {
      const state = stateOf(device);
      if (state === "bad" || state === "quarantined") ++bad;
      cells.push(cell(state, device.taint));
    }
    for (let i = 0; i < Math.min(nameless, 16); ++i) cells.push(cell("free", false));
    const rest = Math.max(0, group.devices.length - 64) + Math.max(0, nameless - 16);
    if (rest) cells.push(make("i", { class: "cell more" }, `+${rest}`));
    if (begin && cells.length > begin) cells[begin].classList.add("begins");
  }
  const tags = tagsOf(node);
  const name = node.name || "on no node";
  element.dataset.rank = rank;
  element.setAttribute("aria-label", `${name}: ${devices} devices, ${bad ? bad + " bad" : "none bad"}${tags.length ? ", " + tags.join(", ") : ""}`);
  element.replaceChildren(make("span", { class: "name mono", title: name }, name), make("span", { class: "cells", "aria-hidden": "true" }, cells),
    ...(tags.length ? [make("span", { class: "tags" }, tags.join(" · "))] : []));
}

/**
 * The calm nodes stand in blocks, which the browser leaves undrawn while they are out of sight: 5,000 of them one by one would cost each
 * frame a look at 5,000. A block's size has many divisors, so that its rows are full.
 */
const kBlock = 60;

function blocksAnew() {
  const calm = [...tiles.values()].filter((tile) => tile.rank === 0).sort((a, b) => names.compare(a.node.name, b.node.name));
  const focused = document.activeElement;
  const blocks = [];
  for (let i = 0; i < calm.length; i += kBlock) blocks.push(make("div", { class: "grid block" }, calm.slice(i, i + kBlock).map((tile) => tile.element)));
  $("calm").replaceChildren(...blocks);
  for (const tile of calm) tile.place = $("calm");
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

/** The first child whose name, found by `nameOf`, comes after. */
function childAfter(place, name, nameOf) {
  let low = 0, high = place.children.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (names.compare(nameOf(place.children[middle]), name) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Puts a tile where it belongs. False: the blocks are to be made anew. */
function putTile(tile) {
  const place = tile.rank ? $("troubled") : $("calm");
  if (tile.place === place) return true;
  const hadFocus = document.activeElement === tile.element, left = tile.element.parentElement, name = tile.node.name;
  const ofTile = (element) => element.dataset.name;
  if (tile.rank) place.insertBefore(tile.element, place.children[childAfter(place, name, ofTile)] || null);
  else {
    const after = childAfter(place, name, (block) => (block.firstElementChild ? ofTile(block.firstElementChild) : ""));
    const block = place.children[Math.max(0, after - 1)];
    if (!block || block.children.length >= kBlock + 12) return false;
    block.insertBefore(tile.element, block.children[childAfter(block, name, ofTile)] || null);
  }
  if (left && left.classList.contains("block") && !left.children.length) left.remove();
  if (hadFocus) tile.element.focus({ preventScroll: true });
  tile.place = place;
  return true;
}

function showNodes() {
  const fresh = [];
  for (const key of model.changed) {
    const node = model.nodes.get(key);
    const was = tiles.get(key);
    if (!node) {
      if (was) was.element.remove();
      tiles.delete(key);
      continue;
    }
    const rank = rankOf(node);
    const tile = was || { element: make("button", { class: "node", type: "button", "data-name": node.name }), place: null };
    Object.assign(tile, { hay: null, node, rank });
    fillTile(tile.element, node, rank);
    tiles.set(key, tile);
    fresh.push(tile);
  }
  model.changed.clear();
  if (fresh.length > kBlock) {
    for (const tile of fresh) if (tile.rank) putTile(tile);
    blocksAnew();
  } else if (!fresh.every(putTile)) {
    fresh.forEach((tile) => { if (tile.rank) putTile(tile); });
    blocksAnew();
  }
  filterNodes(fresh);
  if (openNode) showNode(openNode);
}

let lastFilter = "";
function filterNodes(fresh) {
  const filter = wanted + "|" + $("trouble").checked;
  const list = filter === lastFilter ? fresh : tiles.values();
  lastFilter = filter;
  for (const tile of list) {
    if (wanted && tile.hay === null) tile.hay = hayOf(tile.node);
    const isShown = (!wanted || isWanted(tile.hay)) && (tile.rank > 0 || !$("trouble").checked);
    if (tile.element.hidden === isShown) tile.element.hidden = !isShown;
  }
  if (list !== fresh) for (const block of $("calm").children) block.hidden = !block.querySelector(".node:not([hidden])");
  else for (const tile of fresh) if (!tile.rank && !tile.element.hidden) tile.element.parentElement.hidden = false;
  let shown = 0, trouble = 0;
  for (const tile of tiles.values()) {
    if (!tile.element.hidden) ++shown;
    if (tile.rank) ++trouble;
  }
  $("node-count").textContent = tiles.size ? `${trouble} with trouble of ${tiles.size}` : "";
  $("node-empty").hidden = shown > 0;
  $("node-empty").textContent = tiles.size ? (wanted ? "No node fits the search." : "No node has trouble.") :
    "No device is known yet: waiting for ResourceSlices, nodes with extended resources, or pods that hold devices.";
}

let openNode = null;
function showNode(key) {
  const node = model.nodes.get(key);
  openNode = key;
  const body = $("detail-body");
  $("detail-title").textContent = node ? node.name || "Devices on no node" : "The node is gone";
  if (!node) return body.replaceChildren();
  const said = new Map();
  for (const verdict of model.all("verdict")) if (verdict.device) said.set(verdict.device, [...(said.get(verdict.device) || []), verdict]);
  const tags = tagsOf(node);
  body.replaceChildren(tags.length ? make("p", { class: "notice warn" }, tags.join(" · ")) : "", ...node.groups.map((group) => {
    const keyOf = (device) => (group.pool !== undefined ? `${group.scope}/${group.pool}/${device.id}` : `${node.name}/${group.scope}/${device.id}`);
    const nameless = namelessOf(group);
    return make("div", {}, make("h3", {}, group.scope, group.pool && group.pool !== node.name ? ` · pool ${group.pool}` : "", group.capacity !== undefined ? ` · capacity ${group.capacity}, allocatable ${group.allocatable}` : ""),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": group.scope }, make("table", {}, make("thead", {}, make("tr", {}, ...["", "Device", "State", "Pods", "Why"].map((word) => make("th", { scope: "col" }, word)))),
        make("tbody", {}, ...[...group.devices].sort((a, b) => names.compare(a.id, b.id)).map((device) => {
          const state = stateOf(device);
          const taint = device.taint === "ours" ? ", tainted by us" : device.taint ? ", tainted by its driver" : "";
          const verdicts = (said.get(keyOf(device)) || []).sort((a, b) => weight(model, a) - weight(model, b));
          return make("tr", {}, make("td", {}, cell(state, device.taint)), make("td", { class: "mono" }, device.id), make("td", {}, wordsOf(state) + (device.incident === "acknowledged" ? ", acknowledged" : "") + taint),
            make("td", {}, (device.pods || []).join(", ")), make("td", {}, verdicts.slice(0, 3).map((v) => make("div", {}, pill(v.reason, toneOf(model, v)), " ", v.message))));
        }), nameless ? make("tr", {}, make("td", {}, cell("free")), make("td", { class: "quiet", colspan: "4" }, `${nameless} more that no pod holds: a device plugin names a device, and its health is reported, only while a pod holds it`)) : ""))));
  }));
}

// ---- verdicts, limits

function showVerdicts() {
  const all = [...model.all("verdict")];
  const text = (v) => `${v.reason} ${v.subject.kind} ${subjectOf(v)} ${v.device} ${v.message} ${v.policy}`.toLowerCase();
  const list = all.filter((v) => isWanted(text(v)));
  list.sort((a, b) => weight(model, a) - weight(model, b) || (a.since < b.since ? -1 : a.since > b.since ? 1 : 0) || names.compare(subjectOf(a), subjectOf(b)));
  keep($("verdict-table").tBodies[0], list.slice(0, rows), (v) => [v.subject.kind, subjectOf(v), v.subject.uid, v.device, v.reason].join("|"), (v) => JSON.stringify([v, model.reason(v.reason).meaning]), (v) => {
    const info = model.reason(v.reason);
    const row = make("tr", { "data-verdict": JSON.stringify(v) }, make("td", { title: `${info.meaning} ${info.remedy}` }, pill(v.reason, toneOf(model, v))),
      make("td", { "data-label": v.subject.kind }, make("small", {}, v.subject.kind + " "), breakable(subjectOf(v))), make("td", { class: "mono", "data-label": "Device" }, breakable(v.device)), make("td", {}, v.message),
      make("td", { "data-label": "Policy" }, v.policy ? `${v.policy}${v.mode ? ` (${v.mode})` : ""}` : ""), make("td", { "data-label": "Since" }, time(v.since, "ago")), make("td", { class: "next", "data-label": "Next step" }, v.nextStepAt ? time(v.nextStepAt, "in") : ""));
    return row;
  });
  $("verdict-count").textContent = all.length ? (list.length === all.length ? String(all.length) : `${list.length} of ${all.length}`) : "";
  $("more-verdicts").hidden = list.length <= rows;
  $("more-verdicts").textContent = `Show ${list.length - rows} more`;
  $("verdict-table").parentElement.hidden = !list.length;
  $("verdict-empty").hidden = list.length > 0;
  $("verdict-empty").textContent = all.length ? "No verdict fits the search." : ready ? "Nothing is to be said: nothing is wrong." : "Waiting for the first facts.";
}

function panel(id, title, ...content) {
  const place = $(id);
  const sign = content.flat().map((part) => part.textContent ?? part).join("|");
  if (place.sign === sign) return;
  place.sign = sign;
  place.replaceChildren(make("h3", {}, title), ...content.flat());
}

function showLimits() {
  const brakes = [...model.all("brake")];
  $("brakes").classList.toggle("alarm", brakes.length > 0);
  panel("brakes", "Brake", brakes.length ? brakes.map((brake) => make("p", {}, make("b", {}, `${brake.scope}${brake.node ? " on " + brake.node : ""} `), `${brake.what}; ${brake.waitsFor}. `, time(brake.since, "for")))
    : make("p", { class: "quiet" }, "No brake is engaged."));
  const caps = [...model.all("cap")];
  panel("caps", "Caps", caps.length ? caps.map((cap) => make("div", {}, make("h3", { class: "mono" }, cap.scope), make("dl", {},
    ...pair("Out of service", `${cap.out} of at most ${cap.allowed} (${cap.known} known)`), ...pair("Evicted in 24 h", `${cap.evictedToday} of at most ${cap.allowedToday}`)),
    make("meter", { min: "0", max: String(Math.max(cap.allowed, 1)), value: String(cap.out), "aria-label": "out of service" }))) : make("p", { class: "quiet" }, "Nothing is out of service on our account."));
  const limits = model.get("limits");
  panel("rates", "Limits", limits ? make("dl", {}, ...pair("Evictions under way", `${limits.inFlight} of ${limits.maxInFlight}`), ...pair("Evictions a minute", String(limits.evictionsPerMinute)), ...pair("On one node", String(limits.perNode)),
    ...pair("Of one owner", String(limits.perOwner)), ...pair("New taints a minute", String(limits.taintsPerMinute)), ...pair("Brake", `${limits.brakePercent} % and at least ${limits.brakeAtLeast} within ${durationWords(limits.brakeWithinSeconds)}`),
    ...pair("Paused", limits.paused ? "yes" : (limits.pausedParts || []).join("; ") || "no")) : make("p", { class: "quiet" }, "Not known yet."));
  const policies = model.get("policies") || [];
  panel("policies", "Policies", policies.length ? make("dl", {}, ...policies.flatMap((policy) => pair(policy.name, [policy.effectiveMode, `incident after ${durationWords(policy.afterSeconds)}`, policy.taints ? "taints" : "", policy.credits ? "credits" : "",
    policy.evicts ? `evicts after ${durationWords(policy.evictAfterSeconds)} more` : "does not evict"].filter(Boolean).join(", ")))) : make("p", { class: "quiet" }, "No policy is loaded."));
  const watches = model.get("watches") || [];
  panel("watches", "Watches", make("dl", {}, ...watches.flatMap((watch) => [make("dt", {}, watch.kind), make("dd", {}, watch.problem || (watch.forbidden ? "forbidden" : !watch.listed ? "not listed yet" : watch.heardAt ? "" : "listed"), watch.heardAt ? time(watch.heardAt, "ago") : "")])));
}

// ---- together

let ready = false;
let asked = false;
function render() {
  asked = false;
  const controller = model.get("controller");
  if (controller) showController(controller);
  const incidents = incidentsOf(model);
  showNotices(controller, model.get("watches"));
  showSummary(countsOf(model, incidents));
  showIncidents(incidents);
  showNodes();
  showVerdicts();
  showLimits();
  if (controller && !controller.silent) ready = true;
  document.documentElement.dataset.shown = String(Number(document.documentElement.dataset.shown || 0) + 1);
}
/** Once a frame at most; a page that nobody sees is drawn when it is seen, but its title tells. */
function ask() {
  if (document.hidden) showTitle(countsOf(model, []));
  if (asked) return;
  asked = true;
  requestAnimationFrame(render);
}

function setLink(state, words) {
  link = state;
  $("link").dataset.state = state;
  if ($("link-text").textContent !== words) $("link-text").textContent = words;
  document.body.classList.toggle("stale", state === "lost" || state === "stale" || turned >= 30);
}

let source = null;
function connect() {
  source = new EventSource("events");
  const heard = (data) => {
    heardAt = Date.now();
    if (data.now) setServerTime(data.now);
    if (link !== "live") { setLink("live", "live"); ask(); }
  };
  const take = (event) => { const data = JSON.parse(event.data); turned = 0; heard(data); model.take(data, event.type === "whole"); ask(); };
  source.addEventListener("whole", take);
  source.addEventListener("change", take);
  source.addEventListener("beat", (event) => { const data = JSON.parse(event.data); turned = data.lastTurnSeconds; heard(data); });
  source.addEventListener("end", () => { ended = true; });
  source.onerror = () => {
    setLink("lost", ended ? "the controller has ended; trying again" : "connection lost; trying again");
    ended = false;
    ask();
    if (source.readyState !== EventSource.CLOSED) return;  // the browser tries again itself
    source = null;
    setTimeout(connect, 3000);
  };
}

setInterval(() => {
  if (link === "live" && Date.now() - heardAt > 15000) { setLink("stale", "no word from the controller"); ask(); }
  if (link !== "live") showNotices(model.get("controller"), model.get("watches"));
  tick();
}, 1000);

let typing = 0;
$("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { wanted = $("search").value.trim().toLowerCase(); ask(); }, 80); });
$("trouble").addEventListener("change", ask);
$("more-incidents").addEventListener("click", () => { incidentRows = Infinity; ask(); });
$("more-verdicts").addEventListener("click", () => { rows += 1000; ask(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) { event.preventDefault(); $("search").focus(); }
  if (event.key === "Escape" && document.activeElement === $("search")) { $("search").value = ""; wanted = ""; ask(); }
});
for (const grid of [$("troubled"), $("calm")]) {
  grid.addEventListener("click", (event) => {
    const tile = event.target.closest(".node");
    if (tile) { showNode("node/" + tile.dataset.name); $("detail").showModal(); }
  });
  grid.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columnsOf(grid), ArrowUp: -columnsOf(grid), Home: -1e9, End: 1e9 }[event.key];
    if (!step || !event.target.classList.contains("node")) return;
    event.preventDefault();
    const shown = [...grid.querySelectorAll(".node")].filter((tile) => !tile.hidden);
    const next = shown[Math.max(0, Math.min(shown.length - 1, shown.indexOf(event.target) + step))];
    next.focus();
  });
}
function columnsOf(grid) { return getComputedStyle(grid.querySelector(".grid") || grid).gridTemplateColumns.split(" ").length; }
$("detail").addEventListener("close", () => { openNode = null; });

const kThemes = ["auto", "light", "dark"];
function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme[0].toUpperCase() + theme.slice(1);
  $("theme").setAttribute("aria-label", "Colours: " + (theme === "auto" ? "as the system" : theme));
  try { localStorage.setItem("theme", theme); } catch { /* no storage: for this visit only */ }
}
let theme = "auto";
try { theme = kThemes.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "auto"; } catch { /* as above */ }
setTheme(theme);
$("theme").addEventListener("click", () => { theme = kThemes[(kThemes.indexOf(theme) + 1) % 3]; setTheme(theme); });
render();
connect();
