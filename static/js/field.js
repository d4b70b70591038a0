// Reads all heartbeats from the socket: groups, and a byte for each phase. See dashboard/pages/nodes.py.
export const PHASES = ["held", "late", "expired", "vacant", "untimed", "deleted"];
export const field = { generation: 0, groups: [], phases: new Uint8Array(0) };
const HEADER = 12;
const WHOLE = 0;
let coming = null; // groups whose phases come with the next message
let moved = () => {};

/** Call `then(whole)` after phases changed; `whole`: every slot may show another heartbeat. */
export const onField = (then) => (moved = then);

/** `groups`: [[name, number of slots], ...]; later slots came after the last order. */
export const takeGroups = (groups) => (coming = groups);

/** How the page's picture is grouped, or null without one. */
export const fieldShown = () => ({ field: document.querySelector("[data-field]")?.dataset.field ?? null });

export function takePhases(buffer) {
  const [what, generation, size] = new Uint32Array(buffer, 0, 3);
  if (what === WHOLE) {
    [field.groups, coming] = [coming ?? field.groups, null];
    field.phases = new Uint8Array(buffer, HEADER);
    field.generation = generation;
    return moved(true);
  }
  if (generation !== field.generation) return;
  const grown = size > field.phases.length;
  if (grown) {
    const longer = new Uint8Array(size);
    longer.set(field.phases);
    field.phases = longer;
  }
  for (const pair of new Uint32Array(buffer, HEADER)) field.phases[pair >>> 3] = pair & 7;
  moved(grown);
}
