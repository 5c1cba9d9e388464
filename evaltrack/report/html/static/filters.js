/* Which questions are shown, and in which order. */
const filters = { group: $("f-group"), domain: $("f-domain"), difficulty: $("f-difficulty"), category: $("f-category"), cause: $("f-cause") };
const search = $("search"), sort = $("sort"), found = $("found"), chips = $("chips");
/* The score and the way, such as overall_score.down, of a link among the metrics. */
let scoreMoved = "";
const controls = () => [...Object.values(filters), search, sort].filter(Boolean);

const OF_SEVERAL = {
  all: () => true,
  worse: (question) => ["flip", "lost", "drop"].includes(question.group),
  reworded: (question) => Boolean(question.reworded),
  errors: (question) => question.now === "error" || question.group === "error" || question.group === "lost",
};
const SEVERAL_NAMES = { all: "all", worse: "got worse", reworded: "answer changed", errors: "errors" };
const START = data.questions.some(OF_SEVERAL.worse) ? "worse" : "all";

function haystack(question) {
  if (question.hay === undefined) {
    const parts = [question.id, question.q, question.detail, question.culprit, question.cause, data.causes[question.cause], question.category, question.wanted];
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

function isMoved(question) {
  const [name, way] = scoreMoved.split(".");
  return !name || (question[way] || []).includes(name);
}

function matching() {
  const words = searched();
  const wanted = Object.entries(filters).filter(([, select]) => select && select.value);
  return data.questions.filter((question) =>
    wanted.every(([name, select]) => {
      const several = name === "group" && OF_SEVERAL[select.value];
      return several ? several(question) : (question[name] || "") === select.value;
    }) && isMoved(question) && words.every((word) => haystack(question).includes(word)));
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
  score: (question) => shift(question.score),
  "-score": (question) => (shift(question.score) === LAST ? LAST : -shift(question.score)),
  rank: (question) => (shift(question.ranks, byRank) === LAST ? LAST : -shift(question.ranks, byRank)),
};

function sorted(questions) {
  if (!sort.value) return questions;
  const key = KEYS[sort.value];
  const compare = key ? (a, b) => (a[0] === b[0] ? 0 : a[0] - b[0]) : (a, b) => collator.compare(a[0], b[0]);
  return questions.map((question) => [key ? key(question) : question[sort.value] || "", question]).sort(compare).map((pair) => pair[1]);
}

/* ---- controls ---- */
function counts(name) {
  const made = new Map();
  for (const question of data.questions) if (question[name]) made.set(question[name], (made.get(question[name]) || 0) + 1);
  return made;
}

const labelOf = (name, key) => (name === "group" ? SEVERAL_NAMES[key] || GROUPS[key][0] : name === "cause" ? causeWords(key) : key);

function fill(name) {
  const select = filters[name];
  if (!select) return;
  const held = counts(name);
  const keys = name === "group" ? order.filter((key) => held.has(key)) : [...held.keys()].sort(collator.compare);
  if (name === "group") select.append(...Object.keys(SEVERAL_NAMES).filter((each) => data.compared || each === "all").map((each) => make("option", { value: each }, SEVERAL_NAMES[each])));
  else select.append(make("option", { value: "" }, "all"));
  for (const key of keys) select.append(make("option", { value: key }, `${labelOf(name, key)} (${held.get(key).toLocaleString("en")})`));
  if (!keys.length) select.closest("label").hidden = true;
}

/* The filters that a triage needs; of a run, one for each result. */
function fillChips() {
  for (const value of data.compared ? ["worse", "flip", "fix", "reworded", "all"] : ["all", ...order]) {
    if (!OF_SEVERAL[value] && !GROUPS[value]) continue;
    const words = labelOf("group", value), count = data.questions.filter(OF_SEVERAL[value] || ((question) => question.group === value)).length;
    const made = make("button", { type: "button", class: "chip", "data-group": value, "aria-pressed": "false", title: GROUPS[value] && GROUPS[value][2] },
      `${words.charAt(0).toUpperCase()}${words.slice(1)} `, make("b", {}, count.toLocaleString("en")));
    made.addEventListener("click", () => { filters.group.value = value; refresh(); remember(); });
    chips.append(made);
  }
}

function showChips() {
  for (const each of chips.children) each.setAttribute("aria-pressed", each.dataset.group === filters.group.value ? "true" : "false");
}

function filterWords() {
  const [name, way] = scoreMoved.split(".");
  return name ? ` (${(data.moves || {})[name] || name}: ${way === "up" ? "higher" : "lower"})` : "";
}

/* All questions, in their first order. */
function clearAll() {
  for (const control of controls()) control.value = "";
  filters.group.value = "all";
  scoreMoved = "";
}
