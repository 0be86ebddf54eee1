// SPDX-License-Identifier: MIT
// Bars, lines and scatters.

// The parts of time, in the same order and colours everywhere (style.css).
const PARTS = data.parts.map((part) => ({...part, shade: part.key}));

// Bars of the parts that these values are of: {key: value}.
const partsOf = (values) =>
    PARTS.filter((part) => part.key in values).map((part) => ({...part, value: values[part.key]}));

// Shades of things that are not parts of time: their order says nothing.
const PALETTE = ['compute', 'transfer', 'copy', 'input', 'launch', 'wait', 'pipeline', 'accent'];
const paletteShade = (i) => PALETTE[i % PALETTE.length];

// About `wanted` round numbers between `from` and `to`.
function ticks(from, to, wanted) {
  const span = to - from;
  if (!(span > 0)) return [from];
  const rough = span / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  const list = [];
  for (let at = Math.ceil(from / step - 1e-9) * step; at <= to + step * 1e-9; at += step)
    list.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return list;
}

const wholeTicks = (from, to, wanted) => ticks(from, to, wanted).filter(Number.isInteger);

function legend(items) {
  return el('ul', {class: 'legend'},
            items.map((item) => el('li', item.title ? {title: item.title} : {},
                                   el('i', {class: 'swatch ' + item.shade}), item.name,
                                   isKnown(item.value) ? el('b', {}, ' ' + item.value) : null)));
}

// One bar with parts that add up to `total`, and a legend below it.
// parts: [{name, value, shade, say}]
function sumBar(parts, total, say) {
  const known = parts.filter((part) => part.value > 0);
  const bar = el('div', {
    class: 'sumbar',
    role: 'img',
    'aria-label': known.map((part) => `${part.name} ${say(part.value)}`).join(', ')
  });
  for (const part of known) {
    const share = part.value / total;
    bar.append(withTip(el('span', {class: 'fill ' + part.shade, css: {'flex-grow': share}},
                          share > 0.08 ? el('span', {class: 'in'}, part.name) : null),
                       () => [part.name, [say(part.value), percent(share)]]));
  }
  return el('div', {}, bar,
            legend(known.map((part) => ({
                               name: part.name,
                               shade: part.shade,
                               value: `${say(part.value)} (${percent(part.value / total)})`
                             }))));
}

// Bars below each other. rows: [{name, value, say, shade, note}]
function barList(rows, most) {
  return el(
      'div', {class: 'bars'},
      rows.map(
          (row) =>
              el('div', {class: 'barrow'},
                 el('span', {class: 'barname', title: cutTo(row.name, 2000)}, cutTo(row.name, 70)),
                 el('span', {class: 'bartrack'}, el('i', {
                      class: 'fill ' + (row.shade || 'accent'),
                      css: {width: (100 * clamp(row.value / most || 0, 0, 1)).toFixed(2) + '%'}
                    })),
                 el('b', {}, row.say), row.note ? el('small', {}, row.note) : el('small'))));
}

// Powers of ten between `from` and `to`; if they are few, also 2 and 5 times each.
function logTicks(from, to, wanted) {
  const list = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++)
    list.push(...[1, 2, 5].map((digit) => digit * 10 ** power));
  const inside = list.filter((at) => at >= from * 0.999 && at <= to * 1.001);
  const powers = inside.filter((at) => Math.abs(Math.log10(at) % 1) < 1e-9);
  const shown = powers.length > 2 ? powers : inside;
  const every = Math.ceil(shown.length / wanted);
  return shown.filter((_, i) => i % every === 0);
}

// The width of a panel now, so that text in a chart has the same size as other text.
const chartWidth = () => clamp(document.getElementById('panels').clientWidth - 44, 320, 1400);

