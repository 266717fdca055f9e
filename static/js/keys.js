// Keys of the approvals pages: `?` lists them, data-key names the link that a letter follows. The person's preference, which
// the page carries, turns every one of them off.
import { typing } from "./shell.js";

export const keysOn = () => document.body.dataset.keys !== "off";

// a letter means something else in a field, with a modifier, and while a dialog is open
export const meant = (event) => keysOn() && !event.ctrlKey && !event.metaKey && !event.altKey && !typing(event.target)
  && !document.querySelector("dialog[open]");

document.addEventListener("keydown", (event) => {
  if (!meant(event) || event.defaultPrevented) return;
  const link = /^[a-z]$/.test(event.key) && document.querySelector(`[data-key="${event.key}"]`);
  if (event.key === "?") document.getElementById("all-keys").showModal();
  else if (link) link.click();
  else if (event.key === "a" && document.getElementById("approve")) document.getElementById("approve").click();
  else if (event.key === "r" && document.getElementById("comment")) document.getElementById("comment").focus();
  else return;
  event.preventDefault();
});
