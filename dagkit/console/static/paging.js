// Pages of rows, newest first; older ones are asked for by a button.

import { ask, pauses } from "./answers.js";
import { button, h } from "./dom.js";

export async function paged(main, title, name, draw, parameters = {}, cursor = "before") {
  const place = h("div", {}), more = h("p", {});
  main.append(h("section", {}, h("h2", {}, title), place, more));
  const turn = pauses();
  let rows = [], pages = 0, window = null;

  async function next(at) {
    const page = await turn.take(() => ask(name, { ...parameters, [cursor]: at, limit: 100 }));
    rows = at === null ? page.rows : [...rows, ...page.rows];
    pages = at === null ? 1 : pages + 1;
    place.replaceChildren(draw(rows));
    const label = rows.length ? "Show more" : "Look further back";
    more.replaceChildren(...(page.next === null ? [] : [button(label, () => void next(page.next))]));
  }
  await next(null);

  // The newest rows, while nobody reads older ones or stands in the table.
  function update({ status }) {
    if (cursor !== "before" || pages > 1 || status.window === window || !turn.isDue() || place.contains(document.activeElement)) return;
    window = status.window;
    void next(null);
  }
  return { update };
}
