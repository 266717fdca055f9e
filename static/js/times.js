// Keeps relative times and countdowns true without asking the server; the words are those of runs/times.py.
const NEAR = 15 * 60;

function span(seconds) {
  const whole = Math.floor(Math.abs(seconds));
  const minutes = Math.floor(whole / 60), hours = Math.floor(whole / 3600), days = Math.floor(whole / 86400);
  if (whole < 60) return `${whole} s`;
  if (!hours) return `${minutes} min`;
  if (!days) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 && days < 14 ? `${days} d ${hours % 24} h` : `${days} d`;
}

function relative(seconds) {
  if (Math.abs(seconds) < 10) return seconds <= 0 ? "just now" : "in a moment";
  return seconds > 0 ? `in ${span(seconds)}` : `${span(seconds)} ago`;
}

// the server's clock, not the reader's: the page carries when it was made
const made = Date.parse(document.body.dataset.now || "") || Date.now();
const offset = made - Date.now();

function tick() {
  const now = Date.now() + offset;
  for (const node of document.querySelectorAll("time[data-relative]")) {
    node.textContent = relative((Date.parse(node.dateTime) - now) / 1000);
  }
  for (const node of document.querySelectorAll("[data-due]")) {
    const seconds = (Date.parse(node.dataset.due) - now) / 1000;
    node.lastElementChild.textContent = seconds > 0 ? `${span(seconds)} left` : "time is up";
    node.classList.toggle("near", seconds < NEAR);
  }
}

setInterval(tick, 1000 * 10);
document.addEventListener("htmx:afterSettle", tick);
