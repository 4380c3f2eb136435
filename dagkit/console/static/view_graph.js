// The graph, drawn by the server; live figures are written on it.

import { ask, pauses } from "./answers.js";
import { button, figures, h, section, table } from "./dom.js";
import { failures } from "./failures.js";
import { asReported, isLive, operators } from "./operators.js";
import { tap } from "./tap.js";
import { amount, amounts, count, duration, percent, rate, skew } from "./format.js";

export const graph = { id: "graph", title: "Graph", open };

const LEGIBLE = 0.35, LARGEST = 2; // a picture is first shown whole, unless it would be smaller than this
const READABLE = 0.7, FOUND = 12;
const SVG = "http://www.w3.org/2000/svg";

async function open(main, run, wanted) {
  const state = { view: "logical", opened: new Set(), zoom: "first", scale: 1 };
  const bar = h("div", { class: "bar", role: "toolbar", "aria-label": "Graph" });
  const canvas = h("div", { class: "canvas", tabindex: "0", role: "region", "aria-label": "Graph" }, h("p", { class: "quiet wait" }, "Drawing…"));
  const about = h("div", { class: "about", "aria-live": "polite" });
  const names = h("datalist", { id: "names" });
  const field = h("input", { type: "search", list: "names", "aria-label": "Find an operator", placeholder: "Find an operator", autocomplete: "off" });
  const search = h("form", { role: "search", onsubmit: (event) => { event.preventDefault(); void find(); } }, field, names);
  field.addEventListener("input", (event) => void (event.inputType ? suggest() : find())); // a choice from the list has no type
  const below = h("div", {}), legend = h("span", { class: "quiet" });
  main.append(h("div", { class: "tools" }, bar, search, legend), h("div", { class: "beside" }, canvas, about), below);
  const turn = pauses();
  let drawing = null, streams = [];

  async function draw() {
    const asked = { view: state.view, open: [...state.opened] };
    const shape = Math.round((10 * canvas.clientWidth) / tallest()) * 10 || null; // in per cent, in steps of ten
    const [text, picture] = await Promise.all([ask("graph.svg", { ...asked, shape }), ask("graph", asked)]);
    if (!canvas.isConnected) return; // another view was opened meanwhile
    streams = streamsOf(picture);
    drawing = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
    drawing.setAttribute("role", "group");
    drawing.setAttribute("aria-label", `${state.view} graph`);
    canvas.replaceChildren(drawing);
    for (const box of drawing.querySelectorAll(".box")) prepare(box);
    for (const label of drawing.querySelectorAll("g.stream, g.wire:has(text)")) {
      const stream = streams.find((each) => isNamed(each, label.dataset.stream));
      if (stream?.tails[0]) label.addEventListener("click", () => void details(run, stream.tails[0].box, outputs(stream.tails[0].box)).then((parts) => about.replaceChildren(...parts)));
    }
    size();
    tools();
    await live();
  }

  // The figures of the operators that are drawn.
  async function live() {
    const names = [...drawing.querySelectorAll(".box:not(.module)")].map((box) => box.dataset.name);
    const found = run.status && names.length ? (await turn.take((ask) => ask("operators", { name: names, limit: 500 }))).rows : [];
    annotate(drawing, streams, found, isLive(run.status));
    legend.textContent = !run.status ? "" : isLive(run.status) ? "On the streams: items per second, and what waits." : `On the streams: the items of the last launch${asReported(run.status)}.`;
    const error = run.status?.error;
    if (error?.operator && !error.again) markFailed(error, names.includes(error.operator) ? [] : (await places(`name="${error.operator}"`)).rows.flatMap(({ frames }) => frames));
  }

  // Mark the operator that ended the run, or the folded frame that holds it.
  function markFailed({ operator, window }, frames) {
    for (const box of drawing.querySelectorAll(".box")) {
      if (box.dataset.name !== operator && !frames.includes(box.dataset.name)) continue;
      box.classList.add("failed");
      box.setAttribute("aria-label", `${box.getAttribute("aria-label")}, failed`);
      beside(box, "start", -4, `✕ failed${window ? ` in window ${count(window)}` : ""}`, "live bad");
    }
  }

  const places = (like) => ask("places", { view: state.view, like, limit: FOUND });

  async function suggest() {
    const { rows } = await places(field.value);
    names.replaceChildren(...rows.map((row) => h("option", { value: row.name }, row.about)));
  }

  // Open the frames around the operator, show it in the middle, and what is known of it.
  async function find(wanted = field.value.trim()) {
    if (!wanted) return;
    const { rows } = await places(wanted);
    const place = rows.find((row) => row.name === wanted) ?? rows[0];
    field.setCustomValidity(place ? "" : "No operator has this name.");
    field.reportValidity();
    if (!place) return;
    for (const frame of place.frames) state.opened.add(frame);
    await draw();
    if (state.scale < READABLE) { state.zoom = 0; size(); }
    const box = await describe(place.name);
    box?.scrollIntoView({ block: "center", inline: "center" });
    box?.focus({ preventScroll: true });
  }

  // Show what is known of an operator beside the drawing, which becomes smaller by that.
  async function describe(name) {
    about.replaceChildren(...await details(run, name, outputs(name)));
    if (["first", "fit"].includes(state.zoom)) size();
    const box = [...drawing.querySelectorAll(".box")].find((each) => each.dataset.name === name);
    box?.scrollIntoView({ block: "nearest", inline: "nearest" });
    return box;
  }

  // The streams that leave an operator, if items can be shown.
  function outputs(name) {
    if (!isLive(run.status)) return [];
    const found = streams.flatMap((stream) => stream.tails.filter((tail) => tail.box === name && tail.port).map((tail) => [`${name}.${tail.port}`, stream.stream]));
    return [...new Map(found)];
  }

  function prepare(box) {
    const name = box.dataset.name, folds = box.classList.contains("module");
    box.setAttribute("tabindex", "0");
    box.setAttribute("role", "button");
    box.setAttribute("aria-label", folds ? `${box.querySelector("title").textContent}: open` : name);
    const act = () => (folds ? (state.opened.add(name), void draw()) : void describe(name));
    box.addEventListener("click", act);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
    });
  }

  function tools() {
    const choice = (view, title) => button(title, () => { state.view = view; state.opened.clear(); void draw(); }, { "aria-pressed": String(state.view === view) });
    const zoom = (step, title, name) => button(title, () => { state.zoom = step ? (Number(state.zoom) || 0) + step : 0; size(); }, { "aria-label": name });
    bar.replaceChildren(
      choice("logical", "Logical"), choice("physical", "Physical"),
      zoom(-1, "−", "Smaller"), zoom(0, "1:1", "Natural size"), zoom(1, "+", "Larger"),
      button("Fit", () => { state.zoom = "fit"; size(); }),
      ...[...state.opened].map((name) => button(`Close ${name}`, () => { state.opened.delete(name); void draw(); })),
    );
  }

  function tallest() { return parseFloat(getComputedStyle(canvas).maxHeight); }

  function size() {
    const [, , wide, high] = drawing.getAttribute("viewBox").split(" ").map(Number);
    const fitting = Math.min(LARGEST, (canvas.clientWidth - 2) / wide, (tallest() - 2) / high);
    const scale = { first: Math.max(LEGIBLE, fitting), fit: fitting }[state.zoom] ?? 1.25 ** state.zoom;
    state.scale = scale;
    drawing.setAttribute("width", wide * scale);
    drawing.setAttribute("height", high * scale);
  }

  await draw().catch((error) => { main.replaceChildren(); throw error; }); // no launch recorded a plan
  if (wanted) await find(wanted);
  const figures = run.status ? await operators(below, run) : null;
  return {
    update: () => {
      if (turn.isDue()) void live().catch(() => {}); // the header shows that there is no answer
      figures?.update(run);
    },
  };
}

