// Charts over time: uPlot in the colours of the page, with the last values as text for screen readers.

import { pauses } from "./answers.js";
import { h } from "./dom.js";
import { amount, bytes, compact, count, duration, moment, time } from "./format.js";
import { isLive } from "./operators.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const LONG_SECONDS = 10;
const INKS = ["--accent", "--second", "--third", "--fourth"];

const total = (amounts) => Object.values(amounts).reduce((sum, number) => sum + number, 0);
const quantile = (values, share) => [...values].sort((one, other) => one - other)[Math.floor(share * (values.length - 1))] ?? 0;

// Columns over time with an empty moment between two launches, and where windows are much further apart than usual:
// nothing was committed from one to the other.
export function apart(at, launched, columns) {
  const times = [], widened = columns.map(() => []);
  const far = Math.max(LONG_SECONDS, 10 * quantile(at.slice(1).map((moment, index) => moment - at[index]), 0.5));
  at.forEach((moment, index) => {
    const before = at[index - 1], isNext = index && launched[index] !== null && launched[index] !== launched[index - 1] && launched[index] > before;
    if (isNext || moment - before > far) {
      times.push(isNext ? launched[index] : (before + moment) / 2);
      for (const column of widened) column.push(null);
    }
    times.push(moment);
    columns.forEach((column, number) => widened[number].push(column[index]));
  });
  return [times, widened];
}

// The values without a neighbour: no line leads to them, so they are drawn as points.
function alone(plot, number) {
  const values = plot.data[number], isEmpty = (index) => (values[index] ?? null) === null;
  return values.flatMap((_, index) => (!isEmpty(index) && isEmpty(index - 1) && isEmpty(index + 1) ? [index] : []));
}

// The top of a scale: old peaks, as at the start of a launch, do not set it.
function topOf(values) {
  const known = values.filter((value) => (value ?? null) !== null), highest = Math.max(0, ...known);
  const usual = Math.max(2 * quantile(known, 0.98), ...known.slice(-Math.ceil(known.length / 4)));
  return highest > 2 * usual ? usual : highest;
}

// One chart: `lines` are [name, values]; `shown` makes text of a value. The values at the cursor stand in its title. The
// time axis reaches `until`.
export function chart(title, at, lines, shown, { stepped = false, least = 1000, until = 0, label = shown } = {}) {
  const place = h("div", { class: "plot" });
  const last = lines.map(([name, values]) => `${name} ${shown(values.at(-1)) ?? "unknown"}`).join(", ");
  const caption = h("figcaption", { "aria-hidden": "true" });
  const figure = h("figure", { class: "chart", role: "img", "aria-label": `${title}; at the end: ${last}` }, caption, place);
  const highest = Math.max(0, ...lines.flatMap(([, values]) => values)), top = Math.max(0, ...lines.map(([, values]) => topOf(values)));
  const titled = (index) => {
    const values = lines.map(([name, each], number) => h("span", {},
      h("span", { class: `key key${number}` }, lines.length > 1 ? "■" : ""), lines.length > 1 ? `${name} ` : "", shown(each.at(index)) ?? "–"));
    caption.replaceChildren(title, ...values, h("span", { class: "quiet" }, index !== -1 ? moment(at[index] * 1000) : top < highest ? `up to ${label(highest)}` : ""));
  };
  const labels = (_, values) => values.map((one, index) => (index && time(values[index - 1] * 1000) === time(one * 1000) ? "" : time(one * 1000)));
  const sizes = () => ({ width: Math.max(200, place.clientWidth), height: 130 });
  const draw = () => {
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const paths = stepped ? uPlot.paths.stepped({ align: 1 }) : undefined;
    const series = lines.map((_, index) => ({
      stroke: color(INKS[index % INKS.length]), width: 1.5, points: { show: true, size: 5, filter: alone }, paths,
      fill: lines.length === 1 ? color("--wash") : undefined,
    }));
    const options = {
      ...sizes(), series: [{}, ...series],
      axes: [{ ...axis, space: 55, size: 30, values: labels }, { ...axis, size: 62, values: (_, values) => values.map(label) }],
      scales: { x: { range: (_, low, high) => [low, Math.max(high, until)] }, y: { range: (_, low) => [Math.min(0, low ?? 0), Math.max(top * 1.05, least)] } },
      legend: { show: false }, cursor: { y: false },
      hooks: { setCursor: [(plot) => titled(plot.cursor.idx ?? -1)] },
    };
    return new uPlot(options, [at, ...lines.map(([, values]) => values)], place);
  };
  let plot = null;
  titled(-1);
  // Draw when the size is known: the figure is not in the page yet.
  new ResizeObserver(() => (plot ? plot.setSize(sizes()) : (plot = draw()))).observe(place);
  return figure;
}

// The charts of the series, each in a list that is empty where there is nothing to draw.
export function overTime(series, status) {
  if (series.at.length < 2) return { backlog: [], read: [], rejected: [], partitions: [], times: [] };
  const units = new Set([...Object.keys(status?.read ?? {}), ...Object.keys(status?.pending ?? {})]);
  const shown = units.size === 1 ? (number) => amount(number, [...units][0]) : units.size ? count : bytes;
  const counts = Object.entries(series.partitions).slice(0, 4);
  const [at, [waits, read, items, rejected, slots, commit, ...partitions]] = apart(series.at, series.launched,
    [series.waiting_positions, series.positions, series.items, series.rejected, series.slots_seconds, series.commit_seconds, ...counts.map(([, values]) => values)]);
  const named = counts.map(([name], index) => [name, partitions[index]]);
  const scale = units.size === 0 || (units.size === 1 && units.has("byte")) ? {} : { label: compact, least: 4 };
  const until = isLive(status) ? new Date(status.at) / 1000 : 0; // of a run that goes on, also the time since its last window
  const waitsNow = until > at.at(-1) ? [[...at, until], [...waits, total(status.to_do ?? {})]] : [at, waits];
  return {
    backlog: [chart("Backlog", waitsNow[0], [["waiting", waitsNow[1]]], shown, { ...scale, until })],
    read: [series.positions.some(Boolean) ? chart("Read in a window", at, [["read", read]], shown, { ...scale, until }) : chart("Items in a window", at, [["items", items]], count, { least: 4, until })],
    rejected: series.rejected.some(Boolean) ? [chart("Rejected in a window", at, [["rejected", rejected]], count, { least: 4, until })] : [],
    partitions: named.length ? [chart("Partitions", at, named, count, { stepped: true, least: 4, until })] : [],
    times: series.slots_seconds.some(Boolean) ? [chart("Time of a window", at, [["slots", slots], ["commit", commit]], duration, { least: 0.1, until })] : [],
  };
}

// Draw charts, unless the reader points at them and no window was added.
function redraw(place, charts, isSame) {
  if (!isSame || !place.matches(":hover")) place.replaceChildren(...charts.flat());
}

// Some of these charts above a table. Returns a function that draws them again as the run goes on.
export function charted(main, run, chosen) {
  const place = h("div", { class: "charts" }), turn = pauses();
  let window = null, series = null;
  const update = ({ status }) => {
    const isSame = window === (status?.window ?? 0);
    if (!turn.isDue() || (isSame && !isLive(status))) return;
    window = status?.window ?? 0;
    const renewed = turn.take(async (ask) => { series = isSame && series ? series : await ask("series"); });
    void renewed.then(() => redraw(place, chosen(overTime(series, status)), isSame), () => { window = null; });
  };
  main.append(place);
  update(run);
  return update;
}
