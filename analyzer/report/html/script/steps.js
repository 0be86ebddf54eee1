// SPDX-License-Identifier: MIT
// The run step by step: a strip of all steps, and one step in numbers.

const stepSeries = report.series.steps;
const stepIndex = new Map(stepSeries.step.map((step, i) => [step, i]));
const stepView = stepSeries.step.length ?
    new View(stepSeries.step[0],
             stepSeries.step[stepSeries.step.length - 1] + stepSeries.steps_per_point,
             Math.min(8, stepSeries.step.length) * stepSeries.steps_per_point) :
    null;

// Figures have five digits: a rest of a sum below that precision is 0.
const beyondRounding = (rest, whole) => (rest > 1e-3 * whole ? rest : 0);

// The parts of one step, ms.
function partsAt(of, i) {
  const at = (key) => (of[key] && of[key].length ? of[key][i] : null);
  const wait = at('exposed_wait_ms'), transfer = at('exposed_transfer_ms'),
        exposed = at('exposed_ms');
  const split = isKnown(wait) && isKnown(transfer);
  return {
    compute: at('compute_ms'),
    wait: split ? wait : null,
    transfer: split ? transfer : null,
    comm: isKnown(exposed) ?
        (split ? beyondRounding(exposed - wait - transfer, exposed) : exposed) :
        null,
    copy: at('exposed_copy_ms'),
    idle: at('idle_ms'),
  };
}

// Parts of more than a thousandth of the sum.
function partsShown(series) {
  const sums = new Map(
      PARTS.map((part) => [part, sumOf(series.step.map((_, i) => partsAt(series, i)[part.key]))]));
  const whole = sumOf([...sums.values()]);
  return PARTS.filter((part) => sums.get(part) > whole / 1000);
}

function partLines(parts) {
  return partsOf(parts).filter((part) => part.value > 0).map((part) => [part.name, ms(part.value)]);
}

// Points with a step time that the analysis marks as a spike. The analysis counts steps as the log
// of the job does, so a point is marked only if both numbers mean the same step.
function spikesOf(of) {
  const {step, wall_ms: wall} = of.series.steps, index = new Map(step.map((at, i) => [at, i]));
  const same = (spike) => {
    const i = index.get(spike.step);
    return i !== undefined && Math.abs(wall[i] - spike.value) < 1e-3 * spike.value;
  };
  return of.convergence.spikes.filter((spike) => spike.signal === 'step time' && same(spike))
      .map((spike) => spike.step);
}

const STRIP_TOP = 8;
const STRIP_BOTTOM = 26;

// The strip of one run. Each point shows the slowest of `per` neighbouring steps.
class Strip {
  constructor(of, view, height, most) {
    const series = of.series.steps;
    Object.assign(this, {
      of,
      view,
      series,
      most,
      n: series.step.length,
      first: series.step[0],
      per: series.steps_per_point
    });
    this.warm = Math.ceil((of.steps.warmup_excluded || 0) / this.per);  // points
    this.parts = Array.from({length: this.n}, (_, i) => partsAt(series, i));
    this.spikes = new Set(spikesOf(of));
    this.other = new Map(of.steps.other.flatMap((work) => work.step.map((at) => [at, work])));
    this.holder = el('div', {class: 'picture'});
    this.picture = canvasOf(this.holder, height, (...to) => this.draw(...to), {
      class: 'strip',
      role: 'img',
      'aria-label': `time of ${plural(this.n, 'step')}; arrow keys choose a step`,
    });
    this.listen(this.picture.canvas);
  }

  x(step) { return this.view.x(step, AXIS_LEFT, this.span); }

  y(value) {
    return this.floor - (Math.min(value, this.high) / this.high) * (this.floor - STRIP_TOP);
  }

  begin(i) { return this.first + i * this.per; }

  // Points in view; if several fall on one pixel, the slowest of them.
  pointsInView() {
    const {view, per, series} = this, slots = new Map();
    const from = Math.max(0, Math.floor((view.from - this.first) / per));
    const to = Math.min(this.n, Math.ceil((view.to - this.first) / per));
    for (let i = from; i < to; i++) {
      const slot = Math.floor(this.x(this.begin(i))), other = slots.get(slot);
      if (other === undefined || (series.wall_ms[i] || 0) > (series.wall_ms[other] || 0))
        slots.set(slot, i);
    }
    return [...slots.values()];
  }

