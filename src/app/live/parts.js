// Pieces of the document. Every text becomes a text node: what a driver or a pod's name says is never markup.

/** An element with attributes and children; strings become text. */
export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

let ahead = 0;  // of the controller's clock before ours, in ms
export function setServerTime(millis) { ahead = millis - Date.now(); }
export const serverNow = () => Date.now() + ahead;

const kDay = 86400;
/** `45 s`, `4 min`, `3 h 05 min`, `2 d 4 h`: as exact as one wants to know it. */
export function durationWords(seconds) {
  const s = Math.round(seconds);
  if (s < 90) return `${s} s`;
  if (s < 600 && s % 60) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < kDay) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(s / kDay)} d ${Math.floor((s % kDay) / 3600)} h`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long", hourCycle: "h23" });

function wordsOfTime(element, now) {
  const seconds = (Date.parse(element.dateTime) - now) / 1000;
  switch (element.dataset.kind) {
    case "for": return "for " + durationWords(Math.max(0, -seconds));
    case "in": return seconds >= 0 ? "in " + durationWords(seconds) : seconds > -3 ? "now" : "due for " + durationWords(-seconds);
    default: return seconds > 0 ? "in " + durationWords(seconds) : durationWords(-seconds) + " ago";
  }
}

/** A time: relative, kept up to date; absolute when pointed at. `kind`: for, in or ago; `at` for the clock's. */
export function time(at, kind) {
  if (!at) return "";
  const date = new Date(at);
  const element = make("time", { datetime: at, title: full.format(date) + " (" + at + ")" });
  if (kind === "at") {
    const isToday = Math.abs(serverNow() - date) < 12 * 3600e3;
    element.textContent = isToday ? clock.format(date) : full.format(date);
  } else {
    element.dataset.kind = kind;
    element.textContent = wordsOfTime(element, serverNow());
  }
  return element;
}

/** All relative times of the page, once a second. */
export function tick() {
  const now = serverNow();
  for (const element of document.querySelectorAll("time[data-kind]")) {
    const words = wordsOfTime(element, now);
    if (element.textContent !== words) element.textContent = words;
  }
}

/** A name that may be broken after a slash rather than anywhere. */
export function breakable(text) { return text.split("/").flatMap((part, index) => (index ? ["/", document.createElement("wbr"), part] : [part])); }

export function pill(words, tone) { return make("span", { class: "pill " + (tone || "") }, words); }

/** The gates of an eviction, with a mark at the one that holds. */
export function gates(list, gate) {
  const holds = list.findIndex((one) => one.name === gate);
  return make("details", { class: "why-not", "data-key": "gates" },
    make("summary", {}, `Why not now: gate ${holds + 1} of ${list.length} holds, ${gate}`),
    make("ol", { class: "gates" }, list.map((one, index) => {
      const state = index < holds ? "passed" : index === holds ? "holds" : "later";
      const mark = { passed: "✓", holds: "▶", later: "·" }[state];
      const said = { passed: "passed: ", holds: "holds here: ", later: "not asked yet: " }[state];
      return make("li", { class: state, "aria-current": state === "holds" ? "step" : null },
        make("span", { class: "mark", "aria-hidden": "true" }, mark), make("span", { class: "sr" }, said), `${index + 1}. ${one.name}: ${one.passes}`);
    })));
}

/** What happened, and below it what comes. */
export function timeline(steps, coming) {
  return make("ol", { class: "timeline" },
    steps.map((step) => make("li", {}, time(step.at, "at"), make("span", {}, step.what))),
    coming.map((step) => make("li", { class: "coming" }, time(step.at, "in"), make("span", {}, step.what, " at ", time(step.at, "at")))));
}

/** Shows these in the place, in this order; what has not changed stays as it is, with its focus and whatever is open in it. */
export function keep(place, items, keyOf, signOf, makeOne) {
  const known = place.kept || (place.kept = new Map());
  const next = new Map();
  let at = place.firstElementChild;
  for (const item of items) {
    const key = keyOf(item), sign = signOf(item), was = known.get(key);
    let element = was && was.element;
    if (!was || was.sign !== sign) {
      const fresh = makeOne(item, !was);
      if (element) {
        carryOver(element, fresh);
        if (at === element) at = fresh;
        element.replaceWith(fresh);
      }
      element = fresh;
    }
    next.set(key, { element, sign });
    if (at === element) at = at.nextElementSibling;
    else place.insertBefore(element, at);
    known.delete(key);
  }
  for (const { element } of known.values()) element.remove();
  place.kept = next;
}

/** What was open stays open, and what had the focus gets it back. */
function carryOver(old, fresh) {
  if (old.open !== undefined) fresh.open = old.open;
  const open = [...old.querySelectorAll("details")].map((one) => one.open);
  fresh.querySelectorAll("details").forEach((one, index) => { one.open = open[index] || false; });
  if (!old.contains(document.activeElement)) return;
  const order = [...old.querySelectorAll("summary, button, a")].indexOf(document.activeElement);
  requestAnimationFrame(() => ([...fresh.querySelectorAll("summary, button, a")][order] || fresh).focus({ preventScroll: true }));
}
