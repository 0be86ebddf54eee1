// SPDX-License-Identifier: MIT
// Where the time went, how much of it could be saved, and how much of the machine was used.

function whatIfs(of) {
  const list = of.critical_path.what_if;
  if (!list.length)
    return of.critical_path.what_if_reason ? note('What if: ', of.critical_path.what_if_reason) :
                                             null;
  const most = Math.max(0.01, ...list.map((row) => row.saving_fraction || 0));
  return el(
      'section', {}, el('h3', {}, 'What if'),
      of.critical_path.what_if_reason ?
          note('Do not rely on these: ', of.critical_path.what_if_reason) :
          null,
      barList(list.map((row) => ({
                         name: row.change,
                         value: row.saving_fraction,
                         shade: 'good',
                         say: `saves ${percent(row.saving_fraction)}`,
                         note: ms(row.step_ms) + ' a step' + (row.spread ? '; ' + row.spread : '')
                       })),
              Math.max(most, 0.2)));
}

// What a step saves if one thing takes less and less of its time.
function whatPays(of) {
  const list = of.critical_path.pays.slice(0, of.critical_path.pays_shown)
                   .filter((row) => isKnown(row.saves_at_50));
  const why = of.critical_path.pays.filter((row) => row.why)
                  .map((row) => note(`${row.short_name}: ${row.why}`));
  if (!list.length) return why.length ? el('section', {}, ...why) : null;
  const lines = list.map(
      (row, i) => ({
        name: row.short_name,
        title: row.name,
        shade: paletteShade(i),
        points: [[0, 0], [0.1, row.saves_at_90], [0.5, row.saves_at_50], [1, row.saves_at_0]]
      }));
  return el('section', {}, el('h3', {}, 'What pays'), legend(lines), lineChart(lines, {
              zero: true,
              sayX: percent,
              sayY: percent,
              nameX: 'of its time taken away; up: of the step saved',
              label: 'what a step saves if one thing takes less of its time'
            }),
            ...why);
}

// GEMMs by shape: their speed, and the limit from memory traffic, estimated from the shape.
function roofline() {
  const width = {
    fp64: 8,
    fp32: 4,
    tf32: 4,
    float32: 4,
    bfloat16: 2,
    float16: 2,
    'bf16/fp16': 2,
    fp8: 1,
    float64: 8
  };
  const points = [];
  for (const row of report.gemms.by_shape) {
    const shape = /^(\d+) x (\d+) x (\d+)$/.exec(row.shape);
    const each = width[row.type] || width[row.precision];
    if (!shape || !each || !(row.tflops > 0)) continue;
    const [m, n, k] = shape.slice(1).map(Number);
    const intensity = (2 * m * n * k) / (each * (m * k + k * n + m * n));
    points.push({
      x: intensity,
      y: row.tflops,
      size: 3 + 9 * Math.sqrt(row.share || 0),
      shade: 'compute',
      tip: [
        row.shape + (row.batch > 1 ? ` \u00d7 ${row.batch}` : ''), ['type', row.type],
        ['speed', flops(row.tflops * 1e12, 'FLOP/s')], ['of the peak', percent(row.utilisation)],
        ['operations a byte', number(intensity)], ['time a step', ms(row.ms)]
      ]
    });
  }
  if (!points.length) return null;
  const peaks = report.gemms.by_precision.filter((row) => row.peak_tflops > 0);
  const xs = extent(points.map((p) => p.x)),
        ys = extent(points.map((p) => p.y).concat(peaks.map((row) => row.peak_tflops)));
  return el(
      'section', {}, el('h3', {}, 'GEMMs against the peak'),
      scatter(points, {
        from: xs[0] / 2,
        to: xs[1] * 2,
        log: true,
        say: number,
        name: 'operations a byte of factors and result'
      },
              {from: ys[0] / 2, to: ys[1] * 1.5, log: true, say: (v) => flops(v * 1e12, 'FLOP/s')},
              {
                label: 'speed of GEMMs over operations a byte',
                under: (box) => peaks.forEach((row) => {
                  box.root.append(svg('line', {
                    x1: box.left,
                    x2: Math.min(900, chartWidth()) - box.right,
                    y1: box.sy(row.peak_tflops),
                    y2: box.sy(row.peak_tflops),
                    class: 'peak'
                  }));
                  box.root.append(
                      svg('text', {x: box.left + 6, y: box.sy(row.peak_tflops) - 4, class: 'tick'},
                          `peak ${row.precision}: ${flops(row.peak_tflops * 1e12, 'FLOP/s')}`));
                })
              }));
}

const budgetShade = (line) => data.shades.budget[line.name];

panel({
  id: 'budget',
  sections: ['budget'],
  elsewhere: true,
  body: () => {
    const b = report.budget, lines = b.lines.filter((line) => line.seconds !== 0);
    const recoverable = lines.some((line) => line.recoverable > 0);
    return [
      sumBar(
          lines.map((line) => ({name: line.name, value: line.seconds, shade: budgetShade(line)})),
          b.wall_s, seconds),
      el('div', {class: 'pairs'},
         el('div', {},
            tableOf(
                [
                  [
                    'went to', 'name', null,
                    {head: true, mark: (l) => el('i', {class: 'swatch ' + budgetShade(l)})}
                  ],
                  ['time', 'seconds', seconds],
                  ['share', 'fraction', percent],
                  recoverable ? ['recoverable', 'recoverable', seconds] : null,
                ].filter(Boolean),
                lines, {caption: 'where the time went'})),
         el('div', {}, whatIfs(report))),
      whatPays(report), roofline()
    ];
  },
});

// The critical path across ranks.

const pathShade = (category) => data.shades.path[category];

