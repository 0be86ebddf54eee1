// SPDX-License-Identifier: MIT
// A heat map of ranks and steps, and ranks compared with each other.

const MEASURES = {
  wall_ms: {name: 'step time', say: ms},
  compute_ms: {name: 'compute', say: ms},
  late_ms: {name: 'lateness', say: ms},
  exposed_wait_ms: {name: 'exposed wait', say: ms},
  exposed_transfer_ms: {name: 'exposed transfer', say: ms},
  exposed_ms: {name: 'exposed communication', say: ms},
  exposed_copy_ms: {name: 'exposed copies', say: ms},
  idle_ms: {name: 'idle', say: ms},
  input_ms: {name: 'input', say: ms},
  forward_ms: {name: 'forward (host)', say: ms},
  backward_ms: {name: 'backward (host)', say: ms},
  optimizer_ms: {name: 'optimizer (host)', say: ms},
  memory_bytes: {name: 'memory', say: memory},
};

// Cividis: looks the same with all kinds of colour vision, and works in grey.
const HEAT = [
  [0, 32, 77], [0, 57, 111], [57, 72, 107], [87, 92, 109], [112, 113, 115], [138, 135, 121],
  [166, 157, 117], [196, 181, 109], [228, 207, 91], [255, 234, 70]
];

