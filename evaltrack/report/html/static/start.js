/* Controls, keys and links; then the page opens on what its address says. */
for (const name of Object.keys(filters)) fill(name);
fillChips();
const changed = () => { refresh(); remember(); };
for (const control of [...Object.values(filters), sort]) if (control) control.addEventListener("change", changed);
let typing = 0;
search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(changed, 12); });
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("reset").addEventListener("click", () => { clearAll(); changed(); });

$("earlier").addEventListener("click", () => choose(first - PAGE));
$("later").addEventListener("click", () => choose(first + PAGE));
function step(by) {
  const focus = document.activeElement;
  choose(chosen + by);
  if (focus && focus.disabled) ($("to-next").disabled ? $("to-previous") : $("to-next")).focus();
}
$("to-previous").addEventListener("click", () => step(-1));
$("to-next").addEventListener("click", () => step(1));
function backToList() {
  const row = $(`o-${chosen}`);
  reading = false;
  place();
  remember();
  if (row) row.focus();
}
$("to-list").addEventListener("click", backToList);
$("copy-link").addEventListener("click", () => copy(location.href, "Link"));
$("copy-markdown").addEventListener("click", () => copy(markdownOf(shown[chosen]), "Question"));
$("save-csv").addEventListener("click", () => save(csvOf(shown)));
phone.addEventListener("change", place);
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); openTab("questions"); search.focus(); }
  if (event.key === "j" || event.key === "k") { openTab("questions"); choose(chosen + (event.key === "j" ? 1 : -1)); }
  if (event.key === "Escape") backToList();
});
window.addEventListener("hashchange", () => go(location.hash));
document.addEventListener("click", (event) => {
  const to = event.target.closest('a[href^="#"]');
  if (!to || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  follow(to.getAttribute("href"));
  if (to.matches(".skip")) $("questions").focus();
  else if (to.matches(".row") && (!event.detail || phone.matches)) detail.focus({ preventScroll: true });
});

/* MLflow shows a report in a frame that may open nothing: there a link's address is shown, to be copied. */
if (isFramed()) {
  const address = make("input", { class: "wide", readonly: true, "aria-label": "Address of the link" });
  const box = make("p", { class: "small no-print copy", role: "status" }, "Links do not open in this preview. Copy the address: ", address);
  document.addEventListener("click", (event) => {
    const to = event.target.closest('a[target="_blank"]');
    if (!to) return;
    event.preventDefault();
    address.value = to.getAttribute("href");
    (to.closest("p, li, th, td, nav") || to).append(box);
    address.select();
  });
}

/* On paper: a list of what changed, and the first of them with all that is known. */
const PRINTED = 20, PRINTED_ROWS = 1000;
window.addEventListener("beforeprint", () => {
  const listed = shown.filter((question) => !["same", "pass"].includes(question.group));
  const note = listed.length > PRINTED ? make("p", {}, `The first ${PRINTED} of ${listed.length.toLocaleString("en")} in full:`) : "";
  const lines = listed.slice(0, PRINTED_ROWS).map((question) => make("li", {}, badge(question.group), " ", foreign(question.q), " ", moved(question), " ", foreign(causeOf(question), "span", "dim")));
  $("print").replaceChildren(...(listed.length ? [make("ol", {}, ...lines), note] : []), ...listed.slice(0, PRINTED).map((question) => make("article", {}, ...described(question))));
});
go(location.hash);
document.querySelectorAll(".scroll:has(> table.grid)").forEach(stack);
