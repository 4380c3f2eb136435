// Elements, without HTML in strings: what comes from files and records is only ever text.

export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// A table. A column is [title, cell, kind, name]; `cell` makes text or an element of a row. A column of the kind "rare"
// is left out if no row has a value. With `order`, the heads of columns that have a name sort: down first if numbers.
export function table(caption, all, rows, nothing = "Nothing yet.", order = null) {
  if (!rows.length) return h("p", { class: "quiet" }, nothing);
  const columns = all.filter(([, cell, kind]) => !kind?.includes("rare") || rows.some((row) => cell(row) ?? false));
  const heads = columns.map(([title, , kind, name]) => {
    const isSorted = order && name && order.sort.replace("-", "") === name, isDown = order?.sort.startsWith("-");
    const first = kind?.includes("number") ? `-${name}` : name, other = first === name ? `-${name}` : name;
    const next = !isSorted ? first : order?.sort === first ? other : "";
    const head = order && name ? button([title, h("span", { "aria-hidden": "true" }, isSorted ? (isDown ? "↓" : "↑") : "")], () => order.by(next)) : title;
    return h("th", { scope: "col", class: kind?.includes("number") ? "number" : null, "aria-sort": isSorted ? (isDown ? "descending" : "ascending") : null }, head);
  });
  const body = rows.map((row) =>
    h("tr", { class: row.first ? "first" : null }, columns.map(([title, cell, kind]) => h("td", { class: kind, "data-title": title }, cell(row) ?? "–")))
  );
  const drawn = h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, heads)), h("tbody", {}, body));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, drawn);
}

export function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), children);
}

// Figures with their names, as a list of definitions.
export function figures(pairs) {
  return h("dl", { class: "figures" }, pairs.filter(Boolean).map(([name, value, note]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–", note ? h("small", {}, note) : null))
  ));
}

export function button(text, act, attributes = {}) {
  return h("button", { type: "button", onclick: act, ...attributes }, ...[text].flat());
}
