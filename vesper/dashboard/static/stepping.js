// Stepping without a reload: each form is a small JSON request, then the region is replaced. Keys press the buttons.
const region = () => document.getElementById("stepping");
const csrf = () => document.querySelector('meta[name="csrf"]').content;
let is_busy = false;

async function send(form, button) {
  if (is_busy) return;
  is_busy = true;
  region().setAttribute("aria-busy", "true");
  const fields = Object.fromEntries(new FormData(form, button));
  delete fields.csrf;
  try {
    const answer = await fetch("/api" + new URL(form.action).pathname, {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrf": csrf() },
      body: JSON.stringify(fields),
    });
    const told = await answer.json();
    if (!answer.ok) return report(`${told.detail ?? "The request failed"}. ${told.remedy ?? ""}`);
    const target = new URL(told.location, location.href);
    if (target.pathname !== location.pathname) return location.assign(target);
    const page = await fetch(target, { cache: "no-store" });
    show(new DOMParser().parseFromString(await page.text(), "text/html"), target);
  } catch {
    report("The dashboard does not answer. Try again, or reload the page.");
  } finally {
    is_busy = false;
    region()?.removeAttribute("aria-busy");
  }
}

function report(text) {
  document.getElementById("stepping-status").textContent = text;
}

function show(fresh, target) {
  const next = fresh.getElementById("stepping");
  if (!next) return location.assign(target);
  const focused = document.activeElement;
  const place = focused?.id ? `#${CSS.escape(focused.id)}` : focused?.dataset?.key ? `[data-key="${focused.dataset.key}"]` : null;
  const scrolled = document.querySelector(".source")?.scrollTop ?? 0;
  history.replaceState(null, "", target);
  region().replaceWith(document.importNode(next, true));
  const source = document.querySelector(".source");
  if (source) source.scrollTop = scrolled;
  reveal();
  prefill();
  const again = place && region().querySelector(place);
  (again && !again.disabled ? again : region().querySelector('[data-key="n"]:not(:disabled), [data-key="b"]'))?.focus({ preventScroll: true });
}

function reveal() {
  const box = document.querySelector(".source"), line = box?.querySelector(".current");
  if (!line) return;
  const top = line.offsetTop, bottom = top + line.offsetHeight;
  if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
}

function prefill() {
  const select = document.getElementById("target");
  if (select) document.getElementById("change-text").value = select.selectedOptions[0]?.dataset.change ?? "";
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-step]")) return;
  event.preventDefault();
  send(event.target, event.submitter);
});
document.addEventListener("change", (event) => event.target.id === "target" && prefill());
addEventListener("keydown", (event) => {
  // Shortcuts of all pages come first: `g` `d` leaves this one.
  if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  const button = document.querySelector(`button[data-key="${CSS.escape(event.key)}"]:not(:disabled)`);
  if (!button) return;
  event.preventDefault();
  button.form.requestSubmit(button);
});
reveal();
prefill();
