// The log of the drivers and of what operators print and log: the newest lines first, as they come.

import { h, table } from "./dom.js";
import { instant } from "./format.js";
import { listing } from "./listing.js";
import { linkedOnceCommitted } from "./view_windows.js";

export const log = { id: "log", title: "Log", open };

const LEVELS = [["", "All"], ["warning", "Warnings"], ["error", "Errors"]];
const columns = (run) => [
  ["At", (row) => instant(row.at), "at", "at"],
  ["Level", (row) => h("span", { class: `level ${row.level}` }, row.level), "", "level"],
  ["Window", (row) => (row.window ? linkedOnceCommitted(row.window, run) : ""), "rare number", "window"],
  ["Operator", (row) => row.operator ?? "", "rare", "operator"],
  ["Text", text, "path text", "text"],
];

export const rowsOfLog = (rows, run) => h("div", { class: "log" }, table("Log", columns(run), rows));

async function open(main, run, least) {
  const choices = LEVELS.map(([level, title]) => h("a", { class: "choice", href: `#/log${level && `/${level}`}`, "aria-current": level === least ? "true" : null }, title));
  main.append(h("div", { class: "bar" }, ...choices));
  return listing(main, "Log", "log", () => columns(run), { parameters: { least }, nothing: "The log has no such line. Only a folder on this machine keeps one.", follows: "status" });
}

function text({ text: whole }) {
  const [first, ...rest] = whole.split("\n");
  return rest.length ? h("details", {}, h("summary", {}, first), h("pre", {}, rest.join("\n"))) : first;
}
