// The frame of the console: which view is shown, the state of the run, and the control.

import { HERE, MOST_MILLIS, ask, command } from "./answers.js";
import { button, h } from "./dom.js";
import { duration, time } from "./format.js";
import { isLive } from "./operators.js";
import { compare } from "./view_compare.js";
import { configuration } from "./view_configuration.js";
import { files } from "./view_files.js";
import { graph } from "./view_graph.js";
import { log } from "./view_log.js";
import { overview } from "./view_overview.js";
import { decisions, items, splits, work } from "./view_work.js";
import { chains, windows } from "./view_windows.js";

const VIEWS = [overview, graph, windows, log, work, items, files, decisions, splits, compare, configuration, chains];
const EVERY_MILLIS = 1000; // as the driver writes its status
const found = (id) => document.getElementById(id);

// What all views share: the last overview, and the last status of a run, which changes while it runs.
const run = { overview: null, status: null, isLost: false };
let shown = null;

function start() {
  if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the address has the token
  if (HERE !== "/") document.querySelector(".brand").replaceChildren(h("a", { href: "/" }, "All applications"));
  found("views").append(...VIEWS.map((view) => h("li", {}, h("a", { href: `#/${view.id}` }, view.title))));
  addEventListener("hashchange", () => open(true));
  // Views read the overview when they open, and events renew the view that is open.
  refresh().then(() => open(false)).then(listen);
}

// `#/windows/12` opens the view "windows" with the rest "12". What is asked of tables stands after `?`.
async function open(moved) {
  const [id, ...rest] = location.hash.replace(/^#\//, "").split("?")[0].split("/").map(decodeURIComponent);
  const view = VIEWS.find((each) => each.id === id) ?? VIEWS[0];
  for (const link of found("views").querySelectorAll("a")) {
    if (link.getAttribute("href") !== `#/${view.id}`) { link.removeAttribute("aria-current"); continue; }
    link.setAttribute("aria-current", "page");
    const nav = link.closest("nav"); // on a narrow screen, it shows some views only
    nav.scrollLeft = link.offsetLeft - nav.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
  }
  document.title = `${view.title} · ${run.overview?.application ?? "dagkit"}`;
  // Until the new view is complete, no view gets the news of the run.
  shown = null;
  const main = h("div", { class: `view ${view.id}` }), reading = h("p", { class: "quiet reading", role: "status" }, "Reading…");
  found("main").replaceChildren(main, reading);
  if (moved) found("main").focus({ preventScroll: true });
  try {
    const opened = await view.open(main, run, rest.join("/"));
    if (main.isConnected) shown = opened; // another view may have been opened while the server answered
  } catch (error) {
    main.append(h("p", { class: "fault", role: "alert" }, error.message));
  } finally {
    reading.remove();
  }
}

async function refresh() {
  try {
    run.overview = await ask("overview");
    run.status = run.overview.status;
    head();
  } catch (error) {
    found("state").textContent = error.message;
  }
}

function listen() {
  let last = 0;
  const events = new EventSource(`${HERE}api/v1/events`);
  events.addEventListener("status", (event) => {
    const status = JSON.parse(event.data);
    if (!status || !run.overview) return;
    run.status = status;
    last = performance.now();
    head();
    shown?.update?.(run);
  });
  // The last news may come while a view pauses.
  setInterval(() => {
    const ago = performance.now() - last;
    if (ago > 2 * EVERY_MILLIS && ago < MOST_MILLIS + 2 * EVERY_MILLIS) shown?.update?.(run);
  }, EVERY_MILLIS);
  events.addEventListener("open", () => cutOff(false));
  events.addEventListener("error", () => cutOff(true));
}

function cutOff(isSo) {
  run.isLost = isSo && isLive(run.status); // a driver that serves its own console takes it along when it is killed
  if (!run.overview) return;
  head();
  shown?.update?.(run);
}

function head() {
  const { overview: known, status } = run;
  found("application").textContent = known.application || "no launch yet";
  const about = isLive(status);
  const { isLost } = run;
  const state = isLost ? "no answer" : status?.state ?? "";
  const chip = found("state");
  if (chip.textContent !== state) chip.textContent = state; // a screen reader announces changes only
  chip.className = `state ${isLost ? "lost" : state}`;
  found("beat").textContent = isLost ? `Last seen ${status.state} at ${time(status.at)}. The console tries again.` : about ? progress(status) : "";
  const wanted = known.allows_control && about && !isLost;
  if (wanted && !found("stop")) found("control").append(stopper());
  if (!wanted) found("control").replaceChildren();
}

const progress = (status) => `${status.step || `window ${status.in_flight[0]?.window ?? status.window}`} · launched ${duration((new Date(status.at) - new Date(status.since)) / 1000)} ago`;

function stopper() {
  const stop = button("Stop", async () => {
    if (stop.dataset.sure !== "yes") {
      stop.dataset.sure = "yes";
      stop.textContent = "Stop after this window?";
      setTimeout(() => { stop.dataset.sure = ""; stop.textContent = "Stop"; }, 5000);
      return;
    }
    stop.disabled = true;
    try {
      await command("stop");
      stop.textContent = "Stopping";
    } catch (error) {
      stop.disabled = false;
      found("beat").textContent = error.message;
    }
  }, { id: "stop", class: "danger" });
  return stop;
}

start();
