/* One question: why, what was expected and answered, judges, scores, sources. */
function show() {
  const question = shown[chosen];
  if (!question) {
    detail.replaceChildren(make("p", { class: "dim" }, "No question matches; clear the filters to see all."));
    return;
  }
  detail.replaceChildren(...described(question));
  markHits(detail, searched());
}

function described(question) {
  const made = [];
  const top = make("p", { class: "small" }, badge(question.group), " ");
  const way = question.was && question.was !== question.now ? `${question.was} → ${question.now}` : "";
  top.append(make("span", { class: "dim" }, [way === GROUPS[question.group][0] ? "" : way, question.domain, question.difficulty, question.category].filter(Boolean).join(" · ")), " ");
  top.append(make("a", { href: `#q-${encodeURIComponent(question.id)}` }, foreign(`#${question.id}`)));
  made.push(top, ...turnsBefore(question), foreign(question.q, "h2", question.q.length > 160 ? "lengthy" : ""));
  const why = reason(question);
  if (why) made.push(why);
  const sides = question.sides || [];
  made.push(...answers(question, sides), ...judgePanel(sides));
  if (sides.some((side) => side.sources !== null || side.expects)) made.push(sourceLists(sides));
  if (question.texts) made.push(make("h3", {}, "The text of the source"), difference(question.texts));
  made.push(...scoreTable(question));
  made.push(make("div", { class: "sides" }, ...sides.map((side, place) => facts(side, place, sides))));
  if (!sides.length && data.compared) made.push(make("p", { class: "dim" }, "The rows of this question are not in this page; both runs hold them in per_question.parquet."));
  return made;
}

function turnsBefore(question) {
  if (!question.turns) return [];
  const box = make("div", { class: "answer turns" });
  if (question.turns_left_out) box.append(make("p", { class: "dim" }, `${question.turns_left_out} earlier turns are not shown`));
  for (const [role, text] of question.turns) box.append(make("p", {}, make("b", {}, `${role}: `), foreign(text)));
  return [make("h3", {}, "Before the question"), box];
}

function reason(question) {
  const made = make("div", { class: "why" }), cause = question.culprit || causeWords(question.cause), todo = data.todos && data.todos[question.culprit];
  const detail = question.detail && !cause.includes(question.detail) ? ticked(question.detail, "span") : "";
  if (cause || detail) made.append(make("p", {}, cause && make("b", { class: question.group === "flip" ? "bad-text" : "" }, "Cause: "), cause && foreign(cause), cause && detail && ": ", detail, ". ", todo && make("b", {}, "Next: "), todo && ticked(todo, "span"), todo && "."));
  for (const other of question.also || []) made.append(ticked(`Also: ${other}`, "p", "small"));
  if (question.link) made.append(make("p", {}, link(question.link, foreign(question.link))));
  if (question.note) made.append(foreign(question.note, "p"));
  return made.childNodes.length ? made : null;
}

/* Names in our own sentences stand between backticks. */
function ticked(text, tag, kind) {
  const made = foreign("", tag, kind);
  made.append(...text.split(/`([^`\n]+)`/).map((part, at) => (at % 2 ? make("code", {}, part) : part)));
  return made;
}

function label(place, sides) {
  if (sides.length > 1) return data.labels[place];
  return data.compared ? data.alike : "";
}

function difference(pieces) {
  const made = make("div", { class: "answer", dir: "auto" });
  for (const [kind, text] of pieces) {
    made.append(kind === "same" ? text : make(kind === "added" ? "ins" : "del", {}, text));
  }
  return made;
}

/* Names and values; of two sides before, now, and the change. */
function scoreTable(question) {
  if (!question.scores) return [];
  const two = question.scores[0].length > 2, name = "Scores";
  const number = (text, kind = "") => make("td", { class: `num ${kind}`.trim() }, text || "–");
  const heads = ["Score", ...(two ? [...data.labels, "Change"] : ["Value"])];
  const rows = question.scores.map(([title, was, now, change, tone]) => make("tr", {}, foreign(title, "th"),
    ...(two ? [number(was), number(now), make("td", { class: `num ${tone ? `${tone}-text` : "dim"}` }, change ? `${tone === "good" ? "▲" : "▼"} ${change}` : was && now ? "=" : "–")] : [number(was)])));
  for (const row of rows) row.firstChild.setAttribute("scope", "row");
  const table = make("table", { class: "grid scores" }, make("thead", {}, make("tr", {}, ...heads.map((head, at) => make("th", { scope: "col", class: at ? "num" : null }, head)))), make("tbody", {}, ...rows));
  return [make("h3", {}, name), table];
}

function facts(side, place, sides) {
  const trace = side.trace && data.traces[data.compared && sides.length < 2 ? 1 : place];
  if (!trace && !side.tools) return "";
  return make("div", { class: "side" }, make("h3", {}, label(place, sides)),
    side.tools && make("p", {}, "Tools called: ", foreign(side.tools.join(", "))), trace && make("p", {}, link(trace + side.trace, "Trace in MLflow")));
}
