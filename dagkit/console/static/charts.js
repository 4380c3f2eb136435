// Charts over time: uPlot in the colours of the page, with the last values as text for screen readers.

import { h } from "./dom.js";
import { moment, time } from "./format.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const INKS = ["--accent", "--second", "--third", "--fourth"];

// Columns over time with an empty moment between two launches, since nothing ran from one to the other.
export function apart(at, launched, columns) {
  const times = [], widened = columns.map(() => []);
  at.forEach((moment, index) => {
    if (index && launched[index] !== null && launched[index] !== launched[index - 1] && launched[index] > at[index - 1]) {
      times.push(launched[index]);
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

// One chart: `lines` are [name, values]; `shown` makes text of a value. The values at the cursor stand in its title.
export function chart(title, at, lines, shown, { stepped = false, least = 1000 } = {}) {
  const place = h("div", { class: "plot" });
  const last = lines.map(([name, values]) => `${name} ${shown(values.at(-1)) ?? "unknown"}`).join(", ");
  const caption = h("figcaption", { "aria-hidden": "true" });
  const figure = h("figure", { class: "chart", role: "img", "aria-label": `${title}; at the end: ${last}` }, caption, place);
  const titled = (index) => {
    const values = lines.map(([name, each], number) => h("span", {},
      h("span", { class: `key key${number}` }, lines.length > 1 ? "■" : ""), lines.length > 1 ? `${name} ` : "", shown(each.at(index)) ?? "–"));
    caption.replaceChildren(title, ...values, h("span", { class: "quiet" }, index === -1 ? "" : moment(at[index] * 1000)));
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
      axes: [{ ...axis, space: 80, size: 30, values: labels }, { ...axis, size: 62, values: (_, values) => values.map(shown) }],
      scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high * 1.05, least)] } },
      legend: { show: false }, cursor: { y: false },
      hooks: { setCursor: [(plot) => titled(plot.cursor.idx ?? -1)] },
    };
    return new uPlot(options, [at, ...lines.map(([, values]) => values)], place);
  };
  let plot = null;
  titled(-1);
  new ResizeObserver(() => (plot ? plot.setSize(sizes()) : (plot = draw()))).observe(place);
  return figure;
}
