// SPDX-License-Identifier: BSD-2-Clause
//
// A comparison of two sides (sysprof diff -o d.html). The profile has both: the processes OLD and NEW, whose threads
// are files. What a box or a row says about a difference is the test of its function over all samples; nothing is
// tested here.

import { changeColour, isDark } from './colour.js';
import { section } from './facts.js';
import { FunctionTable } from './table.js';
import { ROOT } from './tree.js';
import { make, count, plural, share, shown, duration, isTime, quantity } from './text.js';

const FINE = 2 ** 40; // whole numbers that OLD is divided into, so that sums of any selection are exact
const GREY_WORDS = { same: 'no difference proved', unclear: 'unclear', moved: 'moved' };

const clean = (text) => shown(new TextEncoder().encode(text));
const signed = (x, digits) => `${x < 0 ? '−' : '+'}${Math.abs(x).toFixed(digits)}`;
const percent = (x) => signed(100 * x, Math.abs(x) < 0.0995 ? 1 : 0);

// −1: halved or gone, 1: doubled or new. The smallest one can be distinguished from grey.
function provedColour(change) {
  const size = Math.min(1, Math.abs(change));
  return changeColour(Math.sign(change) * (0.15 + 0.85 * size));
}

// What is known of waits (`sysprof diff` has it as a comparison of its own), as that of samples.
export function factsOfWaits({ waiting, ...all }) {
  const side = (name) => ({ side: name, files: all[name].files, cpu_ns: waiting[`${name}_ns`] });
  const files = waiting.files.map((file, i) => ({ ...all.files[i], cpu_ns: file.waiting_ns, value: file.value }));
  return { ...all, ...waiting, waits: true, files, old: side('old'), new: side('new') };
}

export class Difference {
  constructor(profile, facts) {
    this.all = facts;
    this.unit = FINE / facts.total.old.value;
    this.addColumns(profile);
    this.readTests(profile);
  }

  // Of each row, what it is in the view, in parts of OLD's whole.
  addColumns(profile) {
    const n = profile.node.length, old = new Float64Array(n), next = new Float64Array(n), mean = new Float64Array(n);
    for (const t of profile.threads) {
      const file = this.all.files[t.number], side = file.side === 'old' ? old : next;
      const each = (file.value / (this.all.waits ? file.cpu_ns : file.events ?? file.samples)) * this.unit;
      for (let i = t.first; i < t.end; i++) {
        side[i] = 2 * Math.round(((this.all.waits ? profile.weight[i] : profile.ticks ? profile.ticks[i] : 1) * each) / 2);
        mean[i] = side[i] / 2;
      }
    }
    profile.columns = [old, next, mean];
    profile.measures = ['ticks', 'cpu', 'old', 'new', 'mean'];
  }

  // Sums of some files only: the mean of these. `isWanted(thread)`
  average(profile, sums, isWanted) {
    for (const [process, side] of ['old', 'new'].entries()) {
      const files = profile.threads.filter((t) => t.process === process), wanted = files.filter(isWanted).length;
      if (!wanted || wanted === files.length) continue;
      for (const which of ['self', 'total']) {
        const values = sums[side][which], mean = sums.mean[which], factor = files.length / wanted;
        for (let i = 0; i < values.length; i++) {
          mean[i] += (values[i] * (factor - 1)) / 2;
          values[i] *= factor;
        }
      }
    }
  }

  readTests(profile) {
    const decoder = new TextDecoder(), numbers = new Map(), { strings, functionName } = profile;
    for (let f = 0; f < functionName.length; f++) numbers.set(decoder.decode(strings.raw[functionName[f]]), f);
    const rows = new Map(this.all.rows.map((row) => [`${row.own_code} ${row.function}`, row.verdict]));
    this.tests = new Map(); // by function
    for (const test of this.all.tests) {
      const f = numbers.get(test.function);
      if (f === undefined) continue;
      if (!this.tests.has(f)) this.tests.set(f, {});
      test.verdict = this.verdictOf(test, rows.get(`${test.own_code} ${test.function}`));
      this.tests.get(f)[test.own_code ? 'own' : 'total'] = test;
    }
  }

