// Views of a node beside its text: the generated Python, and a picture of the flow. Both follow saves.
'use strict'
const vscode = require('vscode')
const { runVesper } = require('./vesper')

const SCHEME = 'vesper-python'

/** @param {vscode.ExtensionContext} context */
function registerPreviews(context) {
  const changed = new vscode.EventEmitter()
  /** @type {Map<string, vscode.WebviewPanel>} */
  const panels = new Map()
  context.subscriptions.push(
    changed,
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      onDidChange: changed.event,
      provideTextDocumentContent: (shown) => pythonOf(nodeOf(shown)),
    }),
    vscode.commands.registerCommand('vesper.showPython', async (uri) => {
      const node = uri ?? vscode.window.activeTextEditor?.document.uri
      if (!node) return
      const document = await vscode.workspace.openTextDocument(shownAs(node))
      await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true })
    }),
    vscode.commands.registerCommand('vesper.showFlow', (uri) => showFlow(panels, uri ?? vscode.window.activeTextEditor?.document.uri)),
    vscode.workspace.onDidSaveTextDocument(async ({ uri, languageId }) => {
      if (languageId !== 'vesper') return
      changed.fire(shownAs(uri))
      const panel = panels.get(uri.toString())
      if (panel) panel.webview.html = await flowPage(uri)
    }),
  )
}

/** @param {vscode.Uri} node */
function shownAs(node) {
  return vscode.Uri.from({ scheme: SCHEME, path: `${node.path}.py`, query: node.toString() })
}

/** @param {vscode.Uri} shown */
function nodeOf(shown) {
  return vscode.Uri.parse(shown.query)
}

/** @param {vscode.Uri} node */
async function pythonOf(node) {
  try {
    return await runVesper(node, ['compile', node.fsPath])
  } catch (error) {
    return error.message.replace(/^/gm, '# ')
  }
}

/** @param {Map<string, vscode.WebviewPanel>} panels @param {vscode.Uri | undefined} node */
async function showFlow(panels, node) {
  if (!node) return
  const key = node.toString()
  let panel = panels.get(key)
  if (!panel) {
    const title = `Flow of ${node.path.split('/').pop()}`
    panel = vscode.window.createWebviewPanel('vesper.flow', title, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true })
    panels.set(key, panel)
    panel.onDidDispose(() => panels.delete(key))
  }
  panel.webview.html = await flowPage(node)
}

/** @param {vscode.Uri} node */
async function flowPage(node) {
  let body
  try {
    body = await runVesper(node, ['nodes', 'flow', node.fsPath])
  } catch (error) {
    body = `<pre>${escapeHtml(error.message)}</pre>`
  }
  const policy = "default-src 'none'; style-src 'unsafe-inline'"
  return `<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}"><body>${body}</body>`
}

/** @param {string} text */
function escapeHtml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

module.exports = { registerPreviews }
