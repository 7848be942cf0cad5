// Shortcuts: `?` lists them, `g` and a letter go to a page, `/` filters, `j` and `k` move in a table.
const PAGES = { f: "/", d: "/divergences", e: "/executions", w: "/workload", j: "/journal" };
const dialog = document.getElementById("shortcuts");
let isGoing = false;

function move(step) {
  const rows = [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a"));
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.classList.contains("at"));
  rows[at]?.classList.remove("at");
  const row = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + step))];
  row.classList.add("at");
  row.querySelector("a").focus();
  row.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  "?": () => dialog.showModal(),
  "/": () => document.querySelector("main .filters :is(input:not([type=hidden]), select)")?.focus(),
  j: () => move(1),
  k: () => move(-1),
};

addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, select, textarea, [contenteditable], .monaco-editor, [role=grid]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  const page = isGoing ? PAGES[event.key] : undefined;
  isGoing = event.key === "g" && !isGoing;
  if (page) location.assign(page);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

for (const button of document.querySelectorAll("[data-shortcuts]")) {
  button.hidden = false;
  button.addEventListener("click", () => dialog.showModal());
}
