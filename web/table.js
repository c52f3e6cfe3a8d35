// SPDX-License-Identifier: BSD-2-Clause
//
// The table of functions, as `sysprof report` prints it: the same rows, the same figures. It is the text of
// all the pictures.

import { plainKind, stateColour } from './colour.js';
import { FLAG } from './data.js';
import { offerRowMenu } from './menu.js';
import { make, count, share, duration } from './text.js';

const PAGE = 300; // rows

const COLUMNS = [
  ['self', 'Self', 'Samples in which the function itself was running'],
  ['total', 'Total', 'Samples with the function anywhere in the stack, each counted once'],
  ['name', 'Function', ''],
  ['module', 'Module', ''],
];

// From row to row.
function rowKey(event) {
  const row = event.target.closest('tr'), to = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
  if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
  to.querySelector('button.name').focus();
  event.preventDefault();
}

export class FunctionTable {
  // `options`: chosen(fn), menu(fn, x, y), hover(fn or -1, event)
  constructor(profile, options) {
    this.profile = profile;
    this.options = options;
    this.by = options.by ?? 'self';
    this.down = true;
    this.limit = PAGE;
    this.body = make('tbody');
    offerRowMenu(this.body, (row, x, y) => {
      this.options.menu(Number(row.dataset.function), x, y);
      return true;
    });
    this.body.addEventListener('keydown', rowKey);
    this.heads = {};
    const row = make('tr');
    for (const [key, text, title] of options.columns ?? COLUMNS) {
      this.heads[key] = make('th', { scope: 'col', class: key }, make('button', { type: 'button', title, onclick: () => this.sortBy(key) }, text));
      row.append(this.heads[key]);
    }
    this.caption = make('caption', { class: 'quiet' });
    this.table = make('table', { class: 'functions', 'aria-label': 'Functions' }, this.caption, make('thead', null, row), this.body);
    this.more = make('button', { type: 'button', class: 'more', onclick: () => this.showMore() });
    this.element = make('div', { class: 'table-host' }, this.table, this.more);
  }

  // `rows`: sums by function; `matches`: of a search, or null.
  show(rows, measure, whole, matches, chosen) {
    this.rows = rows;
    this.measure = measure;
    this.whole = whole;
    this.chosen = chosen;
    this.list = [];
    const { total } = rows[measure];
    for (let f = 0; f < total.length; f++) if (total[f] > 0 && (!matches || matches[f])) this.list.push(f);
    this.limit = PAGE;
    this.sort();
  }

  sortBy(key) {
    if (this.by === key) this.down = !this.down;
    else this.down = key !== 'name' && key !== 'module';
    this.by = key;
    this.sort();
  }

  // By column: the order of functions.
  orders() {
    const { self, total } = this.rows[this.measure], p = this.profile;
    const text = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    const name = (a, b) => text(p.nameOf(a), p.nameOf(b)) || text(p.moduleOf(a), p.moduleOf(b));
    return {
      self: (a, b) => self[b] - self[a] || total[b] - total[a] || name(a, b),
      total: (a, b) => total[b] - total[a] || self[b] - self[a] || name(a, b),
      name: (a, b) => name(b, a),
      module: (a, b) => text(p.moduleOf(b), p.moduleOf(a)) || self[b] - self[a] || name(a, b),
    };
  }

  sort() {
    const { by } = this;
    this.list.sort(this.orders()[by]);
    if (!this.down) this.list.reverse();
    for (const [key, head] of Object.entries(this.heads)) {
      head.setAttribute('aria-sort', key !== by ? 'none' : this.down ? 'descending' : 'ascending');
    }
    this.render();
  }

  showMore() {
    this.limit += PAGE * 4;
    this.render();
  }

  value(ticks, cpu) {
    return this.measure === 'ticks' ? this.profile.terms.quantity(ticks) : duration(cpu);
  }

  figure(f, which) {
    const { ticks, cpu } = this.rows, part = this.rows[this.measure][which][f];
    const confidence = this.profile.terms.confidence(ticks[which][f], this.whole.ticks);
    const cell = make('td', { class: which, title: confidence && `95 % confidence: ${confidence}` });
    const bar = make('i', { class: 'bar' });
    bar.style.width = `${this.whole[this.measure] ? (100 * part) / this.whole[this.measure] : 0}%`;
    cell.append(bar, make('span', { class: 'share' }, share(part, this.whole[this.measure])), make('span', { class: 'number' }, this.value(ticks[which][f], cpu[which][f])));
    return cell;
  }

  row(f) {
    const dot = make('i', { class: 'dot' });
    const flags = this.profile.functionFlags[f];
    const state = this.profile.stateOf?.(f);
    dot.style.background = state ? stateColour(state) : plainKind(flags & FLAG.CATEGORY);
    const name = this.profile.nameOf(f), title = this.profile.fullNamesOf(f).slice(0, 8).join('\n') || (name.length > 60 ? name : '');
    const button = make('button', { type: 'button', class: 'name', title: title.slice(0, 2000) || null }, name.length > 400 ? `${name.slice(0, 400)}…` : name);
    const row = make('tr', { class: f === this.chosen ? 'chosen' : '', onclick: () => this.options.chosen(f) },
      this.figure(f, 'self'), this.figure(f, 'total'), make('td', { class: 'name' }, make('div', null, dot, button, flags & FLAG.INLINED ? make('small', null, 'inlined') : null)),
      make('td', { class: 'module' }, make('bdi', null, this.profile.moduleOf(f).slice(0, 200))));
    row.dataset.function = f;
    return row;
  }

  render() {
    this.body.replaceChildren(...this.list.slice(0, this.limit).map((f) => this.row(f)));
    this.more.hidden = this.list.length <= this.limit;
    this.more.textContent = `${count(this.list.length - this.limit)} more functions`;
    this.caption.textContent = this.list.length ? '' : 'No function.';
  }

  choose(f) {
    this.chosen = f;
    for (const row of this.body.rows) row.classList.toggle('chosen', Number(row.dataset.function) === f);
  }
}
