/** Decision tables as grids. Every change becomes an edit of the text, so undo is that of the document. */
import { make, make_problem } from "./parts.js";
import { post } from "./post.js";

const ROW_HEIGHT = 31; // as in authoring.css
const MARGIN_ROWS = 12;
const MAX_ADDED_ROWS = 100;
const PAGE_ROWS = 10;
const LARGE_TEXT = 10_000; // characters
const KINDS = { in: "condition", when: "condition", out: "result", note: "remark" };

/** Return a message as nodes, with the texts between backticks as code. */
const spell = (text) => text.split("`").map((part, n) => (n % 2 ? make("code", {}, part) : part));

/** Mount the grid below `element`. Returns `mark(rows)`, which shows the rows that the last run matched. */
export function mount_grid(element, node) {
  let found = { tables: [], elsewhere: [], hits: [] };
  let chosen = 0; // index of the table
  let at = { row: 0, column: 0 };
  let anchor = at; // the other corner of the selection
  let editing = null;
  let is_stale = false; // read while a cell was edited
  let marked = [];
  let marked_text = null;
  let read_text = null; // the text that the grid shows
  let queue = Promise.resolve();

  const message = make("div");
  const header = make("div", { class: "row grid-tools" });
  const findings = make("ul", { class: "findings" });
  const body = make("tbody");
  const head = make("thead");
  const table = make("table", { role: "grid", class: "sheet", tabindex: "-1" }, head, body);
  const box = make("div", { class: "sheet-box" }, table);
  const detail = make("p", { class: "hint sheet-detail", role: "status" });
  const keys = make("p", { class: "hint muted" });
  keys.append(
    ...[["Enter", "edits"], ["Esc", "cancels"], ["Ctrl C / V", "copies and pastes cells"], ["Alt ⏎", "inserts a row"], ["Alt ↑ ↓", "moves it"], ["Alt D", "duplicates it"], ["Alt Del", "deletes it"], ["Ctrl Z", "undoes"]]
      .flatMap(([key, text], n) => [n ? " · " : "", make("kbd", {}, key), ` ${text}`]),
  );
  element.replaceChildren(message, header, findings, box, detail, keys);

  const grid = () => found.tables[chosen];
  const columns = () => grid().columns;
  const is_locked = () => Boolean(grid()?.file);
  const cell_text = (row, column) => grid().rows[row]?.cells[column] ?? null;
  const problems_at = (row, column) => grid().problems.filter((each) => each.row === row && each.column === columns()[column]?.key);
  const row_problems = (row) => grid().problems.filter((each) => (each.row === row && each.column === null) || each.also === row);

  // -- reading --------------------------------------------------------------------------------------

  async function refresh() {
    if (!element.checkVisibility()) return; // read when it is shown
    const text = node.text();
    if (text === read_text) return;
    if (text.length > LARGE_TEXT) {
      await read(text, true); // the check of a large table takes a second: show the rows before
      read(text, false);
    } else await read(text, false);
  }

  async function read(text, quick) {
    try {
      const answer = await post("/play/api/tables", { path: node.path(), text, quick });
      if (text !== node.text()) return; // a newer text is read soon
      const before = grid();
      found = quick ? { ...answer, tables: answer.tables.map(with_known) } : answer;
      read_text = text;
      if (grid()?.name !== before?.name) chosen = Math.max(0, found.tables.findIndex((each) => each.name === before?.name));
      if (text !== marked_text) marked = [];
      message.replaceChildren();
      if (editing) is_stale = true;
      else show();
    } catch (error) {
      message.replaceChildren(make_problem(error));
    }
  }

  /** Return a table that was not checked yet, with what is known about its columns. */
  function with_known(table) {
    const before = found.tables[table.index];
    if (before?.name !== table.name) return table;
    return { ...table, columns: table.columns.map((each) => before.columns.find((one) => one.key === each.key) ?? each), gaps: before.gaps };
  }
  node.on_change(refresh);
  new IntersectionObserver(refresh).observe(element);

  // -- changes --------------------------------------------------------------------------------------

  /** Apply changes in order, as one undo step, and go to a cell. Later calls wait for earlier ones. */
  function apply(changes, row = at.row, column = at.column) {
    const index = grid().index;
    queue = queue.then(async () => {
      try {
        let text = node.text();
        for (const change of changes) {
          text = (await post("/play/api/tables/edit", { path: node.path(), text, table: index, change })).text;
        }
        message.replaceChildren();
        node.set_text(text);
        await refresh();
        move_to(row, column);
        focus_cell();
      } catch (error) {
        message.replaceChildren(make_problem(error));
        show();
        focus_cell();
      }
    });
  }

  const rows_count = () => grid().rows.length;
  const default_row = () => grid().rows.findIndex((each) => each.is_default);
  const last_insert = () => (default_row() < 0 ? rows_count() : default_row());
  const actions = {
    insert: () => apply([{ kind: "insert", row: Math.min(at.row + 1, last_insert()) }], Math.min(at.row + 1, last_insert())),
    duplicate: () => apply([{ kind: "duplicate", row: at.row }], at.row + 1),
    delete: () => apply([{ kind: "delete", row: at.row }]),
    up: () => at.row > 0 && apply([{ kind: "move", row: at.row, to: at.row - 1 }], at.row - 1),
    down: () => at.row < rows_count() - 1 && apply([{ kind: "move", row: at.row, to: at.row + 1 }], at.row + 1),
    align: () => apply([{ kind: "align" }]),
  };

  function set_cells(cells) {
    const changed = cells.filter((each) => (cell_text(each.row, columns().findIndex((c) => c.key === each.column)) ?? null) !== each.text);
    if (changed.length) apply([{ kind: "set", cells: changed }]);
  }

  /** The text of an emptied cell: a condition matches everything, a remark goes. */
  const emptied = (column) => (column.kind === "in" ? "-" : column.kind === "out" ? "null" : null);

  // -- showing --------------------------------------------------------------------------------------

  function show() {
    const has_tables = found.tables.length > 0;
    for (const part of [header, findings, box, detail, keys]) part.hidden = !has_tables;
    if (!has_tables) {
      const why = found.elsewhere.length ? ["The text has errors, and no table can be read.", `${found.elsewhere[0].message}.`] : ["This node has no decision table.", "A table is a step with `operation: decision_table`, and `rows` below it."];
      message.replaceChildren(make("div", { class: "empty" }, why.map((each) => make("p", {}, spell(each)))));
      return;
    }
    keys.hidden = is_locked();
    const had_focus = body.contains(document.activeElement);
    move_to(at.row, at.column);
    show_header();
    show_findings();
    show_head();
    show_rows();
    show_detail();
    if (had_focus) focus_cell();
  }

  function show_header() {
    const current = grid();
    const choose = make("select", { "aria-label": "Table", onchange: (event) => { chosen = Number(event.target.value); at = { row: 0, column: 0 }; box.scrollTop = 0; show(); } },
      found.tables.map((each, n) => make("option", { value: n, selected: n === chosen }, each.name)));
    const hit = make("select", { "aria-label": "Hit policy", title: "Hit policy: the rows that count if several match", disabled: is_locked(), onchange: (event) => apply([{ kind: "set_hit", hit: event.target.value }]) },
      found.hits.map((each) => make("option", { selected: each === current.hit }, each)));
    const button = (text, label, action) => make("button", { type: "button", title: label, "aria-label": label, onclick: action }, text);
    const tools = is_locked() ? [make("span", { class: "badge" }, "read-only"), make("span", { class: "muted" }, `The rows are in ${current.file}: edit that file.`)] : [
      button("+ Row", "Insert a row below", actions.insert), button("Duplicate", "Duplicate the row", actions.duplicate), button("↑", "Move the row up", actions.up),
      button("↓", "Move the row down", actions.down), button("Delete", "Delete the row", actions.delete), button("+ Column", "Add a column", add_column),
      default_row() < 0 && current.hit !== "count" ? button("+ Default", "Add a row for everything else", add_default) : null,
      button("Align", "Align the columns in the text", actions.align),
    ];
    const line = make("button", { type: "button", class: "link", onclick: () => { document.getElementById("tab-text")?.click(); node.go_to?.(current.line); } }, `line ${current.line}`);
    header.replaceChildren(...[found.tables.length > 1 ? choose : make("strong", { class: "mono" }, current.name), line, make("label", { class: "row" }, "hit", hit), ...tools].filter(Boolean));
  }

  function show_findings() {
    const current = grid();
    const items = current.gaps.map((gap) => {
      const where = gap.values.map(([name, text]) => `${name} ${text}`).join(", ");
      const add = () => apply([{ kind: "insert", row: last_insert(), cells: gap.cells }], last_insert(), columns().findIndex((each) => each.kind === "out"));
      return make("li", {}, make("span", { class: "badge warn" }, "gap"), ` No row covers ${where || "any value"}. `, is_locked() ? null : make("button", { type: "button", onclick: add }, "Add a row"));
    });
    const is_listed = (each) => each.row === null && !(current.gaps.length && each.message.startsWith("no row"));
    for (const each of current.problems.filter((one) => one.also !== null || (one.row !== null && one.column === null) || is_listed(one))) {
      const rows = [each.also, each.row].filter((row) => row !== null).map((row) => make("button", { type: "button", class: "link", onclick: () => { move_to(row, 0); focus_cell(); } }, `row ${row + 1}`));
      const kind = each.also !== null ? "overlap" : each.severity;
      items.push(make("li", {}, make("span", { class: `badge ${each.severity === "error" ? "bad" : "warn"}` }, kind), " ", spell(`${each.message}. `), make("span", { class: "muted" }, spell(each.help)), rows.map((row) => [" ", row]).flat()));
    }
    if (found.elsewhere.length) items.push(make("li", { class: "muted" }, `The text has ${found.elsewhere.length} other error${found.elsewhere.length > 1 ? "s" : ""}: ${found.elsewhere[0].message}.`));
    findings.replaceChildren(...items);
    findings.hidden = items.length === 0;
  }

  function show_head() {
    const cells = columns().map((each, n) => {
      const about = [each.about && `= ${each.about}`, each.type].filter(Boolean).join(" · ");
      const remove = is_locked() || each.key === "then" ? null : make("button", { type: "button", class: "remove", tabindex: "-1", "aria-label": `Remove the column ${each.name}`, title: `Remove the column ${each.name}`, onclick: () => apply([{ kind: "remove_column", column: each.key }]) }, "✕");
      return make("th", { role: "columnheader", class: `kind-${each.kind}`, "aria-colindex": n + 2, title: `${KINDS[each.kind]}${about ? `: ${about}` : ""}` }, make("span", { class: "name" }, each.name), remove, make("span", { class: "type" }, about || " "));
    });
    head.replaceChildren(make("tr", { role: "row", "aria-rowindex": 1 }, make("th", { role: "columnheader", class: "number", "aria-label": "Row", "aria-colindex": 1 }, "#"), cells));
    table.setAttribute("aria-label", `Decision table ${grid().name}`);
    table.setAttribute("aria-rowcount", rows_count() + 1);
    table.setAttribute("aria-colcount", columns().length + 1);
    table.setAttribute("aria-readonly", String(is_locked()));
  }

  /** Show the rows in view, and some around them; two empty rows have the height of the others. */
  function show_rows() {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW_HEIGHT) - MARGIN_ROWS);
    const last = Math.min(rows_count(), first + Math.ceil((box.clientHeight || 600) / ROW_HEIGHT) + 2 * MARGIN_ROWS);
    const space = (rows) => {
      const row = make("tr", { "aria-hidden": "true", class: "space" }, make("td", { colspan: columns().length + 1 }));
      row.firstChild.style.height = `${rows * ROW_HEIGHT}px`;
      return row;
    };
    const had_focus = body.contains(document.activeElement) || document.activeElement === table;
    const rows = [];
    for (let row = first; row < last; row += 1) rows.push(make_row(row));
    body.replaceChildren(...[first ? space(first) : null, ...rows, last < rows_count() ? space(rows_count() - last) : null].filter(Boolean));
    if (grid().more_rows) body.append(make("tr", {}, make("td", { colspan: columns().length + 1, class: "muted" }, `${grid().more_rows} more rows are in the file.`)));
    show_selection();
    if (had_focus && !editing) (cell_at(at) ?? table).focus({ preventScroll: true });
  }
  box.addEventListener("scroll", () => { if (!editing && grid() && rows_count() > 2 * MARGIN_ROWS) requestAnimationFrame(show_rows); });

  function make_row(row) {
    const { is_default, cells, locked } = grid().rows[row];
    const problems = row_problems(row);
    const is_marked = marked.some((each) => each.table === grid().name && each.line === grid().rows[row].line);
    const state = [is_marked ? "matched by the last run" : "", ...problems.map((each) => each.message)].filter(Boolean).join("; ");
    const sign = is_marked ? "●" : problems.length ? "▲" : "";
    const number = make("th", { role: "rowheader", scope: "row", class: "number", "aria-colindex": 1, title: state }, sign ? make("span", { class: is_marked ? "hit" : "sign" }, sign) : null, is_default ? "else" : String(row + 1), state ? make("span", { class: "visually-hidden" }, `: ${state}`) : null);
    return make("tr", { role: "row", "aria-rowindex": row + 2, class: [is_default ? "default" : "", is_marked ? "marked" : "", problems.length ? "found" : ""].join(" ") },
      number, columns().map((column, n) => {
        const text = cells[n];
        const wrong = problems_at(row, n);
        const is_any = text === null || text === "-";
        const shown = is_any && column.kind === "in" && !is_default ? "any" : text ?? "";
        return make("td", {
          role: "gridcell", tabindex: "-1", "data-row": row, "data-column": n, "aria-colindex": n + 2, class: [`kind-${column.kind}`, is_any ? "any" : "", wrong.length ? "wrong" : ""].join(" "),
          "aria-invalid": wrong.length ? "true" : null, "aria-readonly": is_locked() || locked.includes(column.key) || (is_default && ["in", "when"].includes(column.kind)) ? "true" : null,
          title: wrong.map((each) => `${each.message}\n${each.help}`).join("\n") || (shown.length > 24 ? shown : null),
        }, shown);
      }));
  }

  const cell_at = ({ row, column }) => body.querySelector(`[data-row="${row}"][data-column="${column}"]`);

  function show_selection() {
    const [top, bottom] = [anchor.row, at.row].sort((a, b) => a - b);
    const [left, right] = [anchor.column, at.column].sort((a, b) => a - b);
    for (const cell of body.querySelectorAll("[role=gridcell]")) {
      const [row, column] = [Number(cell.dataset.row), Number(cell.dataset.column)];
      cell.tabIndex = row === at.row && column === at.column ? 0 : -1;
      cell.setAttribute("aria-selected", String(row >= top && row <= bottom && column >= left && column <= right));
    }
  }

  function show_detail() {
    const column = columns()[at.column];
    const row = grid().rows[at.row];
    if (!row || !column) return detail.replaceChildren();
    const wrong = problems_at(at.row, at.column);
    const text = cell_text(at.row, at.column);
    const parts = [make("span", { class: "muted" }, `${row.is_default ? "default row" : `row ${at.row + 1}`}, ${column.name}${column.type ? ` (${column.type})` : ""}: `), make("span", { class: "mono" }, text ?? (column.kind === "in" ? "any value" : "empty"))];
    for (const each of wrong) parts.push(make("span", { class: "wrong-text" }, " ▲ ", spell(`${each.message}. ${each.help}`)));
    return detail.replaceChildren(...parts);
  }

  function move_to(row, column, keeps_anchor = false) {
    at = { row: Math.max(0, Math.min(row, rows_count() - 1)), column: Math.max(0, Math.min(column, columns().length - 1)) };
    if (!keeps_anchor) anchor = at;
  }

  function focus_cell() {
    if (!grid()) return;
    const top = at.row * ROW_HEIGHT;
    const view = box.clientHeight - 60;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + ROW_HEIGHT > box.scrollTop + view) box.scrollTop = top + ROW_HEIGHT - view;
    if (!cell_at(at)) show_rows();
    show_selection();
    show_detail();
    cell_at(at)?.focus({ preventScroll: true });
    cell_at(at)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // -- editing --------------------------------------------------------------------------------------

  function edit(start = null) {
    const cell = cell_at(at);
    const column = columns()[at.column];
    if (!cell || cell.getAttribute("aria-readonly")) {
      const row = grid().rows[at.row];
      detail.append(make("span", { class: "wrong-text" }, is_locked() ? ` ▲ The rows are in ${grid().file}.` : row.is_default ? " ▲ The default row has no conditions." : " ▲ This cell has several lines: edit it in the text."));
      return;
    }
    const place = { ...at };
    const before = cell_text(at.row, at.column);
    const list = column.choices.length ? make("datalist", { id: "cell-choices" }, column.choices.map((each) => make("option", { value: each }))) : null;
    const input = make("input", { "aria-label": `${column.name}, row ${at.row + 1}`, spellcheck: "false", autocomplete: "off", list: list ? "cell-choices" : null });
    input.value = start ?? before ?? "";
    editing = { input, place };
    const end = (is_kept) => {
      if (editing?.input !== input) return;
      editing = null;
      const text = input.value.trim();
      if (is_stale) show();
      else show_rows();
      is_stale = false;
      if (is_kept) set_cells([{ row: place.row, column: column.key, text: text === "" ? emptied(column) : text }]);
    };
    input.addEventListener("keydown", (event) => {
      const next = { Enter: [event.shiftKey ? -1 : 1, 0], Tab: [0, event.shiftKey ? -1 : 1], Escape: [0, 0] }[event.key];
      event.stopPropagation();
      if (!next || event.ctrlKey || event.isComposing) return;
      event.preventDefault();
      end(event.key !== "Escape");
      move_to(place.row + next[0], place.column + next[1]);
      focus_cell();
    });
    input.addEventListener("blur", () => end(true));
    cell.replaceChildren(...[input, list].filter(Boolean));
    input.focus();
    if (start === null) input.select();
  }

  body.addEventListener("mousedown", (event) => {
    const cell = event.target.closest("[role=gridcell]");
    if (!cell || event.target.tagName === "INPUT") return;
    move_to(Number(cell.dataset.row), Number(cell.dataset.column), event.shiftKey);
    if (editing) editing.input.blur();
    event.preventDefault();
    focus_cell();
  });
  body.addEventListener("dblclick", (event) => { if (event.target.closest("[role=gridcell]") && !editing) edit(); });

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-PAGE_ROWS, 0], PageDown: [PAGE_ROWS, 0] };
  table.addEventListener("keydown", (event) => {
    if (editing || !(event.target === table || event.target.closest("[role=gridcell]"))) return;
    if (!cell_at(at)) focus_cell(); // it was scrolled away
    const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
    const command = ctrlKey || metaKey;
    let done = true;
    if (altKey && !is_locked() && { Enter: 1, ArrowUp: 1, ArrowDown: 1, Delete: 1, Backspace: 1, d: 1 }[key]) {
      ({ Enter: actions.insert, ArrowUp: actions.up, ArrowDown: actions.down, Delete: actions.delete, Backspace: actions.delete, d: actions.duplicate })[key]();
    } else if (STEPS[key] && !altKey) {
      const [down, right] = STEPS[key];
      const far = command ? 1e6 : 1;
      move_to(at.row + down * far, at.column + right * far, shiftKey);
      focus_cell();
    } else if (key === "Home" || key === "End") {
      const is_end = key === "End";
      move_to(command ? (is_end ? rows_count() : 0) : at.row, is_end ? columns().length : 0, shiftKey);
      focus_cell();
    } else if (key === "Tab" && !command && at.column + (shiftKey ? -1 : 1) >= 0 && at.column + (shiftKey ? -1 : 1) < columns().length) {
      move_to(at.row, at.column + (shiftKey ? -1 : 1));
      focus_cell();
    } else if ((key === "Enter" && !command) || key === "F2") edit();
    else if (key === "Delete" || key === "Backspace") clear_selection();
    else if (command && (key === "z" || key === "y" || key === "Z")) node.editor?.trigger("grid", key === "z" && !shiftKey ? "undo" : "redo");
    else if (command && key === "a") { anchor = { row: 0, column: 0 }; at = { row: rows_count() - 1, column: columns().length - 1 }; focus_cell(); }
    else if (key.length === 1 && !command && !altKey) edit(key);
    else done = false;
    if (done) { event.preventDefault(); event.stopPropagation(); }
  });

  const selected = () => {
    const [top, bottom] = [anchor.row, at.row].sort((a, b) => a - b);
    const [left, right] = [anchor.column, at.column].sort((a, b) => a - b);
    return { top, bottom, left, right };
  };

  const is_open = (row, column) => !(grid().rows[row]?.is_default && ["in", "when"].includes(column.kind));

  function clear_selection() {
    if (is_locked()) return;
    const { top, bottom, left, right } = selected();
    const cells = [];
    for (let row = top; row <= bottom; row += 1)
      for (let n = left; n <= right; n += 1)
        if (cell_text(row, n) !== null && is_open(row, columns()[n])) cells.push({ row, column: columns()[n].key, text: emptied(columns()[n]) });
    set_cells(cells);
  }

  table.addEventListener("copy", (event) => {
    if (editing) return;
    const { top, bottom, left, right } = selected();
    const lines = [];
    for (let row = top; row <= bottom; row += 1) lines.push(grid().rows[row].cells.slice(left, right + 1).map((each) => each ?? "").join("\t"));
    event.clipboardData.setData("text/plain", lines.join("\n"));
    event.preventDefault();
  });

  table.addEventListener("paste", (event) => {
    if (editing || is_locked()) return;
    event.preventDefault();
    const lines = event.clipboardData.getData("text/plain").replace(/\r?\n$/, "").split(/\r?\n/).map((each) => each.split("\t"));
    const { top, left } = selected();
    const added = Math.min(MAX_ADDED_ROWS, Math.max(0, top + lines.length - last_insert()));
    const inserts = lines.length > 1 ? Array.from({ length: added }, () => ({ kind: "insert", row: last_insert() })) : [];
    const cells = [];
    lines.slice(0, rows_count() + inserts.length - top).forEach((line, down) => line.forEach((text, right) => {
      const column = columns()[left + right];
      const row = top + down;
      if (column && (row >= last_insert() || is_open(row, column))) cells.push({ row, column: column.key, text: text.trim() === "" ? emptied(column) : text.trim() });
    }));
    if (cells.length) apply([...inserts, { kind: "set", cells }], top, left);
  });

  // -- columns and the default ----------------------------------------------------------------------

  function add_default() {
    const results = columns().filter((each) => each.kind === "out");
    apply([{ kind: "set_default", cells: Object.fromEntries(results.map((each) => [each.key, "null"])) }], rows_count(), columns().indexOf(results[0]));
  }

  function add_column() {
    const name = make("input", { id: "column-name", required: true, pattern: "[A-Za-z_][A-Za-z0-9_]*", autocomplete: "off", placeholder: "amount" });
    const value = make("input", { id: "column-value", autocomplete: "off", placeholder: "the name itself", spellcheck: "false" });
    const dialog = make("dialog", { "aria-label": "Add a column" });
    const submit = () => {
      if (name.value.trim()) apply([{ kind: "add_column", name: name.value.trim(), ...(value.value.trim() ? { value: value.value.trim() } : {}) }]);
    };
    dialog.append(make("form", { method: "dialog", class: "stack", onsubmit: submit }, make("label", { for: "column-name" }, "Name ", make("span", { class: "muted" }, "an input, a step above, or a new name")), name,
      make("label", { for: "column-value" }, "Value ", make("span", { class: "muted" }, "an expression, for a new name")), value,
      make("div", { class: "row" }, make("button", { class: "primary" }, "Add the column"), make("button", { type: "button", onclick: () => dialog.close() }, "Cancel"))));
    dialog.addEventListener("close", () => dialog.remove());
    element.append(dialog);
    dialog.showModal();
  }

  return {
    /** Show the rows that a run of the present text matched: `[{table, line}]`. */
    mark(rows) {
      marked = rows;
      marked_text = node.text();
      if (grid() && read_text === marked_text) show_rows();
    },
  };
}
