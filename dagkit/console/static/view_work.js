// Decisions, splits, errors, work that is not done, and row accounts.

import { answered } from "./answers.js";
import { charted } from "./charts.js";
import { button, h } from "./dom.js";
import { failures } from "./failures.js";
import { amounts, count, counted, moment, percent } from "./format.js";
import { folderOf, inFolder, listing } from "./listing.js";
import { isLive } from "./operators.js";
import { ITEMS, ITEMS_OF_WINDOWS, linked as window } from "./view_windows.js";

const shown = (value) => (value === null || value === undefined ? null : typeof value === "number" ? count(value) : String(value));
const place = (row, name) => (row[`${name}_share`] === null ? count(row[name]) : percent(row[`${name}_share`]));

const DECISIONS = [
  ["Window", window, "number", "window"],
  ["At", (row) => moment(row.at), "", "at"],
  ["Operator", (row) => row.operator, "", "operator"],
  ["Before", (row) => shown(row.before), "number", "before"],
  ["After", (row) => shown(row.after), "number", "after"],
  ["By", (row) => row.policy ?? row.fact, "", "policy"],
  ["Why", (row) => row.sentence ?? [row.name, row.path].filter(Boolean).join(" "), "why"],
];
export const decisions = {
  id: "scaling",
  title: "Scaling",
  open: async (main, run) => {
    const draw = charted(main, run, ({ partitions, backlog }) => [partitions, backlog]);
    const rows = await listing(main, "Decisions", "decisions", DECISIONS, { nothing: "Nothing was decided." });
    return { update: (now) => { draw(now); rows.update(now); } };
  },
};

const sourcesOf = (rows) => rows.map((row) => row.source);
const SPLITS = (rows) => [
  ["Window", window, "number", "window"],
  ["Source", (row) => h("span", { title: row.source }, row.source.slice(folderOf(sourcesOf(rows)).length)), "path", "source"],
  [h("span", {}, h("span", { class: "key0" }, "■ kept "), h("span", { class: "key1" }, "■ handed over")), (row) => (row.end === null ? null : drawn(row, rows)), "rare"],
  ["From", (row) => place(row, "start"), "number", "start"],
  ["Split at", (row) => place(row, "at"), "number", "at"],
  ["To", (row) => place(row, "end"), "number", "end"],
  ["Slot", (row) => count(row.slot), "number", "slot"],
  ["Why", (row) => row.why, "why", "why"],
];

// The range, from the beginning of its source to the last position of it that the page names.
function drawn(row, rows) {
  const whole = Math.max(...rows.filter(({ source, end }) => source === row.source && end !== null).map(({ end }) => end));
  const parts = [["", row.start], ["kept", row.at - row.start], ["handed", row.end - row.at], ["", whole - row.end]];
  return h("span", { class: "range", role: "img", "aria-label": `${percent((row.at - row.start) / (row.end - row.start))} kept` }, parts.map(([kind, length]) => {
    const part = h("span", { class: kind });
    part.style.flexGrow = length / whole; // by script, since the policy forbids styles in attributes
    return part;
  }));
}

export const splits = {
  id: "splits",
  title: "Splits",
  open: async (main) => {
    main.append(h("p", {}, "A split divides a range while it is read, so that no slot and no window waits for its end: the slot keeps the first part, and the rest goes to another slot or to a later window. Each record is read once. Where there was no more to do yet, nothing was divided: that is only summed."));
    const nothing = "Nothing was split. That is in order: each range ended before its window was over, and no slot ran out of work while another one read.";
    const sums = await listing(main, "Reasons", "splits/sums", [
      ["Why", (row) => row.why, "why", "why"],
      ["Splits", (row) => count(row.splits), "number", "splits"],
      ["Handed over", (row) => amounts(row.handed), "number", "handed"],
    ], { nothing, searches: false });
    const rows = await listing(main, "Splits", "splits", ({ rows }) => SPLITS(rows), { nothing: "", searches: false, above: ({ rows }) => inFolder(sourcesOf(rows)) });
    return { update: (now) => [sums, rows].forEach((part) => part.update(now)) };
  },
};

const only = (condition) => `#/items?items=${encodeURIComponent(new URLSearchParams({ like: condition }))}`;
const ofOperator = (name) => `operator="${name}"`;

function verdict(sums) {
  const uneven = sums.filter((row) => row.uneven).map((row) => row.operator);
  if (!sums.length) return [];
  return [uneven.length ? h("p", { class: "strong amiss" }, `The items of ${uneven.join(" and ")} do not add up: this is a bug of the operator or of dagkit.`) : h("p", {}, "All items add up.")];
}

