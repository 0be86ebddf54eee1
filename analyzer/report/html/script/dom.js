// SPDX-License-Identifier: MIT
// Elements of the page. Text is always inserted as text, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

// Whole names of files, of which the texts show the end.
const FILES = [
  ...new Set([...((report.lines || {}).lines || []), ...((report.stalls || {}).tree || [])].map(
      (line) => line.file))
].filter((file) => file && file.startsWith('/'));

// A text, in which places of files that are known are links to them in VS Code.
function linked(text) {
  const nodes = [];
  let from = 0;
  if (FILES.length)
    for (const place of text.matchAll(/([^\s(),;]+):(\d+)/g)) {
      const file = FILES.find((whole) => whole === place[1] || whole.endsWith('/' + place[1]));
      if (!file) continue;
      const link = document.createElement('a');
      const path = file.split('/').map(encodeURIComponent).join('/');
      link.href = `vscode://file${path}:${place[2]}`;
      link.textContent = place[0];
      nodes.push(text.slice(from, place.index), link);
      from = place.index + place[0].length;
    }
  return [...nodes, text.slice(from)];
}

function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2), value);
    else if (name === 'css')
      for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else
      element.setAttribute(name, value === true ? '' : String(value));
  }
  // What is pressed itself has no links in it.
  const acts = ['a', 'button', 'option', 'text', 'title'].includes(element.localName) ||
      (attributes && attributes.role);
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined && child !== false)
      element.append(...(child instanceof Node ? [child] :
                             acts              ? [clean(child)] :
                                                 linked(clean(child))));
  return element;
}

const el = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
    put(document.createElementNS(SVG, tag), attributes, children);

const stillness = window.matchMedia('(prefers-reduced-motion: reduce)');

function goTo(id) {
  const target = document.getElementById(id);
  if (!target) return;
  target.scrollIntoView({behavior: stillness.matches ? 'auto' : 'smooth', block: 'start'});
  target.focus({preventScroll: true});
}

// A link to a place on the page; what is done before it goes there.
function linkTo(id, children, before) {
  const go = (event) => {
    event.preventDefault();
    if (before) before();
    goTo(id);
  };
  return el('a', {href: '#' + id, onclick: go}, ...children);
}

// The tip at the pointer: lines of text, or [label, value] pairs.
const tip = document.getElementById('tip');

function showTip(event, lines) {
  tip.replaceChildren(...lines.filter(Boolean).map(
      (line) =>
          (Array.isArray(line) ? el('div', {class: 'pair'}, el('span', {}, cutTo(line[0], 60)),
                                    el('b', {}, cutTo(line[1], 80))) :
                                 el('div', {}, cutTo(line, 160)))));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  let x = event.clientX + 14, y = event.clientY + 16;
  if (x + box.width > window.innerWidth - 8) x = Math.max(8, event.clientX - box.width - 12);
  if (y + box.height > window.innerHeight - 8) y = Math.max(8, event.clientY - box.height - 12);
  tip.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
}

function hideTip() { tip.hidden = true; }

function withTip(element, lines) {
  element.addEventListener('pointermove', (event) => showTip(event, lines()));
  element.addEventListener('pointerleave', hideTip);
  return element;
}

// A colour of style.css, for drawing on a canvas.
let colours = {};
function colour(name) {
  if (!(name in colours))
    colours[name] = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  return colours[name];
}

// The colour of text on a shade; the same as in style.css.
const WORDS_ON = {
  transfer: 'onlight',
  comm: 'onlight',
  copy: 'onlight',
  pipeline: 'onlight',
  input: 'onlight',
  idle: 'ink',
  free: 'ink'
};
const wordsOn = (shade) => WORDS_ON[shade] || 'onfill';

// Pictures to draw again when the size or the theme changes, or the page is printed.
const redraws = new Set();
let redrawPlanned = false;
function redrawAll() {
  if (redrawPlanned) return;
  redrawPlanned = true;
  requestAnimationFrame(() => {
    redrawPlanned = false;
    colours = {};
    for (const redraw of redraws) redraw();
  });
}

// A canvas as wide as its parent. Calls `draw(context, width, height)` when the picture must be
// drawn, for the first time when it comes near the window. redraw() requests this.
function canvasOf(parent, height, draw, attributes) {
  const canvas = el('canvas', {tabindex: 0, ...attributes});
  parent.append(canvas);
  const context = canvas.getContext('2d');
  let planned = false, seen = false;
  function now() {
    planned = false;
    const width = Math.max(40, parent.clientWidth),
          tall = typeof height === 'function' ? height() : height;
    const scale = Math.min(3, window.devicePixelRatio || 1);
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(tall * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(tall * scale);
      canvas.style.setProperty('width', width + 'px');
      canvas.style.setProperty('height', tall + 'px');
    }
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, tall);
    context.font = '11px ' + colour('sans');
    draw(context, width, tall);
  }
  function ask() {
    if (planned || !seen) return;
    planned = true;
    requestAnimationFrame(now);
  }
  canvas.style.setProperty('height', (typeof height === 'function' ? height() : height) + 'px');
  const watcher = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    watcher.disconnect();
    seen = true;
    now();
  }, {rootMargin: '400px'});
  watcher.observe(canvas);
  redraws.add(() => {
    if (seen) now();
  });
  window.addEventListener('beforeprint', () => {
    seen = true;
    now();
  });
  return {canvas, redraw: ask};
}

// Paper is white, so pictures are printed in the light theme.
let themeOnScreen = null;
function drawFor(theme) {
  const root = document.documentElement;
  themeOnScreen = root.dataset.theme || null;
  if (theme)
    root.dataset.theme = theme;
  else
    delete root.dataset.theme;
  colours = {};
  for (const redraw of redraws) redraw();
}
window.addEventListener('beforeprint', () => drawFor('light'));
window.addEventListener('afterprint', () => drawFor(themeOnScreen));

window.addEventListener('resize', redrawAll);
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redrawAll);

// A note that readers must not miss; and why something is not known.
const note = (...text) => el('p', {class: 'note'}, ...text);
const unknownBecause = (reason) => el(
    'p', {class: 'unknown'}, el('span', {class: 'badge unknown'}, '\u25cb '), 'unknown: ', reason);

// The facts of a section in the words of the text report: {label, text, tone, share}. A label
// begins a line; without one a fact goes on in it.
function factLines(facts) {
  const list = el('dl', {class: 'lines'});
  for (const fact of facts) {
    if (fact.label) list.append(el('dt', {}, fact.label), el('dd'));
    put(list.lastChild, {}, [
      fact.label === '' ? el('br') :
          fact.label    ? null :
                          ' \u00b7 ',
      isKnown(fact.share) ?
          el('span', {class: 'meter', 'aria-hidden': 'true'},
             el('i', {css: {width: (100 * Math.min(1, fact.share)).toFixed(1) + '%'}})) :
          null,
      el(fact.tone === 'strong' ? 'b' : 'span', {class: fact.tone}, fact.text)
    ]);
  }
  return facts.length ? list : null;
}

// A row of facts, each "label: value".
function facts(list) {
  return el('dl', {class: 'facts'},
            list.filter((fact) => fact && isKnown(fact[1]))
                .map(([label, value, more]) =>
                         el('div', {}, el('dt', {}, label),
                            el('dd', {}, value, more ? el('small', {}, ' ', more) : null))));
}
