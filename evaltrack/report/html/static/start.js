/* Controls, keys and links; then the page opens on what its address says. */
fill(filters.group, "group", order);
for (const name of ["domain", "difficulty", "category", "cause"]) fill(filters[name], name);
if (bounds.low && !COLUMNS.some((column) => column.name === "score")) $("bounds").hidden = true;
fillChips();
const changed = () => { refresh(); remember(); };
for (const control of [...Object.values(filters), sort]) if (control) control.addEventListener("change", () => { if (control === sort) descending = false; changed(); });
/* Of very many questions not every letter is searched for. */
const PATIENCE = data.questions.length > 20000 ? 60 : 12;
let typing = 0;
for (const input of [search, bounds.low, bounds.high]) if (input) input.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(changed, PATIENCE); });
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("reset").addEventListener("click", () => { clearAll(); sort.value = ""; descending = false; changed(); });

/* What is searched is made ready while nothing else happens. */
let ready = 0;
function prepare(deadline) {
  while (ready < data.questions.length && deadline.timeRemaining() > 1) haystack(data.questions[ready++]);
  if (ready < data.questions.length) requestIdleCallback(prepare);
}
if (window.requestIdleCallback) requestIdleCallback(prepare);

const later = () => { if (!frame) frame = requestAnimationFrame(fillView); };
list.addEventListener("scroll", later);
window.addEventListener("resize", later);
phone.addEventListener("change", () => refresh());
list.addEventListener("keydown", (event) => {
  if (event.target.closest("button")) return;
  const page = Math.max(1, Math.floor(list.clientHeight / rowHeight()) - 1);
  const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
  if (event.key in steps) { event.preventDefault(); choose(chosen + steps[event.key]); }
  if (event.key === "Home" || event.key === "End") { event.preventDefault(); choose(event.key === "Home" ? 0 : shown.length - 1); }
  if (event.key === "Enter") { event.preventDefault(); detail.focus(); }
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); search.focus(); }
  if (event.key === "j") choose(chosen + 1);
  if (event.key === "k") choose(chosen - 1);
  if (event.key === "Escape" && wide) { widen(false); remember(); list.focus(); }
  else if (event.key === "Escape" && viewer.contains(document.activeElement)) list.focus();
});
window.addEventListener("hashchange", recall);
document.addEventListener("click", (event) => {
  const to = event.target.closest('a[href^="#q-"]');
  if (!to || event.defaultPrevented) return;
  event.preventDefault();
  follow(to.getAttribute("href"));
  if (!to.closest("#detail")) $("questions").scrollIntoView();
});

/* MLflow shows a report in a frame that may open nothing: there a link's address is shown, to be copied. */
if (isFramed()) {
  const address = el("input", { class: "wide", readonly: true, "aria-label": "Address of the link" });
  const box = el("p", { class: "small no-print copy", role: "status" }, "Links do not open in this preview. Copy the address: ", address);
  document.addEventListener("click", (event) => {
    const to = event.target.closest('a[target="_blank"]');
    if (!to) return;
    event.preventDefault();
    address.value = to.getAttribute("href");
    (to.closest("p, li, th, td, nav") || to).append(box);
    address.select();
  });
}

/* On paper: a table of what changed, and the first of them with all that is known. */
const PRINTED = 20, PRINTED_ROWS = 1000;
function printedRow(question) {
  const cells = COLUMNS.map((column) => {
    const content = column.cell(question);
    return el("td", {}, ...(Array.isArray(content) ? content : content ? [content] : []));
  });
  return el("tr", {}, ...cells);
}
window.addEventListener("beforeprint", () => {
  const first = shown.filter((question) => !["same", "pass"].includes(question.group));
  const titles = el("thead", {}, el("tr", {}, ...COLUMNS.map((column) => el("th", {}, column.title))));
  const table = el("table", { class: "grid small" }, titles, el("tbody", {}, ...first.slice(0, PRINTED_ROWS).map(printedRow)));
  const note = first.length > PRINTED ? el("p", {}, `The first ${PRINTED} of ${first.length.toLocaleString("en")} in full:`) : "";
  $("print").replaceChildren(...(first.length ? [table, note] : []), ...first.slice(0, PRINTED).map((question) => el("article", {}, ...described(question))));
});
recall();
