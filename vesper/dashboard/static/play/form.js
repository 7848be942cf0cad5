/** The inputs of a node as a form made from their types. The server judges them, in the words of `vesper run`. */
import { make, make_problem } from "./parts.js";
import { post } from "./post.js";

const CHECK_DELAY_MS = 350;
const AREAS = new Set(["json"]);
let numbers = 0;

/** Mount the form below `element`. Returns `inputs()`, and `set(inputs)`. */
export function mount_form(element, node) {
  let described = ""; // the description that the form shows, as JSON
  let whole = null; // the control of all inputs
  let seed = 1;
  let timer = 0;
  let latest = 0;
  let command = "";

  const note = make("p", { class: "hint muted", role: "status" });
  const fields = make("div", { class: "fields" });
  const other = make("ul", { class: "findings", hidden: true });
  const json = make("textarea", { rows: "8", spellcheck: "false", "aria-label": "Inputs as JSON", hidden: true });
  const button = (text, title, action) => make("button", { type: "button", title, onclick: action }, text);
  const as_json = button("JSON", "Show the inputs as JSON, or paste some", toggle_json);
  as_json.setAttribute("aria-pressed", "false");
  const tools = make("div", { class: "row form-tools" }, make("h2", {}, "Inputs"), make("span", { class: "row end" }, button("Example", "Fill in valid inputs, other ones each time", draw), as_json, button("Copy command", "Copy `vesper run` with these inputs", copy)));
  const form = make("form", { class: "inputs", onsubmit: (event) => event.preventDefault(), oninput: later }, fields, json);
  element.replaceChildren(tools, form, other, note);

  // -- description ----------------------------------------------------------------------------------

  async function describe() {
    const started = ++latest;
    try {
      const form_of = await post("/play/api/form", { path: node.path(), text: node.text() });
      if (started !== latest) return;
      if (form_of.faulty) throw Object.assign(new Error(form_of.faulty), { remedy: form_of.remedy });
      note.textContent = "";
      const { inputs: first, ...description } = form_of;
      if (JSON.stringify(description) !== described) {
        const kept = whole ? values_or_null() : null;
        described = JSON.stringify(description);
        whole = record_control({ name: "", fields: description.fields, is_root: true }, "");
        fields.replaceChildren(description.fields.length ? whole.element : make("p", { class: "muted" }, "This node has no inputs: run it."));
        whole.set(kept && Object.keys(kept).length ? kept : first);
      }
      check();
    } catch (error) {
      if (started !== latest) return;
      if (whole) note.textContent = `The form is that of the last text without errors. Now ${error.message}`;
      else fields.replaceChildren(make_problem(error));
    }
  }
  node.on_change(describe);
  describe();

  // -- problems -------------------------------------------------------------------------------------

  function later() {
    clearTimeout(timer);
    timer = setTimeout(check, CHECK_DELAY_MS);
  }

  async function check() {
    if (!whole) return;
    try {
      const inputs = read();
      const answer = await post("/play/api/form/check", { path: node.path(), text: node.text(), inputs });
      if (answer.faulty) return;
      command = answer.command;
      show_problems(answer.problems);
    } catch (error) {
      if (error instanceof FieldError) show_problems([{ path: error.path, message: error.message }]);
    }
  }

  function show_problems(problems) {
    for (const each of form.querySelectorAll(".field-problem")) each.remove();
    for (const each of form.querySelectorAll("[aria-invalid]")) { each.removeAttribute("aria-invalid"); each.removeAttribute("aria-describedby"); }
    const left = [];
    for (const { path, message } of problems) {
      const holders = [...fields.querySelectorAll("[data-path]")].filter((each) => path === each.dataset.path || (path.startsWith(each.dataset.path) && ".[".includes(path[each.dataset.path.length])));
      const holder = holders.sort((a, b) => b.dataset.path.length - a.dataset.path.length)[0];
      if (!holder || json.hidden === false) { left.push(make("li", {}, make("span", { class: "badge bad" }, path || "inputs"), ` ${message}`)); continue; }
      const control = holder.querySelector("input, select, textarea");
      const text = make("p", { class: "field-problem", id: `problem-${++numbers}` }, `▲ ${message}`);
      if (control && !holder.matches("fieldset")) { control.setAttribute("aria-invalid", "true"); control.setAttribute("aria-describedby", text.id); }
      holder.append(text);
    }
    other.replaceChildren(...left);
    other.hidden = left.length === 0;
  }

  // -- values ---------------------------------------------------------------------------------------

  function read() {
    if (json.hidden) return whole?.get() ?? {};
    try {
      return JSON.parse(json.value || "{}");
    } catch (error) {
      throw new FieldError("", `The inputs are not JSON: ${error.message}`);
    }
  }

  function values_or_null() {
    try {
      return read();
    } catch {
      return null;
    }
  }

  function set(inputs) {
    json.value = JSON.stringify(inputs, null, 2);
    whole?.set(inputs);
    check();
  }

  function toggle_json() {
    const inputs = values_or_null();
    if (inputs === null) return void check();
    json.hidden = !json.hidden;
    fields.hidden = !json.hidden;
    as_json.setAttribute("aria-pressed", String(!json.hidden));
    set(inputs);
    if (!json.hidden) { json.focus(); json.select(); }
    return undefined;
  }

  async function draw() {
    try {
      set(await post("/play/api/form/example", { path: node.path(), text: node.text(), seed: seed++ }));
      note.textContent = "";
    } catch (error) {
      note.textContent = `${error.message}. ${error.remedy ?? ""}`;
    }
  }

  async function copy() {
    clearTimeout(timer);
    await check();
    try {
      await navigator.clipboard.writeText(command);
      note.textContent = `Copied: ${command}`;
    } catch {
      note.textContent = command; // no permission: it can be selected here
    }
  }

  return { inputs: read, set };
}

