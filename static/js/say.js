// Polite announcements for screen readers: changes of state, never ticks.
export function say(text) {
  const region = document.querySelector("#announce");
  if (region) region.textContent = text;
}
