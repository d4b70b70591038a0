// Whoever draws changes in their own way is told that there are new ones.
const readers = [];

/** Call `then(number)` whenever so many changes came; null: more than are known. */
export const onChanges = (then) => readers.push(then);

export function tellChanges(number) {
  for (const then of readers) then(number);
}
