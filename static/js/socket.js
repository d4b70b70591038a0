// Keeps one WebSocket open: reconnects with backoff, and takes silence for a failure.
const SILENCE = 2500; // ms after which the page says that it is reconnecting
const DEAD = 6000; // ms of silence after which it reconnects
const SHORTEST = 500;
const LONGEST = 5000;
const REFUSED = 4403;
const UNKNOWN = 4404;
export const STATES = { unknown: "refused" };
export const WHY = {
  refused: "The server does not let this page look any more. Sign in again, or ask for a new link.",
  unknown: "The server no longer watches this cluster.",
};

/** `onOpen(send)`, `onFrame(frame)`, `onBytes(buffer)`, `onState("live" | "retry" | "refused" | "unknown", reason)`. */
export function connect(path, { onOpen, onFrame, onBytes, onState }) {
  const url = new URL(path, location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  let socket = null;
  let wait = SHORTEST;
  let heard = performance.now();
  let timer = null;
  let over = false;

  const send = (message) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };

  function open() {
    clearTimeout(timer);
    heard = performance.now();
    const mine = (socket = new WebSocket(url));
    mine.binaryType = "arraybuffer";
    mine.onopen = () => onOpen(send);
    mine.onmessage = ({ data }) => {
      if (mine !== socket) return;
      heard = performance.now();
      wait = SHORTEST;
      onState("live");
      if (data instanceof ArrayBuffer) onBytes?.(data);
      else onFrame(JSON.parse(data));
    };
    mine.onclose = ({ code, reason }) => {
      if (mine === socket) closed(code, reason);
    };
  }

  function closed(code, reason = "") {
    socket = null;
    if (code === REFUSED || code === UNKNOWN) {
      over = true;
      onState(code === REFUSED ? "refused" : "unknown", reason);
      return;
    }
    onState("retry");
    timer = setTimeout(open, wait * (0.75 + Math.random() / 2));
    wait = Math.min(LONGEST, wait * 2);
  }

  function watch() {
    if (over || !socket) return;
    const silent = performance.now() - heard;
    if (silent > SILENCE) onState("retry");
    if (silent > DEAD) {
      const dead = socket;
      socket = null;
      dead.close();
      closed(0);
    }
  }

  function hurry() {
    if (over || socket || document.hidden) return;
    wait = SHORTEST;
    open();
  }

  setInterval(watch, 500);
  document.addEventListener("visibilitychange", hurry);
  addEventListener("online", hurry);
  open();
  return { send };
}
