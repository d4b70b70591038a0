// The colours of the picture, as the style sheet has them in this theme.
import { PHASES } from "leaseboard/field";

export function colours(host) {
  const probe = document.createElement("i");
  probe.hidden = true;
  host.append(probe);
  const read = (name, css) => {
    probe.className = css;
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const found = { surface: read("--surface", ""), text: read("--text-2", ""), strong: read("--text", "") };
  found.of = PHASES.map((phase) => read("--f", `is-${phase}`));
  probe.remove();
  return found;
}
