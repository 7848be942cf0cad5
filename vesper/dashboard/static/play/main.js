/** The page of the playground. It owns the document: the text in the editor is the only copy of the node. */
import { mount_cases } from "./cases.js";
import { open_document } from "./editor.js";
import { mount_form } from "./form.js";
import { mount_grid } from "./grid.js";

const page = document.getElementById("play");
const node = await open_document(page.querySelector("#editor"), JSON.parse(page.dataset.opened));
const form = mount_form(page.querySelector("#form"), node);
mount_grid(page.querySelector("#table"), node);
mount_cases(page.querySelector("#cases"), node, form);
