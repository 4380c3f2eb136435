// The input files that the ledger names, and what became of one.

import { ask } from "./answers.js";
import { h, section, table } from "./dom.js";
import { bytes, count, moment } from "./format.js";
import { listing } from "./listing.js";
import { linked } from "./view_windows.js";

export const files = { id: "files", title: "Files", open };

const STATES = [["", "All"], ["waiting", "Waiting"], ["quarantined", "Set aside"], ["given-up", "Given up"], ["read", "Read"]];
const only = (state) => (state ? `?files=${encodeURIComponent(new URLSearchParams({ like: `state=${state}` }))}` : "");

function open(main, run, path) {
  if (path) return explain(main, path);
  const here = location.hash.split("?")[1] ?? "";
  const choices = STATES.map(([state, title]) => h("a", { class: "choice", href: `#/files${only(state)}`, "aria-current": only(state) === (here && `?${here}`) ? "true" : null }, title));
  main.append(h("div", { class: "bar" }, ...choices));
  return listing(main, "Input files", "files", COLUMNS, { nothing: "The ledger names no file.", follows: false });
}

const COLUMNS = [
  ["File", (row) => h("a", { href: `#/files/${encodeURIComponent(row.path)}` }, row.path), "path", "path"],
  ["State", (row) => row.state, "", "state"],
  ["Found by", (row) => row.finder, "", "finder"],
  ["Reason", (row) => row.reason || null, "rare", "reason"],
];

async function explain(main, path) {
  main.append(h("p", {}, h("a", { href: "#/files" }, "All files")), h("h2", { class: "path" }, path));
  const place = h("p", { class: "quiet", role: "status" }, "Reading the ledger…");
  main.append(place);
  const found = await ask("file", { path });
  place.replaceWith(...(found.readings.length ? found.readings.map(reading) : [h("p", { class: "quiet" }, "The ledger does not name it.")]));
}

function reading(read, index) {
  const facts = [
    read.found && `Found by ${read.finder} at ${moment(read.found)}, in block ${count(read.found_by)} of its chain.`,
    read.taken_by ? `Given to window ${count(read.taken_by)}.` : "No committed window has taken it yet; one that runs may read it.",
    read.pending === null ? "Work without an end waits." : read.pending ? `${bytes(read.pending)} wait.` : !read.unread && "All of it was read.",
    read.unread > 0 && `${bytes(read.unread)} were set aside or given up, and not read.`,
  ];
  return section(`Reading ${index + 1}`, h("p", { class: "path quiet" }, read.source), h("p", {}, facts.filter(Boolean).join(" ")),
    table("Windows", [
      ["Window", linked, "number"],
      ["Reader", (row) => row.operator],
      ["Read", (row) => bytes(row.bytes), "number"],
      ["Items", (row) => count(row.items), "number"],
      ["Wrote to", (row) => row.outputs.join(", "), "path"],
    ], read.windows, "No committed window has read it."),
    h("details", {}, h("summary", {}, `Blocks: ${count(read.blocks.length)}`), table("Blocks", [
      ["Block", (row) => count(row.number), "number"],
      ["From", (row) => count(row.start), "number"],
      ["To", (row) => count(row.end), "number"],
    ], read.blocks)));
}
