// Handles pointer, wheel and keys over the node grid.
import { cursorAt, look, lookedInto, pan, walk, zoomBy } from "leaseboard/node_grid";
import { cellName } from "leaseboard/cells";

const host = document.querySelector("#comb");
const canvas = host.querySelector("canvas");
const STEP = 1.5;
const DRAGGED = 4; // px of movement that make a press a drag
const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
let grip = null;

async function open(slot) {
  if (slot < 0) return;
  const [name] = await cellName(slot);
  if (name.includes("/")) location.href = `${host.dataset.leases}${name.split("/").map(encodeURIComponent).join("/")}/`;
}

canvas.addEventListener("pointerdown", (event) => {
  grip = { x: event.offsetX, y: event.offsetY, moved: 0 };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!grip) return look(cursorAt(event.offsetX, event.offsetY));
  const [dx, dy] = [grip.x - event.offsetX, grip.y - event.offsetY];
  Object.assign(grip, { x: event.offsetX, y: event.offsetY, moved: grip.moved + Math.abs(dx) + Math.abs(dy) });
  if (grip.moved > DRAGGED) pan(dx, dy);
});
canvas.addEventListener("pointerup", (event) => {
  const click = grip && grip.moved <= DRAGGED;
  grip = null;
  if (click) open(cursorAt(event.offsetX, event.offsetY));
});
canvas.addEventListener("pointerleave", () => look(-1));
canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    zoomBy(event.deltaY < 0 ? STEP : 1 / STEP, event.offsetX, event.offsetY);
  },
  { passive: false },
);
canvas.addEventListener("keydown", (event) => {
  const { key } = event;
  if (key in ARROWS) walk(...ARROWS[key]);
  else if (key === "+" || key === "=") zoomBy(STEP);
  else if (key === "-") zoomBy(1 / STEP);
  else if (key === "Enter") open(lookedInto());
  else if (key === "Escape") look(-1);
  else return;
  event.preventDefault();
});
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => zoomBy(button.dataset.zoom === "in" ? STEP : 1 / STEP));
}
