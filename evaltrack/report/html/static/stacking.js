"use strict";
/* A table that is wider than its box becomes cards: each value below the name of its column. */
(() => {
  const boxes = document.querySelectorAll(".scroll:has(> table.grid)");
  for (const box of boxes) {
    const names = [...box.querySelectorAll("thead th, thead td")].map((head) => head.dataset.label ?? head.textContent.trim());
    for (const row of box.querySelectorAll("tbody tr")) {
      for (const cell of row.cells) {
        if (row.cells.length === names.length && cell.tagName === "TD") cell.dataset.label = names[cell.cellIndex];
        cell.classList.toggle("blank", !cell.childElementCount && /^[–\s]*$/.test(cell.textContent));
      }
    }
  }
  const fit = (box) => {
    const table = box.querySelector("table"), width = box.clientWidth;
    if (!width || box.dataset.fits === `${width}`) return;
    table.classList.remove("is-stacked");
    table.classList.toggle("is-stacked", box.scrollWidth > box.clientWidth + 1);
    box.dataset.fits = `${width}`;
  };
  const watched = new ResizeObserver((entries) => { for (const entry of entries) fit(entry.target); });
  for (const box of boxes) { fit(box); watched.observe(box); }
})();
