/** The document in the editor: its text, its changes, and its undo steps. */
import * as monaco from "../vendor/monaco/monaco.js";

const CHANGE_DELAY_MS = 250;

/** Open a file in the editor below `element`; `opened` is `{path, uri, text, sha256}`. */
export async function open_document(element, opened) {
  const model = monaco.editor.createModel(opened.text, "vesper", monaco.Uri.parse(opened.uri));
  const editor = monaco.editor.create(element, { model });
  const callbacks = new Set();
  let timer = 0;
  model.onDidChangeContent(() => {
    clearTimeout(timer);
    timer = setTimeout(() => callbacks.forEach((each) => each()), CHANGE_DELAY_MS);
  });
  return {
    text: () => model.getValue(),
    /** Replace the text as one undo step; the cursor stays. */
    set_text(text) {
      editor.pushUndoStop();
      editor.executeEdits("vesper", [{ range: model.getFullModelRange(), text }]);
      editor.pushUndoStop();
    },
    /** Call back after changes, at most once in a quarter of a second. */
    on_change: (callback) => callbacks.add(callback),
  };
}
