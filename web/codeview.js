// SPDX-License-Identifier: BSD-2-Clause
//
// The tab Code: the source of a function and its instructions, with the samples of each line and instruction.

import { change } from './change.js';
import { CodeCounts, NodeCounts, copiesWanted, instructionText, readCode, sourceLine } from './code.js';
import { rampColour } from './colour.js';
import { TIERS } from './data.js';
import { sayBriefly } from './hover.js';
import { ROW_HEIGHT, RowList } from './rowlist.js';
import { functionRows, profile, rangeOf, state, whole } from './shown.js';
import { byId, count, duration, make, plural, share } from './text.js';

const AROUND = 8; // lines of source before and after those with code
const FOLDED_MIN = 2; // instructions of an inlined call that are folded
const LANES = 8, LANE = 5; // of arrows, and px between two
const LANED_MAX = 4000; // jumps; longer ones are in the last lane
const SVG = 'http://www.w3.org/2000/svg';

const FIGURES = [
  ['self', 'Self', 'Samples in which this was running'],
  ['part', '', 'Of all samples that are selected'],
  ['total', 'Total', 'Samples with it anywhere in the stack, each counted once'],
];

const SIDES = [['self', 'OLD'], ['part', 'NEW'], ['total', 'Total']]; // of their own

const placeKey = (file, line) => `${line} ${file}`;

const shortName = (path) => path.replace(/.*\/(?=.)/, '');

// Lanes for arrows: short ones nearest to the instructions, no two in one lane at one place while there are enough.
function laneJumps(jumps) {
  const lanes = Array.from({ length: LANES - 1 }, () => []);
  for (const jump of jumps.sort((a, b) => a.high - a.low - (b.high - b.low)).slice(0, LANED_MAX)) {
    const lane = lanes.findIndex((taken) => taken.every(({ low, high }) => high < jump.low || low > jump.high));
    jump.lane = lane < 0 ? LANES - 1 : lane;
    lanes[lane]?.push(jump);
  }
}

export class CodeView {
  constructor(host) {
    const element = byId('code');
    this.packed = element.textContent.trim();
    element.remove();
    this.code = null;
    this.opened = new Set(); // folds that are open: gaps in sources, inlined calls
    this.unfolded = false; // all inlined calls
    this.tied = '';
    this.chosen = '';
    this.head = make('div', { class: 'code-head' });
    this.note = make('p', { class: 'code-note' });
    this.source = new RowList('Source', [['heat', ''], ...FIGURES, ['place', 'Line'], ['text', 'Source']], (i) => this.drawLine(this.lines[i]));
    this.machine = new RowList('Instructions', [['heat', ''], ...FIGURES, ['arrows', ''], ['place', 'Address'], ['line', 'Line'], ['text', 'Instruction']], (i) => this.drawInstruction(this.instructions[i]), (from, to) => this.drawArrows(from, to));
    this.arrows = document.createElementNS(SVG, 'svg');
    this.arrows.setAttribute('class', 'jumps');
    this.arrows.setAttribute('aria-hidden', 'true');
    this.machine.spacer.append(this.arrows);
    this.lines = this.instructions = [];
    for (const list of [this.source, this.machine]) {
      list.element.addEventListener('pointerover', (event) => this.tie(event.target.closest('.row')?.dataset.place ?? ''));
      list.element.addEventListener('pointerleave', () => this.tie(''));
      list.element.addEventListener('click', (event) => this.pick(list, Number(event.target.closest('.row')?.dataset.row ?? -1)));
    }
    host.append(this.head, this.note, make('div', { class: 'code-lists' }, this.source.element, this.machine.element));
  }

  // Other rows are selected.
  forget() {
    this.nodes = null;
    this.key = '';
  }

  load() {
    this.loading ??= readCode(this.packed).then((code) => {
      this.packed = '';
      this.code = code;
      if (state.view === 'code') this.show();
    }, (error) => {
      this.note.textContent = `The code in this page could not be read: ${error.message}`;
    });
    return this.loading;
  }

