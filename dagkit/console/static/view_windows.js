// Windows, one window, and the chains of the ledger.

import { ask } from "./answers.js";
import { charted } from "./charts.js";
import { figures, h, section, table } from "./dom.js";
import { amounts, bytes, count, duration, moment } from "./format.js";
import { listing } from "./listing.js";
import { logOf } from "./view_log.js";

export const windows = { id: "windows", title: "Windows", open };
export const chains = { id: "ledger", title: "Ledger", open: openChains };

// The last windows, with the columns that matter most.
const SHORT = ["window", "committed", "seconds", "positions", "items", "rejected", "adds_up", "files"];
export const rowsOfWindows = (rows) => table("Windows", COLUMNS.filter(([, , , name]) => SHORT.includes(name)), rows, "No window was committed yet.");

export const newest = (run) => run.status?.window ?? run.overview.last?.window ?? 0;

export const linked = ({ window }, text = count(window)) => h("a", { href: `#/windows/${window}` }, text);

// Of a window that is not committed, only the number: the ledger does not have it yet, so it has no page.
export const linkedOnceCommitted = (window, run, text = count(window)) => (window <= newest(run) ? linked({ window }, text) : text);

const left = (row) => Object.entries(row.left_out ?? {}).map(([metric, number]) => `${count(number)} (${metric})`).join(", ") || null;

const COLUMNS = [
  ["Window", linked, "number", "window"],
  ["Committed", (row) => moment(row.committed), "", "committed"],
  ["Took", (row) => duration(row.seconds), "rare number", "seconds"],
  ["Commit", (row) => duration(row.commit_seconds), "rare number", "commit_seconds"],
  ["Read", (row) => amounts(row.read), "number", "positions"],
  ["Items handled", (row) => count(row.items), "number", "items"],
  ["Rejected", (row) => (row.rejected ? count(row.rejected) : null), "rare number", "rejected"],
  ["Adds up", (row) => (row.adds_up ? null : h("strong", { class: "amiss" }, "no")), "rare", "adds_up"],
  ["Files done", (row) => (row.files ? count(row.files) : null), "rare number", "files"],
  ["Decisions", (row) => (row.decisions ? count(row.decisions) : null), "rare number", "decisions"],
  ["Waiting", (row) => amounts(row.pending), "number", "waiting_positions"],
];

async function open(main, run, rest) {
  if (rest) return openOne(main, rest);
  const draw = charted(main, run, ({ times, read }) => [times, read]);
  const rows = await listing(main, "Windows", "windows", COLUMNS, { nothing: "No window was committed yet." });
  return { update: (now) => { draw(now); rows.update(now); } };
}

export const ITEMS = [
  ["Operator", (row) => row.operator, "", "operator"],
  ["Received", (row) => count(row.received), "number", "received"],
  ["Sent", (row) => count(row.sent), "number", "sent"],
  ["Rejected", (row) => (row.rejected ? count(row.rejected) : null), "number", "rejected"],
  ["Dropped", (row) => (row.dropped ? count(row.dropped) : null), "number", "dropped"],
  ["Left out", left, "rare", "left_out"],
  ["Adds up", (row) => (row.adds_up === null ? null : row.adds_up ? "yes" : h("strong", { class: "amiss" }, "no")), "", "adds_up"],
];
export const ITEMS_OF_WINDOWS = [["Window", linked, "number", "window"], ...ITEMS];

async function openOne(main, number) {
  const found = await ask(`windows/${encodeURIComponent(number)}`);
  main.append(
    h("p", {}, h("a", { href: "#/windows" }, "All windows"),
      ...(found.window > 1 ? [" · ", h("a", { href: `#/compare/windows/${found.window - 1}/${found.window}` }, "Compare with the window before")] : []),
      " · ", h("a", { href: logOf(`window=${found.window}`) }, "Its log")),
    section(`Window ${found.window}`, figures([
      ["Committed", moment(found.committed)],
      ["Took", duration(found.seconds), found.commit_seconds === null ? "from its begin to the commit"
        : `${duration(found.slots_seconds)} in slots, ${duration(found.commit_seconds)} to commit`],
      ["Read", amounts(found.read)],
      ["Items handled", count(found.items), found.rejected ? `${count(found.rejected)} rejected` : null],
      ["Files done", count(found.files)],
      ["Waiting after it", amounts(found.pending), `${count(found.waiting)} ranges`],
      ["Block", count(found.block)],
    ]), h("p", { class: "hash" }, found.hash)),
    section("Work", ...found.inputs.map((input) => h("div", {},
      h("h3", {}, input.input),
      listed("Given", input.given), listed("Found", input.found), listed("Read", input.consumed)))),
  );
  await listing(main, "Items", "items", ITEMS, { parameters: { window: found.window }, nothing: "No items were counted.", follows: false });
  main.append(
    section("Written", table("Written", [
      ["Operator", (row) => row.operator],
      ["File", (row) => row.file, "path"],
      ["Bytes", (row) => bytes(row.bytes), "number"],
    ], found.written, "This window wrote nothing.")),
    section("Files completed", table("Files completed", [
      ["File", (row) => row.file, "path"],
      ["Bytes of all windows", (row) => bytes(row.bytes), "number"],
    ], found.finished, "This window completed no file.")),
  );
  if (found.facts.length) main.append(section("Decisions", h("ul", {}, found.facts.map((fact) => h("li", {}, `${fact.fact}: ${fact.why ?? fact.rule ?? fact.reason ?? ""}`)))));
}

function listed(title, ranges) {
  return ranges.length ? h("details", { open: ranges.length < 6 }, h("summary", {}, `${title}: ${count(ranges.length)}`), h("ul", { class: "path" }, ranges.map((range) => h("li", {}, range)))) : null;
}

async function openChains(main, run, name) {
  if (name) return openBlocks(main, name);
  const chains = await listing(main, "Chains", "chains", [
    ["Chain", (row) => h("a", { href: `#/ledger/${encodeURIComponent(row.chain)}` }, row.chain), "", "chain"],
    ["Kind", (row) => row.kind, "", "kind"],
    ["Blocks", (row) => count(row.blocks), "number", "blocks"],
    ["Last written", (row) => moment(row.written), "", "written"],
    ["Watermark", (row) => moment(row.watermark), "", "watermark"],
  ]);
  if (run.overview.last) await listing(main, "Blocks of the windows", "blocks", BLOCKS, { parameters: { chain: run.overview.application } });
  main.append(h("p", { class: "quiet" }, "To check every hash and every byte: ", h("code", {}, `dagkit ledger verify ${run.overview.path}`)));
  return chains;
}

const BLOCKS = [
  ["Block", (row) => count(row.block), "number", "block"],
  ["Written", (row) => moment(row.written), "", "written"],
  ["Event", (row) => row.event, "", "event"],
  ["Records", (row) => count(row.records), "number", "records"],
  ["State", (row) => bytes(row.state), "number", "state"],
  ["Hash", (row) => row.hash, "hash"],
];

function openBlocks(main, name) {
  main.append(h("p", {}, h("a", { href: "#/ledger" }, "All chains")));
  return listing(main, `Blocks of ${name}`, "blocks", BLOCKS, { parameters: { chain: name } });
}
