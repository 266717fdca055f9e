// Ticked requests: how many, their sum in each currency, and only one kind at a time. On the page that asks, one click is
// one submit.
const form = document.getElementById("together");
const boxes = () => [...document.querySelectorAll('.ask input[name="request"]')];
const places = (currency) => new Intl.NumberFormat("en-US", { style: "currency", currency }).resolvedOptions().maximumFractionDigits;

function sums(ticked) {
  const found = new Map();
  for (const box of ticked) {
    if (box.dataset.minor) found.set(box.dataset.currency, (found.get(box.dataset.currency) || 0n) + BigInt(box.dataset.minor));
  }
  return [...found].map(([currency, minor]) => {
    const digits = String(minor).padStart(places(currency) + 1, "0"), cut = digits.length - places(currency);
    const plain = places(currency) ? `${digits.slice(0, cut)}.${digits.slice(cut)}` : digits;
    const shown = new Intl.NumberFormat("en-US", { style: "currency", currency }).format(plain);
    return shown.includes(currency) ? shown : `${shown} ${currency}`; // once: some currencies have no sign of their own
  }).join(" + ");
}

function told() {
  const ticked = boxes().filter((box) => box.checked), kind = ticked[0]?.dataset.kind, most = Number(form.dataset.most);
  let others = 0;
  for (const box of boxes()) {
    box.disabled = Boolean(kind) && box.dataset.kind !== kind;
    others += box.disabled;
    box.closest(".ask").classList.toggle("ticked", box.checked);
  }
  form.hidden = !ticked.length;
  document.body.classList.toggle("has-together", Boolean(ticked.length));
  form.querySelector("[data-together-count]").textContent = `${ticked.length} ticked`;
  const many = ticked.length > most;
  form.querySelector("[data-together-note]").textContent = many ? `At most ${most} go together; untick some.`
    : others ? `Of one kind only: ${others} of another cannot be ticked with ${ticked.length > 1 ? "these" : "it"}.` : "Each is checked again on its own.";
  form.querySelector("[data-together-sum]").textContent = sums(ticked);
  for (const button of form.querySelectorAll("[data-together]")) {
    button.textContent = `${button.dataset.together} ${ticked.length}…`;
    button.disabled = many;
  }
}

if (form) {
  document.addEventListener("change", (event) => { if (event.target.matches?.('.ask input[name="request"]')) told(); });
  document.addEventListener("inbox:moved", told);
  form.querySelector("[data-together-clear]").addEventListener("click", () => {
    for (const box of boxes()) box.checked = false;
    told();
  });
  window.addEventListener("pageshow", told);
  told();
}

const asked = document.getElementById("bulk-form");
asked?.addEventListener("submit", (event) => {
  if (asked.hasAttribute("data-sent")) event.preventDefault();
  asked.setAttribute("data-sent", "");
});
window.addEventListener("pageshow", () => asked?.removeAttribute("data-sent"));
document.getElementById("notice")?.focus();