export const items = {
  id: "items",
  title: "Items",
  open: async (main) => {
    main.append(h("p", {}, "What an operator received is what it sent, rejected and dropped: then its items add up. “–” stands where that need not hold, as for readers."));
    const sums = await listing(main, "By operator", "items/sums", [
      ["Operator", ({ operator }) => h("a", { href: only(ofOperator(operator)) }, operator), "", "operator"],
      ["Windows", (row) => count(row.windows), "number", "windows"],
      ...ITEMS.slice(1, -1),
      ["Adds up", ({ operator, uneven, adds_up: evenly }) => (uneven ? h("a", { class: "strong amiss", href: only(`adds_up=false ${ofOperator(operator)}`) }, `not in ${counted(uneven, "window")}`) : evenly && "yes"), "", "uneven"],
    ], { nothing: "No items were counted.", searches: false, above: ({ rows }) => verdict(rows) });
    const rows = await listing(main, "By window", "items", ITEMS_OF_WINDOWS, { nothing: "No items were counted.", above: ({ rows }) => {
      const isOf = (row, other) => row?.window === other?.window, isGrouped = rows.some((row, index) => index && isOf(row, rows[index - 1]));
      rows.forEach((row, index) => { row.first = isGrouped && !isOf(row, rows[index - 1]); });
      return new URLSearchParams(location.hash.split("?")[1]).has("items") ? [h("p", {}, h("a", { href: "#/items" }, "All windows and operators"))] : [];
    } });
    return { update: (now) => [sums, rows].forEach((part) => part.update(now)) };
  },
};

const LEFT = [
  ["Operator", (row) => row.operator, "", "operator"],
  ["Place", (row) => row.place, "path", "place"],
  ["Window", (row) => (row.window === null ? null : window(row)), "rare number", "window"],
  ["Why", (row) => row.reason || null, "rare why", "reason"],
  ["By", (row) => row.by, "rare", "by"],
];
const REJECTED = [
  ["Operator", (row) => row.operator, "", "operator"],
  ["Window", window, "number", "window"],
  ["Place", (row) => row.place || null, "path", "place"],
  ["Record", (row) => row.record, "path", "record"],
];

// Lets the driver put the work back into its queue between two windows; or the next launch does. The table is drawn
// again meanwhile, so the outcome stands below it.
function retry(row, outcome, runs) {
  const { source, operator } = row, range = row.is_shares ? {} : { start: row.start, end: row.end ?? "" };
  const act = button("Retry", async () => {
    act.disabled = true;
    const say = (text) => { outcome.textContent = `Retry of ${row.place}: ${text}.`; };
    say(runs() ? "requested; the driver answers after the windows in flight" : "requested; the next launch does it");
    try {
      const answer = await answered("retry", { source, operator, ...range }, () => outcome.isConnected);
      if (answer) say(answer.done ? `put back, in window ${count(answer.window)}; if it fails again, it is listed with a later window` : answer.refused);
    } catch (error) {
      say(error.message);
    }
  });
  return act;
}

export const work = {
  id: "work",
  title: "Errors and work",
  open: async (main, run) => {
    main.append(...failures(run));
    const parts = [await listing(main, "Rejected records, the last ones", "rejected", REJECTED, { nothing: "No operator rejected a record in the last launch." })];
    const counts = Object.entries(run.status?.left_out ?? {}).filter(([, left]) => left.rejected).map(([name, left]) => `${name} rejected ${count(left.rejected)}`);
    if (counts.length) main.append(h("p", { class: "quiet" }, `${counts.join(", ")}. All of them are where the output “rejected” leads.`));
    const outcome = h("p", { role: "status" });
    const again = (row) => (row.state === "set aside" ? retry(row, outcome, () => isLive(run.status)) : null);
    const columns = [["State", (row) => row.state, "", "state"], ...LEFT, ...(run.overview.allows_control ? [["", again, "rare"]] : [])];
    parts.push(await listing(main, "Set aside, waiting or followed", "work", columns, { nothing: "Nothing waits." }));
    main.append(outcome, h("p", { class: "quiet" }, "To retry what was set aside: ", h("code", {}, `dagkit work retry ${run.overview.path} [PLACE]`)));
    parts.push(await listing(main, "Given up", "given-up", LEFT, { nothing: "Nothing was given up." }));
    return { update: (now) => parts.forEach((part) => part.update(now)) };
  },
};
