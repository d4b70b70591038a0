// Puts new changes on top of a feed; a pause holds them back and loses none.
import { scan } from "leaseboard/clock";

const MANY = 3; // lines that come at once
let paused = false;
let held = [];

/** The number of the last change that the page has, or null without a feed; and how it wants later ones. */
export function feedShown() {
  const list = document.querySelector("[data-feed]");
  return { feed: list ? Number(list.dataset.feed) : null, feed_as: list?.dataset.feedAs ?? "line" };
}

/** Note the last change for a page that draws no lines, or fetches them all. */
export function seen(seq) {
  const list = document.querySelector("[data-feed]");
  if (list) list.dataset.feed = seq;
}

/** `all`: lines, oldest first, with the number of each; `seq`: the last one. Returns whether any concerns the page. */
export function addLines(all, numbers, seq) {
  const list = document.querySelector("[data-feed]");
  if (!list) return false;
  const shown = Number(list.dataset.feed);
  const lines = all.filter((_, index) => numbers[index] > shown);
  list.dataset.feed = Math.max(shown, seq);
  if (!("feedLimit" in list.dataset)) return true; // it draws no lines
  if (paused) held.push(...lines);
  else return addAll(list, lines);
  return false;
}

/** Add the newest that fit; none glows when everything is new. */
function addAll(list, lines) {
  const { feedOf, feedLimit } = list.dataset;
  const room = feedOf ? lines.length : Number(feedLimit);
  return lines.slice(-room).map((html) => add(list, html, lines.length <= MANY)).includes(true);
}

function add(list, html, glows) {
  const line = made(html);
  const { feedOf, feedLimit } = list.dataset;
  if (feedOf && line.dataset.of !== feedOf) return false;
  line.classList.toggle("new", glows);
  list.prepend(line);
  scan(line);
  while (list.children.length > Number(feedLimit)) list.lastElementChild.remove();
  if (list.nextElementSibling?.matches(".empty, .w-none")) list.nextElementSibling.remove();
  return true;
}

/** Draw the lines again whose cause became known. */
export function explainLines(lines) {
  for (const html of lines) {
    const line = made(html);
    const old = [...document.querySelectorAll("[data-feed] > [data-of]")].find((other) => isSame(other, line));
    held = held.map((other) => (isSame(made(other), line) ? html : other));
    if (!old || old.contains(document.activeElement)) continue;
    line.hidden = old.hidden;
    old.replaceWith(line);
    scan(line);
  }
}

const isSame = (one, other) =>
  one.dataset.of === other.dataset.of &&
  one.dataset.change === other.dataset.change &&
  one.querySelector("time").dateTime === other.querySelector("time").dateTime;

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