  // The function that is opened if none is chosen: with most samples of its own in code that has lines or instructions.
  hottest() {
    const { self } = functionRows().ticks, { frameFunction, frameLine, frameCode } = profile, has = new Uint8Array(profile.functionName.length);
    for (let i = 0; i < frameFunction.length; i++) if (frameLine[i] || frameCode[i]) has[frameFunction[i]] = 1;
    let best = -1;
    for (let f = 0; f < has.length; f++) if (has[f] && (best < 0 || self[f] > self[best])) best = f;
    return best;
  }

  show() {
    if (!this.code) {
      this.load();
      return;
    }
    const fn = state.fn >= 0 && state.fn < profile.functionName.length ? state.fn : this.hottest(), key = `${fn} ${state.copy} ${state.measure}`;
    if (this.profile !== profile) this.forget();
    if (this.key === key) return;
    this.profile = profile;
    if (this.fn !== fn || this.copy !== state.copy) {
      this.opened.clear();
      this.chosen = '';
    }
    Object.assign(this, { key, fn, copy: state.copy });
    if (fn < 0) {
      this.head.replaceChildren();
      this.note.textContent = 'No code in this profile has lines or instructions.';
      this.lines = this.instructions = [];
    } else {
      this.count();
      this.fillHead();
      this.fillLines();
      this.fillInstructions();
    }
    const isNew = fn >= 0 && !this.chosen, places = isNew ? this.linesByHeat() : [];
    if (places.length) this.chosen = placeKey(places[0].file, places[0].line);
    this.source.show(this.lines.length, isNew ? this.rowOfPlace.get(this.chosen) ?? -1 : -1);
    this.machine.show(this.instructions.length, isNew ? this.rowOfInstructions.get(this.chosen) ?? -1 : -1);
  }

  count() {
    const { copy } = state, counted = (everywhere, only) => new CodeCounts(this.nodes, this.code, copiesWanted(profile, this.fn, everywhere, only));
    this.nodes ??= new NodeCounts(profile, rangeOf);
    this.k = Math.max(0, profile.measures.indexOf(state.measure));
    this.sides = profile.difference ? ['old', 'new'].map((side) => profile.measures.indexOf(side)) : null; // of two compared times
    for (const list of [this.source, this.machine]) list.titles((this.sides ? SIDES : FIGURES).map(([, text]) => text), 1);
    this.all = counted(true, '');
    this.hasOthers = this.all.copies.some(({ fn }) => profile.functionModule[fn] !== profile.functionModule[this.fn]);
    const isOwn = !copy && this.hasOthers, isOne = copy && copy !== 'all' && this.all.copies.some(({ key }) => key === copy);
    this.own = this.hasOthers ? counted(false, '') : this.all;
    this.shown = isOwn ? this.own : isOne ? counted(true, copy) : this.all;
    this.most = this.shown.lines.reduce((most, { self }) => Math.max(most, self[this.k]), 0);
    this.mostOfInstructions = 0;
    for (const { instructions } of this.shown.copies) for (const { self } of instructions.values()) this.mostOfInstructions = Math.max(this.mostOfInstructions, self[this.k]);
  }

  // ---- texts ----

  value(sums) {
    const { terms } = profile, n = sums[this.k];
    if (this.sides) return this.sides.map((k) => this.sideText(sums, k)).join(' → ');
    return state.measure === 'cpu' ? duration(n) : terms.quantity(n);
  }

  sideText(sums, k) {
    const { difference } = profile;
    return sums[k] ? difference.text(sums[k] / difference.unit) : '0';
  }

  part(sums) {
    return share(sums[this.k], whole()[state.measure]);
  }

  copyText({ fn, code, tier, isOwn }) {
    const version = code && this.all.copies.filter((other) => other.fn === fn && other.tier === tier).length > 1 ? `, at ${this.code.codes[code].address.toString(16)}` : '';
    return `${isOwn ? '' : 'inlined in '}${profile.nameOf(fn).slice(0, 120)}  ${profile.moduleOf(fn).slice(0, 80)}${TIERS[tier] ? `, ${TIERS[tier]}` : ''}${version}`;
  }

