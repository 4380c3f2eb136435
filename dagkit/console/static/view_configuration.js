// The configuration of the last launch, with the source of each value.

import { ask } from "./answers.js";
import { h, section, table } from "./dom.js";

export const configuration = { id: "configuration", title: "Configuration", open };

async function open(main) {
  const { entries } = await ask("configuration");
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  main.append(section("Configuration", table("Configuration", [
    ["Key", (row) => (row.holds ? row.key : h("s", {}, row.key)), "path"],
    ["Value", (row) => text(row.value), "path"],
    ["Source", (row) => row.source],
    ["From", (row) => [row.file, row.line].filter(Boolean).join(":"), "path"],
  ], entries, "No key is set: the application runs with its own values.")));
}
