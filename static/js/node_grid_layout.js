// Lays out the cells: one block for each group, as large as the room allows.
//   14 px and more: hexagons; 5 to 13 px: squares; below: pixels
const HEX = 14;
const LARGEST = 62;
const LEAST = 80; // px of height: the tip of a cell needs room
const HEAD = 20; // px for a group's name
const BETWEEN = 6;
const FLAT = 0.87; // height of a row of hexagons

/** `groups`: [[name, number], ...] of all `size` cells; w, h and the `largest` cell in CSS pixels. */
export function layOut(groups, size, w, h, zoom, largest = LARGEST) {
  const blocks = blocksOf(groups, size);
  const head = blocks.length > 1 ? HEAD : 0;
  const least = 1 / (devicePixelRatio || 1);
  const rows = (p) => blocks.reduce((sum, block) => sum + Math.ceil(block.n / columns(w, p)), 0);
  const tall = (p) => (p >= HEX ? FLAT : 1);
  const fits = (p) => rows(p) * p * tall(p) + blocks.length * (head + BETWEEN + p * 0.13) <= h;
  let p = Math.min(largest, Math.sqrt((w * h) / Math.max(1, size)) + 1);
  p = Math.max(least, Math.floor(p / least) * least);
  while (p > least && !fits(p)) p -= least;
  p *= zoom;
  const hex = p >= HEX;
  const cols = columns(w * zoom, p);
  const cap = hex ? p * 0.07 : 0; // the point of a hexagon reaches into the next row
  let y = 0;
  for (const block of blocks) {
    block.y = y + head + cap;
    block.rows = Math.ceil(block.n / cols);
    y = block.y + block.rows * p * tall(p) + BETWEEN + cap;
  }
  return { blocks, p, hex, cols, rowHeight: p * tall(p), width: w * zoom, height: y, named: head > 0 };
}

const columns = (w, p) => Math.max(1, Math.floor((w - (p >= HEX ? p / 2 : 0)) / p));

function blocksOf(groups, size) {
  let from = 0;
  const blocks = groups.map(([label, n]) => {
    const block = { label, from, n };
    from += n;
    return block;
  });
  if (from < size) blocks.push({ label: "Came later", from, n: size - from });
  return blocks.filter((block) => block.n > 0);
}

/** The used height of the room; all of it until the first picture comes. */
export function heightIn(room, layout, isComing) {
  return isComing ? room : Math.min(room, Math.ceil(Math.max(LEAST, layout.height)));
}

/** The upper left corner of a cell. */
export function place(layout, slot) {
  const block = layout.blocks.find(({ from, n }) => slot < from + n);
  if (!block) return null;
  const row = Math.floor((slot - block.from) / layout.cols);
  const column = (slot - block.from) % layout.cols;
  return [column * layout.p + shift(layout, row), block.y + row * layout.rowHeight];
}

/** Hexagons of every other row lie half a cell to the right. */
export const shift = (layout, row) => (layout.hex && row % 2 ? layout.p / 2 : 0);

/** The cell at a point, or -1. */
export function slotAt(layout, x, y) {
  for (const block of layout.blocks) {
    const row = Math.floor((y - block.y) / layout.rowHeight);
    if (row < 0 || row >= block.rows) continue;
    const column = Math.floor((x - shift(layout, row)) / layout.p);
    const slot = row * layout.cols + column;
    if (column >= 0 && column < layout.cols && slot < block.n) return block.from + slot;
  }
  return -1;
}
