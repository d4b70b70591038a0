// Remembers from which state of the server the page was drawn: its socket then tells what moved since.
import { followed } from "leaseboard/clock";

let drawn = document.querySelector('meta[name="server-time"]')?.dataset.drawn ?? null;

/** The stamp of the page's drawing, and how often the server's clock had jumped by then. */
export const drawing = () => ({ drawn, jumps: followed() });

/** The page has everything up to `stamp`. */
export const reached = (stamp) => (drawn = stamp);

// A part that was fetched may be older than the last frame.
document.addEventListener("htmx:beforeSwap", ({ detail }) => (drawn = detail.xhr.getResponseHeader("X-Drawn") ?? drawn));