  fillHead() {
    const { self, total } = this.shown.whole, option = (value, text) => make('option', { value, selected: value === state.copy }, text);
    const module = profile.moduleOf(this.fn).slice(0, 80), amount = (sums) => `${this.value(sums.self)} self`;
    const copies = [...(this.hasOthers ? [option('', `All copies in ${module}: ${amount(this.own.whole)}`), option('all', `All copies in all modules: ${amount(this.all.whole)}`)] : [option('', `${this.all.copies.length === 1 ? 'One copy' : `All ${count(this.all.copies.length)} copies`}: ${amount(this.all.whole)}`)]),
      ...(this.all.copies.length > 1 ? this.all.copies.map((copy) => option(copy.key, `${amount(copy)}  ${this.copyText(copy)}`)) : [])];
    const choose = make('select', { 'aria-label': 'Copies of the function', id: 'choose-copy', title: 'Code of the function: its own, of clones, of versions, where it is inlined', onchange: (event) => change({ copy: event.target.value }) }, ...copies);
    const button = (text, title, onclick, pressed) => make('button', { type: 'button', title, onclick, 'aria-pressed': pressed }, text);
    this.head.replaceChildren(make('b', { class: 'code-name' }, make('bdi', null, profile.nameOf(this.fn).slice(0, 400))), make('span', { id: 'code-sums' }, `${this.value(self)} self (${this.part(self)}), ${this.value(total)} total (${this.part(total)})`), choose,
      button('◂', 'The line before in the order of samples (,)', () => this.step(-1)), button('▸', 'The next hottest line (.)', () => this.step(1)),
      button('Inlined', 'Show the instructions of inlined calls', () => this.unfold(), String(this.unfolded)));
    this.note.textContent = `Certainty: ${this.code.words.certainty}.`;
  }

  // ---- rows of source ----

  fillLines() {
    const files = new Map(), { k } = this;
    for (const line of this.shown.lines) {
      if (!files.has(line.file)) files.set(line.file, { path: line.file, lines: [], self: 0, total: 0 });
      const file = files.get(line.file);
      file.lines.push(line);
      file.self += line.self[k];
      file.total += line.total[k];
    }
    this.lines = [];
    for (const file of [...files.values()].sort((a, b) => b.self - a.self || b.total - a.total || (a.path < b.path ? -1 : 1))) this.addFile(file);
    this.rowOfPlace = new Map();
    this.lines.forEach(({ place }, i) => place && this.rowOfPlace.set(place, i));
  }

  addFile({ path, lines }) {
    const source = this.code.sources.get(path), state = !path ? 'lines of this code are unknown' : source ? source.state : 'the page does not have its text';
    this.lines.push({ kind: 'file', text: path || '?', state, isChanged: !!source?.isChanged });
    let next = 0;
    for (const line of lines.sort((a, b) => a.line - b.line)) {
      if (source && line.line) this.addBetween(source, next || Math.max(1, line.line - AROUND), line.line, !next);
      this.lines.push({ kind: 'line', line: line.line, text: sourceLine(source, line.line), counts: line, place: placeKey(path, line.line) });
      next = line.line + 1;
    }
    if (source && next) this.addTexts(source, next, next + AROUND);
  }

  // Lines [from, to), as far as the page has them: numbers of lines are the program's own word.
  addTexts(source, from, to) {
    for (const { first, bytes } of source.spans)
      for (let line = Math.max(from, first); line < Math.min(to, first + bytes.length + 1); line++) this.addText(source, line);
  }

  addText(source, line) {
    const text = sourceLine(source, line);
    if (text !== null) this.lines.push({ kind: 'line', line, text, counts: null, place: placeKey(source.path, line) });
  }

