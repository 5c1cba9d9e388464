/* The table of questions: only the rows in view stand in the document. */
const OVERSCAN = 8;
const list = $("list"), spacer = $("spacer"), head = $("head"), detail = $("detail");
const phone = window.matchMedia("(max-width: 600px)"), narrow = window.matchMedia("(max-width: 1100px)");
const rowHeight = () => (phone.matches ? 104 : 62);
let shown = data.questions, chosen = -1, frame = 0;

/* ---- cells ---- */
const SCALE = 100;
function dumbbell(pair) {
  const [was, now] = pair.map((value) => (value === null ? null : 5 + SCALE * Math.max(0, Math.min(1, value / data.span))));
  const at = 5 + SCALE * data.threshold / data.span;
  const kind = was === null || now === null || was === now ? "same" : now < was ? "worse" : "better";
  return svg("svg", { class: `plot bell ${kind}`, width: 110, height: 16, viewBox: "0 0 110 16", "aria-hidden": "true" },
    svg("line", { class: "grid-line", x1: 5, x2: 105, y1: 8, y2: 8 }),
    svg("line", { class: "limit", x1: at, x2: at, y1: 1, y2: 15 }),
    was !== null && now !== null && svg("line", { class: "range", x1: was, x2: now, y1: 8, y2: 8 }),
    was !== null && svg("circle", { class: "dot was", cx: was, cy: 8, r: 3.5 }),
    now !== null && svg("circle", { class: "dot", cx: now, cy: 8, r: 4.5 }));
}
const digits = (value) => (value === null ? "–" : data.span === 1 ? value.toFixed(2) : value.toFixed(0));
function pairWords(pair, words) {
  const [was, now] = pair.map(words);
  const made = el("span", { class: "pair-words" });
  if (data.compared && was !== now) made.append(was, " → ");
  made.append(el("b", {}, now));
  return made;
}
const rankWords = (rank) => (rank === null ? "–" : rank === 0 ? "none" : `${rank}`);

const COLUMNS = [
  { name: "change", title: data.compared ? "Change" : "Result", width: 100, least: 96, cell: (question) => badge(question.group) },
  { name: "question", title: "Question", width: 0, cell: questionCell },
  { name: "score", title: data.span === 100 ? "Reasoning score" : "Judge score", width: 172, least: 124, of: "score",
    cell: (question) => question.score && el("span", { class: "bells" }, dumbbell(question.score), pairWords(question.score, digits)) },
  { name: "rank", title: "Rank", width: 76, least: 66, of: "ranks", cell: (question) => question.ranks && pairWords(question.ranks, rankWords) },
  { name: "cause", title: "Cause", width: 146, least: 112, of: "cause", cell: (question) => question.cause && el("span", { class: "cell-cause" }, causeWords(question.cause)) },
].filter((column) => !column.of || data.questions.some((question) => question[column.of]));

function questionCell(question) {
  const about = el("div", { class: "about" }, el("span", {}, [question.id, question.again, question.domain, question.difficulty].filter(Boolean).join(" · ")));
  return [foreign(question.q, "div", "line"), about];
}

/* ---- head ---- */
/* A column gives way, down to its least width, before the list scrolls sideways. */
const trackOf = (column) => (column.width ? `minmax(${column.least}px, ${column.width}px)` : "minmax(160px, 1fr)");

function lay() {
  list.style.setProperty("--columns", COLUMNS.map(trackOf).join(" "));
  head.replaceChildren(...COLUMNS.map(headCell));
  list.setAttribute("aria-colcount", COLUMNS.length);
}

function headCell(column) {
  const active = sort.value === column.name;
  const button = el("button", { type: "button" }, column.title, active ? (descending ? " ▼" : " ▲") : "");
  button.addEventListener("click", () => { sortBy(column.name); refresh(); remember(); head.querySelector(`[data-column="${column.name}"] button`).focus(); });
  const made = el("div", { role: "columnheader", "data-column": column.name, "aria-sort": active ? (descending ? "descending" : "ascending") : "none" }, button);
  if (column.name === "score") made.append(el("span", { class: "dim" }, ` ┆ ${data.threshold}`));
  return made;
}

/* ---- rows ---- */
const placeOf = (row) => row.getAttribute("aria-rowindex") - 2;
function item(question, at) {
  const made = el("div", { class: "item", role: "row", id: `o-${at}`, "aria-rowindex": at + 2, "aria-selected": at === chosen ? "true" : "false" });
  made.style.top = `${at * rowHeight()}px`;
  for (const column of COLUMNS) {
    const cell = el("div", { role: "gridcell", class: `cell ${column.name}` });
    const content = column.cell(question);
    cell.append(...(Array.isArray(content) ? content : content ? [content] : []));
    made.append(cell);
  }
  made.addEventListener("click", () => choose(at, true));
  return markHits(made, searched());
}

function draw() {
  spacer.replaceChildren();
  fillView();
}

/* Rows that are still in view stay: one that is replaced between press and release would not be clicked. */
function fillView() {
  frame = 0;
  const height = rowHeight();
  const first = Math.max(0, Math.floor(list.scrollTop / height) - OVERSCAN);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + OVERSCAN);
  for (const row of [...spacer.children]) if (placeOf(row) < first || placeOf(row) >= last) row.remove();
  let next = spacer.firstElementChild;
  for (let at = first; at < last; at += 1) {
    if (next && placeOf(next) === at) next = next.nextElementSibling;
    else spacer.insertBefore(item(shown[at], at), next);
  }
  if (chosen >= first && chosen < last) list.setAttribute("aria-activedescendant", `o-${chosen}`);
  else list.removeAttribute("aria-activedescendant");
}

function reveal() {
  if (chosen < 0) return;
  const height = rowHeight(), top = chosen * height, view = list.clientHeight - head.offsetHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + height > list.scrollTop + view) list.scrollTop = top + height - view;
}

function choose(at, byHand) {
  if (!shown.length) return;
  chosen = Math.max(0, Math.min(shown.length - 1, at));
  reveal();
  draw();
  show();
  remember();
  if (byHand && narrow.matches) viewer.scrollIntoView({ block: "start" });
}

function refresh(keep) {
  const held = keep || shown[chosen];
  shown = sorted(matching());
  const total = data.questions.length.toLocaleString("en");
  found.textContent = `${shown.length.toLocaleString("en")} of ${total} question${data.questions.length === 1 ? "" : "s"}${linkedWords()}`;
  spacer.style.height = `${shown.length * rowHeight()}px`;
  list.style.setProperty("--whole", `${data.questions.length * rowHeight() + 54}px`); /* of all questions, so that a filter moves nothing */
  list.setAttribute("aria-rowcount", shown.length + 1);
  list.classList.toggle("is-empty", !shown.length);
  chosen = shown.indexOf(held);
  if (chosen < 0 && shown.length) chosen = 0;
  if (chosen === 0) list.scrollTop = 0;
  showChips();
  lay();
  reveal();
  draw();
  show();
}
