// Before anything is drawn, so that no page flashes in the wrong colours. Where nothing was chosen, the system's choice holds.
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
