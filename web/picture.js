// SPDX-License-Identifier: BSD-2-Clause
//
// What a view shows as a file: all rows of what is zoomed to, on a canvas of its own (PNG), or on a context that writes down
// what is drawn on it (SVG).

import { SMALL_FONT, themeColour } from './canvas.js';

const PNG_RATIO = 2;
const PNG_MOST = 8192, PNG_WIDEST = 16384; // px; browsers have limits on canvases
const TITLE = 24;

const xmlText = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const xmlNumber = (x) => Number(x.toFixed(2));

// As much of a canvas' context as the views need.
export class SvgContext {
  constructor(width, height) {
    this.size = [width, height];
    this.parts = [];
    this.down = 0;
    Object.assign(this, { fillStyle: '#000', strokeStyle: '#000', font: '', globalAlpha: 1, lineWidth: 1, textBaseline: '', textAlign: 'left' });
  }

  translate(x, y) {
    this.down += y;
  }

  fillRect(x, y, width, height) {
    const alpha = this.globalAlpha < 1 ? ` opacity="${xmlNumber(this.globalAlpha)}"` : '';
    this.parts.push(`<rect x="${xmlNumber(x)}" y="${xmlNumber(y + this.down)}" width="${xmlNumber(width)}" height="${xmlNumber(height)}" fill="${xmlText(this.fillStyle)}"${alpha}/>`);
  }

  fillText(text, x, y) {
    const alpha = this.globalAlpha < 1 ? ` opacity="${xmlNumber(this.globalAlpha)}"` : '';
    const anchor = this.textAlign === 'right' ? ' text-anchor="end"' : '';
    this.parts.push(`<text x="${xmlNumber(x)}" y="${xmlNumber(y + this.down)}"${anchor} style="font: ${xmlText(this.font)}" fill="${xmlText(this.fillStyle)}" xml:space="preserve"${alpha}>${xmlText(text)}<${'/'}text>`);
  }

  finish() {
    const [width, height] = this.size;
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" dominant-baseline="central">\n${this.parts.join('\n')}\n<${'/'}svg>\n`;
  }
}

// One below the other: {picture, title}, where a picture has wholeSize() and drawWhole(context).
class Pile {
  constructor(parts) {
    this.parts = parts.map(({ picture, title }) => ({ picture, title, head: title ? TITLE : 0, ...picture.wholeSize() }));
    this.width = Math.max(...this.parts.map(({ width }) => width));
    this.height = this.parts.reduce((sum, { head, height }) => sum + head + height, 0);
    this.upwards = this.parts[0].picture.upwards === true;
  }

  draw(context) {
    context.fillStyle = themeColour('ground');
    context.fillRect(0, 0, this.width, this.height);
    for (const { picture, title, head, height } of this.parts) {
      context.textBaseline = 'middle';
      context.font = SMALL_FONT;
      context.fillStyle = themeColour('faint');
      if (title) context.fillText(title, 4, head / 2);
      context.translate(0, head);
      picture.drawWhole(context);
      context.translate(0, height);
    }
  }
}

export function svgOf(parts) {
  const pile = new Pile(parts), context = new SvgContext(pile.width, pile.height);
  pile.draw(context);
  return new Blob([context.finish()], { type: 'image/svg+xml' });
}

// What is too tall is cut off where the leaves are.
export function pngOf(parts) {
  const pile = new Pile(parts), { width, height } = pile, tall = Math.min(height, PNG_MOST), ratio = Math.min(PNG_RATIO, PNG_WIDEST / width);
  const canvas = new OffscreenCanvas(Math.round(width * ratio), Math.round(tall * ratio)), context = canvas.getContext('2d', { alpha: false });
  context.setTransform(ratio, 0, 0, ratio, 0, pile.upwards ? (tall - height) * ratio : 0);
  pile.draw(context);
  return canvas.convertToBlob({ type: 'image/png' });
}
