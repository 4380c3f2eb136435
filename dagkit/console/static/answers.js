// Requests to the server that sent this page.

export const HERE = location.pathname.replace(/[^/]*$/, ""); // in a folder of applications, each has its own

export async function ask(name, parameters = {}) {
  const response = await fetch(address(name, parameters), { credentials: "same-origin" });
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

const LEAST_MILLIS = 5000, MOST_MILLIS = 30000, SHARE = 100;

// Answers that are renewed while a run lasts: the next one is due after five seconds, or, up to half a minute, a hundred
// times as long as the last one took, so that an open page costs the driver about a hundredth of a core.
export function pauses(least = LEAST_MILLIS) {
  let due = 0;
  return {
    isDue: () => performance.now() >= due,
    take: async (answer) => {
      const began = performance.now();
      // While an answer is awaited, no further one is due.
      due = Infinity;
      try {
        return await answer();
      } finally {
        const ended = performance.now();
        due = ended + Math.min(MOST_MILLIS, Math.max(least, SHARE * (ended - began)));
      }
    },
  };
}
