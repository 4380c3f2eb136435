// Two windows, or two launches, side by side.

import { ask } from "./answers.js";
import { h, section, table } from "./dom.js";
import { amounts, count, duration, moment, percent } from "./format.js";
import { listing } from "./listing.js";
import { linked, newest } from "./view_windows.js";

export const compare = { id: "compare", title: "Compare", open };

const LARGE = 0.2, LEAST = 0.005; // a change by more than this share is marked; a smaller one than the other has none

// [title, column, text of a value]
const OF_WINDOWS = [
  ["Took", "seconds", duration], ["In slots", "slots_seconds", duration], ["To commit", "commit_seconds", duration],
  ["Read", "positions", count], ["Items handled", "items", count], ["Rejected", "rejected", count], ["Files done", "files", count],
  ["Decisions", "decisions", count], ["Ranges that wait", "waiting", count], ["Waiting after it", "waiting_positions", count],
];
const OF_LAUNCHES = [
  ["Took", "seconds", duration], ["Windows", "windows", count], ["A window took", "window_seconds", duration],
  ["The longest took", "longest_seconds", duration], ["Read", "positions", count], ["Items handled", "items", count],
  ["Rejected", "rejected", count], ["Files done", "files", count], ["Waiting after it", "waiting_positions", count],
];

function figuresOf(first, second, heads, kinds) {
  return table("Figures", [
    ["Figure", ([title]) => title],
    [heads[0], ([, name, text]) => text(first[name]), "number"],
    [heads[1], ([, name, text]) => text(second[name]), "number"],
    ["Change", ([, name, text]) => change(first[name], second[name], text), "number"],
  ], kinds);
}

// From the first to the second: as a difference, and as a share if the first is not zero.
function change(first, second, text) {
  if ((first ?? null) === null || (second ?? null) === null || first === second) return null;
  const by = second - first, share = first ? by / first : null;
  const words = `${by > 0 ? "+" : "−"}${text(Math.abs(by))}${share === null || Math.abs(share) < LEAST ? "" : ` (${share > 0 ? "+" : "−"}${percent(Math.abs(share))})`}`;
  return h("span", { class: share === null || Math.abs(share) > LARGE ? "strong" : null }, words);
}

async function open(main, run, rest) {
  const [kind, ...pair] = rest.split("/");
  if (kind === "launches" && pair.length === 2) return ofLaunches(main, pair);
  const [first, second] = (kind === "windows" ? pair : [newest(run) - 1, newest(run)]).map(Number);
  main.append(chooser(first, second));
  if (first > 0 && second > 0) await ofWindows(main, first, second);
  return listing(main, "Launches", "launches", [
    ["Launched", (row) => moment(row.launched), "", "launched"],
    ["Took", (row) => duration(row.seconds), "number", "seconds"],
    ["Windows", (row) => `${count(row.first)} to ${count(row.last)}`, "number", "windows"],
    ["A window took", (row) => duration(row.window_seconds), "number", "window_seconds"],
    ["Read", (row) => amounts(row.read), "number", "positions"],
    ["Items handled", (row) => count(row.items), "number", "items"],
    ["Rejected", (row) => (row.rejected ? count(row.rejected) : null), "rare number", "rejected"],
    ["", (row) => (row.first > 1 ? h("a", { href: `#/compare/launches/${row.first - 1}/${row.last}` }, "Compare with the one before") : "")],
  ], { nothing: "No window was committed yet.", follows: false, searches: false });
}

function chooser(first, second) {
  const fields = [["First window", first], ["Second window", second]].map(([name, value]) => h("input", { type: "number", min: "1", value: value > 0 ? value : "", "aria-label": name }));
  const go = (event) => { event.preventDefault(); location.hash = `#/compare/windows/${fields[0].value}/${fields[1].value}`; };
  return h("form", { class: "bar", onsubmit: go }, h("strong", {}, "Windows"), fields[0], "and", fields[1], h("button", { type: "submit" }, "Compare"));
}

async function ofWindows(main, first, second) {
  const [one, other] = await Promise.all([first, second].map((number) => ask(`windows/${number}`)));
  const operators = h("div", {});
  main.append(h("div", { class: "pair" }, section("Figures", figuresOf(one, other, [first, second].map((window) => linked({ window }, `Window ${count(window)}`)), OF_WINDOWS)), operators));
  const side = (title, name) => [
    [`${title}, first`, (row) => count(row[`${name}_first`]), "number", `${name}_first`],
    ["second", (row) => count(row[`${name}_second`]), "number", `${name}_second`],
  ];
  const columns = [["Operator", (row) => row.operator, "", "operator"], ...side("Received", "received"), ...side("Sent", "sent"),
    ["Change of sent", (row) => change(row.sent_first, row.sent_second, count), "rare number"]];
  await listing(operators, "Operators", "compare", columns, { parameters: { first, second }, nothing: "No items were counted.", follows: false });
}

// Launches are named by a window of each.
async function ofLaunches(main, pair) {
  const found = await Promise.all(pair.map((window) => ask("launches", { like: `first<${Number(window) + 1} last>${Number(window) - 1}`, limit: 1 })));
  const [one, other] = found.map((page) => page.rows[0]);
  main.append(h("p", {}, h("a", { href: "#/compare" }, "All launches")));
  if (!one || !other) {
    main.append(h("p", { class: "quiet", role: "status" }, "Looking for the launches…"));
    if (!found.some((page) => page.continues)) throw new Error("the ledger has no windows of these launches");
    return main.isConnected ? (main.replaceChildren(), ofLaunches(main, pair)) : {};
  }
  main.append(section("Figures", figuresOf(one, other, [moment(one.launched), moment(other.launched)], OF_LAUNCHES)));
  return {};
}
