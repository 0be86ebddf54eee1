// SPDX-License-Identifier: MIT
// Lines of the program: the cost of each, and the stacks that lead to it.

const LINE_MEASURES = {
  host_ms: ['host waits and input', 'wait'],
  idle_ms: ['GPU idle after waits', 'idle'],
  gpu_ms: ['time on the GPU', 'compute'],
  exposed_ms: ['exposed communication', 'transfer'],
  sampled_ms: ['the host, from samples', 'host'],
};

const nameOfStack = (node) => `${node.function} (${node.place})`;

// A frame is red where it takes longer than what it is compared with, by a quarter of the largest
// difference, pale from a twentieth on; green likewise where it takes less.
function differenceFlame(nodes, label, words) {
  const most = Math.max(1e-9, ...nodes.map((node) => Math.abs(node.value - node.other)));
  const shade = (more) => (Math.abs(more) < most / 20 ? 'free' :
                                                        (more > 0 ? 'critical' : 'good') +
                                   (Math.abs(more) < most / 4 ? ' soft' : ''));
  const flame = new Flame(label, ms, {all: words.value});
  flame.show(
      nodes.map((node) => ({
                  depth: node.depth,
                  name: node.name,
                  shade: shade(node.value - node.other),
                  value: node.value,
                  tip: [
                    [words.other, ms(node.other)],
                    [
                      'difference',
                      (node.value < node.other ? '-' : '+') + ms(Math.abs(node.value - node.other))
                    ]
                  ]
                })));
  return [
    flame.element, legend([
      {name: 'takes longer', shade: 'critical'}, {name: 'takes as long', shade: 'free'},
      {name: 'takes less', shade: 'good'}
    ])
  ];
}

// The straggler's stacks beside those of its peers.
function lateFlame() {
  const rank = report.lines.stacks_rank, stacks = report.lines.stacks;
  if (!isKnown(rank) || !stacks.some((node) => node.late_ms > 0)) return null;
  return el('section', {},
            el('h3', {}, `Rank ${rank} beside its peers `,
               el('small', {}, 'host time from samples, without waits for peers')),
            differenceFlame(stacks.map((node) => ({
                                         depth: node.depth,
                                         name: nameOfStack(node),
                                         value: node.late_ms || 0,
                                         other: node.peers_ms || 0
                                       })),
                            `Stacks of rank ${rank} beside its peers`,
                            {value: `on rank ${rank}`, other: 'on its peers'}));
}

function lineFlame() {
  const stacks = report.lines.stacks,
        known = Object.keys(LINE_MEASURES).filter((key) => stacks.some((node) => node[key] > 0));
  if (!known.length) return null;
  const flame =
      new Flame('Python stacks by what they cost', ms, {all: 'with what it calls', own: 'itself'});
  const show = (measure) =>
      flame.show(stacks.map((node) => ({
                              depth: node.depth,
                              name: nameOfStack(node),
                              shade: node.own === 'yes' ? 'accent' : 'free',
                              value: node[measure] || 0,
                              tip: known.filter((key) => key !== measure)
                                       .map((key) => [LINE_MEASURES[key][0], ms(node[key])])
                            })));
  show(known[0]);
  return el('section', {}, el('h3', {}, 'By stack ', el('small', {}, 'outermost on top')),
            choice('show', known.map((key) => [key, LINE_MEASURES[key][0]]), known[0], show),
            flame.element, legend([
              {name: 'the program\u2019s own code', shade: 'accent'},
              {name: 'others\u2019 code', shade: 'free'}
            ]));
}

panel({
  id: 'lines',
  sections: ['lines'],
  body: () => {
    const l = report.lines, time = (name, key, shade) => {
      const most = Math.max(...l.lines.map((line) => line[key] || 0));
      return [name, key, ms, {bar: shade && most > 0 ? (r) => r[key] / most : null, shade}];
    };
    return [
      lateFlame(), lineFlame(),
      tableOf(
          [
            [l.of_operators === 'yes' ? 'operator or range' : 'line', 'place', null, {head: true}],
            ['in', 'function'], ['waits', 'waits', number], time('host waits', 'wait_ms', 'wait'),
            time('GPU idle after', 'idle_ms', 'idle'), time('input', 'input_ms', 'input'),
            time('on the GPU', 'gpu_ms', 'compute'), time('of it backward', 'backward_gpu_ms'),
            time('exposed comm', 'exposed_ms', 'transfer'), time('on the host', 'host_ms'),
            time('data loader workers', 'worker_ms'), time('step without the wait', 'without_ms')
          ].filter(([, key, say]) => !say || l.lines.some((line) => line[key] > 0)),
          l.lines, {
            caption: `lines, ${count(l.lines.length)} of ${count(l.known)}; ` +
                `${count(l.call_sites)} calls tell theirs`
          })
    ];
  },
});
