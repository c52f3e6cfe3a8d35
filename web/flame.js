// SPDX-License-Identifier: BSD-2-Clause
//
// Flame graphs: a tree as boxes, as wide as what they stand for. Only what can be seen is looked at: boxes
// narrower than a pixel end the walk, and children are sorted when they are first drawn.

import { Surface, FONT, characterWidth, fitText, themeColour, dragging } from './canvas.js';
import { offerMenu } from './menu.js';
import { ROOT, childrenOf } from './tree.js';

export const ROW = 19;
const TINY = 1; // px
const ZOOM_MS = 160;
const calm = matchMedia('(prefers-reduced-motion: reduce)');

// A box with its text. `style`: {colour, ink, dim, hot, inlined}
export function drawBox(c, x, y, width, text, style, each) {
  if (style.dim) c.globalAlpha = 0.32;
  c.fillStyle = style.hot ? themeColour('match') : style.colour;
  const left = Math.round(x), right = Math.round(x + width);
  c.fillRect(left, y, Math.max(right - left - (width > 3 ? 1 : 0), 1), ROW - 1);
  if (width >= 20) drawText(c, x, y, width, text, style, each);
  if (style.dim) c.globalAlpha = 1;
}

function drawText(c, x, y, width, text, style, each) {
  if (style.inlined) {
    c.fillStyle = themeColour('inlined');
    c.fillRect(x, y, 3, ROW - 1);
  }
  const from = Math.max(x, 0) + (style.inlined ? 7 : 4);
  const label = fitText(text, x + width - 4 - from, each);
  if (label) {
    c.fillStyle = style.hot ? themeColour('match-ink') : themeColour('box-ink');
    c.font = style.inlined ? `italic ${FONT}` : FONT;
    c.fillText(label, from, y + ROW / 2, x + width - from);
  }
}

export class Flame {
  // `options`: label, styleOf(node, tree), textOf(fn), hover(node, event), open(node), menu(node, x, y)
  constructor(host, options) {
    this.options = options;
    this.surface = new Surface(host, options.label, (c, w, h, left, top) => this.draw(c, w, h, top));
    this.surface.onresize = () => this.layout();
    this.upwards = true;
    this.base = options.skipRoot ? 1 : 0; // the depth of the first row
    this.from = 0;
    this.to = 1;
    this.chosen = 0; // by keyboard
    this.hovered = 0;
    this.listen();
  }

  // `sums`: {tree, ticks: {self, total}, cpu: {…}}; which of both: `measure`. Root's `top`: the first depth.
  show(sums, measure) {
    this.sums = sums;
    this.tree = sums.tree;
    this.total = sums[measure].total;
    this.order = new Array(this.tree.count);
    if (this.chosen >= this.tree.count) this.chosen = 0;
    this.hovered = 0;
    this.deepest = 0;
    const { depth, count } = this.tree, { total } = this;
    for (let i = 1; i < count; i++) if (depth[i] > this.deepest && total[i] > 0) this.deepest = depth[i];
    this.layout();
    this.surface.ask();
  }

  layout() {
    const height = (this.deepest + 1 - this.base) * ROW + 4;
    this.surface.extent(0, height);
    this.tall = Math.max(height, this.surface.height);
    if (this.upwards && !this.scrolledByHand) this.surface.host.scrollTop = this.tall;
  }

  point(upwards) {
    if (this.upwards === upwards) return;
    this.upwards = upwards;
    this.scrolledByHand = false;
    this.surface.host.scrollTop = upwards ? this.tall : 0;
    this.surface.ask();
  }

  // Of a node, the heaviest first.
  children(node) {
    let list = this.order[node];
    if (list) return list;
    list = [];
    const { first, next } = childrenOf(this.tree);
    for (let i = first[node]; i; i = next[i]) if (this.total[i] > 0) list.push(i);
    const by = this.total, { fn } = this.tree;
    if (this.options.byName?.()) {
      const text = this.options.textOf;
      list.sort((a, b) => (text(fn[a]) < text(fn[b]) ? -1 : 1));
    } else {
      list.sort((a, b) => by[b] - by[a] || fn[a] - fn[b]);
    }
    return (this.order[node] = list);
  }

  // Where a node is: [from, to] of the whole.
  place(node) {
    const path = [];
    for (let at = node; at !== ROOT; at = this.tree.parent[at]) path.push(at);
    let x = 0;
    while (path.length) {
      const at = path.pop();
      for (const child of this.children(this.tree.parent[at])) {
        if (child === at) break;
        x += this.total[child];
      }
    }
    const whole = this.total[ROOT] || 1;
    return [x / whole, (x + this.total[node]) / whole];
  }

