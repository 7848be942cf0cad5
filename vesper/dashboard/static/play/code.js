/** Listings of the node: Python, IR, bytecode and machine code, linked to the line of the cursor. */
import * as monaco from "../vendor/monaco/monaco.js";
import { OPTIONS } from "./editor.js";
import { make_problem } from "./parts.js";
import { post } from "./post.js";

/** Mount a listing below `element`. Returns `show(kind)` and `refresh()`. */
export function mount_code(element, message, node) {
  let editor = null;
  let marks = null;
  let links = [];
  let shown = { kind: null, text: null };
  let latest = 0;

  async function show(kind) {
    const text = node.text();
    if (shown.kind === kind && shown.text === text) return;
    const started = ++latest;
    let code;
    try {
      code = await post("/play/api/code", { path: node.path(), text, kind });
      if (started !== latest) return;
      message.replaceChildren();
    } catch (error) {
      if (started === latest) message.replaceChildren(make_problem(error));
      if (shown.kind === kind || started !== latest) return; // the last listing stays beside a text with errors
      code = { text: "", links: [] };
    }
    shown = { kind, text };
    links = code.links;
    editor ??= make_editor();
    monaco.editor.setModelLanguage(editor.getModel(), kind === "python" ? "generated-python" : "plaintext");
    editor.setValue(code.text);
    element.hidden = code.text === "";
    mark(node.editor.getPosition()?.lineNumber ?? 1);
  }

  function make_editor() {
    const made = monaco.editor.create(element, { ...OPTIONS, value: "", readOnly: true, domReadOnly: true, folding: false, ariaLabel: "Listing" });
    marks = made.createDecorationsCollection();
    made.onMouseUp((event) => {
      const line = event.target.position?.lineNumber;
      const link = line && links.findLast(([at]) => at <= line);
      if (link) node.go_to(link[1]);
    });
    return made;
  }

  /** Mark the part of the listing that a line of the node begins. */
  function mark(line) {
    if (!editor || element.closest("[hidden]")) return;
    const best = Math.max(...links.map(([, source]) => source).filter((source) => source <= line), 0);
    const parts = links.flatMap(([at, source], position) => {
      if (source !== best) return [];
      const end = (links[position + 1]?.[0] ?? at + 1) - 1;
      return [{ range: new monaco.Range(at, 1, Math.max(at, end), 1), options: { isWholeLine: true, className: "linked-line" } }];
    });
    marks.set(parts);
    if (parts.length) editor.revealLineInCenterIfOutsideViewport(parts[0].range.startLineNumber);
  }

  node.editor.onDidChangeCursorPosition((event) => mark(event.position.lineNumber));
  return { show };
}
