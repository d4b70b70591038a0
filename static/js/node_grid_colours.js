// Reads the node grid's colours from the style sheet, in the present theme.
import { PHASES } from "leaseboard/field";

const ALPHAS = { held: 0.42, deleted: 0.15 }; // trouble must stand out

/** A colour as a pixel of an image. */
function pixel(colour, alpha) {
  const ctx = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  ctx.globalAlpha = alpha;
  ctx.fillStyle = colour;
  ctx.fillRect(0, 0, 1, 1);
  return new Uint32Array(ctx.getImageData(0, 0, 1, 1).data.buffer)[0];
}

export function colours(host) {
  const probe = document.createElement("i");
  probe.hidden = true;
  host.append(probe);
  const read = (name, css) => {
    probe.className = css;
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const found = { surface: read("--surface", ""), text: read("--text-2", ""), strong: read("--text", "") };
  found.of = PHASES.map((phase) => read("--f", `is-${phase}`));
  probe.remove();
  found.alphas = PHASES.map((phase) => ALPHAS[phase] ?? 1);
  found.pixels = found.of.map((colour, phase) => pixel(colour, found.alphas[phase]));
  return found;
}
