// SPDX-License-Identifier: BSD-2-Clause
//
// The whole recording as a heat map: a column is a second, a row 20 ms of it (100 ms where there are few
// samples), the colour how many samples fell into them. Patterns that an average hides can be seen: what
// happens each second, bursts, pauses. A drag from one cell to another selects the time between.

import { Surface, SMALL_FONT, themeColour, dragging } from './canvas.js';
import { rampColour } from './colour.js';

const LEFT = 52, TOP = 22, BOTTOM = 8, RIGHT = 8;
const FEW = 2; // samples a cell of 20 ms

export class HeatMap {
  // `options`: selected(from, to, final), hover(cell or null, event)
  constructor(host, profile, options) {
    this.profile = profile;
    this.options = options;
    this.seconds = Math.max(1, Math.ceil(profile.end / 1e6));
    const all = profile.threads.reduce((sum, t) => sum + t.ticks, 0);
    this.rows = all / (this.seconds * 50) >= FEW ? 50 : 10;
    this.each = 1e6 / this.rows; // µs
    this.time = null;
    this.cursor = 0;
    this.surface = new Surface(host, 'Heat map of samples: seconds across, parts of a second upwards', (c, w, h, left) => {
      this.draw(c, w, left);
      this.outline(c, left);
    });
    this.surface.onresize = () => this.layout();
    this.listen();
  }

  // `wanted(thread)`: counts it?
  count(wanted) {
    const cells = (this.cells = new Float64Array(this.seconds * this.rows));
    const { time, ticks, begin } = this.profile;
    const cellOf = (at) => Math.max(0, Math.min(cells.length - 1, Math.floor(at / this.each)));
    for (const t of this.profile.threads) {
      if (!wanted(t)) continue;
      for (let i = t.first; i < t.end; i++) {
        if (!begin) {
          cells[cellOf(time[i])] += ticks ? ticks[i] : 1;
          continue;
        }
        // how many threads, on average
        for (let cell = cellOf(begin[i]), last = cellOf(time[i]); cell <= last; cell++) {
          cells[cell] += Math.max(0, Math.min(time[i], (cell + 1) * this.each) - Math.max(begin[i], cell * this.each)) / this.each;
        }
      }
    }
    this.most = cells.reduce((a, b) => Math.max(a, b), 0);
    this.surface.ask();
  }

  forget() {
    this.cells = null;
  }

  mark(time) {
    this.time = time;
    this.surface.ask();
  }

  layout() {
    const room = this.surface.width - LEFT - RIGHT;
    this.across = Math.max(4, Math.min(110, room / this.seconds));
    this.down = Math.max(3, Math.floor((this.surface.height - TOP - BOTTOM) / this.rows));
    this.surface.extent(this.wholeSize().width, 0);
  }

  // Of all seconds, without what can be scrolled to.
  wholeSize() {
    return { width: LEFT + RIGHT + this.seconds * this.across, height: TOP + BOTTOM + this.rows * this.down };
  }

  drawWhole(context) {
    this.draw(context, this.wholeSize().width, 0);
  }

  draw(c, width, left) {
    if (!this.cells) return;
    const { rows, across, down, seconds } = this, gap = down > 5 && across > 5 ? 1 : 0;
    const first = Math.max(0, Math.floor((left - LEFT) / across));
    const bottom = TOP + rows * down;
    for (let s = first; s < seconds; s++) {
      const x = LEFT + s * across - left;
      if (x > width) break;
      for (let r = 0; r < rows; r++) {
        const v = this.cells[s * rows + r], from = (s * rows + r) * this.each;
        if (from >= this.profile.end) break;
        c.globalAlpha = this.time && (from + this.each <= this.time[0] || from >= this.time[1]) ? 0.4 : 1;
        c.fillStyle = rampColour(this.most ? v / this.most : 0);
        c.fillRect(x, bottom - (r + 1) * down, across - gap, down - gap);
      }
    }
    c.globalAlpha = 1;
    this.axes(c, width, left, bottom);
  }