  draw(context, width, tall) {
    this.span = width - AXIS_LEFT - AXIS_RIGHT;
    this.floor = tall - STRIP_BOTTOM;
    const points = this.pointsInView(), steady = points.filter((i) => i >= this.warm);
    const highest =
        extent((steady.length ? steady : points).map((i) => this.series.wall_most_ms[i]));
    this.high = this.most || (highest && highest[1] > 0 ? highest[1] * 1.06 : 1);
    this.wide = Math.max(1, (this.span / (this.view.to - this.view.from)) * this.per);
    this.gap = this.wide > 6 ? 1 : 0;
    // Whole pixels, so that neighbours neither overlap nor leave a gap.
    this.left = (i) => Math.round(this.x(this.begin(i)));
    this.breadth = (i) => Math.max(1, this.left(i + 1) - this.left(i) - this.gap);
    this.drawAxes(context, tall);
    context.save();
    context.beginPath();
    context.rect(AXIS_LEFT, 0, this.span, tall);
    context.clip();
    this.drawPoints(context, points);
    this.drawMarks(context, points);
    context.restore();
  }

  drawAxes(context, tall) {
    context.textAlign = 'right';
    for (const at of ticks(0, this.high, 4)) {
      context.fillStyle = colour('grid');
      context.fillRect(AXIS_LEFT, Math.round(this.y(at)), this.span, 1);
      context.fillStyle = colour('ink2');
      context.fillText(at === 0 ? '0' : ms(at), AXIS_LEFT - 6, this.y(at) + 4);
    }
    context.textAlign = 'center';
    for (const at of wholeTicks(Math.max(this.view.from, this.first), this.view.to,
                                Math.max(2, this.span / 90)))
      if (at < this.view.to) context.fillText(String(at), this.x(at + 0.5 * this.per), tall - 8);
  }

  // One colour after the other, because a change of colour costs more than a bar.
  drawPoints(context, points) {
    const below = new Map();
    const known = points.filter((i) => i >= this.warm && isKnown(this.parts[i].compute));
    for (const part of PARTS) {
      context.fillStyle = colour(part.shade);
      for (const i of known) {
        const value = this.parts[i][part.key], under = below.get(i) || 0;
        if (!(value > 0)) continue;
        const top = this.y(under + value);
        context.fillRect(this.left(i), top, this.breadth(i), Math.max(0, this.y(under) - top));
        below.set(i, under + value);
      }
    }
    for (const i of points) {
      const wall = this.series.wall_ms[i];
      if (below.has(i) || !isKnown(wall)) continue;
      context.fillStyle = colour(i < this.warm ? 'faint' : 'accent');
      context.fillRect(this.left(i), this.y(wall), this.breadth(i), this.floor - this.y(wall));
    }
    context.fillStyle = colour('ink');
    for (const i of points)
      if (isKnown(this.series.wall_most_ms[i]))
        context.fillRect(this.left(i), this.y(this.series.wall_most_ms[i]) - 1, this.breadth(i),
                         1.5);
  }

  drawMarks(context, points) {
    context.fillStyle = colour('ink');
    for (const i of points) {
      if (!this.spikes.has(this.series.step[i])) continue;
      const at = this.x(this.begin(i)) + this.wide / 2;
      context.beginPath();
      context.moveTo(at - 4, STRIP_TOP - 6);
      context.lineTo(at + 4, STRIP_TOP - 6);
      context.lineTo(at, STRIP_TOP + 2);
      context.fill();
    }
    context.fillStyle = colour('accent');
    for (const i of points)
      if (this.other.has(this.series.step[i]))
        context.fillRect(this.left(i), this.floor + 1, Math.max(3, this.breadth(i)), 4);
    if (this.warm) {
      const end = this.x(this.begin(this.warm));
      context.fillStyle = colour('ink2');
      context.fillRect(Math.round(end), STRIP_TOP, 1, this.floor - STRIP_TOP);
      context.textAlign = 'left';
      if (end - AXIS_LEFT > 60) context.fillText('warm-up', AXIS_LEFT + 4, STRIP_TOP + 10);
    }
    const changed = this.of.steps.changed_step;
    if (isKnown(changed)) {
      const at = Math.round(this.x(changed));
      context.fillStyle = colour('critical');
      context.fillRect(at - 1, 0, 2, this.floor);
      context.textAlign = 'left';
      context.fillText('slower from here', at + 4, STRIP_TOP + 10);
    }
    const chosen = this.of === report ? stepIndex.get(focusOn.step) : undefined;
    if (chosen === undefined) return;
    context.strokeStyle = colour('ink');
    context.lineWidth = 2;
    context.strokeRect(this.x(this.begin(chosen)), STRIP_TOP, Math.max(2, this.wide - this.gap),
                       this.floor - STRIP_TOP);
  }

  pointAt(step) { return nth(Math.floor((step - this.first) / this.per), this.n); }

  choose(i) {
    const point = nth(i, this.n), {view} = this;
    lookAt(this.series.step[point], focusOn.rank);
    const at = this.begin(point), half = (view.to - view.from) / 2;
    if (at < view.from || at >= view.to) view.set(at - half, at + half);
  }

