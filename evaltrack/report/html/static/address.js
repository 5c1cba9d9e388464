/* The address: #q-ID?group=flip&domain=travel&search=... leads back to all that is chosen, #metrics to a part of the page. */
const tabs = [...document.querySelectorAll(".tab")];

function openTab(name) {
  if (!tabs.length) return;
  for (const tab of tabs) tab.classList.toggle("current", tab.id === name);
  for (const link of document.querySelectorAll(".head nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function remember() {
  const options = new URLSearchParams();
  for (const [name, select] of Object.entries(filters)) if (select && select.value && (name !== "group" || select.value !== START)) options.set(name, select.value);
  if (scoreMoved) options.set("moved", scoreMoved);
  if (search.value) options.set("search", search.value);
  if (sort.value) options.set("sort", sort.value);
  const question = shown[chosen], rest = options.toString();
  const hash = `#${question && reading ? `q-${encodeURIComponent(question.id)}` : ""}${rest ? `?${rest}` : ""}`;
  try { history.replaceState(null, "", hash); } catch { /* a page inside another may not */ }
}

function choice(select, value) {
  select.value = value;
  if (select.selectedIndex < 0) select.value = select === filters.group ? START : "";
}

function recallFilters(options) {
  for (const [name, select] of Object.entries(filters)) if (select) choice(select, options.get(name) || (name === "group" ? START : ""));
  scoreMoved = /^[\w.-]{1,60}$/.test(options.get("moved") || "") ? options.get("moved") : "";
  search.value = options.get("search") || "";
  choice(sort, options.get("sort") || "");
}

/* What an address leads to: a part of the page, or questions, and one of them. */
function go(hash) {
  const [start, rest] = hash.slice(1).split(/\?(.*)/s), tab = tabs.find((each) => each.id === start);
  openTab(tab ? start : "questions");
  if (tab && start !== "questions") { window.scrollTo({ top: 0, behavior: "instant" }); return; }
  const wanted = start.startsWith("q-") && questionOf(start);
  recallFilters(new URLSearchParams(rest || ""));
  if (wanted && !matching().includes(wanted)) clearAll();
  reading = Boolean(wanted);
  if (!tabs.length && (wanted || rest)) $("questions").scrollIntoView({ behavior: "instant" });
  refresh(wanted);
}

function questionOf(start) {
  let id = start.slice(2);
  try { id = decodeURIComponent(id); } catch { /* taken as it stands */ }
  return data.questions.find((question) => question.id === id);
}

function follow(hash) {
  try { history.pushState(null, "", hash); } catch { /* a page inside another may not */ }
  if (hash === "#questions" && chosen >= 0) { openTab("questions"); place(); remember(); return; }
  const at = hash.startsWith("#q-") ? shown.indexOf(questionOf(hash.slice(1))) : -1;
  if (at < 0) { go(hash); return; }
  openTab("questions");
  choose(at);
}
