// The brush over the strip: drag the window, an edge, or a new window. The lanes follow when it is released.
import { now } from "leaseboard/clock";
import { inWords, urlWith } from "leaseboard/stretch";
import { keepAt } from "leaseboard/timeline_url";

const NARROWEST = 10; // s
const SETTLED = 400; // ms after the last key

let asked = ""; // the path of the brush's request under way
const outdated = new Set(); // paths of requests since which the window was moved again

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { path } = detail.requestConfig;
  if (path === asked) asked = "";
  if (outdated.delete(path)) detail.shouldSwap = false;
});

export function startBrush(brush) {
  const win = brush.querySelector(".win");
  const [since, until] = [Number(brush.dataset.start), Number(brush.dataset.end)];
  let [from, to] = [Number(brush.dataset.from), Number(brush.dataset.to)];
  const latest = Math.min(until, Math.max(to, now()));
  const least = Math.max(NARROWEST, (until - since) / 500);
  let timer = null;

  function put() {
    const share = (t) => ((t - since) / (until - since)) * 100;
    win.style.left = `${share(Math.max(since, from))}%`;
    win.style.width = `${share(Math.min(until, to)) - share(Math.max(since, from))}%`;
    win.setAttribute("aria-valuemin", since);
    win.setAttribute("aria-valuemax", until);
    win.setAttribute("aria-valuenow", Math.round(from));
    win.setAttribute("aria-valuetext", inWords(from, to, now()));
  }

  function moveTo(start, end) {
    if (asked) outdated.add(asked);
    [from, to] = [start, end];
    put();
  }

  function shift(by, [start, end] = [from, to]) {
    const moved = Math.min(latest - end, Math.max(since - start, by));
    moveTo(start + moved, end + moved);
  }

  function go() {
    const url = keepAt(urlWith(from, to));
    asked = url.pathname + url.search;
    outdated.delete(asked);
    htmx.ajax("GET", asked, { target: "#board", swap: "outerHTML" });
  }

  function drag(event) {
    const box = brush.getBoundingClientRect();
    const at = (e) => Math.min(latest, Math.max(since, since + ((e.clientX - box.left) / box.width) * (until - since)));
    const [held, start, end, grip] = [at(event), from, to, gripOf(event, win)];
    const move = (e) => {
      const now = at(e);
      if (grip === "window") return shift(now - held, [start, end]);
      const fixed = { left: end, right: start }[grip] ?? held;
      if (now < fixed) moveTo(Math.min(now, fixed - least), fixed);
      else moveTo(fixed, Math.max(now, fixed + least));
    };
    const stop = () => {
      brush.removeEventListener("pointermove", move);
      if (from !== start || to !== end) go();
    };
    brush.setPointerCapture(event.pointerId);
    brush.addEventListener("pointermove", move);
    brush.addEventListener("pointerup", stop, { once: true });
    brush.addEventListener("pointercancel", stop, { once: true });
  }

  brush.addEventListener("pointerdown", drag);
  win.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1, PageDown: -1, PageUp: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    const step = (way * (until - since)) / 100;
    if (event.key.startsWith("Page")) shift(way * (to - from));
    else if (event.shiftKey) moveTo(from, Math.min(latest, Math.max(from + least, to + step)));
    else shift(step);
    clearTimeout(timer);
    timer = setTimeout(go, SETTLED);
  });
  put();
}

function gripOf({ target }, win) {
  if (target === win.firstElementChild) return "left";
  if (target === win.lastElementChild) return "right";
  const fills = win.offsetWidth > 0.9 * win.parentElement.offsetWidth; // it could not be moved
  return target === win && !fills ? "window" : "new";
}
