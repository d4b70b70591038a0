// Keeps a wall well for months: it loads itself again after a new version and once a day at a calm moment, moves a little
// against burn-in, and keeps the screen awake where the browser allows it.
const HOUR = 3_600_000;
const LOOK = 60_000; // ms
const CALM_AFTER = 24 * HOUR;
const ANYHOW_AFTER = 36 * HOUR;
const [SOON, LATER] = [1000, 6000]; // ms: many walls do not come at once
const ANSWER = 10_000; // ms
const PLACES = 16; // on a circle, a minute on each
const FAR = 0.5; // its radius: half a hundredth of the screen's height
const { body } = document;
const opened = Date.now();
let place = 0;
let leaving = null;

/** Load the wall again, or what `/wall/` shows this screen now; only if the server answers. */
export async function loadAgain() {
  const there = body.dataset.screen ?? location.href;
  try {
    const answer = await fetch(there, { cache: "no-store", signal: AbortSignal.timeout(ANSWER) });
    if (answer.ok || answer.status === 403) location.replace(there);
  } catch {
    // The server is away: the wall says so, and comes back to this.
  }
}

/** The version of the server, after each opening of the socket. */
export function served(version) {
  if (version === body.dataset.version || leaving) return;
  leaving = setTimeout(() => {
    leaving = null;
    loadAgain();
  }, SOON + Math.random() * (LATER - SOON));
}

const calm = () => body.dataset.live === "live" && !document.querySelector(".w-incident, .w-lane:is(.is-expired, .is-vacant, .is-late)");

function look() {
  place = (place + 1) % PLACES;
  const angle = (2 * Math.PI * place) / PLACES;
  body.style.setProperty("--drift-x", (FAR * Math.sin(angle)).toFixed(3));
  body.style.setProperty("--drift-y", (FAR * (Math.cos(angle) - 1) * 0.5).toFixed(3));
  const age = Date.now() - opened;
  if (age > ANYHOW_AFTER || (age > CALM_AFTER && calm())) loadAgain();
}

async function stayAwake() {
  if (document.hidden) return; // the browser lets go of it then, and gives it to no hidden page
  try {
    await navigator.wakeLock?.request("screen");
  } catch {
    // Not allowed here, such as on low battery.
  }
}

setInterval(look, LOOK);
stayAwake();
document.addEventListener("visibilitychange", stayAwake);
