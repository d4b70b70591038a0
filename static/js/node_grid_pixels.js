// Writes 130,000 cells of a few pixels into one image, many times faster than paths.

/** Fill `canvas`; `each(slot)` gives the phase of a cell and may note it, `ink` the colours. */
export function paintPixels(canvas, layout, view, ink, each) {
  const dpr = devicePixelRatio || 1;
  const { width, height } = canvas;
  const image = new ImageData(width, height);
  const out = new Uint32Array(image.data.buffer);
  const { p, cols } = layout;
  const side = Math.round(p * dpr);
  for (const block of layout.blocks) {
    const first = Math.max(0, Math.floor((view.y - block.y) / p));
    const last = Math.min(block.rows - 1, Math.floor((view.y + view.h - block.y) / p));
    const left = Math.max(0, Math.floor(view.x / p));
    const right = Math.min(cols - 1, Math.floor((view.x + view.w) / p));
    for (let row = first; row <= last; row++) {
      const top = Math.round((block.y + row * p - view.y) * dpr);
      const [from, to] = [Math.max(0, top), Math.min(height, top + side)];
      const end = Math.min(right, block.n - 1 - row * cols);
      for (let column = left; column <= end; column++) {
        const start = Math.round((column * p - view.x) * dpr);
        const colour = ink.pixels[each(block.from + row * cols + column, column * p, block.y + row * p)];
        const [begin, stop] = [Math.max(0, start), Math.min(width, start + side)];
        for (let y = from; y < to; y++) out.fill(colour, y * width + begin, y * width + stop);
      }
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}
