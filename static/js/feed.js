// Puts new changes on top of a feed; a pause holds them back and loses none.
import { scan } from "leaseboard/clock";
import { steadily } from "leaseboard/steady";

const MANY = 3; // lines that come at once
let paused = false;
let held = [];

/** The number of the last change that the page has, or null without a feed; and how it wants later ones. */
export function feedShown() {
  const list = document.querySelector("[data-feed]");
  return { feed: list ? Number(list.dataset.feed) : null, feed_as: list?.dataset.feedAs ?? "line" };
}

/** Note the last change for a page that draws no lines, or fetches them all. Returns how many of a frame's changes it lacked. */
export function seen({ seq, numbers = [], changes = 0 }) {
  const list = document.querySelector("[data-feed]");
  if (!list || !seq) return changes; // a feed of many has no number
  const lacked = numbers.filter((number) => number > list.dataset.feed).length;
  list.dataset.feed = seq;
  return lacked;
}

/** `lines`: oldest first, some of which the page may have; `seq`: the last one's number. Returns whether any concerns the page. */
export function addLines(lines, seq) {
  const list = document.querySelector("[data-feed]");
  if (!list) return false;
  list.dataset.feed = seq;
  if (!("feedLimit" in list.dataset)) return true; // it draws no lines
  if (paused) held.push(...lines);
  else return addAll(list, lines);
  return false;
}

const find = (list, { dataset }) => list.querySelector(`:scope > [data-id="${dataset.id}"]`);
const moment = (line) => Number(line.dataset.at);

/** Add the lines that the list lacks; none glows when everything is new. */
function addAll(list, lines) {
  const { feedOf, feedLimit } = list.dataset;
  const fresh = lines.map(made).filter((line) => (!feedOf || line.dataset.of === feedOf) && !find(list, line));
  const add = (line) => {
    line.classList.toggle("new", fresh.length <= MANY);
    list.insertBefore(line, [...list.children].find((other) => moment(other) <= moment(line)) ?? null);
  };
  if (fresh.length) steadily([list], () => (fresh.forEach(add), shorten(list)));
  for (const line of fresh) if (line.isConnected) scan(line);
  if (fresh.length && list.nextElementSibling?.matches(".empty, .w-none")) list.nextElementSibling.remove();
  return fresh.length > 0;
}

/** All but the newest lines; those stay that the link to older ones does not lead to: <div data-feed-end="id of the last line before these"> */
function tooMany(list) {
  const lines = [...list.children];
  const end = document.querySelector("[data-feed-end]")?.dataset.feedEnd;
  const led = end === undefined ? 0 : lines.findIndex(({ dataset }) => dataset.id === end) + 1 || lines.length;
  return lines.slice(Math.max(led, list.dataset.feedLimit));
}

const shorten = (list) => tooMany(list).forEach((line) => line.remove());

document.addEventListener("htmx:afterSettle", () => {
  const list = document.querySelector("[data-feed-limit]");
  if (list && tooMany(list).length) steadily([list], () => shorten(list));
});

/** Draw the lines again whose cause became known. */
export function explainLines(lines) {
  for (const html of lines) {
    const line = made(html);
    const old = document.querySelector(`[data-feed] > [data-id="${line.dataset.id}"]`);
    held = held.map((other) => (made(other).dataset.id === line.dataset.id ? html : other));
    if (!old || old.contains(document.activeElement)) continue;
    line.hidden = old.hidden;
    steadily([old.parentElement], () => old.replaceWith(line));
    scan(line);
  }
}

function made(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

export function startPause() {
  const button = document.querySelector("[data-pause]");
  button?.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", paused);
    button.textContent = paused ? "Go on" : "Pause";
    if (paused) return;
    const list = document.querySelector("[data-feed]");
    addAll(list, held);
    held = [];
  });
}
