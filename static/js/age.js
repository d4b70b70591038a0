// Lengths of time as a person reads them; dashboard/presenters/words.py says them the same.
export function age(seconds) {
  const s = Math.max(0, seconds);
  if (s < 9.95) return `${s.toFixed(1)} s`;
  const n = Math.floor(s);
  if (n < 60) return `${n} s`;
  if (n < 3600) return `${Math.floor(n / 60)} m ${n % 60} s`;
  if (n < 86400) return `${Math.floor(n / 3600)} h ${Math.floor((n % 3600) / 60)} m`;
  return `${Math.floor(n / 86400)} d ${Math.floor((n % 86400) / 3600)} h`;
}

/** In the largest unit alone. */
export const rough = (seconds) => age(seconds).split(" ").slice(0, 2).join(" ");
