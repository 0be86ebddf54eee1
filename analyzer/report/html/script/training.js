// SPDX-License-Identifier: MIT
// Training values, whether ranks make matching calls, and the quality of the input.

panel({
  id: 'convergence',
  sections: ['convergence'],
  body: () => {
    const c = report.convergence;
    const chart = (series) => {
      const holder = el('div', {class: 'picture'}),
            points = series.step.map((step, i) => [step, series.value[i]]);
      const finite = series.value.filter(isKnown);
      let log = false;
      const marks =
          c.spikes.filter((spike) => spike.signal === series.role)
              .map((spike) => ({
                     x: spike.step,
                     y: spike.value,
                     tip: [
                       `spike at ${series.counts} ${spike.step}`, ['value', number(spike.value)],
                       ['before it', number(spike.typical)]
                     ]
                   }));
      if (series.role === 'loss' && isKnown(c.diverged_step))
        marks.push({
          x: c.diverged_step,
          tip: [`of no use from ${series.counts} ${c.diverged_step} on`, ['by', c.diverged_by]]
        });
      if (isKnown(series.first_not_finite_step) &&
          !(series.role === 'loss' && isKnown(c.diverged_step)))
        marks.push({
          x: series.first_not_finite_step,
          tip: [`not finite at ${series.counts} ${series.first_not_finite_step}`]
        });
      const draw = () =>
          holder.replaceChildren(lineChart([{name: series.name, shade: 'compute', points}], {
                                   height: 190,
                                   log,
                                   marks,
                                   nameX: series.counts,
                                   sayX: count,
                                   sayTip: (x) => `${series.counts} ${x}`,
                                   label: `${series.name} over ${series.counts}s`
                                 }) ||
                                 el('p', {}, 'no finite value'));
      draw();
      return el('section', {},
                el('h3', {}, series.name,
                   el('small', {}, series.role !== series.name ? ' ' + series.role : '')),
                holder,
                finite.length && Math.min(...finite) > 0 &&
                        Math.max(...finite) > 3 * Math.min(...finite) ?
                    choice('scale', [['', 'even'], ['log', 'logarithmic']], '',
                           (value) => {
                             log = value === 'log';
                             draw();
                           }) :
                    null,
                numbersOf('in numbers',
                          () => tableOf(
                              [
                                [series.counts, (p) => p[0], String, {head: true}],
                                [
                                  series.name, (p) => p[1],
                                  (v) => (isKnown(v) ? number(v) : 'not finite'), {numeric: true}
                                ]
                              ],
                              points, {caption: series.name})));
    };
    return c.series.map(chart);
  },
});

// Which ranks wait for which: on the left the calls with the ranks in them, on the right the ranks
// that they wait for.

const WAITS_DRAWN = 12;
const WAIT_TALL = 34;

function waitBox(root, x, y, wide, shade, text, tips) {
  root.append(
      withTip(svg('g', {class: shade},
                  svg('rect', {x, y: y - 14, width: wide, height: 28, rx: 5, class: 'fill'}),
                  svg('text', {x: x + 10, y: y + 4, class: 'in'},
                      cutTo(text, Math.floor((wide - 16) / (/[A-Z]{4}/.test(text) ? 8 : 6.6))))),
              () => tips));
}