// The streams with the operators at their ends, and how many streams each of these has.
function streamsOf(picture) {
  const leaving = {}, entering = {};
  for (const wire of picture.wires) {
    for (const tail of wire.tails) leaving[tail.box] = (leaving[tail.box] ?? 0) + 1;
    for (const head of wire.heads) entering[head.box] = (entering[head.box] ?? 0) + 1;
  }
  return picture.wires.map((wire) => ({ ...wire, leaving: leaving[wire.tails[0]?.box], entering: entering[wire.heads[0]?.box] }));
}

const isNamed = (stream, name) => stream.stream === name || stream.stream.endsWith(`$${name}`);

// Writes what flows and waits on the streams, how busy the operators are, and marks the busiest.
function annotate(drawing, streams, operators, live) {
  for (const old of drawing.querySelectorAll(".live")) old.remove();
  const known = new Map(operators.map((each) => [each.name, each]));
  for (const box of drawing.querySelectorAll(".box")) {
    const each = known.get(box.dataset.name);
    box.classList.toggle("busiest", (live && each?.busiest) ?? false);
    if (!each) continue;
    const rejected = each.rejected ? `${count(each.rejected)} rejected` : null;
    box.setAttribute("aria-label", [live
      ? `${each.name}: receives ${rate(each.received_per_second)}, sends ${rate(each.sent_per_second)}, busy ${percent(each.busy)}, ${amount(each.waiting ?? 0, each.unit)} wait`
      : `${each.name}: received ${count(each.received)}, sent ${count(each.sent)}`, rejected].filter(Boolean).join(", "));
    if (live && each.busy >= 0.05) beside(box, "end", -4, percent(each.busy), "live");
    if (rejected) beside(box, "start", 12, rejected, "live bad");
  }
  // Streams of several modules may have one name: each label takes the next of them.
  const written = new Set();
  for (const label of drawing.querySelectorAll("g.stream, g.wire:has(text)")) {
    const name = label.dataset.stream;
    const stream = streams.find((each) => !written.has(each) && isNamed(each, name));
    if (stream) written.add(stream), label.append(...flow(label, stream, known, live));
  }
}

