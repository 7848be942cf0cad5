/** A client of Vesper's language server: JSON-RPC over a websocket, mapped to the providers of the editor. */
import * as monaco from "../vendor/monaco/monaco.js";

const LANGUAGE = "vesper";
const SYNC_DELAY_MS = 150;
const RETRY_DELAYS_MS = [500, 2000, 5000];
const MAX_LOCATIONS = 200;
const COMPLETION_KINDS = [
  "Text", "Method", "Function", "Constructor", "Field", "Variable", "Class", "Interface", "Module", "Property", "Unit",
  "Value", "Enum", "Keyword", "Snippet", "Color", "File", "Reference", "Folder", "EnumMember", "Constant", "Struct",
  "Event", "Operator", "TypeParameter",
];
const SEVERITIES = [8, 4, 2, 1]; // Error, Warning, Information, Hint of the protocol, as the editor numbers them

// -- positions ------------------------------------------------------------------------------------

const to_position = (position) => ({ line: position.lineNumber - 1, character: position.column - 1 });
const to_range = (range) => ({
  start: { line: range.startLineNumber - 1, character: range.startColumn - 1 },
  end: { line: range.endLineNumber - 1, character: range.endColumn - 1 },
});
const from_range = ({ start, end }) =>
  new monaco.Range(start.line + 1, start.character + 1, end.line + 1, end.character + 1);
const markdown = (text) => {
  if (!text) return undefined;
  if (Array.isArray(text)) return { value: text.map((each) => markdown(each).value).join("\n\n") };
  if (typeof text === "string") return { value: text };
  return { value: text.language ? "```" + text.language + "\n" + text.value + "\n```" : text.value };
};

// -- connection -----------------------------------------------------------------------------------

/** Connection to the server; `report` gets `connecting`, `ready`, or the reason why there is none. */
export class LanguageClient {
  constructor(report) {
    this._report = report;
    this._pending = new Map();
    this._documents = new Map();
    this._last_id = 0;
    this._tries = 0;
    this._socket = null;
    this.legend = { tokenTypes: [], tokenModifiers: [] };
    this.on_diagnostics = () => {};
  }

  /** Connect; resolves when the server is ready, or has failed for good. */
  start() {
    this._report("connecting");
    return new Promise((resolve) => {
      const scheme = location.protocol === "https:" ? "wss:" : "ws:";
      const socket = new WebSocket(`${scheme}//${location.host}/play/lsp`);
      this._socket = socket;
      socket.onopen = async () => {
        const answer = await this._call("initialize", { processId: null, rootUri: null, capabilities: CAPABILITIES });
        if (!answer) return;
        this.legend = answer.capabilities.semanticTokensProvider?.legend ?? this.legend;
        this._send({ method: "initialized", params: {} });
        this._tries = 0;
        for (const each of this._documents.values()) this._open(each);
        this._is_ready = true;
        this._report("ready");
        resolve();
      };
      socket.onmessage = (event) => this._receive(JSON.parse(event.data));
      socket.onclose = (event) => {
        this._is_ready = false;
        for (const each of this._pending.values()) each(null);
        this._pending.clear();
        const delay = RETRY_DELAYS_MS[this._tries++];
        if (delay === undefined || event.code === 1013) {
          this._report(event.reason || "the language server ended: reload the page");
          resolve();
        } else {
          setTimeout(() => this.start().then(resolve), delay);
        }
      };
    });
  }

  /** Keep the server's text equal to a model. */
  follow(model) {
    const document = { model, version: 0, timer: 0, is_stale: false };
    this._documents.set(model.uri.toString(), document);
    if (this._is_ready) this._open(document);
    model.onDidChangeContent(() => {
      document.is_stale = true;
      clearTimeout(document.timer);
      document.timer = setTimeout(() => this._flush(document), SYNC_DELAY_MS);
    });
  }

