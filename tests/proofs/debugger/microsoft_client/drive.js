// Drives `vesper debug --port` with Microsoft's test client, and says how long each movement took.
//
//     node drive.js PORT PAYMENT DRAWN
//
// PAYMENT and DRAWN are paths of nodes. One session for each, one after the other, on a port of its own: the ports stand
// in PORT as `first,second`. Ends with an error where the adapter does something else than is written here; the last
// line of the output is JSON.

const assert = require("node:assert/strict");
const { DebugClient } = require("@vscode/debugadapter-testsupport");

const [ports, payment, drawn] = process.argv.slice(2);
const [first, second] = ports.split(",").map(Number);
const PYTHON = 1;
const DIRECT = 2;
// Milliseconds until an event that does not come is one that is missing.
const PATIENCE = 60_000;
const took = {};
let checks = 0;

function same(found, wanted, what) {
  assert.deepEqual(found, wanted, what);
  checks += 1;
}

/** A movement, from the request to the `stopped` that it ends with. */
async function move(client, command, thread = PYTHON) {
  const begun = performance.now();
  const [stopped] = await Promise.all([
    client.waitForEvent("stopped", PATIENCE),
    client[`${command}Request`]({ threadId: thread }),
  ]);
  (took[command] ??= []).push(performance.now() - begun);
  return stopped.body;
}

async function frame(client, thread = PYTHON) {
  return (await client.stackTraceRequest({ threadId: thread })).body.stackFrames[0];
}

async function scope(client, name, thread = PYTHON) {
  const { scopes } = (await client.scopesRequest({ frameId: (await frame(client, thread)).id })).body;
  return scopes.find((each) => each.name === name);
}

async function variables(client, name, thread = PYTHON) {
  const found = await scope(client, name, thread);
  if (found === undefined) return {};
  const listed = await client.variablesRequest({ variablesReference: found.variablesReference });
  return Object.fromEntries(listed.body.variables.map((each) => [each.name, each.value]));
}

async function connected(port) {
  const client = new DebugClient("", "", "vesper");
  client.defaultTimeout = PATIENCE;
  await client.start(port);
  return client;
}

/** Launch, breakpoints on lines with and without a condition, every movement, both threads, a changed variable. */
async function payments() {
  const client = await connected(first);
  const offered = (await client.initializeRequest()).body;
  for (const each of ["supportsStepBack", "supportsSetVariable", "supportsConditionalBreakpoints", "supportsFunctionBreakpoints"]) {
    same(offered[each], true, each);
  }
  const initialized = client.waitForEvent("initialized", PATIENCE);
  await client.launchRequest({ node: payment });
  await initialized;
  const lines = [{ line: 86 }, { line: 110, condition: "amount > 1000" }];
  const { breakpoints } = (await client.setBreakpointsRequest({ source: { path: payment }, breakpoints: lines })).body;
  same(breakpoints.map((each) => each.verified), [true, true]);
  await client.setExceptionBreakpointsRequest({ filters: ["contract_violation", "divergence"] });
  const [entry] = await Promise.all([client.waitForEvent("stopped", PATIENCE), client.configurationDoneRequest()]);
  same(entry.body.reason, "entry");
  same((await client.threadsRequest()).body.threads.map((each) => each.name), ["python", "direct"]);

  const located = client.assertStoppedLocation("breakpoint", { path: payment, line: 85 });
  await move(client, "continue");
  await located;
  checks += 1;
  for (const thread of [PYTHON, DIRECT]) {
    same((await frame(client, thread)).line, 85);
    same((await variables(client, "Inputs", thread)).amount, "99.99");
    same((await variables(client, "Steps", thread)).begin, '"pending"');
    same((await variables(client, "About to call", thread)).request, "stripe POST /v1/charges");
  }
  same(await variables(client, "differs"), {});

  same((await move(client, "stepBack")).reason, "step");
  same((await frame(client)).name, "payment_handler_v1: begin (line 75)");
  same((await frame(client, DIRECT)).name, "payment_handler_v1: begin (line 75)");
  await move(client, "next", DIRECT);
  await move(client, "stepIn");
  same((await frame(client)).name, "payment_handler_v1: record (line 110)", "its condition does not hold");
  await move(client, "stepOut");
  await move(client, "stepBack");
  await move(client, "reverseContinue");
  same((await frame(client)).line, 85);
  const doubled = await client.evaluateRequest({ expression: "amount * 2", frameId: (await frame(client, DIRECT)).id });
  same(doubled.body.result, "199.98");

  const { variablesReference } = await scope(client, "Inputs");
  const again = client.waitForEvent("stopped", PATIENCE);
  await client.setVariableRequest({ variablesReference, name: "amount", value: "12.50" });
  await again;
  same((await frame(client)).line, 85, "it came to the same place again");
  same((await variables(client, "About to call", DIRECT))["body.amount"], "1250");

  // To the end by steps, and back to the first step: the same places in the other order.
  const forth = [(await frame(client)).name];
  while (!("amount_charged" in (await variables(client, "Gives", DIRECT)))) {
    await move(client, "next");
    forth.push((await frame(client)).name);
  }
  same((await variables(client, "Gives", DIRECT)).amount_charged, "12.50");
  const back = [(await frame(client)).name];
  while (back.length < forth.length) {
    await move(client, "stepBack");
    back.push((await frame(client)).name);
  }
  same(back.reverse(), forth);

  // Without breakpoints it stops once more, at what it gives, and is over then.
  await client.setBreakpointsRequest({ source: { path: payment }, breakpoints: [] });
  await move(client, "continue");
  same((await variables(client, "Gives")).amount_charged, "12.50");
  await Promise.all([client.waitForEvent("terminated", PATIENCE), client.continueRequest({ threadId: PYTHON })]);
  await client.disconnectRequest();
}

/** Breakpoints on functions, on effects and on exceptions. */
async function exceptions() {
  const client = await connected(second);
  await client.initializeRequest();
  const initialized = client.waitForEvent("initialized", PATIENCE);
  await client.launchRequest({ node: drawn, inputs: { amount: 600.25 }, stopOnEntry: false });
  await initialized;
  const named = [{ name: "call_stripe_api" }, { name: "effect:http", condition: "amount > 'x'" }, { name: "step:call_strip_api" }];
  const answered = (await client.setFunctionBreakpointsRequest({ breakpoints: named })).body.breakpoints;
  same(answered.map((each) => each.verified), [true, false, false]);
  assert.match(answered[1].message, /\^/);
  assert.match(answered[2].message, /did you mean/);
  await client.setExceptionBreakpointsRequest({ filters: ["contract_violation"] });
  const [stopped] = await Promise.all([client.waitForEvent("stopped", PATIENCE), client.configurationDoneRequest()]);
  same(stopped.body.reason, "breakpoint");
  same((await move(client, "continue")).reason, "exception");
  same((await client.exceptionInfoRequest({ threadId: PYTHON })).body.exceptionId, "contract_violation");
  same((await variables(client, "Contract", DIRECT))["postcondition 1"], "✗ left >= 0  (left: -100.25)");
  await assert.rejects(client.evaluateRequest({ expression: "amont", frameId: (await frame(client)).id }));
  await assert.rejects(client.stackTraceRequest({ threadId: 9 }));
  checks += 2;
  await client.disconnectRequest();
}

payments()
  .then(exceptions)
  .then(
    () => console.log(JSON.stringify({ checks, took })),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
