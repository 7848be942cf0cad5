// Entry point: the language client, and the registration of everything else.
'use strict'
const vscode = require('vscode')
const { LanguageClient } = require('vscode-languageclient/node')
const { registerDebugger } = require('./debugger')
const { registerPreviews } = require('./previews')
const { registerTests } = require('./tests')
const { folderOf, missing, vesperPath, workingFolder } = require('./vesper')

/** @type {LanguageClient | undefined} */
let client

/** @param {vscode.ExtensionContext} context */
async function activate(context) {
  registerDebugger(context)
  registerPreviews(context)
  registerTests(context)
  context.subscriptions.push(
    vscode.commands.registerCommand('vesper.restart', restart),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration('vesper.path') && restart()),
  )
  await start()
}

async function start() {
  const folder = folderOf(undefined)
  const command = vesperPath(folder)
  const server = { command, args: ['lsp'], options: { cwd: workingFolder(folder) } }
  client = new LanguageClient('vesper', 'Vesper', server, {
    documentSelector: [{ scheme: 'file', language: 'vesper' }],
    // The server offers lenses only for commands that this client has.
    initializationOptions: { commands: ['vesper.debug'] },
  })
  try {
    await client.start()
  } catch (error) {
    const reason = error?.code === 'ENOENT' ? missing(command) : `the language server did not start: ${error?.message ?? error}`
    const choice = await vscode.window.showErrorMessage(`Vesper: ${reason}`, 'Open Settings')
    if (choice) await vscode.commands.executeCommand('workbench.action.openSettings', 'vesper.path')
  }
}

async function deactivate() {
  const running = client
  client = undefined
  if (running?.isRunning()) await running.stop()
}

async function restart() {
  await deactivate()
  await start()
}

module.exports = { activate, deactivate }