// A frame with axes in SVG. x and y: {from, to, log, say, name}
function frame(width, height, x, y) {
  const right = 24, top = 10, bottom = 34;
  const scale = (axis, low, high) => {
    const f = axis.log ? Math.log10 : (v) => v;
    const from = f(axis.from), span = f(axis.to) - from || 1;
    return (value) => low + ((f(value) - from) / span) * (high - low);
  };
  // Of memory, round are the numbers of its unit.
  const unitOf = (axis) =>
      (axis.say === memory ? 1024 ** Math.floor(Math.log2(Math.max(1, axis.to)) / 10) : 1);
  const tickList = (axis, wanted) =>
      (axis.log ? logTicks(axis.from, axis.to, wanted) :
                  ticks(axis.from / unitOf(axis), axis.to / unitOf(axis), wanted)
                      .map((at) => at * unitOf(axis)));
  const ticksOfY = tickList(y, 4);
  const left = 12 + 6.4 * Math.max(7, ...ticksOfY.map((at) => y.say(at).length));
  const sx = scale(x, left, width - right), sy = scale(y, height - bottom, top);
  const root = svg('svg', {viewBox: `0 0 ${width} ${height}`, width, class: 'chart', role: 'img'});
  for (const at of ticksOfY) {
    root.append(svg('line', {x1: left, x2: width - right, y1: sy(at), y2: sy(at), class: 'grid'}));
    root.append(svg('text', {x: left - 6, y: sy(at) + 4, class: 'tick end'}, y.say(at)));
  }
  for (const at of tickList(x, 7))
    root.append(svg('text', {x: sx(at), y: height - bottom + 15, class: 'tick middle'}, x.say(at)));
  root.append(
      svg('line',
          {x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: 'axis'}));
  if (x.name)
    root.append(svg('text', {x: width - right, y: height - 4, class: 'tick end'}, x.name));
  return {root, sx, sy, left, right, top, bottom};
}

// Lines over x. lines: [{name, shade, points: [[x, y], ...]}], marks: [{x, y, shape, tip}]
function lineChart(lines, options) {
  const width = chartWidth(), height = options.height || 200;
  const all = lines.flatMap((line) => line.points).filter((p) => isKnown(p[1]));
  if (!all.length) return null;
  const ys = extent(all.map((p) => p[1])), xs = extent(all.map((p) => p[0]));
  const log = options.log && ys[0] > 0;
  const floor = options.zero ? Math.min(0, ys[0]) : ys[0];
  const pad = log ? 0 : (ys[1] - floor) * 0.05 || Math.abs(ys[1]) * 0.1 || 1;
  const box = frame(width, height, {
    from: xs[0],
    to: xs[1] > xs[0] ? xs[1] : xs[0] + 1,
    say: options.sayX || number,
    name: options.nameX
  },
                    {
                      from: log                      ? ys[0] / 1.1 :
                          options.zero && ys[0] >= 0 ? 0 :
                                                       floor - pad,
                      to: log ? ys[1] * 1.1 : ys[1] + pad,
                      log,
                      say: options.sayY || number
                    });
  for (const line of lines) {
    let path = '', pen = false;
    for (const [x, y] of line.points) {
      if (!isKnown(y) || (log && y <= 0)) {
        pen = false;
        continue;
      }
      path += (pen ? 'L' : 'M') + box.sx(x).toFixed(1) + ' ' + box.sy(y).toFixed(1);
      pen = true;
    }
    box.root.append(svg('path', {d: path, class: 'line ' + line.shade}));
  }
  for (const mark of options.marks || []) {
    const shape = isKnown(mark.y) ? svg('path', {
      d: 'M0 -6L6 5L-6 5Z',
      class: 'mark ' + (mark.shade || 'wait'),
      transform: `translate(${box.sx(mark.x).toFixed(1)} ${box.sy(mark.y).toFixed(1)})`
    }) :
                                    svg('line', {
                                      x1: box.sx(mark.x),
                                      x2: box.sx(mark.x),
                                      y1: box.top,
                                      y2: height - box.bottom,
                                      class: 'markline ' + (mark.shade || 'wait')
                                    });
    box.root.append(withTip(shape, () => mark.tip));
  }
  box.root.setAttribute('aria-label', options.label || '');
  const at =
      svg('line', {y1: box.top, y2: height - box.bottom, class: 'cursor', visibility: 'hidden'});
  box.root.append(at);
  box.root.addEventListener('pointermove', (event) => {
    const rect = box.root.getBoundingClientRect();
    const x = xs[0] +
        (((event.clientX - rect.left) / rect.width) * width - box.left) /
            (width - box.left - box.right) * (xs[1] - xs[0]);
    if (x < xs[0] || x > xs[1]) return;
    at.setAttribute('x1', box.sx(x));
    at.setAttribute('x2', box.sx(x));
    at.setAttribute('visibility', 'visible');
    const values = lines.map((line) => {
      let best = null;
      for (const p of line.points)
        if (best === null || Math.abs(p[0] - x) < Math.abs(best[0] - x)) best = p;
      return best;
    });
    showTip(event, [
      (options.sayTip || options.sayX || number)(values[0][0]),
      ...lines.map(
          (line,
           i) => [line.name,
                  values[i] && isKnown(values[i][1]) ? (options.sayY || number)(values[i][1]) :
                                                       UNKNOWN])
    ]);
  });
  box.root.addEventListener('pointerleave', () => {
    at.setAttribute('visibility', 'hidden');
    hideTip();
  });
  return box.root;
}

