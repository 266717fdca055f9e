// Dialogs: a link with data-opens shows one instead of loading its address, data-closes shuts it; focus goes back.
let opener = null;

function show(dialog) {
  if (dialog.open) dialog.close();
  dialog.showModal();
  dialog.querySelector("[aria-invalid=true], textarea, input:not([type=hidden])")?.focus();
}

for (const dialog of document.querySelectorAll("dialog")) {
  if (dialog.hasAttribute("data-open-now")) show(dialog);
  dialog.addEventListener("close", () => opener?.focus());
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("[data-opens], [data-closes]");
  if (!link) return;
  const dialog = document.getElementById(link.dataset.opens || link.dataset.closes);
  if (!dialog) return;
  event.preventDefault();
  if (link.dataset.opens) {
    opener = link;
    show(dialog);
  } else {
    dialog.close();
  }
});
