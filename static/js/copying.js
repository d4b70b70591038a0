// Copies a name that is cut on the page as one word: its pieces are boxes, and a browser puts line breaks between them.
document.addEventListener("copy", (event) => {
  const selection = getSelection();
  const before = selection.toString();
  let text = before;
  for (const name of document.querySelectorAll(".cut, .holder")) {
    const pieces = [...name.children].map((piece) => piece.textContent);
    if (pieces.length < 2 || !selection.containsNode(name, true)) continue;
    text = text.replace(pieces.join("\n"), () => pieces.join(""));
  }
  if (text === before) return;
  event.clipboardData.setData("text/plain", text);
  event.preventDefault();
});
