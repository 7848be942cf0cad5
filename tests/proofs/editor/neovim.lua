-- Edits nodes in Neovim and writes what `vesper lsp` answers as JSON. Arguments: the command, the project, the result.
local command, project, result = unpack(vim.v.argv, #vim.v.argv - 2)
local TIMEOUT = 60000
local found = { version = tostring(vim.version()) }

local function fail(message)
  vim.fn.writefile({ vim.json.encode({ failed = message, found = found }) }, result)
  vim.cmd('cquit 1')
end

local function check(holds, message)
  if not holds then fail(message) end
end

-- As docs/how-to/use-an-editor.md has it.
vim.filetype.add({ extension = { vsp = 'vesper' } })
vim.api.nvim_create_autocmd('FileType', {
  pattern = 'vesper',
  callback = function(opened)
    vim.bo[opened.buf].commentstring = '# %s'
    vim.lsp.start({ name = 'vesper', cmd = { command, 'lsp' }, root_dir = project })
  end,
})

local function open(name)
  vim.cmd.edit(project .. '/nodes/' .. name)
  local buffer = vim.api.nvim_get_current_buf()
  check(vim.wait(TIMEOUT, function() return #vim.lsp.get_clients({ bufnr = buffer }) == 1 end, 50), 'no client for ' .. name)
  local client = vim.lsp.get_clients({ bufnr = buffer })[1]
  check(vim.wait(TIMEOUT, function() return client.initialized and client.server_capabilities ~= nil end, 50), 'the server did not start')
  return buffer, client
end

local function ask(client, buffer, method, parameters)
  local answer, problem = client.request_sync(method, parameters, TIMEOUT, buffer)
  check(answer, method .. ': ' .. tostring(problem))
  check(not answer.err, method .. ': ' .. vim.inspect(answer.err))
  return answer.result
end

local function at(buffer, pattern, offset)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    local column = line:find(pattern)
    if column then
      vim.api.nvim_win_set_cursor(0, { number, column - 1 + (offset or 0) })
      return vim.lsp.util.make_position_params(0, 'utf-16')
    end
  end
  fail('no line with ' .. pattern)
end

local function diagnostics(buffer, holds)
  check(vim.wait(TIMEOUT, function() return holds(vim.diagnostic.get(buffer)) end, 20), 'diagnostics: ' .. vim.inspect(vim.diagnostic.get(buffer)))
  return vim.diagnostic.get(buffer)
end

local function steps()
  local buffer, client = open('broken_v1.vsp')
  local problem = diagnostics(buffer, function(all) return #all > 0 end)[1]
  found.diagnostic = { code = problem.code, line = problem.lnum + 1, column = problem.col + 1, message = vim.split(problem.message, '\n')[1] }

  local range = { start = { line = problem.lnum, character = problem.col }, ['end'] = { line = problem.end_lnum, character = problem.end_col } }
  local raw = problem.user_data.lsp
  local actions = ask(client, buffer, 'textDocument/codeAction', {
    textDocument = { uri = vim.uri_from_bufnr(buffer) }, range = range, context = { diagnostics = { raw } },
  })
  check(actions and #actions > 0, 'no quick fix')
  found.fix = actions[1].title
  local edit = actions[1].edit or ask(client, buffer, 'codeAction/resolve', actions[1]).edit
  vim.lsp.util.apply_workspace_edit(edit, client.offset_encoding)
  diagnostics(buffer, function(all) return #all == 0 end)
  found.fixed_line = vim.trim(vim.api.nvim_buf_get_lines(buffer, problem.lnum, problem.lnum + 1, false)[1])

  -- A key stroke later the error is back.
  vim.api.nvim_buf_set_text(buffer, problem.lnum, problem.col, problem.lnum, problem.col, { 'x' })
  diagnostics(buffer, function(all) return #all > 0 end)
  vim.api.nvim_buf_set_text(buffer, problem.lnum, problem.col, problem.lnum, problem.col + 1, { '' })
  diagnostics(buffer, function(all) return #all == 0 end)
  found.typing = true

  local hover = ask(client, buffer, 'textDocument/hover', at(buffer, 'value: amount', 8))
  found.hover = vim.split(hover.contents.value, '\n')[2]
  check((hover.contents.value or ''):find('decimal'), 'hover: ' .. vim.inspect(hover))

  local row = at(buffer, 'value: amount', 7).position.line
  local line = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1]
  vim.api.nvim_buf_set_lines(buffer, row, row + 1, false, { '    value: am' })
  local items = ask(client, buffer, 'textDocument/completion', { textDocument = { uri = vim.uri_from_bufnr(buffer) }, position = { line = row, character = 13 } })
  local labels = vim.tbl_map(function(each) return each.label end, items.items or items)
  check(vim.tbl_contains(labels, 'amount'), 'completion: ' .. vim.inspect(labels))
  found.completions = #labels
  vim.api.nvim_buf_set_lines(buffer, row, row + 1, false, { line })

  local definition = ask(client, buffer, 'textDocument/definition', at(buffer, 'value: amount', 8))
  definition = vim.islist(definition) and definition[1] or definition
  found.definition_line = (definition.range or definition.targetSelectionRange).start.line + 1

  local before = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
  vim.api.nvim_buf_set_lines(buffer, -1, -1, false, { 'metadata:   {author:   ann}' })
  vim.lsp.buf.format({ async = false, timeout_ms = TIMEOUT, bufnr = buffer })
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
  check(text:find('metadata: {author: ann}', 1, true) and text ~= before, 'formatted: ' .. text)
  found.formatted = true

  vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  local hints = ask(client, buffer, 'textDocument/inlayHint', { textDocument = { uri = vim.uri_from_bufnr(buffer) }, range = { start = { line = 0, character = 0 }, ['end'] = { line = vim.api.nvim_buf_line_count(buffer), character = 0 } } })
  found.inlay_hints = #hints
  local tokens = ask(client, buffer, 'textDocument/semanticTokens/full', { textDocument = { uri = vim.uri_from_bufnr(buffer) } })
  found.semantic_tokens = #tokens.data / 5
  found.symbols = #ask(client, buffer, 'textDocument/documentSymbol', { textDocument = { uri = vim.uri_from_bufnr(buffer) } })

  local parameters = at(buffer, 'rate:')
  parameters.newName = 'share'
  local renamed = ask(client, buffer, 'textDocument/rename', parameters)
  vim.lsp.util.apply_workspace_edit(renamed, client.offset_encoding)
  found.renamed_value = vim.trim(vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1])
end

local fine, problem = xpcall(steps, debug.traceback)
if not fine then fail(problem) end
vim.fn.writefile({ vim.json.encode(found) }, result)
vim.cmd('qall!')