  y(depth, top) {
    const row = depth - this.base;
    return this.upwards ? this.tall - (row + 1) * ROW - top : row * ROW - top;
  }

  draw(c, width, height, top) {
    if (!this.tree) return;
    const whole = this.total[ROOT];
    const each = characterWidth(c), scale = width / ((this.to - this.from) * whole), left = this.from * whole * scale;
    c.textBaseline = 'middle';
    if (!whole) return;
    const stack = [[ROOT, 0]];
    while (stack.length) {
      const [node, from] = stack.pop();
      const depth = this.tree.depth[node];
      const y = this.y(depth, top), x = from * scale - left, w = this.total[node] * scale;
      if (depth >= this.base && y > -ROW && y < height) this.box(c, node, x, y, w, width, each);
      if (this.upwards ? y < 0 : y > height) continue;
      let at = from;
      for (const child of this.children(node)) {
        const size = this.total[child], cx = at * scale - left, cw = size * scale;
        at += size;
        if (cx + cw < 0) continue;
        if (cx > width) break;
        if (cw < TINY && !this.options.byName?.()) {
          const rest = Math.min(width, (from + this.total[node]) * scale - left) - Math.max(cx, 0);
          c.fillStyle = themeColour('crumbs');
          if (rest >= TINY) c.fillRect(Math.max(cx, 0), this.y(depth + 1, top), Math.min(rest, 2), ROW - 1);
          break;
        }
        if (cw >= TINY) stack.push([child, at - size]);
      }
    }
    this.outline(c, this.hovered, 'hover');
    this.outline(c, this.chosen, 'focus');
  }

  // Of all rows, without what can be scrolled to.
  wholeSize() {
    return { width: this.surface.width, height: (this.deepest + 1 - this.base) * ROW + 4 };
  }

  drawWhole(context) {
    const { width, height } = this.wholeSize(), { tall, chosen, hovered } = this;
    Object.assign(this, { tall: height, chosen: 0, hovered: 0 });
    this.draw(context, width, height, 0);
    Object.assign(this, { tall, chosen, hovered });
  }

  box(c, node, x, y, w, width, each) {
    const from = Math.max(x, 0), to = Math.min(x + w, width);
    if (to <= from) return;
    const style = this.options.styleOf(node, this);
    drawBox(c, from, y, to - from, style.text, style, each);
  }

  // Where a node is in the canvas: {x, y, w}, clipped to what can be seen; or null.
  boxOf(node) {
    const [from, to] = this.place(node), scale = this.surface.width / (this.to - this.from);
    const x = Math.max(0, (from - this.from) * scale), right = Math.min(this.surface.width, (to - this.from) * scale);
    const y = this.y(this.tree.depth[node], this.surface.host.scrollTop);
    return right - x >= TINY && y > -ROW && y < this.surface.height ? { x, y, w: right - x } : null;
  }

  outline(c, node, colour) {
    const box = node ? this.boxOf(node) : null;
    if (!box) return;
    c.strokeStyle = themeColour(colour);
    c.lineWidth = 2;
    c.strokeRect(box.x + 1, box.y + 0.5, Math.max(box.w - 3, 1), ROW - 2);
  }

  // The node under the pointer, or -1.
  at(event) {
    const [x, y] = this.surface.where(event), whole = this.total?.[ROOT];
    if (!whole) return -1;
    const at = (this.from + (x / this.surface.width) * (this.to - this.from)) * whole;
    const offset = y + this.surface.host.scrollTop;
    const depth = Math.floor((this.upwards ? this.tall - offset : offset) / ROW) + this.base;
    let node = ROOT, from = 0;
    while (this.tree.depth[node] < depth) {
      let next = -1;
      for (const child of this.children(node)) {
        if (at < from + this.total[child]) {
          next = child;
          break;
        }
        from += this.total[child];
      }
      if (next < 0) return -1;
      node = next;
    }
    return node === ROOT && this.base ? -1 : node;
  }

