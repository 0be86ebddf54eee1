// SPDX-License-Identifier: MIT
// The run step by step: a strip over all of it, and one step in numbers.

const stepSeries = report.series.steps;
const stepIndex = new Map(stepSeries.step.map((step, i) => [step, i]));
const stepView = stepSeries.step.length ?
    new View(stepSeries.step[0],
             stepSeries.step[stepSeries.step.length - 1] + stepSeries.steps_per_point,
             Math.min(8, stepSeries.step.length) * stepSeries.steps_per_point) :
    null;

// Figures have five digits: what is left of a sum within that is nothing.
const beyondRounding = (rest, whole) => (rest > 1e-3 * whole ? rest : 0);

// The parts of one step, ms; what is not split into wait and transfer is communication.
function partsAt(of, i) {
  const at = (key) => (of[key] && of[key].length ? of[key][i] : null);
  const wait = at('exposed_wait_ms'), transfer = at('exposed_transfer_ms'),
        exposed = at('exposed_ms');
  const split = isKnown(wait) && isKnown(transfer);
  return {
    compute: at('compute_ms'),
    wait: split ? wait : null,
    transfer: split ? transfer : null,
    unsplit: isKnown(exposed) ?
        (split ? beyondRounding(exposed - wait - transfer, exposed) : exposed) :
        null,
    copy: at('exposed_copy_ms'),
    idle: at('idle_ms'),
  };
}

// Parts that are more than a thousandth of the whole.
function partsShown(series) {
  const sums = new Map(
      PARTS.map((part) => [part, sumOf(series.step.map((_, i) => partsAt(series, i)[part.key]))]));
  const whole = sumOf([...sums.values()]);
  return PARTS.filter((part) => sums.get(part) > whole / 1000);
}

function partLines(parts) {
  return PARTS.filter((part) => parts[part.key] > 0)
      .map((part) => [part.name, ms(parts[part.key])]);
}

// Steps that stand out: those whose length the analysis marks, else none.
function spikesOf(of) {
  const offset = 0;
  return of.convergence.spikes.filter((spike) => spike.signal === 'step time')
      .map((spike) => spike.step - offset);
}

