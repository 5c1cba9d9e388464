/* The review of a golden set: its questions with their states, and the one that is shown with its chunks. */
import { badge, clean, foreign, make } from "./dom.js";

const el = (id) => document.getElementById(id);
const SHORT = 1500, TONES = { draft: "warn", "expects nothing": "bad", negative: "ok", reviewed: "ok" };
let listed = [], at = 0, now = null, current = -1, selection = null, query = "";
let work = Promise.resolve();
const open = new Set();

function say(text, tone = "") {
  el("status").replaceChildren(...text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part)));
  el("status").className = `status ${tone}`;
}

async function ask(path, body) {
  const post = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer, data;
  try {
    answer = await fetch(path, body === undefined ? {} : post);
    data = await answer.json();
  } catch {
    throw new Error("evaltrack does not answer; is the command still running? All marks are saved in the file.");
  }
  if (!answer.ok) throw Object.assign(new Error(data.error), { isGone: answer.status === 410 });
  return data;
}

/* One thing after the other, so that quick keys do not overtake each other. */
const queue = (task) => { work = work.then(task).catch((error) => say(error.message, "bad-text")); };

/* A key or a click is for the question that was shown at that time: nobody confirms what they have not seen. */
function forShown(task) {
  const id = now && now.id;
  if (now) queue(() => now && now.id === id && task());
}

async function readList(wanted) {
  const state = await ask(`state?drafts=${el("filter").value}`);
  el("name").textContent = state.name;
  document.title = `Review · ${state.name}`;
  listed = state.questions;
  at = Math.max(0, listed.findIndex((each) => each.id === wanted));
  drawList();
  return state;
}

function drawList() {
  el("questions").replaceChildren(...listed.map((each, place) => make("li", {},
    make("button", { type: "button", "aria-current": String(place === at), click: () => queue(() => show(place)) },
      foreign(each.question), " ", each.state && badge(each.state, TONES[each.state])))));
  el("questions").children[at]?.scrollIntoView({ block: "nearest" });
}

/* Somebody took a question out of the file: it is said once, and the next one is shown. */
async function leave(id, error) {
  const place = listed.findIndex((each) => each.id === id);
  if (!error.isGone || place < 0) throw error;
  listed.splice(place, 1);
  if (listed.length) { await show(place); say(error.message, "warn-text"); return; }
  nothing("No questions are left.");
  throw error;
}

function nothing(words) {
  now = null;
  el("main").hidden = true;
  el("place").textContent = words;
  el("drafts").textContent = "";
}

async function show(place) {
  if (!listed.length) return;
  at = Math.min(Math.max(place, 0), listed.length - 1);
  query = el("search").value = "";
  open.clear();
  el("place").textContent = "Asking the retrievers…";
  const { id } = listed[at], next = listed[at + 1], asked = (id) => ask(`question?${new URLSearchParams({ id })}`);
  const data = await asked(id).catch((error) => leave(id, error));
  if (!data) return;
  current = -1;
  stopEditing();
  drawList();
  drawQuestion(data);
  window.scrollTo(0, 0);
  el("question").focus({ preventScroll: true });
  if (next) asked(next.id).catch(() => {}); // the retrievers are asked ahead
}

const button = (label, run, props) => make("button", { type: "button", ...props, click: run }, label);

