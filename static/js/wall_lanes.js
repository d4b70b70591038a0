// Shows the lanes of the wall in pages that take turns, the worst first.
const LANES = 8;
const TROUBLE = 2; // ranks up to this one stay on every page
let page = 0;

const rank = (lane) => Number(lane.dataset.rank);

/** Worst first; trouble on every page, the others take turns. */
export function layOut() {
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

export function turn() {
  page += 1;
  layOut();
}