// A word above a box, or below it if `by` is positive.
function beside(box, end, by, text, kind) {
  const edge = box.querySelector("rect");
  const [x, y, wide, high] = ["x", "y", "width", "height"].map((name) => Number(edge.getAttribute(name)));
  box.append(word(text, end === "end" ? x + wide : x, by > 0 ? y + high + by : y + by, end, kind));
}

// Items per second below the name of a stream, or all that passed, and below that what waits at its end.
function flow(label, stream, known, live) {
  const texts = label.querySelectorAll("text");
  const [x, y] = ["x", "y"].map((name) => Number(texts[texts.length - 1].getAttribute(name)));
  const source = known.get(stream.tails[0]?.box), sink = known.get(stream.heads[0]?.box);
  // Operators count items over all of their streams, so only an end with one stream knows the rate of this one.
  const [sent, received] = live ? ["sent_per_second", "received_per_second"] : ["sent", "received"];
  const flows = stream.leaving === 1 ? source?.[sent] : stream.entering === 1 ? sink?.[received] : null;
  const sums = {};
  for (const head of stream.heads)
    if (known.get(head.box)?.pending[head.port]) sums[known.get(head.box).unit] = (sums[known.get(head.box).unit] ?? 0) + known.get(head.box).pending[head.port];
  const queued = Object.keys(sums).length;
  const lines = [flows ? [(live ? rate : count)(flows), "live"] : null, queued ? [`${amounts(sums)} wait`, "live queue"] : null].filter(Boolean);
  return lines.map(([text, kind], index) => word(text, x, y + 12 * (index + 1), "middle", kind));
}

function word(text, x, y, anchor, kind) {
  const made = document.createElementNS(SVG, "text");
  for (const [name, value] of [["x", x], ["y", y], ["text-anchor", anchor], ["class", kind]]) made.setAttribute(name, value);
  made.textContent = text;
  return made;
}

// How the work is divided among partitions: those with the most busy time.
function divided(each) {
  if (!each?.by_partition.length) return [];
  return [section("Partitions", table("Partitions", [
    ["Partition", (one) => count(one.partition), "number"],
    ["Of its busy time", (one) => percent(one.busy), "number"],
    ["Of what it received or read", (one) => percent(one.taken), "number"],
  ], each.by_partition))];
}

async function details(run, name, outputs) {
  const [planned, { rows: [each] }] = await Promise.all([ask("operator", { name }).catch(() => null), ask("operators", { name })]); // unifiers are no operators
  return [
    section(name, h("p", { class: "quiet path" }, planned?.class ?? ""), each ? lately(each) : null),
    ...(run.status?.error?.operator === name ? failures(run) : []),
    ...divided(each),
    ...(outputs.length ? [section("Items that pass", ...outputs.map(([output, stream]) => tap(output, stream)))] : []),
    ...(planned ? [settings("Properties", planned.properties), settings("Attributes", planned.attributes)] : []),
  ];
}

function lately(each) {
  return figures([
    ["Stage", each.stage],
    ["Partitions", count(each.partitions), each.wanted === each.partitions ? null : `${count(each.wanted)} wanted`],
    ["Received", count(each.received), rate(each.received_per_second)],
    ["Sent", count(each.sent), rate(each.sent_per_second)],
    ["Busy", percent(each.busy), "of the time of its slots"],
    ["Skew", skew(each), each.skew === null ? null : "busiest partition / mean"],
    ["Waiting", amount(each.waiting ?? 0, each.unit), each.eta_seconds === null ? null : `${duration(each.eta_seconds)} left`],
  ]);
}

function settings(title, values) {
  const rows = Object.entries(values).filter(([, value]) => value !== null);
  return section(title, table(title, [
    ["Name", ([name]) => name],
    ["Value", ([, value]) => JSON.stringify(value), "path"],
  ], rows, "None is set."));
}
