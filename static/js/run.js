// The page of a run: keeps it live by web socket (or by asking, without one), shows events in place, moves along lanes.
const live = document.getElementById("live");
const state = document.getElementById("live-state");
const detail = document.getElementById("detail");
const KEEP = 600; // lines; older ones are on the pages before
const ASK_EVERY = 4000;
const WAIT_BEFORE_ASKING = 2500;
let socketOpen = false;
let asking = null;
let heard = Date.now();

const sync = () => document.getElementById("run-sync");
const lastSeen = () => Number(sync()?.dataset.seq || 0);

function say(name, words) {
  if (!state) return;
  const target = state.querySelector("[data-words]");
  if (state.dataset.state === name && target.textContent === words) return;
  state.dataset.state = name;
  target.textContent = words;
}

function told() {
  const data = sync()?.dataset;
  const seq = Number(data?.seq || 0), last = Number(data?.last || 0);
  if (seq < last) say("behind", `Catching up: event ${seq} of ${last}`);
  else if (data?.over === "yes") say("over", "Ended; nothing more happens");
  else if (socketOpen) say("live", "Live");
}

function lost() {
  const since = new Date(heard).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  say("behind", `Reconnecting. What you see may be behind since ${since}`);
}

// lines by number: a line that came twice (by socket and by asking) stays once, and they stand in order
function tidy() {
  const list = document.getElementById("events");
  if (!list) return;
  const seen = new Set();
  let highest = 0;
  for (const line of [...list.querySelectorAll("li[data-seq]")]) {
    const seq = Number(line.dataset.seq);
    if (seen.has(seq)) line.remove();
    else if (seq < highest) [...list.querySelectorAll("li[data-seq]")].find((other) => Number(other.dataset.seq) > seq)?.before(line);
    seen.add(seq);
    highest = Math.max(highest, seq);
  }
  for (let extra = list.children.length - KEEP; extra > 0; extra -= 1) list.firstElementChild.remove();
}

let chosen = Number(new URLSearchParams(location.search).get("event") || 0);
let focusId = "";

function mark() {
  for (const node of document.querySelectorAll("[data-event]")) {
    if (Number(node.dataset.event) === chosen) node.setAttribute("aria-current", "true");
    else node.removeAttribute("aria-current");
  }
  for (const track of document.querySelectorAll(".lanes svg.track")) {
    const bars = [...track.querySelectorAll("a.bar")];
    const stop = bars.find((bar) => bar.hasAttribute("aria-current")) || bars[0];
    for (const bar of bars) bar.setAttribute("tabindex", bar === stop ? "0" : "-1");
  }
}

function fresh() {
  heard = Date.now();
  if (sync()?.dataset.stopping === "yes") {
    document.querySelectorAll('[data-opens^="act-"]').forEach((button) => button.setAttribute("hidden", ""));
  }
  tidy();
  mark();
  if (focusId && document.activeElement === document.body) document.getElementById(focusId)?.focus();
  told();
}

function choose(link) {
  chosen = Number(link.dataset.event);
  mark();
  const address = new URL(link.getAttribute("href"), location.href);
  const at = `${address.pathname}events/${chosen}/`;
  htmx.ajax("GET", at, { target: "#detail", swap: "innerHTML" }).then(() => {
    if (matchMedia("(max-width: 70rem)").matches) detail.querySelector("h3")?.focus();
  });
}

document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.target.closest?.("[data-event]");
  if (link && detail) {
    event.preventDefault();
    choose(link);
    return;
  }
  if (event.target.closest?.("[data-close-detail]")) {
    event.preventDefault();
    const back = document.querySelector(`[data-event="${chosen}"]`);
    chosen = 0;
    mark();
    detail.replaceChildren();
    back?.focus();
  }
});

document.addEventListener("focusin", (event) => { focusId = event.target.id || ""; });

document.addEventListener("keydown", (event) => {
  const bar = event.target.closest?.("a.bar");
  if (!bar || !["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].includes(event.key)) return;
  event.preventDefault();
  const bars = [...bar.closest("svg.track").querySelectorAll("a.bar")];
  let next = bars[bars.indexOf(bar) + (event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0)];
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    const stops = [...document.querySelectorAll('.lanes a.bar[tabindex="0"]')];
    const here = stops.findIndex((stop) => stop.closest("svg.track") === bar.closest("svg.track"));
    next = stops[here + (event.key === "ArrowDown" ? 1 : -1)];
  }
  next?.focus();
});

if (live) {
  htmx.createWebSocket = (url) => new WebSocket(`${url}?after=${lastSeen()}`);
  document.addEventListener("htmx:wsOpen", () => {
    socketOpen = true;
    clearInterval(asking);
    asking = null;
    told();
  });
  document.addEventListener("htmx:wsAfterMessage", fresh);
  document.addEventListener("htmx:wsClose", (event) => {
    socketOpen = false;
    const code = event.detail.event?.code;
    if (code === 4401) {
      document.getElementById("signed-out")?.removeAttribute("hidden");
      say("behind", "Signed out. This page no longer moves");
    } else if (code === 4403 || code === 4404) {
      location.reload(); // the page itself says why it may not be seen any more
    } else {
      lost();
      setTimeout(startAsking, WAIT_BEFORE_ASKING);
    }
  });
  document.addEventListener("htmx:afterSettle", (event) => { if (event.detail.elt?.id === "live") fresh(); });
  setTimeout(startAsking, WAIT_BEFORE_ASKING);
}

function startAsking() {
  if (socketOpen || asking) return;
  const ask = async () => {
    try {
      const response = await fetch(`${live.dataset.poll}?after=${lastSeen()}`, { headers: { "HX-Request": "true" }, redirect: "error" });
      if (response.status === 401) return document.getElementById("signed-out")?.removeAttribute("hidden");
      if (response.status === 403) return location.reload();
      if (!response.ok) return socketOpen || lost();
      if (response.status === 200) {
        htmx.swap(live, await response.text(), { swapStyle: "none" });
        fresh();
      }
      heard = Date.now();
      if (socketOpen) return told(); // it came back while this question was on its way
      if (lastSeen() >= Number(sync().dataset.last)) say("asking", "No live connection; looked every 4 s");
    } catch {
      if (!socketOpen) lost();
    }
  };
  asking = setInterval(ask, ASK_EVERY);
  ask();
}

mark();
