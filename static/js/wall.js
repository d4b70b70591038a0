// Runs the wall's clock and ticker, and shows NOT LIVE where nobody can miss it.
import "leaseboard/exact_times";
import { moment } from "leaseboard/age";
import { correct, freeze, now, scan } from "leaseboard/clock";
import { loosen, tighten } from "leaseboard/cut_names";
import { LOOKS, PATIENCE } from "leaseboard/live_pill";
import { startLive } from "leaseboard/live";
import { showProblem } from "leaseboard/problem";
import { afterDrawing } from "leaseboard/shared_regions";
import { served } from "leaseboard/wall_care";
import { layOut, turn } from "leaseboard/wall_lanes";

const { body } = document;
const TURN = 12_000; // ms for which the wall shows a page of lanes
const TICKER = 6_000;
const two = (n) => String(Math.floor(n)).padStart(2, "0");
const hms = (s) => `${two(s / 3600)}:${two((s / 60) % 60)}:${two(s % 60)}`;
let item = 0;

function showLine() {
  const lines = [...document.querySelectorAll("[data-ticker] > li")];
  item = lines.length ? item % lines.length : 0;
  document.querySelector("[data-ticker]")?.classList.add("ticking");
  lines.forEach((line, place) => (line.hidden = place !== item));
  if (lines.length) fit(lines[item].querySelector("p"));
}

/** Leave nothing of a sentence below its last line: names get shorter first. */
function fit(sentence) {
  const pieces = loosen(sentence);
  for (const step of ["whole", "cut", "short", "bare"]) {
    sentence.dataset.fit = step;
    if (sentence.scrollHeight <= sentence.clientHeight + 1) break;
  }
  tighten(pieces);
}

function nextLine() {
  item += 1;
  showLine();
}

function tell({ state, heardAt, asOf, detail, problem, partly }) {
  const live = state === "live";
  const retry = state === "retry" || state === "connecting";
  const from = Math.min(heardAt, asOf);
  const patient = retry && now() - from <= PATIENCE;
  const over = state === "refused" || state === "paused"; // it cannot recover by itself, so it says why
  body.dataset.live = live ? "live" : patient ? "retry" : over ? "refused" : "stale";
  Object.assign(document.querySelector("[data-why]"), { hidden: !over, textContent: over ? detail : "" });
  body.dataset.asOf = from;
  freeze(live ? null : from);
  showProblem(problem);
  const pill = document.querySelector("[data-wall-live]");
  const [css, symbol] = LOOKS[live ? (partly?.state ?? "live") : "retry"];
  pill.className = `w-live ${css}`;
  pill.querySelector("use").setAttribute("href", `#st-${symbol}`);
  pill.querySelector("span").textContent = live ? (partly?.says ?? "Live") : "Reconnecting…";
}

function tick() {
  const t = now();
  document.querySelector("[data-clock]").textContent = hms(t % 86400);
  if (body.dataset.live === "live" || body.dataset.live === "retry") return;
  const last = Number(body.dataset.asOf);
  document.querySelector("[data-not-live]").textContent = hms(Math.max(0, t - last));
  document.querySelector("[data-last-clock]").textContent = moment(last, t);
}

correct(Number(document.querySelector('meta[name="server-time"]').content));
scan();
const live = startLive(body.dataset.liveUrl, tell, { drawn: layOut, served });
const ticker = new MutationObserver(showLine);
function drawn() {
  layOut();
  showLine();
  live.show();
  for (const list of document.querySelectorAll("[data-ticker]")) ticker.observe(list, { childList: true });
}
drawn();
afterDrawing(drawn);
document.addEventListener("htmx:afterSettle", ({ target }) => {
  scan(target);
  drawn();
});
setInterval(tick, 250);
setInterval(turn, TURN);
addEventListener("resize", () => {
  layOut();
  showLine();
});
setInterval(nextLine, TICKER);
