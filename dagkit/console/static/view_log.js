// The log of the drivers and of what operators print and log: the newest lines first, as they come.

import { button, h, table } from "./dom.js";
import { ago, instant, moment } from "./format.js";
import { listing } from "./listing.js";
import { linkedOnceCommitted } from "./view_windows.js";

export const log = { id: "log", title: "Log", open };

const LEVELS = [["", "Events"], ["all", "All"], ["warning", "Warnings"], ["error", "Errors"]];
const ASKED = { "": { windows: "no" }, all: {} };
const columns = (run, least = "", shown = instant, words = []) => [
  ["At", (row) => h("span", { title: moment(row.at) }, shown(row.at)), "at", "at"],
  ["Level", (row) => h("span", { class: `level ${row.level}` }, row.level), "", "level"],
  ["Window", (row) => (row.window ? linkedOnceCommitted(row.window, run) : ""), "rare number", "window"],
  ["Operator", (row) => (row.operator ? h("a", { href: logOf(`operator="${row.operator}"`, least) }, row.operator) : ""), "rare", "operator"],
  ["Text", (row) => text(row, words), "path text", "text"],
];

// The address of the lines that a condition holds for.
export const logOf = (condition, least = "") => `#/log${least && `/${least}`}?log=${encodeURIComponent(new URLSearchParams({ like: condition }))}`;

export const rowsOfLog = (rows, run) => h("div", { class: "log" }, table("Log", columns(run), rows));

async function open(main, run, least) {
  const choices = LEVELS.map(([level, title]) => h("a", { class: "choice", href: `#/log${level && `/${level}`}`, "aria-current": level === least ? "true" : null }, title));
  const toggled = (title, isOn, act) => {
    const made = button(title, () => { made.setAttribute("aria-pressed", String(isOn = !isOn)); act(isOn); }, { "aria-pressed": String(isOn) });
    return made;
  };
  let follows = true, shown = instant;
  const follow = toggled("Follow", true, (isOn) => { follows = isOn; });
  const since = toggled("Time since", false, (isOn) => { shown = isOn ? ago : instant; lines.redraw(); });
  main.append(h("div", { class: "bar" }, ...choices, follow, since));
  const lines = await listing(main, "Log", "log", ({ like }) => columns(run, least, shown, plain(like)), { parameters: ASKED[least] ?? { least }, nothing: `The log has no such line.${run.overview.path?.includes("://") ? " It is kept only for an application whose folder is on this machine, not in an object store." : ""}`, follows: "status" });
  return { update: (now) => { if (follows) lines.update(now); } };
}

// The words of a filter that are no conditions.
const plain = (like) => (like.match(/(?:"[^"]*"?|[^\s"])+/g) ?? []).filter((word) => !/^[a-z_]+[<>=]/.test(word)).map((word) => word.replaceAll('"', "").toLowerCase()).filter(Boolean);

function text({ text: whole }, words) {
  const [first, ...rest] = whole.split("\n");
  if (!rest.length) return marked(first, words);
  const isWithin = words.some((word) => rest.join("\n").toLowerCase().includes(word));
  return h("details", { open: isWithin }, h("summary", {}, marked(first, words)), h("pre", {}, marked(rest.join("\n"), words)));
}

// The text with the words of the filter marked.
function marked(text, words) {
  const lower = text.toLowerCase(), parts = h("span", {});
  for (let at = 0; at < text.length;) {
    const [next, word] = words.map((each) => [lower.indexOf(each, at), each]).filter(([place]) => place >= 0).sort(([one], [other]) => one - other)[0] ?? [text.length, ""];
    parts.append(text.slice(at, next), ...(word ? [h("mark", {}, text.slice(next, next + word.length))] : []));
    at = next + word.length;
  }
  return parts;
}
