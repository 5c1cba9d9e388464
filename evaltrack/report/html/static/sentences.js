/* Texts as sentences and words: which sentence stands beside which, and which words differ. */
const SENTENCES = window.Intl && Intl.Segmenter ? new Intl.Segmenter(undefined, { granularity: "sentence" }) : null;
const WORD = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}\p{M}]+(?:['’.,\-_#/][\p{L}\p{N}\p{M}]+)*/gu;
const ALIGNED = 120, COMPARED = 400, ALIKE = 0.4;

/* ---- places in the text of an element ---- */
function textNodes(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), made = [];
  for (let from = 0; walker.nextNode(); from += walker.currentNode.data.length) made.push([walker.currentNode, from]);
  return made;
}

/* A copy of what stands between two places, with the elements around it. */
function slice(root, from, to) {
  const range = document.createRange();
  for (const [node, start] of textNodes(root)) {
    const end = start + node.data.length;
    if (from >= start && from < end) range.setStart(node, from - start);
    if (to > start && to <= end) range.setEnd(node, to - start);
  }
  return range.cloneContents();
}

/* Puts an element around each of these ranges, as far as they stand in one text node. */
function wrapRanges(root, ranges, tag, kind) {
  if (!ranges.length) return root;
  for (const [node, start] of textNodes(root)) {
    const pieces = [];
    let done = 0;
    for (const [from, to] of ranges) {
      const first = Math.max(from - start, done), last = Math.min(to - start, node.data.length);
      if (first >= last) continue;
      pieces.push(node.data.slice(done, first), make(tag, { class: kind }, node.data.slice(first, last)));
      done = last;
    }
    if (done) node.replaceWith(...pieces, node.data.slice(done));
  }
  return root;
}

/* ---- sentences ---- */
function cuts(text) {
  const made = [];
  const parts = SENTENCES ? [...SENTENCES.segment(text)].map((each) => each.segment) : text.split(/(?<=[.!?。！？]["”’)]?)(?=\s)/u);
  let from = 0;
  for (const part of parts) {
    const last = made[made.length - 1];
    if (last && (/^\s*[[(][^\])]{0,80}[\])][.\s]*$/.test(part) || !/[\p{L}\p{N}]/u.test(part) || last[1] - last[0] < 4)) last[1] += part.length;
    else if (part) made.push([from, from + part.length]);
    from += part.length;
  }
  return made;
}

/* The sentences of a Markdown text; words of `quotes` are marked in them. */
function sentences(text, quotes = []) {
  const made = [];
  for (const block of blocks(text || "")) {
    const { element, kind, whole } = block, content = element.textContent;
    wrapRanges(element, quoteRanges(content, quotes), "span", "quoted");
    const places = whole || !content ? [null] : cuts(content);
    places.forEach((place, at) => {
      const body = place ? slice(element, ...place) : element;
      const box = make("div", { class: `md md-${kind}${at === 0 && block.gap ? " md-gap" : ""}`, dir: "auto" });
      if (kind === "item") {
        box.style.setProperty("--depth", block.depth);
        box.append(make("span", { class: "md-mark" }, at === 0 ? `${block.marker} ` : ""));
      }
      box.append(kind === "item" ? make("span", {}, body) : body);
      const marked = kind === "item" ? box.firstChild.textContent.length : 0;
      const words = wordsOf(box.textContent).filter((word) => word.from >= marked);
      made.push({ box, words, keys: new Map(words.map((word) => [word.key, weight(word.key)])) });
    });
  }
  return made;
}

const weight = (key) => (key.length > 3 || /\p{N}|\p{Script=Han}/u.test(key) ? 3 : 1);
const wordsOf = (text) => [...text.matchAll(WORD)].map((hit) => ({ key: hit[0].normalize("NFKC").toLowerCase(), from: hit.index, to: hit.index + hit[0].length }));

/* Dice's coefficient of the words of two sentences, long words counted three times. */
function likeness(a, b) {
  let both = 0, all = 0;
  for (const [key, by] of a.keys) { all += by; if (b.keys.has(key)) both += 2 * by; }
  for (const by of b.keys.values()) all += by;
  return all ? both / all : 0;
}

/* ---- which stands beside which ---- */
/* Pairs of places in their order; what has no partner stands beside its neighbour without one, or alone. */
function align(numBefore, numAfter, alike) {
  const n = Math.min(numBefore, ALIGNED), m = Math.min(numAfter, ALIGNED);
  const best = Array.from({ length: n + 1 }, () => new Float64Array(m + 1)), scores = [];
  for (let i = n - 1; i >= 0; i -= 1) {
    scores[i] = new Float64Array(m);
    for (let j = m - 1; j >= 0; j -= 1) {
      const score = alike(i, j);
      scores[i][j] = score >= ALIKE ? score : -1;
      best[i][j] = Math.max(best[i + 1][j], best[i][j + 1], scores[i][j] + best[i + 1][j + 1]);
    }
  }
  const anchors = [];
  for (let i = 0, j = 0; i < n && j < m;) {
    if (scores[i][j] > 0 && best[i][j] === scores[i][j] + best[i + 1][j + 1]) anchors.push([i++, j++]);
    else if (best[i][j] === best[i + 1][j]) i += 1;
    else j += 1;
  }
  const made = [];
  let i = 0, j = 0;
  for (const [a, b] of [...anchors, [numBefore, numAfter]]) {
    for (; i < a || j < b; i += i < a, j += j < b) made.push([i < a ? i : null, j < b ? j : null, false]);
    if (a < numBefore) made.push([i++, j++, true]);
  }
  return made;
}

/* ---- which words differ ---- */
/* Of both sentences the ranges of words that the other lacks, neighbours as one. */
function wordChanges(a, b) {
  if (a.words.length > COMPARED || b.words.length > COMPARED) return [[], []];
  const kept = common(a.words, b.words, (one, other) => one.key === other.key);
  return [a, b].map((each, side) => runs(each.words, (at) => !kept[side].has(at)));
}

function runs(words, isIn) {
  const made = [];
  words.forEach((word, at) => {
    if (!isIn(at)) return;
    if (at > 0 && isIn(at - 1)) made[made.length - 1][1] = word.to;
    else made.push([word.from, word.to]);
  });
  return made;
}

/* The ranges of a sentence's words that a text lacks; short words only between others. */
const stem = (key) => (key.length > 4 && !/\p{N}/u.test(key) ? key.replace(/(?:'s|’s|ies|es|s|ed|ing|ly|e|y)$/, "") : key);
const stems = (all) => new Set(all.flatMap((each) => each.words.map((word) => stem(word.key))));
function lackingRanges(sentence, held) {
  const lacks = sentence.words.map((word) => !held.has(stem(word.key)));
  const counts = sentence.words.map((word, at) => lacks[at] && weight(word.key) > 1);
  return runs(sentence.words, (at) => counts[at] || (lacks[at] && counts[at - 1] && counts[at + 1]));
}

/* ---- quotes ---- */
const plainly = (text) => { const made = text.replace(/\s/g, " ").replace(/[’‘]/g, "'").replace(/[“”]/g, '"'); const lower = made.toLowerCase(); return lower.length === made.length ? lower : made; };
const QUOTES = /"([^"\n]{3,300})"|“([^”\n]{3,300})”|«([^»\n]{3,300})»|`([^`\n]{3,300})`|(?<![\p{L}\p{N}])'([^'\n]{8,300})'(?![\p{L}\p{N}])/gu;
/* A quote without the marks of Markdown, which what is shown lacks too, and without dots at its ends. */
const bare = (quote) => plainly(quote).replace(/[*_`]/g, "").replace(/^[\s.…]+|[\s.,…]+$/g, "");
const quotesIn = (text) => [...(text || "").matchAll(QUOTES)].map((hit) => hit.slice(1).find(Boolean));
function quoteRanges(content, quotes) {
  const text = plainly(content), made = [];
  for (const quote of quotes) {
    const words = bare(quote);
    const at = words.length > 2 ? text.indexOf(words) : -1;
    if (at >= 0) made.push([at, at + words.length]);
  }
  return made.sort((a, b) => a[0] - b[0]);
}
