// Set the mode before anything is drawn, so that the page does not flash in the wrong colours. The default is the system's.
"use strict";
const system = window.matchMedia("(prefers-color-scheme: dark)");
let chosen = null;
function mode() {
  return chosen || (system.matches ? "dark" : "light");
}
function applyMode() {
  document.documentElement.dataset.theme = mode();
}
applyMode();