  isFound(test) {
    return test.q <= this.all.level;
  }

  verdictOf(test, ofRow) {
    if (!this.isFound(test)) return 'same';
    if (this.all.refused || test.doubtful) return 'unclear';
    if (ofRow) return ofRow;
    if (!test.old_samples) return 'new';
    if (!test.new_samples) return 'gone';
    return test.difference.value > 0 ? 'slower' : 'faster';
  }

  // That of a function which says most: a difference of its total, or else of its own code.
  testOf(f) {
    const { total, own } = this.tests.get(f) ?? {};
    return own && total && !this.isFound(total) && this.isFound(own) ? own : total ?? own ?? null;
  }

  // ---- texts ----

  // What was counted: a wait is found by visits.
  get sample() {
    return this.all.waits ? 'visit' : 'sample';
  }

  // Of a quantity in the unit of the view.
  text(value) {
    const { view } = this.all;
    return view === 'share' || view === 'second' ? `${(100 * value).toFixed(2)} %` : duration(value);
  }

  // Of sums in parts of OLD.
  changeOf(old, next) {
    const part = old > 0 && next > 0 ? ` (${percent(next / old - 1)} %)` : '';
    return `${this.text(old / this.unit)} → ${this.text(next / this.unit)}${part}`;
  }

  change(sums, node) {
    return this.changeOf(sums.old.total[node], sums.new.total[node]);
  }

  intervalOf(test) {
    const outside = 100 * (1 - this.all.level);
    const words = `${Number(outside.toPrecision(3))} % interval`;
    if (test.relative === null) return `${this.text(test.low)} to ${this.text(test.high)} (${words})`;
    if (!(test.relative_low < test.relative_high)) return `${percent(test.relative)} %`; // nothing of it is random
    return `${percent(test.relative)} % (${percent(test.relative_low)} to ${percent(test.relative_high)}, ${words})`;
  }

  // Lines about a function, and about a place of it.
  facts(sums, node, f, isPart) {
    const test = f >= 0 ? this.testOf(f) : node === ROOT ? this.all.total : null;
    const list = [[f >= 0 ? 'here' : 'all', this.change(sums, node)]];
    const own = [sums.old.self[node], sums.new.self[node]];
    if (f >= 0 && own[0] + own[1]) list.push(['own code here', this.changeOf(...own)]);
    if (!test) return [...list, ...(f >= 0 ? [['difference', `not tested: too few ${this.sample}s`]] : [])];
    const what = test.own_code ? 'own code of the function' : f >= 0 ? 'function' : 'whole';
    list.push([what, `${this.text(test.old.value)} → ${this.text(test.new.value)}, ${count(test.old_samples)} and ${plural(test.new_samples, this.sample)}`]);
    list.push(['difference', this.intervalOf(test)]);
    const verdict = test.verdict ?? this.verdictOf(test);
    list.push(['verdict', `${GREY_WORDS[verdict] ?? verdict} (q ${test.q < 0.001 ? '< 0.001' : test.q.toFixed(3)})`]);
    if (isPart) list.push(['selection', `the test is of all ${this.sample}s, not of the selection`]);
    return list;
  }

  // ---- colours ----

  // Of a function: grey if nothing is proved, or if what is shown is not what was tested.
  colourOf(f, isPart) {
    const test = isPart ? null : this.testOf(f);
    return this.colour(test?.verdict ?? 'same', test);
  }

  colour(verdict, test) {
    if (verdict === 'moved') return isDark() ? 'hsl(275 22% 38%)' : 'hsl(275 45% 82%)';
    if (verdict in GREY_WORDS) return isDark() ? 'hsl(215 6% 32%)' : 'hsl(215 8% 84%)';
    if (verdict === 'new' || verdict === 'gone' || test.relative === null) return provedColour(verdict === 'gone' || test.difference.value < 0 ? -1 : 1);
    return provedColour(Math.log2(1 + test.relative));
  }

