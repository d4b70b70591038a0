// Reports new changes to modules that draw them in their own way.
const readers = [];

/** Call `then(number, again)` whenever changes came; null: the number is not known. `again`: all since the page's drawing. */
export const onChanges = (then) => readers.push(then);

export function tellChanges(number, again) {
  for (const then of readers) then(number, again);
}
