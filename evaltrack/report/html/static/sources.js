/* Sources: of one side as its ranked list, of both as one list with the rank before and now. */
function sourceLists(sides) {
  const lists = sides.map((side) => side.sources);
  if (sides.length > 1 && lists.every(Boolean)) return mergedSources(sides);
  const made = make("div", { class: sides.length > 1 ? "sides" : "" });
  sides.forEach((side, place) => {
    const title = ["Sources", label(place, sides).toLowerCase()].filter(Boolean).join(", ");
    const box = make("div", { class: "side" }, make("h3", {}, title));
    if (!side.sources) box.append(make("p", { class: "dim" }, side.error ? "None, as the target failed." : "The target reports none."));
    else if (!side.sources.length) box.append(make("p", { class: "dim" }, "None were returned."));
    else box.append(make("ol", { class: "ranked" }, ...side.sources.map((source) => sourceLine(source))));
    box.append(...missingWords(side, "returned"));
    if (side.expects) box.append(make("p", { class: "small" }, make("b", {}, "Expected: "), foreign(side.expects.join(", "))));
    made.append(box);
  });
  return made;
}

const missingWords = (side, what) => (side.missing && side.missing.length
  ? [make("p", { class: "small" }, make("b", { class: "bad-text" }, `Expected, not ${what}: `), foreign(side.missing.join(", ")))] : []);

function sourceName(source, changed) {
  const name = foreign("", "div");
  name.append(link(source.url, foreign(source.name)));
  if (source.title) name.append(make("span", { class: "small" }, " ", foreign(source.title)));
  if (source.expected) name.append(" ", make("span", { class: "badge" }, "expected"));
  if (changed) name.append(" ", make("span", { class: "badge warn" }, "text changed"));
  return name;
}

const rankKinds = (source, rank) => [source.expected && "expected", rank > data.k && "beyond", rank === data.k + 1 && "cut"];

function sourceLine(source) {
  const line = make("li", { class: rankKinds(source, source.rank).filter(Boolean).join(" ") },
    make("span", { class: "rank" }, `${source.rank}`), sourceName(source, source.changed), make("span", { class: "move" }, source.score === undefined ? "" : `${source.score}`));
  if (source.text) line.append(make("details", {}, make("summary", {}, "text"), foreign(source.text, "div", "answer")));
  return line;
}

/* ---- both sides ---- */
/* Each source once, in the order of now; behind these what is no longer returned, in the order of before. */
function merged(sides) {
  const [before, now] = sides.map((side) => side.sources);
  const earlier = new Map(before.map((source) => [source.rank, source]));
  const made = now.map((source) => ({ was: source.moved, now: source.rank, source, earlier: source.moved ? earlier.get(source.moved) : undefined }));
  const listed = new Set(now.map((source) => source.rank));
  for (const source of before) {
    if (source.moved && listed.has(source.moved)) continue;
    made.push({ was: source.rank, now: source.moved || 0, source, earlier: source });
  }
  return made.sort((a, b) => (a.now || 1e6 + a.was) - (b.now || 1e6 + b.was));
}

function mergedSources(sides) {
  const lines = merged(sides);
  const box = make("div", { class: "side merged" }, make("h3", {}, "Sources ", make("span", { class: "dim small" }, "rank before → now")));
  if (!lines.length) box.append(make("p", { class: "dim" }, "None were returned on either side."));
  else {
    const firstGone = lines.findIndex((line) => !line.now);
    box.append(make("ol", { class: "ranked" }, ...lines.map((line, at) => mergedLine(line, at === firstGone))));
  }
  const both = new Set(sides[0].missing || []), now = sides[1].missing || [];
  const never = now.filter((name) => both.has(name)), gone = now.filter((name) => !both.has(name));
  const late = (sides[0].missing || []).filter((name) => !now.includes(name));
  box.append(...missingWords({ missing: gone }, "returned now"), ...missingWords({ missing: late }, "returned before"), ...missingWords({ missing: never }, "returned on either side"));
  return box;
}

function mergedLine(line, isFirstGone) {
  const { source, earlier } = line, kinds = line.now ? rankKinds(source, line.now) : [source.expected && "expected", "gone", isFirstGone && "first-gone"];
  const made = make("li", { class: kinds.filter(Boolean).join(" ") },
    make("span", { class: "rank" }, line.was ? `${line.was}` : "–", " → ", make("b", {}, line.now ? `${line.now}` : "–")),
    sourceName(source, source.changed), movedWords(line));
  if (!source.text && !(earlier && earlier.text)) return made;
  const details = make("details", {}, make("summary", {}, "text"));
  if (source.changed && earlier && earlier !== source && earlier.text) details.append(make("p", { class: "small dim" }, "before"), foreign(earlier.text, "div", "answer"), make("p", { class: "small dim" }, "now"));
  details.append(foreign(source.text || earlier.text, "div", "answer"));
  made.append(details);
  return made;
}

function movedWords(line) {
  if (!line.now) return make("span", { class: "move bad-text" }, "gone");
  if (!line.was) return make("span", { class: "move" }, "new");
  const by = line.was - line.now;
  return make("span", { class: `move ${by < 0 ? "down" : by ? "up" : ""}` }, by === 0 ? "=" : by > 0 ? `▲ ${by}` : `▼ ${-by}`);
}