function drawQuestion(data) {
  now = data;
  if (listed[at].state !== data.state) { listed[at].state = data.state; drawList(); }
  el("main").hidden = false;
  el("place").textContent = `Question ${at + 1} of ${listed.length}`;
  el("drafts").textContent = data.drafts ? `· ${data.drafts} draft${data.drafts === 1 ? "" : "s"} left` : "· no drafts";
  el("before").textContent = data.history.join("\n");
  el("question").textContent = data.question;
  el("answer").textContent = data.expected_answer || "No expected answer.";
  el("answer").classList.toggle("dim", !data.expected_answer);
  el("notes").textContent = data.notes;
  const expects = data.chunks.some((chunk) => chunk.is_expected) || data.passages.length;
  el("badges").replaceChildren(
    ...[data.id, ...data.facts].map((fact) => badge(foreign(fact), "muted")),
    data.draft ? badge("draft", "warn") : "",
    data.negative ? badge("negative: the target should say that it does not know", "ok") : "",
    data.negative || expects ? "" : badge("expects nothing: retrieval is not measured", "bad"),
    data.reviewed ? badge(foreign(`reviewed: ${data.reviewed}`), "ok") : "");
  el("deeds").replaceChildren(...deeds(data));
  el("passages").replaceChildren(...data.passages.map((each) => make("div", { class: "quote" }, foreign(each.words, 2000), " ",
    button("Remove", () => act("unquote", { passage: each.key }), { "aria-label": `Remove the passage ${each.words.slice(0, 60)}` }))));
  el("problems").replaceChildren(...data.problems.map((text) => make("p", { class: "foreign warn-text" }, `A retriever failed: ${text}`)));
  const matches = data.matches || [];
  el("list").replaceChildren(...data.chunks.map(chunkItem));
  el("matches").replaceChildren(...matches.map((chunk, place) => chunkItem(chunk, data.chunks.length + place)));
  if (data.matches && !matches.length) el("matches").append(make("li", { class: "dim" }, "Nothing in the corpus matches."));
  mark();
}

function deeds(data) {
  const moves = [button("Previous", () => queue(() => step(-1))), button("Next", () => queue(() => step(1))), button("Undo", () => queue(undo))];
  return [button("Confirm", () => forShown(confirm), { class: "primary" }), button("Edit", edit),
    button(data.negative ? "Not a negative" : "Make it a negative", () => forShown(() => act("negate", {}))), ...moves];
}

function chunkItem(chunk, place) {
  const refused = !chunk.is_expected && chunk.grade !== null, name = chunk.title || chunk.id;
  const whole = chunk.text.length <= SHORT || open.has(chunk.key);
  const choose = (run) => () => forShown(() => { current = place; mark(); return run(); });
  const labelled = (label, run, pressed) => button(label, choose(run), { "aria-label": `${label}: ${chunk.id || name}`, "aria-pressed": pressed });
  const controls = [labelled(chunk.is_expected ? "Unmark" : "Mark as expected", toggle, String(chunk.is_expected)), chunk.text && labelled("Quote selection", quote)];
  if (!whole) controls.push(labelled("Show all", () => { open.add(chunk.key); drawQuestion(now); focusChunk(); }));
  const kind = chunk.is_expected ? "expected" : refused ? "refused" : "";
  return make("li", { class: `chunk ${kind}`, tabindex: -1, click: () => { current = place; mark(); } },
    make("header", {}, make("h3", { class: "foreign" }, name), " ", chunk.id && make("code", { class: "dim foreign" }, chunk.id), " ",
      chunk.is_expected && badge("expected", "ok"), chunk.grade !== null && badge(`grade ${chunk.grade}`, chunk.is_expected ? "ok" : "bad")),
    make("p", { class: "text foreign", dir: "auto" }, chunk.text ? clean(chunk.text, whole ? Infinity : SHORT) : "Its text is not known: it is not in the corpus."),
    make("div", { class: "controls" }, controls));
}

const items = () => [...document.querySelectorAll(".chunk")];
const all = () => [...now.chunks, ...(now.matches || [])];
const mark = () => items().forEach((each, place) => each.classList.toggle("current", place === current));

function focusChunk() {
  mark();
  items()[current]?.focus({ preventScroll: true });
  items()[current]?.scrollIntoView({ block: "nearest" });
}

/* Whether it was done: somebody else may have changed the question, or taken it away. */
async function act(kind, values) {
  const { id } = now;
  const data = await ask("act", { id, kind, query, ...values }).catch((error) => leave(id, error));
  if (!data) return false;
  const again = document.activeElement?.closest(".chunk");
  if (data.reloaded) {
    const there = new Set((await ask("state?drafts=")).questions.map((each) => each.id));
    listed = listed.filter((each) => there.has(each.id));
    at = Math.max(0, listed.findIndex((each) => each.id === id));
    drawList();
  }
  drawQuestion(data);
  if (again) focusChunk();
  say(data.message || (data.done ? "Saved." : ""), data.message ? "warn-text" : "");
  return data.done;
}

function chosenChunk() {
  const chunk = all()[current];
  if (!chunk) say("Choose a chunk first, with the arrow keys or a click.", "warn-text");
  return chunk;
}