function heatTable() {
  const list = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (HEAT.length - 1), low = Math.min(HEAT.length - 2, Math.floor(at)),
          share = at - low;
    const [r, g, b] =
        HEAT[low].map((value, c) => Math.round(value + (HEAT[low + 1][c] - value) * share));
    list[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return list;
}

const rowName = (row) =>
    (row.ranks > 1 ? `${row.rank}\u2013${row.last_rank} (mean)` : String(row.rank));

// The stretches of steps in which a straggler is late: [[first, last], ...]; none: in all.
function lateStretches(rank) {
  const row = report.distributed.ranks.find((one) => one.rank === rank);
  return row ? row.late_from.map((from, i) => [from, row.late_to[i]]) : [];
}

function namesOfLateStretches(rank) {
  return lateStretches(rank).map((ends) => [...new Set(ends)].join('\u2013')).join(', ');
}

function heatMap() {
  const table = report.series.by_rank, columns = table.step.length;
  const known = Object.keys(MEASURES).filter((key) => table.rows.some((row) => row[key].length));
  if (!known.length || columns < 2) return null;
  const stragglers = new Set(report.distributed.stragglers);
  let measure = known.includes('late_ms') && table.rows.length > 1 ? 'late_ms' :
      known.includes('compute_ms')                                 ? 'compute_ms' :
                                                                     known[0];
  let order = 'rank', rows = table.rows, image = null, bounds = null, picture = null;
  const view = stepView, left = AXIS_LEFT, right = AXIS_RIGHT, bottom = 26, top = 4;
  const scaleText = el('span', {class: 'dim'}),
        ramp = el('canvas', {class: 'ramp', width: 128, height: 10, 'aria-hidden': 'true'});
  const holder = el('div', {class: 'picture'});
  const rowTall = () => clamp(Math.floor(420 / rows.length), 3, 26);
  const tall = () => rows.length * rowTall() + top + bottom;
  const heat = heatTable();
  const columnsPer = table.steps_per_column;
  const firstColumn = view.whole[0] + (report.steps.warmup_excluded || 0);

  // One pixel for each cell; the browser scales the picture.
  function paint() {
    const cells = rows.flatMap((row) => row[measure]);
    const sorted = cells.filter(isKnown).sort((a, b) => a - b);
    bounds = sorted.length ? [sorted[0], sorted[sorted.length - 1]] : [0, 1];
    // One extreme cell must not give all others the same colour: it has the end of the scale.
    const end = sorted.length ? sorted[Math.floor(0.995 * (sorted.length - 1))] : 1;
    const top99 = end > bounds[0] ? end : bounds[1];
    image = document.createElement('canvas');
    image.width = columns;
    image.height = rows.length;
    const context = image.getContext('2d'), pixels = context.createImageData(columns, rows.length);
    const words = new Uint32Array(pixels.data.buffer);
    rows.forEach((row, r) => {
      for (let c = 0; c < columns; c++) {
        const value = row[measure].length ? row[measure][c] : null;
        if (!isKnown(value)) continue;  // not known: stays transparent
        const share = clamp((value - bounds[0]) / (top99 - bounds[0] || 1), 0, 1);
        words[r * columns + c] = heat[Math.round(share * 255)];
      }
    });
    context.putImageData(pixels, 0, 0);
    const say = MEASURES[measure].say;
    scaleText.textContent = `${say(bounds[0])} to ${say(top99)}` +
        (bounds[1] > top99 ? `, at most ${say(bounds[1])}` : '');
  }

  function draw(context, width, height) {
    const span = width - left - right, each = rowTall(), floor = height - bottom;
    const x = (step) => view.x(step, left, span);
    context.imageSmoothingEnabled = false;
    context.save();
    context.beginPath();
    context.rect(left, top, span, floor - top);
    context.fillStyle = colour('hatch');
    context.fill();
    context.clip();
    // All columns are for the same number of steps, so one stretched picture is enough.
    const begin = x(firstColumn), end = x(firstColumn + columns * columnsPer);
    context.drawImage(image, 0, 0, columns, rows.length, begin, top, end - begin,
                      rows.length * each);
    context.restore();
    context.fillStyle = colour('ink2');
    context.textAlign = 'right';
    let lastText = -100;
    rows.forEach((row, r) => {
      const y = top + r * each;
      const special = stragglers.has(row.rank) && row.ranks === 1;
      if (y - lastText < 11 && !special) return;
      lastText = y;
      context.fillStyle = colour(special ? 'critical' : 'ink2');
      context.fillText((special ? '\u25b2 ' : '') + rowName(row).replace(' (mean)', ''), left - 6,
                       y + each / 2 + 4);
    });
    context.fillStyle = colour('ink2');
    context.textAlign = 'center';
    for (const at of wholeTicks(view.from, view.to, Math.max(2, span / 90)))
      if (at < view.to) context.fillText(String(at), x(at + 0.5), height - 8);
    context.lineWidth = 2;
    context.strokeStyle = colour('critical');
    rows.forEach((row, r) => {
      for (const [from, to] of row.ranks === 1 ? lateStretches(row.rank) : []) {
        const at = x(Math.max(from, view.from)), until = x(Math.min(to + 1, view.to));
        if (until > at) context.strokeRect(at, top + r * each, until - at, Math.max(2, each));
      }
    });
    context.strokeStyle = colour('ink');
    const focusRow = rows.findIndex((row) => focusOn.rank !== null && row.rank <= focusOn.rank &&
                                        focusOn.rank <= row.last_rank);
    if (focusRow >= 0) context.strokeRect(left, top + focusRow * each, span, Math.max(2, each));
    if (focusOn.step !== null && focusOn.step >= firstColumn) {
      const from = x(firstColumn + columnOf(focusOn.step) * columnsPer);
      const to = x(firstColumn + (columnOf(focusOn.step) + 1) * columnsPer);
      context.save();
      context.beginPath();
      context.rect(left, top, span, floor - top);
      context.clip();
      context.strokeRect(from, top, Math.max(2, to - from), floor - top);
      context.restore();
    }
  }

  function resort() {
    const middle = (row) => meanOf(row[measure]);
    rows = [...table.rows];
    if (order === 'host')
      rows.sort((a, b) => String(a.host).localeCompare(String(b.host), 'en', {numeric: true}) ||
                    a.rank - b.rank);
    if (order === 'value') rows.sort((a, b) => (middle(b) ?? -Infinity) - (middle(a) ?? -Infinity));
    paint();
    if (picture) picture.redraw();
  }

  const context = ramp.getContext('2d'), strip = context.createImageData(128, 10);
  const words = new Uint32Array(strip.data.buffer);
  for (let i = 0; i < words.length; i++) words[i] = heat[(i % 128) * 2];
  context.putImageData(strip, 0, 0);
  resort();
  picture = canvasOf(holder, tall, draw, {
    class: 'heat',
    role: 'img',
    'aria-label': `${plural(report.run.ranks_found.length, 'rank')} by ${
        plural(columns, 'step')}; arrow keys choose a cell`
  });
  const cellAt = (event) => {
    const box = picture.canvas.getBoundingClientRect();
    const step = valueAt(event.clientX - box.left);
    const row = Math.floor((event.clientY - box.top - top) / rowTall());
    return {row: rows[nth(row, rows.length)], column: columnOf(step)};
  };
  const columnOf = (step) => {
    const at = Math.floor((step - firstColumn) / columnsPer);
    return nth(at, columns);
  };
  const valueAt = moveBy(picture.canvas, view, left, right, (event) => {
    const cell = cellAt(event);
    lookAt(table.step[cell.column], cell.row.rank);
  });
  picture.canvas.addEventListener('pointermove', (event) => {
    const {row, column} = cellAt(event);
    showTip(event, [
      `${row.ranks > 1 ? 'mean of ranks' : 'rank'} ${
          rowName(row).replace(' (mean)', '')} \u00b7 step ${table.step[column]}`,
      row.host ? ['host', row.host] : null,
      ...known.map((key) => [(key === measure ? '\u25b8 ' : '') + MEASURES[key].name,
                             MEASURES[key].say(row[key].length ? row[key][column] : null)])
    ]);
  });
  picture.canvas.addEventListener('pointerleave', hideTip);
  picture.canvas.addEventListener('keydown', (event) => {
    const by = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1,
                                                                                     0]}[event.key];
    if (!by) return;
    event.preventDefault();
    const row = Math.max(0, rows.findIndex((r) => r.rank === focusOn.rank));
    const column = focusOn.step === null ? -1 : columnOf(focusOn.step);
    const next = rows[nth(row + by[0], rows.length)];
    lookAt(table.step[nth(column + by[1], columns)], next.rank);
  });
  view.listeners.push(picture.redraw);
  onFocus(picture.redraw);
  const joined = table.ranks_joined;
  return el(
      'div', {},
      el('div', {class: 'controls'},
         choice('show', known.map((key) => [key, MEASURES[key].name]), measure,
                (value) => {
                  measure = value;
                  resort();
                }),
         table.rows.length > 1 ?
             choice('order', [['rank', 'by rank'], ['host', 'by host'], ['value', 'worst first']],
                    order,
                    (value) => {
                      order = value;
                      resort();
                    }) :
             null),
      holder,
      el('p', {class: 'scale'}, ramp, ' ', scaleText,
         el('span', {class: 'dim'}, ' \u00b7 hatched: not known')),
      el('p', {class: 'dim'},
         joined > 0 ? `${
                          plural(table.rows.filter((row) => row.ranks === 1).length,
                                 'rank')} that differ have their own rows; ` +
                 `${plural(joined, 'other rank')} are joined to means \u00b7 ` :
                      '',
         columnsPer > 1 ? `of each ${columnsPer} steps the slowest is shown \u00b7 ` : '',
         HOW_TO_MOVE));
}

