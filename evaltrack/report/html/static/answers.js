/* Expected, before and now, side by side and sentence by sentence. */
const given = (side) => side.answer || side.error || (side.declined ? "(declined)" : "");
const DECLINES = "It should say that it does not know.";

/* What stands in the columns: title, text, and which side it is. */
function answerColumns(question, sides) {
  const texts = sides.map(given), made = [];
  if (!texts.some(Boolean)) return [];
  const wanted = question.wanted || (question.negative ? DECLINES : "");
  if (wanted) made.push({ kind: "wanted", title: "Expected", text: wanted });
  if (texts.length > 1 && texts[0] === texts[1]) {
    made.push({ kind: "now", title: "Answer, the same on both sides", text: texts[1], side: sides[1], at: 1 });
    return made;
  }
  sides.forEach((side, at) => {
    const name = label(at, sides), what = side.error && !side.answer ? "Error" : "Answer";
    made.push({ kind: sides.length > 1 && at === 0 ? "before" : "now", title: sides.length > 1 ? name : [what, name.toLowerCase()].filter(Boolean).join(", "), text: texts[at], side, at, failed: what === "Error" });
  });
  return made;
}

function answers(question, sides) {
  const columns = answerColumns(question, sides);
  if (!columns.length) return [];
  for (const column of columns) column.units = column.failed ? plainUnits(column.text) : sentences(column.text, quotesOf(column.side));
  const [wanted, before, now] = ["wanted", "before", "now"].map((kind) => columns.find((column) => column.kind === kind));
  const answered = [before, now].filter(Boolean), rows = alignedRows(before, now), lacking = markMissing(wanted, before, now);
  const grid = make("div", { class: `texts of-${answered.length}` }, ...answered.map((column) => columnHead(column, question, sides)));
  for (const places of rows) {
    for (const column of answered) {
      const unit = column.units[places[column.kind]];
      grid.append(make("div", { class: `cell-${column.kind}${unit && unit.alone ? " alone" : ""}${column.failed ? " failed" : ""}` }, unit ? unit.box : ""));
    }
  }
  const expected = wanted && make("div", { class: "texts of-1 wanted" }, columnHead(wanted, question, sides), ...wanted.units.map((unit) => make("div", {}, unit.box)));
  return [make("div", { class: "all-texts" }, expected, grid), ...legendWords(before, now, lacking)];
}

function plainUnits(text) {
  return text.split("\n").filter(Boolean).map((line) => ({ box: foreign(line, "div", "md"), words: [], keys: new Map() }));
}

const quotesOf = (side) => ((side && side.verdicts) || []).flatMap((verdict) => [...(verdict.quotes || []), ...quotesIn(verdict.said)]);

/* Which sentences of both answers are in one row. */
function alignedRows(before, now) {
  if (!before) return now.units.map((_, j) => ({ now: j }));
  const compared = !before.failed && !now.failed;
  return align(before.units.length, now.units.length, (i, j) => likeness(before.units[i], now.units[j])).map(([i, j, alike]) => {
    if (compared) markChanges(i === null ? null : before.units[i], j === null ? null : now.units[j], alike);
    return { before: i, now: j };
  });
}

function markChanges(before, now, alike) {
  if (!alike) {
    for (const unit of [before, now]) if (unit) unit.alone = true;
    return;
  }
  const [went, came] = wordChanges(before, now);
  wrapRanges(before.box, went, "del", "");
  wrapRanges(now.box, came, "ins", "");
}

/* Marks in what is expected the words that the answer lacks, or the sentence where it lacks most; true where any are. */
const MOSTLY = 0.6;
function markMissing(wanted, before, now) {
  if (!wanted || wanted.text === DECLINES || !now.text || now.failed) return false;
  const held = stems(now.units), earlier = before && !before.failed ? stems(before.units) : new Set();
  const hadWord = (unit, [from, to]) => unit.words.some((word) => word.from >= from && word.to <= to && earlier.has(stem(word.key)) && !held.has(stem(word.key)));
  let any = false;
  for (const unit of wanted.units) {
    const ranges = lackingRanges(unit, held), all = unit.words.reduce((sum, word) => sum + weight(word.key), 0);
    const lacking = unit.words.reduce((sum, word) => sum + (held.has(stem(word.key)) ? 0 : weight(word.key)), 0);
    any = any || ranges.length > 0;
    if (lacking > MOSTLY * all) {
      unit.box.classList.add("all-missing");
      if (ranges.some((range) => hadWord(unit, range))) unit.box.classList.add("lost");
      continue;
    }
    const lost = ranges.filter((range) => hadWord(unit, range));
    wrapRanges(unit.box, lost, "span", "missing lost");
    wrapRanges(unit.box, ranges.filter((range) => !lost.includes(range)), "span", "missing");
  }
  return any;
}

function columnHead(column, question, sides) {
  const made = make("div", { class: "text-head" }, make("h3", {}, column.title));
  if (column.kind === "wanted") return made;
  const pair = question.score || [], at = sides.length > 1 ? column.at : 1;
  const outcome = sides.length > 1 && column.title !== "Answer, the same on both sides" ? [question.was, question.now][at] : "";
  const rank = (question.ranks || [])[at];
  if (typeof rank === "number") made.append(make("span", { class: "judge-score" }, "rank ", make("b", {}, rankWords(rank))));
  if (typeof pair[at] === "number") made.append(make("span", { class: "judge-score" }, `${data.span === 100 ? "score" : "judge"} `, make("b", {}, digits(pair[at]))));
  if (outcome) made.append(make("span", { class: `badge ${{ pass: "ok", fail: "bad", error: "warn" }[outcome] || ""}` }, outcome));
  return made;
}

function legendWords(before, now, lacking) {
  const compared = before && !before.failed && !now.failed;
  if (!lacking && !compared) return [];
  const missing = [make("span", { class: `missing${before ? " lost" : ""}` }, "Expected"), `: not in the answer${before ? " now" : ""}, by its words`];
  const changes = [make("del", {}, "went"), " ", make("ins", {}, "came"), ": words that changed in a sentence; a bar: a sentence of one side alone"];
  return [make("p", { class: "small dim legend" }, ...(lacking ? missing : []), lacking && compared && " · ", ...(compared ? changes : []))];
}
