// The zone of the page: of the person, or of the wall link that opened it; UTC if this browser does not know it.
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
const { zone } = document.documentElement.dataset;

/** Names of zones are younger than some browsers. */
function known(name) {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) && name;
  } catch {
    return "UTC";
  }
}

export const ZONE = known((zone === "local" ? own : zone) || "UTC").replace("Etc/UTC", "UTC");
