/* What judges said: score, grades and reasoning of each, of both sides beside one another; trials as dots. */
function judgePanel(question, sides) {
  const names = [...new Set(sides.flatMap((side) => (side.verdicts || []).map((verdict) => verdict.judge)))];
  const tried = sides.some((side) => side.trials);
  if (!names.length && !tried) return [];
  const more = Math.max(0, ...sides.map((side) => side.more_judges || 0));
  const title = names.length > 1 ? `Judges (${names.length + more})` : names.length ? "Judge" : "Trials";
  const panel = el("div", { class: `panel of-${sides.length}${question.wanted || question.negative ? " wide-label" : ""}` });
  if (tried) panel.append(el("div", { class: "panel-name" }, el("h4", {}, "Trials")), ...sides.map((side, at) => el("div", { class: "panel-cell" }, sideName(at, sides), trialDots(side.trials))));
  for (const name of names) {
    panel.append(el("div", { class: "panel-name" }, foreign(name, "h4")));
    sides.forEach((side, at) => {
      const verdict = (side.verdicts || []).find((each) => each.judge === name);
      panel.append(el("div", { class: "panel-cell" }, sideName(at, sides), ...(verdict ? judgement(verdict, side) : [el("p", { class: "dim" }, "No verdict.")])));
    });
  }
  return [el("h3", {}, title), panel, ...moreLine(more, "judge")];
}

const sideName = (at, sides) => (sides.length > 1 ? el("span", { class: "panel-side dim small" }, label(at, sides)) : "");

// How many of them are not shown, where there are some.
function moreLine(number, noun) {
  return number ? [el("p", { class: "small dim" }, `and ${number} more ${noun}${number === 1 ? "" : "s"}`)] : [];
}

/* ● passed, ○ did not. */
function trialDots(trials) {
  if (!trials) return el("p", { class: "dim" }, "One trial.");
  const [passes, all] = trials, shown = Math.min(all, 40);
  const made = svg("svg", { class: "plot dots", width: shown * 14, height: 14, viewBox: `0 0 ${shown * 14} 14`, "aria-hidden": "true" });
  for (let at = 0; at < shown; at += 1) made.append(svg("circle", { class: at < Math.round(passes * shown / all) ? "passed" : "missed", cx: at * 14 + 7, cy: 7, r: 5 }));
  return el("p", { class: "trials" }, made, " ", el("span", {}, `${passes} of ${all} trials passed`));
}

function judgement(verdict, side) {
  const made = [];
  if (verdict.score !== undefined) made.push(scoreBar("Overall", verdict.score, 1, data.span === 1 ? data.threshold : null));
  for (const [name, value] of Object.entries(verdict.grades || {})) {
    const [title, most] = data.grades[name] || [name, 1];
    made.push(scoreBar(title, value, most, null));
  }
  const bars = made.length ? [el("div", { class: "bars" }, ...made)] : [];
  if (verdict.declined !== undefined) bars.push(el("p", { class: "small" }, verdict.declined ? "The answer declines." : "The answer does not decline."));
  if (verdict.said) bars.push(...saidWords(verdict, side));
  return bars;
}

function scoreBar(title, value, most, threshold) {
  const share = Math.max(0, Math.min(1, value / most)), kind = threshold === null ? "part" : value < threshold ? "low" : "high";
  const made = svg("svg", { class: `plot score-bar ${kind}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "bar-track", width: 100, height: 10, rx: 2 }), svg("rect", { class: "bar-fill", width: 100 * share, height: 10, rx: 2 }),
    threshold !== null && svg("line", { class: "limit", x1: 100 * threshold, x2: 100 * threshold, y1: 0, y2: 10 }));
  return el("div", { class: `bar-row ${kind}` }, el("span", { class: "bar-name" }, title), made,
    el(threshold === null ? "span" : "b", { class: "bar-value" }, most === 1 ? value.toFixed(2) : `${value}`));
}

/* The reasoning; what it quotes of the answer is marked in both. */
function saidWords(verdict, side) {
  const text = foreign(verdict.said, "p", "said"), content = plainly(given(side)).replace(/[*_`]/g, "");
  const isInAnswer = (quote) => bare(quote).length > 2 && content.includes(bare(quote));
  const ranges = quotesIn(verdict.said).filter(isInAnswer).map((quote) => [verdict.said.indexOf(quote), verdict.said.indexOf(quote) + quote.length]);
  wrapRanges(text, ranges, "span", "quoted");
  const shown = (verdict.quotes || []).filter(isInAnswer);
  const list = shown.length ? [el("ul", { class: "quotes" }, ...shown.map((quote) => el("li", {}, foreign(quote, "span", "quoted"))))] : [];
  return [text, ...list, ...moreLine(verdict.more_quotes, "quote")];
}
