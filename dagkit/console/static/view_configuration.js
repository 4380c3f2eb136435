// The configuration of the last launch: what each operator has, and the keys that were set, with their sources.

import { button, h } from "./dom.js";
import { listing } from "./listing.js";

export const configuration = { id: "configuration", title: "Configuration", open };

const text = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1).replace(/\n */g, " ")); // lines break at the spaces
const VALUES = [
  ["Operator", (row) => row.operator, "", "operator"],
  ["Name", (row) => row.name, "path", "name"],
  ["Value", (row) => text(row.value), "path", "value"],
  ["Set by", (row) => row.origin ?? "not recorded", "path why", "origin"],
];

async function open(main) {
  const place = h("div", {});
  main.append(place);
  let all = false;
  const values = async () => {
    place.replaceChildren();
    await listing(place, "Properties and attributes", "values", VALUES, { parameters: all ? { defaults: "1" } : {}, nothing: "None is set.", follows: false });
    place.append(button(all ? "Hide defaults" : "Show defaults", () => { all = !all; void values(); }, { "aria-pressed": String(all) }));
  };
  await values();
  await listing(main, "Keys", "keys", [
    ["Key", (row) => (row.holds ? row.key : h("s", {}, row.key)), "path", "key"],
    ["Value", (row) => text(row.value), "path", "value"],
    ["Source", (row) => row.source, "", "source"],
    ["From", (row) => [row.file, row.line].filter(Boolean).join(":") || null, "path", "file"],
  ], { nothing: "No property file, command line or environment variable sets a key.", follows: false });
}