/** A text that is no value of its kind, found in the page. */
class FieldError extends Error {
  constructor(path, message) {
    super(message);
    this.path = path;
  }
}

// -- controls: `{element, get(), set(value)}`; `get` returns undefined for a value that is left out ---

function control_of(field, path) {
  if (field.kind === "record") return field.is_optional ? optional_control(field, path, record_control) : record_control(field, path);
  if (["array", "set"].includes(field.kind)) return field.is_optional ? optional_control(field, path, list_control) : list_control(field, path);
  if (field.kind === "map") return field.is_optional ? optional_control(field, path, map_control) : map_control(field, path);
  return scalar_control(field, path);
}

const label_text = (field) => [field.name, " ", make("span", { class: "muted" }, [field.type, field.hint].filter(Boolean).join(" · "))];

function scalar_control(field, path) {
  const id = `input-${++numbers}`;
  const can_be_left = field.is_optional || field.has_default;
  let input;
  if (field.kind === "enum" || (field.kind === "boolean" && can_be_left)) {
    const choices = field.kind === "enum" ? field.choices : ["true", "false"];
    const none = field.has_default ? `default: ${JSON.stringify(field.default)}` : field.is_optional ? "null" : "choose …";
    input = make("select", { id }, make("option", { value: "" }, none), choices.map((each) => make("option", { value: each }, each)));
  } else if (field.kind === "boolean") input = make("input", { id, type: "checkbox" });
  else if (AREAS.has(field.kind)) input = make("textarea", { id, rows: "3", spellcheck: "false", placeholder: field.example });
  else {
    const mode = field.kind === "integer" ? "numeric" : ["decimal", "float"].includes(field.kind) ? "decimal" : null;
    const placeholder = field.has_default ? `default: ${JSON.stringify(field.default)}` : can_be_left ? "null" : field.example;
    input = make("input", { id, type: field.kind === "date" ? "date" : "text", inputmode: mode, placeholder, autocomplete: "off", spellcheck: "false", class: mode ? "number" : null, pattern: field.kind === "date" ? null : field.pattern || null });
  }
  const is_check = input.type === "checkbox";
  const label = make("label", { for: id, class: field.is_item ? "visually-hidden" : null }, label_text(field));
  const element = make("div", { class: is_check ? "field check" : "field", "data-path": path }, is_check ? [input, label] : [label, input]);
  return {
    element,
    get() {
      if (is_check) return input.checked;
      const text = input.value;
      if (text === "" && (can_be_left || field.kind !== "string")) return undefined;
      if (field.kind === "boolean") return text === "true";
      if (field.kind === "integer") return exact_integer(text.trim());
      if (field.kind === "float") return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text.trim();
      if (field.kind !== "json") return text;
      try {
        return JSON.parse(text);
      } catch (error) {
        throw new FieldError(path, `This is not JSON: ${error.message}`);
      }
    },
    set(value) {
      if (is_check) input.checked = value === true;
      else if (value === undefined || value === null) input.value = "";
      else input.value = field.kind === "json" || typeof value === "object" ? JSON.stringify(value, null, 1) : String(value);
    },
  };
}

