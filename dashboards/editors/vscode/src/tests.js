// The test explorer: cases, claims and contracts of every node, run by `vesper test`.
'use strict'
const vscode = require('vscode')
const { launch } = require('./debugger')
const { folderOf, runVesper } = require('./vesper')

const CASE = 'case'
const CONTRACTS = 'contracts on generated inputs'

/** @param {vscode.ExtensionContext} context */
function registerTests(context) {
  const controller = vscode.tests.createTestController('vesper', 'Vesper')
  const watcher = vscode.workspace.createFileSystemWatcher('**/*.vsp')
  const add = (/** @type {vscode.Uri} */ uri) => addFile(controller, uri)
  controller.resolveHandler = async (item) => {
    if (item) await listTests(controller, item)
    else for (const uri of await vscode.workspace.findFiles('**/*.vsp', '**/{node_modules,.venv}/**')) add(uri)
  }
  controller.createRunProfile('Run', vscode.TestRunProfileKind.Run, (request, token) => runTests(controller, request, token), true)
  controller.createRunProfile('Debug', vscode.TestRunProfileKind.Debug, debugTests)
  watcher.onDidCreate(add)
  watcher.onDidChange(async (uri) => {
    const item = controller.items.get(uri.toString())
    if (item?.children.size) await listTests(controller, item)
  })
  watcher.onDidDelete((uri) => controller.items.delete(uri.toString()))
  context.subscriptions.push(controller, watcher)
  return controller
}

/** @param {vscode.TestController} controller @param {vscode.Uri} uri */
function addFile(controller, uri) {
  const item = controller.createTestItem(uri.toString(), vscode.workspace.asRelativePath(uri), uri)
  item.canResolveChildren = true
  controller.items.add(item)
}

/** @param {vscode.TestController} controller @param {vscode.TestItem} file */
async function listTests(controller, file) {
  try {
    const node = await testNode(file.uri, ['--max-examples', '1'])
    file.error = undefined
    file.children.replace(testsOf(node).map(({ kind, name, line }) => {
      const item = controller.createTestItem(`${file.id}::${kind}::${name}`, name, file.uri)
      if (line) item.range = new vscode.Range(line - 1, 0, line - 1, 0)
      return item
    }))
  } catch (error) {
    file.error = error.message
  }
}

/**
 * Return the results of one node.
 * @param {vscode.Uri} uri
 * @param {string[]} options
 * @param {vscode.CancellationToken} [token]
 */
async function testNode(uri, options, token) {
  const report = JSON.parse(await runVesper(uri, ['test', uri.fsPath, '--format', 'json', ...options], token))
  if (!report.nodes.length) throw new Error('the node has errors, or is a library')
  return report.nodes[0]
}

/** Return every test of a node with its verdict and message. */
function testsOf(node) {
  const { properties } = node
  const cases = node.cases.map((each) => ({
    ...each,
    kind: CASE,
    message: each.passed ? '' : `expected: ${each.expected}\nactual: ${JSON.stringify(each.actual, null, 2)}`,
  }))
  const claims = node.claims.map((each) => ({ ...each, kind: 'claim', message: each.passed ? '' : JSON.stringify(each, null, 2) }))
  const failures = properties?.failures ?? []
  const message = failures.map((each) => `${each.kind} ${each.clause}\n${each.case}`).join('\n')
  const contracts = { kind: 'contracts', name: CONTRACTS, line: failures[0]?.line, passed: properties?.passed ?? true, message }
  return [...cases, ...claims, contracts]
}

/**
 * @param {vscode.TestController} controller
 * @param {vscode.TestRunRequest} request
 * @param {vscode.CancellationToken} token
 */
async function runTests(controller, request, token) {
  const run = controller.createTestRun(request)
  const chosen = request.include ?? [...controller.items].map(([, item]) => item)
  const excluded = new Set(request.exclude ?? [])
  /** @type {Map<vscode.TestItem, Set<vscode.TestItem>>} */
  const byFile = new Map()
  for (const item of chosen) {
    const file = item.parent ?? item
    if (!file.children.size) await listTests(controller, file)
    const wanted = byFile.get(file) ?? new Set()
    for (const each of item.parent ? [item] : [...file.children].map(([, child]) => child)) if (!excluded.has(each)) wanted.add(each)
    byFile.set(file, wanted)
  }
  for (const [file, wanted] of byFile) {
    if (token.isCancellationRequested) break
    await runFile(run, file, wanted, token)
  }
  run.end()
}

/**
 * @param {vscode.TestRun} run
 * @param {vscode.TestItem} file
 * @param {Set<vscode.TestItem>} wanted
 * @param {vscode.CancellationToken} token
 */
async function runFile(run, file, wanted, token) {
  const settings = vscode.workspace.getConfiguration('vesper.test', file.uri)
  const needsInputs = [...wanted].some((item) => !isCase(item))
  const examples = needsInputs ? String(settings.get('maxExamples', 100)) : '0'
  for (const item of wanted) run.started(item)
  if (file.error && !wanted.size) run.errored(file, new vscode.TestMessage(String(file.error)))
  try {
    const node = await testNode(file.uri, ['--engine', settings.get('engine', 'both'), '--max-examples', examples], token)
    const results = new Map(testsOf(node).map((each) => [each.name, each]))
    for (const item of wanted) {
      const result = results.get(item.label)
      if (!result) run.skipped(item)
      else if (result.passed) run.passed(item)
      else run.failed(item, located(item, result))
    }
  } catch (error) {
    for (const item of wanted) run.errored(item, new vscode.TestMessage(error.message))
  }
}

/** @param {vscode.TestItem} item */
function isCase(item) {
  return item.parent !== undefined && item.id.startsWith(`${item.parent.id}::${CASE}::`)
}

/** @param {vscode.TestItem} item @param {{message: string, line?: number}} result */
function located(item, result) {
  const message = new vscode.TestMessage(result.message)
  if (result.line) message.location = new vscode.Location(item.uri, new vscode.Position(result.line - 1, 0))
  return message
}

/** @param {vscode.TestRunRequest} request */
async function debugTests(request) {
  const item = request.include?.[0]
  if (!item) return
  const name = isCase(item) ? item.label : undefined
  await vscode.debug.startDebugging(folderOf(item.uri), launch(item.uri.fsPath, name))
}

module.exports = { registerTests }
