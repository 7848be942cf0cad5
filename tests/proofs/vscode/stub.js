// A stand-in for the module `vscode`: it keeps what is registered, so that a script can act as the editor.
'use strict'

/** Return the stand-in. `URI` is the class of `vscode-uri`, which VS Code uses too. */
function createStub(URI, folder) {
  const kept = { commands: new Map(), providers: [], diagnostics: new Map(), messages: [], controllers: [], panels: [], debug: {}, content: {} }
  const emitters = {}
  class Disposable { constructor(call) { this.call = call } dispose() { this.call?.() } static from() { return new Disposable() } }
  class EventEmitter {
    listeners = new Set()
    event = (listener, self) => { const call = self ? listener.bind(self) : listener; this.listeners.add(call); return new Disposable(() => this.listeners.delete(call)) }
    fire(value) { return Promise.all([...this.listeners].map((each) => each(value))) }
    dispose() {}
  }
  class CancellationTokenSource { token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable() }; cancel() {} dispose() {} }
  class Position { constructor(line, character) { Object.assign(this, { line, character }) } }
  class Range {
    constructor(...at) { [this.start, this.end] = at.length === 4 ? [new Position(at[0], at[1]), new Position(at[2], at[3])] : at }
  }
  const classes = {}
  for (const name of [
    'CallHierarchyItem', 'CodeAction', 'CodeActionKind', 'CodeLens', 'Color', 'CompletionItem', 'CompletionList', 'DebugAdapterExecutable', 'Diagnostic',
    'DiagnosticRelatedInformation', 'DocumentLink', 'DocumentSymbol', 'FoldingRange', 'Hover', 'InlayHint', 'InlayHintLabelPart', 'Location', 'MarkdownString',
    'RelativePattern', 'SemanticTokens', 'SemanticTokensLegend', 'SignatureHelp', 'SnippetString', 'SymbolInformation', 'TestMessage', 'TextEdit', 'ThemeIcon',
    'TypeHierarchyItem', 'WorkspaceEdit',
  ]) classes[name] = class { constructor(...parts) { this.parts = parts } }
  const kind = (value) => ({ value, append: (part) => kind(value ? `${value}.${part}` : part) })
  classes.CodeActionKind = Object.fromEntries(Object.entries({ Empty: '', QuickFix: 'quickfix', Refactor: 'refactor', Source: 'source' }).map(([name, value]) => [name, kind(value)]))
  const on = (name) => (emitters[name] ??= new EventEmitter()).event
  const item = (id, label, uri) => ({ id, label, uri, children: items() })
  function items(parent) {
    const map = new Map()
    const add = (each) => { each.parent = parent; each.children = items(each); map.set(each.id, each) }
    return { add, delete: (id) => map.delete(id), get: (id) => map.get(id), replace: (all) => { map.clear(); all.forEach(add) }, get size() { return map.size }, [Symbol.iterator]: () => map[Symbol.iterator]() }
  }
  const known = {
    ...classes, Disposable, EventEmitter, CancellationTokenSource, Position, Range, Uri: URI, version: '1.100.0',
    TestRunProfileKind: { Run: 1, Debug: 2 }, ViewColumn: { Beside: -2 }, env: { language: 'en', appName: 'stub' }, CancellationError: class extends Error {},
    l10n: { t: (text) => text },
    commands: {
      registerCommand: (name, call) => { kept.commands.set(name, call); return new Disposable(() => kept.commands.delete(name)) },
      executeCommand: async (name, ...rest) => kept.commands.get(name)?.(...rest),
    },
    window: {
      activeTextEditor: undefined, visibleTextEditors: [], tabGroups: { all: [], onDidChangeTabs: on('tabs'), onDidChangeTabGroups: on('tabGroups') }, state: {},
      createOutputChannel: () => new Proxy({}, { get: (_, name) => (name === 'logLevel' ? 3 : name.startsWith?.('on') ? () => new Disposable() : (text) => name.startsWith?.('append') && kept.messages.push(text)) }),
      showErrorMessage: async (text) => { kept.messages.push(text) }, showInformationMessage: async (text) => { kept.messages.push(text) }, showWarningMessage: async (text) => { kept.messages.push(text) },
      showTextDocument: async (document) => ({ document }),
      createWebviewPanel: (type, title) => { const panel = { type, title, webview: { html: '' }, onDidDispose: () => {} }; kept.panels.push(panel); return panel },
    },
    workspace: {
      textDocuments: [], notebookDocuments: [], workspaceFolders: [{ uri: URI.file(folder), name: 'project', index: 0 }], isTrusted: true,
      getWorkspaceFolder: (uri) => (uri.fsPath.startsWith(folder) ? known.workspace.workspaceFolders[0] : undefined),
      getConfiguration: () => ({ get: (name, other) => (name === 'path' ? process.env.VESPER : other), has: () => false, inspect: () => undefined }),
      asRelativePath: (uri) => uri.fsPath.slice(folder.length + 1),
      findFiles: async () => kept.files, createFileSystemWatcher: () => ({ onDidCreate: on('created'), onDidChange: on('changed'), onDidDelete: on('deleted'), dispose() {} }),
      registerTextDocumentContentProvider: (scheme, provider) => { kept.content[scheme] = provider; return new Disposable() },
      openTextDocument: async (uri) => ({ uri, text: await kept.content[uri.scheme].provideTextDocumentContent(uri) }),
    },
    languages: {
      match: (selector, document) => (document.languageId === 'vesper' ? 10 : 0),
      createDiagnosticCollection: () => ({ set: (uri, all) => kept.diagnostics.set(uri.toString(), all), get: () => [], delete: (uri) => kept.diagnostics.delete(uri.toString()), has: () => false, clear() {}, forEach() {}, dispose() {} }),
    },
    debug: {
      registerDebugConfigurationProvider: (type, provider) => { kept.debug.provider = provider; return new Disposable() },
      registerDebugAdapterDescriptorFactory: (type, factory) => { kept.debug.factory = factory; return new Disposable() },
      startDebugging: async (_, configuration) => { kept.debug.started = configuration; return true },
    },
    tests: {
      createTestController: () => {
        const controller = {
          items: items(), profiles: [], createTestItem: item, dispose() {},
          createRunProfile: (label, kind, call) => controller.profiles.push({ label, kind, call }),
          createTestRun: () => { const results = controller.results = new Map(); const keep = (state) => (each, message) => results.set(each.label, { state, message }); return { started() {}, passed: keep('passed'), failed: keep('failed'), errored: keep('errored'), skipped: keep('skipped'), end() {} } },
        }
        kept.controllers.push(controller)
        return controller
      },
    },
  }
  // A member without a stand-in: events register listeners, providers are kept, enumerations and classes are empty.
  function complete(target, name) {
    return new Proxy(target, {
      get(object, member) {
        if (member in object || typeof member !== 'string') return object[member]
        if (/^on(Did|Will)/.test(member)) return (object[member] = on(member))
        if (/^register.*Provider$/.test(member)) return (object[member] = (...parts) => { kept.providers.push({ name: member, provider: parts.find((each) => typeof each === 'object' && Object.keys(each).some((key) => /^(provide|prepare)/.test(key))) }); return new Disposable() })
        if (name === '' && /^[A-Z]/.test(member)) return (object[member] = class { constructor(...parts) { this.parts = parts } })
        return name === '' ? (object[member] = complete({}, member)) : undefined
      },
    })
  }
  for (const part of ['commands', 'window', 'workspace', 'languages', 'debug', 'tests']) known[part] = complete(known[part], part)
  return { vscode: complete(known, ''), kept, emitters }
}

module.exports = { createStub }
