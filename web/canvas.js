// SPDX-License-Identifier: BSD-2-Clause
//
// A canvas that shows a part of something taller or wider than itself: it sticks to the corner of a box that
// scrolls, while a spacer has the whole size. Drawings are requested, and made once per picture.

import { make } from './text.js';

export const FONT = '12px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';
export const SMALL_FONT = '11px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

let character = 0;

// Width of a character of FONT.
export function characterWidth(context) {
  if (!character) {
    context.font = FONT;
    character = context.measureText('0'.repeat(50)).width / 50;
  }
  return character;
}

// The part of a text that has room, in FONT.
export function fitText(text, width, each) {
  const room = Math.floor(width / each);
  if (text.length <= room) return text;
  return room < 3 ? '' : `${text.slice(0, room - 1)}…`;
}

const themed = new Map();

// A custom property of the style sheet.
export function themeColour(name) {
  let value = themed.get(name);
  if (!value) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    themed.set(name, value);
  }
  return value;
}

export function forgetTheme() {
  themed.clear();
}

export class Surface {
  // `draw(context, width, height, left, top)`: left and top are how far it is scrolled.
  constructor(host, label, draw) {
    this.host = host;
    this.draw = draw;
    this.canvas = make('canvas', { class: 'surface', role: 'img', 'aria-label': label, tabindex: '0' });
    this.spacer = make('div', { class: 'spacer' });
    host.append(this.canvas, this.spacer);
    host.classList.add('scrolled');
    this.context = this.canvas.getContext('2d', { alpha: false });
    this.pending = 0;
    this.width = this.height = 0;
    host.addEventListener('scroll', () => this.ask(), { passive: true });
    new ResizeObserver(() => this.resize()).observe(host);
  }

  resize() {
    const width = this.host.clientWidth, height = this.host.clientHeight, ratio = devicePixelRatio || 1;
    if (width === this.width && height === this.height && ratio === this.ratio) return;
    this.width = width;
    this.height = height;
    this.ratio = ratio;
    this.canvas.width = Math.max(1, Math.round(width * ratio));
    this.canvas.height = Math.max(1, Math.round(height * ratio));
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.onresize?.();
    if (width && height) this.paint();
  }

  // The size of all there is; what is larger than the box can be scrolled to.
  extent(width, height) {
    this.spacer.style.width = `${width}px`;
    this.spacer.style.height = `${Math.max(0, height - this.height)}px`;
  }

  ask() {
    this.pending ||= requestAnimationFrame(() => this.paint());
  }

  paint() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    if (!this.width || !this.height) return;
    const c = this.context;
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = themeColour('ground');
    c.fillRect(0, 0, this.width, this.height);
    this.draw(c, this.width, this.height, this.host.scrollLeft, this.host.scrollTop);
  }

  // Of a mouse event, in the canvas.
  where(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
}

// Calls of `moved` while the button is down, then of `ended`; what is less than 4 pixels is a click.
export function dragging(element, { started, moved, ended, clicked }) {
  element.addEventListener('pointerdown', (down) => {
    if (down.button !== 0) return;
    const token = started ? started(down) : {};
    let far = false;
    element.setPointerCapture(down.pointerId);
    const move = (event) => {
      far ||= Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) >= 4;
      if (far) moved?.(event, token, down);
    };
    const up = (event) => {
      element.removeEventListener('pointermove', move);
      element.removeEventListener('pointerup', up);
      element.removeEventListener('pointercancel', up);
      if (event.type === 'pointercancel') return;
      if (far) ended?.(event, token, down);
      else clicked?.(event, token);
    };
    element.addEventListener('pointermove', move);
    element.addEventListener('pointerup', up);
    element.addEventListener('pointercancel', up);
  });
}
