// Windows, one window, and the chains of the ledger.

import { ask } from "./answers.js";
import { figures, h, section, table } from "./dom.js";
import { amounts, bytes, count, duration, moment } from "./format.js";
import { paged } from "./paging.js";

export const windows = { id: "windows", title: "Windows", open };
export const chains = { id: "ledger", title: "Ledger", open: openChains };

export function rowsOfWindows(rows) {
  return table("Windows", [
    ["Window", (row) => h("a", { href: `#/windows/${row.window}` }, count(row.window)), "number"],
    ["Committed", (row) => moment(row.committed)],
    ["Took", (row) => duration(row.seconds), "rare number"],
    ["Read", (row) => amounts(row.read), "number"],
    ["Items handled", (row) => count(row.items), "number"],
    ["Rejected", (row) => (row.rejected ? count(row.rejected) : null), "rare number"],
    ["Left out", (row) => Object.entries(row.left_out ?? {}).map(([metric, number]) => `${count(number)} (${metric})`).join(", "), "rare"],
    ["Adds up", (row) => (row.adds_up ? "yes" : h("strong", { class: "amiss" }, "no"))],
    ["Files done", (row) => (row.files ? count(row.files) : null), "number"],
    ["Decisions", (row) => (row.decisions ? count(row.decisions) : null), "number"],
    ["Waiting", (row) => amounts(row.pending), "number"],
  ], rows, "No window was committed yet.");
}

async function open(main, run, rest) {
  if (rest) return openOne(main, rest);
  return paged(main, "Windows", "windows", rowsOfWindows);
}

async function openOne(main, number) {
  const found = await ask(`windows/${encodeURIComponent(number)}`);
  main.append(
    h("p", {}, h("a", { href: "#/windows" }, "All windows")),
    section(`Window ${found.window}`, figures([
      ["Committed", moment(found.committed)],
      ["Took", duration(found.seconds), "from its begin to the commit"],
      ["Read", amounts(found.read)],
      ["Items handled", count(found.items), found.rejected ? `${count(found.rejected)} rejected` : null],
      ["Files done", count(found.files)],
      ["Waiting after it", amounts(found.pending), `${count(found.waiting)} ranges`],
      ["Block", count(found.block)],
    ]), h("p", { class: "hash" }, found.hash)),
    section("Work", ...found.inputs.map((input) => h("div", {},
      h("h3", {}, input.input),
      listed("Given", input.given), listed("Found", input.found), listed("Read", input.consumed)))),
    section("Items", itemsTable(found.operators)),
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

export function itemsTable(rows, before = []) {
  return table("Items", [
    ...before,
    ["Operator", (row) => row.operator],
    ["Received", (row) => count(row.received), "number"],
    ["Sent", (row) => count(row.sent), "number"],
    ["Rejected", (row) => (row.rejected ? count(row.rejected) : null), "number"],
    ["Dropped", (row) => (row.dropped ? count(row.dropped) : null), "number"],
    ["Left out", (row) => Object.entries(row.left_out ?? {}).map(([metric, number]) => `${count(number)} (${metric})`).join(", "), "rare"],
    ["Adds up", (row) => (row.adds_up === null ? null : row.adds_up ? "yes" : h("strong", { class: "amiss" }, "no"))],
  ], rows, "No items were counted.");
}

async function openChains(main, run, name) {
  if (name) return openBlocks(main, name);
  const { chains: rows } = await ask("overview");
  main.append(section("Chains", table("Chains", [
    ["Chain", (row) => h("a", { href: `#/ledger/${encodeURIComponent(row.chain)}` }, row.chain)],
    ["Kind", (row) => row.kind],
    ["Blocks", (row) => count(row.blocks), "number"],
    ["Last written", (row) => moment(row.written)],
    ["Watermark", (row) => moment(row.watermark)],
  ], rows), h("p", { class: "quiet" }, "To check every hash and every byte: ", h("code", {}, `dagkit ledger verify ${run.overview.path}`))));
}

async function openBlocks(main, name) {
  main.append(h("p", {}, h("a", { href: "#/ledger" }, "All chains")));
  return paged(main, `Blocks of ${name}`, "blocks", (rows) => table("Blocks", [
    ["Block", (row) => count(row.block), "number"],
    ["Written", (row) => moment(row.content.systemTime)],
    ["Event", (row) => row.content.event.kind],
    ["Records", (row) => records(row.content.event.newData), "number"],
    ["State", (row) => bytes(row.content.event.newCheckpoint?.size), "number"],
    ["Hash", (row) => row.hash, "path"],
  ], rows), { chain: name });
}

const records = (slice) => (slice ? count(slice.offsetInterval.end - slice.offsetInterval.start + 1) : null);