  // Lines [from, to) without code: all of them, or some at both ends and a fold.
  addBetween(source, from, to, isFirst) {
    const fold = `${from} ${source.path}`, isFolded = !isFirst && to - from > 2 * AROUND && !this.opened.has(fold);
    this.addTexts(source, from, isFolded ? from + AROUND : to);
    if (!isFolded) return;
    this.lines.push({ kind: 'fold', fold, text: `⋯ ${plural(to - from - 2 * AROUND, 'line')}` });
    this.addTexts(source, to - AROUND, to);
  }

  figures(counts, most) {
    const { k } = this, self = counts?.self[k], total = counts?.total[k], heat = make('i', { class: 'heat' });
    if (self) heat.style.background = rampColour(0.12 + (0.88 * self) / most);
    const cell = (style, text) => make('span', { class: style }, text);
    const has = this.sides ? this.sides.some((side) => counts?.self[side]) : self;
    const [first, second] = !has ? ['', ''] : this.sides ? this.sides.map((side) => this.sideText(counts.self, side)) : [this.value(counts.self), this.part(counts.self)];
    return [heat, cell('self', first), cell('part', second), cell('total', total ? this.part(counts.total) : '')];
  }

  mark(row, place) {
    if (!place) return row;
    row.dataset.place = place;
    row.classList.toggle('tied', place === this.tied);
    row.classList.toggle('chosen', place === this.chosen);
    return row;
  }

  drawLine(line) {
    if (line.kind === 'file') return make('div', { class: 'row title' }, make('b', null, make('bdi', null, line.text)), make('span', { class: line.isChanged ? 'changed' : 'state' }, line.state));
    if (line.kind === 'fold') return make('div', { class: 'row fold' }, make('button', { type: 'button' }, line.text));
    const row = make('div', { class: 'row' }, ...this.figures(line.counts, this.most), make('span', { class: 'place' }, line.line ? String(line.line) : '?'), make('span', { class: 'text' }, make('bdi', null, line.text ?? '')));
    return this.mark(row, line.place);
  }

  // ---- rows of instructions ----

  fillInstructions() {
    this.instructions = [];
    this.jumps = [];
    for (const copy of this.shown.copies) this.addCopy(copy);
    this.rowOfInstructions = new Map(); // by place: the row with most samples
    this.instructions.forEach((row, i) => {
      if (!row.place) return;
      const best = this.rowOfInstructions.get(row.place);
      if (best === undefined || (row.counts?.self[this.k] ?? 0) > (this.instructions[best].counts?.self[this.k] ?? 0)) this.rowOfInstructions.set(row.place, i);
    });
    laneJumps(this.jumps);
    this.machine.element.classList.toggle('bare', !this.instructions.some(({ kind }) => kind === 'instruction' || kind === 'inlined'));
  }

  addCopy(copy) {
    const code = this.code.codes[copy.code], first = this.instructions.length, isInlined = (row) => copy.isOwn && row && row.depth > 0 && !this.shown.names.has(row.name);
    this.instructions.push({ kind: 'title', text: this.copyText(copy), state: `${this.value(copy.self)} self` });
    if (!code) {
      const { codes_left_out: left } = profile.words.code ?? {};
      this.instructions.push({ kind: 'note', text: `no instructions: ${this.code.words.no_code}${left ? ', or the page had no room for it' : ''}` });
      return;
    }
    if (code.problem) this.instructions.push({ kind: 'note', text: `no texts of instructions: ${code.problem}` });
    const rowOf = new Int32Array(code.texts.length); // by instruction: its row + 1
    for (let i = 0, end; i < code.texts.length; i = end) {
      const row = code.rows[code.rowOf[i]];
      end = i + 1;
      if (!copy.isOwn && !copy.instructions.has(i) && !this.shown.names.has(row?.name)) {
        if (this.instructions[this.instructions.length - 1].kind !== 'gap') this.instructions.push({ kind: 'gap', text: '…' });
        continue;
      }
      if (isInlined(row)) while (end < code.texts.length && isInlined(code.rows[code.rowOf[end]])) end++;
      const fold = `${copy.key} ${i}`;
      if (isInlined(row) && end - i >= FOLDED_MIN && !this.unfolded) {
        this.instructions.push(this.foldOf(copy, code, i, end, fold));
        if (!this.opened.has(fold)) {
          rowOf.fill(this.instructions.length, i, end);
          continue;
        }
      }
      for (let at = i; at < end; at++) {
        rowOf[at] = this.instructions.push(this.instructionOf(copy, code, at));
      }
    }
    this.addJumps(code, rowOf, first);
  }

