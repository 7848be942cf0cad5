// Source beside generated Python: a line under the pointer marks its counterparts, a click scrolls to the first.
const marked = "counterpart";

function counterparts(line) {
  return (line.dataset.other ?? "").split(" ").filter(Boolean).map((id) => document.getElementById(id)).filter(Boolean);
}

function mark(line) {
  document.querySelectorAll(`.${marked}`).forEach((each) => each.classList.remove(marked));
  if (line?.dataset.other) [line, ...counterparts(line)].forEach((each) => each.classList.add(marked));
}

// Scrolls only the box of the line, so that both sides stay in view.
function reveal(line) {
  const box = line.closest(".scroll");
  const offset = line.getBoundingClientRect().top - box.getBoundingClientRect().top;
  if (box.scrollHeight > box.clientHeight) box.scrollTop += offset - box.clientHeight / 3;
  else line.scrollIntoView({ block: "center" });
}

document.addEventListener("pointerover", (event) => {
  const line = event.target.closest?.(".linked .line");
  if (line) mark(line);
});
document.addEventListener("focusin", (event) => {
  const line = event.target.closest?.(".linked .line");
  if (line) mark(line);
});
document.addEventListener("click", (event) => {
  const line = event.target.closest?.(".linked .line");
  const [first] = line ? counterparts(line) : [];
  if (!first || String(getSelection())) return;
  event.preventDefault();
  history.replaceState(null, "", `#${event.target.closest("a") ? first.id : line.id}`);
  mark(line);
  reveal(first);
});

function arrive() {
  const line = document.getElementById(location.hash.slice(1));
  if (!line?.closest(".linked")) return;
  mark(line);
  [line, ...counterparts(line).slice(0, 1)].forEach(reveal);
}
addEventListener("hashchange", arrive);
arrive();
