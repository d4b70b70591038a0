// Reads the lanes that the server drew. Each shape has data-from and data-to (epoch s); a term has data-who, a gap
// data-gap (since when no holder was named), a band of merged changes data-many (how many).
const span = ({ dataset }) => ({
  from: Number(dataset.from),
  to: Number(dataset.to),
  who: dataset.who,
  gap: "gap" in dataset,
  vacant: Number(dataset.gap || Infinity),
  many: Number(dataset.many ?? 0),
});

/** `stoodAt(row, t)`: the column's content for a row at t, and its state in a `word`; `foggyAt(t)`: whether nobody watched. */
export function readLanes(lanes) {
  const end = Number(lanes.dataset.end);
  const words = new Map([...lanes.querySelectorAll("template[data-word]")].map((t) => [t.dataset.word, t]));
  const fog = [...lanes.querySelectorAll("[data-fog]")].map(span);
  const rows = [...lanes.querySelectorAll("[data-lane]")].map((row) => ({
    key: row.dataset.lane,
    before: row.dataset.before,
    get lock() {
      return row.classList.contains("is-lock");
    },
    get cell() {
      return row.querySelector("[data-as-of]"); // htmx may have replaced it
    },
    get dot() {
      return row.querySelector("[data-dot]");
    },
    shapes: [...row.querySelectorAll("[data-from]")].map(span),
    many: false,
  }));
  const covers = (t) => (s) => s.from <= t && (t < s.to || (t === end && s.to >= end));
  const foggyAt = (t) => fog.some(covers(t));

  function stoodAt(row, t) {
    const shape = row.shapes.findLast(covers(t));
    const known = wordOf(row, shape, t);
    const word = foggyAt(t) && known !== "absent" ? "fog" : known;
    if (word === "many") return { text: `one of ${shape.many} changes…`, word };
    const said = { held: `@${shape?.who}`, expired: "none", vacant: "none" }[word] ?? word;
    return { content: words.get(said)?.content.cloneNode(true) ?? "", word };
  }
  return { rows, stoodAt, foggyAt };
}

function wordOf(row, shape, t) {
  if (shape?.many) return "many";
  if (shape?.gap) return t >= shape.vacant ? "vacant" : "expired";
  if (shape) return "held";
  return row.shapes.length && t >= row.shapes[0].from ? "deleted" : row.before;
}
