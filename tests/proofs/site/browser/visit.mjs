// Visit every page of the documentation site in Chromium and print what was found as one line of JSON.
// Input, as JSON on standard input: base, pages, terms ({term: page}), chromium, screenshots (a folder, or null).
import { mkdirSync, readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const { base, pages, terms, chromium: executablePath, screenshots } = JSON.parse(readFileSync(0, "utf8"));
const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");
// Names and roles do not depend on the view: the second one has the rules about colours and sizes.
const VIEWS = [
  { name: "light-1280", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "dark-360", viewport: { width: 360, height: 740 }, colorScheme: "dark", rules: ["color-contrast", "scrollable-region-focusable", "target-size"] },
];
const PARALLEL = 2;
const SHOWN = ["index.html", "how-to/test-nodes.html", "reference/operations/decimal.html", "architecture.html", "compare.html"];

const found = { visits: 0, problems: [], requests_elsewhere: [], axe_rules: 0, links: [], external: 0, searches: {} };
const ids = {};
const problem = (view, page, text) => {
  found.problems.push(`${page} (${view}): ${text}`);
  console.error(found.problems.at(-1));
};

async function open(browser, view) {
  const context = await browser.newContext({ ...view, bypassCSP: true });
  await context.route("**/*", (route) => {
    const url = route.request().url();
    if (url.startsWith(base) || url.startsWith("data:") || url.startsWith("blob:")) return route.continue();
    found.requests_elsewhere.push(url);
    return route.abort();
  });
  return context;
}

async function visit(context, view, name) {
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && problem(view.name, name, `console: ${message.text()}`));
  page.on("pageerror", (error) => problem(view.name, name, `script: ${error.message}`));
  page.on("response", (answer) => answer.status() >= 400 && problem(view.name, name, `${answer.status()} ${answer.url()}`));
  await page.goto(base + name, { waitUntil: "load", timeout: 60000 });
  const seen = await page.evaluate(() => ({
    ids: [...document.querySelectorAll("[id]")].map((each) => each.id),
    links: [...document.querySelectorAll("a[href]")].map((each) => each.href),
    width: document.documentElement.scrollWidth,
    scheme: document.body.dataset.mdColorScheme,
  }));
  if (seen.width > view.viewport.width) problem(view.name, name, `is ${seen.width} px wide`);
  if ((seen.scheme === "slate") !== (view.colorScheme === "dark")) problem(view.name, name, `has the scheme ${seen.scheme}`);
  ids[name] = new Set(seen.ids);
  for (const link of seen.links) found.links.push([name, link]);
  await page.evaluate(axe);
  // Header and navigation are the same on all pages: those at the top stand for the others.
  const part = name.includes("/") ? ".md-content" : "html";
  const options = { resultTypes: ["violations"], ...(view.rules && { runOnly: view.rules }) };
  const result = await page.evaluate(([part, options]) => globalThis.axe.run(part, options), [part, options]);
  found.axe_rules = Math.max(found.axe_rules, result.passes.length + result.violations.length);
  for (const each of result.violations.filter((each) => ["serious", "critical"].includes(each.impact)))
    problem(view.name, name, `axe ${each.id}: ${each.nodes.length} x ${each.nodes[0].target} ${each.nodes[0].failureSummary}`);
  if (screenshots && SHOWN.includes(name))
    await page.screenshot({ path: `${screenshots}/${view.name}-${name.replaceAll("/", "-")}.png` });
  await page.close();
  found.visits += 1;
  if (found.visits % 50 === 0) console.error(`${found.visits} visits`);
}

function resolve() {
  const known = new Set(pages);
  const internal = new Set();
  const files = new Set();
  for (const [page, link] of found.links) {
    if (!link.startsWith(base)) continue;
    const url = new URL(link);
    const target = decodeURIComponent(url.pathname.slice(1)) || "index.html";
    internal.add(target + url.hash);
    const anchor = decodeURIComponent(url.hash.slice(1));
    if (!known.has(target)) files.add(target);
    else if (anchor && !ids[target].has(anchor) && !anchor.startsWith("__")) problem("links", page, `no anchor ${target}#${anchor}`);
  }
  found.external = new Set(found.links.map(([, link]) => link).filter((link) => !link.startsWith(base))).size;
  found.links = internal.size;
  return files;
}

async function search(context, term, expected) {
  const page = await context.newPage();
  await page.goto(`${base}index.html`, { waitUntil: "load" });
  await page.locator("label.md-header__button[for=__search], .md-search__input").last().click();
  await page.locator(".md-search__input").fill(term);
  const results = page.locator(".md-search-result__item > a");
  await results.first().waitFor({ timeout: 30000 }).catch(() => problem("search", term, "no result"));
  const shown = await results.evaluateAll((links) => links.slice(0, 10).map((each) => new URL(each.href).pathname.slice(1)));
  found.searches[term] = shown.indexOf(expected) + 1;
  if (!shown.includes(expected)) problem("search", term, `${expected} is not among the first ten: ${shown}`);
  await page.close();
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
try {
  if (screenshots) mkdirSync(screenshots, { recursive: true });
  for (const view of VIEWS) {
    const context = await open(browser, view);
    const waiting = [...pages].sort((one, other) => SHOWN.indexOf(one) - SHOWN.indexOf(other)); // those shown last: taken first
    const work = async () => {
      for (let name = waiting.pop(); name; name = waiting.pop())
        await visit(context, view, name).catch((error) => problem(view.name, name, String(error)));
    };
    await Promise.all(Array.from({ length: PARALLEL }, work));
    if (view === VIEWS[0]) for (const [term, expected] of Object.entries(terms)) await search(context, term, expected);
    await context.close();
  }
  for (const file of resolve()) {
    const answer = await fetch(base + encodeURI(file));
    if (!answer.ok) problem("links", file, `status ${answer.status}`);
  }
  found.browser = browser.version();
} finally {
  await browser.close();
}
console.log(JSON.stringify(found));
