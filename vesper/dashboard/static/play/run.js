/** Runs on both engines: outcomes side by side, answers to requests, steps and contracts. */
import { make, make_problem, make_table } from "./parts.js";
import { post } from "./post.js";

const LABELS = { python: "Python", direct: "direct" };
const KINDS = {
  returned: ["returned", "good"], declared_error: ["declared error", "warn"], failed: ["failed", "bad"],
  contract_broken: ["contract broken", "bad"], limit_hit: ["limit hit", "warn"], denied: ["denied", "bad"],
  engine_fault: ["engine fault", "bad"],
};

const badge = (text, kind) => make("span", { class: `badge ${kind}` }, text);
const value_text = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));

/** Mount the results below `element`. Returns `run(case)`; `ran(result)` is called after each run. */
export function mount_run(element, node, form, ran) {
  const answers = {};
  form.answers = answers; // a case keeps them with the inputs
  let latest = 0;

  async function run(case_name = null) {
    const started = ++latest;
    element.setAttribute("aria-busy", "true");
    let parts;
    try {
      const inputs = form.inputs();
      const result = await post("/play/api/run", { path: node.path(), text: node.text(), inputs, answers, case: case_name });
      if (started !== latest) return null;
      parts = show(result);
      ran(result);
    } catch (error) {
      if (started !== latest) return null;
      parts = [make_problem(error)];
    }
    element.removeAttribute("aria-busy");
    element.replaceChildren(...parts);
    return element;
  }

  function show(result) {
    return [
      make("p", { class: "row verdict", role: "status" }, verdict(result)),
      result.waits ? answer_form(result.waits) : null,
      make("div", { class: "engines" }, result.engines.map((each) => engine_card(each, result))),
      result.requests.length ? requests_table(result.requests) : null,
      result.steps.length ? steps_table(result) : null,
      result.contracts.length ? contracts_table(result.contracts) : null,
      result.is_traced ? null : make("p", { class: "muted" }, "The run is too long to show values per step: only its outcome was compared."),
      result.omitted ? make("p", { class: "muted" }, `${result.omitted} more rows are not shown.`) : null,
    ].filter(Boolean);
  }

  function verdict(result) {
    if (result.waits) return [badge("waits for an answer", "warn"), `\`${result.waits.path}\` requests ${result.waits.effect}`];
    if (result.difference) return [badge("the engines diverge", "bad"), result.difference];
    if (!result.is_compared) return [badge("not compared", "warn"), "the time limit ended a run, which depends on the machine"];
    return [badge("the engines agree", "good"), result.has_effects ? "no effect was performed: the answers below were used" : ""];
  }

  function engine_card({ engine, outcome, median_us, calls }, result) {
    const [word, kind] = outcome ? KINDS[outcome.kind] : ["waits", "warn"];
    const heading = make("h3", {}, make("span", { class: `badge ${engine}` }, LABELS[engine]), " ", badge(word, kind));
    const values = outcome?.value ?? {};
    const facts = Object.entries(values).flatMap(([name, value]) => [
      make("dt", {}, name),
      make("dd", { class: "mono" }, value_text(value)),
    ]);
    const message = outcome?.message ? make("pre", { class: "message" }, outcome.message) : null;
    const unit = result.has_effects ? "not timed: it has effects" : "not timed";
    const time = median_us === null ? unit : `${median_us.toFixed(1)} µs a call (median of ${calls})`;
    return make("div", { class: "card" }, heading, message, facts.length ? make("dl", { class: "facts" }, facts) : null, make("p", { class: "muted time" }, time));
  }

  function answer_form(request) {
    const value = make("textarea", { id: "answer", rows: "3", spellcheck: "false" });
    value.value = request.json ?? "";
    const code = make("input", { id: "answer-code", autocomplete: "off", placeholder: "such as timeout" });
    const problem = make("p", { class: "problem", role: "alert", hidden: true });
    const submit = (event) => {
      event.preventDefault();
      try {
        answers[request.path] = code.value.trim() ? { fails: code.value.trim() } : { returns: JSON.parse(value.value) };
      } catch (error) {
        problem.hidden = false;
        problem.textContent = `The answer is not JSON: ${error.message}. A text needs quotes: "paid".`;
        return;
      }
      run();
    };
    return make(
      "form",
      { class: "card stack answer", onsubmit: submit },
      make("h3", {}, `Answer to ${request.path}`),
      make("p", { class: "muted" }, `Nothing is performed: type what ${request.effect} would return. Cases of the node answer too.`),
      make("dl", { class: "facts" }, Object.entries(request.arguments).flatMap(([name, text]) => [make("dt", {}, name), make("dd", { class: "mono" }, text)])),
      make("label", { for: "answer" }, "Value as JSON ", make("span", { class: "muted" }, request.type)),
      value,
      make("label", { for: "answer-code" }, "or the code of a failure"),
      code,
      problem,
      make("div", { class: "row" }, make("button", { class: "primary" }, "Answer and run")),
    );
  }

  function requests_table(requests) {
    const change = (request) => {
      const box = answer_form(request);
      element.querySelector(".answer")?.remove();
      element.querySelector(".verdict").after(box);
      box.querySelector("textarea").focus();
    };
    const forget = (request) => {
      delete answers[request.path];
      run();
    };
    const rows = requests.map((each) => [
      make("span", { class: "mono" }, each.path), make("span", { class: "mono" }, each.answer), each.origin,
      make("span", { class: "row" },
        make("button", { type: "button", onclick: () => change(each) }, "Change"),
        each.origin === "typed" ? make("button", { type: "button", onclick: () => forget(each) }, "Remove") : null),
    ]);
    return section("Requests", make_table("Requests", ["Step", "Answer", "From", ""], rows));
  }

  function steps_table(result) {
    const engines = result.engines.map((each) => LABELS[each.engine]);
    const rows = result.steps.map((each) => {
      const is_same = each.values.every((value) => value === each.values[0]);
      const values = each.values.map((value) => make("span", { class: "mono" }, value));
      const shown = is_same ? [values[0], "="] : [...values];
      const name = each.status === "ok" ? each.path : `${each.path} (${each.status})`;
      return [line_button(each.line, name), ...shown];
    });
    return section("Values per step", make_table("Steps", ["Step", ...engines], rows));
  }

  function contracts_table(contracts) {
    const rows = contracts.map((each) => [
      badge(each.holds ? "holds" : "broken", each.holds ? "good" : "bad"), each.phase,
      [line_button(each.line, each.text), Object.entries(each.values).map(([name, value]) => make("div", { class: "muted mono" }, `${name} is ${value}`))].flat(),
    ]);
    return section("Contracts", make_table("Contracts", ["", "Phase", "Clause"], rows));
  }

  const section = (title, content) => make("section", {}, make("h3", {}, title), content);
  const line_button = (line, text) =>
    line ? make("button", { type: "button", class: "link mono", title: `line ${line}`, onclick: () => node.go_to(line) }, text) : make("span", { class: "mono" }, text);

  return run;
}
