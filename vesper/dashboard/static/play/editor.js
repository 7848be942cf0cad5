/** The document in the editor: its language, its themes, its text, its changes and its undo steps. */
import * as monaco from "../vendor/monaco/monaco.js";

const CHANGE_DELAY_MS = 250;
const KEPT_PREFIX = "vesper-play ";

self.MonacoEnvironment = {
  getWorker: () => new Worker(new URL("../vendor/monaco/worker.js", import.meta.url), { type: "module" }),
};

// -- language -------------------------------------------------------------------------------------

monaco.languages.register({ id: "vesper", extensions: [".vsp"] });
monaco.languages.setLanguageConfiguration("vesper", {
  comments: { lineComment: "#" },
  brackets: [["{", "}"], ["[", "]"], ["(", ")"]],
  autoClosingPairs: ["{}", "[]", "()", '""', "''"].map(([open, close]) => ({ open, close, notIn: ["string", "comment"] })),
  surroundingPairs: ["{}", "[]", "()", '""', "''"].map(([open, close]) => ({ open, close })),
  folding: { offSide: true },
  indentationRules: {
    increaseIndentPattern: /^\s*(- )*[\w ,.-]+:\s*([|>][-+]?)?\s*(#.*)?$/,
    decreaseIndentPattern: /^\s+$/,
  },
  wordPattern: /[A-Za-z_][A-Za-z0-9_]*|-?\d+(?:\.\d+)?/,
});
monaco.languages.setMonarchTokensProvider("vesper", {
  words: ["AND", "OR", "NOT", "IN", "IS", "IF", "THEN", "ELSE", "FOR", "WHERE", "BETWEEN", "LIKE", "CAST", "AS", "AT", "EVERY", "SOME", "null", "true", "false"],
  tokenizer: {
    root: [
      [/#.*$/, "comment"],
      [/^(\s*(?:- )*)([A-Za-z_][\w .,-]*?)(\s*:)(?=\s|$)/, ["", "tag", "delimiter"]],
      [/([{,]\s*)([A-Za-z_][\w-]*)(\s*:)(?=\s)/, ["delimiter", "tag", "delimiter"]],
      [/"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'/, "string"],
      [/\b\d{4}-\d{2}-\d{2}(?:T[\d:.]+Z?)?\b|-?\b\d+(?:\.\d+)?\b/, "number"],
      [/[A-Za-z_]\w*/, { cases: { "@words": "keyword", "@default": "" } }],
      [/[-+*/%<>=!?|&]+/, "operator"],
      [/[{}[\]()]/, "@brackets"],
    ],
  },
});
monaco.languages.register({ id: "generated-python" });
monaco.languages.setMonarchTokensProvider("generated-python", {
  words: ["and", "as", "class", "def", "elif", "else", "except", "finally", "for", "from", "if", "import", "in", "is", "not", "or", "raise", "return", "try", "while", "with", "None", "True", "False"],
  tokenizer: {
    root: [
      [/#.*$/, "comment"],
      [/"""/, "string", "@text"],
      [/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/, "string"],
      [/@\w+/, "annotation"],
      [/\b\d+(?:\.\d+)?\b/, "number"],
      [/[A-Za-z_]\w*/, { cases: { "@words": "keyword", "@default": "" } }],
    ],
    text: [[/"""/, "string", "@pop"], [/[^"]+|"/, "string"]],
  },
});

const token_rules = (colors) =>
  Object.entries({
    comment: colors.muted, tag: colors.key, keyword: colors.word, operator: colors.ink, string: colors.text,
    number: colors.number, annotation: colors.muted, delimiter: colors.muted, function: colors.name,
    parameter: colors.input, variable: colors.ink, property: colors.name, enumMember: colors.text, type: colors.type,
    namespace: colors.type,
  }).map(([token, foreground]) => ({ token, foreground }));
const LIGHT = { ink: "1a1f27", muted: "5a6472", key: "1f55c4", word: "8a2f86", text: "146c3e", number: "8a4a00", name: "5b3fb0", input: "9a3412", type: "0b6b78" };
const DARK = { ink: "e4e8ee", muted: "9aa5b4", key: "85aeff", word: "dba3e0", text: "63cf95", number: "e9b872", name: "b9a6ff", input: "f5a97f", type: "6fd0dc" };
const quiet_brackets = (color) => Object.fromEntries([1, 2, 3, 4, 5, 6].map((level) => [`editorBracketHighlight.foreground${level}`, color]));
monaco.editor.defineTheme("vesper-light", {
  base: "vs", inherit: true, rules: token_rules(LIGHT),
  colors: { ...quiet_brackets("#5a6472"), "editor.background": "#ffffff", "editorLineNumber.foreground": "#5a6472", "editorInlayHint.foreground": "#5a6472", "editorInlayHint.background": "#f4f6f8", "editor.lineHighlightBackground": "#f4f6f8" },
});
monaco.editor.defineTheme("vesper-dark", {
  base: "vs-dark", inherit: true, rules: token_rules(DARK),
  colors: { ...quiet_brackets("#9aa5b4"), "editor.background": "#13161b", "editorLineNumber.foreground": "#9aa5b4", "editorInlayHint.foreground": "#9aa5b4", "editorInlayHint.background": "#1b2027", "editor.lineHighlightBackground": "#1b2027" },
});

const prefers_dark = matchMedia("(prefers-color-scheme: dark)");
function apply_theme() {
  const chosen = document.documentElement.dataset.theme;
  const is_dark = chosen === "dark" || (chosen !== "light" && prefers_dark.matches);
  monaco.editor.setTheme(is_dark ? "vesper-dark" : "vesper-light");
}
prefers_dark.addEventListener("change", apply_theme);
new MutationObserver(apply_theme).observe(document.documentElement, { attributeFilter: ["data-theme"] });
apply_theme();

export const OPTIONS = {
  automaticLayout: true,
  "semanticHighlighting.enabled": true,
  minimap: { enabled: false },
  fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
  fontSize: 13,
  lineHeight: 20,
  tabSize: 2,
  detectIndentation: false,
  scrollBeyondLastLine: false,
  fixedOverflowWidgets: true,
  wordBasedSuggestions: "off",
  stickyScroll: { enabled: false },
  padding: { top: 8, bottom: 8 },
  lineNumbersMinChars: 3,
  overviewRulerBorder: false,
  renderLineHighlightOnlyWhenFocus: true,
  scrollbar: { alwaysConsumeMouseWheel: false, verticalScrollbarSize: 10, horizontalScrollbarSize: 10 },
};

// -- document -------------------------------------------------------------------------------------

/** Open a file in the editor below `element`; `opened` is `{path, uri, text, sha256}`. */
export function open_document(element, opened) {
  const model = monaco.editor.createModel(opened.text, "vesper", monaco.Uri.parse(opened.uri));
  const editor = monaco.editor.create(element, { ...OPTIONS, model, ariaLabel: `Text of ${opened.path}` });
  const callbacks = new Set();
  let timer = 0;
  const changed = () => {
    keep_text(opened, model.getValue());
    callbacks.forEach((each) => each());
  };
  model.onDidChangeContent(() => {
    clearTimeout(timer);
    timer = setTimeout(changed, CHANGE_DELAY_MS);
  });
  return {
    editor,
    model,
    opened,
    path: () => opened.path,
    text: () => model.getValue(),
    /** Whether the text differs from the file that was opened or saved last. */
    is_changed: () => opened.sha256 === null || model.getValue() !== opened.text,
    /** Replace the text as one undo step; the cursor stays. */
    set_text(text) {
      if (text === model.getValue()) return;
      editor.pushUndoStop();
      editor.executeEdits("vesper", [{ range: model.getFullModelRange(), text, forceMoveMarkers: false }]);
      editor.pushUndoStop();
    },
    /** Call back after changes, at most once in a quarter of a second. */
    on_change: (callback) => callbacks.add(callback),
    /** Take over the text and hash of the file on disk. */
    saved(file) {
      Object.assign(opened, { text: file.text, sha256: file.sha256 });
      changed();
    },
    go_to(line) {
      editor.setPosition({ lineNumber: line, column: model.getLineFirstNonWhitespaceColumn(line) || 1 });
      editor.revealLineInCenterIfOutsideViewport(line);
    },
  };
}

// -- unsaved text ---------------------------------------------------------------------------------

function keep_text(opened, text) {
  try {
    if (text === opened.text) localStorage.removeItem(KEPT_PREFIX + opened.uri);
    else localStorage.setItem(KEPT_PREFIX + opened.uri, JSON.stringify({ text, sha256: opened.sha256 }));
  } catch {
    // Storage is full or forbidden: the text is in the editor only.
  }
}

/** Return the unsaved text of an earlier visit with the hash of the file that it began from; null without one. */
export function kept_text(opened) {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT_PREFIX + opened.uri));
    if (typeof kept?.text !== "string" || kept.text === opened.text) return null;
    return kept;
  } catch {
    return null;
  }
}