// points: [{x, y, size, shade, tip}]
function scatter(points, x, y, options = {}) {
  const box = frame(Math.min(900, chartWidth()), options.height || 240, x, y);
  if (options.under) options.under(box);
  for (const point of points)
    box.root.append(withTip(svg('circle', {
                              cx: box.sx(point.x),
                              cy: box.sy(point.y),
                              r: point.size || 4,
                              class: 'dot ' + (point.shade || 'accent')
                            }),
                            () => point.tip));
  box.root.setAttribute('aria-label', options.label || '');
  return box.root;
}

// Fills a rectangle with rectangles whose areas are the values (squarified).
// items: [{value, ...}] -> [{x, y, w, h, item}]
function treemap(items, x, y, w, h) {
  const rest = items.filter((item) => item.value > 0).sort((a, b) => b.value - a.value);
  const placed = [];
  let total = sumOf(rest.map((item) => item.value));
  const worst = (row, sum, side, scale) => {
    const thick = (sum * scale) / side;
    return Math.max(...row.map((item) => {
      const long = (item.value * scale) / thick;
      return Math.max(thick / long, long / thick);
    }));
  };
  while (rest.length && w > 0 && h > 0) {
    const scale = (w * h) / total, side = Math.min(w, h), row = [rest.shift()];
    let sum = row[0].value;
    while (rest.length &&
           worst([...row, rest[0]], sum + rest[0].value, side, scale) <=
               worst(row, sum, side, scale)) {
      sum += rest[0].value;
      row.push(rest.shift());
    }
    const thick = (sum * scale) / side;
    let at = 0;
    for (const item of row) {
      const long = (item.value * scale) / thick;
      placed.push(w >= h ? {x, y: y + at, w: thick, h: long, item} :
                           {x: x + at, y, w: long, h: thick, item});
      at += long;
    }
    if (w >= h) {
      x += thick;
      w -= thick;
    } else {
      y += thick;
      h -= thick;
    }
    total -= sum;
  }
  return placed;
}

// Buttons of which one is pressed.
function choice(label, options, chosen, onchoose) {
  const buttons = options.map(
      ([value, name]) => el('button', {
        type: 'button',
        'aria-pressed': String(value === chosen),
        'data-value': value,
        onclick: () => {
          for (const button of buttons)
            button.setAttribute('aria-pressed', String(button.dataset.value === String(value)));
          onchoose(value);
        }
      },
                            name));
  return el('div', {class: 'choice', role: 'group', 'aria-label': label},
            el('span', {class: 'dim'}, label), buttons);
}
