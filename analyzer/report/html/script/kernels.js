// SPDX-License-Identifier: MIT
// Kernels by the operator that launched them, and one kernel over all ranks.

function operatorTables() {
  const k = report.kernels, shown = (name) => (isKnown(name) ? name : 'none that is recorded');
  if (!k.by_operator.length) return k.operators_reason ? note(k.operators_reason) : null;
  const most = Math.max(1e-12, ...k.by_operator.map((r) => r.self_ms));
  return el('section', {}, el('h3', {}, 'By operator ', el('small', {}, 'that launched the work')),
            tableOf(
                [
                  {name: 'operator', of: (r) => shown(r.name), head: true, wide: true},
                  {name: 'calls', of: (r) => r.calls, say: count, numeric: true},
                  {name: 'launched', of: (r) => r.kernels, say: count, numeric: true}, {
                    name: 'itself',
                    of: (r) => r.self_ms,
                    say: ms,
                    numeric: true,
                    bar: (r) => r.self_ms / most,
                    shade: 'compute'
                  },
                  {name: 'share', of: (r) => r.share, say: percent, numeric: true},
                  {name: 'with what it calls', of: (r) => r.total_ms, say: ms, numeric: true}
                ],
                k.by_operator, {caption: 'GPU time by operator, all ranks, whole input'}),
            tableOf(
                [
                  {name: 'operator', of: (r) => shown(r.operator), head: true, wide: true},
                  {
                    name: 'kernel',
                    of: (r) => r.kernel,
                    say: (_, r) => r.short_name,
                    wide: true
                  },
                  {name: 'kind', of: (r) => r.category},
                  {name: 'count', of: (r) => r.count, say: count, numeric: true},
                  {name: 'sum', of: (r) => r.sum_ms, say: ms, numeric: true}
                ],
                k.operator_kernels, {caption: 'kernels of each operator', first: 8}),
            k.operator_sequences.length === 0 ? null : tableOf(
                [
                  {name: 'operator', of: (r) => shown(r.operator), head: true, wide: true},
                  {name: 'kernels, in order', of: (r) => r.kernels, wide: true},
                  {name: 'of them', of: (r) => r.launched, say: count, numeric: true},
                  {name: 'calls', of: (r) => r.count, say: count, numeric: true},
                  {name: 'sum', of: (r) => r.sum_ms, say: ms, numeric: true}
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
  return el('section', {},
            el('h3', {}, 'One kernel over all ranks ', el('small', {}, 'click a row to choose')),
            holder,
            tableOf(
                [
                  {name: 'kernel', of: (r) => r.short_name, head: true, wide: true},
                  {name: 'median of ranks', of: (r) => r.median_us, say: us, numeric: true},
                  {name: 'slowest rank', of: (r) => r.slowest, say: String, numeric: true},
                  {name: 'its mean', of: (r) => r.slowest_us, say: us, numeric: true}, {
                    name: 'above the median',
                    of: above,
                    say: signedPercent,
                    numeric: true,
                    bar: (r) => above(r) / most,
                    shade: 'wait'
                  }
                ],
                list, {
                  caption: 'kernels on every rank; collectives are left out, they wait for ranks',
                  first: 6,
                  onrow: show
                }));
}
