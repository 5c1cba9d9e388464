"use strict";
(() => {
  const el = (id) => document.getElementById(id);
  const judging = document.body.dataset.judging === "1";
  const SHORT = 1500;
  let keys = [], at = 0, now = null, current = -1, selection = null, query = "";
  let work = Promise.resolve();
  const open = new Set();

  function node(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  /* Names in our own sentences stand between backticks. */
  const ticked = (text) => (text || "").split(/`([^`\n]+)`/).map((part, place) => (place % 2 ? node("code", "", part) : part));

  function say(text, tone) {
    el("status").replaceChildren(...ticked(text));
    el("status").className = `status ${tone || ""}`;
  }

  async function ask(path, body) {
    const options = body === undefined ? {} : {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    };
    let answer, data;
    try {
      answer = await fetch(path, options);
      data = await answer.json();
    } catch {
      throw new Error("evaltrack does not answer; is the command still running? Nothing was lost that is marked here.");
    }
    if (!answer.ok) throw Object.assign(new Error(data.error), { isGone: answer.status === 410 });
    return data;
  }

  // One thing after the other, so that quick keys do not overtake each other.
  function queue(task) {
    work = work.then(task).catch((error) => say(error.message, "bad"));
  }

  // A key or a click is for the question that was shown at that time: nobody confirms what they have not seen.
  function queueForShown(task) {
    const id = now && now.id;
    if (now) queue(() => now && now.id === id && task());
  }

  async function readKeys(wanted) {
    const drafts = !judging && el("filter").value;
    const state = await ask(`state?drafts=${drafts}`);
    keys = state.keys;
    at = Math.max(0, keys.indexOf(wanted));
    return state;
  }

  // The file was read again: the order stays, what somebody else took away goes.
  async function dropKeys(id) {
    const there = new Set((await ask("state?drafts=")).keys);
    keys = keys.filter((key) => there.has(key));
    at = Math.max(0, keys.indexOf(id));
  }

  // Somebody took a question out of the file: it is said once, and the next one is shown.
  async function leave(id, error) {
    const place = keys.indexOf(id);
    if (!error.isGone || place < 0) throw error;
    keys.splice(place, 1);
    if (keys.length) { await show(place); say(error.message, "warn"); return; }
    el("main").hidden = true;
    el("place").textContent = "No questions are left.";
    now = null;
    throw error;
  }

  async function show(place) {
    if (!keys.length) return;
    at = Math.min(Math.max(place, 0), keys.length - 1);
    query = "";
    el("search").value = "";
    open.clear();
    el("place").textContent = "Asking the retrievers…";
    const next = keys[at + 1] === undefined ? "" : `&next=${encodeURIComponent(keys[at + 1])}`;
    const id = keys[at];
    const data = await ask(`question?id=${encodeURIComponent(id)}${next}`).catch((error) => leave(id, error));
    if (!data) return;
    current = judging ? firstUnjudged(data) : -1;
    stopEditing();
    draw(data);
    window.scrollTo(0, 0);
    if (current < 0) el("question").focus({ preventScroll: true });
    else focusChunk();
  }

  function firstUnjudged(data) {
    return data.chunks.findIndex((chunk) => chunk.grade === null && !chunk.is_expected);
  }

  function draw(data) {
    now = data;
    el("main").hidden = false;
    el("place").textContent = `Question ${at + 1} of ${keys.length}`;
    el("drafts").textContent = data.drafts ? `· ${data.drafts} draft${data.drafts === 1 ? "" : "s"} left` : "· no drafts";
    el("before").textContent = data.history.join("\n");
    el("question").textContent = data.question;
    el("answer").textContent = data.expected_answer || "No expected answer.";
    el("answer").classList.toggle("dim", !data.expected_answer);
    el("notes").textContent = data.notes;
    const expects = data.chunks.some((chunk) => chunk.is_expected) || data.passages.length;
    const badges = [["muted", data.id]];
    if (data.draft) badges.push(["warn", "draft"]);
    if (data.negative) badges.push(["ok", "negative: the target should say that it does not know"]);
    else if (!expects) badges.push(["bad", "expects nothing: retrieval is not measured"]);
    if (data.reviewed) badges.push(["ok", `reviewed: ${data.reviewed}`]);
    for (const fact of data.facts) badges.push(["muted", fact]);
    el("badges").replaceChildren(...badges.map(([tone, text]) => node("span", `badge foreign ${tone}`, text)));
    if (!judging) el("negate").textContent = data.negative ? "Not a negative" : "Make it a negative";
    el("passages").replaceChildren(...data.passages.map(passage));
    el("problems").replaceChildren(...data.problems.map((text) => node("p", "foreign warn-text", `A retriever failed: ${text}`)));
    el("list").replaceChildren(...data.chunks.map((chunk, place) => item(chunk, place)));
    const matches = data.matches || [];
    el("matches").replaceChildren(...matches.map((chunk, place) => item(chunk, data.chunks.length + place)));
    if (data.matches && !matches.length) el("matches").append(node("li", "dim", "Nothing in the corpus matches."));
    mark();
  }

  function passage(each) {
    const box = node("div", "quote");
    box.append(node("span", "foreign", each.words));
    const remove = node("button", "", "Remove");
    remove.type = "button";
    remove.setAttribute("aria-label", `Remove the passage ${each.words.slice(0, 60)}`);
    remove.addEventListener("click", () => act("unquote", { passage: each.key }));
    box.append(remove);
    return box;
  }

  function item(chunk, place) {
    const refused = !chunk.is_expected && chunk.grade !== null;
    const box = node("li", `chunk${chunk.is_expected ? " expected" : refused ? " refused" : ""}`);
    box.tabIndex = -1;
    const name = chunk.title || chunk.id;
    const head = node("header");
    head.append(node("h3", "foreign", name));
    if (chunk.id) head.append(node("code", "dim foreign", chunk.id));
    if (chunk.is_expected) head.append(node("span", "badge ok", "expected"));
    if (chunk.grade !== null) head.append(node("span", `badge ${chunk.is_expected ? "ok" : "bad"}`, `grade ${chunk.grade}`));
    const text = node("p", "text foreign");
    text.dir = "auto";
    const whole = chunk.text.length <= SHORT || open.has(chunk.key);
    text.textContent = whole ? chunk.text : `${chunk.text.slice(0, SHORT)}…`;
    if (!chunk.text) text.textContent = "Its text is not known: it is not in the corpus.";
    const controls = node("div", "controls");
    const button = (label, run, pressed) => {
      const made = node("button", "", label);
      made.type = "button";
      made.setAttribute("aria-label", `${label}: ${chunk.id || name}`);
      if (pressed !== undefined) made.setAttribute("aria-pressed", String(pressed));
      made.addEventListener("click", () => queueForShown(() => { current = place; mark(); return run(); }));
      controls.append(made);
    };
    if (judging) {
      button("Relevant", () => grade(null), chunk.is_expected);
      button("Not relevant", () => grade(0), refused);
    } else {
      button(chunk.is_expected ? "Unmark" : "Mark as expected", toggle, chunk.is_expected);
      if (chunk.text) button("Quote selection", quote);
    }
    if (!whole) button("Show all", () => { open.add(chunk.key); draw(now); focusChunk(); });
    box.addEventListener("click", () => { current = place; mark(); });
    box.append(head, text, controls);
    return box;
  }

  const items = () => [...document.querySelectorAll(".chunk")];
  const all = () => [...now.chunks, ...(now.matches || [])];

  function mark() {
    items().forEach((each, place) => each.classList.toggle("current", place === current));
  }

  function focusChunk() {
    mark();
    const box = items()[current];
    if (!box) return;
    box.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest" });
  }

  // Whether it was done: somebody else may have changed the question, or taken it away.
  async function act(kind, values) {
    const id = now.id;
    const data = await ask("act", { id, kind, query, ...values }).catch((error) => leave(id, error));
    if (!data) return false;
    const again = document.activeElement && document.activeElement.closest(".chunk");
    if (data.reloaded && !judging) await dropKeys(id);
    draw(data);
    if (again) focusChunk();
    say(data.message || (data.done ? "Saved." : ""), data.message ? "warn" : "");
    return data.done;
  }

  function chosenChunk() {
    const chunk = all()[current];
    if (!chunk) say("Choose a chunk first, with the arrow keys or a click.", "warn");
    return chunk;
  }

  async function toggle() {
    const chunk = chosenChunk();
    if (chunk) await act(chunk.is_expected ? "unmark" : "mark", { chunk: chunk.key });
  }

  async function grade(value) {
    const chunk = chosenChunk();
    if (!chunk || !(await act("grade", { chunk: chunk.key, grade: value })) || !judging) return;
    const left = firstUnjudged(now);
    if (left < 0) { say("All chunks of this question are judged; Enter goes on.", ""); return; }
    current = left;
    focusChunk();
  }

  // Touching a button clears the selection on some devices, so the last one is remembered.
  document.addEventListener("selectionchange", () => {
    const chosen = document.getSelection();
    if (!chosen || chosen.isCollapsed || !chosen.rangeCount) return;
    const of = (each) => (each.nodeType === 1 ? each : each.parentElement).closest(".chunk .text");
    const first = of(chosen.anchorNode), last = of(chosen.focusNode);
    selection = first && first === last ? { box: first.closest(".chunk"), words: chosen.toString() } : null;
  });

  async function quote() {
    const place = selection ? items().indexOf(selection.box) : -1;
    if (place < 0) { say("Select the words that answer the question, in one chunk.", "warn"); return; }
    const words = selection.words;
    selection = null;
    current = place;
    document.getSelection().removeAllRanges();
    await act("quote", { chunk: all()[place].key, words });
  }

  async function search(text) {
    const data = await ask(`question?id=${encodeURIComponent(now.id)}&query=${encodeURIComponent(text)}`);
    query = text;
    if (data.matches && data.matches.length) current = data.chunks.length;
    draw(data);
    if (data.matches && data.matches.length) focusChunk();
  }

  async function confirm() {
    if (!(await act("confirm", {}))) return;
    if (at + 1 < keys.length) await show(at + 1);
    else say(`Confirmed; this was the last question. ${now.drafts ? `${now.drafts} drafts are left.` : ""}`, "");
  }

  async function step(by) {
    if (at + by < 0 || at + by >= keys.length) say(by < 0 ? "This is the first question." : "This is the last question.", "warn");
    else { say("", ""); await show(at + by); }
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
    const words = { question: el("edit-question").value, expected_answer: el("edit-answer").value };
    if (!(await act("reword", words))) return;
    stopEditing();
    el("question").focus();
    await show(at);
  }

  async function undo() {
    const data = await ask("undo", {});
    if (!keys.includes(data.id)) { el("filter").value = ""; await readKeys(data.id); }
    at = Math.max(0, keys.indexOf(data.id));
    draw(data);
    say(data.message || "Undone.", data.message ? "warn" : "");
  }

  const help = () => el("keys").showModal();
  const negate = () => act("negate", {});
  const moves = { j: () => step(1), k: () => step(-1), u: undo };
  const deeds = {
    ArrowDown: () => { if (current + 1 < items().length) current += 1; focusChunk(); },
    ArrowUp: () => { if (current > 0) current -= 1; focusChunk(); },
    " ": () => (judging ? grade(null) : toggle()),
    Enter: () => (judging ? step(1) : confirm()),
  };
  if (!judging) { moves.s = () => step(1); Object.assign(deeds, { e: edit, n: negate, q: quote }); }
  for (let digit = 0; digit <= 9; digit += 1) deeds[String(digit)] = () => grade(digit);

  // What a key does, or nothing. Search and help open at once, for what is typed next is theirs.
  function deed(key) {
    if (key === "/") return () => el("search").focus();
    if (key === "?") return help;
    if (moves[key]) return () => queue(moves[key]);
    return deeds[key] && (() => queueForShown(deeds[key]));
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || el("keys").open || !now) return;
    const target = event.target.closest("input, textarea, select");
    if (target) {
      if (event.key === "Escape") { stopEditing(); target.blur(); }
      return;
    }
    if (event.target.closest("button, a") && (event.key === " " || event.key === "Enter")) return;
    if (event.repeat && (event.key === " " || event.key === "Enter")) return;
    const run = deed(event.key);
    if (!run) return;
    event.preventDefault();
    run();
  });
  el("editing").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); queueForShown(save); }
  });
  el("editing").addEventListener("submit", (event) => { event.preventDefault(); queueForShown(save); });
  el("searching").addEventListener("submit", (event) => { event.preventDefault(); queueForShown(() => search(el("search").value)); });
  for (const [id, run] of Object.entries({
    previous: () => queue(() => step(-1)), next: () => queue(() => step(1)), undo: () => queue(undo),
    help, close: () => el("keys").close(), cancel: stopEditing, done: () => queue(() => step(1)), skip: () => queue(() => step(1)),
    confirm: () => queueForShown(confirm), edit: () => queueForShown(edit), negate: () => queueForShown(negate),
  })) if (el(id)) el(id).addEventListener("click", run);

  async function start(wanted) {
    const state = await readKeys(wanted);
    if (!keys.length) {
      el("place").textContent = judging ? "Everything is judged." : "No drafts are left.";
      el("drafts").textContent = "";
      el("main").hidden = true;
    }
    return state;
  }
  if (!judging) el("filter").addEventListener("change", () => queue(async () => { await start(now && now.id); await show(at); }));
  queue(async () => {
    const state = await start();
    if (!judging && !state.drafts) { el("filter").value = ""; await start(); }
    await show(0);
  });
})();