  instructionOf(copy, code, i) {
    const row = code.rows[code.rowOf[i]], place = row?.line ? placeKey(row.file, row.line) : '';
    return { kind: 'instruction', code, i, row, place, counts: copy.instructions.get(i) ?? null, isInlined: copy.isOwn && row?.depth > 0 && !this.shown.names.has(row.name) };
  }

  foldOf(copy, code, from, to, fold) {
    const names = new Set(), counts = this.shown.newCounts(this.nodes);
    for (let i = from; i < to; i++) {
      names.add(code.rows[code.rowOf[i]].name || '?');
      copy.instructions.get(i)?.total.forEach((n, k) => (counts.total[k] += n));
    }
    const [first, ...others] = names;
    return { kind: 'inlined', fold, counts, text: `${this.opened.has(fold) ? '▾' : '▸'} ${first.slice(0, 80)}${others.length ? ` and ${others.length} more` : ''}, inlined: ${plural(to - from, 'instruction')}` };
  }

  addJumps({ jumps }, rowOf) {
    for (let i = 0; i < jumps.length; i++) {
      if (!jumps[i]) continue;
      const from = rowOf[i] - 1, to = rowOf[jumps[i] - 1] - 1;
      if (from >= 0 && to >= 0 && from !== to) this.jumps.push({ from, to, low: Math.min(from, to), high: Math.max(from, to), lane: LANES - 1 });
    }
  }

  drawInstruction(item) {
    const { kind, text } = item;
    if (kind === 'title') return make('div', { class: 'row title' }, make('b', null, make('bdi', null, text)), make('span', { class: 'state' }, item.state));
    if (kind === 'note' || kind === 'gap') return make('div', { class: `row ${kind}` }, make('span', { class: 'text' }, text));
    if (kind === 'inlined') return make('div', { class: 'row fold' }, ...this.figures(item.counts, 1), make('span', { class: 'arrows' }), make('button', { type: 'button' }, make('bdi', null, text)));
    const { code, i, row } = item, cell = (style, ...inner) => make('span', { class: style }, ...inner);
    const where = row?.line ? `${this.fileOfNote(row.file)}${row.line}` : '';
    const element = make('div', { class: `row ${item.isInlined ? 'inner' : ''}`, title: row?.line ? `${row.name ? `${row.name.slice(0, 300)}, ` : ''}${row.file}:${row.line}` : null }, ...this.figures(item.counts, this.mostOfInstructions), cell('arrows'),
      cell('place', (code.address + code.offsets[i]).toString(16)), cell('line', make('bdi', null, where)), cell(`text ${code.problem ? 'bytes' : ''}`, make('bdi', null, instructionText(this.code, code, i))));
    return this.mark(element, item.place);
  }

  // Of a line in another file than the first one of the source.
  fileOfNote(path) {
    return path === this.lines[0]?.text ? '' : `${shortName(path).slice(0, 30)}:`;
  }

  // From and to rows that can be seen.
  drawArrows(from, to) {
    if (!this.jumps) return;
    const paths = [], right = LANES * LANE + 6, tip = (y) => `M${right - 3} ${y - 3}L${right} ${y}L${right - 3} ${y + 3}`;
    for (const jump of this.jumps) {
      if (jump.low >= to || jump.high < from) continue;
      const y = (row) => (Math.max(from - 1, Math.min(to, row)) - from) * ROW_HEIGHT + ROW_HEIGHT / 2, x = right - 6 - jump.lane * LANE;
      const path = document.createElementNS(SVG, 'path');
      path.setAttribute('d', `M${right} ${y(jump.from)}H${x}V${y(jump.to)}H${right}${tip(y(jump.to))}`);
      if (this.tied && [jump.from, jump.to].some((row) => this.instructions[row].place === this.tied)) path.setAttribute('class', 'tied');
      paths.push(path);
    }
    this.arrows.style.transform = `translateY(${from * ROW_HEIGHT}px)`;
    this.arrows.style.height = `${(to - from) * ROW_HEIGHT}px`;
    this.arrows.replaceChildren(...paths);
  }