async function toggle() {
  const chunk = chosenChunk();
  if (chunk) await act(chunk.is_expected ? "unmark" : "mark", { chunk: chunk.key });
}

async function grade(value) {
  const chunk = chosenChunk();
  if (chunk) await act("grade", { chunk: chunk.key, grade: value });
}

/* Touching a button clears the selection on some devices, so the last one is remembered. */
document.addEventListener("selectionchange", () => {
  const chosen = document.getSelection();
  if (!chosen || chosen.isCollapsed || !chosen.rangeCount) return;
  const [first, last] = [chosen.anchorNode, chosen.focusNode].map((each) => (each.nodeType === 1 ? each : each.parentElement).closest(".chunk .text"));
  selection = first && first === last ? { box: first.closest(".chunk"), words: chosen.toString() } : null;
});

async function quote() {
  const place = selection ? items().indexOf(selection.box) : -1;
  if (place < 0) { say("Select the words that answer the question, in one chunk.", "warn-text"); return; }
  const { words } = selection;
  selection = null;
  current = place;
  document.getSelection().removeAllRanges();
  await act("quote", { chunk: all()[place].key, words });
}

async function search(text) {
  const data = await ask(`question?${new URLSearchParams({ id: now.id, query: text })}`);
  query = text;
  const found = data.matches?.length;
  if (found) current = data.chunks.length;
  drawQuestion(data);
  if (found) focusChunk();
}

async function confirm() {
  if (!(await act("confirm", {}))) return;
  if (at + 1 < listed.length) await show(at + 1);
  else say("Confirmed; this was the last question.");
}

async function step(by) {
  if (at + by < 0 || at + by >= listed.length) { say(by < 0 ? "This is the first question." : "This is the last question.", "warn-text"); return; }
  say("");
  await show(at + by);
}

function edit() {
  el("edit-question").value = now.question;
  el("edit-answer").value = now.expected_answer;
  el("editing").hidden = false;
  el("reading").hidden = el("deeds").hidden = true;
  el("edit-question").focus();
}

function stopEditing() {
  el("editing").hidden = true;
  el("reading").hidden = el("deeds").hidden = false;
}

async function save() {
  if (!(await act("reword", { question: el("edit-question").value, expected_answer: el("edit-answer").value }))) return;
  listed[at].question = now.question;
  await show(at);
}

async function undo() {
  const data = await ask("undo", {});
  if (!listed.some((each) => each.id === data.id)) { el("filter").value = ""; await readList(data.id); }
  at = Math.max(0, listed.findIndex((each) => each.id === data.id));
  drawList();
  drawQuestion(data);
  say(data.message || "Undone.", data.message ? "warn-text" : "");
}

const KEYS = {
  "/": () => el("search").focus(), j: () => queue(() => step(1)), k: () => queue(() => step(-1)), u: () => queue(undo),
  ArrowDown: () => forShown(() => { current = Math.min(current + 1, items().length - 1); focusChunk(); }),
  ArrowUp: () => forShown(() => { current = Math.max(current - 1, 0); focusChunk(); }),
  " ": () => forShown(toggle), Enter: () => forShown(confirm), s: () => queue(() => step(1)), e: () => forShown(edit), n: () => forShown(() => act("negate", {})), q: () => forShown(quote),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !now) return;
  const field = event.target.closest("input, textarea, select");
  if (field) {
    if (event.key === "Escape") { stopEditing(); field.blur(); }
    return;
  }
  const presses = event.key === " " || event.key === "Enter";
  if (presses && (event.repeat || event.target.closest("button, a"))) return;
  const run = KEYS[event.key] || (/^\d$/.test(event.key) && (() => forShown(() => grade(Number(event.key)))));
  if (!run) return;
  event.preventDefault();
  run();
});

function submits(id, run) {
  el(id).addEventListener("submit", (event) => { event.preventDefault(); forShown(run); });
}
submits("editing", save);
submits("searching", () => search(el("search").value));
el("editing").addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); forShown(save); } });
el("cancel").addEventListener("click", stopEditing);
el("filter").addEventListener("change", () => queue(async () => { await readList(now?.id); await show(at); }));

queue(async () => {
  const state = await readList();
  if (!state.drafts) { el("filter").value = ""; await readList(); }
  if (listed.length) await show(0);
  else nothing("No drafts are left.");
});
