// What the server drew, as data: each shape has data-from and data-to (epoch s); a term says whose it is,
// a gap that it is one, a band of merged changes how many they are.
const span = ({ dataset }) => ({
  from: Number(dataset.from),
  to: Number(dataset.to),
  who: dataset.who,
  gap: "gap" in dataset,
  many: Number(dataset.many ?? 0),
});

/** `stoodAt(row, t)`: the column's content for a row at t; `lost` where nobody held, `many` where only the server knows. */
export function readLanes(lanes) {
  const end = Number(lanes.dataset.end);
  const words = new Map([...lanes.querySelectorAll("template[data-word]")].map((t) => [t.dataset.word, t]));
  const fog = [...lanes.querySelectorAll("[data-fog]")].map(span);
  const rows = [...lanes.querySelectorAll("[data-lane]")].map((row) => ({
    key: row.dataset.lane,
    before: row.dataset.before,
    cell: row.querySelector("[data-as-of]"),
    shapes: [...row.querySelectorAll("[data-from]")].map(span),
    many: false,
  }));

  function stoodAt(row, t) {
    const covers = (s) => s.from <= t && (t < s.to || (t === end && s.to >= end));
    const foggy = fog.some(covers);
    const shape = row.shapes.findLast(covers);
    if (shape?.many) return { text: `one of ${shape.many} changes…`, many: true, lost: false };
    const content = words.get(foggy ? "fog" : wordOf(row, shape, t))?.content.cloneNode(true) ?? "";
    return { content, many: false, lost: Boolean(shape?.gap) && !foggy };
  }
  return { rows, stoodAt };
}

function wordOf(row, shape, t) {
  if (shape) return shape.gap ? "none" : `@${shape.who}`;
  return row.shapes.length && t >= row.shapes[0].from ? "absent" : row.before;
}
