// SPDX-License-Identifier: BSD-2-Clause
//
// A list of rows of one height, of which only those that can be seen are in the document.

import { make } from './text.js';

export const ROW_HEIGHT = 18; // px; as web/style.css has it
const MORE = 6; // rows above and below what can be seen

export class RowList {
  // `heads`: [class, text, title] of the columns; `draw(i)`: the row's element; `drawn(from, to)`: after these are there.
  constructor(label, heads, draw, drawn) {
    this.draw = draw;
    this.drawn = drawn;
    this.count = 0;
    this.pending = 0;
    this.window = make('div', { class: 'row-window' });
    this.spacer = make('div', { class: 'row-spacer' }, this.window);
    this.head = make('div', { class: 'row head', 'aria-hidden': 'true' }, ...heads.map(([style, text, title]) => make('span', { class: style, title: title || null }, text)));
    this.element = make('div', { class: 'row-list', role: 'list', 'aria-label': label, tabindex: '0' }, this.head, this.spacer);
    this.element.addEventListener('scroll', () => this.ask(), { passive: true });
    this.height = 0;
    new ResizeObserver(([{ contentRect }]) => {
      this.height = contentRect.height;
      this.ask();
    }).observe(this.element);
  }

  titles(texts, from) {
    texts.forEach((text, i) => (this.head.children[from + i].textContent = text));
  }

  // `middle`: a row that is to be in the middle; -1: it stays where it is.
  show(count, middle) {
    this.count = count;
    this.spacer.style.height = `${count * ROW_HEIGHT}px`;
    if (middle >= 0) this.reveal(middle, true);
    else this.render();
  }

  ask() {
    this.pending ||= requestAnimationFrame(() => this.render());
  }

  render() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    const { scrollTop } = this.element, height = (this.height ||= this.element.clientHeight);
    const from = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - MORE), to = Math.min(this.count, Math.ceil((scrollTop + height) / ROW_HEIGHT) + MORE);
    const rows = [];
    for (let i = from; i < to; i++) {
      const row = this.draw(i);
      row.dataset.row = i;
      row.setAttribute('role', 'listitem');
      row.setAttribute('aria-posinset', String(i + 1));
      row.setAttribute('aria-setsize', String(this.count));
      rows.push(row);
    }
    this.window.style.transform = `translateY(${from * ROW_HEIGHT}px)`;
    this.window.replaceChildren(...rows);
    this.drawn?.(from, to);
  }

  // Scrolls so that a row is in the middle, if it cannot be seen.
  reveal(i, always) {
    const { element } = this, room = (this.height ||= element.clientHeight) - ROW_HEIGHT, top = i * ROW_HEIGHT - element.scrollTop;
    if (always || top < 0 || top > room - ROW_HEIGHT) element.scrollTop = Math.max(0, i * ROW_HEIGHT - room / 2);
    this.render();
  }
}
