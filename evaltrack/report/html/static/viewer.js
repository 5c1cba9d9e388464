/* What stands above a question: previous and next, copy, and the whole width. */
const viewer = $("viewer"), isFramed = () => window.self !== window.top && window.origin === "null" && window.name !== "evaltrack-ui"; /* MLflow's frame opens nothing */
let wide = false;

function showPlace() {
  $("place").textContent = shown.length ? `${(chosen + 1).toLocaleString("en")} of ${shown.length.toLocaleString("en")}` : "";
  $("to-previous").disabled = chosen <= 0;
  $("to-next").disabled = chosen < 0 || chosen >= shown.length - 1;
  for (const id of ["copy-link", "copy-markdown"]) $(id).disabled = chosen < 0;
  for (const id of ["save-csv", "save-json"]) $(id).disabled = !shown.length;
}

function widen(to) {
  wide = to;
  document.querySelector(".questions").classList.toggle("is-wide", wide);
  $("wide").setAttribute("aria-pressed", wide ? "true" : "false");
  if (!wide) { draw(); reveal(); draw(); }
}

function step(by) {
  const focus = document.activeElement;
  choose(chosen + by);
  if (focus && focus.disabled) ($("to-next").disabled ? $("to-previous") : $("to-next")).focus();
}

$("to-previous").addEventListener("click", () => step(-1));
$("to-next").addEventListener("click", () => step(1));
$("wide").addEventListener("click", () => { widen(!wide); show(); remember(); });
$("copy-link").addEventListener("click", () => copy(location.href, "Link"));
$("copy-markdown").addEventListener("click", () => copy(markdownOf(shown[chosen]), "Question"));
$("save-csv").addEventListener("click", () => save(csvOf(shown), "text/csv;charset=utf-8", "csv"));
$("save-json").addEventListener("click", () => save(jsonOf(shown), "application/json", "json"));