  legend(isPart, entry) {
    if (isPart) return [make('span', null, 'Tests are of the whole; sysprof diff FILE@10s-20s … compares parts')];
    if (this.all.refused) return [make('span', null, clean(this.all.sentence).slice(0, 200))];
    const ramp = make('i', { class: 'ramp' });
    const steps = [-1, -0.5, -0.2, -0.05, 0.05, 0.2, 0.5, 1].map(provedColour);
    ramp.style.background = `linear-gradient(90deg, ${steps.join(', ')})`;
    return [entry(this.colour('same'), GREY_WORDS.same), ...(this.all.tick ? [] : [entry(this.colour('moved'), GREY_WORDS.moved)]), make('span', null, '−50 %, gone', ramp, '+100 %, new')];
  }
}

// ---- the table -----------------------------------------------------------------------------------------

const COMPARED = [
  ['old', 'OLD', 'With the function anywhere in the stack'],
  ['new', 'NEW', 'The same; the mean of the files'],
  ['change', 'Difference', 'What is proved comes first'],
  ['name', 'Function', ''],
  ['module', 'Module', ''],
];

export class DifferenceTable extends FunctionTable {
  constructor(profile, options) {
    super(profile, { ...options, columns: COMPARED, by: 'change' });
    this.table.classList.add('compared');
  }

  orders() {
    const sums = this.rows, d = this.profile.difference, orders = super.orders();
    const rank = (f) => {
      const test = this.options.isPart() ? null : d.testOf(f);
      const proved = test && !(test.verdict in GREY_WORDS);
      return [proved ? 2 : test?.verdict === 'moved' ? 1 : 0, Math.abs(sums.new.total[f] - sums.old.total[f])];
    };
    const ranks = new Map(this.list.map((f) => [f, rank(f)]));
    const by = (which) => (a, b) => sums[which].total[b] - sums[which].total[a] || orders.total(a, b);
    return {
      ...orders, old: by('old'), new: by('new'),
      change: (a, b) => ranks.get(b)[0] - ranks.get(a)[0] || ranks.get(b)[1] - ranks.get(a)[1] || orders.total(a, b),
    };
  }

  side(f, which) {
    const part = this.rows[which].total[f], d = this.profile.difference, whole = Math.max(this.whole.old, this.whole.new);
    const bar = make('i', { class: 'bar' });
    bar.style.width = `${whole ? (100 * part) / whole : 0}%`;
    return make('td', { class: which }, bar, make('span', { class: 'share' }, d.text(part / d.unit)));
  }

  difference(f) {
    const d = this.profile.difference, test = this.options.isPart() ? null : d.testOf(f);
    if (!test) return make('td', { class: 'change' }, make('small', null, this.options.isPart() ? 'not tested' : `too few ${d.sample}s`));
    const dot = make('i', { class: 'dot' });
    dot.style.background = d.colour(test.verdict, test);
    const change = test.relative === null ? `${test.difference.value < 0 ? '−' : '+'}${d.text(Math.abs(test.difference.value))}` : `${percent(test.relative)} % (${percent(test.relative_low)} to ${percent(test.relative_high)})`;
    const words = test.verdict === 'same' ? '' : `${test.verdict}${test.own_code ? ', own code' : ''}`;
    return make('td', { class: `change ${test.verdict in GREY_WORDS ? 'weak' : ''}`, title: d.intervalOf(test) }, dot, change, make('small', null, words));
  }

