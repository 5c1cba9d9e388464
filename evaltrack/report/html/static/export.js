/* The questions that are shown, in their order, as a file: made here, sent nowhere. */
const SIDES = data.compared ? ["baseline", "candidate"] : [""];
const named = (name, side) => (side ? `${name}_${side}` : name);

/* One flat object a question; what a page does not hold of it is null. */
function exported(question) {
  const made = { id: question.id, question: question.q, change: GROUPS[question.group][0], from: question.was || null, to: question.now || null };
  if (!data.compared) { made.result = made.change; delete made.change; delete made.from; delete made.to; }
  Object.assign(made, { domain: question.domain || null, difficulty: question.difficulty || null, category: question.category || null });
  if (data.compared) made.cause = question.cause || null;
  Object.assign(made, { detail: question.detail || null, note: question.note || null, expected_answer: question.wanted || null });
  SIDES.forEach((side, at) => {
    const held = sideOf(question, at), verdicts = held.verdicts || [];
    made[named("score", side)] = pick(question.score, at);
    made[named("rank", side)] = pick(question.ranks, at);
    made[named("answer", side)] = held.answer || null;
    made[named("error", side)] = held.error || null;
    made[named("judges", side)] = verdicts.map((verdict) => ({ judge: verdict.judge, score: verdict.score === undefined ? null : verdict.score, reasoning: verdict.said || "" }));
    made[named("sources", side)] = held.sources ? held.sources.map((source) => ({ rank: source.rank, name: source.name, expected: Boolean(source.expected) })) : null;
  });
  return made;
}

const pick = (pair, at) => { const value = (pair || [])[data.compared ? at : 1]; return value === undefined ? null : value; };
const sideOf = (question, at) => { const sides = question.sides || []; return sides[sides.length > 1 ? at : 0] || {}; };

/* In a spreadsheet a cell that begins like a formula would be one: an apostrophe before it makes it text. */
function csvCell(value) {
  if (value === null) return "";
  if (typeof value === "number") return `${value}`;
  const text = /^[\s]*[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function csvValue(value) {
  if (!Array.isArray(value)) return csvCell(value);
  return csvCell(value.map((each) => (each.judge === undefined ? `${each.rank}. ${each.name}${each.expected ? " (expected)" : ""}` : `${each.judge}: ${each.reasoning}`)).join("\n"));
}

function csvOf(questions) {
  const rows = questions.map(exported), heads = Object.keys(rows[0] || exported(data.questions[0] || { group: "", id: "", q: "" }));
  return `\ufeff${[heads, ...rows.map((row) => heads.map((head) => csvValue(row[head])))].map((cells) => cells.join(",")).join("\r\n")}\r\n`;
}
const jsonOf = (questions) => `${JSON.stringify(questions.map(exported), null, 1)}\n`;

/* A frame that may save nothing shows the text instead. */
function save(text, type, ending) {
  const count = `${shown.length.toLocaleString("en")} question${shown.length === 1 ? "" : "s"}`;
  if (isFramed()) { offer(text, `${count}, ${ending.toUpperCase()}: copy it from here`); return; }
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = el("a", { href: url, download: `questions.${ending}` });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  notice(`${count} saved as questions.${ending}`);
}