  /** Ask about a document after its latest text was sent; null where the server cannot answer. */
  async request(method, model, params = {}, token = null) {
    const document = this._documents.get(model.uri.toString());
    if (!this._is_ready || !document) return null;
    this._flush(document);
    return this._call(method, { textDocument: { uri: model.uri.toString() }, ...params }, token);
  }

  resolve(method, item, token) {
    return this._is_ready ? this._call(method, item, token) : Promise.resolve(null);
  }

  _call(method, params, token = null) {
    const id = ++this._last_id;
    return new Promise((resolve) => {
      this._pending.set(id, resolve);
      token?.onCancellationRequested(() => {
        this._pending.delete(id);
        resolve(null);
      });
      this._send({ id, method, params });
    });
  }

  _send(message) {
    if (this._socket.readyState === WebSocket.OPEN) this._socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  _receive(message) {
    if (message.method === "textDocument/publishDiagnostics") {
      this.on_diagnostics(message.params);
    } else if (message.method === "window/logMessage") {
      if (message.params.type === 1) this._report(message.params.message.trim().split("\n").at(-1)); // a defect
    } else if (message.method !== undefined && message.id !== undefined) {
      this._send({ id: message.id, result: null }); // requests of the server need no more than an answer
    } else if (message.id !== undefined) {
      this.last_refusal = message.error?.message;
      this._pending.get(message.id)?.(message.result ?? null);
      this._pending.delete(message.id);
    }
  }

  _open(document) {
    const { model } = document;
    document.is_stale = false;
    const text = { uri: model.uri.toString(), languageId: LANGUAGE, version: ++document.version, text: model.getValue() };
    this._send({ method: "textDocument/didOpen", params: { textDocument: text } });
  }

  _flush(document) {
    if (!document.is_stale || !this._is_ready) return;
    document.is_stale = false;
    clearTimeout(document.timer);
    const textDocument = { uri: document.model.uri.toString(), version: ++document.version };
    const contentChanges = [{ text: document.model.getValue() }];
    this._send({ method: "textDocument/didChange", params: { textDocument, contentChanges } });
  }
}

const CAPABILITIES = {
  textDocument: {
    publishDiagnostics: { relatedInformation: true },
    hover: { contentFormat: ["markdown"] },
    completion: {
      completionItem: { snippetSupport: true, documentationFormat: ["markdown"], resolveSupport: { properties: ["documentation", "detail"] } },
    },
    signatureHelp: {
      signatureInformation: { documentationFormat: ["markdown"], parameterInformation: { labelOffsetSupport: true } },
    },
    rename: { prepareSupport: true },
    codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "refactor", "source.fixAll"] } } },
    semanticTokens: { requests: { full: true }, tokenTypes: [], tokenModifiers: [], formats: ["relative"] },
    documentSymbol: { hierarchicalDocumentSymbolSupport: true },
  },
};

// -- providers ------------------------------------------------------------------------------------

