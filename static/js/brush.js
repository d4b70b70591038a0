// The brush over the strip: drag the window, an edge, or a new window. The lanes follow when it is released.
import { now } from "leaseboard/clock";
import { momentOf } from "leaseboard/timeline_url";

const NARROWEST = 10; // s
const SETTLED = 400; // ms after the last key

export function startBrush(brush) {
  const win = brush.querySelector(".win");
  const [since, until] = [Number(brush.dataset.start), Number(brush.dataset.end)];
  let [from, to] = [Number(brush.dataset.from), Number(brush.dataset.to)];
  const latest = Math.min(until, Math.max(to, now()));
  let timer = null;

  function put() {
    const share = (t) => ((t - since) / (until - since)) * 100;
    win.style.left = `${share(Math.max(since, from))}%`;
    win.style.width = `${share(Math.min(until, to)) - share(Math.max(since, from))}%`;
    win.setAttribute("aria-valuemin", since);
    win.setAttribute("aria-valuemax", until);
    win.setAttribute("aria-valuenow", Math.round(from));
    win.setAttribute("aria-valuetext", `${momentOf(Math.round(from))} to ${momentOf(Math.round(to))}`);
  }

  function shift(by, [start, end] = [from, to]) {
    const moved = Math.min(latest - end, Math.max(since - start, by));
    [from, to] = [start + moved, end + moved];
    put();
  }

  function go() {
    const url = new URL(location.href);
    for (const name of ["range", "page"]) url.searchParams.delete(name);
    url.searchParams.set("from", momentOf(Math.round(from)));
    url.searchParams.set("to", momentOf(Math.round(to)));
    const at = Date.parse(url.searchParams.get("at")) / 1000;
    if (!(from <= at && at <= to)) url.searchParams.delete("at");
    htmx.ajax("GET", url.pathname + url.search, { target: "#board", swap: "outerHTML" });
  }

  function drag(event) {
    const box = brush.getBoundingClientRect();
    const at = (e) => Math.min(latest, Math.max(since, since + ((e.clientX - box.left) / box.width) * (until - since)));
    const [held, start, end, grip] = [at(event), from, to, gripOf(event, win)];
    const move = (e) => {
      const now = at(e);
      if (grip === "window") return shift(now - held, [start, end]);
      const fixed = { left: end, right: start }[grip] ?? held;
      const least = Math.max(NARROWEST, (until - since) / 500);
      [from, to] = now < fixed ? [Math.min(now, fixed - least), fixed] : [fixed, Math.max(now, fixed + least)];
      put();
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
    shift(way * (event.key.startsWith("Page") ? to - from : (until - since) / 100));
    clearTimeout(timer);
    timer = setTimeout(go, SETTLED);
  });
  put();
}

function gripOf({ target }, win) {
  if (target === win.firstElementChild) return "left";
  if (target === win.lastElementChild) return "right";
  return target === win ? "window" : "new";
}
