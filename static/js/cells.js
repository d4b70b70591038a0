// Fetches the names behind the cells in blocks, because nobody looks into all 130,000.
// htmx swaps HTML into elements; this is JSON for a canvas.
import { field } from "leaseboard/field";

const BLOCK = 256;
const FRESH = 2000; // ms for which an answer is kept
const UNKNOWN = ["unknown", "ask again in a moment"];
let kept = new Map(); // first slot -> {at, cells: promise}
let generation = 0;

/** [namespace/name, "renewed 3.1 s ago"] of a slot. */
export async function cellName(slot) {
  if (generation !== field.generation) {
    kept = new Map();
    generation = field.generation;
  }
  const first = slot - (slot % BLOCK);
  let block = kept.get(first);
  if (!block || performance.now() - block.at > FRESH) {
    block = { at: performance.now(), cells: ask(first) };
    kept.set(first, block);
  }
  return (await block.cells)[slot - first] ?? UNKNOWN;
}

async function ask(first) {
  const url = new URL(document.querySelector("[data-cells]").dataset.cells, location.href);
  url.searchParams.set("first", first + 1);
  url.searchParams.set("generation", field.generation);
  try {
    const response = await fetch(url);
    return response.ok ? (await response.json()).cells : [];
  } catch {
    return []; // the live pill shows that the server is away
  }
}
