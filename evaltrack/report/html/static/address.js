/* The address: #q-ID?group=flip&domain=travel&search=... leads back to all that is chosen. */
function remember() {
  const options = new URLSearchParams();
  for (const [name, select] of Object.entries(filters)) if (select && select.value) options.set(name, select.value);
  for (const [name, value] of Object.entries(linked)) if (value) options.set(name, value);
  for (const [name, input] of Object.entries(bounds)) if (input && input.value) options.set(name, input.value);
  if (search.value) options.set("search", search.value);
  if (sort.value) options.set("sort", `${descending ? "-" : ""}${sort.value}`);
  if (wide) options.set("wide", "1");
  const question = shown[chosen], rest = options.toString();
  const hash = `#${question ? `q-${encodeURIComponent(question.id)}` : ""}${rest ? `?${rest}` : ""}`;
  try { history.replaceState(null, "", hash); } catch { /* a page inside another may not */ }
}

function recallFilters(options) {
  for (const [name, select] of Object.entries(filters)) if (select) select.value = options.get(name) || "";
  for (const select of Object.values(filters)) if (select && select.selectedIndex < 0) select.value = "";
  for (const name of Object.keys(linked)) linked[name] = /^[\w.-]{1,60}$/.test(options.get(name) || "") ? options.get(name) : "";
  for (const [name, input] of Object.entries(bounds)) if (input) input.value = options.get(name) || "";
  search.value = options.get("search") || "";
  const order = options.get("sort") || "";
  descending = order.startsWith("-");
  sort.value = order.replace(/^-/, "");
  if (sort.selectedIndex < 0) sort.value = "";
  widen(options.get("wide") === "1");
}

function recall() {
  const [start, rest] = location.hash.slice(1).split(/\?(.*)/s);
  recallFilters(new URLSearchParams(rest || ""));
  let wanted;
  if (start.startsWith("q-")) {
    let id = start.slice(2);
    try { id = decodeURIComponent(id); } catch { /* taken as it stands */ }
    wanted = data.questions.find((question) => question.id === id);
  }
  refresh(wanted);
  if (wanted || rest) $("questions").scrollIntoView();
}

function follow(to) {
  try { history.pushState(null, "", to); } catch { /* a page inside another may not */ }
  const id = decodeURIComponent(to.slice(3));
  const wanted = data.questions.find((question) => question.id === id);
  if (wanted && shown.indexOf(wanted) < 0) clearAll();
  refresh(wanted);
  remember();
}