/** Register the providers of the language, once the server is ready. `open_model(uri)` returns the model of a file, or null. */
export function register_providers(client, open_model) {
  const { languages } = monaco;
  show_diagnostics(client);

  languages.registerHoverProvider(LANGUAGE, {
    async provideHover(model, position, token) {
      const found = await client.request("textDocument/hover", model, { position: to_position(position) }, token);
      return found && { contents: [markdown(found.contents)], range: found.range && from_range(found.range) };
    },
  });

  languages.registerCompletionItemProvider(LANGUAGE, {
    triggerCharacters: [".", "[", "{", "("],
    async provideCompletionItems(model, position, _context, token) {
      const params = { position: to_position(position), context: { triggerKind: 1 } };
      const found = await client.request("textDocument/completion", model, params, token);
      const word = model.getWordUntilPosition(position);
      const range = new monaco.Range(position.lineNumber, word.startColumn, position.lineNumber, position.column);
      const items = Array.isArray(found) ? found : (found?.items ?? []);
      return { suggestions: items.map((each) => suggestion(each, range)), incomplete: found?.isIncomplete ?? false };
    },
    async resolveCompletionItem(item, token) {
      const found = await client.resolve("completionItem/resolve", item.source, token);
      return found ? { ...item, detail: found.detail, documentation: markdown(found.documentation) } : item;
    },
  });

  languages.registerSignatureHelpProvider(LANGUAGE, {
    signatureHelpTriggerCharacters: ["(", ","],
    signatureHelpRetriggerCharacters: [":"],
    async provideSignatureHelp(model, position, token) {
      const params = { position: to_position(position) };
      const found = await client.request("textDocument/signatureHelp", model, params, token);
      return found && { value: signature_help(found), dispose() {} };
    },
  });

  languages.registerDefinitionProvider(LANGUAGE, {
    provideDefinition: async (model, position, token) =>
      locations(await client.request("textDocument/definition", model, { position: to_position(position) }, token), open_model),
  });

  languages.registerReferenceProvider(LANGUAGE, {
    async provideReferences(model, position, context, token) {
      const params = { position: to_position(position), context };
      return locations(await client.request("textDocument/references", model, params, token), open_model);
    },
  });

  languages.registerRenameProvider(LANGUAGE, {
    async provideRenameEdits(model, position, newName, token) {
      const params = { position: to_position(position), newName };
      const found = await client.request("textDocument/rename", model, params, token);
      if (!found) return { edits: [], rejectReason: client.last_refusal ?? "This name cannot be changed." };
      const edits = workspace_edits(found);
      const others = edits.filter((each) => each.resource.toString() !== model.uri.toString());
      if (others.length === 0) return { edits };
      return { edits: [], rejectReason: `The name is also used in ${others.length} places of other files: use an editor of the project.` };
    },
    async resolveRenameLocation(model, position, token) {
      const params = { position: to_position(position) };
      const found = await client.request("textDocument/prepareRename", model, params, token);
      if (!found) return { text: "", range: monaco.Range.fromPositions(position), rejectReason: client.last_refusal ?? "There is no name here." };
      const range = from_range(found.range ?? found);
      return { range, text: found.placeholder ?? model.getValueInRange(range) };
    },
  });

  languages.registerDocumentFormattingEditProvider(LANGUAGE, {
    async provideDocumentFormattingEdits(model, options, token) {
      const params = { options: { tabSize: options.tabSize, insertSpaces: true } };
      const found = await client.request("textDocument/formatting", model, params, token);
      return (found ?? []).map((each) => ({ range: from_range(each.range), text: each.newText }));
    },
  });

  languages.registerCodeActionProvider(LANGUAGE, {
    async provideCodeActions(model, range, context, token) {
      const diagnostics = context.markers.map(to_diagnostic);
      const params = { range: to_range(range), context: { diagnostics, only: context.only ? [context.only] : undefined } };
      const found = await client.request("textDocument/codeAction", model, params, token);
      const actions = (found ?? []).filter((each) => each.edit).map((each) => ({
        title: each.title,
        kind: each.kind,
        isPreferred: each.isPreferred,
        diagnostics: context.markers,
        edit: { edits: workspace_edits(each.edit) },
      }));
      return { actions, dispose() {} };
    },
  });

  languages.registerInlayHintsProvider(LANGUAGE, {
    async provideInlayHints(model, range, token) {
      const found = await client.request("textDocument/inlayHint", model, { range: to_range(range) }, token);
      const hints = (found ?? []).map((each) => ({
        position: { lineNumber: each.position.line + 1, column: each.position.character + 1 },
        label: typeof each.label === "string" ? each.label : each.label.map((part) => ({ label: part.value })),
        kind: each.kind,
        paddingLeft: each.paddingLeft,
        paddingRight: each.paddingRight,
        tooltip: markdown(each.tooltip),
      }));
      return { hints, dispose() {} };
    },
  });

  languages.registerDocumentSemanticTokensProvider(LANGUAGE, {
    getLegend: () => client.legend,
    async provideDocumentSemanticTokens(model, _last, token) {
      const found = await client.request("textDocument/semanticTokens/full", model, {}, token);
      return found && { data: new Uint32Array(found.data) };
    },
    releaseDocumentSemanticTokens() {},
  });

  languages.registerDocumentSymbolProvider(LANGUAGE, {
    async provideDocumentSymbols(model, token) {
      return ((await client.request("textDocument/documentSymbol", model, {}, token)) ?? []).map(document_symbol);
    },
  });
}

