// The decision page: what changed has to be ticked, approving is confirmed, rejecting has a reason, and what was typed
// survives, for its author, the move to a successor request and a login that had ended. One click is one submit. The bar
// may be replaced at any time, so everything listens on the document.
import { SENT } from "./shell.js";

const form = () => document.getElementById("decide");
const comment = () => document.getElementById("comment");
const key = () => `comment:${document.body.dataset.user}:${document.getElementById("bar")?.dataset.run}`;

// who may not answer now may be able to later, on this page or its successor: the comment waits for that form
const unsent = document.getElementById("unsent")?.dataset.keep;
if (unsent) sessionStorage.setItem(key(), unsent);

function settle() {
  if (!form()) sessionStorage.removeItem(SENT); // answered, or no longer asked
  const seen = document.getElementById("seen"), approve = document.getElementById("approve");
  const off = document.getElementById("why-off");
  if (seen && approve) approve.disabled = !seen.checked || Boolean(document.getElementById("held"));
  if (seen && off) off.hidden = seen.checked;
  if (comment() && !comment().value) comment().value = sessionStorage.getItem(key()) || sessionStorage.getItem(SENT) || "";
  const again = document.getElementById("confirm");
  if (again?.hasAttribute("data-open")) {
    again.removeAttribute("data-open");
    again.close();
    again.showModal();
  }
}

document.addEventListener("change", (event) => { if (event.target.id === "seen") settle(); });
document.addEventListener("input", (event) => {
  if (event.target.id === "comment") sessionStorage.setItem(key(), event.target.value);
});

document.addEventListener("submit", (event) => {
  if (event.target.id !== "decide") return;
  if (event.target.hasAttribute("data-sent")) return event.preventDefault();
  const choice = event.submitter?.value;
  if (event.submitter?.hasAttribute("data-cancel")) {
    event.preventDefault();
    document.getElementById("confirm").close();
  } else if (choice === "approve") {
    event.preventDefault();
    const again = document.getElementById("confirm"), yes = again.querySelector("[value=approve_confirmed]");
    if (!again.open) again.showModal();
    else if (yes) setTimeout(() => yes.click()); // Enter in the dialog's own field; not within another submit
  } else if (choice === "reject" && !comment().value.trim()) {
    event.preventDefault();
    comment().setAttribute("aria-invalid", "true");
    document.getElementById("comment-error").textContent = "Say why you reject it.";
    comment().focus();
  } else {
    event.target.setAttribute("data-sent", "");
    sessionStorage.removeItem(key());
    sessionStorage.setItem(SENT, comment().value);
  }
});

// a page that comes back from the browser's memory may be sent again; the server answers the same word as it did before
window.addEventListener("pageshow", () => form()?.removeAttribute("data-sent"));

document.addEventListener("htmx:afterSettle", settle);
document.getElementById("notice")?.focus();
if (comment()?.value) sessionStorage.setItem(key(), comment().value); // refused: it may be asked anew on another page
settle();
