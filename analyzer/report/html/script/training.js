// SPDX-License-Identifier: MIT
// The job's own values, how ranks match each other's calls, and what the report rests on.

const SIGNAL_OF_ROLE = {
  loss: 'loss',
  'gradient norm': 'gradient norm'
};

panel({
  id: 'convergence',
  title: 'Loss and other values',
  findings: ['CONVERGENCE', 'CROSS'],
  applies: () => !before && report.convergence.series.length > 0,
  body: () => {
    const c = report.convergence;
    const chart = (series) => {
      const holder = el('div', {class: 'picture'}),
            points = series.step.map((step, i) => [step, series.value[i]]);
      const finite = series.value.filter(isKnown);
      let log = false;
      const marks = c.spikes
                        .filter((spike) => spike.signal === SIGNAL_OF_ROLE[series.role] ||
                                    spike.signal === series.role)
                        .map((spike) => ({
                               x: spike.step,
                               y: spike.value,
                               tip: [
                                 `spike at step ${spike.step}`, ['value', number(spike.value)],
                                 ['before it', number(spike.typical)]
                               ]
                             }));
      if (series.role === 'loss' && isKnown(c.diverged_step))
        marks.push({
          x: c.diverged_step,
          tip: [`of no use from step ${c.diverged_step} on`, ['by', c.diverged_by]]
        });
      if (isKnown(series.first_not_finite_step) &&
          !(series.role === 'loss' && isKnown(c.diverged_step)))
        marks.push({
          x: series.first_not_finite_step,
          tip: [`not finite at step ${series.first_not_finite_step}`]
        });
      const draw = () =>
          holder.replaceChildren(lineChart([{name: series.name, shade: 'compute', points}], {
                                   height: 190,
                                   log,
                                   marks,
                                   nameX: 'step',
                                   sayX: count,
                                   sayTip: (x) => 'step ' + x,
                                   label: `${series.name} over steps`
                                 }) ||
                                 el('p', {}, 'no finite value'));
      draw();
      return el(
          'section', {},
          el('h3', {}, series.name,
             el('small', {}, series.role !== series.name ? ' ' + series.role : '')),
          facts([
            ['first', number(series.first)], ['last', number(series.last)],
            ['best', isKnown(series.best) ? number(series.best) : null],
            ['values', count(series.values)],
            [
              'not finite',
              series.not_finite > 0 ? `${count(series.not_finite)}, first at step ${
                                          count(series.first_not_finite_step)}` :
                                      null
            ],
            ['spikes', series.spikes > 0 ? count(series.spikes) : null]
          ]),
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
                          {name: 'step', of: (p) => p[0], say: String, numeric: true, head: true}, {
                            name: series.name,
                            of: (p) => p[1],
                            say: (v) => (isKnown(v) ? number(v) : 'not finite'),
                            numeric: true
                          }
                        ],
                        points, {caption: series.name})));
    };
    return [
      facts([
        ['loss', c.verdict],
        ['stands still', c.plateau ? `for ${count(c.plateau_steps)} steps` : null]
      ]),
      c.series.map(chart),
      c.instability.length ?
          tableOf(
              [
                {
                  name: 'several signals go wrong in steps',
                  of: (i) => i.first_step,
                  say: (v, i) => (v === i.last_step ? String(v) : `${v} to ${i.last_step}`),
                  head: true
                },
                {name: 'signals', of: (i) => i.signals}
              ],
              c.instability, {caption: `instability \u00b7 p ${probability(c.instability_p)}`}) :
          null
    ];
  },
});

