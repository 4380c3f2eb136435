// Decisions, splits, work that is not done, and row accounts.

import { ask } from "./answers.js";
import { h, section, table } from "./dom.js";
import { count, moment, percent } from "./format.js";
import { paged } from "./paging.js";
import { failures } from "./view_overview.js";
import { itemsTable } from "./view_windows.js";

export const decisions = { id: "scaling", title: "Scaling", open: (main) => paged(main, "Decisions", "decisions", decisionsTable) };
export const splits = { id: "splits", title: "Splits", open: (main) => paged(main, "Splits", "splits", splitsTable) };
export const work = { id: "work", title: "Errors and work", open: openWork };
export const items = { id: "items", title: "Items", open: (main) => paged(main, "Items, window by window", "items", accounts) };

const window = (row) => h("a", { href: `#/windows/${row.window}` }, count(row.window));

function decisionsTable(rows) {
  return table("Decisions", [
    ["Window", window, "number"],
    ["At", (row) => moment(row.at)],
    ["Operator", (row) => row.operator],
    ["Before", (row) => shown(row.before), "number"],
    ["After", (row) => shown(row.after), "number"],
    ["By", (row) => row.policy ?? row.fact],
    ["Why", (row) => row.sentence ?? [row.name, row.path].filter(Boolean).join(" "), "why"],
  ], rows, "Nothing was decided in the windows that were looked at.");
}

const shown = (value) => (value === null || value === undefined ? null : typeof value === "number" ? count(value) : String(value));

function splitsTable(rows) {
  const place = (row, name) => (row[`${name}_share`] === null ? count(row[name]) : percent(row[`${name}_share`]));
  return table("Splits", [
    ["Window", window, "number"],
    ["Source", (row) => row.source, "path"],
    ["From", (row) => place(row, "start"), "number"],
    ["Split at", (row) => place(row, "at"), "number"],
    ["To", (row) => place(row, "end"), "number"],
    ["Slot", (row) => count(row.slot), "number"],
    ["Why", (row) => row.why, "why"],
  ], rows, "Nothing was split in the windows that were looked at.");
}

function workTable(title, rows, nothing) {
  return table(title, [
    ["Operator", (row) => row.operator],
    ["Place", (row) => row.place, "path"],
    ["Window", (row) => (row.window === null ? null : window(row)), "rare number"],
    ["Why", (row) => row.reason || null, "rare why"],
    ["By", (row) => row.by, "rare"],
  ], rows, nothing);
}

// What the operators of the last launch rejected, with the last records of each.
function rejections(status) {
  const all = (each) => status.left_out[each.name]?.rejected ?? 0;
  const rejecting = (status?.operators ?? []).filter(all);
  return rejecting.map((each) => section(`Rejected by ${each.name}: ${count(all(each))}`, table(`Rejected by ${each.name}`, [
    ["Window", window, "number"],
    ["Place", (row) => row.place || null, "path"],
    ["Record", (row) => row.record, "path"],
  ], each.rejected_records), all(each) > each.rejected_records.length
    ? h("p", { class: "quiet" }, "Some of the last ones. All of them are where the output “rejected” leads.") : null));
}

const STATES = [["set aside", "Set aside"], ["suspect", "Suspect"], ["pending", "Waiting"], ["found", "Found, not taken yet"]];

async function openWork(main, run) {
  main.append(...failures(run.status), ...rejections(run.status));
  const found = await ask("work");
  for (const [state, title] of STATES) {
    const rows = found.rows.filter((row) => row.state === state);
    const total = found.counts[state] ?? 0;
    if (total || state === "set aside") {
      main.append(section(`${title}: ${count(total)}`, workTable(title, rows, "Nothing."),
        rows.length < total ? h("p", { class: "quiet" }, `The first ${count(rows.length)} are listed.`) : null));
    }
  }
  return paged(main, "Given up", "given-up", (rows) => workTable("Given up", rows, "Nothing."));
}

// One line for each operator and window, below the sums over the windows that are listed.
function accounts(pages) {
  const lines = pages.flatMap((page) => page.operators.map((each, index) => ({ ...each, window: page.window, first: !index })));
  const sums = new Map();
  for (const line of lines) {
    const sum = sums.get(line.operator) ?? { operator: line.operator, received: 0, sent: 0, rejected: 0, dropped: 0, adds_up: null };
    for (const name of ["received", "sent", "rejected", "dropped"]) sum[name] += line[name] ?? 0;
    if (line.adds_up !== null) sum.adds_up = (sum.adds_up ?? true) && line.adds_up;
    sums.set(line.operator, sum);
  }
  const span = pages.length ? `Windows ${count(pages.at(-1).window)} to ${count(pages[0].window)} together` : "";
  return h("div", {}, pages.length > 1 ? [h("h3", {}, span), itemsTable([...sums.values()]), h("h3", {}, "Each window")] : [],
    itemsTable(lines, [["Window", (row) => (row.first ? window(row) : ""), "number"]]));
}