function show_diagnostics(client) {
  client.on_diagnostics = ({ uri, diagnostics }) => {
    const model = monaco.editor.getModel(monaco.Uri.parse(uri));
    if (!model) return;
    const markers = diagnostics.map((each) => ({
      ...from_range(each.range),
      severity: SEVERITIES[(each.severity ?? 1) - 1],
      message: each.message,
      code: each.code === undefined ? undefined : String(each.code),
      source: each.source,
      tags: each.tags,
      relatedInformation: each.relatedInformation?.map((other) => ({
        ...from_range(other.location.range),
        resource: monaco.Uri.parse(other.location.uri),
        message: other.message,
      })),
    }));
    monaco.editor.setModelMarkers(model, LANGUAGE, markers);
  };
}

// -- values ---------------------------------------------------------------------------------------

function suggestion(item, range) {
  const edit = item.textEdit;
  const snippet = monaco.languages.CompletionItemInsertTextRule.InsertAsSnippet;
  return {
    label: item.labelDetails ? { label: item.label, ...item.labelDetails } : item.label,
    kind: monaco.languages.CompletionItemKind[COMPLETION_KINDS[(item.kind ?? 1) - 1]],
    detail: item.detail,
    documentation: markdown(item.documentation),
    insertText: edit?.newText ?? item.insertText ?? item.label,
    insertTextRules: item.insertTextFormat === 2 ? snippet : undefined,
    range: edit ? from_range(edit.range ?? edit.replace) : range,
    sortText: item.sortText,
    filterText: item.filterText,
    preselect: item.preselect,
    additionalTextEdits: item.additionalTextEdits?.map((each) => ({ range: from_range(each.range), text: each.newText })),
    source: item,
  };
}

const described = (part) => ({ ...part, documentation: markdown(part.documentation) });
const signature_help = (found) => ({
  activeSignature: found.activeSignature ?? 0,
  activeParameter: found.activeParameter ?? 0,
  signatures: found.signatures.map((each) => ({ ...described(each), parameters: (each.parameters ?? []).map(described) })),
});

async function locations(found, open_model) {
  const listed = (Array.isArray(found) ? found : found ? [found] : []).slice(0, MAX_LOCATIONS);
  const models = await Promise.all([...new Set(listed.map((each) => each.targetUri ?? each.uri))].map(open_model));
  const known = new Set(models.filter(Boolean).map((each) => each.uri.toString()));
  return listed
    .map((each) => ({
      uri: monaco.Uri.parse(each.targetUri ?? each.uri),
      range: from_range(each.targetSelectionRange ?? each.range),
    }))
    .filter((each) => known.has(each.uri.toString()));
}

function workspace_edits(edit) {
  const changes = Object.entries(edit.changes ?? {});
  for (const each of edit.documentChanges ?? []) changes.push([each.textDocument.uri, each.edits]);
  return changes.flatMap(([uri, edits]) =>
    edits.map((each) => ({
      resource: monaco.Uri.parse(uri),
      versionId: undefined,
      textEdit: { range: from_range(each.range), text: each.newText },
    })),
  );
}

const to_diagnostic = (marker) => ({
  range: to_range(marker),
  severity: SEVERITIES.indexOf(marker.severity) + 1,
  message: marker.message,
  code: typeof marker.code === "object" ? marker.code?.value : marker.code,
  source: marker.source,
});

const document_symbol = (each) => ({
  name: each.name,
  detail: each.detail ?? "",
  kind: each.kind - 1,
  tags: [],
  range: from_range(each.range),
  selectionRange: from_range(each.selectionRange),
  children: (each.children ?? []).map(document_symbol),
});
