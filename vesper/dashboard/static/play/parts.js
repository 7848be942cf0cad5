/** Parts of the page: elements, tabs and messages. */

/** Make an element with attributes and children; texts are never markup. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((each) => each !== null && each !== undefined));
  return element;
}

/** Make a table; a column is a text, a row is a list of texts and elements. */
export function make_table(label, columns, rows) {
  return make(
    "div",
    { class: "scroll", role: "region", "aria-label": label, tabindex: "0" },
    make(
      "table",
      {},
      make("thead", {}, make("tr", {}, columns.map((each) => make("th", { scope: "col" }, each)))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((each) => make("td", {}, each))))),
    ),
  );
}

/** Make the tabs of a list work: arrows move, one panel is shown. `shown(id)` is called for the panel that appears. */
export function mount_tabs(list, shown = () => {}) {
  const tabs = () => [...list.querySelectorAll("[role=tab]:not([hidden])")];
  const select = (tab, has_focus = true) => {
    for (const each of tabs()) {
      each.setAttribute("aria-selected", String(each === tab));
      each.tabIndex = each === tab ? 0 : -1;
    }
    const wanted = tab.getAttribute("aria-controls");
    for (const id of new Set(tabs().map((each) => each.getAttribute("aria-controls")))) {
      document.getElementById(id).hidden = id !== wanted;
    }
    document.getElementById(wanted).setAttribute("aria-labelledby", tab.id);
    if (has_focus) tab.focus();
    shown(tab);
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) select(tab);
  });
  list.addEventListener("keydown", (event) => {
    const all = tabs();
    const at = all.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    select(all[(next + all.length) % all.length]);
  });
  return { select };
}

/** Make the message of a `PostError`: what, and what to do. */
export function make_problem(error) {
  const remedy = error.remedy ? make("p", { class: "muted" }, error.remedy) : null;
  return make("div", { class: "problem", role: "alert" }, make("p", {}, error.message), remedy);
}

/** Read the SVG of the server, whose texts are escaped there, as an element. */
export function read_svg(text) {
  return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}
