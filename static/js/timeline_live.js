// A timeline that shows now moves on: when changes come, and as time goes by.
import { onChanges } from "leaseboard/changes";

const SPACING = 5000; // ms between two drawings
const PIXELS = 800; // of a lane: it moves on by one at a time
let timer = null;
let last = performance.now();

export function followClock(drawn) {
  const wait = () => {
    clearTimeout(timer);
    const lanes = document.querySelector("[data-moving]");
    if (!lanes) return;
    const pixel = ((Number(lanes.dataset.end) - Number(lanes.dataset.start)) * 1000) / PIXELS;
    timer = setTimeout(() => draw(drawn).then(wait), Math.max(SPACING, pixel));
  };
  onChanges(() => {
    if (!document.querySelector("[data-moving]")) return;
    clearTimeout(timer);
    timer = setTimeout(() => draw(drawn).then(wait), Math.max(100, last + SPACING - performance.now()));
  });
  document.addEventListener("htmx:afterSettle", wait);
  wait();
}

async function draw(drawn) {
  const board = document.getElementById("board");
  if (document.documentElement.dataset.live === "refused") return; // the band says why
  if (document.hidden || !board || board.matches(":hover:active") || board.contains(document.activeElement)) return;
  last = performance.now();
  try {
    const response = await fetch(location.href, { headers: { "HX-Request": "true" } });
    if (!response.ok || !board.isConnected || !board.querySelector("[data-moving]")) return;
    const template = document.createElement("template");
    template.innerHTML = await response.text();
    const fresh = template.content.querySelector("#board");
    if (!fresh) return; // signed out: this is the sign-in page
    board.replaceWith(fresh);
    htmx.process(fresh);
    drawn();
  } catch {
    // The socket says that the server is away; the next drawing tries again.
  }
}
