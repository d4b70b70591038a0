// Announces changes of state politely to screen readers; never ticks.
export function say(text) {
  const region = document.querySelector("#announce");
  if (region) region.textContent = text;
}