// Who waits for whom, as far as the check tells: those in a call that has not finished on the left,
// those to look at first on the right.
function waitPicture() {
  const check = report.collective_check;
  const pending = check.groups.filter((group) => group.pending > 0),
        suspects = check.suspects.slice(0, 12);
  const names = (suspect, group) =>
      (suspect.evidence || '').includes(`${group.desc || group.group} (group ${group.group})`) ||
      (suspect.evidence || '').includes(group.desc || group.group);
  const tied = pending.filter((group) => suspects.some((suspect) => names(suspect, group)));
  if (!tied.length) return null;
  const shown = tied.slice(0, 12), rows = Math.max(shown.length, suspects.length), each = 34,
        width = 760, tall = rows * each + 10;
  const root = svg('svg', {
    viewBox: `0 0 ${width} ${tall}`,
    width,
    class: 'chart',
    role: 'img',
    'aria-label': 'who waits for whom'
  });
  const y = (i, n) => (tall / 2) + (i - (n - 1) / 2) * each;
  shown.forEach((group, i) => suspects.forEach((suspect, k) => {
    if (!names(suspect, group)) return;
    root.append(svg('path', {
      class: 'tie',
      d: `M330 ${y(i, shown.length)}C400 ${y(i, shown.length)} 400 ${y(k, suspects.length)} 470 ${
          y(k, suspects.length)}`
    }));
  }));
  shown.forEach(
      (group, i) => root.append(
          svg('rect', {
            x: 10,
            y: y(i, shown.length) - 14,
            width: 320,
            height: 28,
            rx: 5,
            class: 'fill idle'
          }),
          svg('text', {x: 20, y: y(i, shown.length) + 4, class: 'in'},
              cutTo(`${plural(group.pending, 'member')} wait in ${group.desc || group.group}`,
                    44))));
  suspects.forEach((suspect, k) =>
                       root.append(svg('rect', {
                                     x: 470,
                                     y: y(k, suspects.length) - 14,
                                     width: 280,
                                     height: 28,
                                     rx: 5,
                                     class: 'fill critical'
                                   }),
                                   svg('text', {x: 480, y: y(k, suspects.length) + 4, class: 'in'},
                                       cutTo(`rank ${suspect.rank}: ${suspect.reason}`, 40))));
  return el('section', {}, el('h3', {}, 'Who waits for whom'), el('div', {class: 'picture'}, root),
            tied.length > shown.length || check.suspects.length > suspects.length ?
                note('The first twelve of each are drawn; the tables have all.') :
                null,
            pending.length > tied.length ?
                el('p', {class: 'dim'},
                   `Members of ${
                       plural(pending.length - tied.length,
                              'other group')} wait too, for ranks that wait here.`) :
                null);
}

panel({
  id: 'hang',
  title: 'Collectives of all ranks',
  findings: ['DIST.HANG', 'DIST.DESYNC', 'RUN'],
  applies: () => !before && report.collective_check.checked > 0,
  lamp: () => {
    const worst = Math.max(-1,
                           ...report.findings.filter((f) => /^(DIST\.(HANG|DESYNC)|RUN)/.test(f.id))
                               .map((f) => SEVERITIES.indexOf(f.severity)));
    return worst >= 0 ? SEVERITIES[worst] :
        report.collective_check.cannot_tell || report.collective_check.verdict === 'cannot tell' ?
                        'unknown' :
                        'good';
  },
  body: () => {
    const c = report.collective_check;
    return [
      facts([
        ['verdict', c.verdict], ['calls', count(c.checked), c.source ? 'from ' + c.source : null],
        ['match on all members', count(c.matched)],
        ['disagree', c.mismatched > 0 ? count(c.mismatched) : null],
        [
          'waiting', c.pending_ranks > 0 ? plural(c.pending_ranks, 'rank') : null,
          isKnown(c.pending_s) ? 'the oldest for ' + seconds(c.pending_s) : null
        ],
        ['of them victims', c.suspects.length ? count(c.victims) : null],
        ['no record', c.unrecorded.length ? 'rank ' + rankList(c.unrecorded) : null]
      ]),
      c.cannot_tell ?
          el('p', {class: 'unknown'}, lamp('unknown'), ' cannot tell: ', c.cannot_tell) :
          null,
      c.suspects.length ? el('section', {}, el('h3', {}, 'Look at first'),
                             c.suspects.slice(0, 24).map(
                                 (s) => el('article', {class: 'finding critical'},
                                           el('h3', {}, lamp('critical'), ` rank ${s.rank}`,
                                              s.host ? ` on ${s.host}` : '', ' \u00b7 ', s.reason),
                                           el('p', {class: 'evidence'}, s.evidence),
                                           s.stack ? el('pre', {}, s.stack) : null))) :
                                                       null,
      c.suspects.length > 24 ? el('p', {class: 'dim'}, `and ${c.suspects.length - 24} more`) : null,
      waitPicture(),
      c.mismatches.length ?
          tableOf(
              [
                {name: 'group', of: (m) => m.desc || m.group, head: true},
                {name: 'call', of: (m) => m.seq, numeric: true, say: count},
                {name: 'operation', of: (m) => m.op}, {name: 'state', of: (m) => m.state},
                {name: 'ranks', of: (m) => rankList(m.ranks)},
                {name: 'what differs', of: (m) => m.detail, wide: true}
              ],
              c.mismatches, {caption: 'calls on which members disagree'}) :
          null,
      c.groups.length ?
          tableOf(
              [
                {name: 'group', of: (g) => g.group, head: true}, {name: 'for', of: (g) => g.desc},
                {name: 'members', of: (g) => g.size, say: count, numeric: true},
                {name: 'recorded', of: (g) => g.recorded, say: count, numeric: true},
                {name: 'match', of: (g) => g.matched, say: count, numeric: true},
                {name: 'disagree', of: (g) => g.mismatched, say: count, numeric: true},
                {name: 'waiting', of: (g) => g.pending, say: count, numeric: true}
              ],
              c.groups, {caption: 'groups', first: 8}) :
          null
    ];
  },
});

