// What is typed beside the answer (a remark, a question, an amount, why it is handed on) survives, for its author, the
// move to a successor request, a refusal and a login that had ended. It is let go once the server says that it was taken.
const run = document.getElementById("bar")?.dataset.run;
const KEPT = `typed:${document.body.dataset.user}:${run}`, SENT = `typed-sent:${document.body.dataset.user}:${run}`;
const what = (form) => new URL(form.action).pathname.split("/").filter(Boolean).at(-1);
const slot = (field) => `${what(field.form)} ${field.name}`;
const mine = (field) => field.matches("textarea, select, input.form-control") && field.form && field.form.id !== "decide" && field.form.closest("main");

let kept = JSON.parse(sessionStorage.getItem(KEPT) || "{}");

function keep(field) {
  kept[slot(field)] = field.value;
  sessionStorage.setItem(KEPT, JSON.stringify(kept));
}

const sent = sessionStorage.getItem(SENT);
sessionStorage.removeItem(SENT);
if (sent && document.querySelector("#messages .is-green")) {
  kept = Object.fromEntries(Object.entries(kept).filter(([name]) => !name.startsWith(`${sent} `)));
  sessionStorage.setItem(KEPT, JSON.stringify(kept));
}

for (const field of document.querySelectorAll("main form :is(textarea, select, input)")) {
  if (!mine(field)) continue;
  if (field.value && field.tagName !== "SELECT") keep(field); // given back by the server
  else if (kept[slot(field)] && !field.value) field.value = kept[slot(field)];
  if (kept[slot(field)]) field.closest("details")?.setAttribute("open", "");
}

for (const kind of ["input", "change"]) {
  document.addEventListener(kind, (event) => { if (event.target.matches?.("main form *") && mine(event.target)) keep(event.target); });
}
document.addEventListener("submit", (event) => {
  if (event.target.id !== "decide" && event.target.closest("main")) sessionStorage.setItem(SENT, what(event.target));
});
