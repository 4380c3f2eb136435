// The overview: how far the run is, its operators, the backlog over time, the last windows.

import { ask, pauses } from "./answers.js";
import { charted } from "./charts.js";
import { figures, h, section, table } from "./dom.js";
import { amounts, bytes, count, counted, duration, moment, partDone, time } from "./format.js";
import { failures } from "./failures.js";
import { health } from "./health.js";
import { asReported, isLive, operators as tableOfOperators } from "./operators.js";
import { rowsOfLog } from "./view_log.js";
import { rowsOfWindows } from "./view_windows.js";

const WARNINGS = 5, LAST_LINES = 8;

export const overview = { id: "overview", title: "Overview", open };

function open(main, run) {
  const summary = h("div", {}), place = h("div", {}), windows = h("div", {}), warnings = h("div", {}), ending = h("div", {});
  main.append(summary);
  const draw = charted(main, run, ({ backlog, read, rejected, partitions }) => [backlog, read, rejected, partitions]);
  main.append(h("div", { class: "pair" }, place, h("div", {}, warnings, windows)));
  const turn = pauses();
  let last = -1, operators = null;

  async function update() {
    if (!summary.contains(document.activeElement)) summary.replaceChildren(...health(run), ...failures(run), ending, summed(run));
    if (run.status && !operators) operators = tableOfOperators(place, run);
    void operators?.then((table) => table.update(run), () => { place.replaceChildren(); operators = null; }); // it is tried again
    if (run.status?.state !== "killed") ending.replaceChildren();
    else if (!ending.hasChildNodes()) ending.replaceChildren(...endOf(run, (await ask("log", { limit: LAST_LINES })).rows));
    draw(run);
    const window = run.status?.window ?? 0;
    if (!turn.isDue() || (window === last && !isLive(run.status))) return;
    const first = last < 0, isSame = window === last;
    last = window;
    const [page, log] = await turn.take((ask) => {
      const recent = isSame ? null : ask("windows", { limit: 10 });
      if (first) recent.then((page) => windows.replaceChildren(section("Last windows", rowsOfWindows(page.rows))), () => {}); // awaited below
      return Promise.all([recent, ask("log", { least: "warning", limit: WARNINGS })]); // warnings come also while no window is committed
    });
    if (page) windows.replaceChildren(section("Last windows", rowsOfWindows(page.rows)));
    warnings.replaceChildren(...warning(log, run));
  }
  const renew = () => void update().catch((error) => {
    last = -1;
    if (!run.isLost) windows.replaceChildren(h("p", { class: "fault", role: "alert" }, error.message));
  });
  renew();
  return { update: renew };
}

// What is known of the end of a driver that was killed: what it did, and its last lines.
function endOf(run, lines) {
  const { status } = run, { pid, host } = status.driver;
  const since = (begin) => duration((new Date(status.at) - new Date(begin)) / 1000);
  const doing = [
    ...status.in_flight.map((each) => `Window ${count(each.window)} had run for ${since(each.since)}, with ${counted(each.elements, "element")}.`),
    ...status.working.map((each) => `${each.operator} had worked on ${each.source} for ${since(each.since)}${each.fraction === null ? "" : `, ${partDone(each.fraction)} done`}.`),
  ];
  return [section("How it ended",
    h("p", {}, `Process ${pid} on ${host} gave its last sign of life at ${moment(status.at)}. ${status.step ? `It was starting: ${status.step}.` : doing.join(" ") || "No window was in flight."}`),
    h("p", {}, "A process that is killed cannot record by what. If memory ran out, the system's log names it: ", h("code", {}, `journalctl -k | grep ${pid}`), "; a container then ends with the exit code 137."),
    ...(lines.length ? [h("h3", {}, "The last lines of its log"), rowsOfLog(lines, run)] : []))];
}

const warning = ({ rows }, run) => (rows.length ? [section("Last warnings", rowsOfLog(rows, run), h("p", {}, h("a", { href: "#/log/warning" }, "All warnings")))] : []);

function summed({ overview: known, status }) {
  const last = known.last;
  if (!status) {
    return section("Run", figures([
      ["Last window", count(last?.window ?? 0), moment(last?.committed)],
      ["Waiting", amounts(last?.pending), counted(last?.waiting ?? 0, "range")],
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
  const waits = isLive(status) && Object.keys(status.pending).length ? status.pending : status.to_do, isEndless = status.pending_elements && !Object.keys(waits).length;
  const elements = isLive(status) || isEndless ? counted(status.pending_elements, "element") : null; // with those of windows that did not end, their number is unknown
  const pending = ["Waiting", amounts(waits), isEndless ? `${elements} followed` : elements];
  const read = amounts(status.read);
  const complete = [`${counted(totals.files, "file")} completed`, totals.files && bytes(totals.completed), isLive(status) && status.visible_at && `the next at ${time(status.visible_at)}`];
  const written = ["Written", bytes(totals.written), complete.filter(Boolean).join(", ")];
  if (isLive(status)) {
    return section("Run", figures([
      windows, ...running,
      ["Read", read, "in committed windows"],
      pending,
      written,
      ["Windows", count(totals.windows), `since ${moment(status.since)}`],
      driver, ...spark,
    ]));
  }
  const reported = asReported(status);
  return section("Last launch", reported && h("p", { class: "quiet" }, `The sums of the launch${reported}. Windows, Items and Compare have also what was committed after that.`), figures([
    windows,
    ["Windows", count(totals.windows), `since ${moment(status.since)}`],
    ["Read", read, `${counted(totals.elements_found, "element")} found`],
    written, pending,
    ["Took", duration((new Date(status.at) - new Date(status.since)) / 1000), known.version && `dagkit ${known.version}`],
    driver,
    ["Folder", h("span", { class: "path" }, known.path)],
  ]));
}
