// Samples of the items that pass on a stream, as windows are committed, until the panel is closed.

import { command } from "./answers.js";
import { button, h, table } from "./dom.js";
import { count } from "./format.js";

const MOST = 50;

// `stream` is the name of an output, as `operator.port`.
export function tap(stream, title) {
  const note = h("p", { class: "quiet", role: "status" }), place = h("div", {});
  let rows = [], runs = false;
  const start = button("Show items", () => { runs = !runs; start.textContent = runs ? "Stop" : "Show items"; if (runs) void follow(); });

  async function follow() {
    note.textContent = "Waiting for a window with items…";
    while (runs && place.isConnected) {
      try {
        const answer = await command("tap", { stream });
        if (!answer.rows.length) continue;
        rows = [...answer.rows.map((row) => ({ ...row, window: answer.window })), ...rows].slice(0, MOST);
        note.textContent = "";
        place.replaceChildren(table(`Items of ${title}`, [
          ["Window", (row) => count(row.window), "number"],
          ["Item", (row) => row.item, "path"],
          ["From", (row) => row.place || null, "rare path"],
        ], rows));
      } catch (error) {
        note.textContent = error.message;
        runs = false;
        start.textContent = "Show items";
      }
    }
  }
  return h("div", { class: "tap" }, h("div", { class: "bar" }, h("span", { class: "path" }, title), start), note, place);
}
