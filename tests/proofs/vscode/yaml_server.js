// Opens nodes in yaml-language-server with the JSON Schema by modeline. Arguments: the modules' folder, a project.
'use strict'
const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { pathToFileURL } = require('node:url')

const [folder, project] = process.argv.slice(2)
const load = (name) => require(require.resolve(name, { paths: [folder] }))
const rpc = load('vscode-jsonrpc/node')
const home = path.dirname(require.resolve('yaml-language-server/package.json', { paths: [folder] }))
const server = spawn(process.execPath, [path.join(home, 'bin', 'yaml-language-server'), '--stdio'])
const connection = rpc.createMessageConnection(new rpc.StreamMessageReader(server.stdout), new rpc.StreamMessageWriter(server.stdin))
const uriOf = (name) => pathToFileURL(path.join(project, name)).href

async function main() {
  const published = new Map()
  connection.onNotification('textDocument/publishDiagnostics', ({ uri, diagnostics }) => published.set(uri, diagnostics))
  connection.onRequest('workspace/configuration', ({ items }) => items.map(() => ({ validate: true, hover: true, completion: true })))
  connection.onRequest('client/registerCapability', () => null)
  connection.listen()
  await connection.sendRequest('initialize', { processId: process.pid, rootUri: pathToFileURL(project).href, capabilities: { textDocument: { publishDiagnostics: {} } } })
  await connection.sendNotification('initialized', {})
  const found = {}
  for (const name of fs.readdirSync(project).filter((each) => each.endsWith('.vsp'))) {
    const text = fs.readFileSync(path.join(project, name), 'utf8')
    await connection.sendNotification('textDocument/didOpen', { textDocument: { uri: uriOf(name), languageId: 'yaml', version: 1, text } })
    for (let waited = 0; !published.has(uriOf(name)) && waited < 60_000; waited += 20) await new Promise((resolve) => setTimeout(resolve, 20))
    found[name] = (published.get(uriOf(name)) ?? [{ message: 'no answer within 60 s', range: { start: { line: 0 } } }]).map((each) => `${each.range.start.line + 1}: ${each.message}`)
  }
  const at = (line, character) => ({ textDocument: { uri: uriOf('fee_v1.vsp') }, position: { line, character } })
  const hover = await connection.sendRequest('textDocument/hover', at(2, 3))
  const items = await connection.sendRequest('textDocument/completion', at(4, 0))
  console.log(JSON.stringify({ found, hover: JSON.stringify(hover), completion: (items?.items ?? items).map((each) => each.label) }))
}

main().then(() => { server.kill(); process.exit(0) }, (error) => { console.error(error); server.kill(); process.exit(1) })