function stripOf(of, view, height, most) {
  const series = of.series.steps, warmup = of.steps.warmup_excluded || 0, first = series.step[0];
  const isWarm = (i) => series.step[i] - first < warmup;
  const left = AXIS_LEFT, right = AXIS_RIGHT, bottom = 26, top = 8;
  const spikes = new Set(spikesOf(of));
  let picture = null, shadeOf = null;
  const holder = el('div', {class: 'picture'});

  function draw(context, width, tall) {
    const span = width - left - right, floor = tall - bottom;
    const x = (step) => left + ((step - view.from) / (view.to - view.from)) * span;
    const visible = [];
    for (let i = 0; i < series.step.length; i++)
      if (series.step[i] + series.steps_per_point > view.from && series.step[i] < view.to)
        visible.push(i);
    const high = most ||
        Math.max(...visible.filter((i) => !isWarm(i) || visible.every(isWarm))
                     .map((i) => series.wall_most_ms[i] || 0),
                 1e-9) *
            1.06;
    const y = (value) => floor - (Math.min(value, high) / high) * (floor - top);
    shadeOf = PARTS.map((part) => colour(part.shade));
    context.fillStyle = colour('ink2');
    context.textAlign = 'right';
    for (const at of ticks(0, high, 4)) {
      context.fillText(at === 0 ? '0' : ms(at), left - 6, y(at) + 4);
      context.fillStyle = colour('grid');
      context.fillRect(left, Math.round(y(at)), span, 1);
      context.fillStyle = colour('ink2');
    }
    context.textAlign = 'center';
    for (const at of wholeTicks(Math.max(view.from, view.whole[0]), view.to,
                                Math.max(2, span / 90)))
      if (at < view.to)
        context.fillText(String(at), x(at + 0.5 * series.steps_per_point), tall - 8);
    context.save();
    context.beginPath();
    context.rect(left, 0, span, tall);
    context.clip();
    // Of the steps that fall on one pixel the slowest is drawn.
    const slots = new Map();
    for (const i of visible) {
      const slot = Math.floor(x(series.step[i]));
      const other = slots.get(slot);
      if (other === undefined || (series.wall_ms[i] || 0) > (series.wall_ms[other] || 0))
        slots.set(slot, i);
    }
    const wide = Math.max(1, (span / (view.to - view.from)) * series.steps_per_point);
    const gap = wide > 6 ? 1 : 0;
    for (const i of slots.values()) {
      const at = x(series.step[i]), parts = partsAt(series, i), wall = series.wall_ms[i];
      let below = 0;
      if (isKnown(parts.compute) && !isWarm(i)) {
        PARTS.forEach((part, p) => {
          const value = parts[part.key];
          if (!(value > 0)) return;
          context.fillStyle = shadeOf[p];
          const from = y(below + value), to = y(below);
          context.fillRect(at, from, wide - gap, Math.max(0, to - from));
          below += value;
        });
      } else if (isKnown(wall)) {
        context.fillStyle = colour(isWarm(i) ? 'faint' : 'accent');
        context.fillRect(at, y(wall), wide - gap, floor - y(wall));
      }
      if (isKnown(series.wall_most_ms[i])) {
        context.fillStyle = colour('ink');
        context.fillRect(at, y(series.wall_most_ms[i]) - 1, Math.max(1, wide - gap), 1.5);
      }
      if (spikes.has(series.step[i])) {
        context.beginPath();
        context.moveTo(at + wide / 2 - 4, top - 6);
        context.lineTo(at + wide / 2 + 4, top - 6);
        context.lineTo(at + wide / 2, top + 2);
        context.fill();
      }
    }
    if (warmup) {
      const end = x(first + warmup);
      context.fillStyle = colour('ink2');
      context.fillRect(Math.round(end), top, 1, floor - top);
      if (end - left > 60) {
        context.textAlign = 'left';
        context.fillText('warm-up', left + 4, top + 10);
      }
    }
    if (focusOn.step !== null && of === report) {
      context.strokeStyle = colour('ink');
      context.lineWidth = 2;
      context.strokeRect(x(focusOn.step), top, Math.max(2, wide - gap), floor - top);
    }
    context.restore();
  }

  picture = canvasOf(holder, height, draw, {
    class: 'strip',
    role: 'img',
    'aria-label': `time of ${plural(series.step.length, 'step')}; arrow keys choose a step`
  });
  const nearest = (value) => {
    let best = 0;
    for (let i = 0; i < series.step.length; i++)
      if (series.step[i] <= value) best = i;
    return best;
  };
  const choose = (i) =>
      lookAt(series.step[Math.max(0, Math.min(series.step.length - 1, i))], focusOn.rank);
  const valueAt = moveBy(
      picture.canvas, view, left, right,
      of === report ? (event) => choose(nearest(
                          valueAt(event.clientX - picture.canvas.getBoundingClientRect().left))) :
                      null);
  picture.canvas.addEventListener('keydown', (event) => {
    const at = focusOn.step === null ? -1 : nearest(focusOn.step);
    const to = {ArrowRight: at + 1,
                ArrowLeft: at - 1,
                Home: 0,
                End: series.step.length - 1}[event.key];
    if (to === undefined || of !== report) return;
    event.preventDefault();
    choose(to);
    if (focusOn.step < view.from || focusOn.step >= view.to)
      view.set(focusOn.step - (view.to - view.from) / 2, focusOn.step + (view.to - view.from) / 2);
  });
  picture.canvas.addEventListener('pointermove', (event) => {
    const i = nearest(valueAt(event.clientX - picture.canvas.getBoundingClientRect().left));
    showTip(event, [
      `step ${series.step[i]}` + (isWarm(i) ? ' (warm-up)' : ''),
      ['mean over ranks', ms(series.wall_ms[i])],
      ['fastest to slowest', ms(series.wall_least_ms[i]) + ' to ' + ms(series.wall_most_ms[i])],
      isKnown(series.slowest_rank[i]) ? ['slowest', 'rank ' + series.slowest_rank[i]] : null,
      ...partLines(partsAt(series, i))
    ]);
  });
  picture.canvas.addEventListener('pointerleave', hideTip);
  view.listeners.push(picture.redraw);
  onFocus(picture.redraw);
  return holder;
}

// One step in numbers: its parts, and the ranks that stand out in it.

function stepFacts(i) {
  const wall = stepSeries.wall_ms[i], typical = report.steps.median_ms;
  const slowest = stepSeries.slowest_rank[i], input = stepSeries.input_ms[i];
  return facts([
    [
      'mean over ranks', ms(wall),
      typical > 0 ? `(${signedPercent(wall / typical - 1)} against the median)` : null
    ],
    ['slowest', isKnown(slowest) ? `rank ${slowest}, ${ms(stepSeries.wall_most_ms[i])}` : null],
    ['fastest', ms(stepSeries.wall_least_ms[i])],
    ['input', isKnown(input) ? ms(input) : null],
  ]);
}

function stepParts(i) {
  const parts = partsAt(stepSeries, i), known = PARTS.filter((part) => parts[part.key] > 0);
  const total = sumOf(known.map((part) => parts[part.key]));
  const bars = known.map((part) => ({name: part.name, shade: part.shade, value: parts[part.key]}));
  if (known.length) return sumBar(bars, total, ms);
  const warm = stepSeries.step[i] - stepSeries.step[0] < (report.steps.warmup_excluded || 0);
  return el('p', {class: 'dim'},
            'What this step was made of is not known' + (warm ? ': it is warm-up.' : '.'));
}

