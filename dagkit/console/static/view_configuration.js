// The configuration of the last launch: what each operator has, and the keys that were set, with their sources.

import { ask } from "./answers.js";
import { h, section, table } from "./dom.js";
import { counted } from "./format.js";

export const configuration = { id: "configuration", title: "Configuration", open };

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));

async function open(main) {
  const { entries, operators } = await ask("configuration");
  main.append(
    section("Properties and attributes", ...(operators.length ? operators.map(valuesOf) : [h("p", { class: "quiet" }, "No launch is recorded.")])),
    section("Keys", table("Keys", [
      ["Key", (row) => (row.holds ? row.key : h("s", {}, row.key)), "path"],
      ["Value", (row) => text(row.value), "path"],
      ["Source", (row) => row.source],
      ["From", (row) => [row.file, row.line].filter(Boolean).join(":"), "path"],
    ], entries, "No property file, command line or environment variable sets a key.")),
  );
}

// What was set is shown at once, the defaults on request: there are some twenty of each operator.
function valuesOf(operator) {
  const given = operator.values.filter((row) => row.origin !== "default");
  const rest = operator.values.filter((row) => row.origin === "default");
  const defaults = h("details", {}, h("summary", {}, counted(rest.length, "default")));
  defaults.addEventListener("toggle", () => defaults.children.length === 1 && defaults.append(valuesTable(operator, rest)));
  return h("div", {}, h("h3", {}, `${operator.operator} `, h("span", { class: "quiet" }, operator.class.split(".").at(-1))),
    given.length ? valuesTable(operator, given) : null, rest.length ? defaults : null);
}

const valuesTable = (operator, rows) => table(`Values of ${operator.operator}`, [
  ["Name", (row) => row.name, "path"],
  ["Value", (row) => text(row.value), "path"],
  ["Set by", (row) => (row.origin === "default" ? null : row.origin ?? "not recorded"), "rare path"],
], rows);
