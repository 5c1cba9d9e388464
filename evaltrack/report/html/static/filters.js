/* Which questions are shown, and in which order. */
const filters = { group: $("f-group"), domain: $("f-domain"), difficulty: $("f-difficulty"), category: $("f-category"), cause: $("f-cause") };
const bounds = { low: $("f-low"), high: $("f-high") };
const search = $("search"), sort = $("sort"), found = $("found"), chips = $("chips");
/* Filters without a control of their own, which links of the page set: outcome=pass-fail, moved=overall_score.down */
const linked = { outcome: "", moved: "" };
const controls = () => [...Object.values(filters), ...Object.values(bounds), search].filter(Boolean);
let descending = false;

const OF_SEVERAL = {
  worse: (question) => ["flip", "lost", "drop"].includes(question.group),
  borderline: (question) => Boolean(question.edge),
  errors: (question) => question.now === "error" || question.group === "error" || question.group === "lost",
};
const SEVERAL_NAMES = { worse: "all that got worse", borderline: "borderline", errors: "errors" };

function haystack(question) {
  if (question.hay === undefined) {
    const parts = [question.id, question.q, question.detail, question.cause, data.causes[question.cause], question.category, question.wanted];
    for (const side of question.sides || []) {
      parts.push(side.answer, side.error);
      for (const source of side.sources || []) parts.push(source.name, source.title);
      for (const verdict of side.verdicts || []) parts.push(verdict.said);
    }
    question.hay = parts.filter(Boolean).join("\n").toLowerCase();
  }
  return question.hay;
}

const searched = () => search.value.toLowerCase().split(/\s+/).filter(Boolean);

function isLinked(question) {
  if (linked.outcome && `${question.was || question.now}-${question.now}` !== linked.outcome) return false;
  const [name, way] = linked.moved.split(".");
  return !name || (question[way] || []).includes(name);
}

function isBetween(question) {
  const low = bounds.low && bounds.low.value, high = bounds.high && bounds.high.value;
  if (!low && !high) return true;
  const score = (question.score || [])[1];
  return score !== null && score !== undefined && (!low || score >= Number(low)) && (!high || score <= Number(high));
}

function matching() {
  const words = searched();
  const wanted = Object.entries(filters).filter(([, select]) => select && select.value);
  return data.questions.filter((question) =>
    wanted.every(([name, select]) => {
      const several = name === "group" && OF_SEVERAL[select.value];
      return several ? several(question) : (question[name] || "") === select.value;
    }) && isLinked(question) && isBetween(question) && words.every((word) => haystack(question).includes(word)));
}

/* ---- order ---- */
const collator = new Intl.Collator(undefined, { numeric: true });
const LAST = Infinity;
const order = Object.keys(GROUPS);
const byRank = (rank) => (rank === 0 ? 1000 : rank);
const shift = (pair, of = (value) => value) => {
  if (!pair || pair[1] === null) return LAST;
  return pair[0] === null ? of(pair[1]) : of(pair[1]) - of(pair[0]);
};
const KEYS = {
  change: (question) => order.indexOf(question.group),
  score: (question) => shift(question.score),
  rank: (question) => { const by = shift(question.ranks, byRank); return by === LAST ? by : -by; },
};

function sorted(questions) {
  const name = { question: "q" }[sort.value] || sort.value;
  if (!name) return questions;
  const key = KEYS[name];
  const way = descending ? -1 : 1;
  const compare = key
    ? (a, b) => (a[0] === b[0] ? 0 : a[0] === LAST ? 1 : b[0] === LAST ? -1 : way * (a[0] - b[0]))
    : (a, b) => way * collator.compare(a[0], b[0]);
  return questions.map((question) => [key ? key(question) : question[name] || "", question]).sort(compare).map((pair) => pair[1]);
}

function sortBy(name) {
  if (sort.value !== name) { sort.value = name; descending = false; }
  else if (!descending) descending = true;
  else { sort.value = ""; descending = false; }
}

/* ---- controls ---- */
function counts(name) {
  const made = new Map();
  for (const question of data.questions) if (question[name]) made.set(question[name], (made.get(question[name]) || 0) + 1);
  return made;
}

function fill(select, name, values) {
  if (!select) return;
  const held = counts(name);
  select.append(el("option", { value: "" }, "all"));
  if (name === "group") for (const several of data.compared ? ["worse", "borderline"] : []) select.append(el("option", { value: several }, SEVERAL_NAMES[several]));
  if (name === "group" && data.questions.some(OF_SEVERAL.errors)) select.append(el("option", { value: "errors" }, SEVERAL_NAMES.errors));
  const keys = values ? values.filter((key) => held.has(key)) : [...held.keys()].sort(collator.compare);
  for (const key of keys) {
    const words = name === "group" ? GROUPS[key][0] : name === "cause" ? causeWords(key) : key;
    select.append(el("option", { value: key }, `${words} (${held.get(key).toLocaleString("en")})`));
  }
  if (!keys.length) select.closest("label").hidden = true;
}

function chip(value, words, count, tone, meaning) {
  const made = el("button", { type: "button", class: `chip ${tone}`, "data-group": value, "aria-pressed": "false", title: meaning || null },
    words, " ", el("b", {}, count.toLocaleString("en")));
  made.addEventListener("click", () => { filters.group.value = made.getAttribute("aria-pressed") === "true" ? "" : value; refresh(); remember(); });
  return made;
}

function fillChips() {
  const held = counts("group");
  const made = [chip("", "all", data.questions.length, "")];
  for (const key of order) made.push(chip(key, GROUPS[key][0], held.get(key), GROUPS[key][1], GROUPS[key][2]));
  for (const several of ["borderline", "errors"]) {
    const count = data.questions.filter(OF_SEVERAL[several]).length;
    if (count && !(several === "errors" && GROUPS.error)) made.push(chip(several, SEVERAL_NAMES[several], count, "warn"));
  }
  chips.append(...made);
}

function showChips() {
  for (const each of chips.children) each.setAttribute("aria-pressed", each.dataset.group === filters.group.value ? "true" : "false");
}

const OUTCOMES = { pass: "passed", fail: "failed" };
function linkedWords() {
  const words = [];
  const [was, now] = linked.outcome.split("-");
  if (linked.outcome) words.push(was === now ? `${OUTCOMES[was] || was} on both sides` : `${was} to ${now}`);
  if (linked.moved) words.push(`${(data.moves || {})[linked.moved.split(".")[0]] || linked.moved}: ${linked.moved.endsWith(".up") ? "higher" : "lower"}`);
  return words.length ? ` (${words.join(", ")})` : "";
}

function unlink() { for (const name of Object.keys(linked)) linked[name] = ""; }
function clearAll() { for (const control of controls()) control.value = ""; unlink(); }