function stepRanks() {
  const table = report.series.by_rank, column = table.step.indexOf(focusOn.step);
  if (column < 0 || !table.rows.length) return null;
  const at = (row, key) => (row[key].length ? row[key][column] : null);
  const known =
      Object.keys(MEASURES).filter((key) => table.rows.some((row) => isKnown(at(row, key))));
  return numbersOf('its ranks in numbers',
                   () => tableOf(
                       [
                         {
                           name: 'rank',
                           of: (row) => row.rank,
                           say: (_, row) => rowName(row),
                           numeric: true,
                           head: true
                         },
                         ...known.map((key) => ({
                                        name: MEASURES[key].name,
                                        of: (row) => at(row, key),
                                        say: MEASURES[key].say,
                                        numeric: true,
                                      })),
                       ],
                       table.rows, {caption: 'step ' + focusOn.step}));
}

function stepInNumbers() {
  const box = el('div', {class: 'chosen', 'aria-live': 'polite'});
  const draw = () => {
    const i = stepIndex.get(focusOn.step);
    if (i === undefined) {
      box.replaceChildren(el('p', {class: 'dim'},
                             'Click a step, or use the arrow keys on the ' +
                                 'strip, to see what it was made of.'));
      return;
    }
    box.replaceChildren();
    put(box, {}, [el('h3', {}, `Step ${focusOn.step}`), stepFacts(i), stepParts(i), stepRanks()]);
  };
  onFocus(draw);
  draw();
  return box;
}

function allSteps() {
  const at = (key) => (i) => stepSeries[key][i];
  const parts = PARTS.map((part) => ({
                            name: part.name,
                            of: (i) => partsAt(stepSeries, i)[part.key],
                            say: ms,
                            numeric: true,
                          }));
  const indices = stepSeries.step.map((_, i) => i);
  return numbersOf(
      'all steps in numbers',
      () => tableOf(
          [
            {name: 'step', of: at('step'), say: String, numeric: true, head: true},
            {name: 'mean', of: at('wall_ms'), say: ms, numeric: true},
            {name: 'slowest rank', of: at('slowest_rank'), say: orUnknown(String), numeric: true},
            {name: 'it took', of: at('wall_most_ms'), say: ms, numeric: true},
            ...parts.filter((column) => indices.some((i) => isKnown(column.of(i)))),
          ],
          indices, {caption: 'steps', onrow: (i) => lookAt(stepSeries.step[i], focusOn.rank)}));
}

panel({
  id: 'steps',
  title: 'Steps',
  findings: ['TIMING.JITTER', 'DIST.FAIL_SLOW'],
  applies: () => !before && report.run.ranks_found.length > 0,
  unknown: () => (report.steps.count > 0 ? null :
                                           'no steps were found; figures are for the ' +
                          'whole input. tscope_step(), or the profiler\u2019s step(), marks them'),
  body: () => {
    const s = report.steps, of = stepSeries.steps_per_point;
    const ahead = isKnown(s.host_ahead_ms) ? ms(s.host_ahead_ms) : null;
    const shown = [facts([
      ['median', ms(s.median_ms)],
      ['p95', ms(s.p95_ms)],
      ['spread (CV)', percent(s.cv)],
      ['found by', s.method],
      ['host ahead', ahead, 'median'],
    ])];
    if (stepSeries.step.length > 1)
      shown.push(stripOf(report, stepView, 170),
                 legend([...partsShown(stepSeries), {name: 'slowest rank', shade: 'inkline'}]),
                 el('p', {class: 'dim'},
                    of > 1 ? `of each ${of} steps the slowest is shown \u00b7 ` : '', HOW_TO_MOVE),
                 stepInNumbers());
    shown.push(phasesBar());
    if (stepSeries.step.length) shown.push(allSteps());
    return shown;
  },
});

function phasesBar() {
  const names = {
    data: 'input',
    forward: 'forward',
    backward: 'backward',
    optimizer: 'optimizer',
    other: 'other',
  };
  const parts = Object.entries(names).map(
      ([key, name]) => ({name, value: report.phases[key + '_ms'], shade: 'phase-' + key}));
  if (!parts.slice(1, 4).some((part) => isKnown(part.value))) return null;
  const missing = parts.filter((part) => !isKnown(part.value)).map((part) => part.name);
  return el('section', {}, el('h3', {}, 'Phases on the host'),
            sumBar(parts, sumOf(parts.map((part) => part.value)), ms),
            missing.length ? el('p', {class: 'dim'}, 'unknown: ' + missing.join(', ')) : null);
}
