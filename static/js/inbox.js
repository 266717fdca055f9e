// The inbox: keys, the place one comes back to, and a list that tells about arrivals instead of jumping.
import { meant } from "./keys.js";

const rows = () => [...document.querySelectorAll(".ask")];
const here = () => document.querySelector(".ask.here");
const news = document.getElementById("news");
const tick = (row) => row?.querySelector("input[type=checkbox]");

// ---- keys
const toggle = document.getElementById("keys");
document.getElementById("keys-bar").hidden = false;
toggle.addEventListener("change", () => { document.body.dataset.keys = toggle.checked ? "on" : "off"; });

function mark(row, { focus = true } = {}) {
  if (!row) return;
  here()?.classList.remove("here");
  row.classList.add("here");
  if (focus) row.querySelector(".title").focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = rows(), at = all.indexOf(here());
  mark(all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + by))]);
}

function answer(choice) {
  const button = document.querySelector(`#together:not([hidden]) [value="${choice}"]:not(:disabled)`);
  if (button) button.click();
  else here()?.querySelector(".title").click();
}

document.addEventListener("keydown", (event) => {
  if (!meant(event)) return;
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "o" || (event.key === "Enter" && event.target === document.body)) here()?.querySelector(".title").click();
  else if (event.key === "x") tick(here())?.click();
  else if (event.key === "a") answer("approve");
  else if (event.key === "r") answer("reject");
  else if (event.key === "Escape") document.querySelector("[data-together-clear]")?.click();
  else if (event.key === "/") document.getElementById("look").select();
  else return;
  event.preventDefault();
});

// ---- the place: the request that was opened last is marked when one comes back
const around = new URLSearchParams(location.search).get("around");
const back = () => around || sessionStorage.getItem("inbox-here");
document.addEventListener("click", (event) => {
  const row = event.target.closest?.(".ask");
  if (row && event.target.closest("a")) sessionStorage.setItem("inbox-here", row.dataset.id);
});
if (back()) mark(rows().find((row) => row.dataset.id === back()), { focus: Boolean(around) });

// the filters close on Escape, and a search is sent by Enter
const narrow = document.getElementById("narrow");
narrow.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !narrow.open) return;
  narrow.open = false;
  narrow.querySelector("summary").focus();
});
document.addEventListener("click", (event) => { if (narrow.open && !narrow.contains(event.target)) narrow.open = false; });
// an address holds what was chosen, and nothing of what was not
document.getElementById("filters").addEventListener("formdata", (event) => {
  for (const [name, value] of [...event.formData]) if (!value.trim() || name === "keys") event.formData.delete(name);
});

// ---- arrivals wait for a click; what left the list leaves the page
document.addEventListener("htmx:afterSwap", (event) => {
  const live = document.getElementById("live");
  if (!live || event.detail.target?.id !== "live") return;
  const now = live.dataset.ids.split(" ").filter(Boolean), held = new Set(now);
  const shown = rows(), known = new Set(shown.map((row) => row.dataset.id));
  for (const row of shown) if (!held.has(row.dataset.id)) leave(row);
  const last = now.findLastIndex((id) => known.has(id));
  const counted = document.querySelector(".asks")?.dataset.more && last >= 0 ? now.slice(0, last) : now;
  const fresh = counted.filter((id) => !known.has(id)).length;
  if (fresh) news.replaceChildren(link(`Show ${fresh} new`));
  else if (!now.length && shown.length) news.replaceChildren("Nothing is left in this list. ", link("Load it again"));
  else news.replaceChildren();
  document.dispatchEvent(new Event("inbox:moved"));
});
for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(name, (event) => {
    if (event.detail.elt?.id !== "live" || event.detail.xhr?.status === 401) return;
    news.replaceChildren("This list stands still: the server does not answer. It is tried again every few seconds.");
  });
}

function link(text) {
  const found = document.createElement("a");
  found.href = location.href;
  found.textContent = text;
  return found;
}

function leave(row) {
  if (row.contains(document.activeElement)) step(row.nextElementSibling ? 1 : -1);
  const section = row.closest("section");
  row.remove();
  const left = section.querySelectorAll(".ask").length;
  section.querySelector(".asks-head span").textContent = left;
  section.hidden = !left;
}

// ---- a hint that it is worth looking now; without it the page looks every few seconds
let pause = 1000;
function listen() {
  const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/approvals/`);
  socket.addEventListener("open", () => { pause = 1000; });
  socket.addEventListener("message", () => htmx.trigger("#live", "look"));
  socket.addEventListener("close", (event) => {
    if (event.code === 4401 || event.code === 4403) return;
    setTimeout(listen, pause);
    pause = Math.min(pause * 2, 60000);
  });
}
if (document.getElementById("live")) listen();
