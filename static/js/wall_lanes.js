// Shows as many lanes of the wall as it has rows: incidents first, then trouble, the others in pages that take turns. Where
// trouble leaves them too few rows, the last of these counts those that have none.
import { loosen, tighten } from "leaseboard/cut_names";

const TROUBLE = ["expired", "flapping", "vacant", "late"]; // the worst first: these stay on every page
const INCIDENT = 2; // rows
const FEW = 3; // rows: fewer are no page of calm lanes
let page = 0;

const rank = (lane) => Number(lane.dataset.rank);
/** The place of its word in TROUBLE, or behind them; the ranks of what flaps lie between 0 and 1. */
const place = (lane) => Math.ceil(rank(lane)) + (rank(lane) >= 1 ? 1 : 0);
/** In trouble, the longest first; others by name. */
const since = (lane) => (place(lane) < TROUBLE.length && Number(lane.querySelector("[data-since]")?.dataset.since)) || 0;

/** Put the lanes into this order: only those that stand elsewhere are moved. */
function arrange(lanes, sorted) {
  const list = lanes[0]?.parentElement;
  let [next] = lanes;
  for (const lane of sorted) {
    if (next !== lane && next?.nextElementSibling === lane) next.remove(); // its turn comes later
    if (next?.isConnected === false) next = lane;
    if (next === lane) next = lane.nextElementSibling;
    else list.insertBefore(lane, next);
  }
}

/** Worst first; what has no row is counted in the last one. */
export function layOut() {
  const list = document.querySelector("[data-lanes]");
  if (!list) return;
  list.classList.add("paged");
  const lanes = [...list.children].filter((el) => el.dataset.tile);
  const sorted = lanes.toSorted(
    (a, b) => rank(a) - rank(b) || since(a) - since(b) || (a.dataset.tile < b.dataset.tile ? -1 : 1),
  );
  const rest = list.querySelector("[data-rest]");
  arrange(lanes, sorted);
  const bad = sorted.filter((lane) => place(lane) < TROUBLE.length);
  const beyond = rest.dataset.beyond.split(" ").map(Number); // not on this page, as TROUBLE
  const told = list.querySelectorAll("[data-incident]").length;
  const rows = Number(getComputedStyle(list).getPropertyValue("--lanes")) - INCIDENT * told;
  const crowded = beyond.reduce((sum, number) => sum + number, bad.length) > rows;
  const kept = bad.slice(0, crowded ? rows - 1 : rows);
  const more = TROUBLE.map((word, n) => [
    beyond[n] + bad.slice(kept.length).filter((lane) => place(lane) === n).length,
    word,
  ]);
  const calm = sorted.slice(bad.length);
  const left = crowded ? 0 : rows - kept.length;
  const counted = left > 0 && left < FEW && calm.length > left;
  const size = counted ? left - 1 : left;
  if (counted) more.push([calm.length - size, "in order"]);
  rest.hidden = !crowded && !counted;
  rest.textContent = more
    .filter(([number]) => number)
    .map(([number, word]) => `${number.toLocaleString("en")} more ${word}`)
    .join(", ");
  const pages = size && !counted ? Math.max(1, Math.ceil(calm.length / size)) : 1;
  page %= pages;
  const visible = new Set([...kept, ...calm.slice(page * size, (page + 1) * size)]);
  const appear = [...visible].filter((lane) => lane.hidden);
  // To write what it says already would make the browser compute its style again.
  for (const lane of sorted) if (lane.hidden === visible.has(lane)) lane.hidden = !lane.hidden;
  tighten(appear.flatMap(loosen)); // what was drawn while it was hidden had no width
  document.querySelector("[data-dots]").hidden = pages === 1;
  document.querySelector("[data-page-no]").textContent = `${page + 1} / ${pages}`;
}

export function turn() {
  page += 1;
  layOut();
}
