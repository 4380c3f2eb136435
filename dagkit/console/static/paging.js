// Pages of rows, newest first; older ones are asked for by a button.

import { ask } from "./answers.js";
import { button, h } from "./dom.js";

export async function paged(main, title, name, draw, parameters = {}, cursor = "before") {
  const place = h("div", {}), more = h("p", {});
  main.append(h("section", {}, h("h2", {}, title), place, more));
  const rows = [];

  async function next(at) {
    const page = await ask(name, { ...parameters, [cursor]: at, limit: 100 });
    rows.push(...page.rows);
    place.replaceChildren(draw(rows));
    const label = rows.length ? "Show more" : "Look further back";
    more.replaceChildren(...(page.next === null ? [] : [button(label, () => void next(page.next))]));
  }
  await next(null);
  return {};
}
