// The debug adapter: `vesper debug --dap`, on both engines at once.
'use strict'
const vscode = require('vscode')
const { folderOf, vesperPath, workingFolder } = require('./vesper')

/** @param {vscode.ExtensionContext} context */
function registerDebugger(context) {
  context.subscriptions.push(
    vscode.debug.registerDebugConfigurationProvider('vesper', { resolveDebugConfiguration }),
    vscode.debug.registerDebugAdapterDescriptorFactory('vesper', {
      createDebugAdapterDescriptor(session) {
        const folder = session.workspaceFolder ?? folderOf(undefined)
        const cwd = session.configuration.cwd ?? workingFolder(folder)
        return new vscode.DebugAdapterExecutable(vesperPath(folder), ['debug', '--dap'], cwd ? { cwd } : undefined)
      },
    }),
    vscode.commands.registerCommand('vesper.debug', debugNode),
  )
}

/**
 * Complete a configuration: F5 without a launch.json debugs the node of the editor.
 * @param {vscode.WorkspaceFolder | undefined} _folder
 * @param {vscode.DebugConfiguration} configuration
 */
function resolveDebugConfiguration(_folder, configuration) {
  if (configuration.type) return configuration
  const document = vscode.window.activeTextEditor?.document
  return document?.languageId === 'vesper' ? launch(document.uri.fsPath) : undefined
}

/** @param {string} node @param {string} [name] @returns {vscode.DebugConfiguration} */
function launch(node, name) {
  const given = { type: 'vesper', request: 'launch', name: `Vesper: ${name ?? 'debug'}`, node, stopOnEntry: true }
  return name ? { ...given, case: name } : given
}

/**
 * Debug a node: that of the editor, or the one of a code lens with its case.
 * @param {string | vscode.Uri} [uri]
 * @param {string | null} [name]
 */
async function debugNode(uri, name) {
  const target = typeof uri === 'string' ? vscode.Uri.parse(uri) : uri ?? vscode.window.activeTextEditor?.document.uri
  if (!target) return false
  // The adapter reads the file.
  await vscode.workspace.textDocuments.find((each) => each.uri.toString() === target.toString())?.save()
  return vscode.debug.startDebugging(folderOf(target), launch(target.fsPath, name ?? undefined))
}

module.exports = { launch, registerDebugger }
