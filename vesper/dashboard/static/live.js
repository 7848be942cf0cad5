// Refreshes the regions `<section data-live id="…">` of a page when its topics change.
const topics = document.body.dataset.topics;
const MIN_INTERVAL_MS = 2000;
let last = 0, timer = 0;

function replace(fresh) {
  for (const region of document.querySelectorAll("[data-live][id]")) {
    const next = fresh.getElementById(region.id);
    if (!next || next.innerHTML === region.innerHTML) continue;
    // A form that is open, or has the focus, is not taken away from its reader.
    if (region.querySelector("details.action[open]") || region.querySelector(":focus:is(input, select, textarea)")) continue;
    const focus = region.contains(document.activeElement) ? path(region, document.activeElement) : null;
    const scrolls = [...region.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
    region.replaceChildren(...document.importNode(next, true).childNodes);
    [...region.querySelectorAll(".scroll")].forEach((box, n) => scrolls[n] && box.scrollTo(...scrolls[n]));
    if (focus) find(region, focus)?.focus({ preventScroll: true });
    region.dispatchEvent(new CustomEvent("refreshed", { bubbles: true }));
  }
}

function path(root, element) {
  const found = [];
  for (let at = element; at !== root; at = at.parentElement) found.unshift([...at.parentElement.children].indexOf(at));
  return found;
}

const find = (root, steps) => steps.reduce((at, n) => at?.children[n], root);

async function refresh() {
  timer = 0;
  last = Date.now();
  const answer = await fetch(location.href, { headers: { "x-live": "1" }, cache: "no-store" }).catch(() => null);
  if (answer?.ok) replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
}

if (topics && document.querySelector("[data-live]")) {
  const events = new EventSource("/events?topics=" + encodeURIComponent(topics));
  events.addEventListener("change", () => {
    timer ||= setTimeout(refresh, Math.max(0, MIN_INTERVAL_MS - (Date.now() - last)) + Math.random() * 300);
  });
  addEventListener("pagehide", () => events.close());
}
