// SPDX-License-Identifier: MIT
// Memory of the device with the highest peak: over time, at the peak, and its segments.

function memoryCurve() {
  const c = report.memory.over_time;
  if (c.allocated_bytes.length < 2) return null;
  const timed = c.time_s.every(isKnown), x = timed ? c.time_s : c.allocated_bytes.map((_, i) => i);
  const marks = timed && isKnown(report.memory.peak_time_s) ? [{
    x: report.memory.peak_time_s,
    y: report.memory.peak_allocated_bytes,
    tip: [
      'peak', ['allocated', memory(report.memory.peak_allocated_bytes)],
      ['at', seconds(report.memory.peak_time_s)]
    ]
  }] :
                                                              [];
  const known = c.reserved_bytes.some((v, i) => isKnown(v) && v !== c.allocated_bytes[i]);
  return el(
      'section', {}, el('h3', {}, 'Over time'),
      el('div', {class: 'picture'},
         lineChart(
             [
               {
                 name: 'allocated',
                 shade: 'compute',
                 points: x.map((at, i) => [at, c.allocated_bytes[i]])
               },
               ...(known ? [{
                 name: 'reserved',
                 shade: 'idle',
                 points: x.map((at, i) => [at, c.reserved_bytes[i]])
               }] :
                           [])
             ],
             {
               zero: true,
               sayY: memory,
               sayX: timed ? seconds : count,
               nameX: timed ? 'since the first event' : 'events (times are not recorded)',
               marks,
               label: 'memory over time'
             })),
      legend([
        {name: 'allocated', shade: 'compute'}, known ? {name: 'reserved', shade: 'idle'} : null,
        marks.length ? {name: 'peak', shade: 'wait'} : null
      ].filter(Boolean)));
}

// Memory at the peak by stack, outermost frame on top; colour: the category with the most bytes.
function stacksAtPeak() {
  const rows = report.memory.stacks_at_peak;
  if (!rows.length) return null;
  const kinds = new Map();
  for (const row of rows)
    if (isKnown(row.category))
      kinds.set(row.category, Math.max(kinds.get(row.category) || 0, row.bytes));
  const names = [...kinds.keys()].sort((a, b) => kinds.get(b) - kinds.get(a));
  const shade = (category) => {
    const i = names.indexOf(category);
    return i < 0 ? 'free' : PALETTE[Math.min(i, PALETTE.length - 1)];
  };
  const flame = new Flame('stacks of what was allocated at the peak', memory,
                          {all: 'with what it calls', own: 'itself'});
  flame.show(rows.map((row) => ({
                        depth: row.depth,
                        name: row.frame,
                        shade: shade(row.category) + (row.own === 'no' ? ' soft' : ''),
                        value: row.bytes,
                        tip: [
                          ['mostly for', row.category || UNKNOWN],
                          ['blocks', isKnown(row.blocks) ? count(row.blocks) : UNKNOWN]
                        ]
                      })));
  return el(
      'section', {},
      el('h3', {}, 'Live at the peak, by stack ', el('small', {}, 'outermost on top')),
      flame.element, legend([
        ...names.slice(0, PALETTE.length)
            .map((name, i) => ({
                   name: i === PALETTE.length - 1 && names.length > i + 1 ? 'others' : name,
                   shade: PALETTE[i]
                 })),
        ...(rows.some((row) => !isKnown(row.category)) ? [{name: UNKNOWN, shade: 'free'}] : [])
      ]),
      numbersOf(
          'as a table',
          () =>
              tableOf(
                  [
                    [
                      'frame', 'frame', (v, r) => '\u00a0'.repeat(2 * Math.min(r.depth, 40)) + v,
                      {head: true, wide: true}
                    ],
                    ['mostly for', 'category'],
                    ['bytes', 'bytes', memory, {bar: 'share', shade: 'compute'}],
                    ['share', 'share', percent], ['blocks', 'blocks', count]
                  ],
                  rows, {caption: 'stacks at the peak'})));
}