  listen(canvas) {
    const chooses = this.of === report;
    const stepUnder = (event) => valueAt(event.clientX - canvas.getBoundingClientRect().left);
    const valueAt = moveBy(canvas, this.view, AXIS_LEFT, AXIS_RIGHT,
                           chooses ? (event) => this.choose(this.pointAt(stepUnder(event))) : null);
    canvas.addEventListener('keydown', (event) => {
      const now = stepIndex.get(focusOn.step), at = now === undefined ? -1 : now;
      const keys = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.n - 1};
      if (!chooses || keys[event.key] === undefined) return;
      event.preventDefault();
      this.choose(keys[event.key]);
    });
    canvas.addEventListener('pointermove',
                            (event) => this.tell(event, this.pointAt(stepUnder(event))));
    canvas.addEventListener('pointerleave', hideTip);
    this.view.listeners.push(this.picture.redraw);
    onFocus(this.picture.redraw);
  }

  tell(event, i) {
    const s = this.series, other = this.other.get(s.step[i]);
    showTip(event, [
      `step ${s.step[i]}` + (i < this.warm ? ' (warm-up)' : ''),
      other ? ['besides training', `${ms(other.ms)}, ${other.what}`] : null,
      ['mean over ranks', ms(s.wall_ms[i])],
      ['fastest to slowest', ms(s.wall_least_ms[i]) + ' to ' + ms(s.wall_most_ms[i])],
      isKnown(s.slowest_rank[i]) ? ['slowest', 'rank ' + s.slowest_rank[i]] : null,
      ...partLines(this.parts[i]),
    ]);
  }
}

const stripOf = (of, view, height, most) => new Strip(of, view, height, most).holder;

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
  const known = partsOf(partsAt(stepSeries, i)).filter((part) => part.value > 0);
  if (known.length) return sumBar(known, sumOf(known.map((part) => part.value)), ms);
  const warm = stepSeries.step[i] - stepSeries.step[0] < (report.steps.warmup_excluded || 0);
  return el('p', {class: 'dim'},
            'The parts of this step are not known' + (warm ? ': it is warm-up.' : '.'));
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
                         ['rank', 'rank', (_, row) => rowName(row), {numeric: true, head: true}],
                         ...known.map((key) => ([
                                        MEASURES[key].name, (row) => at(row, key),
                                        MEASURES[key].say, {numeric: true}
                                      ])),
                       ],
                       table.rows, {caption: 'step ' + focusOn.step}));
}

function stepInNumbers() {
  const box = el('div', {class: 'chosen', 'aria-live': 'polite'});
  const draw = () => {
    const i = stepIndex.get(focusOn.step);
    if (i === undefined) {
      box.replaceChildren(el('p', {class: 'dim hint'},
                             'Click a step, or use the arrow keys on the ' +
                                 'strip, to see its parts.'));
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
  const parts = PARTS.map((part) => ([part.name, (i) => partsAt(stepSeries, i)[part.key], ms]));
  const indices = stepSeries.step.map((_, i) => i);
  return numbersOf(
      'all steps in numbers',
      () => tableOf(
          [
            ['step', at('step'), String, {head: true}],
            ['mean', at('wall_ms'), ms],
            ['slowest rank', at('slowest_rank'), orUnknown(String), {numeric: true}],
            ['it took', at('wall_most_ms'), ms],
            ...parts,
          ],
          indices, {caption: 'steps', onrow: (i) => lookAt(stepSeries.step[i], focusOn.rank)}));
}

panel({
  id: 'steps',
  sections: ['steps', 'phases'],
  body: () => {
    const s = report.steps, of = stepSeries.steps_per_point;
    const shown = [];
    if (stepSeries.step.length > 1)
      shown.push(stripOf(report, stepView, 170), legend([
                   ...partsShown(stepSeries), {name: 'slowest rank', shade: 'inkline'},
                   ...(s.other.length ? [{name: 'below: not only training', shade: 'accent'}] : [])
                 ]),
                 el('p', {class: 'dim'},
                    of > 1 ? `of each ${of} steps the slowest is shown \u00b7 ` : '', HOW_TO_MOVE),
                 stepInNumbers());
    shown.push(phasesBar());
    if (stepSeries.step.length) shown.push(allSteps());
    return shown;
  },
});

function phasesBar() {
  const section = report.sections.find((one) => one.name === 'phases');
  if (!section || section.unknown) return null;
  const parts = data.phases.map(
      (name) => ({name, value: report.phases[name + '_ms'], shade: 'phase-' + name}));
  return el('section', {}, el('h3', {}, 'Phases on the host'),
            sumBar(parts, sumOf(parts.map((part) => part.value)), ms));
}
