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
  for (const figure of new Set(places.map((place) => place.dataset.figure))) show(figure, picked(figure));
  document.documentElement.dataset.drawn = mode();
}

// The legend: pressing names picks their lines, and the others fade; pointing at a name previews it.
function show(figure, names) {
  for (const [place, result] of drawn) {
    if (place.dataset.figure === figure) result.view.signal("highlight", names).run();
  }
}
function picked(figure) {
  const pressed = document.querySelectorAll(`.legend button[data-figure="${figure}"][aria-pressed="true"]`);
  return [...pressed].map((button) => button.dataset.name);
}
for (const button of document.querySelectorAll(".legend button")) {
  const { figure, name } = button.dataset;
  button.addEventListener("pointerenter", () => show(figure, [...picked(figure), name]));
  button.addEventListener("pointerleave", () => show(figure, picked(figure)));
  button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") !== "true");
    show(figure, picked(figure));
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