function waitPicture() {
  const check = report.collective_check, suspects = new Map(check.suspects.map((s) => [s.rank, s]));
  const list = check.waits.filter((wait) => wait.waits_for.length);
  // Calls that wait for a suspect come first: all other waits are a consequence of these.
  const ends = (wait) => wait.waits_for.some((rank) => suspects.has(rank));
  const calls = [...list.filter(ends), ...list.filter((wait) => !ends(wait))].slice(0, WAITS_DRAWN);
  if (!calls.length) return null;
  const waitedFor = [...new Set(calls.flatMap((wait) => wait.waits_for))];
  const ranks = [
    ...waitedFor.filter((rank) => suspects.has(rank)),
    ...waitedFor.filter((rank) => !suspects.has(rank))
  ].slice(0, WAITS_DRAWN);
  const width = 860, tall = Math.max(calls.length, ranks.length) * WAIT_TALL + 10;
  const root = svg('svg', {
    viewBox: `0 0 ${width} ${tall}`,
    width,
    class: 'chart waits',
    role: 'img',
    'aria-label': 'which rank waits for which'
  });
  const y = (i, n) => tall / 2 + (i - (n - 1) / 2) * WAIT_TALL;
  calls.forEach((wait, i) => ranks.forEach((rank, k) => {
    if (!wait.waits_for.includes(rank)) return;
    const from = y(i, calls.length), to = y(k, ranks.length);
    root.append(svg('path', {class: 'tie', d: `M420 ${from}C490 ${from} 490 ${to} 560 ${to}`}));
  }));
  calls.forEach((wait, i) => waitBox(
                    root, 10, y(i, calls.length), 410, 'idle',
                    `${wait.op} ${wait.seq} of ${wait.desc}: ${ranksText(wait.ranks, 24)}`, [
                      `${wait.op} ${wait.seq}`, ['group', `${wait.desc} (${wait.group})`],
                      ['in it', ranksText(wait.ranks)], ['waits for', ranksText(wait.waits_for)]
                    ]));
  ranks.forEach((rank, k) => {
    const suspect = suspects.get(rank);
    const waits = list.some((wait) => wait.ranks.includes(rank));
    const why = suspect ? suspect.reason : waits ? 'waits itself' : 'not named';
    waitBox(root, 560, y(k, ranks.length), 290, suspect ? 'critical' : 'idle',
            `rank ${rank}: ${why}`, [`rank ${rank}`, suspect ? suspect.reason : why]);
  });
  const left = list.length - calls.length + (waitedFor.length - ranks.length);
  return el('section', {}, el('h3', {}, 'Which rank waits for which'),
            el('div', {class: 'picture scroll'}, root),
            left > 0 ?
                el('p', {class: 'dim'}, 'The first twelve of each side; the table has all.') :
                null,
            tableOf(
                [
                  ['call', 'op', (op, w) => `${op} ${w.seq}`, {head: true}],
                  ['group', 'desc'],
                  ['ranks in it', (w) => w.ranks.length, (_, w) => rankList(w.ranks)],
                  [
                    'waits for', (w) => w.waits_for.length,
                    (_, w) => (w.waits_for.length ? rankList(w.waits_for) : 'nobody that is known')
                  ],
                ],
                [...list, ...check.waits.filter((wait) => !wait.waits_for.length)], {
                  caption: 'calls that ranks are in' +
                      (check.calls_waiting > check.waits.length ?
                           ` \u00b7 ${check.waits.length} of ${count(check.calls_waiting)}` :
                           ''),
                  first: 6
                }));
}

panel({
  id: 'hang',
  title: 'Collectives of all ranks',
  sections: ['hang'],
  applies: () => !before && report.collective_check.checked > 0,
  body: () => {
    const c = report.collective_check;
    return [
      c.suspects.length ? el('section', {}, el('h3', {}, 'Look at first'),
                             c.suspects.slice(0, 24).map(
                                 (s) => el('article', {class: 'finding critical'},
                                           el('h3', {}, badge('critical'), ` rank ${s.rank}`,
                                              s.host ? ` on ${s.host}` : '', ' \u00b7 ', s.reason),
                                           el('p', {class: 'evidence'}, s.evidence),
                                           s.stack ? el('pre', {}, s.stack) : null))) :
                                                       null,
      c.suspects.length > 24 ? el('p', {class: 'dim'}, `and ${c.suspects.length - 24} more`) : null,
      waitPicture(),
      c.mismatches.length ?
          tableOf(
              [
                ['group', (m) => m.desc || m.group, null, {head: true}], ['call', 'seq', count],
                ['operation', 'op'], ['state', 'state'], ['ranks', (m) => rankList(m.ranks)],
                ['what differs', 'detail', null, {wide: true}]
              ],
              c.mismatches, {caption: 'calls on which members disagree'}) :
          null,
      c.groups.length ?
          tableOf(
              [
                ['group', 'group', null, {head: true}], ['for', 'desc'], ['members', 'size', count],
                ['recorded', 'recorded', count], ['match', 'matched', count],
                ['disagree', 'mismatched', count], ['waiting', 'pending', count]
              ],
              c.groups, {caption: 'groups', first: 8}) :
          null
    ];
  },
});

panel({
  id: 'trust',
  sections: ['trust'],
  body: () => (before ?
                   [
                     el('h3', {}, 'The run before: ' + (before.run.id || 'unnamed')),
                     factLines(before.sections.find((one) => one.name === 'trust').facts)
                   ] :
                   null),
});