// Memory at the peak: categories on top, below each the places of allocation.
function flameAtPeak() {
  const rows = report.memory.live_at_peak, total = sumOf(rows.map((row) => row.bytes));
  if (!rows.length || !(total > 0)) return null;
  const kinds = new Map();
  for (const row of rows) {
    const name = row.category || UNKNOWN, kind = kinds.get(name) || {name, bytes: 0, rows: []};
    kind.bytes += row.bytes;
    kind.rows.push(row);
    kinds.set(name, kind);
  }
  const list = [...kinds.values()].sort((a, b) => b.bytes - a.bytes);
  const flame = new Flame('what was allocated at the peak', memory, {all: 'allocated'});
  flame.show([
    {depth: 0, name: 'at the peak', shade: 'idle', value: total, tip: []},
    ...list.flatMap((kind, i) => {
      const shade = paletteShade(i);
      return [
        {depth: 1, name: kind.name, shade, value: kind.bytes, tip: []},
        ...kind.rows.map((row) => ({
                           depth: 2,
                           name: row.source || UNKNOWN,
                           shade: shade + ' soft',
                           value: row.bytes,
                           tip: [['for', kind.name], ['blocks', count(row.blocks)]]
                         }))
      ];
    })
  ]);
  return el('section', {}, el('h3', {}, 'Live at the peak'), flame.element,
            tableOf(
                [
                  ['live at the peak', 'category', null, {head: true}],
                  ['from', 'source', null, {wide: true}],
                  ['size', 'bytes', memory, {bar: 'share', shade: 'compute'}],
                  ['share', 'share', percent], ['blocks', 'blocks', count]
                ],
                rows, {caption: 'allocated at the peak', first: 8}));
}

function segmentMap() {
  const list = report.memory.segments.largest;
  if (!list.length) return null;
  const most = Math.max(...list.map((s) => s.bytes)), cell = 12,
        root = el('div', {class: 'segments'});
  for (const segment of list) {
    const share = Math.max(0.04, segment.bytes / most);
    const row = svg('svg', {
      viewBox: `0 0 ${segment.pieces.length} 1`,
      preserveAspectRatio: 'none',
      class: 'segment',
      height: cell,
      'aria-hidden': 'true'
    });
    segment.pieces.forEach((used, i) => {
      row.append(svg('rect', {
        x: i,
        y: 0,
        width: 1.02,
        height: 1,
        class: 'fill ' + (used > 0 ? 'compute' : 'free'),
        'fill-opacity': used > 0 ? (0.25 + 0.75 * used).toFixed(2) : 1
      }));
    });
    row.style.setProperty('width', (share * 100).toFixed(1) + '%');
    root.append(
        withTip(el('div', {class: 'segmentrow'},
                   el('span', {class: 'barname'}, `${memory(segment.bytes)} ${segment.pool}`),
                   el('span', {class: 'segmenttrack'}, row)),
                () => [`segment of ${memory(segment.bytes)}`, ['pool', segment.pool],
                       ['in use', percent(meanOf(segment.pieces))]]));
  }
  const s = report.memory.segments;
  return el('section', {}, el('h3', {}, 'Segments at the end'), root,
            legend([{name: 'in use', shade: 'compute'}, {name: 'free', shade: 'free'}]),
            s.count > list.length ?
                el('p', {class: 'dim'}, `the ${list.length} largest of ${count(s.count)}`) :
                null);
}

const churn = () => tableOf(
    [
      ['allocated most', 'category', null, {head: true}], ['times', 'count', count],
      ['of', 'size_bytes', memory], ['in all', 'bytes', memory], ['a step', 'per_step', number],
      ['lives', 'lifetime_ms', ms], ['from', 'source', null, {wide: true}]
    ],
    report.memory.churn, {caption: 'churn', first: 6});

