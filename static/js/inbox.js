// The inbox: keys, and a list that tells about arrivals instead of jumping.
import { apply, keysOn, meant } from "./keys.js";

const rows = () => [...document.querySelectorAll(".ask")];
const news = document.getElementById("news");

// ---- keys, with a switch that is remembered
const toggle = document.getElementById("keys");
document.getElementById("keys-bar").hidden = false;
toggle.checked = keysOn();
toggle.addEventListener("change", () => { localStorage.setItem("keys", toggle.checked ? "on" : "off"); apply(); });

function mark(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("here"));
  const next = all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + step))];
  all[at]?.classList.remove("here");
  next.classList.add("here");
  next.querySelector(".title").focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (!meant(event)) return;
  if (event.key === "j") mark(1);
  else if (event.key === "k") mark(-1);
  else if (event.key === "Enter" && event.target === document.body) document.querySelector(".ask.here .title")?.click();
  else return;
  event.preventDefault();
});

// ---- arrivals wait for a click; what left the list leaves the page
document.addEventListener("htmx:afterSwap", () => {
  const live = document.getElementById("live");
  if (!live) return;
  const now = new Set(live.dataset.ids.split(" ").filter(Boolean));
  const shown = rows();
  for (const row of shown) if (!now.has(row.dataset.id)) leave(row);
  const known = new Set(shown.map((row) => row.dataset.id));
  const fresh = [...now].filter((id) => !known.has(id)).length;
  if (fresh) news.replaceChildren(link(`Show ${fresh} new`));
  else if (!now.size && shown.length) news.replaceChildren("Nothing is left in this list. ", link("Load it again"));
  else if (news.querySelector("a")) news.replaceChildren();
});

function link(text) {
  const found = document.createElement("a");
  found.href = location.href;
  found.textContent = text;
  return found;
}

function leave(row) {
  if (row.contains(document.activeElement)) mark(row.nextElementSibling ? 1 : -1);
  const section = row.closest("section");
  row.remove();
  const left = section.querySelectorAll(".ask").length;
  section.querySelector(".asks-head span").textContent = left;
  section.hidden = !left;
}