panel({
  id: 'ranks',
  sections: ['distributed'],
  body: () => {
    const d = report.distributed, stragglers = new Set(d.stragglers);
    const overlap = new Map(report.overlap.by_rank.map((row) => [row.rank, row]));
    const byRank = new Map(d.ranks.map((row) => [row.rank, row]));
    const rows = d.order.map((rank) => ({...byRank.get(rank), overlap: overlap.get(rank) || {}}));
    const many = d.order.some((rank, i) => i && rank < d.order[i - 1]);
    const most = Math.max(1e-12, ...rows.map((row) => row.compute_ms || 0));
    return [
      heatMap(),
      tableOf(
          [
            [
              'rank', 'rank', String,
              {head: true, mark: (r) => (stragglers.has(r.rank) ? badge('warning') : null)}
            ],
            ['host', 'host'],
            ['compute', 'compute_ms', ms, {bar: (r) => r.compute_ms / most, shade: 'compute'}],
            ['to peers', 'rel_slowdown', signedPercent],
            ['last in', 'slowest_fraction', percent],
            ['p', 'p_value', probability],
            ['peers wait', 'imposed_wait_ms', ms],
            ['why', 'reason', (v) => v || ''],
            ['late in steps', (r) => namesOfLateStretches(r.rank) || null, (v) => v || ''],
            ['takes longer', 'late_at', (v) => v || ''],
            ['by', 'late_more_ms', ms],
            ['exposed', (r) => r.overlap.exposed_ms, ms],
            ['of it wait', (r) => r.overlap.exposed_wait_ms, ms],
          ],
          rows, {
            caption: 'ranks, per step' + (many ? ', the costliest for peers first' : ''),
            mark: (r) => stragglers.has(r.rank),
            onrow: (r) => lookAt(focusOn.step, r.rank)
          })
    ];
  },
});
