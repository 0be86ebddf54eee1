// SPDX-License-Identifier: MIT
// Communication: exposed time, bandwidth, and messages between ranks.

function busBandwidth() {
  const rows = report.collectives.filter((row) => row.busbw_gbps > 0 && row.bytes > 0);
  if (rows.length < 2) return null;
  const ops = [...new Set(rows.map((row) => row.op))];
  const xs = extent(rows.map((row) => row.bytes)), ys = extent(rows.map((row) => row.busbw_gbps));
  return el(
      'section', {}, el('h3', {}, 'Bus bandwidth over size'),
      scatter(rows.map((row) => ({
                         x: row.bytes,
                         y: row.busbw_gbps,
                         size: 4.5,
                         shade: paletteShade(ops.indexOf(row.op)),
                         tip: [
                           row.op, ['communicator', row.comm], ['size', bytes(row.bytes)],
                           ['bus bandwidth', bandwidth(row.busbw_gbps)], ['count', count(row.count)]
                         ]
                       })),
              {from: xs[0] / 1.5, to: xs[1] * 1.5, log: true, say: bytes, name: 'size'},
              {from: ys[0] / 1.5, to: ys[1] * 1.5, log: true, say: bandwidth},
              {label: 'bus bandwidth of collectives over their size'}),
      legend(ops.map((op, i) => ({name: op, shade: paletteShade(i)}))));
}

// Messages: bytes from each rank to each other rank, and the largest in a table.
function whoSendsToWhom() {
  const rows = report.collectives.filter((row) => isKnown(row.from) && isKnown(row.to));
  if (!rows.length) return null;
  const pairs = new Map();
  for (const row of rows) {
    const key = row.from + '>' + row.to,
          pair = pairs.get(key) || {from: row.from, to: row.to, bytes: 0, count: 0};
    pair.bytes += row.bytes * row.count;
    pair.count += row.count;
    pairs.set(key, pair);
  }
  const list = [...pairs.values()],
        ranks = [...new Set(list.flatMap((p) => [p.from, p.to]))].sort((a, b) => a - b);
  const drawn = ranks.slice(0, 128), most = Math.max(...list.map((p) => p.bytes)), left = 44;
  const size = Math.min(560, left + drawn.length * 56), each = (size - left) / drawn.length;
  const root = svg('svg', {
    viewBox: `0 0 ${size} ${size}`,
    width: size,
    class: 'chart matrix',
    role: 'img',
    'aria-label': 'bytes sent from rank to rank'
  });
  for (const p of list) {
    const x = drawn.indexOf(p.to), y = drawn.indexOf(p.from);
    if (x < 0 || y < 0) continue;
    root.append(withTip(svg('rect', {
                          x: left + x * each,
                          y: left + y * each,
                          width: Math.max(1, each - 1),
                          height: Math.max(1, each - 1),
                          class: 'fill transfer',
                          'fill-opacity': (0.15 + 0.85 * (p.bytes / most)).toFixed(3)
                        }),
                        () => [`rank ${p.from} to rank ${p.to}`, ['bytes', bytes(p.bytes)],
                               ['messages', count(p.count)]]));
  }
  const every = Math.ceil(drawn.length / 24);
  drawn.forEach((rank, i) => {
    if (i % every) return;
    root.append(
        svg('text', {x: left - 5, y: left + i * each + each / 2 + 4, class: 'tick end'}, rank));
    root.append(
        svg('text', {x: left + i * each + each / 2, y: left - 6, class: 'tick middle'}, rank));
  });
  root.append(svg('text', {x: left, y: 12, class: 'tick'}, 'to rank \u2192   (from rank \u2193)'));
  return el('section', {}, el('h3', {}, 'Who sends to whom'),
            el('div', {class: 'pairs'}, root,
               tableOf(
                   [
                     ['from', 'from', String, {head: true}], ['to', 'to', String],
                     ['bytes', 'bytes', bytes, {bar: (p) => p.bytes / most, shade: 'transfer'}],
                     ['messages', 'count', count]
                   ],
                   list.sort((a, b) => b.bytes - a.bytes), {caption: 'messages'})),
            ranks.length > drawn.length ? note(`The picture has the first ${drawn.length} of ${
                                              ranks.length} ranks; the table has all.`) :
                                          null);
}

