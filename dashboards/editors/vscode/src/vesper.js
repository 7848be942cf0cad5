// Starts the `vesper` command.
'use strict'
const { execFile } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const vscode = require('vscode')

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/**
 * Return the command of a folder: the setting, else the one of its virtual environment, else the one on the PATH.
 * @param {vscode.WorkspaceFolder | undefined} folder
 */
function vesperPath(folder) {
  const root = folder?.uri.fsPath ?? ''
  const setting = vscode.workspace.getConfiguration('vesper', folder?.uri).get('path', '')
  if (setting) return setting.replaceAll('${workspaceFolder}', root)
  const name = process.platform === 'win32' ? path.join('Scripts', 'vesper.exe') : path.join('bin', 'vesper')
  const local = path.join(root, '.venv', name)
  return root && fs.existsSync(local) ? local : 'vesper'
}

/** @param {vscode.Uri | undefined} uri */
function folderOf(uri) {
  return (uri && vscode.workspace.getWorkspaceFolder(uri)) ?? vscode.workspace.workspaceFolders?.[0]
}

/** @param {vscode.WorkspaceFolder | undefined} folder @param {vscode.Uri} [uri] */
function workingFolder(folder, uri) {
  return folder?.uri.fsPath ?? (uri && path.dirname(uri.fsPath))
}

/**
 * Run a command about a file and return its output. A failed command without output rejects with its messages.
 * @param {vscode.Uri} uri
 * @param {string[]} words
 * @param {vscode.CancellationToken} [token]
 * @returns {Promise<string>}
 */
function runVesper(uri, words, token) {
  const folder = folderOf(uri)
  const command = vesperPath(folder)
  return new Promise((resolve, reject) => {
    const options = { cwd: workingFolder(folder, uri), maxBuffer: MAX_OUTPUT_BYTES, env: { ...process.env, NO_COLOR: '1' } }
    const child = execFile(command, words, options, (error, output, messages) => {
      if (error && !output.trim()) reject(new Error(error.code === 'ENOENT' ? missing(command) : messages.trim() || error.message))
      else resolve(output)
    })
    token?.onCancellationRequested(() => child.kill())
  })
}

/** @param {string} command */
function missing(command) {
  return `cannot start \`${command}\`: install Vesper (pip install 'vesper[lsp]') or set "vesper.path"`
}

module.exports = { folderOf, missing, runVesper, vesperPath, workingFolder }