function everyDevice() {
  const list = report.memory.devices, peak = (d) => d.peak_allocated_bytes || 0;
  const most = Math.max(1, ...list.map(peak));
  return tableOf(
      [
        ['rank', 'rank', orUnknown(String), {numeric: true, head: true}],
        ['device', 'device', (v) => (isKnown(v) ? 'GPU ' + v : 'CPU')],
        [
          'peak allocated', 'peak_allocated_bytes', memory,
          {bar: (d) => peak(d) / most, shade: 'compute'}
        ],
        ['peak reserved', 'peak_reserved_bytes', memory],
        ['growth a step', 'growth_bytes_per_step', memory], ['ran out', 'out_of_memory', count]
      ],
      list, {caption: 'every device'});
}

panel({
  id: 'memory',
  sections: ['memory'],
  body: () => {
    const m = report.memory;
    return [
      memoryCurve(), stacksAtPeak(), flameAtPeak(), segmentMap(), m.churn.length ? churn() : null,
      m.devices.length > 1 ? everyDevice() : null
    ];
  },
});

// Modules of the model as a tree map.
panel({
  id: 'modules',
  sections: ['modules'],
  body: () => {
    const m = report.modules,
          leaves = m.tree.filter((row) => !m.tree.some((other) => other.parent === row.name));
    const measures = {
      parameter_bytes: ['parameters', memory],
      activation_bytes: ['activations', memory],
      time: ['forward and backward', ms],
      plain_peak_bytes: ['peak while it runs', memory]
    };
    const of = (row, key) =>
        (key === 'time' ? (row.forward_ms || 0) + (row.backward_ms || 0) : row[key]);
    const possible = Object.keys(measures).filter((key) => leaves.some((row) => of(row, key) > 0));
    let measure = possible[0];
    const width = 1000, tall = 360, holder = el('div', {class: 'picture'});
    const tops = [...new Set(leaves.map((row) => row.name.split('.').slice(0, 2).join('.')))];
    function draw() {
      const root = svg('svg', {
        viewBox: `0 0 ${width} ${tall}`,
        class: 'chart flame',
        role: 'img',
        'aria-label': 'modules by ' + measures[measure][0]
      });
      for (const p of treemap(leaves.map((row) => ({row, value: of(row, measure)})), 0, 0, width,
                              tall)) {
        const row = p.item.row,
              shade = paletteShade(tops.indexOf(row.name.split('.').slice(0, 2).join('.')));
        root.append(withTip(
            svg('g', {class: shade}, svg('rect', {
                  x: p.x,
                  y: p.y,
                  width: Math.max(0.5, p.w - 1),
                  height: Math.max(0.5, p.h - 1),
                  class: 'fill'
                }),
                p.w > 60 && p.h > 16 ?
                    svg('text', {x: p.x + 4, y: p.y + 13, class: 'in'},
                        cutTo(row.name.split('.').slice(-2).join('.'), Math.floor(p.w / 6.8))) :
                    null),
            () => [row.name,
                   ...possible.map((key) => [measures[key][0], measures[key][1](of(row, key))])]));
      }
      holder.replaceChildren(root);
    }
    if (measure) draw();
    return [
      possible.length ?
          [
            choice('area', possible.map((key) => [key, measures[key][0]]), measure,
                   (key) => {
                     measure = key;
                     draw();
                   }),
            holder
          ] :
          null,
      tableOf(
          [
            [
              'module', 'name', (v, r) => '\u00a0'.repeat(2 * (r.depth || 0)) + v,
              {head: true, wide: true}
            ],
            ['parameters', 'parameter_bytes', memory], ['activations', 'activation_bytes', memory],
            ['forward', 'forward_ms', ms], ['backward', 'backward_ms', ms],
            ['of the time', 'time_share', percent, {bar: 'time_share', shade: 'compute'}],
            ['peak while it runs', 'plain_peak_bytes', memory]
          ],
          m.tree, {caption: 'modules, in the order of the forward pass'})
    ];
  },
});