/** Return an integer as JSON writes it exactly; a text that is none stays one, for the server to refuse. */
function exact_integer(text) {
  if (!/^-?\d+$/.test(text)) return text;
  const number = Number(text);
  return Number.isSafeInteger(number) || !JSON.rawJSON ? number : JSON.rawJSON(text.replace(/^(-?)0+(?=\d)/, "$1"));
}

function record_control(field, path) {
  const parts = field.fields.map((each) => [each.name, control_of(each, path ? `${path}.${each.name}` : each.name)]);
  const elements = parts.map(([, part]) => part.element);
  const element = field.is_root ? make("div", { class: "fields" }, elements) : make("fieldset", { "data-path": path }, make("legend", {}, label_text(field)), elements);
  return {
    element,
    get() {
      return Object.fromEntries(parts.map(([name, part]) => [name, part.get()]).filter(([, value]) => value !== undefined));
    },
    set(value) {
      for (const [name, part] of parts) part.set(value?.[name]);
    },
  };
}

/** A value that is there or null, with a button for each way. */
function optional_control(field, path, build) {
  let inner = null;
  const element = make("div", { class: "optional", "data-path": path });
  const show = (value) => {
    inner = value === undefined || value === null ? null : build(field, path);
    inner?.set(value);
    element.replaceChildren(...(inner ? [inner.element, make("button", { type: "button", class: "small", onclick: () => change(null) }, `Remove ${field.name}`)] : [make("span", { class: "label" }, label_text(field)), " ", make("button", { type: "button", class: "small", onclick: () => change({}) }, `Add ${field.name}`)]));
  };
  const change = (value) => { show(value); element.dispatchEvent(new Event("input", { bubbles: true })); };
  show(null);
  return { element, get: () => inner?.get(), set: show };
}

function list_control(field, path) {
  return rows_control(field, path, (n) => {
    const part = control_of({ ...field.fields[0], name: `${n + 1}`, is_item: true }, `${path}[${n}]`);
    return { element: part.element, get: part.get, set: part.set };
  }, (value) => (Array.isArray(value) ? value : []), (values) => values.filter((each) => each !== undefined));
}

function map_control(field, path) {
  const [key, value] = field.fields;
  return rows_control(field, path, (n) => {
    const parts = [control_of({ ...key, name: "key" }, `${path}{${n}}`), control_of({ ...value, name: "value" }, `${path}[${n}]`)];
    return {
      element: make("div", { class: "pair" }, parts.map((each) => each.element)),
      get: () => parts.map((each) => each.get()),
      set: (pair) => parts.forEach((each, at) => each.set(pair?.[at])),
    };
  }, (found) => Object.entries(found ?? {}), (pairs) => Object.fromEntries(pairs.filter(([name]) => name !== undefined)));
}

/** Rows with a button to add one and to remove each. Rows after a removed one get new numbers, so all are made again. */
function rows_control(field, path, build, split, join) {
  let rows = [];
  const list = make("div", { class: "rows" });
  const add = make("button", { type: "button", class: "small", onclick: () => change([...rows.map((each) => each.get()), undefined], true) }, `Add to ${field.name}`);
  const element = make("fieldset", { "data-path": path }, make("legend", {}, label_text(field)), list, add);
  const show = (values) => {
    rows = values.map((value, n) => {
      const row = build(n);
      if (value !== undefined) row.set(value);
      return row;
    });
    list.replaceChildren(...rows.map((row, n) => make("div", { class: "item" }, row.element, make("button", { type: "button", class: "small", "aria-label": `Remove ${field.name} ${n + 1}`, title: "Remove", onclick: () => change(rows.map((each) => each.get()).filter((_, at) => at !== n)) }, "✕"))));
  };
  const change = (values, is_new = false) => {
    show(values);
    if (is_new) list.lastElementChild?.querySelector("input, select, textarea")?.focus();
    element.dispatchEvent(new Event("input", { bubbles: true }));
  };
  return { element, get: () => join(rows.map((each) => each.get())), set: (value) => show(split(value)) };
}
