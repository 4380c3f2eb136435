// A table that the server filters, sorts and pages: one for all lists of the console.

import { pauses } from "./answers.js";
import { button, h, table } from "./dom.js";
import { count } from "./format.js";

const ROWS = 40, WAIT_MILLIS = 250;

// What is asked of a table stands in the address, so it can be kept as a bookmark, and the button Back finds it again.
const inAddress = (name) => new URLSearchParams(new URLSearchParams(location.hash.split("?")[1]).get(name) ?? "");

function keep(name, asked) {
  const [path, query] = location.hash.split("?"), all = new URLSearchParams(query);
  const own = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
  if (own.size) all.set(name, own); else all.delete(name);
  history.replaceState(null, "", `${path || "#/"}${all.size ? `?${all}` : ""}`);
}

// The folder that holds all these files; empty if none does.
export function folderOf(paths) {
  const [first = "", ...rest] = paths.map((path) => path.slice(0, path.lastIndexOf("/") + 1));
  return rest.reduce((folder, other) => {
    while (!other.startsWith(folder)) folder = folder.slice(0, folder.lastIndexOf("/", folder.length - 2) + 1);
    return folder;
  }, first);
}

export const inFolder = (paths) => (folderOf(paths) ? [h("p", { class: "quiet" }, "In ", h("span", { class: "path" }, folderOf(paths)))] : []);

// A section with a table. A column is [title, cell, kind, column of the server]; those with the last are sorted by it.
// The newest rows appear by themselves: with each window, or with each status. Rows that lie far back are looked for at
// once only if the table `searches`, or was asked for something. `above` makes what stands above the rows of a page.
export async function listing(main, title, name, columns, { parameters = {}, nothing, key = name, level = "h2", follows = "windows", searches = true, above = null } = {}) {
  const kept = inAddress(key);
  const asked = { like: kept.get("like") ?? "", sort: kept.get("sort") ?? "", after: Number(kept.get("after")) || 0 };
  const turn = pauses();
  let page = null, window = null, typing = 0, number = 0, isStopped = false;

  const field = h("input", { type: "search", "aria-label": `Filter ${title}`, placeholder: "Filter", autocomplete: "off", value: asked.like,
    title: "Rows that contain each word. A condition on a column is a word, too: seconds>10, operator=Read" });
  const note = h("span", { class: "quiet", role: "status" });
  const back = button("‹", () => go({ after: Math.max(0, asked.after - ROWS) }), { "aria-label": "Previous page" });
  const on = button("›", () => go({ after: page.next }), { "aria-label": "Next page" });
  const stop = button("Stop looking", () => {
    isStopped = !isStopped;
    if (isStopped) shown(); else void load(true).catch(() => {});
  }, { hidden: true });
  const pages = h("span", { class: "turn" }, back, on);
  const bar = h("div", { class: "bar" }, field, note, stop, pages);
  const place = h("div", {});
  main.append(h("section", { class: "listing" }, h("div", { class: "heading" }, h(level, {}, title), bar), place));
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => go({ like: field.value.trim(), after: 0 }), WAIT_MILLIS);
  });

  async function go(change) {
    Object.assign(asked, change);
    keep(key, asked);
    await load().catch((error) => place.replaceChildren(h("p", { class: "fault", role: "alert" }, error.message)));
  }

  // Ask until the page is full, or all was looked at: one answer looks at what it can in half a second.
  async function load(resumes = false) {
    const own = ++number;
    isStopped = !(searches || resumes || asked.like || asked.sort);
    do {
      const began = performance.now();
      const answer = await turn.take((ask) => ask(name, { ...parameters, ...asked, limit: ROWS }));
      if (own !== number) return; // it was asked for something else meanwhile
      page = answer;
      shown();
      if (!isPart()) return;
      await new Promise((resolve) => setTimeout(resolve, performance.now() - began)); // leave half of the time to the run
    } while (own === number && main.isConnected && !isStopped);
  }

  function isPart() { return page.continues && (asked.sort || page.next === null); }

  function shown() {
    const continues = isPart();
    // Replacing the table takes the focus away from its heads, so it is set again below.
    const head = document.activeElement?.closest?.("th")?.cellIndex;
    const isWithin = place.contains(document.activeElement);
    const seen = { ...page, like: asked.like, continues };
    place.replaceChildren(...(above?.(seen) ?? []), table(title, columns instanceof Function ? columns(seen) : columns, page.rows, continues ? "Looking…" : asked.like ? "No row has all of this." : nothing, { sort: asked.sort, by: (sort) => go({ sort, after: 0 }) }));
    if (isWithin) (place.querySelectorAll("th")[head]?.querySelector("button") ?? place.querySelector(".scroll"))?.focus();
    const last = asked.after + page.rows.length;
    const range = page.rows.length ? `${count(asked.after + 1)}–${count(last)}${page.total === null || page.total === undefined ? "" : ` of ${count(page.total)}`}` : "";
    const far = continues ? ` · looked at ${count(page.looked.blocks)} of ${count(page.looked.of)} blocks` : "";
    note.textContent = `${range}${far}`;
    back.disabled = asked.after === 0;
    on.disabled = page.next === null;
    pages.hidden = back.disabled && on.disabled;
    stop.hidden = !continues;
    stop.textContent = isStopped ? "Look further back" : "Stop looking";
    const isSmall = !continues && !asked.like && !asked.after && page.next === null && page.rows.length <= 10;
    bar.hidden = isSmall;
  }
  await load();

  // The newest rows, unless an older page is read, or the keyboard stands in a row.
  function update({ status }) {
    const isNew = follows === "status" || status?.window !== window;
    if (!follows || asked.after || !isNew || !turn.isDue() || place.querySelector("td :focus-visible")) return;
    window = status?.window;
    void load().catch(() => {}); // the header shows that there is no answer
  }
  return { update, redraw: shown };
}
