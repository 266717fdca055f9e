// Keys of the approvals pages: `?` lists them, data-key names the link that a letter follows. The switch on the inbox turns
// every one of them off, here and there, and is remembered.
import { typing } from "./shell.js";

export const keysOn = () => localStorage.getItem("keys") !== "off";
export const apply = () => { document.body.dataset.keys = keysOn() ? "on" : "off"; };
apply();

// a letter means something else in a field, with a modifier, and while a dialog is open
export const meant = (event) => keysOn() && !event.ctrlKey && !event.metaKey && !event.altKey && !typing(event.target)
  && !document.querySelector("dialog[open]");

document.addEventListener("keydown", (event) => {
  if (!meant(event) || event.defaultPrevented) return;
  if (event.key === "?") document.getElementById("all-keys").showModal();
  else if (/^[jk]$/.test(event.key)) document.querySelector(`[data-key="${event.key}"]`)?.click();
  else return;
  event.preventDefault();
});
