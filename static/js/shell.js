// The frame: zone and theme cookies, menus, the find field, and what a lost login looks like.
const YEAR = 31536000;

function remember(name, value) {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${name}=${encodeURIComponent(value)}; Path=/; Max-Age=${YEAR}; SameSite=Lax${secure}`;
}

remember("tz", Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");

for (const input of document.querySelectorAll('input[name="theme"]')) {
  input.addEventListener("change", () => {
    document.documentElement.dataset.theme = input.value;
    remember("theme", input.value);
    document.dispatchEvent(new Event("theme:chosen"));
  });
}

// what was sent is kept until the page after it is there: its author, asked once more on the same page, was not answered
export const SENT = `sent:${document.body.dataset.user}:${location.pathname}`;
if (document.body.dataset.user) {
  const kept = Object.keys(sessionStorage).filter((name) => name.startsWith("sent:") && name !== SENT);
  kept.forEach((name) => sessionStorage.removeItem(name));
}

const burger = document.querySelector(".burger");
burger?.addEventListener("click", () => {
  const open = burger.closest(".topbar").classList.toggle("open");
  burger.setAttribute("aria-expanded", String(open));
});

// menus close on Escape (focus goes back) and on a click elsewhere
const menus = document.querySelectorAll("details.menu");
document.addEventListener("click", (event) => {
  for (const menu of menus) if (menu.open && !menu.contains(event.target)) menu.open = false;
});
for (const menu of menus) {
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}

// what waits where may have changed while another tab was looked at
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) document.getElementById("waiting")?.dispatchEvent(new Event("look"));
});

export const typing = (target) => target.matches?.("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (document.body.dataset.keys === "off" || document.querySelector("dialog[open]")) return;
  const find = document.getElementById("find");
  if (!find) return;
  event.preventDefault();
  find.focus();
});

// a page that refreshes itself finds out that the login is gone
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status !== 401) return;
  document.getElementById("signed-out")?.removeAttribute("hidden");
});
