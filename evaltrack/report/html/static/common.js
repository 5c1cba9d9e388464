/* What reports and the pages of `evaltrack ui` share. Text is always text: nothing is parsed as HTML. */
export function filled(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value !== undefined && value !== null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(3).filter((child) => child !== "" && child !== false && child !== undefined && child !== null));
  return node;
}
export const make = (tag, props, ...children) => filled(document.createElement(tag), props, children);

/* A table that is wider than its box becomes cards: each value below the name of its column. */
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const table = target.querySelector("table"), width = target.clientWidth;
    if (!width || target.dataset.fits === `${width}`) continue;
    table.classList.remove("is-stacked");
    table.classList.toggle("is-stacked", target.scrollWidth > width + 1);
    target.dataset.fits = `${width}`;
  }
});
export function stack(box) {
  const names = [...box.querySelectorAll("thead th, thead td")].map((head) => head.dataset.label ?? head.textContent.trim());
  for (const row of box.querySelectorAll("tbody tr")) {
    for (const cell of row.cells) {
      if (row.cells.length === names.length && cell.tagName === "TD") cell.dataset.label = names[cell.cellIndex];
      cell.classList.toggle("blank", !cell.childElementCount && /^[–\s]*$/.test(cell.textContent));
    }
  }
  resized.observe(box);
}

/* Of both lists the places of what they have in common, in this order: their longest common sequence. */
export function common(one, other, isSame) {
  const best = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) best[i][j] = isSame(one[i], other[j]) ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  }
  const places = [new Set(), new Set()];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (isSame(one[i], other[j])) { places[0].add(i++); places[1].add(j++); }
    else if (best[i + 1][j] >= best[i][j + 1]) i += 1;
    else j += 1;
  }
  return places;
}
