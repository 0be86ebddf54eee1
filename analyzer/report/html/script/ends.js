// SPDX-License-Identifier: MIT
// How the run ended, and where ranks stall.

panel({
  id: 'run_end',
  sections: ['run_end'],
  body: () => {
    const end = report.run_end;
    return [
      el('p', {}, end.summary ||
             'It did not end normally; which rank ended first is not known.'),
      end.calls ? el('p', {}, end.calls) : null,
      tableOf(
          [
            {name: 'rank', of: (r) => r.rank, say: String, numeric: true, head: true},
            {name: 'host', of: (r) => r.host},
            {name: 'at', of: (r) => r.at_s, say: seconds, numeric: true},
            {name: 'part', of: (r) => r.part},
            {name: 'step', of: (r) => r.step, say: count, numeric: true},
            {name: 'last call', of: (r) => r.call},
            {name: 'why', of: (r) => r.why, wide: true}
          ],
          end.ranks, {caption: 'ranks, in the order in which they ended', first: 8})
    ];
  },
});

panel({
  id: 'stalls',
  sections: ['stalls'],
  body: () => {
    const s = report.stalls;
    return [
      s.ranks.length ?
          tableOf(
              [
                {name: 'rank', of: (r) => r.rank, say: String, numeric: true, head: true},
                {name: 'host', of: (r) => r.host}, {name: 'what it does', of: (r) => r.what},
                {name: 'for', of: (r) => r.for_s, say: seconds, numeric: true},
                {name: 'in words', of: (r) => r.words, wide: true}
              ],
              s.ranks, {
                caption: `no progress for ${seconds(s.limit_s)}, recorded ` +
                    `${seconds(s.recorded_s)} into the run`,
                first: 12
              }) :
          null,
      s.tree.length ?
          el('pre', {}, s.tree.map((node) => '  '.repeat(node.depth) + node.place +
                                  (node.function ? ` in ${node.function}` : '') +
                                  ` (rank ${node.ranks})`).join('\n')) :
          null,
      s.past.length ?
          tableOf(
              [
                {name: 'rank', of: (r) => r.rank, say: String, numeric: true, head: true},
                {name: 'at', of: (r) => r.since_s, say: seconds, numeric: true},
                {name: 'for', of: (r) => r.for_s, say: seconds, numeric: true},
                {name: 'what', of: (r) => r.what}, {name: 'line', of: (r) => r.place, wide: true}
              ],
              s.past, {caption: 'stalls that ended', first: 8}) :
          null
    ];
  },
});
