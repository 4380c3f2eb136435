// The table of operators, which the overview and the graph show.

import { h } from "./dom.js";
import { amount, count, duration, moment, partDone, percent, rate, skew } from "./format.js";
import { listing } from "./listing.js";

export const isLive = (status) => ["starting", "running", "draining"].includes(status?.state);

// Where the figures of a driver that wrote no end come from: the ledger may have windows that it did not report any more.
export const asReported = (status) => (["killed", "silent"].includes(status.state) ? `, as its driver last reported them, at ${moment(status.reported)}` : "");

export const operators = (main, run) => listing(main, "Operators", "operators", () => columns(isLive(run.status)), { follows: "status" });

export const meter = (share, name) => h("span", { class: "busy" }, h("meter", { min: "0", max: "1", value: share, "aria-label": name }), percent(share));

// Rates while the run lasts, then sums.
const columns = (live) => [
  ["Operator", (each) => h("a", { class: live && each.busiest ? "strong" : null, href: `#/graph/${encodeURIComponent(each.name)}` }, each.name), "", "name"],
  ...(live ? [["Busy", (each) => meter(each.busy, "busy"), "number", "busy"]] : []),
  ["Partitions", (each) => (each.wanted === each.partitions ? count(each.partitions) : `${each.partitions} → ${each.wanted}`), "number", "partitions"],
  ["Received", (each) => (live ? rate(each.received_per_second) : count(each.received)), "number", live ? "received_per_second" : "received"],
  ["Sent", (each) => (live ? rate(each.sent_per_second) : count(each.sent)), "number", live ? "sent_per_second" : "sent"],
  ["Rejected", (each) => (each.rejected ? count(each.rejected) : null), "rare number", "rejected"],
  ["Read", (each) => (each.positions ? (live ? `${amount(each.positions_per_second, each.unit)}/s` : amount(each.positions, each.unit)) : null), "rare number", live ? "positions_per_second" : "positions"],
  ...(live ? [["Skew", skew, "rare number", "skew"]] : []),
  ["Waiting", (each) => (each.waiting === null ? null : amount(each.waiting, each.unit)), "number", "waiting"],
  ...(live ? [["In progress", inProgress, "rare"], ["Time left", (each) => duration(each.eta_seconds), "number", "eta_seconds"]] : []),
];

// The element that takes longest now, or, if slots do not report it, one that the last window did not finish.
function inProgress(each) {
  if (each.source === null) return null;
  const share = each.fraction === null ? "" : ` ${partDone(each.fraction)}`;
  return `${shortened(each.source)}${share}${each.working_seconds === null ? "" : ` for ${duration(each.working_seconds)}`}`;
}

const shortened = (source) => source.split("/").at(-1);
