// Remembers from which state of the server the page was drawn: its socket then tells what moved since.
import { followed } from "leaseboard/clock";

let drawn = document.querySelector('meta[name="server-time"]')?.dataset.drawn ?? null;
const moment = (stamp) => Number(stamp.split("-")[1]);

/** The stamp of the page's drawing, and how often the server's clock had jumped by then. */
export const drawing = () => ({ drawn, jumps: followed() });

/** The page has everything up to `stamp`; some sockets tell none. */
export const reached = (stamp) => (drawn = stamp ?? drawn);

// Parts that were fetched may be older than the last frame. Where they are newer, the others are not.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const fetched = detail.xhr.getResponseHeader("X-Drawn");
  const isPart = detail.requestConfig.headers["X-Regions"] && drawn;
  if (fetched && !(isPart && moment(fetched) > moment(drawn))) drawn = fetched;
});