function pathStrip() {
  const list = report.critical_path.segments;
  if (list.length < 2) return null;
  const end = Math.max(...list.map((s) => s.start_ms + s.ms));
  const ranks = [...new Set(list.map((s) => s.rank))].sort((a, b) => a - b);
  const view = new View(0, end, end / 5000), lane = 22, left = AXIS_LEFT, right = AXIS_RIGHT,
        bottom = 24;
  const holder = el('div', {class: 'picture'});
  let chosen = null;
  const picture = canvasOf(holder, ranks.length * lane + bottom + 4, (context, width, tall) => {
    const span = width - left - right, x = (t) => view.x(t, left, span);
    const y = (rank) => 4 + ranks.indexOf(rank) * lane;
    context.fillStyle = colour('ink2');
    context.textAlign = 'right';
    for (const rank of ranks) context.fillText('rank ' + rank, left - 6, y(rank) + 15);
    context.textAlign = 'center';
    for (const at of ticks(view.from, view.to, Math.max(2, span / 110)))
      context.fillText(at === 0 ? '0' : ms(at), x(at), tall - 8);
    context.save();
    context.beginPath();
    context.rect(left, 0, span, tall);
    context.clip();
    list.forEach((s, i) => {
      const from = x(s.start_ms), to = x(s.start_ms + s.ms);
      if (to < left || from > width) return;
      context.fillStyle = colour(pathShade(s.category));
      context.fillRect(from, y(s.rank) + 3, Math.max(1, to - from - 0.5), lane - 6);
      if (i && list[i - 1].rank !== s.rank) {
        context.strokeStyle = colour('ink');
        context.lineWidth = 1.5;
        context.beginPath();
        context.moveTo(from, y(list[i - 1].rank) + lane / 2);
        context.lineTo(from, y(s.rank) + lane / 2);
        context.stroke();
      }
      if (s === chosen) {
        context.strokeStyle = colour('ink');
        context.lineWidth = 2;
        context.strokeRect(from, y(s.rank) + 2, Math.max(2, to - from), lane - 4);
      }
      if (to - from > 50) {
        context.fillStyle = colour(wordsOn(pathShade(s.category)));
        context.textAlign = 'left';
        context.fillText(cutTo(s.name, Math.floor((to - from) / 6.5)), from + 4, y(s.rank) + 15);
      }
    });
    context.restore();
  }, {role: 'img', class: 'path', 'aria-label': 'critical path through one sample of steps'});
  const at = (event) => {
    const box = picture.canvas.getBoundingClientRect(), t = valueAt(event.clientX - box.left);
    const rank = ranks[Math.floor((event.clientY - box.top - 4) / lane)];
    return list.find((s) => s.rank === rank && s.start_ms <= t && t <= s.start_ms + s.ms) ||
        list.find((s) => s.start_ms <= t && t <= s.start_ms + s.ms);
  };
  const told = el('p', {class: 'dim', 'aria-live': 'polite'}, HOW_TO_MOVE);
  const valueAt = moveBy(picture.canvas, view, left, right, (event) => {
    chosen = at(event) || null;
    if (chosen)
      told.textContent = clean(`rank ${chosen.rank}: ${chosen.name} (${chosen.category}) from ${
                                   ms(chosen.start_ms)} for ${ms(chosen.ms)}` +
                               (chosen.reached_by ? `, reached by ${chosen.reached_by}` : ''));
    picture.redraw();
  });
  picture.canvas.addEventListener('pointermove', (event) => {
    const s = at(event);
    if (s)
      showTip(event, [
        s.name, ['kind', s.category], ['rank', String(s.rank)], ['from', ms(s.start_ms)],
        ['takes', ms(s.ms)], s.reached_by ? ['reached by', s.reached_by] : null
      ]);
  });
  picture.canvas.addEventListener('pointerleave', hideTip);
  view.listeners.push(picture.redraw);
  return el('section', {}, el('h3', {}, 'One sample of it'), holder, told);
}

panel({
  id: 'path',
  sections: ['path'],
  elsewhere: true,
  body: () => {
    const p = report.critical_path,
          parts = Object.entries(p.by_category)
                      .map(([name, value]) => ({name, value, shade: pathShade(name)}));
    const byRank = Object.entries(p.by_rank)
                       .map(([rank, value]) => ({rank: Number(rank), value}))
                       .filter((r) => r.value > 0)
                       .sort((a, b) => b.value - a.value);
    return [
      el('p', {}, `What a step of ${ms(p.length_ms)} is made of, followed across ranks.`),
      sumBar(parts, p.length_ms, ms), pathStrip(),
      byRank.length > 1 ?
          [
            el('h3', {}, 'By rank'),
            barList(byRank.slice(0, 12).map((r) => ({
                                              name: 'rank ' + r.rank,
                                              value: r.value,
                                              say: percent(r.value / p.length_ms),
                                              note: ms(r.value)
                                            })),
                    p.length_ms),
            byRank.length > 12 ? el('p', {class: 'dim'},
                                    `and ${plural(byRank.length - 12, 'rank')} more with less`) :
                                 null
          ] :
          null,
      tableOf(
          [
            ['most of it', 'short_name', null, {head: true, wide: true}],
            [
              'is', 'category', null,
              {mark: (n) => el('i', {class: 'swatch ' + pathShade(n.category)})}
            ],
            ['a step', 'ms', ms, {bar: (n) => n.ms / p.length_ms, shade: 'accent'}],
            ['share', (n) => n.ms / p.length_ms, percent],
            ['stretches', 'count', (v) => number(Number(v.toPrecision(3))), {numeric: true}],
          ],
          p.by_name, {caption: 'most of it, by name'})
    ];
  },
});
