// Bundle the editor into `vesper/dashboard/static/vendor/monaco` and write `vendor.toml` with the hash of each file.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const output = join(here, "../../../../vesper/dashboard/static/vendor/monaco");
const modules = join(here, "node_modules");
const version = JSON.parse(readFileSync(join(modules, "monaco-editor/package.json"), "utf8")).version;

rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { monaco: "entry.js", worker: join(modules, "monaco-editor/esm/vs/editor/editor.worker.js") },
  outdir: output,
  bundle: true,
  splitting: true, // the worker is a module that shares a file with the page
  chunkNames: "[name]",
  format: "esm",
  minify: true,
  legalComments: "none",
  charset: "utf8",
  target: ["es2022"],
  loader: { ".ttf": "file" },
  assetNames: "[name]",
  logLevel: "warning",
});
copyFileSync(join(modules, "monaco-editor/LICENSE"), join(output, "LICENSE"));
const notices = ["monaco-editor/ThirdPartyNotices.txt", "marked/LICENSE.md", "dompurify/LICENSE"];
writeFileSync(
  join(output, "NOTICES.txt"),
  notices.map((name) => `== ${name} ==\n\n${readFileSync(join(modules, name), "utf8")}`).join("\n\n"),
);

const hash = (name) => createHash("sha256").update(readFileSync(join(output, name))).digest("hex");
const files = readdirSync(output).sort().map((name) => `"${name}" = "${hash(name)}"`);
writeFileSync(
  join(output, "vendor.toml"),
  `name = "monaco-editor"
version = "${version}"
licence = "MIT; NOTICES.txt has the licences of what it contains"
made = "make vendor: tests/support/vendor/monaco bundles the editor's core with esbuild"

[sha256]
${files.join("\n")}
`,
);
