/* A link to the question, and the question as Markdown, for the clipboard. */
let noticed = 0;
function notice(text) {
  const box = $("notice");
  box.textContent = text;
  clearTimeout(noticed);
  noticed = setTimeout(() => { box.textContent = ""; }, 4000);
}

/* Where a browser lets nothing into the clipboard, the text is shown, to be copied by hand. */
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    notice(`${what} copied`);
  } catch { offer(text, `${what}: copy it from here`); }
}

function offer(text, what) {
  const area = make("textarea", { readonly: true, rows: 6, "aria-label": what });
  area.value = text;
  const close = make("button", { type: "button" }, "Close");
  const shut = () => { $("offer").replaceChildren(); detail.focus(); };
  close.addEventListener("click", shut);
  area.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.stopPropagation(); shut(); } });
  $("offer").replaceChildren(make("p", { class: "small" }, what, " ", close), area);
  area.focus();
  area.select();
  area.scrollIntoView({ block: "nearest" });
}

/* Foreign text is between more backticks than any in it, where nothing of it is a link, a mention or an image. */
const ticks = (text, least) => "`".repeat(Math.max(least, ...[...text.matchAll(/`+/g)].map((hit) => hit[0].length + 1)));
const fenced = (text) => `${ticks(text, 3)}text\n${text}\n${ticks(text, 3)}`;
const codeWords = (text) => {
  const line = text.replace(/\s+/g, " "), mark = ticks(line, 1), space = mark.length > 1 || /^\s|\s$/.test(line) ? " " : "";
  return `${mark}${space}${line}${space}${mark}`;
};

function markdownOf(question) {
  const made = [`### ${GROUPS[question.group][0]}: ${codeWords(question.q)}`];
  const about = [codeWords(question.id), ...[question.domain, question.difficulty, question.category].filter(Boolean).map(codeWords)];
  if (question.was && question.was !== question.now) about.push(`${question.was} → ${question.now}`);
  made.push(about.join(" · "));
  if (question.cause || question.detail) made.push(`**${causeWords(question.cause) || "Why"}:** ${question.detail ? codeWords(question.detail) : ""}`.trim());
  if (question.wanted) made.push(`**Expected**\n\n${fenced(question.wanted)}`);
  const sides = question.sides || [];
  sides.forEach((side, at) => {
    if (given(side)) made.push(`**${label(at, sides) || "Answer"}**\n\n${fenced(given(side))}`);
    for (const verdict of side.verdicts || []) {
      const score = verdict.score === undefined ? "" : ` ${verdict.score.toFixed(2)}`;
      made.push(`Judge ${codeWords(verdict.judge)}${score}:\n\n${fenced(verdict.said || "–")}`);
    }
  });
  made.push(...markdownSources(sides));
  return `${made.join("\n\n")}\n`;
}

function markdownSources(sides) {
  if (!sides.length || !sides.every((side) => side.sources)) return [];
  const lines = sides.length > 1
    ? merged(sides).map((line) => `- ${line.was || "–"} → ${line.now || "–"} ${codeWords(line.source.name)}${line.source.expected ? " (expected)" : ""}`)
    : sides[0].sources.map((source) => `- ${source.rank} ${codeWords(source.name)}${source.expected ? " (expected)" : ""}`);
  return lines.length ? [`**Sources**${sides.length > 1 ? ", rank before → now" : ""}\n\n${lines.join("\n")}`] : [];
}
