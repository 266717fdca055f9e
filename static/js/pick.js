// The list of runs: what is ticked stays ticked, so the list does not refresh itself while something is.
const ticked = () => document.querySelectorAll(".pick-one:checked").length;
const every = () => document.querySelector("[data-pick-all]")?.checked;
let words = "";

function told() {
  const form = document.getElementById("pick");
  if (!form) return;
  const some = ticked() || every();
  form.classList.toggle("some", Boolean(some));
  for (const button of form.querySelectorAll("button")) button.disabled = !some;
  for (const box of document.querySelectorAll(".pick-one")) box.disabled = Boolean(every());
  const said = form.querySelector("[data-pick-count]");
  words ||= said.innerHTML;
  if (every()) said.textContent = "All that match are chosen. The list stands still meanwhile.";
  else if (ticked()) said.textContent = `${ticked()} chosen. The list stands still meanwhile.`;
  else said.innerHTML = words;
}

document.addEventListener("change", (event) => { if (event.target.matches?.(".pick-one, [data-pick-all]")) told(); });
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.elt?.id === "run-list" && (ticked() || every())) event.preventDefault();
});
document.addEventListener("htmx:afterSettle", told);
told();
