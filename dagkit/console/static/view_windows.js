// Windows, one window, and the chains of the ledger.

import { ask } from "./answers.js";
import { charted } from "./charts.js";
import { button, figures, h, section, table } from "./dom.js";
import { amounts, bytes, count, counted, duration, lately, moment } from "./format.js";
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

// The window that ended the last launch: the ledger has no block of it.
function failed(status) {
  const error = status?.state === "failed" && !status.error?.again ? status.error : null;
  if (!error?.window || error.window <= status.window) return [];
  return [h("p", { class: "fault" }, `Window ${count(error.window)} failed at ${lately(error.at)}${error.operator ? ` in ${error.operator}` : ""}, and is not committed: the next launch runs it again. `, h("a", { href: "#/work" }, "Why"))];
}

async function open(main, run, rest) {
  if (rest) return openOne(main, rest);
  main.append(...failed(run.status));
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
      " · ", h("a", { href: logOf(`window=${found.window}`, "all") }, "Its log")),
    section(`Window ${found.window}`, figures([
      ["Committed", moment(found.committed)],
      ["Took", duration(found.seconds), found.commit_seconds === null ? "from its begin to the commit"
        : `${duration(found.slots_seconds)} in slots, ${duration(found.commit_seconds)} to commit`],
      ["Read", amounts(found.read)],
      ["Items handled", count(found.items), found.rejected ? `${count(found.rejected)} rejected` : null],
      ["Files done", count(found.files)],
      ["Waiting after it", amounts(found.pending), counted(found.waiting, "range")],
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
    ["Holds", (row) => (row.kind === "Root" ? "what an input operator found" : "the windows")],
    ["Blocks", (row) => count(row.blocks), "number", "blocks"],
    ["Last written", (row) => moment(row.written), "", "written"],
    ["Watermark", (row) => moment(row.watermark), "rare", "watermark"],
    ["Head", (row) => hash(row.head), "hash"],
  ], { nothing: "Nothing was written yet.", above: ({ rows }) => (rows.length ? [h("p", {}, "✓ Each chain has the head that its driver noted, and is linked at its end.")] : []) });
  const blocks = run.overview.last ? await openBlocks(main, run.overview.application, "Blocks of the windows") : null;
  main.append(h("p", { class: "quiet" }, "To check the data and the states, too: ", h("code", {}, `dagkit ledger verify ${run.overview.path}`)));
  return { update: (now) => [chains, blocks].forEach((part) => part?.update(now)) };
}

const BLOCKS = [
  ["Block", (row) => count(row.block), "number", "block"],
  ["Window", (row) => (row.window ? linked(row) : null), "number"],
  ["Written", (row) => moment(row.written), "", "written"],
  ["Event", (row) => row.event, "", "event"],
  ["Records", (row) => count(row.records), "number", "records"],
  ["Data", (row) => bytes(row.data), "number", "data"],
  ["State", (row) => bytes(row.state), "number", "state"],
  ["Linked", (row) => (row.linked ? "✓" : h("strong", { class: "amiss" }, "no")), "", "linked"],
  ["Hash", (row) => hash(row.hash), "hash"],
];

// The beginning of a hash, which a click copies; where the browser forbids that, it shows the whole hash.
function hash(whole) {
  const made = button(`${whole.slice(0, 17)}…`, async () => {
    const isCopied = await navigator.clipboard?.writeText(whole).then(() => true, () => false);
    made.textContent = isCopied ? "Copied" : whole;
  }, { title: whole, "aria-label": `Copy the hash ${whole}` });
  return made;
}

function openBlocks(main, name, title) {
  if (!title) main.append(h("p", {}, h("a", { href: "#/ledger" }, "All chains")));
  const broken = `${location.hash.split("?")[0]}?blocks=${encodeURIComponent("like=linked=false")}`;
  const checked = ({ blocks, of }) => `✓ Each ${blocks === of ? "block" : `of the last ${count(blocks)} blocks`} has its hash, and holds the one before it. `;
  const above = ({ like, rows, continues, looked }) => [h("p", {}, ...(like !== "linked=false"
    ? ["Each block holds the hash of the one before it. ", h("a", { href: broken }, "Check all blocks")]
    : [continues ? "Checking…" : rows.length ? h("strong", { class: "amiss" }, "Blocks were changed or are missing.") : h("strong", {}, checked(looked)), " ", h("a", { href: broken.split("?")[0] }, "All blocks")]))];
  return listing(main, title ?? `Blocks of ${name}`, "blocks", BLOCKS, { parameters: { chain: name }, above });
}
