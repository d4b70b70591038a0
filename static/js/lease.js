// Zooms the lane of a Lease: drag over it to choose a stretch. A band of changes is a link of its own.
import { now } from "leaseboard/clock";
import { inWords, refocus, urlWith } from "leaseboard/stretch";
import { followClock } from "leaseboard/timeline_live";

const NARROWEST = 60; // s
const SHORT = 120; // s: in a shorter stretch, a closer look is allowed
const CLOSEST = 10;
const CLICK = 4; // px: a shorter drag is a click

function start() {
  const zoomer = document.querySelector("[data-zoomer]:not(.on)");
  refocus();
  if (!zoomer) return;
  zoomer.classList.add("on");
  for (const control of document.querySelectorAll("#past [data-js]")) control.hidden = false;
  zoomer.addEventListener("pointerdown", drag);
  zoomer.addEventListener("dragstart", (event) => event.preventDefault()); // a band is a link
}

function drag(down) {
  if (down.button) return;
  const zoomer = down.currentTarget;
  const [since, until] = [Number(zoomer.dataset.start), Number(zoomer.dataset.end)];
  const box = zoomer.getBoundingClientRect();
  const least = until - since > SHORT ? NARROWEST : CLOSEST;
  const at = ({ clientX }) => since + Math.min(1, Math.max(0, (clientX - box.left) / box.width)) * (until - since);
  const held = at(down);
  const hint = document.querySelector("#past .hint");
  const hinted = hint.textContent;
  let chosen = null;
  let win = null;

  const move = (event) => {
    if (!event.buttons) return end(event); // it was released outside
    if (!win && Math.abs(event.clientX - down.clientX) < CLICK) return;
    if (!win) {
      zoomer.setPointerCapture(down.pointerId); // not before: a click on a band is its own
      win = zoomer.appendChild(document.createElement("div"));
      win.className = "win";
    }
    chosen = between(Math.min(held, at(event)), Math.max(held, at(event)), { least, since, until });
    const share = (t) => ((t - since) / (until - since)) * 100;
    win.style.left = `${share(chosen[0])}%`;
    win.style.width = `${share(chosen[1]) - share(chosen[0])}%`;
    hint.textContent = inWords(...chosen, now());
  };
  const end = (event) => {
    zoomer.removeEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) zoomer.removeEventListener(name, end);
    if (chosen && event.type === "pointerup") return open(urlWith(...chosen));
    hint.textContent = hinted;
    win?.remove();
  };
  zoomer.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel"]) zoomer.addEventListener(name, end);
}

/** At least `least` seconds around what was chosen, inside the lane. */
function between(from, to, { least, since, until }) {
  const missing = Math.max(0, least - (to - from)) / 2;
  const moved = Math.max(0, since - (from - missing)) - Math.max(0, to + missing - until);
  return [from - missing + moved, to + missing + moved];
}

function open({ pathname, search }) {
  htmx.ajax("GET", pathname + search, { source: "#past" }).catch(() => {}); // the lane stays as it is
}

let askedFor; // the holder that the cluster was asked about last
let asking = false;

/** Ask the cluster again once somebody else holds the Lease. */
async function askAgain() {
  const held = document.querySelector("#head [data-held-by]")?.dataset.heldBy;
  const asked = document.querySelector("#asked[data-asked-of]");
  if (asking || held === undefined || !asked || held === (askedFor ?? asked.dataset.askedOf)) return;
  [asking, askedFor] = [true, held];
  const url = asked.querySelector("[hx-get]").getAttribute("hx-get");
  await htmx.ajax("GET", url, { target: asked, swap: "outerHTML" }).catch(() => {}); // the socket says why
  asking = false;
  askAgain();
}

start();
followClock();
const head = document.getElementById("head");
if (head) new MutationObserver(askAgain).observe(head, { childList: true, subtree: true });
document.addEventListener("htmx:afterSettle", start);
document.addEventListener("htmx:afterSettle", askAgain);
