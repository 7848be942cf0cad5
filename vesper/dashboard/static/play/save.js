/** Saving: the difference first, then the file, unless it changed meanwhile. */
import * as monaco from "../vendor/monaco/monaco.js";
import { OPTIONS } from "./editor.js";
import { make_problem } from "./parts.js";
import { post } from "./post.js";

const NARROW_PX = 720;

/** Make the dialog of differences work. Returns the function that opens it; `saved(file)` is called after a write. */
export function mount_save(dialog, node, saved) {
  const message = dialog.querySelector("[data-message]");
  const confirm = dialog.querySelector("[data-confirm]");
  let editor = null;
  let found = null;

  function show(problem) {
    const is_changed_on_disk = found.sha256 !== node.opened.sha256;
    const is_same = found.text === node.text() && found.sha256 !== null;
    dialog.querySelector("h2").textContent = found.sha256 === null ? `Create ${found.path}` : `Save ${found.path}`;
    message.replaceChildren();
    if (problem) message.append(make_problem(problem));
    else if (is_changed_on_disk) message.append(make_problem({ message: `${found.path} changed on disk since it was opened.`, remedy: "Lines with − are on disk now, lines with + are yours. Saving replaces the file." }));
    else message.textContent = is_same ? "The file has this text already." : "Lines with − are in the file, lines with + are yours.";
    confirm.textContent = is_changed_on_disk ? "Replace the file" : found.sha256 === null ? "Create" : "Save";
    confirm.disabled = is_same;
    const original = monaco.editor.createModel(found.text, "vesper");
    const modified = monaco.editor.createModel(node.text(), "vesper");
    editor ??= monaco.editor.createDiffEditor(dialog.querySelector("[data-diff]"), {
      ...OPTIONS, readOnly: true, domReadOnly: true, originalAriaLabel: "File", modifiedAriaLabel: "Your text",
      renderSideBySide: innerWidth > NARROW_PX, ignoreTrimWhitespace: false, renderOverviewRuler: false,
      hideUnchangedRegions: { enabled: true },
    });
    const previous = editor.getModel();
    editor.setModel({ original, modified });
    previous?.original.dispose();
    previous?.modified.dispose();
  }

  async function open() {
    if (dialog.open) return;
    try {
      found = await post("/play/api/save", { path: node.path(), preview: true });
    } catch (error) {
      found = { path: node.path(), text: node.opened.text, sha256: node.opened.sha256 };
      dialog.showModal();
      show(error);
      confirm.disabled = true;
      return;
    }
    dialog.showModal();
    show(null);
    confirm.focus();
  }

  dialog.querySelector("form").addEventListener("submit", async (event) => {
    if (event.submitter !== confirm) return;
    event.preventDefault();
    const text = node.text();
    try {
      const file = await post("/play/api/save", { path: node.path(), text, sha256: found.sha256 });
      node.saved(file);
      dialog.close();
      saved(file);
    } catch (error) {
      found = error.answer?.found ?? found;
      show(error);
    }
  });
  return open;
}
