// What the page has to do before its terminal begins, which textual.js would begin as soon as the page is loaded.
"use strict";

const begin = window.onload;
window.onload = null;

// Where its server is: a proxy may have another name than the server knows.
const socket = new URL("ws", location.href);
socket.protocol = location.protocol === "https:" ? "wss:" : "ws:";
const terminal = document.getElementById("terminal");
terminal.dataset.sessionWebsocketUrl = socket.href;

document.getElementById("again").addEventListener("click", () => location.reload());

// The terminal measures its font once, so the font must be there.
document.fonts.load(`${terminal.dataset.fontSize}px "Roboto Mono"`).finally(() => {
  if (document.readyState === "complete") begin();
  else window.addEventListener("load", begin);
});

// Keys go to the terminal as soon as it shows something; before that there is nobody to tell that it has the focus.
const shows = new MutationObserver(() => {
  if (!document.body.classList.contains("-first-byte")) return;
  shows.disconnect();
  document.querySelector("textarea.xterm-helper-textarea")?.focus();
});
shows.observe(document.body, { attributeFilter: ["class"] });
