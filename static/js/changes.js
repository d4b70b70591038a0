// Reports new changes to modules that draw them in their own way.
const readers = [];

/** Call `then(number)` whenever changes came; null: the number is not known. */
export const onChanges = (then) => readers.push(then);

export function tellChanges(number) {
  for (const then of readers) then(number);
}
