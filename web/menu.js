// SPDX-License-Identifier: BSD-2-Clause
//
// Menus of boxes, rows and threads: by the right button, by a long touch, by the keys ContextMenu and Shift + F10.

import { make } from './text.js';

const HOLD_MS = 500, HOLD_PX = 8, AGAIN_MS = 400;

let shownMenu = null; // {element, back: what had the focus, since}

export function closeMenu() {
  if (!shownMenu) return;
  const { element, back } = shownMenu, had = element.contains(document.activeElement);
  shownMenu = null;
  element.remove();
  if (had) back?.focus({ preventScroll: true });
}

function menuKey(event) {
  const items = [...event.currentTarget.querySelectorAll('button')], at = items.indexOf(document.activeElement);
  const to = { ArrowDown: (at + 1) % items.length, ArrowUp: (at + items.length - 1) % items.length, Home: 0, End: items.length - 1 }[event.key];
  event.stopPropagation();
  if (to !== undefined) items[to].focus();
  else if (event.key === 'Tab') closeMenu();
  else return;
  event.preventDefault();
}

// `items`: [text, action] of each, null for a line between two.
export function openMenu(x, y, title, items) {
  closeMenu();
  const choose = (action) => () => {
    closeMenu();
    action();
  };
  const element = make('div', { id: 'menu', role: 'menu', 'aria-label': title, onkeydown: menuKey, oncontextmenu: (event) => event.preventDefault() },
    make('div', { class: 'title' }, make('bdi', null, title.slice(0, 200))),
    ...items.map((item) => (item ? make('button', { type: 'button', role: 'menuitem', tabindex: '-1', onclick: choose(item[1]) }, make('bdi', null, item[0].slice(0, 120))) : make('hr'))));
  shownMenu = { element, back: document.activeElement, since: performance.now() };
  document.body.append(element);
  const { width, height } = element.getBoundingClientRect();
  element.style.left = `${Math.max(4, Math.min(x, innerWidth - width - 4))}px`;
  element.style.top = `${Math.max(4, Math.min(y, innerHeight - height - 4))}px`;
  element.querySelector('button')?.focus();
}

// A touch that stays where it is for long enough is as the right button.
function watchTouch(element, show) {
  const swallow = (event) => {
    event.preventDefault();
    event.stopPropagation();
  };
  element.addEventListener('pointerdown', (down) => {
    element.removeEventListener('click', swallow, true);
    if (down.pointerType !== 'touch' || !down.isPrimary) return;
    const stop = () => clearTimeout(held);
    const held = setTimeout(() => {
      if (!show(down)) return;
      element.dispatchEvent(new PointerEvent('pointercancel', { pointerId: down.pointerId })); // it is no drag and no click
      element.addEventListener('click', swallow, true);
    }, HOLD_MS);
    const move = (event) => Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY) > HOLD_PX && stop();
    element.addEventListener('pointermove', move);
    for (const type of ['pointerup', 'pointercancel']) {
      element.addEventListener(type, () => {
        stop();
        element.removeEventListener('pointermove', move);
      }, { once: true });
    }
  });
}

// `show(event)` opens a menu for what is under the pointer, `showChosen()` for what the keyboard has chosen; both say
// whether there was something.
export function offerMenu(element, show, showChosen) {
  element.addEventListener('contextmenu', (event) => {
    const again = shownMenu && performance.now() - shownMenu.since < AGAIN_MS; // of the same key or touch
    if (again || show(event)) event.preventDefault();
  });
  element.addEventListener('keydown', (event) => {
    if (event.key !== 'ContextMenu' && !(event.key === 'F10' && event.shiftKey)) return;
    if (!showChosen(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  watchTouch(element, show);
}

// Of the rows of a table: `open(row, x, y)` says whether there was something.
export function offerRowMenu(body, open) {
  const show = (event) => {
    const row = event.target.closest('tr'), at = row?.getBoundingClientRect();
    return !!row && open(row, event.clientX || at.left + Math.min(200, at.width / 2), event.clientY || at.bottom);
  };
  offerMenu(body, show, show);
}

// Escape, a click elsewhere, another size of the window: the menu goes. After a touch, what is touched has the focus.
export function watchMenus() {
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !shownMenu) return;
    closeMenu();
    event.preventDefault();
    event.stopPropagation();
  }, { capture: true });
  document.addEventListener('pointerdown', (event) => shownMenu && !shownMenu.element.contains(event.target) && closeMenu(), { capture: true });
  addEventListener('resize', closeMenu);
  addEventListener('blur', closeMenu);
}
