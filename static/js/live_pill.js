// Writes the live pill and the band under the top bar, and stops the clock while the page is not live.
import { moment } from "leaseboard/age";
import { freeze, now } from "leaseboard/clock";
import { showProblem } from "leaseboard/problem";
import { say } from "leaseboard/say";

const root = document.documentElement;
export const PATIENCE = 2; // s without a frame until a page without its socket turns grey
const LOST = "The server does not answer. This page reconnects by itself.";
export const LOOKS = {
  live: ["is-held", "held"],
  retry: ["is-late", "late"],
  connecting: ["is-late", "late"],
  stale: ["is-expired", "expired"],
  refused: ["is-expired", "expired"],
  paused: ["is-late", "late"],
};
const clock = (t) => moment(t, now());
const SAYS = {
  retry: () => "Reconnecting…",
  connecting: () => "Connecting…",
  stale: (at) => `Stale since ${clock(at)}`,
  refused: () => "No access",
  paused: (at) => `Paused since ${clock(at)}`,
};
let shown = "";
let said = ""; // the pill's text and look, written only when they change

/** `state`: of the page's socket and the cluster's watch together; see live.js. */
export function showConnection({ state, heardAt, asOf, since, detail, behind, rate, problem, partly }) {
  const lost = state === "retry" && now() - heardAt > PATIENCE;
  const word = lost ? "stale" : state;
  const at = since || heardAt;
  if (root.dataset.live !== word) root.dataset.live = word;
  freeze(word === "live" ? null : Math.min(heardAt, asOf));
  pill(word, at, behind, rate, partly);
  band(word, at, lost ? LOST : detail, Math.min(heardAt, asOf));
  showProblem(problem);
  if (word !== shown && shown) say(word === "live" ? "Live again" : `Not live: ${word}`);
  shown = word;
}

/** `partly`: of a page over clusters, how many are live, unless all are. */
function pill(word, at, behind, rate, partly) {
  const el = document.querySelector("[data-live-pill]");
  if (!el) return;
  const fresh = word === "live"; // only a live frame has the delay and the rate
  const text = SAYS[word]?.(at) ?? partly?.says ?? "Live";
  const [css, symbol] = LOOKS[(fresh && partly?.state) || word];
  const far = fresh && behind !== null ? ` · ${behind.toFixed(1)} s behind` : "";
  const often = fresh && rate !== null ? ` · ${rate < 10 ? rate : Math.round(rate)} events/s` : "";
  const whole = `${css} ${text}${far}${often}`;
  if (whole === said) return;
  said = whole;
  el.className = `live ${css}`;
  el.querySelector("use").setAttribute("href", `#st-${symbol}`);
  if (!fresh) return el.querySelector("span").replaceChildren(text);
  const live = Object.assign(document.createElement("b"), { textContent: text });
  el.querySelector("span").replaceChildren(live, aside("md-only", far), aside("lg-only", often));
}

const aside = (className, textContent) =>
  Object.assign(document.createElement("span"), { className, textContent });

function band(word, at, detail, asOf) {
  const el = document.querySelector("[data-stale-banner]");
  if (!el) return;
  el.hidden = word === "live" || word === "retry";
  if (el.hidden) return;
  const calm = word === "connecting" || word === "paused";
  el.classList.toggle("is-late", calm);
  el.classList.toggle("is-expired", !calm);
  el.querySelector("[data-stale-title]").textContent = {
    connecting: "Connecting.",
    stale: `Not live since ${clock(at)}.`,
    refused: `No access since ${clock(at)}.`,
    paused: `Paused since ${clock(at)}.`,
  }[word];
  const known = el.querySelector("[data-stale-as-of]");
  known.hidden = false;
  known.textContent = `This page shows what was known at ${clock(asOf)}.`;
  if (detail !== undefined) el.querySelector("[data-stale-text]").textContent = detail;
}
