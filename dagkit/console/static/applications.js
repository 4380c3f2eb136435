// The applications of a folder: which is healthy, which keeps up, and since when; those that need attention first.

import { ask } from "./answers.js";
import { h, table } from "./dom.js";
import { amounts, count, moment } from "./format.js";
import { worst } from "./health.js";
import { isLive } from "./operators.js";

const EVERY_MILLIS = 5000;
const main = document.getElementById("main"), beat = document.getElementById("beat");

const COLUMNS = [
  ["Application", ({ name, application }) => h("a", { href: `/of/${encodeURIComponent(name)}/` }, application)],
  ["State", ({ status }) => h("span", { class: `state ${status?.state ?? ""}` }, status?.state ?? "unknown")],
  ["Health", ({ health }) => health, "why"],
  ["Window", ({ status }) => count(status?.window || null), "number"],
  ["Committed", ({ status }) => moment(status?.committed_at)],
  ["Waiting", ({ status }) => (status ? amounts(status.pending) : null), "number"],
  ["Launched", ({ status }) => moment(status?.since)],
];
const RANKS = [".amiss", ".warn", ".fine", ".note"];
const rank = ({ health }) => RANKS.findIndex((kind) => health?.querySelector(kind)) >>> 0; // one without a status comes last

async function renew() {
  try {
    const { path, rows } = await ask("applications");
    const judged = rows.map((row) => ({ ...row, health: worst(row.status, row.fault) })).sort((one, other) => rank(one) - rank(other));
    const running = rows.filter((row) => isLive(row.status)).length;
    beat.textContent = `${rows.length} in ${path}, ${running} running`;
    if (!main.contains(document.activeElement)) main.replaceChildren(table("Applications", COLUMNS, judged, "No application was launched here."));
  } catch (error) {
    beat.textContent = `No answer: ${error.message}`;
  }
  setTimeout(renew, EVERY_MILLIS);
}

if (location.search) history.replaceState(null, "", location.pathname); // the address has the token
renew();
