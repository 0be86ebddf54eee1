// SPDX-License-Identifier: MIT
// Comparison of runs on the same scales, with one or several runs on each side.


function sayByUnit(unit) {
  return unit === 'ms' ? ms : unit === 'bytes' ? memory : unit === 'fraction' ? percent : number;
}

panel({
  id: 'changed',
  title: 'What changed',
  sections: ['diff_steps', 'diff_times', 'diff_lines', 'diff_memory', 'diff_scalars'],
  applies: () => Boolean(before),
  body: () => {
    const d = report.diff, most = Math.max(d.step_before_ms || 0, d.step_after_ms || 0);
    const bar = (side, shade) => {
      const value = d[`step_${side}_ms`];
      return {name: side + ': ' + plural(d['runs_' + side], 'run'), value, say: ms(value), shade};
    };
    return [
      isKnown(d.step_before_ms) && isKnown(d.step_after_ms) ?
          barList([bar('before', 'idle'), bar('after', 'compute')], most) :
          null,
      d.findings.length ?
          el('div', {class: 'cards'}, cards(d.findings)) :
          el('p', {class: 'nothing'}, 'No finding about what changed reached its threshold.'),
      d.runs.length > 2 ?
          tableOf(
              [
                ['run', (r) => r.path || r.name, null, {head: true, wide: true}], ['side', 'side'],
                ['steps', 'steps', count], ['median step', 'step_ms', ms],
                ['shown', 'shown', (v) => (v ? 'below' : '')]
              ],
              d.runs, {caption: 'runs of both sides; single runs below are the middle ones'}) :
          null
    ];
  },
});

panel({
  id: 'bothsteps',
  title: 'Steps of both',
  applies: () =>
      Boolean(before) && before.series.steps.step.length > 1 && report.series.steps.step.length > 1,
  body: () => {
    const high = (of) => {
      const warm = of.steps.warmup_excluded || 0, s = of.series.steps;
      return Math.max(
          1e-9, ...s.wall_most_ms.filter((v, i) => isKnown(v) && s.step[i] - s.step[0] >= warm));
    };
    const most = 1.06 * Math.max(high(before), high(report));
    const strip = (of, name) => {
      const s = of.series.steps,
            view = of === report ?
          stepView :
          new View(s.step[0], s.step[s.step.length - 1] + s.steps_per_point,
                   Math.min(8, s.step.length) * s.steps_per_point);
      return el('section', {}, el('h3', {}, name), stripOf(of, view, 150, most));
    };
    return [
      strip(before, 'before: ' + report.diff.before), strip(report, 'after: ' + report.diff.after),
      legend(partsShown(report.series.steps).concat([{name: 'slowest rank', shade: 'inkline'}])),
      el('p', {class: 'dim'}, 'same scale \u00b7 ', HOW_TO_MOVE)
    ];
  },
});

panel({
  id: 'figures',
  title: 'Figures of both',
  sections: ['diff_times', 'diff_memory'],
  elsewhere: true,
  body: () => {
    const byUnit = (value, row) => sayByUnit(row.unit)(value);
    return tableOf(
        [
          ['part', 'section'], ['figure', 'name', null, {head: true}],
          ['before', 'before', byUnit, {numeric: true}],
          ['after', 'after', byUnit, {numeric: true}],
          [
            'change', 'change', signedPercent,
            {numeric: true, bar: (r) => Math.abs(r.change), shade: 'wait'}
          ],
          ['p', 'p_value', (v) => (isKnown(v) ? probability(v) : '\u2013'), {numeric: true}],
          ['beyond noise', 'verdict', (v) => (v === 'same' ? 'no' : v || '')]
        ],
        report.diff.rows, {caption: 'figures of both runs', first: 30});
  },
});

panel({
  id: 'bothkernels',
  sections: ['diff_kernels'],
  body: () => {
    const dash = (say) => (v) => (isKnown(v) ? say(v) : '\u2013');
    const column = (name, of, say) => [name, of, dash(say), {numeric: true}];
    return [
      tableOf(
          [
            ['kernel', (k) => k.short_name || k.name, null, {head: true, wide: true}],
            ['kind', 'category'], column('calls before', 'before_count', number),
            column('calls after', 'after_count', number), column('sum before', 'before_ms', ms),
            column('sum after', 'after_ms', ms), column('each before', 'before_mean_ms', ms),
            column('each after', 'after_mean_ms', ms),
            column('speedup', 'speedup', (v) => v.toFixed(2) + '\u00d7')
          ],
          report.diff.kernels,
          {caption: 'kernels of both sides; the largest differences of sums first'}),
      note('\u2013: not there, or not among the hundred with most time in that run.')
    ];
  },
});

