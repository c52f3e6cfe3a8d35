// SPDX-License-Identifier: BSD-2-Clause
//
// What is around the views: the controls, the dialogs, the splitter below the timeline.

import { change, filterBy, showMode } from './change.js';
import { differenceDetails } from './difference.js';
import { fillDetails } from './facts.js';
import { parseClauses } from './filter.js';
import { closer, fillHelp } from './help.js';
import { sayBriefly, tip } from './hover.js';
import { onKey } from './keys.js';
import { watchMenus } from './menu.js';
import { saveMenu } from './share.js';
import { decoded, groupings, colourings, measures, modes, profile, recorded, state, views } from './shown.js';
import { fromAddress } from './state.js';
import { byId, make } from './text.js';
import { switchTheme } from './theme.js';
import { resizeTimeline } from './views.js';

export function fill(key, choices) {
  byId(`choose-${key}`).replaceChildren(...choices.map(([value, text]) => make('option', { value }, text)));
}

function select(label, key, choices, choose = (value) => change({ [key]: value })) {
  const element = make('select', { 'aria-label': label, title: label, id: `choose-${key}`, onchange: () => choose(element.value) },
    ...choices.map(([value, text]) => make('option', { value }, text)));
  return element;
}

function toggle(key, text, title) {
  return make('button', { type: 'button', id: `toggle-${key}`, title, 'aria-pressed': 'false', onclick: () => change({ [key]: !state[key] }) }, text);
}

// The words of a command line, or an expression to focus on.
function typeClause(event) {
  const field = event.target, text = field.value.trim();
  if (event.key !== 'Enter' || !text) return;
  let more = [['focus', text]], isGood = true;
  try {
    if (/^['@]|^--/.test(text)) more = parseClauses(text).map((clause) => [clause.kind.name, clause.text]);
  } catch (error) {
    sayBriefly(error.message);
    isGood = false;
  }
  isGood &&= filterBy(...more);
  field.classList.toggle('bad', !isGood);
  if (isGood) field.value = '';
}

function watchSplitter() {
  const bar = byId('splitter');
  bar.addEventListener('pointerdown', (down) => {
    const from = byId('timeline').offsetHeight;
    bar.setPointerCapture(down.pointerId);
    const move = (event) => resizeTimeline(from + event.clientY - down.clientY);
    bar.addEventListener('pointermove', move);
    bar.addEventListener('pointerup', () => bar.removeEventListener('pointermove', move), { once: true });
  });
  bar.addEventListener('keydown', (event) => {
    const by = { ArrowUp: -26, ArrowDown: 26 }[event.key];
    if (by) resizeTimeline(byId('timeline').offsetHeight + by);
  });
}

export function makeFrame() {
  for (const [view, text, title] of views) {
    byId('tabs').append(make('button', { type: 'button', role: 'tab', id: `tab-${view}`, title, 'aria-controls': `view-${view}`, onclick: () => change({ view }) }, text));
  }
  byId('controls').append(
    ...(recorded.waits ? [toggle('parked', 'Parked', 'Waits of event loops and of idle threads of pools, too (p)'), select('What is shown', 'mode', modes, showMode)] : []),
    select('Grouped by', 'group', groupings),
    select('Width stands for', 'measure', measures),
    select('Colours', 'colours', colourings),
    select('Order of boxes', 'sort', [['weight', 'Heavy first'], ['name', 'A to Z']]),
    ...(decoded.words.difference ? [] : [make('input', { id: 'clause', type: 'text', placeholder: 'Filter', 'aria-label': 'Filter', spellcheck: 'false', autocomplete: 'off', onkeydown: typeClause,
      title: 'An expression to focus on, or options of sysprof report: --hide=RE --ignore=RE --show-from=RE --collapse=RE --process=NAME --thread=NAME --service=NAME --cpu=0,2-4 … (e)' })]),
    toggle('down', 'Icicle', 'Root on top (i)'), toggle('recursion', 'Recursion', 'A function that calls itself is one frame (r)'),
    make('button', { type: 'button', id: 'save', title: 'Save what is shown: folded stacks (f), SVG, PNG', 'aria-haspopup': 'menu', onclick: saveMenu }, 'Save'));
  byId('query').addEventListener('input', (event) => change({ query: event.target.value }));
  byId('regex').addEventListener('click', () => change({ regex: !state.regex }));
  byId('theme').addEventListener('click', switchTheme);
  byId('help').addEventListener('click', () => open(byId('keys')));
  addEventListener('keydown', onKey);
  watchMenus();
  addEventListener('hashchange', (event) => {
    const news = fromAddress(event.newURL);
    if (news) change(news);
  });
  document.addEventListener('scroll', () => tip(null), { capture: true, passive: true });
  watchSplitter();
  fillHelp(byId('keys'));
}

export function open(dialog) {
  tip(null);
  if (!dialog.open) dialog.showModal();
}

export function showDetails() {
  const host = make('div');
  if (profile.difference) host.replaceChildren(...differenceDetails(profile.difference));
  else fillDetails(recorded, host);
  byId('details').replaceChildren(closer(), make('h2', null, profile.difference ? 'About this comparison' : 'About this recording'), host);
  open(byId('details'));
}
