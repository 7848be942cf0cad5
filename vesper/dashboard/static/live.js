// Refreshes the regions `<section data-live id="…">` of a page when its topics change.
const topics = document.body.dataset.topics;
const MIN_INTERVAL_MS = 2000, FIRST_RETRY_MS = 1000, MAX_RETRY_MS = 60000;
const offline = document.querySelector(".offline");
let last = 0, timer = 0, retry = FIRST_RETRY_MS, tag = "", events = null;

function replace(fresh) {
  for (const region of document.querySelectorAll("[data-live][id]")) {
    const next = fresh.getElementById(region.id);
    if (!next || next.innerHTML === region.innerHTML) continue;
    // A form that is open, or has the focus, is not taken away from its reader.
    if (region.querySelector("details.action[open], :focus:is(input, select, textarea)")) continue;
    const focus = region.contains(document.activeElement) ? path(region, document.activeElement) : null;
    const boxes = () => [...region.querySelectorAll(".scroll")];
    const scrolls = boxes().map((box) => [box.scrollLeft, box.scrollTop]);
    region.replaceChildren(...document.importNode(next, true).childNodes);
    boxes().forEach((box, n) => scrolls[n] && box.scrollTo(...scrolls[n]));
    if (focus) focus.reduce((at, n) => at?.children[n], region)?.focus({ preventScroll: true });
    region.dispatchEvent(new CustomEvent("refreshed", { bubbles: true }));
  }
}

function path(root, element) {
  const found = [];
  for (let at = element; at !== root; at = at.parentElement) found.unshift([...at.parentElement.children].indexOf(at));
  return found;
}

async function refresh() {
  timer = 0;
  last = Date.now();
  const headers = { "x-live": "1", accept: "text/html", ...(tag && { "if-none-match": tag }) };
  const answer = await fetch(location.href, { headers, cache: "no-store", redirect: "error" }).catch(() => null);
  offline.hidden = Boolean(answer && (answer.ok || answer.status === 304));
  if (answer?.ok) {
    tag = answer.headers.get("etag") ?? "";
    replace(new DOMParser().parseFromString(await answer.text(), "text/html"));
  }
}

function schedule() {
  timer ||= setTimeout(refresh, Math.max(0, MIN_INTERVAL_MS - (Date.now() - last)) + Math.random() * 300);
}

function connect() {
  events?.close();
  events = new EventSource("/events?topics=" + encodeURIComponent(topics));
  events.addEventListener("open", () => {
    retry = FIRST_RETRY_MS;
    offline.hidden = true;
    schedule();
  });
  events.addEventListener("change", schedule);
  events.addEventListener("error", () => {
    events.close();
    offline.hidden = false;
    setTimeout(() => document.hidden || connect(), retry + Math.random() * retry);
    retry = Math.min(MAX_RETRY_MS, 2 * retry);
  });
}

if (topics && document.querySelector("[data-live]")) {
  connect();
  document.addEventListener("visibilitychange", () => (document.hidden ? events.close() : connect()));
  addEventListener("pagehide", () => events.close());
}
