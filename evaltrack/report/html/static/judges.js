/* What judges said: score, grades and reasoning of each, of both sides beside one another; trials. */
function judgePanel(sides) {
  const names = [...new Set(sides.flatMap((side) => (side.verdicts || []).map((verdict) => verdict.judge)))];
  const tried = sides.some((side) => side.trials);
  if (!names.length && !tried) return [];
  const title = names.length > 1 ? `Judges (${names.length})` : names.length ? "Judge" : "Trials";
  const panel = make("div", { class: `panel of-${sides.length}` });
  if (tried) panel.append(make("div", { class: "panel-name" }, make("h4", {}, "Trials")), ...sides.map((side, at) => make("div", { class: "panel-cell" }, sideName(at, sides), make("p", { class: "trials" }, side.trials ? `${side.trials[0]} of ${side.trials[1]} trials passed` : "One trial."))));
  for (const name of names) {
    panel.append(make("div", { class: "panel-name" }, foreign(name, "h4")));
    sides.forEach((side, at) => {
      const verdict = (side.verdicts || []).find((each) => each.judge === name);
      panel.append(make("div", { class: "panel-cell" }, sideName(at, sides), ...(verdict ? judgement(verdict, side) : [make("p", { class: "dim" }, "No verdict.")])));
    });
  }
  return [make("h3", {}, title), panel];
}

const sideName = (at, sides) => (sides.length > 1 ? make("span", { class: "panel-side dim small" }, label(at, sides)) : "");

function judgement(verdict, side) {
  const made = [];
  if (verdict.score !== undefined) made.push(scoreBar("Overall", verdict.score, 1, data.span === 1 ? data.threshold : null));
  for (const [name, value] of Object.entries(verdict.grades || {})) {
    const [title, most] = data.grades[name] || [name, 1];
    made.push(scoreBar(title, value, most, null));
  }
  const bars = made.length ? [make("div", { class: "bars" }, ...made)] : [];
  if (verdict.declined !== undefined) bars.push(make("p", { class: "small" }, verdict.declined ? "The answer declines." : "The answer does not decline."));
  if (verdict.said) bars.push(...saidWords(verdict, side));
  return bars;
}

function scoreBar(title, value, most, threshold) {
  const kind = threshold === null ? "part" : value < threshold ? "low" : "high", fill = make("span", {});
  fill.style.width = `${100 * Math.max(0, Math.min(1, value / most))}%`;
  return make("div", { class: `bar-row ${kind}` }, make("span", { class: "bar-name" }, title), make("span", { class: "score-bar" }, fill),
    make(threshold === null ? "span" : "b", { class: "bar-value" }, most === 1 ? value.toFixed(2) : `${value}`));
}

/* The reasoning; what it quotes of the answer is marked in both. */
function saidWords(verdict, side) {
  const text = foreign(verdict.said, "p", "said"), content = plainly(given(side)).replace(/[*_`]/g, "");
  const isInAnswer = (quote) => bare(quote).length > 2 && content.includes(bare(quote));
  const ranges = quotesIn(verdict.said).filter(isInAnswer).map((quote) => [verdict.said.indexOf(quote), verdict.said.indexOf(quote) + quote.length]);
  wrapRanges(text, ranges, "span", "quoted");
  const shown = (verdict.quotes || []).filter(isInAnswer);
  const list = shown.length ? [make("ul", { class: "quotes" }, ...shown.map((quote) => make("li", {}, foreign(quote, "span", "quoted"))))] : [];
  return [text, ...list];
}
