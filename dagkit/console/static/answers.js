// Requests to the server that sent this page.

export const HERE = location.pathname.replace(/[^/]*$/, ""); // in a folder of applications, each has its own

// `spent` is called with the milliseconds of a processor that the answer took.
export async function ask(name, parameters = {}, spent = null) {
  const response = await fetch(address(name, parameters), { credentials: "same-origin" });
  spent?.(Number(response.headers.get("server-timing")?.split("dur=")[1] ?? 0));
  if (!response.ok) throw new Error(await problem(response));
  return name.endsWith(".svg") ? response.text() : response.json();
}

// Requests that leave something for the driver.
export async function command(name, parameters = {}) {
  const response = await fetch(address(name, parameters), { method: "POST", credentials: "same-origin" });
  if (!response.ok) throw new Error(await problem(response));
  return response.json();
}

// Leave a request for the driver, and take its answer, which comes between two windows. `holds`: whether to wait on.
export async function answered(name, parameters, holds) {
  const { request } = await command(name, parameters);
  while (holds()) {
    const answer = await command("answer", { request });
    if (answer.done !== null) return answer;
    await new Promise((resume) => setTimeout(resume, 1000));
  }
  return null;
}

function address(name, parameters) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "") query.append(key, one);
  }
  return `${HERE}api/v1/${name}${query.size ? `?${query}` : ""}`;
}

async function problem(response) {
  if (response.status === 401) return "The console does not know this page any more. Open the address that dagkit printed.";
  try {
    const body = await response.json();
    return [body.problem, body.help].filter(Boolean).join(" – ");
  } catch {
    return `The server answered ${response.status}.`;
  }
}

const LEAST_MILLIS = 1000, SHARE = 100;
export const MOST_MILLIS = 30000;

// Answers that are renewed while a run lasts: the next one is due after a second, or, up to half a minute, a hundred
// times the processor time of the last one, so that each part of an open page costs the driver at most a hundredth of a
// core. How long an answer waited for others says nothing about its cost.
export function pauses() {
  let due = 0;
  return {
    isDue: () => performance.now() >= due,
    take: async (answer) => {
      let cost = 0;
      // While an answer is awaited, no further one is due.
      due = Infinity;
      try {
        return await answer((name, parameters) => ask(name, parameters, (millis) => { cost += millis; }));
      } finally {
        due = performance.now() + Math.min(MOST_MILLIS, Math.max(LEAST_MILLIS, SHARE * cost));
      }
    },
  };
}