function collectivesTable(first) {
  const rows = report.collectives.filter((row) => !isKnown(row.from) || first === Infinity);
  if (!rows.length) return null;
  return tableOf(
      [
        ['operation', 'op', null, {head: true}],
        ['communicator', 'comm'],
        ['size', 'bytes', (v, c) => (c.sizes > 1 ? '~' : '') + bytes(v)],
        ['count', 'count', count],
        ['wait', 'wait_ms', ms],
        ['transfer', 'transfer_ms', ms],
        ['algbw', 'algbw_gbps', bandwidth],
        [
          'busbw', 'busbw_gbps', bandwidth, {
            bar: (c) => c.busbw_gbps / Math.max(1e-12, ...rows.map((r) => r.busbw_gbps || 0)),
            shade: 'transfer'
          }
        ],
        [
          'algorithm', 'algorithm',
          (v, c) => (v ? v + (c.protocol ? ' ' + c.protocol : '') +
                             (isKnown(c.channels) ? ` \u00d7${c.channels}` : '') :
                                                    UNKNOWN)
        ],
        ['asked for', 'asked', (v) => v || UNKNOWN],
        ['tag', 'user_tags', (v) => v || UNKNOWN],
      ],
      rows, {caption: 'collectives, by communicator, operation and size'});
}

panel({
  id: 'communication',
  sections: ['overlap', 'collectives'],
  body: () => {
    const o = report.overlap, parts = [];

    if (isKnown(o.comm_ms)) {
      const exposed = isKnown(o.exposed_wait_ms) ?
          {wait: o.exposed_wait_ms, transfer: o.exposed_transfer_ms} :
          {comm: o.exposed_ms};
      parts.push(
          sumBar([{name: 'hidden', value: o.overlapped_ms, shade: 'compute'}, ...partsOf(exposed)],
                 o.comm_ms, ms));
    }
    if (o.by_collective.length > 1)
      parts.push(tableOf(
          [
            ['operation', 'op', null, {head: true}],
            ['took', 'comm_ms', ms],
            ['exposed', 'exposed_ms', ms, {bar: (r) => r.exposed_ms / r.comm_ms, shade: 'wait'}],
            ['wait', 'exposed_wait_ms', ms],
            ['transfer', 'exposed_transfer_ms', ms],
          ],
          o.by_collective, {caption: 'by operation, a step'}));
    return [parts, busBandwidth(), collectivesTable(), whoSendsToWhom()];
  },
});

panel({
  id: 'pipeline',
  sections: ['pipeline'],
  body: () => {
    const p = report.pipeline,
          most = Math.max(...p.by_stage.map((s) => (s.work_ms || 0) + (s.bubble_ms || 0)));
    return [
      el('div', {class: 'bars'},
         p.by_stage.map(
             (s) => el(
                 'div', {class: 'barrow'},
                 el('span', {class: 'barname'}, `stage ${s.stage}: ${ranksText(s.ranks, 24)}`),
                 el('span', {class: 'bartrack'},
                    el('i', {class: 'fill compute', css: {width: 100 * (s.work_ms / most) + '%'}}),
                    el('i', {class: 'fill idle', css: {width: 100 * (s.bubble_ms / most) + '%'}})),
                 el('b', {}, ms(s.work_ms)), el('small', {}, 'bubble ' + ms(s.bubble_ms))))),
      legend([{name: 'work', shade: 'compute'}, {name: 'bubble', shade: 'idle'}])
    ];
  },
});
