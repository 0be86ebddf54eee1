// SPDX-License-Identifier: MIT
// Kernels by the operator that launched them, and one kernel over all ranks.

function operatorTables() {
  const k = report.kernels, shown = (name) => (isKnown(name) ? name : 'none that is recorded');
  if (!k.by_operator.length)
    return k.operators_reason ? el('p', {class: 'dim'}, k.operators_reason) : null;
  const most = Math.max(1e-12, ...k.by_operator.map((r) => r.self_ms));
  return el(
      'section', {}, el('h3', {}, 'By operator ', el('small', {}, 'that launched the work')),
      tableOf(
          [
            ['operator', (r) => shown(r.name), null, {head: true, wide: true}],
            ['calls', 'calls', count], ['launched', 'kernels', count],
            ['itself', 'self_ms', ms, {bar: (r) => r.self_ms / most, shade: 'compute'}],
            ['share', 'share', percent], ['with its calls', 'total_ms', ms]
          ],
          k.by_operator, {caption: 'GPU time by operator, all ranks, whole input'}),
      tableOf(
          [
            ['operator', (r) => shown(r.operator), null, {head: true, wide: true}],
            ['kernel', 'kernel', (_, r) => r.short_name, {wide: true}], ['kind', 'category'],
            ['count', 'count', count], ['sum', 'sum_ms', ms]
          ],
          k.operator_kernels, {caption: 'kernels of each operator', first: 8}),
      k.operator_sequences.length === 0 ?
          null :
          tableOf(
              [
                ['operator', (r) => shown(r.operator), null, {head: true, wide: true}],
                ['kernels, in order', 'kernels', null, {wide: true}],
                ['of them', 'launched', count], ['calls', 'count', count], ['sum', 'sum_ms', ms]
              ],
              k.operator_sequences, {caption: 'in which order a call launched them', first: 8}));
}

// The time of one kernel on every rank; the table selects the kernel.
function kernelOverRanks() {
  const k = report.kernels, ranks = k.over_ranks_of, list = k.over_ranks;
  if (!list.length) return null;
  const holder = el('div', {class: 'picture'});
  const above = (r) => (r.median_us > 0 ? r.slowest_us / r.median_us - 1 : null);
  function show(row) {
    const at = ranks.indexOf(row.slowest);
    holder.replaceChildren(
        el('p', {}, el('b', {}, cutTo(row.short_name, 90)), ': mean of one on each rank'),
        lineChart(
            [
              {name: 'mean', shade: 'compute', points: row.mean_us.map((v, i) => [i, v])},
              {name: '95th percentile', shade: 'idle', points: row.p95_us.map((v, i) => [i, v])}
            ],
            {
              zero: true,
              sayY: us,
              sayX: (i) => (Number.isInteger(i) && i < ranks.length ? String(ranks[i]) : ''),
              sayTip: (i) => 'rank ' + ranks[i],
              nameX: 'rank',
              marks: at >= 0 ? [{
                x: at,
                y: row.slowest_us,
                tip: ['rank ' + row.slowest, ['mean', us(row.slowest_us)]]
              }] :
                               [],
              label: `${row.short_name} over ranks`
            }),
        legend([
          {name: 'mean', shade: 'compute'}, {name: '95th percentile', shade: 'idle'},
          {name: 'slowest rank', shade: 'wait'}
        ]));
  }
  show(list[0]);
  const most = Math.max(1e-12, ...list.map((r) => above(r) || 0));
  return el(
      'section', {},
      el('h3', {}, 'One kernel over all ranks ', el('small', {}, 'click a row to choose')), holder,
      tableOf(
          [
            ['kernel', 'short_name', null, {head: true, wide: true}],
            ['median of ranks', 'median_us', us], ['slowest rank', 'slowest', String],
            ['its mean', 'slowest_us', us],
            ['above the median', above, signedPercent, {bar: (r) => above(r) / most, shade: 'wait'}]
          ],
          list, {
            caption: 'kernels on every rank; collectives are left out, they wait for ranks',
            first: 6,
            onrow: show
          }));
}
