// SPDX-License-Identifier: MIT
// How the run ended, and where ranks stall.

panel({
  id: 'run_end',
  sections: ['run_end'],
  body: () => tableOf(
      [
        ['rank', 'rank', String, {head: true}], ['host', 'host'], ['at', 'at_s', seconds],
        ['part', 'part'], ['step', 'step', count], ['call', 'doing', (v) => v || ''],
        ['why', 'why', null, {wide: true}]
      ],
      report.run_end.ranks, {caption: 'ranks, in the order in which they ended', first: 8}),
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
                ['rank', 'rank', String, {head: true}], ['host', 'host'], ['what it does', 'what'],
                ['for', 'for_s', seconds], ['in words', 'words', null, {wide: true}]
              ],
              s.ranks, {caption: 'ranks that stand', first: 12}) :
          null,
      s.lines.length ?
          el('pre', {},
             s.lines
                 .map((line) => '  '.repeat(line.depth) +
                          `rank${line.n_ranks === 1 ? '' : 's'} ${line.ranks}  ${line.text}`)
                 .join('\n')) :
          null,
      s.past.length ?
          tableOf(
              [
                ['rank', 'rank', String, {head: true}], ['at', 'since_s', seconds],
                ['for', 'for_s', seconds], ['what', 'what'], ['line', 'place', null, {wide: true}]
              ],
              s.past, {caption: 'stalls that ended', first: 8}) :
          null
    ];
  },
});