panel({
  id: 'trust',
  title: 'What this rests on',
  last: true,
  findings: ['DATA', 'REPRO'],
  applies: () => true,
  body: () =>
      (before ? [trustOf(before, 'before: '), trustOf(report, 'after: ')] : trustOf(report, '')),
});

function trustOf(of, prefix) {
  const q = of.quality, found = of.run.ranks_found;
  const coverage = Object.entries(q.coverage);
  return el(
      'section', {}, prefix ? el('h3', {}, prefix + (of.run.id || 'unnamed')) : null, facts([
        [
          'read from',
          of.run.inputs.map((input) => `${count(input.files)} ${input.what}`).join(', ') || null
        ],
        [
          'ranks',
          found.length ?
              (of.run.world_size ? `${count(found.length)} of ${count(of.run.world_size)}` :
                                   count(found.length)) :
              null
        ],
        ['hosts', of.run.hosts.length ? count(of.run.hosts.length) : null],
        [
          'events', isKnown(q.events) ? count(q.events) : null,
          q.lost > 0 ? `${count(q.lost)} lost` :
              q.lost === 0 ? 'none lost' :
                             null
        ],
        [
          'clocks',
          found.length > 1 ?
              (q.clock.aligned ? `aligned by ${q.clock.method}` :
                                 `not aligned: ${q.clock.method || 'no reason known'}`) :
                                 null,
          isKnown(q.clock.residual_us) ? `residual ${us(q.clock.residual_us)}` : null
        ],
        ['GPU time', q.gpu_timing],
        [
          'own cost', isKnown(q.overhead.fraction) ? percent(q.overhead.fraction) : null,
          'of the run, estimated'
        ],
        ['traces', isKnown(q.overhead.trace_bytes) ? bytes(q.overhead.trace_bytes) : null]
      ]),
      q.partial_ranks.length ?
          el('p', {class: 'warn'}, lamp('warning'),
             ` rank ${
                 rankList(
                     q.partial_ranks)}: missing, damaged, did not end in order or lost records`) :
          null,
      q.notes.map((line) => el('p', {class: 'dim'}, line)),
      coverage.length ? barList(coverage.map(([name, cover]) => ({
                                               name,
                                               value: cover.share,
                                               say: percent(cover.share),
                                               note: cover.note,
                                               shade: cover.share < 0.95 ? 'wait' : 'good'
                                             })),
                                1) :
                        null,
      of.run.command ? el('p', {}, el('span', {class: 'dim'}, 'command '),
                          el('code', {}, cutTo(of.run.command, 2000))) :
                       null);
}
