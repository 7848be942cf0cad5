// Tokenizes lines and whole nodes by the engine of VS Code. Arguments: the extension's folder, and files.
'use strict'
const fs = require('node:fs')
const path = require('node:path')

const [folder, ...files] = process.argv.slice(2)
const load = (name) => require(require.resolve(name, { paths: [folder] }))
const { INITIAL, Registry, parseRawGrammar } = load('vscode-textmate')
const oniguruma = load('vscode-oniguruma')
const SQL = { scopeName: 'source.sql', patterns: [{ match: '\\b(SELECT|FROM|WHERE|UPDATE|SET|AND|JOIN|ON)\\b', name: 'keyword.sql' }] }

// Each entry: a text, a word in it, and the end of a scope that the word has.
const EXPECTED = [
  ['node_id: fee_v1', 'fee_v1', 'entity.name.namespace.vsp'],
  ['type: http_handler', 'http_handler', 'storage.type.vsp'],
  ['intent: Decide, once AND for all # note', 'AND', 'string.unquoted.text.vsp'],
  ['intent: Decide # note', 'note', 'comment.line.number-sign.vsp'],
  ['inputs:', 'inputs', 'entity.name.tag.vsp'],
  ['  amount: decimal', 'decimal', 'support.type.primitive.vsp'],
  ['  lines: array<OrderLine>', 'OrderLine', 'entity.name.type.vsp'],
  ['  lines: array<OrderLine>', 'array', 'storage.type.generic.vsp'],
  ['  sku: {type: string, constraints: [non_empty, {max_length: 40}]}', 'string', 'support.type.primitive.vsp'],
  ['  sku: {type: string, constraints: [non_empty, {max_length: 40}]}', '40', 'constant.numeric.vsp'],
  ['    error_code: enum[unknown_article, busy]', 'busy', 'variable.other.enummember.vsp'],
  ['    - reserved > 0 AND reserved <= pieces', 'AND', 'keyword.operator.word.vsp'],
  ['    - reserved > 0 AND reserved <= pieces', '<=', 'keyword.operator.vsp'],
  ['    - reserved > 0 AND reserved <= pieces', 'pieces', 'variable.other.vsp'],
  ['  - step: wanted', 'wanted', 'entity.name.function.step.vsp'],
  ['    operation: database_query', 'database_query', 'keyword.control.operation.vsp'],
  ['    query: SELECT available FROM stock WHERE sku = :sku', 'SELECT', 'keyword.sql'],
  ['    query: SELECT available FROM stock WHERE sku = :sku', ':sku', 'variable.parameter.sql.vsp'],
  ['    query: >\n      SELECT a\n      FROM b WHERE c = :d\n    bind: [d]', 'WHERE', 'keyword.sql'],
  ['    query: >\n      SELECT a\n      FROM b WHERE c = :d\n    bind: [d]', 'bind', 'entity.name.tag.vsp'],
  ['  - query: >\n      SELECT a\n    bind: [d]', 'bind', 'entity.name.tag.vsp'],
  ['    value: IF a IS NULL THEN round(b, 2) ELSE c.d', 'IF', 'keyword.control.vsp'],
  ['    value: IF a IS NULL THEN round(b, 2) ELSE c.d', 'NULL', 'constant.language.vsp'],
  ['    value: IF a IS NULL THEN round(b, 2) ELSE c.d', 'round', 'support.function.vsp'],
  ['    value: IF a IS NULL THEN round(b, 2) ELSE c.d', 'd', 'variable.other.property.vsp'],
  ["    condition: \"currency IN ['EUR', 'USD']\"", 'IN', 'keyword.operator.word.vsp'],
  ["    condition: \"currency IN ['EUR', 'USD']\"", 'EUR', 'string.quoted.single.expression.vsp'],
  ['    error: {error_code: busy, message: "no {sku} at {text(place)}"}', 'text', 'support.function.vsp'],
  ['    error: {error_code: busy, message: "no {sku} at {text(place)}"}', 'at', 'string.quoted.double.vsp'],
  ['    error: {error_code: busy, message: "no {{sku}}"}', '{{', 'constant.character.escape.vsp'],
  ['    template: |\n      Order {order_id} left\n      us.\n  - step: mail', 'order_id', 'variable.other.vsp'],
  ['    template: |\n      Order {order_id} left\n      us.\n  - step: mail', 'left', 'string.unquoted.block.vsp'],
  ['    template: |\n      Order {order_id} left\n      us.\n  - step: mail', 'mail', 'entity.name.function.step.vsp'],
  ['    value: >\n      a +\n      SUM(x.y FOR x IN xs)\n    type: decimal', 'SUM', 'support.function.aggregate.vsp'],
  ['    endpoint: /v2/orders/{order_id}', 'order_id', 'variable.other.vsp'],
  ["    data: {state: \"'open'\", made_at: now()}", 'open', 'string.quoted.single.expression.vsp'],
  ["    data: {state: \"'open'\", made_at: now()}", 'now', 'support.function.vsp'],
  ['    guards: [earlier.amount > 0, open >= 0]', '>=', 'keyword.operator.vsp'],
  ['      not_found, too_many_rows:', 'too_many_rows', 'entity.name.tag.vsp'],
  ['      now: 2026-11-15T12:00:00Z', '2026-11-15T12:00:00Z', 'constant.other.date.vsp'],
  ['      2027-01-01: 0.20', '2027-01-01', 'entity.name.tag.vsp'],
  ['    - name: a part, if AND only', 'AND', 'string.unquoted.text.vsp'],
  ['    returns: optional<integer>   # one column', 'integer', 'support.type.primitive.vsp'],
  ['    over: k, v IN prices WHERE v > 1', 'WHERE', 'keyword.control.vsp'],
  ['  timeout: 5s', '5s', 'constant.numeric.vsp'],
]