  // ---- what is pointed at ----

  tie(place) {
    if (place === this.tied) return;
    this.tied = place;
    for (const { window } of [this.source, this.machine]) for (const row of window.children) row.classList.toggle('tied', !!place && row.dataset.place === place);
    const from = Number(this.machine.window.firstChild?.dataset.row ?? 0);
    this.drawArrows(from, from + this.machine.window.children.length);
  }

  pick(list, i) {
    const item = (list === this.source ? this.lines : this.instructions)[i];
    if (item?.fold) this.toggle(item.fold);
    else if (item?.place) this.choose(item.place, list);
  }

  toggle(fold) {
    if (!this.opened.delete(fold)) this.opened.add(fold);
    this.refill();
  }

  unfold() {
    this.unfolded = !this.unfolded;
    this.fillHead();
    this.refill();
  }

  refill() {
    this.fillLines();
    this.fillInstructions();
    this.source.show(this.lines.length, -1);
    this.machine.show(this.instructions.length, -1);
  }

  // `from`: the list that it was chosen in, which stays where it is.
  choose(place, from) {
    this.chosen = place;
    const line = this.rowOfPlace.get(place), instruction = this.rowOfInstructions.get(place);
    for (const [list, row] of [[this.source, line], [this.machine, instruction]]) if (list !== from && row !== undefined) list.reveal(row);
      else list.render();
  }

  linesByHeat() {
    const { k } = this;
    return this.shown.lines.filter(({ line, total }) => line && total[k]).sort((a, b) => b.self[k] - a.self[k] || b.total[k] - a.total[k]);
  }

  // To the next or the previous one in the order of samples.
  step(by) {
    if (!this.code || this.fn < 0 || !this.shown) return;
    const lines = this.linesByHeat();
    if (!lines.length) return;
    const at = lines.findIndex(({ file, line }) => placeKey(file, line) === this.chosen), next = at >= 0 ? (at + by + lines.length) % lines.length : 0, { file, line, self, total } = lines[next];
    this.choose(placeKey(file, line), null);
    sayBriefly(`${file}:${line} – ${this.value(self)} self (${this.part(self)}), ${this.value(total)} total (${this.part(total)}); line ${next + 1} of ${lines.length} in the order of samples`);
  }

  // For tests: what is shown, as numbers.
  figuresOfAll() {
    const { k } = this, rows = (list) => list.map(({ counts, ...row }) => ({ ...row, self: counts?.self[k] ?? 0, total: counts?.total[k] ?? 0 }));
    const copies = this.shown.copies.map((copy) => ({
      name: profile.nameOf(copy.fn), module: profile.moduleOf(copy.fn), inlined: !copy.isOwn, self: copy.self[k], total: copy.total[k],
      instructions: [...copy.instructions].map(([i, counts]) => ({ address: this.code.codes[copy.code].address + this.code.codes[copy.code].offsets[i], self: counts.self[k], total: counts.total[k] })).sort((a, b) => a.address - b.address),
    }));
    const texts = this.instructions.filter(({ kind }) => kind === 'instruction').map(({ code, i, ...row }) => ({ address: code.address + code.offsets[i], text: instructionText(this.code, code, i), self: row.counts?.self[k] ?? 0, total: row.counts?.total[k] ?? 0 }));
    return { self: this.shown.whole.self[k], total: this.shown.whole.total[k], lines: this.shown.lines.map(({ file, line, self, total }) => ({ file, line, self: self[k], total: total[k] })), copies, texts, source: rows(this.lines), jumps: this.jumps.length };
  }
}
