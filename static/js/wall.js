// The wall: clock, pages of lanes, ticker, and the state nobody may miss: NOT LIVE.
import { moment } from "leaseboard/age";
import { correct, freeze, now, scan } from "leaseboard/clock";
import { PATIENCE } from "leaseboard/connection";
import { startLive } from "leaseboard/live";
import { showProblem } from "leaseboard/problem";
import { afterDrawing } from "leaseboard/regions";

const { body } = document;
const LANES = 8;
const TURN = 12_000; // ms a page of lanes stands
const TICKER = 6_000;
const TROUBLE = 2; // ranks up to this one stay on every page
const two = (n) => String(Math.floor(n)).padStart(2, "0");
const hms = (s) => `${two(s / 3600)}:${two((s / 60) % 60)}:${two(s % 60)}`;
let page = 0;
let item = 0;

const rank = (lane) => Number(lane.dataset.rank);

/** Worst first; trouble on every page, the others take turns. */
function layOut() {
  const list = document.querySelector("[data-lanes]");
  if (!list) return;
  list.classList.add("paged");
  const lanes = [...list.children].filter((el) => el.dataset.tile);
  const sorted = lanes.toSorted(
    (a, b) => rank(a) - rank(b) || (a.dataset.tile < b.dataset.tile ? -1 : 1),
  );
  if (sorted.some((lane, place) => lane !== lanes[place])) list.append(...sorted);
  const bad = sorted.filter((lane) => rank(lane) <= TROUBLE);
  const kept = bad.slice(0, LANES - 1);
  const rest = sorted.filter((lane) => !kept.includes(lane));
  const size = LANES - kept.length;
  const pages = Math.max(1, Math.ceil(rest.length / size));
  page %= pages;
  const visible = new Set([...kept, ...rest.slice(page * size, (page + 1) * size)]);
  for (const lane of sorted) lane.hidden = !visible.has(lane);
  document.querySelector("[data-dots]").hidden = pages === 1;
  document.querySelector("[data-page-no]").textContent = `${page + 1} / ${pages}`;
}

function turn() {
  page += 1;
  layOut();
}

function showLine() {
  const lines = [...document.querySelectorAll("[data-ticker] > li")];
  item = lines.length ? item % lines.length : 0;
  document.querySelector("[data-ticker]").classList.add("ticking");
  lines.forEach((line, place) => (line.hidden = place !== item));
}

function nextLine() {
  item += 1;
  showLine();
}

function tell({ state, heardAt, asOf, detail, problem }) {
  const live = state === "live";
  const retry = state === "retry" || state === "connecting";
  const from = Math.min(heardAt, asOf);
  const patient = retry && now() - from <= PATIENCE;
  const over = state === "refused"; // the page does not come back by itself: it says why
  body.dataset.live = live ? "live" : patient ? "retry" : over ? "refused" : "stale";
  Object.assign(document.querySelector("[data-why]"), { hidden: !over, textContent: over ? detail : "" });
  body.dataset.asOf = from;
  freeze(live ? null : from);
  showProblem(problem);
  const pill = document.querySelector("[data-wall-live]");
  pill.className = `w-live ${live ? "is-held" : "is-late"}`;
  pill.querySelector("use").setAttribute("href", live ? "#st-held" : "#st-late");
  pill.querySelector("span").textContent = live ? "Live" : "Reconnecting…";
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
const live = startLive(body.dataset.liveUrl, tell, { drawn: layOut });
const ticker = new MutationObserver(showLine);
function drawn() {
  layOut();
  showLine();
  live.show();
  ticker.observe(document.querySelector("[data-ticker]"), { childList: true });
}
drawn();
afterDrawing(drawn);
document.addEventListener("htmx:afterSettle", ({ target }) => {
  scan(target);
  drawn();
});
setInterval(tick, 250);
setInterval(turn, TURN);
setInterval(nextLine, TICKER);
