// Formats lengths of time, rounded down, as dashboard/parts/formatting.py does.
export function age(seconds) {
  const s = Math.max(0, seconds) + 1e-6; // the rounding error of a sum
  if (s < 10) return `${(Math.floor(10 * s) / 10).toFixed(1)} s`;
  const n = Math.floor(s);
  if (n < 60) return `${n} s`;
  if (n < 3600) return `${Math.floor(n / 60)} m ${n % 60} s`;
  if (n < 86400) return `${Math.floor(n / 3600)} h ${Math.floor((n % 3600) / 60)} m`;
  return `${Math.floor(n / 86400)} d ${Math.floor((n % 86400) / 3600)} h`;
}

/** The time of day in UTC. */
export const clockTime = (t) => new Date(t * 1000).toISOString().slice(11, 19);

/** The time of day, with the date in front unless it is today. */
export function moment(t, now) {
  const at = new Date(t * 1000);
  if (at.toISOString().slice(0, 10) === new Date(now * 1000).toISOString().slice(0, 10)) return clockTime(t);
  const month = at.toLocaleString("en", { month: "short", timeZone: "UTC" });
  return `${at.getUTCDate()} ${month} ${at.getUTCFullYear()} ${clockTime(t)}`;
}

/** In the largest unit alone. */
export const rough = (seconds) => age(seconds).split(" ").slice(0, 2).join(" ");
