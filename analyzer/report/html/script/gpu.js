// SPDX-License-Identifier: MIT
// What ran on the GPUs, and how the hosts launched it.

const gpuParts = (row) => partsOf({
  compute: row.compute_ms,
  comm: row.exposed_comm_ms,
  copy: row.exposed_memcpy_ms,
  idle: row.idle_ms
});

function gpuRanks() {
  const rows = report.gpu_timeline.by_rank.filter((row) => isKnown(row.total_ms));
  if (rows.length < 2) return null;
  const shown = rows.length > 64 ?
      [...rows].sort((a, b) => a.busy_fraction - b.busy_fraction).slice(0, 64) :
      rows;
  return [
    el('div', {class: 'bars thin'},
       shown.map(
           (row) => el(
               'div', {class: 'barrow'}, el('span', {class: 'barname'}, 'rank ' + row.rank),
               withTip(el('span', {class: 'bartrack'},
                          gpuParts(row).map((part) => el('i', {
                                              class: 'fill ' + part.shade,
                                              css: {width: 100 * (part.value / row.total_ms) + '%'}
                                            }))),
                       () => ['rank ' + row.rank,
                              ...gpuParts(row).map((part) => [part.name, ms(part.value)])]),
               el('b', {}, percent(row.busy_fraction) + ' busy'),
               el('small', {}, ms(row.total_ms))))),
    rows.length > shown.length ?
        el('p', {class: 'dim'}, `the 64 least busy of ${count(rows.length)} ranks`) :
        null
  ];
}

panel({
  id: 'gpu',
  sections: ['gpu'],
  body: () => {
    const g = report.gpu_timeline, l = report.launches;
    return [
      sumBar(gpuParts(g), g.total_ms, ms), gpuRanks(),
      el('div', {class: 'pairs'},
         l.copies.length ?
             tableOf(
                 [
                   ['copies', 'direction', null, {head: true}], ['count', 'count', count],
                   ['time', 'sum_ms', ms], ['bytes', 'bytes', bytes], ['speed', 'gbps', bandwidth]
                 ],
                 l.copies, {caption: 'copies, all ranks'}) :
             null,
         l.fills.length ? tableOf(
                              [
                                ['fills', 'name', null, {head: true, wide: true}],
                                ['count', 'count', count], ['time', 'sum_ms', ms]
                              ],
                              l.fills, {caption: 'operators that fill memory'}) :
                          null)
    ];
  },
});

// Of kinds of kernels: what moves data as in the bars of time, what computes in other shades.
function kindShades(kinds) {
  const moves = data.shades.kernels;
  const free = PALETTE.filter((shade) => !Object.values(moves).includes(shade));
  const computes = kinds.filter((kind) => !moves[kind]);
  return new Map(
      kinds.map((kind) => [kind, moves[kind] || free[computes.indexOf(kind)] || 'idle']));
}

panel({
  id: 'kernels',
  sections: ['kernels'],
  body: () => {
    const k = report.kernels, total = sumOf(k.by_category.map((c) => c.sum_ms));
    const shade = kindShades(k.by_category.map((c) => c.category));
    const most = Math.max(1e-12, ...k.top.map((row) => row.sum_ms || 0));
    return [
      k.by_category.length ?
          sumBar(k.by_category.map(
                     (c) => ({name: c.category, value: c.sum_ms, shade: shade.get(c.category)})),
                 total, ms) :
          null,
      tableOf(
          [
            ['kernel', 'short_name', null, {head: true, wide: true}],
            [
              'kind', 'category', null,
              {mark: (r) => el('i', {class: 'swatch ' + (shade.get(r.category) || 'idle')})}
            ],
            ['count', 'count', count],
            ['time', 'sum_ms', ms, {bar: (r) => r.sum_ms / most, shade: 'compute'}],
            ['share', 'share', percent],
            ['mean', 'mean_ms', ms],
            ['longest', 'max_ms', ms],
          ],
          k.top, {
            caption: 'kernels' +
                (k.names > k.top.length ? ` \u00b7 the first ${k.top.length} by time` : '')
          }),
      operatorTables(), kernelOverRanks(),
      numbersOf(
          'whole names',
          () => el('ol', {class: 'names'}, k.top.map((row) => el('li', {}, cutTo(row.name, 4000)))))
    ];
  },
});

panel({
  id: 'gemms',
  sections: ['gemms'],
  body: () => {
    const p = report.gemms;
    const say = orUnknown((v) => flops(v * 1e12, 'FLOP/s'));
    const speed = (name, key) => [name, key, say, {numeric: true}];
    return [
      tableOf(
          [
            [
              'shape', 'shape', (v, r) => v + (r.batch > 1 ? ` \u00d7 ${count(r.batch)}` : ''),
              {head: true}
            ],
            ['type', 'type'],
            ['made in', 'precision'],
            ['calls a step', 'calls', number],
            ['mean', 'mean_us', us],
            ['a step', 'ms', ms, {bar: 'share', shade: 'compute'}],
            ['share', 'share', percent],
            speed('speed', 'tflops'),
            ['of the peak', 'utilisation', percent],
          ],
          p.by_shape, {
            caption: 'by shape and type' +
                (p.shapes > p.by_shape.length ?
                     ` \u00b7 the first ${p.by_shape.length} of ${count(p.shapes)}` :
                     '')
          }),
      p.by_precision.length ?
          tableOf(
              [
                ['made in', 'precision', null, {head: true}], ['operations', 'share', percent],
                ['a step', 'ms', ms], speed('speed', 'tflops'), speed('peak', 'peak_tflops'),
                ['of the peak', 'utilisation', percent, {bar: 'utilisation', shade: 'compute'}],
                ['HFU', 'hfu', percent]
              ],
              p.by_precision, {caption: 'by precision'}) :
          null
    ];
  },
});

panel({
  id: 'ranges',
  sections: ['ranges'],
  body: () => tableOf(
      [
        ['range', 'name', null, {head: true, wide: true}], ['of', 'domain', (v) => v || ''],
        ['count', 'count', count], ['time', 'sum_ms', ms, {bar: 'share', shade: 'accent'}],
        ['share', 'share', percent], ['mean', 'mean_ms', ms], ['longest', 'max_ms', ms]
      ],
      report.ranges, {caption: 'ranges of the program'}),
});
