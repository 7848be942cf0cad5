/** The cases of a node: run on both engines, loaded into the form, added, renamed and removed by a click. */
import { make, make_problem } from "./parts.js";
import { post } from "./post.js";

/** Mount the cases below `element`. `form` has `inputs()`, `set(inputs)` and the `answers` of the run. */
export function mount_cases(element, node, form) {
  let read_text = null;
  const message = make("div");
  const list = make("ul", { class: "cases" });
  const name = make("input", { id: "case-name", autocomplete: "off", maxlength: "120", required: true, placeholder: "what this run shows" });
  const keep = make("form", { class: "row keep", onsubmit: (event) => { event.preventDefault(); change("add", { name: name.value, inputs: form.inputs(), answers: form.answers ?? {} }, () => { name.value = ""; }); } },
    make("label", { for: "case-name" }, "Keep this run as a case"), name, make("button", { class: "primary" }, "Keep"));
  element.replaceChildren(keep, message, list);

  async function refresh() {
    const text = node.text();
    if (!element.checkVisibility() || text === read_text) return;
    list.setAttribute("aria-busy", "true");
    try {
      const found = await post("/play/api/cases", { path: node.path(), text });
      if (text !== node.text()) return;
      if (found.faulty) throw Object.assign(new Error(found.faulty), { remedy: found.remedy });
      read_text = text;
      message.replaceChildren();
      show(found);
    } catch (error) {
      message.replaceChildren(make_problem(error));
    }
    list.removeAttribute("aria-busy");
  }
  node.on_change(refresh);
  new IntersectionObserver(refresh).observe(element);

  /** Change the text by an endpoint of cases; the inputs and the outcome are those of a run on the server. */
  async function change(action, body, then = () => {}) {
    try {
      const answer = await post(`/play/api/cases/${action}`, { path: node.path(), text: node.text(), ...body });
      node.set_text(answer.text);
      then();
      await refresh();
    } catch (error) {
      message.replaceChildren(make_problem(error));
    }
  }

  function show(found) {
    const failed = found.cases.filter((each) => !each.passed).length;
    const more = found.omitted ? `, ${found.omitted} more are not run here` : "";
    const summary = make("li", { class: "muted" }, found.cases.length ? `${found.cases.length - failed} of ${found.cases.length} cases pass on both engines${more}.` : "This node has no cases yet: run it, then keep the run above.");
    list.replaceChildren(summary, ...found.cases.map(show_case));
  }

  function show_case(each) {
    const load = () => {
      form.set(each.inputs);
      document.getElementById("tab-run")?.click();
    };
    const title = make("button", { type: "button", class: "link", title: "Load its inputs into the form", onclick: load }, each.name);
    const row = make("div", { class: "row" }, make("span", { class: `badge ${each.passed ? "good" : "bad"}` }, each.passed ? "passes" : "fails"), title);
    const tools = make("span", { class: "row end" },
      make("button", { type: "button", class: "small", "aria-label": `Show ${each.name} in the text`, onclick: () => { document.getElementById("tab-text")?.click(); node.go_to?.(each.line); } }, `line ${each.line}`),
      make("button", { type: "button", class: "small", "aria-label": `Rename ${each.name}`, onclick: () => rename(each, row) }, "Rename"),
      make("button", { type: "button", class: "small", "aria-label": `Remove ${each.name}`, onclick: () => change("remove", { name: each.name }) }, "Remove"));
    row.append(tools);
    const expect = make("p", { class: "mono muted" }, `expects ${each.expect}`);
    const answers = each.answers.filter((one) => !one.is_met).map((one) => make("p", { class: "mono wrong-text" }, `${one.engine}: ${one.outcome}`));
    const differ = each.disagree ? make("p", { class: "wrong-text" }, "▲ The engines disagree: this is a bug in Vesper.") : null;
    return make("li", {}, row, expect, answers, differ);
  }

  function rename(each, row) {
    const input = make("input", { value: each.name, "aria-label": "New name", maxlength: "120", required: true });
    const submit = (event) => { event.preventDefault(); change("rename", { name: each.name, to: input.value }); };
    const box = make("form", { class: "row keep", onsubmit: submit }, input, make("button", {}, "Rename"));
    input.addEventListener("keydown", (event) => { if (event.key === "Escape") box.replaceWith(row); });
    row.replaceWith(box);
    input.select();
  }
}
