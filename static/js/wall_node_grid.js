// Draws all heartbeats on the wall: cells that a whole room can see, each in the state of its worst node.
import { field, onField } from "leaseboard/field";
import { colours } from "leaseboard/node_grid_colours";
import { layOut } from "leaseboard/node_grid_layout";
import { paint } from "leaseboard/node_grid_paint";

const PITCH = 0.017; // of the height: the smallest cell that people see from five metres
const LARGEST = 0.12; // of the height: few nodes fill the place of many
const SPACING = 1000; // ms between two drawings
const WORSE = [1, 3, 4, 2, 2, 0]; // in the order of PHASES
let timer = null;
let host = null; // a wall without a list of Leases has none yet

/** One phase for every `per` heartbeats: the worst of them. */
function share(phases, per) {
  if (per === 1) return phases;
  const worst = new Uint8Array(Math.ceil(phases.length / per));
  phases.forEach((phase, slot) => {
    const cell = Math.floor(slot / per);
    if (slot % per === 0 || WORSE[phase] > WORSE[worst[cell]]) worst[cell] = phase;
  });
  return worst;
}

function draw() {
  timer = null;
  if (!find()) return;
  host.hidden = field.phases.length === 0;
  if (host.hidden) return;
  const canvas = host.querySelector("canvas");
  const [w, h, dpr] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
  Object.assign(canvas, { width: Math.round(w * dpr), height: Math.round(h * dpr) });
  const room = Math.floor((w * h) / (PITCH * innerHeight) ** 2) || 1;
  const per = Math.ceil(field.phases.length / room);
  const cells = share(field.phases, per);
  const layout = layOut([["", cells.length]], cells.length, w, h, 1, LARGEST * innerHeight);
  paint(canvas, layout, cells, { x: 0, y: 0, w, h }, colours(host));
  host.querySelector("p").textContent = per > 1 ? `1 cell = ${per.toLocaleString("en")} nodes, the worst decides` : "1 cell = 1 node";
}

const observer = new ResizeObserver(draw);

function find() {
  if (host?.isConnected) return host;
  observer.disconnect();
  host = document.querySelector(".w-comb");
  if (host) observer.observe(host.querySelector("canvas")); // a line above it comes and goes: its parent stays as large
  return host;
}

onField(() => (timer ??= setTimeout(draw, field.phases.length && find()?.hidden ? 0 : SPACING)));
find();
