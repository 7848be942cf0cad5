// Acts as VS Code: activates the bundled extension and uses every part of it. Arguments: the unpacked extension, a project.
'use strict'
const assert = require('node:assert/strict')
const { spawn } = require('node:child_process')
const fs = require('node:fs')
const Module = require('node:module')
const path = require('node:path')
const { createStub } = require('./stub')

const [modules, extension, project] = process.argv.slice(2)
const { URI } = require(require.resolve('vscode-uri', { paths: [modules] }))
const { vscode, kept, emitters } = createStub(URI, project)
const load = Module._load
Module._load = (name, ...rest) => (name === 'vscode' ? vscode : load(name, ...rest))
const done = []

async function until(what, look) {
  for (let waited = 0; waited < 30_000; waited += 50) {
    const found = await look()
    if (found) return found
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${what} did not come within 30 s; messages: ${kept.messages.join('\n')}`)
}

function opened(name) {
  const uri = URI.file(path.join(project, 'nodes', name))
  const text = fs.readFileSync(uri.fsPath, 'utf8')
  const document = { uri, languageId: 'vesper', version: 1, fileName: uri.fsPath, isClosed: false, isUntitled: false, isDirty: false, eol: 1, lineCount: text.split('\n').length, getText: () => text, save: async () => true }
  vscode.workspace.textDocuments.push(document)
  return document
}

const provider = (name) => kept.providers.filter((each) => each.name === name).at(-1)?.provider
const token = new vscode.CancellationTokenSource().token

async function languageServer() {
  const document = opened('broken_v1.vsp')
  await emitters.onDidOpenTextDocument.fire(document)
  const found = await until('the diagnostic', () => kept.diagnostics.get(document.uri.toString())?.find((each) => /ammount/.test(each.message ?? each.parts?.[1])))
  done.push('diagnostic')
  const fine = opened('fee_v1.vsp')
  await emitters.onDidOpenTextDocument.fire(fine)
  const lenses = await until('lenses', async () => { const all = await provider('registerCodeLensProvider')?.provideCodeLenses(fine, token); return all?.length && all })
  const commands = lenses.map((each) => (each.command ?? each.parts[1]).command)
  assert.ok(commands.includes('vesper.debug') && commands.includes('vesper.runCases'), commands.join())
  done.push('code lenses')
  assert.deepEqual(await vscode.commands.executeCommand('vesper.runCases', fine.uri.toString(), null), { 'a tenth, if nothing else is said': true, 'nothing is worth zero': true, 'wrong on purpose': false })
  done.push('run cases by a lens')
  const edits = await provider('registerDocumentFormattingEditProvider').provideDocumentFormattingEdits(document, { tabSize: 2, insertSpaces: true }, token)
  assert.ok(Array.isArray(edits))
  done.push('formatting')
  return found
}

async function testExplorer() {
  kept.files = fs.readdirSync(path.join(project, 'nodes')).map((name) => URI.file(path.join(project, 'nodes', name)))
  const [controller] = kept.controllers
  await controller.resolveHandler()
  assert.equal(controller.items.size, kept.files.length)
  const [run, debug] = controller.profiles
  await run.call({}, token)
  const states = Object.fromEntries([...controller.results].map(([name, { state }]) => [name, state]))
  assert.equal(states['a tenth, if nothing else is said'], 'passed')
  assert.equal(states['wrong on purpose'], 'failed')
  assert.equal(states['contracts on generated inputs'], 'passed')
  assert.equal(states['a higher rate never lowers the fee'], 'passed')
  const failed = controller.results.get('wrong on purpose').message
  assert.match(failed.parts[0], /expected: returned fee=6/)
  assert.ok([...controller.items].some(([id, item]) => /broken/.test(id) && item.error))
  done.push('test explorer')
  const file = [...controller.items].find(([id]) => /fee_v1/.test(id))[1]
  const [, one] = [...file.children].find(([id]) => /a tenth/.test(id))
  await run.call({ include: [one] }, token)
  assert.deepEqual([...controller.results.keys()], ['a tenth, if nothing else is said'])
  await debug.call({ include: [one] }, token)
  assert.equal(kept.debug.started.case, 'a tenth, if nothing else is said')
  done.push('one test, run and debugged')
}

async function debugAdapter() {
  const uri = URI.file(path.join(project, 'nodes', 'fee_v1.vsp'))
  await vscode.commands.executeCommand('vesper.debug', uri.toString(), null)
  const configuration = kept.debug.provider.resolveDebugConfiguration(undefined, kept.debug.started)
  const { parts: [command, words, options] } = kept.debug.factory.createDebugAdapterDescriptor({ configuration })
  const adapter = spawn(command, words, options)
  let output = ''
  adapter.stdout.on('data', (data) => { output += data })
  let sequence = 0
  const send = (name, given) => { const body = JSON.stringify({ seq: ++sequence, type: 'request', command: name, arguments: given }); adapter.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`) }
  send('initialize', { adapterID: 'vesper', linesStartAt1: true, columnsStartAt1: true })
  await until('initialized', () => output.includes('"supportsStepBack"'))
  send('launch', configuration)
  send('configurationDone', {})
  await until('the stop at entry', () => output.includes('"stopped"') || (/"success": ?false/.test(output) && Promise.reject(new Error(output))))
  send('disconnect', {})
  adapter.stdin.end()
  assert.equal(await new Promise((resolve) => adapter.on('exit', resolve)), 0)
  done.push('debug adapter')
}

async function previews() {
  const uri = URI.file(path.join(project, 'nodes', 'fee_v1.vsp'))
  let shown
  vscode.window.showTextDocument = async (document) => { shown = document }
  await vscode.commands.executeCommand('vesper.showPython', uri)
  assert.match(shown.text, /fee = .*amount \* rate/)
  await vscode.commands.executeCommand('vesper.showPython', URI.file(path.join(project, 'nodes', 'broken_v1.vsp')))
  assert.match(shown.text, /^# error\[VSP1102\]/)
  await vscode.commands.executeCommand('vesper.showFlow', uri)
  const [panel] = kept.panels
  assert.match(panel.webview.html, /<svg .*<title>Flow of fee_v1<\/title>/)
  await emitters.onDidSaveTextDocument.fire({ uri, languageId: 'vesper' })
  assert.equal(kept.panels.length, 1)
  done.push('generated Python', 'flow picture')
}

async function main() {
  const { activate, deactivate } = require(path.join(extension, 'dist', 'extension.js'))
  const context = { subscriptions: [], extensionPath: extension, asAbsolutePath: (name) => path.join(extension, name) }
  await activate(context)
  const contributed = JSON.parse(fs.readFileSync(path.join(extension, 'package.json'), 'utf8')).contributes.commands
  for (const { command } of contributed) assert.ok(kept.commands.has(command), command)
  done.push('activation')
  await languageServer()
  await testExplorer()
  await debugAdapter()
  await previews()
  await vscode.commands.executeCommand('vesper.restart')
  await until('the restarted server', () => kept.commands.has('vesper.runCases'))
  done.push('restart')
  await deactivate()
  console.log(JSON.stringify(done))
}

main().then(() => process.exit(0), (error) => { console.error(error, kept.messages.slice(-5)); process.exit(1) })
