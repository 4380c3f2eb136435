// The overview: how far the run is, its operators, the backlog over time, the last windows.

import { ask, pauses } from "./answers.js";
import { apart, chart } from "./charts.js";
import { figures, h, section, table } from "./dom.js";
import { amount, amounts, bytes, count, counted, duration, moment, percent, rate, time } from "./format.js";
import { failures } from "./failures.js";
import { health } from "./health.js";
import { listing } from "./listing.js";
import { isLive } from "./view_graph.js";
import { rowsOfWindows } from "./view_windows.js";

const UNSENT = { rejected: "Rejected", records_dropped: "Dropped" };

export const overview = { id: "overview", title: "Overview", open };

function open(main, run) {
  const summary = h("div", {}), charts = h("div", { class: "charts" }), place = h("div", {}), windows = h("div", {});
  main.append(summary, charts, h("div", { class: "pair" }, place, windows));
  const turn = pauses();
  let last = -1, operators = null;

  async function update() {
    if (!summary.contains(document.activeElement)) summary.replaceChildren(...health(run), ...failures(run), summed(run));
    if (run.status && !operators) operators = listing(place, "Operators", "operators", () => columns(isLive(run.status)), { follows: "status" });
    void operators?.then((table) => table.update(run));
    const window = run.status?.window ?? 0;
    if (window === last || !turn.isDue()) return;
    const first = last < 0;
    last = window;
    const recent = ask("windows", { limit: 10 });
    if (first) recent.then((page) => windows.replaceChildren(section("Last windows", rowsOfWindows(page.rows))), () => {}); // awaited below
    const [series, page] = await turn.take(() => Promise.all([ask("series"), recent]));
    charts.replaceChildren(...drawn(series, run.status));
    windows.replaceChildren(section("Last windows", rowsOfWindows(page.rows)));
  }
  const renew = () => void update().catch((error) => {
    last = -1;
    if (!run.isLost) charts.replaceChildren(h("p", { class: "fault", role: "alert" }, error.message));
  });
  renew();
  return { update: renew };
}

function summed({ overview: known, status }) {
  const last = known.last;
  if (!status) {
    return section("Run", figures([
      ["Last window", count(last?.window ?? 0), moment(last?.committed)],
      ["Waiting", amounts(last?.pending), `${count(last?.waiting ?? 0)} ranges`],
      ["Launched", moment(known.launched), known.version && `dagkit ${known.version}`],
      ["Folder", h("span", { class: "path" }, known.path)],
    ]));
  }
  const totals = status.totals;
  const spark = /^https?:/.test(status.spark_page ?? "") ? [["Spark", h("a", { href: status.spark_page, rel: "noreferrer", target: "_blank" }, "its own page")]] : [];
  const driver = ["Driver", `${status.driver.host} ${status.driver.pid}`, status.master];
  const windows = ["Last window", status.window ? count(status.window) : null, time(status.committed_at)];
  const running = status.in_flight.map((each) => ["In progress", `window ${count(each.window)}`,
    `${counted(each.elements, "element")}, for ${duration((new Date(status.at) - new Date(each.since)) / 1000)}`]);
  const pending = ["Waiting", amounts(status.pending), counted(status.pending_elements, "element")];
  const read = amounts(status.read);
  const complete = `${counted(totals.files, "file")} completed`;
  const written = ["Written", bytes(totals.written), totals.files ? `${complete}, ${bytes(totals.completed)}` : complete];
  const left = Object.entries(status.left_out ?? {}).flatMap(([name, counts]) =>
    Object.entries(counts).map(([metric, number]) => [UNSENT[metric] ?? "Left out", count(number), UNSENT[metric] ? `by ${name}` : `${metric} of ${name}`]));
  left.push(...Object.entries(status.read_again ?? {}).flatMap(([name, counts]) =>
    Object.entries(counts).map(([metric, number]) => ["Read again", count(number), `${metric} of ${name}`])));
  if (isLive(status)) {
    return section("Run", figures([
      windows, ...running,
      ["Read", read, "in committed windows"],
      pending,
      written, ...left,
      ["Windows", count(totals.windows), `since ${moment(status.since)}`],
      driver, ...spark,
    ]));
  }
  return section("Last launch", figures([
    windows,
    ["Windows", count(totals.windows), `since ${moment(status.since)}`],
    ["Read", read, `${counted(totals.elements_found, "element")} found`],
    written, pending, ...left,
    ["Took", duration((new Date(status.at) - new Date(status.since)) / 1000), known.version && `dagkit ${known.version}`],
    driver,
    ["Folder", h("span", { class: "path" }, known.path)],
  ]));
}

const meter = (share) => h("span", { class: "busy" }, h("meter", { min: "0", max: "1", value: share, "aria-label": "busy" }), percent(share));

// Rates while the run goes on, then sums.
const columns = (live) => [
  ["Operator", (each) => h("span", { class: live && each.busiest ? "strong" : null }, each.name), "", "name"],
  ["Partitions", (each) => (each.wanted === each.partitions ? count(each.partitions) : `${each.partitions} → ${each.wanted}`), "number", "partitions"],
  ["Received", (each) => (live ? rate(each.received_per_second) : count(each.received)), "number", live ? "received_per_second" : "received"],
  ["Sent", (each) => (live ? rate(each.sent_per_second) : count(each.sent)), "number", live ? "sent_per_second" : "sent"],
  ["Rejected", (each) => (each.rejected ? count(each.rejected) : null), "rare number", "rejected"],
  ["Read", (each) => (each.positions ? (live ? `${amount(each.positions_per_second, each.unit)}/s` : amount(each.positions, each.unit)) : null), "rare number", live ? "positions_per_second" : "positions"],
  ...(live ? [["Busy", (each) => (each.head === each.name ? meter(each.busy) : h("span", { class: "quiet" }, `with ${each.head}`)), "number", "busy"]] : []),
  ["Waiting", (each) => (each.waiting === null ? null : amount(each.waiting, each.unit)), "number", "waiting"],
  ...(live ? [["In progress", inProgress, "rare"], ["Time left", (each) => duration(each.eta_seconds), "number", "eta_seconds"]] : []),
];

// The element that takes longest now, or, if slots do not report it, one that the last window did not finish.
function inProgress(each) {
  if (each.source === null) return null;
  const share = each.fraction === null ? "" : ` ${percent(each.fraction)}`;
  return `${shortened(each.source)}${share}${each.working_seconds === null ? "" : ` for ${duration(each.working_seconds)}`}`;
}

const shortened = (source) => source.split("/").at(-1);

function drawn(series, status) {
  if (series.at.length < 2) return [];
  const units = new Set([...Object.keys(status?.read ?? {}), ...Object.keys(status?.pending ?? {})]);
  const shown = units.size === 1 ? (number) => amount(number, [...units][0]) : units.size ? count : bytes;
  const counts = Object.entries(series.partitions).slice(0, 4);
  const [at, [waits, read, ...partitions]] =
    apart(series.at, series.launched, [series.waiting_positions, series.positions, ...counts.map(([, values]) => values)]);
  const named = counts.map(([name], index) => [name, partitions[index]]);
  return [
    chart("Backlog", at, [["waiting", waits]], shown),
    chart("Read in a window", at, [["read", read]], shown),
    ...(named.length ? [chart("Partitions", at, named, count, { stepped: true, least: 4 })] : []),
  ];
}
