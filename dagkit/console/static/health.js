// Whether the run is healthy and keeps up, what is wrong, and since when: sentences, the worst first.

import { h, section } from "./dom.js";
import { amount, amounts, count, counted, duration, lately, partDone, time } from "./format.js";
import { isLive } from "./operators.js";

const KINDS = ["amiss", "warn", "fine", "note"];
const MARKS = { amiss: "✕", warn: "!", fine: "✓", note: "·" };
const SPREAD = 0.2, SETS_ASIDE = "-D dt.attr.ON_POISON=SET_ASIDE";
const SLOW_SECONDS = 60; // an element that takes longer than this is named

export function health({ status, isLost, overview }) {
  const sentences = status ? judged(status, isLost && unknown(status, overview.path)) : [];
  return sentences.length ? [section("Health", listed(sentences))] : [];
}

// The worst sentence about a run, or why its ledger cannot be read.
export const worst = (status, fault) => (fault ? listed([["amiss", fault]]) : status ? listed(judged(status).slice(0, 1)) : null);

function judged(status, lost = null) {
  const sentences = [...(lost || (isLive(status) ? keepsUp(status) : ended(status))), ...troubles(status)];
  return sentences.sort(([first], [second]) => KINDS.indexOf(first) - KINDS.indexOf(second));
}

const listed = (sentences) => h("ul", { class: "health" }, sentences.map(([kind, ...sentence]) =>
  h("li", { class: kind }, h("span", { "aria-hidden": "true", class: "mark" }, MARKS[kind]), h("span", {}, ...sentence))));

const firstLine = ({ message }) => message.split("\n")[0].replace(/\.$/, "");

const upper = (text) => text[0].toUpperCase() + text.slice(1);

// A console that its driver serves ends with it, also if the driver is killed.
const unknown = (status, path) => [["amiss", `No answer since ${time(status.at)}: the driver may have been killed. To see what became of the run: `,
  h("code", {}, `dagkit status ${path}`)]];

function ended(status) {
  const again = status.command ? [" To launch it again: ", h("code", {}, status.command)] : [];
  const next = status.window ? `resumes after window ${count(status.window)}` : "begins again";
  switch (status.state) {
    case "killed":
      return [["amiss", `The driver was killed at about ${lately(status.at)}. The next launch ${next}, and no record is lost.`, ...again]];
    case "silent":
      return [["amiss", `The driver on ${status.driver.host} has been silent since ${lately(status.at)}: it may be cut off, and still run.`]];
    case "failed": {
      // An error after which the window ran again is not the one that ended the run.
      const error = status.error?.again ? null : status.error;
      const why = error ? `: ${firstLine(error)}` : "";
      // The same record fails again: only a correction, or setting it aside, leads on.
      const others = !status.command || !error?.help?.includes(SETS_ASIDE) ? [] : [". To set such records aside: ", h("code", {}, `${status.command} ${SETS_ASIDE}`)];
      const corrected = others.length && error.operator ? [` Once ${error.operator} is corrected, launch it again: `, again[1], ...others] : again;
      return [["amiss", `The run ended with an error at ${lately(error?.at ?? status.at)}${why}. The next launch ${next}, and no record is lost.`, ...corrected]];
    }
    case "stopped":
      return [status.pending_elements
        ? ["warn", `Stopped at ${lately(status.at)}; ${counted(status.pending_elements, "element")} wait for the next launch.`]
        : status.waits_for?.length ? ["warn", `Stopped at ${lately(status.at)}; there may be input that was not read.`]
        : ["fine", `Stopped at ${lately(status.at)}${status.set_aside ? "" : ", with nothing left to do"}.`]];
    default:
      return [];
  }
}

function troubles(status) {
  const error = status.error;
  const sentences = (status.waits_for ?? []).map((sentence) => ["warn", upper(sentence)]);
  if (error?.again) {
    const where = [error.window && `Window ${count(error.window)}`, error.operator && `in ${error.operator}`].filter(Boolean).join(" ");
    sentences.push(["warn", `${where || "A window"} failed at ${time(error.at)} and ran again: ${firstLine(error)}`]);
  }
  for (const { text, since, details, warns, view } of status.remarks) {
    const more = view ? [" ", h("a", { href: `#/${view}` }, "More")] : [];
    sentences.push([warns ? "warn" : "note", `${upper(text)}${since ? `, since ${lately(since)}` : ""}${details && `; ${details}`}.`, ...more]);
  }
  return sentences;
}

// How far the launch has come, with what slots have read of the windows in flight.
function keepsUp(status) {
  if (status.state === "starting") return [["fine", `Starting: ${status.step}`]];
  const taken = (pick) => status.in_flight.flatMap((window) => Object.entries(window[pick] ?? {}));
  const sums = (pairs) => pairs.reduce((all, [unit, number]) => ({ ...all, [unit]: (all[unit] ?? 0) + number }), {});
  const read = Object.entries(status.read);
  const done = sums([...read, ...taken("done")]);
  const whole = sums([...read, ...Object.entries(status.queued ?? {}), ...taken("amounts")]);
  const total = (all) => Object.values(all).reduce((sum, number) => sum + number, 0);
  const isLong = status.remarks.some(({ warns, view }) => warns && view === "windows");
  const isTroubled = status.waits_for?.length || isLong; // `troubles` has these sentences
  if (total(whole) <= total(sums(read))) {
    if (isTroubled) return [];
    return [["fine", status.working.length ? "Keeping up: slots process what was found last." : "Keeping up: nothing waits."]];
  }
  const unsent = (status.inputs ?? []).filter((each) => each.unsent);
  if (unsent.length) {
    const more = unsent.map(({ operator, unsent: number }) => `${operator} found ${counted(number, "element")} more`);
    return [["note", `${amounts(done)} of ${amounts(whole)} read, and ${more.join(", ")}.`]];
  }
  const share = total(done) / total(whole);
  const units = Object.keys(whole);
  const speed = status.positions_per_second && units.length === 1 ? `, ${amount(status.positions_per_second, units[0])}/s` : "";
  const about = (seconds) => (seconds < 60 ? `${Math.round(seconds)} s` : duration(seconds));
  const [least, most] = [status.eta_least_seconds ?? 0, status.eta_most_seconds ?? 0];
  const isWide = most - least > Math.max(1, SPREAD * (status.eta_seconds ?? 0)); // as `dagkit top` decides
  const spread = isWide ? ` (${about(least)} to ${about(most)})` : "";
  const left = (status.eta_seconds ?? null) === null ? "" : `, about ${about(status.eta_seconds)} left${spread}`;
  const sentences = [[isTroubled ? "note" : "fine", h("progress", { max: "1", value: share, "aria-label": "read" }),
    ` ${partDone(share)}: ${amounts(done)} of ${amounts(whole)} read${speed}${left}.`]];
  const slow = status.working.map((each) => [each, (new Date(status.at) - new Date(each.since)) / 1000]).find(([, took]) => took > SLOW_SECONDS);
  if (slow) sentences.push(["warn", `${slow[0].operator} has worked on ${slow[0].source} for ${duration(slow[1])}${slow[0].fraction === null ? "" : `, ${partDone(slow[0].fraction)} done`}.`]);
  return sentences;
}