  // The cell that the keyboard has chosen.
  outline(c, left) {
    const { rows, across, down, cursor } = this;
    if (!this.cells || document.activeElement !== this.surface.canvas) return;
    c.strokeStyle = themeColour('focus');
    c.lineWidth = 2;
    c.strokeRect(LEFT + Math.floor(cursor / rows) * across - left, TOP + (rows - 1 - (cursor % rows)) * down, across, down);
  }

  axes(c, width, left, bottom) {
    c.font = SMALL_FONT;
    c.textBaseline = 'middle';
    const every = Math.max(1, Math.ceil(46 / this.across));
    for (let s = Math.ceil(left / this.across / every) * every; s < this.seconds; s += every) {
      const x = LEFT + s * this.across - left;
      if (x < LEFT - 2) continue;
      c.fillStyle = themeColour('faint');
      c.fillText(`${s} s`, x, TOP / 2);
    }
    c.fillStyle = themeColour('ground');
    c.fillRect(0, 0, LEFT - 2, bottom + BOTTOM);
    c.fillStyle = themeColour('faint');
    c.textAlign = 'right';
    for (let r = 0; r < this.rows; r += this.rows / 5) {
      c.fillText(`${Math.round((r * this.each) / 1000)} ms`, LEFT - 8, bottom - r * this.down - this.down / 2);
    }
    c.textAlign = 'left';
  }

  cellAt(event) {
    const [x, y] = this.surface.where(event);
    const s = Math.floor((x + this.surface.host.scrollLeft - LEFT) / this.across);
    const r = Math.floor((TOP + this.rows * this.down - y) / this.down);
    if (x < LEFT || s < 0 || s >= this.seconds || r < 0 || r >= this.rows) return -1;
    const cell = s * this.rows + r;
    return cell * this.each < this.profile.end ? cell : -1;
  }

  select(a, b, final, event) {
    if (a < 0 || b < 0) return;
    this.options.selected(Math.min(a, b) * this.each, Math.min(this.profile.end, (Math.max(a, b) + 1) * this.each), final, event.ctrlKey || event.metaKey);
  }

  listen() {
    const { canvas } = this.surface;
    dragging(canvas, {
      started: (event) => this.cellAt(event),
      moved: (event, from) => this.select(from, this.cellAt(event), false, event),
      ended: (event, from) => this.select(from, this.cellAt(event), true, event),
      clicked: (event, from) => this.select(from, from, true, event),
    });
    canvas.addEventListener('pointermove', (event) => {
      const cell = this.cellAt(event);
      this.options.hover(cell < 0 ? null : { from: cell * this.each, to: (cell + 1) * this.each, ticks: this.cells[cell] }, event);
    });
    canvas.addEventListener('pointerleave', (event) => this.options.hover(null, event));
    canvas.addEventListener('focus', () => this.surface.ask());
    canvas.addEventListener('blur', () => this.surface.ask());
    canvas.addEventListener('keydown', (event) => {
      const step = { ArrowUp: 1, ArrowDown: -1, ArrowRight: this.rows, ArrowLeft: -this.rows }[event.key];
      if (event.ctrlKey || event.altKey || (!step && event.key !== 'Enter')) return;
      event.preventDefault();
      event.stopPropagation();
      const before = this.cursor;
      this.cursor = Math.max(0, Math.min(this.cells.length - 1, this.cursor + (step ?? 0)));
      if (event.shiftKey) this.anchor ??= before;
      else this.anchor = null;
      if (event.key === 'Enter' || event.shiftKey) this.select(this.anchor ?? this.cursor, this.cursor, true, event);
      else this.options.hover({ from: this.cursor * this.each, to: (this.cursor + 1) * this.each, ticks: this.cells[this.cursor] }, null);
      this.surface.ask();
    });
  }
}
