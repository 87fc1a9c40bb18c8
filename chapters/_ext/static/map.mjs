// A row of a map that is pointed at or focused brings out its own arcs.

for (const map of document.querySelectorAll("svg.map")) {
  const arcs = [...map.querySelectorAll("path")];
  const show = (key) => {
    map.classList.toggle("map-chosen", Boolean(key));
    for (const arc of arcs) arc.classList.toggle("map-on", key === arc.dataset.from || key === arc.dataset.to);
  };
  for (const event of ["pointerover", "focusin"]) map.addEventListener(event, (e) => show(e.target.closest("a")?.dataset.key));
  for (const event of ["pointerleave", "focusout"]) map.addEventListener(event, () => show(undefined));
}
