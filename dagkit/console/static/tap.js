// Samples of the items that pass on a stream, as windows are committed, until the panel is closed.

import { command } from "./answers.js";
import { button, h, table } from "./dom.js";
import { count } from "./format.js";

const MOST = 50;

// `stream` is the name of an output, as `operator.port`.
export function tap(stream, title) {
  const note = h("p", { class: "quiet", role: "status" }), place = h("div", {});
  let rows = [], last = null; // the loop that was started last; null once it is stopped
  const start = button("Show items", () => { last = last ? null : {}; named(); if (last) void follow(last); });

  function named() { start.textContent = last ? "Stop" : "Show items"; }

  async function follow(own) {
    note.textContent = "Waiting for a window with items…";
    while (own === last && place.isConnected) {
      try {
        const answer = await command("tap", { stream });
        if (own !== last || !answer.rows.length) continue; // it was stopped meanwhile
        rows = [...answer.rows.map((row) => ({ ...row, window: answer.window })), ...rows].slice(0, MOST);
        note.textContent = "";
        place.replaceChildren(table(`Items of ${title}`, [
          ["Window", (row) => count(row.window), "number"],
          ["Item", (row) => row.item, "path"],
          ["From", (row) => row.place || null, "rare path"],
        ], rows));
      } catch (error) {
        if (own !== last) return;
        note.textContent = error.message;
        last = null;
        named();
      }
    }
  }
  return h("div", { class: "tap" }, h("div", { class: "bar" }, h("span", { class: "path" }, title), start), note, place);
}
