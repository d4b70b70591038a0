// The node grid: draws all heartbeats live; pointer and keys read cells and zoom.
import { field, onField } from "leaseboard/field";
import { heightIn, layOut, place, slotAt } from "leaseboard/node_grid_layout";
import { colours } from "leaseboard/node_grid_colours";
import { paint } from "leaseboard/node_grid_paint";
import { showTip } from "leaseboard/node_grid_tip";

const host = document.querySelector("#comb");
const canvas = host.querySelector("canvas");
const none = host.querySelector(".none");
const base = document.createElement("canvas");
const SPACING = 500; // ms between two drawings of new phases
const LARGEST = 32;
const view = { x: 0, y: 0, w: 0, h: 0 };
let zoom = 1;
let layout = null;
let ink = null;
let cursor = -1;
let timer = null;

function draw() {
  clearTimeout(timer);
  timer = null;
  canvas.style.height = ""; // use all of the page's height; a small cluster gives back the rest
  const [w, room, dpr] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
  if (!w || !room || document.hidden) return;
  layout = layOut(field.groups, field.phases.length, w, room, zoom);
  const h = heightIn(room, layout, !none.textContent.trim() && !field.phases.length);
  canvas.style.height = `${h}px`;
  const [width, height] = [Math.round(w * dpr), Math.round(h * dpr)];
  for (const one of [canvas, base]) if (one.width !== width || one.height !== height) Object.assign(one, { width, height });
  Object.assign(view, { w, h });
  view.x = Math.max(0, Math.min(view.x, layout.width - w));
  view.y = Math.max(0, Math.min(view.y, Math.max(h, layout.height) - h));
  paint(base, layout, field.phases, view, (ink ??= colours(host)));
  blit();
}

const soon = () => (timer ??= setTimeout(draw, SPACING));

/** Draw the picture with the cursor over it. */
function blit() {
  const ctx = canvas.getContext("2d");
  const dpr = devicePixelRatio || 1;
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.clearRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(base, 0, 0);
  const at = cursor < 0 ? null : place(layout, cursor);
  if (!at) return;
  ctx.setTransform(dpr, 0, 0, dpr, -view.x * dpr, -view.y * dpr);
  ctx.strokeStyle = ink.strong;
  ctx.lineWidth = 2;
  ctx.strokeRect(at[0] - 1.5, at[1] - 1.5, Math.max(6, layout.p + 2), Math.max(6, layout.p + 2));
}

/** Show the tip of one cell; -1 is none. `aloud` also announces it. */
export function look(slot, { aloud = false } = {}) {
  if (slot === cursor && !aloud) return;
  cursor = slot;
  blit();
  const [x, y] = place(layout, slot) ?? [0, 0];
  showTip(slot, { x: x - view.x, y: y - view.y, size: layout.p }, aloud);
}

/** Larger or smaller by a factor, so that the point (x, y) of the canvas stays where it is. */
export function zoomBy(factor, x = view.w / 2, y = view.h / 2) {
  const next = Math.min(LARGEST, Math.max(1, zoom * factor));
  const by = next / zoom;
  Object.assign(view, { x: (view.x + x) * by - x, y: (view.y + y) * by - y });
  zoom = next;
  draw();
}

export function pan(dx, dy) {
  Object.assign(view, { x: view.x + dx, y: view.y + dy });
  draw();
}

/** The cell `by` columns or rows away from the present one. */
export function walk(columns, rows) {
  const last = field.phases.length - 1;
  const next = cursor < 0 ? 0 : Math.max(0, Math.min(last, cursor + columns + rows * layout.cols));
  const [x, y] = place(layout, next) ?? [0, 0];
  if (x < view.x || x > view.x + view.w - layout.p) view.x = x - view.w / 2;
  if (y < view.y || y > view.y + view.h - layout.p) view.y = y - view.h / 2;
  if (zoom > 1) draw();
  look(next, { aloud: true });
}

export const cursorAt = (x, y) => (layout ? slotAt(layout, x + view.x, y + view.y) : -1);
export const lookedInto = () => cursor;

onField((whole) => (whole ? draw() : soon()));
new ResizeObserver(draw).observe(canvas);
const recolour = () => ((ink = null), draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
new MutationObserver(recolour).observe(document.documentElement, { attributeFilter: ["data-theme", "data-live"] });
document.addEventListener("visibilitychange", draw);
