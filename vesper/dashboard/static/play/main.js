/** The page of the playground. It owns the document: the text in the editor is the only copy of the node. */
import * as monaco from "../vendor/monaco/monaco.js";
import { mount_cases } from "./cases.js";
import { mount_code } from "./code.js";
import { OPTIONS, kept_text, open_document } from "./editor.js";
import { mount_form } from "./form.js";
import { mount_grid } from "./grid.js";
import { LanguageClient, register_providers } from "./lsp.js";
import { make, make_problem, mount_tabs, read_svg } from "./parts.js";
import { post } from "./post.js";
import { mount_run } from "./run.js";
import { mount_save } from "./save.js";

const page = document.getElementById("play");
const at = (id) => document.getElementById(id);

const opened = JSON.parse(page.dataset.opened);
const node = open_document(at("editor"), opened);
restore_text();

// -- views of the node ----------------------------------------------------------------------------

let taken = null; // the drawing of the last run, and the text that it ran
async function show_flow() {
  const text = node.text();
  try {
    const svg = taken?.text === text ? taken.svg : (await post("/play/api/flow", { path: node.path(), text })).svg;
    at("flow-drawing").replaceChildren(read_svg(svg));
    at("flow-note").textContent = taken?.text === text ? "Strong lines are the path of the last run." : "Run the node to see its path here.";
  } catch (error) {
    at("flow-drawing").replaceChildren(make_problem(error));
  }
}
at("flow-drawing").addEventListener("click", (event) => {
  const line = event.target.closest("[data-line]")?.dataset.line;
  if (!line) return;
  views.select(at("tab-text"));
  node.go_to(Number(line));
  node.editor.focus();
});
const views = mount_tabs(at("views"), (tab) => {
  if (tab.id === "tab-flow") show_flow();
  if (tab.id === "tab-text") node.editor.layout();
});

// -- run, cases, code -----------------------------------------------------------------------------

const form = mount_form(at("form"), node);
const grid = mount_grid(at("table"), node);
const run = mount_run(at("result"), node, form, (result) => {
  grid.mark(result.rows);
  if (result.flow) taken = { svg: result.flow, text: node.text() };
  if (!at("flow").hidden) show_flow();
});
mount_cases(at("cases"), node, form);
const code = mount_code(at("listing"), at("code-message"), node);
let kind = null;
const tools = mount_tabs(at("tools"), (tab) => {
  kind = tab.dataset.kind ?? null;
  if (kind) code.show(kind);
});
const start_run = async () => {
  tools.select(at("tab-run"), false);
  (await run())?.scrollIntoView({ block: "nearest" });
};
at("run").addEventListener("click", start_run);
node.on_change(() => {
  show_state();
  if (kind) code.show(kind);
  if (!at("flow").hidden) show_flow();
});

// -- saving ---------------------------------------------------------------------------------------

const open_save = mount_save(at("save-dialog"), node, (file) => {
  note(`Saved ${file.path}.`);
  history.replaceState(null, "", `/play?path=${encodeURIComponent(file.path)}`); // a new node is no longer new
});
at("save").addEventListener("click", open_save);
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey)) return;
  if (event.key === "Enter") start_run();
  else if (event.key === "s") open_save();
  else return;
  event.preventDefault();
  event.stopPropagation();
}, { capture: true });

function show_state() {
  at("state").textContent = opened.sha256 === null ? "not saved yet" : node.is_changed() ? "unsaved changes" : "saved";
  at("save").disabled = !node.is_changed();
}
show_state();

function note(...parts) {
  at("note").replaceChildren(...parts);
  at("note").hidden = parts.length === 0;
}

/** Bring back the text that an earlier visit did not save. */
function restore_text() {
  const kept = kept_text(opened);
  if (!kept) return;
  const { sha256 } = opened;
  opened.sha256 = kept.sha256; // saving must notice that the file changed since
  node.set_text(kept.text);
  const older = kept.sha256 === sha256 ? "" : " The file has changed since: saving shows both.";
  const discard = () => {
    opened.sha256 = sha256;
    node.set_text(opened.text);
    note();
  };
  note(`Your unsaved text was kept in this browser.${older} `, make("button", { type: "button", onclick: discard }, "Discard it"));
}

at("node").addEventListener("change", (event) => location.assign(`/play?node=${encodeURIComponent(event.target.value)}`));

// -- language server ------------------------------------------------------------------------------

const client = new LanguageClient((state) => {
  page.dataset.language = state;
  at("language").textContent = { connecting: "checking starts …", ready: "" }[state] ?? state;
});
client.follow(node.model);
monaco.editor.registerEditorOpener({ openCodeEditor: (_source, uri, selection) => open_other(uri, selection) });
client.start().then(() => register_providers(client, open_model));

/** Return the model of a file of the project; other files are only shown. */
async function open_model(uri) {
  const parsed = monaco.Uri.parse(uri);
  const known = monaco.editor.getModel(parsed);
  if (known) return known;
  try {
    const file = await post("/play/api/open", { uri });
    return monaco.editor.getModel(parsed) ?? monaco.editor.createModel(file.text, "vesper", parsed);
  } catch {
    return null; // outside the folder of nodes: no place to go to
  }
}

let other = null;
async function open_other(uri, selection) {
  const model = uri.toString() === node.model.uri.toString() ? null : await open_model(uri.toString());
  if (!model) return false;
  other ??= monaco.editor.create(at("other"), { ...OPTIONS, model: null, readOnly: true, domReadOnly: true });
  client.follow(model);
  other.setModel(model);
  const tab = at("tab-other");
  tab.hidden = false;
  tab.textContent = `${uri.path.split("/").pop()} (read-only)`;
  views.select(tab);
  if (selection) {
    const line = selection.startLineNumber ?? selection.lineNumber;
    other.revealLineInCenter(line);
    other.setPosition({ lineNumber: line, column: selection.startColumn ?? selection.column });
  }
  other.focus();
  return true;
}

page.dataset.ready = "";
