// The one clock. Everything that ages is drawn from data attributes and the server's time:
//   [data-fresh]  data-observed (epoch s) data-duration (s)   the bar and the age of the last renewal
//   [data-ring]   the same                                    the countdown
//   [data-since] [data-until]  epoch s                        "4 h 12 m"
//   [data-passed] [data-left]  s since, or until, so many after data-observed
// It never decides in which state a Lease is: the server does. While nothing is heard it stands still.
const CIRCUMFERENCE = 188.5; // r = 30
const meta = document.querySelector('meta[name="server-time"]');
let ahead = meta ? Number(meta.content) - Date.now() / 1000 : 0;
let frozenAt = null;

export const now = () => Date.now() / 1000 + ahead;
export const shownNow = () => frozenAt ?? now();

/** Go by the server's time: `serverNow` is epoch seconds of a message that came just now. */
export function correct(serverNow) {
  const next = serverNow - Date.now() / 1000;
  // A late message makes the server look slow: only a large difference moves the clock back.
  if (next > ahead || ahead - next > 0.5) ahead = next;
}

/** Stand still at `at` (epoch seconds); null goes on. */
export function freeze(at) {
  if (at === frozenAt) return;
  frozenAt = at;
  tick();
}

export function age(seconds) {
  const s = Math.max(0, seconds);
  if (s < 9.95) return `${s.toFixed(1)} s`;
  const n = Math.floor(s);
  if (n < 60) return `${n} s`;
  if (n < 3600) return `${Math.floor(n / 60)} m ${n % 60} s`;
  if (n < 86400) return `${Math.floor(n / 3600)} h ${Math.floor((n % 3600) / 60)} m`;
  return `${Math.floor(n / 86400)} d ${Math.floor((n % 86400) / 3600)} h`;
}

const rough = (seconds) => age(seconds).split(" ").slice(0, 2).join(" ");

function paint(el) {
  const { since, until, observed, duration, passed, left } = el.dataset;
  const t = shownNow();
  if (since !== undefined) el.textContent = age(t - since);
  else if (until !== undefined) el.textContent = age(until - t);
  else if (passed !== undefined) el.textContent = age(t - observed - passed);
  else if (left !== undefined) el.textContent = age(Number(observed) + Number(left) - t);
  else if ("fresh" in el.dataset) paintBar(el, t - observed, Number(duration));
  else paintRing(el, t - observed, Number(duration));
}

function paintBar(el, elapsed, duration) {
  const left = duration ? Math.min(100, Math.max(0, 100 * (1 - elapsed / duration))) : 0;
  el.querySelector(".left")?.setAttribute("width", left.toFixed(1));
  el.querySelector(".age").textContent = age(elapsed) + ("short" in el.dataset ? "" : " ago");
}

function paintRing(el, elapsed, duration) {
  const left = duration - Math.max(0, elapsed);
  const share = Math.max(0, left / duration);
  el.querySelector(".rv").setAttribute("stroke-dashoffset", (CIRCUMFERENCE * (1 - share)).toFixed(1));
  const fine = left > 0 && left < 99.95; // what is longer does not fit to a tenth
  el.querySelector("b").textContent = fine ? left.toFixed(1) : rough(Math.abs(left));
  el.querySelector("small").textContent = left <= 0 ? "overdue" : fine ? "s left" : "left";
}

// Only what is on screen is painted.
const seen = new Set();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) paint(target);
    seen[isIntersecting ? "add" : "delete"](target);
  }
});
const AGING = "[data-fresh], [data-ring], [data-since], [data-until], [data-passed], [data-left]";

/** Take up what ages inside `root`, and `root` itself. */
export function scan(root = document) {
  if (root.matches?.(AGING)) observer.observe(root);
  for (const el of root.querySelectorAll(AGING)) observer.observe(el);
}

function tick() {
  for (const el of seen) {
    if (el.isConnected) paint(el);
    else {
      seen.delete(el);
      observer.unobserve(el);
    }
  }
}
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
setInterval(tick, calm ? 1000 : 250);