  row(f) {
    const name = this.profile.nameOf(f);
    const row = make('tr', { class: f === this.chosen ? 'chosen' : '', onclick: () => this.options.chosen(f) },
      this.side(f, 'old'), this.side(f, 'new'), this.difference(f),
      make('td', { class: 'name' }, make('button', { type: 'button', class: 'name', title: name.length > 60 ? name.slice(0, 2000) : null }, name.slice(0, 400))),
      make('td', { class: 'module' }, make('bdi', null, this.profile.moduleOf(f).slice(0, 200))));
    row.dataset.function = f;
    return row;
  }
}

// ---- the head ------------------------------------------------------------------------------------------

function sideName(files, side) {
  const names = files.filter((f) => f.side === side).map((f) => clean(f.path.replace(/.*\/(?=.)/, '')));
  return names.length > 1 ? `${names[0].slice(0, 60)} and ${names.length - 1} more` : names[0].slice(0, 80);
}

export function fillDifferenceHeader(profile, title, strip, opened) {
  const { all } = profile.difference, names = ['old', 'new'].map((side) => sideName(all.files, side));
  document.title = `${names.join(' → ')} – sysprof`;
  title.replaceChildren(make('bdi', null, names[0]), ' → ', make('bdi', null, names[1]));
  const line = make('button', { type: 'button', class: 'facts', title: 'All about this comparison', onclick: opened }, make('span', null, make('bdi', null, clean(all.sentence))));
  if (!all.runs_measured && all.run_noise_assumed) line.append(make('span', { class: 'badge warn', title: 'With fewer than three files a side, how much runs differ is not known' }, `noise of runs taken to be ${(100 * all.run_noise).toFixed(0)} %`));
  for (const side of ['old', 'new']) {
    const lost = all[side].lost_share + all[side].cut_share;
    if (lost > 0.01) line.append(make('span', { class: 'badge warn', title: 'lost samples, and samples with an incomplete stack' }, `${side.toUpperCase()}: ${share(lost, 1)} lost or cut`));
  }
  strip.replaceChildren(line);
}

// What the samples stand for; CPU time has a row of its own.
function eventsOf({ event, event_unit: unit }, { events }) {
  return event && !isTime(event, unit) ? [[clean(event), quantity(events, clean(unit))]] : [];
}

export function differenceDetails(difference) {
  const { all } = difference, d = all.detectable;
  const known = (x, all) => (x === null ? 'unknown: not read from files of this format' : share(x, all));
  const part = (x) => (x === null ? `unknown: too few ${all.waits ? 'visits' : 'samples'}` : `${(100 * x).toFixed(1)} %`);
  const side = (name) => [
    ['files', count(all[name].files)],
    ...(all[name].cpu_ns ? [[all.waits ? 'waiting time' : 'CPU time', duration(all[name].cpu_ns)]] : []),
    ...(all.waits ? [] : [
      ['samples', count(all[name].samples)], ...eventsOf(all, all[name]), ['lost', known(all[name].lost_share, 1)], ['with an incomplete stack', known(all[name].cut_share, 1)],
      ['in code without a name', known(all[name].unnamed, all[name].events ?? all[name].samples)],
    ]),
  ];
  return [
    section('Found', [[clean(all.sentence), '']]),
    section('OLD', side('old')), section('NEW', side('new')),
    section('Smallest change that would have been found in 9 of 10 cases', [['of the whole', part(d.total)], ['of a function of 5 %', part(d.function_5_percent)], ['of one of 1 %', part(d.function_1_percent)]]),
    section('Method', [
      ['noise of runs', all.runs_measured ? 'measured by the files' : `${(100 * all.run_noise).toFixed(1)} %, ${all.run_noise_assumed ? 'assumed' : all.run_noise_files ? 'measured by the files of one side' : 'as given'}`],
      ['colours', 'tested differences of functions, false discovery rate 5 %; grey: not proved'],
    ]),
    section('Files', all.files.map((f) => [clean(f.path), `${f.side.toUpperCase()}, ${all.waits ? duration(f.cpu_ns) : plural(f.samples, 'sample')}`])),
  ].filter(Boolean);
}