function tokens(grammar, text) {
  let state = INITIAL
  return text.split('\n').map((line) => {
    const result = grammar.tokenizeLine(line, state)
    state = result.ruleStack
    return result.tokens.map((token) => ({ text: line.slice(token.startIndex, token.endIndex), scopes: token.scopes }))
  })
}

async function main() {
  const wasm = fs.readFileSync(path.join(path.dirname(require.resolve('vscode-oniguruma', { paths: [folder] })), 'onig.wasm'))
  await oniguruma.loadWASM(wasm)
  const file = path.join(folder, 'syntaxes', 'vsp.tmLanguage.json')
  const registry = new Registry({
    onigLib: Promise.resolve({ createOnigScanner: (all) => new oniguruma.OnigScanner(all), createOnigString: (text) => new oniguruma.OnigString(text) }),
    loadGrammar: async (scope) => (scope === 'source.sql' ? SQL : parseRawGrammar(fs.readFileSync(file, 'utf8'), file)),
  })
  const grammar = await registry.loadGrammar('source.vsp')
  const wrong = []
  for (const [text, word, scope] of EXPECTED) {
    const found = tokens(grammar, text).flat().find((token) => token.text.includes(word) && token.scopes.some((each) => each === scope))
    if (!found) wrong.push({ text, word, scope, tokens: tokens(grammar, text).flat().map((token) => `${token.text} ${token.scopes.slice(1).join(' ')}`) })
  }
  // In whole nodes every letter and digit has a scope of its own, and the state returns to the block at each top-level key.
  let count = 0
  for (const name of files) {
    const lines = fs.readFileSync(name, 'utf8').split('\n')
    tokens(grammar, lines.join('\n')).forEach((line, number) => {
      count += line.length
      const bare = line.find((token) => /\w/.test(token.text) && token.scopes.length === 1)
      const key = /^[a-z_]+:/.test(lines[number]) && line[0].scopes[1] !== 'entity.name.tag.vsp'
      if (bare || key) wrong.push({ file: name, line: number + 1, text: lines[number], scopes: (bare ?? line[0]).scopes })
    })
  }
  console.log(JSON.stringify({ expectations: EXPECTED.length, files: files.length, tokens: count, wrong }, null, 1))
  process.exit(wrong.length ? 1 : 0)
}

main()