  // To a part of the whole, smoothly, or with the next picture.
  zoomTo(from, to, done) {
    const size = Math.min(1, Math.max(1e-9, to - from));
    from = Math.min(Math.max(0, from), 1 - size);
    to = from + size;
    const [from0, to0] = [this.from, this.to], begin = performance.now();
    cancelAnimationFrame(this.moving);
    this.target = [from, to];
    if (calm.matches || done === 'now') {
      Object.assign(this, { from, to });
      this.surface.ask();
      return;
    }
    const step = (now) => {
      const t = Math.min(1, Math.max(0, (now - begin) / ZOOM_MS)), e = t * (2 - t);
      this.from = from0 + (from - from0) * e;
      this.to = to0 + (to - to0) * e;
      this.surface.paint();
      if (t < 1) this.moving = requestAnimationFrame(step);
    };
    step(begin);
  }

  scaleBy(factor, centre) {
    const [from, to] = this.target ?? [this.from, this.to];
    const middle = from + (to - from) * centre, size = Math.min(1, (to - from) * factor);
    this.zoomTo(middle - size * centre, middle + size * (1 - centre), 'now');
    this.options.moved?.(this);
  }

  pan(by) {
    const size = this.to - this.from;
    this.zoomTo(this.from + by * size, this.to + by * size, 'now');
    this.options.moved?.(this);
  }

  // Scroll so that a node can be seen.
  reveal(node) {
    const host = this.surface.host, y = this.y(this.tree.depth[node], 0);
    if (y < host.scrollTop || y + ROW > host.scrollTop + this.surface.height) {
      host.scrollTop = y - this.surface.height / 2;
    }
    this.surface.ask();
  }

  listen() {
    const { canvas, host } = this.surface;
    const hover = (node, event) => {
      if (node !== this.hovered) {
        this.hovered = Math.max(node, 0);
        this.surface.ask();
      }
      this.options.hover(node, event);
    };
    canvas.addEventListener('pointermove', (event) => {
      if (!event.buttons) hover(this.at(event), event);
    });
    canvas.addEventListener('pointerleave', (event) => hover(-1, event));
    canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    offerMenu(canvas, (event) => this.menu(this.at(event), event.clientX, event.clientY), () => {
      const box = this.chosen ? this.boxOf(this.chosen) : null, at = canvas.getBoundingClientRect();
      return !!box && this.menu(this.chosen, at.left + box.x + 12, at.top + box.y + ROW);
    });
    dragging(canvas, {
      started: () => ({ from: this.from, to: this.to, top: host.scrollTop }),
      moved: (event, old, down) => {
        const by = ((down.clientX - event.clientX) / this.surface.width) * (old.to - old.from);
        this.zoomTo(old.from + by, old.to + by, 'now');
        host.scrollTop = old.top + down.clientY - event.clientY;
        this.scrolledByHand = true;
        this.options.hover(-1, event);
      },
      ended: () => this.options.moved?.(this),
      clicked: (event) => {
        const node = this.at(event);
        this.chosen = 0;
        if (node >= ROOT) this.options.open(node, event);
      },
    });
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('blur', () => this.surface.ask());
    host.addEventListener('wheel', () => (this.scrolledByHand = true), { passive: true });
  }

  menu(node, x, y) {
    if (node <= ROOT) return false;
    this.options.menu(node, x, y);
    return true;
  }

  wheel(event) {
    const fits = this.tall <= this.surface.height; // nothing to scroll
    if (event.ctrlKey || event.metaKey || event.altKey || (fits && event.deltaY && !event.shiftKey)) {
      event.preventDefault();
      const [x] = this.surface.where(event);
      this.scaleBy(1.0018 ** event.deltaY, x / this.surface.width);
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / this.surface.width);
    }
  }

  // Among boxes by the arrows; what the screen reader says is up to the page.
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.tree) return;
    const node = this.chosen, parent = this.tree.parent[node];
    const siblings = node === ROOT ? [ROOT] : this.children(parent);
    const deeper = this.upwards ? 'ArrowUp' : 'ArrowDown', back = this.upwards ? 'ArrowDown' : 'ArrowUp';
    let next = -1;
    if (event.key === deeper) next = this.children(node)[0] ?? node;
    else if (event.key === back) next = parent;
    else if (event.key === 'ArrowRight') next = siblings[Math.min(siblings.length - 1, siblings.indexOf(node) + 1)];
    else if (event.key === 'ArrowLeft') next = siblings[Math.max(0, siblings.indexOf(node) - 1)];
    else if (event.key === 'Enter') this.options.open(node, event);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (next < 0) return;
    this.chosen = next;
    this.reveal(next);
    this.options.hover(next, null);
  }
}
