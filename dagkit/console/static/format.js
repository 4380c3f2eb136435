// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 1 });

export const count = (number) => (number === null || number === undefined ? null : whole.format(number));
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
export const rate = (number) => (number === null || number === undefined ? null : `${(number < 1 ? small : short).format(number)}/s`);
// For the labels of an axis.
export const compact = (number) => short.format(number);
export const percent = (share) => `${Math.round(share * 100)} %`;
// Unfinished work is never 100 %: a slot has read all of its input before it has processed the last items.
export const partDone = (share) => percent(Math.min(share, 0.99));

export function bytes(number) {
  if (number === null || number === undefined) return null;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let index = 0;
  while (Math.abs(number) >= 1000 && index < units.length - 1) {
    number /= 1000;
    index += 1;
  }
  return `${index ? number.toFixed(1) : whole.format(number)} ${units[index]}`;
}

// The busy time of an operator's busiest partition divided by the mean, and that partition.
export const skew = (operator) => (operator.skew === null ? null : `${operator.skew.toFixed(1)} (partition ${operator.by_partition[0].partition})`);

// Positions of an operator in their unit, and sums of positions by their unit.
export const amount = (number, unit) => (unit === "byte" ? bytes(number) : counted(Math.round(number), unit));
export const amounts = (sums) => Object.entries(sums ?? {}).map(([unit, number]) => amount(number, unit)).join(" and ") || "0";

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return null;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

const two = (number) => String(number).padStart(2, "0");

export function time(text) {
  if (!text) return null;
  const at = new Date(text);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function moment(text) {
  if (!text) return null;
  const at = new Date(text);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time(text)}`;
}

export const ago = (text) => (text ? `${duration(Math.max(0, (Date.now() - new Date(text)) / 1000))} ago` : null);

// To the thousandth of a second.
export const instant = (text) => (text ? `${lately(text)}.${String(new Date(text).getMilliseconds()).padStart(3, "0")}` : null);

// A moment of today by its time only.
export const lately = (text) => (new Date(text).toDateString() === new Date().toDateString() ? time(text) : moment(text));
