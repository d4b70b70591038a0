// Rewrites times of UTC inside a text in another zone. Pure: it reads and writes no page.
export const DAY = 86_400_000;
const QUARTER = 900_000; // ms; offsets change at quarters of an hour alone
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const formats = new Map();
const offsets = new Map();

/** Milliseconds east of UTC at `t`, epoch milliseconds. */
export function offsetAt(zone, t) {
  const key = `${zone} ${Math.floor(t / QUARTER)}`;
  if (!offsets.has(key)) {
    if (!formats.has(zone)) formats.set(zone, new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" }));
    const [, sign, hours, minutes] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(formats.get(zone).format(t));
    offsets.set(key, sign ? (sign === "-" ? -1 : 1) * (hours * 60 + Number(minutes)) * 60_000 : 0);
  }
  return offsets.get(key);
}

const two = (number) => String(number).padStart(2, "0");

/** `UTC+1`, `UTC-3:30`. */
export function offsetName(offset) {
  const minutes = Math.abs(offset) / 60_000;
  const rest = minutes % 60 ? `:${two(minutes % 60)}` : "";
  return `UTC${offset < 0 ? "-" : "+"}${Math.floor(minutes / 60)}${rest}`;
}

/** `Buenos Aires` of `America/Argentina/Buenos_Aires`. */
export const placeOf = (zone) => zone.split("/").at(-1).replaceAll("_", " ");

const local = (zone, t) => new Date(t + offsetAt(zone, t));
export const dayOf = (zone, t) => Math.floor((t + offsetAt(zone, t)) / DAY);
export const dateOf = (zone, t, year = true) => {
  const at = local(zone, t);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}${year ? ` ${at.getUTCFullYear()}` : ""}`;
};
export const clockOf = (zone, t, seconds = "") => `${two(local(zone, t).getUTCHours())}:${two(local(zone, t).getUTCMinutes())}${seconds}`;

/** `2026-11-20T03:12:40.500+01:00`, without a fraction that is zero. */
export function isoOf(zone, t) {
  const offset = offsetAt(zone, t);
  const [minutes, written] = [Math.abs(offset) / 60_000, new Date(t + offset).toISOString().slice(0, -1).replace(/\.000$/, "")];
  return offset ? `${written}${offset < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}` : `${written}Z`;
}

/** As a person in the zone would type it; with the offset where clocks show it twice. */
export function typedOf(zone, t) {
  const twice = [-2, -1, 1, 2].some((half) => offsetAt(zone, t + half * 1_800_000) + half * 1_800_000 === offsetAt(zone, t));
  return twice ? isoOf(zone, t) : isoOf(zone, t).slice(0, 19 + (t % 1000 ? 4 : 0)).replace("T", " ");
}

/** In both zones, for a tooltip. */
export const exactly = (zone, t) => [isoOf("UTC", t), ...(zone === "UTC" ? [] : [`${isoOf(zone, t)} ${placeOf(zone)}`])].join("\n");

// What the server writes: 03:12, 03:12:40.5 with its date before or behind it; as a whole text also a date alone.
const DATE = `(\\d{1,2}) (${MONTHS.join("|")}) (\\d{4})`;
const CLOCK = "([01]\\d|2[0-3]):([0-5]\\d)(:[0-5]\\d(?:\\.\\d+)?)?";
const TIMES = new RegExp(
  `(?<![\\w.:+'"-])(?:(?:${DATE}|(\\d{4})-(\\d\\d)-(\\d\\d))(?: at)? )?${CLOCK}(?: (?:tomorrow,|on) ${DATE})?(?![\\w'"-]|:\\S|\\.\\d)|(?<![\\w+-])UTC(?![\\w+-])`,
  "g",
);

/** The day of UTC that a match names, or null. */
function namedDay(match) {
  const [day, month, year] = match[1] ? match.slice(1, 4) : match.slice(10, 13);
  if (day) return Date.UTC(year, MONTHS.indexOf(month), day);
  return match[4] ? Date.UTC(match[4], match[5] - 1, match[6]) : null;
}

/** The time of day on the day of UTC of `now`; if `near` is given, on the day that brings it nearest to that. */
function guess(time, now, near) {
  const there = Math.floor((near ?? now) / DAY) * DAY + time;
  return near === undefined ? there : there + Math.round((near - there) / DAY) * DAY;
}

/**
 * The text in `zone`, and the moments in it. A time without a date is of today (`now`), or nearest to `near`, or is `exact`; it gets
 * a date if it is of another day in the zone, unless a date stands beside it (`dated`).
 */
export function inZone(text, zone, { now, near, exact, dated = false }) {
  const moments = [];
  const written = text.replace(TIMES, (whole, ...found) => {
    const [at, all] = found.slice(-2);
    if (whole === "UTC") return zone === "UTC" ? whole : placeOf(zone);
    const [match, [hour, minute, seconds = ""]] = [[whole, ...found], found.slice(6, 9)];
    const time = (hour * 60 + Number(minute)) * 60_000 + Math.round(1000 * Number(seconds.slice(1)));
    const day = namedDay(match);
    let t = exact ?? (day === null ? guess(time, now, near) : day + time);
    if (day === null && exact === undefined && t > now && /\bsince $/.test(all.slice(0, at))) t -= DAY;
    moments.push(t);
    if (zone === "UTC") return whole;
    const clock = clockOf(zone, t, seconds);
    if (match[10]) return `${clock} on ${dateOf(zone, t)}`;
    if (match[4]) return `${local(zone, t).toISOString().slice(0, 10)}${whole.includes(" at ") ? " at" : ""} ${clock}`;
    const bare = day === null && (dated || dayOf(zone, t) === dayOf(zone, near ?? now));
    return bare ? clock : `${dateOf(zone, t)} ${clock}`;
  });
  return { written, moments };
}
