// Draws the cells in view. Trouble is drawn a second time, larger, so that it stands out.
import { PHASES } from "leaseboard/field";
import { shift } from "leaseboard/node_grid_layout";
import { paintPixels } from "leaseboard/node_grid_pixels";

const PIXELS = 5; // cells smaller than this are pixels
const MOST_RINGS = 400; // of a phase; in a mass failure the colour alone says enough
const [LATE, EXPIRED] = [1, 2];

/** `view`: {x, y, w, h} of the layout's plane, in CSS pixels. */
export function paint(canvas, layout, phases, view, ink) {
  const dpr = devicePixelRatio || 1;
  const ctx = canvas.getContext("2d");
  const bad = { [LATE]: [], [EXPIRED]: [] };
  const see = (slot, x, y) => {
    const phase = phases[slot];
    if (bad[phase]?.length <= MOST_RINGS) bad[phase].push([phase, x, y]);
    return phase;
  };
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
  ctx.clearRect(0, 0, view.w, view.h);
  ctx.translate(-view.x, -view.y);
  if (layout.p < PIXELS) paintPixels(canvas, layout, view, ink, see);
  else paintShapes(ctx, layout, view, ink, see);
  const few = Object.values(bad).filter((cells) => !layout.hex && cells.length <= MOST_RINGS);
  for (const one of few.flat()) ring(ctx, layout, one, ink);
  if (layout.named) name(ctx, layout, phases, ink);
}

function paintShapes(ctx, layout, view, ink, see) {
  const paths = PHASES.map(() => new Path2D());
  for (const block of layout.blocks) {
    for (const [slot, x, y] of visible(layout, block, view)) addCell(paths[see(slot, x, y)], layout, x, y);
  }
  paths.forEach((path, phase) => {
    ctx.globalAlpha = ink.alphas[phase];
    ctx.fillStyle = ink.of[phase];
    ctx.fill(path);
  });
  ctx.globalAlpha = 1;
}

/** [slot, x, y] of the cells of a block that are in view. */
function* visible({ cols, p, rowHeight, hex }, block, view) {
  const first = Math.max(0, Math.floor((view.y - block.y) / rowHeight) - 1);
  const last = Math.min(block.rows - 1, Math.floor((view.y + view.h - block.y) / rowHeight));
  const left = Math.max(0, Math.floor(view.x / p) - 1);
  const right = Math.min(cols - 1, Math.floor((view.x + view.w) / p));
  for (let row = first; row <= last; row++) {
    const end = Math.min(right, block.n - 1 - row * cols);
    for (let column = left; column <= end; column++) {
      yield [block.from + row * cols + column, column * p + shift({ hex, p }, row), block.y + row * rowHeight];
    }
  }
}

function addCell(path, { hex, p }, x, y) {
  if (!hex) return path.rect(x, y, p - 1, p - 1);
  const radius = p / Math.sqrt(3) - (p > 30 ? 1.6 : 0.7);
  for (let k = 0; k < 6; k++) {
    const corner = [x + p / 2 + radius * Math.sin((k * Math.PI) / 3), y + p / 2 - radius * Math.cos((k * Math.PI) / 3)];
    if (k) path.lineTo(...corner);
    else path.moveTo(...corner);
  }
  path.closePath();
}

function ring(ctx, { p }, [phase, x, y], ink) {
  const radius = (phase === EXPIRED ? 4 : 2) + p / 2;
  const disc = (r, fill) => {
    ctx.beginPath();
    ctx.arc(x + p / 2, y + p / 2, r, 0, 7);
    ctx.fillStyle = fill;
    ctx.fill();
  };
  disc(radius + 1.5, ink.surface);
  disc(radius, ink.of[phase]);
  if (phase === EXPIRED) [disc(radius - 1.5, ink.surface), disc(radius - 3, ink.of[phase])];
}

function name(ctx, { blocks }, phases, ink) {
  ctx.font = `600 11px ${getComputedStyle(ctx.canvas).fontFamily}`;
  ctx.fillStyle = ink.text;
  for (const block of blocks) {
    const bad = [0, 0, 0];
    for (let slot = block.from; slot < block.from + block.n; slot++) if (phases[slot] <= EXPIRED) bad[phases[slot]]++;
    const said = [block.label || "unknown", `${block.n.toLocaleString("en")} ${block.n === 1 ? "heartbeat" : "heartbeats"}`];
    if (bad[LATE]) said.push(`${bad[LATE].toLocaleString("en")} late`);
    if (bad[EXPIRED]) said.push(`${bad[EXPIRED].toLocaleString("en")} expired`);
    ctx.fillText(said.join("   "), 0, block.y - 6);
  }
}
