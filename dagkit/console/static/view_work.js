// Decisions, splits, errors, work that is not done, and row accounts.

import { answered } from "./answers.js";
import { charted } from "./charts.js";
import { button, h } from "./dom.js";
import { failures } from "./failures.js";
import { count, moment, percent } from "./format.js";
import { listing } from "./listing.js";
import { isLive, meter } from "./operators.js";
import { ITEMS_OF_WINDOWS, linked as window } from "./view_windows.js";

const view = (id, title, columns, nothing) => ({ id, title, open: (main) => listing(main, title, id, columns, { nothing }) });
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

export const splits = view("splits", "Splits", [
  ["Window", window, "number", "window"],
  ["Source", (row) => row.source, "path", "source"],
  ["From", (row) => place(row, "start"), "number", "start"],
  ["Split at", (row) => place(row, "at"), "number", "at"],
  ["To", (row) => place(row, "end"), "number", "end"],
  ["Kept", (row) => (row.end === null ? null : meter((row.at - row.start) / (row.end - row.start), "kept")), "rare number"],
  ["Slot", (row) => count(row.slot), "number", "slot"],
  ["Why", (row) => row.why, "why"],
], "Nothing was split.");

export const items = view("items", "Items", ITEMS_OF_WINDOWS, "No items were counted.");

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
    parts.push(await listing(main, "Set aside or waiting", "work", columns, { nothing: "Nothing waits." }));
    main.append(outcome, h("p", { class: "quiet" }, "To retry what was set aside: ", h("code", {}, `dagkit work retry ${run.overview.path} [PLACE]`)));
    parts.push(await listing(main, "Given up", "given-up", LEFT, { nothing: "Nothing was given up." }));
    return { update: (now) => parts.forEach((part) => part.update(now)) };
  },
};
