// The input files that the ledger names, and what became of one.

import { ask } from "./answers.js";
import { h, section, table } from "./dom.js";
import { amount, amounts, bytes, count, counted, moment, partDone } from "./format.js";
import { folderOf, inFolder, listing } from "./listing.js";
import { linked } from "./view_windows.js";

export const files = { id: "files", title: "Files", open };

const STATES = { waiting: "Waiting", quarantined: "Set aside", "given-up": "Given up", read: "Read" };
const only = (state) => (state ? `?files=${encodeURIComponent(new URLSearchParams({ like: `state=${state}` }))}` : "");

async function open(main, run, path) {
  if (path) return explain(main, path);
  const choices = h("div", { class: "bar" }), totals = h("p", {});
  main.append(choices, totals);
  const above = ({ sums, rows }) => {
    const sum = (name) => Object.values(sums).reduce((total, each) => total + each[name], 0);
    const here = location.hash.split("?")[1] ?? "";
    choices.replaceChildren(...[["", "All", sum("files")], ...Object.entries(STATES).map(([state, title]) => [state, title, sums[state]?.files ?? 0])].map(([state, title, number]) =>
      h("a", { class: "choice", href: `#/files${only(state)}`, "aria-current": only(state) === (here && `?${here}`) ? "true" : null }, `${title} `, h("b", {}, count(number)))));
    const left = sums.waiting?.left ?? {}, number = Object.values(left).reduce((total, each) => total + each, 0);
    const all = sum("bytes") ? `${counted(sum("files"), "file")} with ${bytes(sum("bytes"))}` : counted(sum("files"), "source");
    totals.replaceChildren(sum("files") ? `${all}; ${number ? `${amounts(left)} wait${number === 1 ? "s" : ""}` : "nothing waits"}.` : "");
    return inFolder(pathsOf(rows));
  };
  const files = await listing(main, "Input files", "files", ({ rows }) => columns(folderOf(pathsOf(rows))), { nothing: "The ledger names no file.", above });
  main.append(h("p", { class: "quiet" }, "The ledger names what was found. To list also the files that are new or ignored, name the application: ", h("code", {}, "dagkit files ls APP")));
  return files;
}

const columns = (folder) => [
  ["File", (row) => h("a", { href: `#/files/${encodeURIComponent(row.path)}`, title: row.path }, row.path.slice(folder.length)), "path", "path"],
  ["Size", (row) => bytes(row.bytes), "number", "bytes"],
  ["State", state, "", "state"],
  ["Found", (row) => moment(row.found), "", "found"],
  ["Window", (row) => (row.window ? linked(row) : null), "number"],
  ["Why", (row) => row.reason || null, "rare why", "reason"],
  ["Found by", (row) => row.finder, "", "finder"],
];

const pathsOf = (rows) => rows.map((row) => row.path);

// How far a file is read of which windows have begun to read; otherwise its state.
function state({ state, bytes: size, left }) {
  const share = size ? 1 - left / size : 0;
  if (state === "waiting" && share > 0) return h("span", { class: "busy" }, h("meter", { min: "0", max: "1", value: share, "aria-label": "read" }), partDone(share));
  return h("span", { class: { waiting: "warn", quarantined: "amiss", "given-up": "amiss" }[state] }, (STATES[state] ?? state).toLowerCase());
}

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
    read.pending === null ? "Work without an end waits." : read.pending ? `${amount(read.pending, read.unit)} wait${read.pending === 1 ? "s" : ""}.` : !read.unread && "All of it was read.",
    read.unread > 0 && `${amount(read.unread, read.unit)} were set aside or given up, and not read.`,
  ];
  return section(`Reading ${index + 1}`, h("p", { class: "path quiet" }, read.source), h("p", {}, facts.filter(Boolean).join(" ")),
    table("Windows", [
      ["Window", linked, "number"],
      ["Reader", (row) => row.operator],
      ["Read", (row) => (row.bytes === null ? null : amount(row.bytes, read.unit)), "number"],
      ["Items", (row) => count(row.items), "number"],
      ["Wrote to", (row) => row.outputs.join(", "), "path"],
    ], read.windows, "No committed window has read it."),
    h("details", {}, h("summary", {}, `Blocks: ${count(read.blocks.length)}`), table("Blocks", [
      ["Block", (row) => count(row.number), "number"],
      ["From", (row) => count(row.start), "number"],
      ["To", (row) => count(row.end), "number"],
    ], read.blocks)));
}
