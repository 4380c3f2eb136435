// The last error: what happened, the author's lines of the traceback, and what to do about it.

import { h, section } from "./dom.js";
import { counted, moment } from "./format.js";
import { linkedOnceCommitted } from "./view_windows.js";

export function failures(run) {
  const error = run.status?.error;
  if (!error) return [];
  const [first, ...rest] = error.parts;
  const where = [error.operator, error.window && linkedOnceCommitted(error.window, run, `window ${error.window}`), error.code && h("code", {}, error.code)];
  const about = [moment(error.at), ...where, error.again ? "the window ran again" : "the run ended"].filter(Boolean);
  return [section("Last error", h("div", { class: "fault" },
    h("p", { class: "strong amiss" }, first?.text ?? ""),
    h("p", { class: "quiet" }, about.flatMap((part, index) => (index ? [" · ", part] : [part]))),
    h("div", { class: "trace" }, rest.map(part)),
    error.help ? h("p", { class: "help" }, h("strong", {}, "What to do: "), error.help) : null))];
}

function part(one) {
  if (one.library) return h("details", {}, h("summary", { class: "quiet" }, `${counted(one.library.length, "line")} of libraries`), one.library.map(frame));
  return one.file ? frame(one) : h("p", { class: one.text.startsWith(" ") ? "quiet" : null }, one.text);
}

const frame = (one) => h("div", { class: `frame ${one.is_authors ? "authors" : ""}` },
  h("span", { class: "place" }, one.file, ":", h("b", {}, one.line), ` in ${one.function}`),
  one.code.length ? h("pre", {}, one.code.join("\n")) : null);