// The frames of both runs as one list, depth first: frames are the same if all above them are.
function stacksOfBoth(one, other) {
  const root = {children: new Map()};
  const add = (stacks, side) => {
    const open = [root];
    for (const node of stacks) {
      open.length = node.depth + 1;
      const above = open[node.depth] || root, name = nameOfStack(node);
      if (!above.children.has(name))
        above.children.set(name,
                           {depth: node.depth, name, value: 0, other: 0, children: new Map()});
      const here = above.children.get(name);
      here[side] += node.sampled_ms || 0;
      open.push(here);
    }
  };
  add(one, 'value');
  add(other, 'other');
  const all = [], list = (node) => {
    for (const child of node.children.values()) {
      all.push(child);
      list(child);
    }
  };
  list(root);
  return all;
}

panel({
  id: 'bothstacks',
  title: 'Stacks of both',
  applies: () => Boolean(before) && before.lines.stacks.some((node) => node.sampled_ms > 0) &&
      report.lines.stacks.some((node) => node.sampled_ms > 0),
  body: () =>
      [el('p', {class: 'dim'},
          'Host time a step after the change, from samples, without waits; beside that before it.'),
       differenceFlame(stacksOfBoth(report.lines.stacks, before.lines.stacks),
                       'Stacks of both runs', {value: 'after', other: 'before'})],
});

panel({
  id: 'bothcollectives',
  sections: ['diff_collectives'],
  body: () => tableOf(
      [
        ['operation', 'op', null, {head: true}], ['ranks', 'ranks', count],
        ['size', 'bytes', bytes], ['a step before', 'before_per_step', number],
        ['after', 'after_per_step', number], ['transfer before', 'before_ms', ms],
        ['after ', 'after_ms', ms], ['change', 'change', signedPercent, {numeric: true}]
      ],
      report.diff.collectives, {caption: 'by operation, size and number of ranks'}),
});

panel(
    {
      id: 'bothscalars',
      title: 'Values of both',
      sections: ['diff_scalars'],
      elsewhere: true,
      applies: () => Boolean(before) &&
          (report.diff.scalars.length > 0 ||
           (before.convergence.series.length > 0 && report.convergence.series.length > 0)),
      body:
          () => [report.convergence.series.map((series) => {
            const other = before.convergence.series.find((s) => s.role === series.role);
            if (!other) return null;
            return el('section', {}, el('h3', {}, series.name),
                      el('div', {class: 'picture'},
                         lineChart(
                             [
                               {
                                 name: 'before',
                                 shade: 'idle',
                                 points: other.step.map((s, i) => [s, other.value[i]])
                               },
                               {
                                 name: 'after',
                                 shade: 'compute',
                                 points: series.step.map((s, i) => [s, series.value[i]])
                               }
                             ],
                             {
                               height: 190,
                               nameX: 'step',
                               sayX: count,
                               sayTip: (x) => 'near step ' + count(x),
                               label: series.name + ' of both runs'
                             })),
                      legend([{name: 'before', shade: 'idle'}, {name: 'after', shade: 'compute'}]));
          }),
                 report.diff.scalars.length ?
                     tableOf(
                         [
                           ['value', 'name', null, {head: true}], ['steps of both', 'steps', count],
                           [
                             'differ at all from', 'first_step',
                             (v) => (isKnown(v) ? 'step ' + count(v) : 'nowhere'), {numeric: true}
                           ],
                           [
                             'by a thousandth from', 'parted_step',
                             (v) => (isKnown(v) ? 'step ' + count(v) : 'nowhere'), {numeric: true}
                           ],
                           ['before, there', 'before', number], ['after, there', 'after', number]
                         ],
                         report.diff.scalars, {caption: 'values that both runs report'}) :
                     null],
    });

panel({
  id: 'provenance',
  sections: ['diff_provenance'],
  body: () => tableOf(
      [
        ['what', 'what', null, {head: true}], ['name', 'name', (v) => v || ''],
        ['before', 'before', (v) => (v === null ? 'not there' : v), {wide: true}],
        ['after', 'after', (v) => (v === null ? 'not there' : v), {wide: true}]
      ],
      report.diff.provenance, {caption: 'what differs', first: 20}),
});
