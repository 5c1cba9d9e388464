/* The list of questions, a hundred at a time, beside the question that is chosen. The page scrolls, nothing in it does. */
const PAGE = 100, GAP = 12;
const list = $("list"), pane = $("pane"), detail = $("detail"), viewer = $("viewer");
const phone = window.matchMedia("(max-width: 720px)");
/* On a phone the list and a question are a screen each: `reading` says which is shown. */
let shown = [], chosen = -1, reading = false, first = -1;

const digits = (value) => (value === null ? "–" : data.span === 1 ? value.toFixed(2) : value.toFixed(0));
const rankWords = (rank) => (rank === null ? "–" : rank === 0 ? "none" : `${rank}`);

/* The rank of the expected source before and now, or the score where no rank moved. */
function moved(question) {
  const [pair, words, better] = [
    [question.ranks, rankWords, (was, now) => (was || 1e6) > (now || 1e6)],
    [question.score, digits, (was, now) => was < now],
  ].find(([each]) => each && each[0] !== each[1] && each[1] !== null) || [];
  if (!pair) return "";
  const label = pair === question.ranks ? "rank " : "score ";
  if (!data.compared || pair[0] === null) return make("span", { class: "moved" }, label, words(pair[1]));
  return make("span", { class: `moved ${better(...pair) ? "good" : "bad"}-text` }, make("span", { class: "unseen" }, label), `${words(pair[0])} → ${words(pair[1])}`);
}

const causeOf = (question) => question.culprit || causeWords(question.cause) || (data.compared ? "" : question.detail || "");

function row(question, at) {
  const about = [causeOf(question) || question.id, question.again, sort.value && GROUPS[question.group][0]].filter(Boolean).join(" · ");
  const made = make("a", { href: `#q-${encodeURIComponent(question.id)}`, class: "row", id: `o-${at}` },
    foreign(question.q || question.id, "span", "line"), moved(question), ticked(about, "span", "about"));
  return markHits(make("li", {}, made), searched());
}

/* The rows of one group have its name above them, unless they are sorted otherwise. */
function rows(from, to) {
  return shown.slice(from, to).flatMap((question, place) => {
    const isFirst = !sort.value && (place === 0 || shown[from + place - 1].group !== question.group);
    const [name, , meaning] = GROUPS[question.group];
    const head = isFirst && make("li", { class: "group" }, `${name.charAt(0).toUpperCase()}${name.slice(1)}`, meaning && `: ${meaning}`);
    return [...(head ? [head] : []), row(question, from + place)];
  });
}

function drawList() {
  first = Math.max(0, Math.floor(chosen / PAGE)) * PAGE;
  list.replaceChildren(...rows(first, first + PAGE));
  $("pages").hidden = shown.length <= PAGE;
  $("earlier").disabled = first === 0;
  $("later").disabled = first + PAGE >= shown.length;
}

/* The chosen question begins where the reader is in a long list; else at the top. */
function place() {
  const row = $(`o-${chosen}`), top = viewer.parentElement.getBoundingClientRect().top + window.scrollY;
  const isLong = pane.offsetHeight > window.innerHeight && !phone.matches;
  document.documentElement.classList.toggle("reading", reading);
  if (row && isLong) row.scrollIntoView({ block: "nearest", behavior: "instant" });
  const start = row && isLong ? Math.max(0, window.scrollY - top) : 0;
  viewer.style.marginTop = `${start}px`;
  if (window.scrollY > top + start) window.scrollTo({ top: top + start, behavior: "instant" });
}

/* What is lower than the window stays in it; of what is higher, its end. */
function stick() {
  for (const part of [pane, viewer]) part.style.top = `${Math.min(GAP, window.innerHeight - part.offsetHeight - GAP)}px`;
}
const moving = new ResizeObserver(stick);
for (const part of [pane, viewer]) moving.observe(part);
window.addEventListener("resize", stick);

function mark() {
  const old = list.querySelector("[aria-current]"), now = $(`o-${chosen}`);
  if (old) old.removeAttribute("aria-current");
  if (now) now.setAttribute("aria-current", "true");
  $("place").textContent = shown.length ? `${(chosen + 1).toLocaleString("en")} of ${shown.length.toLocaleString("en")}` : "";
  $("to-previous").disabled = chosen <= 0;
  $("to-next").disabled = chosen < 0 || chosen >= shown.length - 1;
  for (const id of ["copy-link", "copy-markdown"]) $(id).disabled = chosen < 0;
  $("save-csv").disabled = !shown.length;
}

function choose(at) {
  if (!shown.length) return;
  chosen = Math.max(0, Math.min(shown.length - 1, at));
  reading = true;
  if (chosen < first || chosen >= first + PAGE) drawList();
  mark();
  show();
  place();
  remember();
}

function refresh(keep) {
  const held = keep || shown[chosen];
  shown = sorted(matching());
  const total = data.questions.length.toLocaleString("en");
  found.textContent = `${shown.length.toLocaleString("en")} of ${total} question${data.questions.length === 1 ? "" : "s"}${filterWords()}`;
  const bare = searched().length ? data.questions.filter((question) => !question.sides).length : 0;
  if (bare) found.textContent += `; the answers of ${bare.toLocaleString("en")} are not in this page`;
  chosen = Math.max(shown.indexOf(held), shown.length ? 0 : -1);
  showChips();
  drawList();
  mark();
  show();
  place();
}
