"use strict";
const specs = JSON.parse(document.getElementById("specs").textContent);
const themes = JSON.parse(document.getElementById("themes").textContent);
const places = [...document.querySelectorAll(".chart")];
const drawn = new Map();

async function draw() {
  const theme = themes[mode()];
  await Promise.all(
    places.map(async (place) => {
      drawn.get(place)?.finalize();
      const result = await vegaEmbed(place, { ...specs[place.dataset.spec], params: theme.params }, {
        config: theme.config,
        renderer: "svg",
        actions: { export: true, source: false, compiled: false, editor: false },
        downloadFileName: place.dataset.spec,
        tooltip: { theme: "custom", offsetX: 14, offsetY: 14 },
      });
      drawn.set(place, result);
    }),
  );
  document.documentElement.dataset.drawn = mode();
}

// The legend: pointing at a name, or pressing it, highlights its line.
function highlight(figure, name) {
  for (const [place, result] of drawn) {
    if (place.dataset.figure === figure) result.view.signal("highlight", name).run();
  }
}
function pressed(figure) {
  return document.querySelector(`.legend button[data-figure="${figure}"][aria-pressed="true"]`);
}
for (const button of document.querySelectorAll(".legend button")) {
  const { figure, name } = button.dataset;
  button.addEventListener("pointerenter", () => highlight(figure, name));
  button.addEventListener("pointerleave", () => highlight(figure, pressed(figure)?.dataset.name ?? ""));
  button.addEventListener("click", () => {
    const before = pressed(figure);
    before?.setAttribute("aria-pressed", "false");
    if (before !== button) button.setAttribute("aria-pressed", "true");
    highlight(figure, pressed(figure)?.dataset.name ?? "");
  });
}

function restyle() {
  applyMode();
  draw();
}
document.getElementById("theme").addEventListener("click", () => {
  chosen = mode() === "dark" ? "light" : "dark";
  restyle();
});
system.addEventListener("change", restyle);
draw();
