// SPDX-License-Identifier: MIT
// The timeline of selected steps: lanes of each rank, the critical path through them, and lines
// between the members of a collective. Times are ns since the first piece that is shown.

const timeline = data.timeline || null;
const NO_PIECE = -1;

const KIND = timeline ? timeline.kinds : {};
const LANE = timeline ? timeline.lane_kinds : {};
const SHADE_OF_KIND = {
  [KIND.step]: 'faint',
  [KIND.launch]: 'launch',
  [KIND.collCall]: 'pipeline',
  [KIND.sync]: 'idle',
  [KIND.commWait]: 'wait',
  [KIND.op]: 'host',
  [KIND.call]: 'transfer',
  [KIND.kernel]: 'compute',
  [KIND.copy]: 'copy',
  [KIND.fill]: 'input',
  [KIND.collective]: 'transfer'
};
const SHADE_OF_PHASE = [
  [/forward/i, 'pipeline'], [/backward/i, 'compute'], [/optim/i, 'launch'],
  [/data|input|load/i, 'input']
];

// The first index of a sorted array with a value of at least `value`.
function lowerBound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// One rank, with typed arrays in place of the lists in the page's data.
function rankOf(raw) {
  const s = raw.spans, n = s.start.length;
  const start = new Float64Array(n), end = new Float64Array(n);
  let at = 0;
  for (let i = 0; i < n; i++) {
    at += s.start[i];
    start[i] = at;
    end[i] = at + s.length[i];
  }
  const rank = {
    rank: raw.rank,
    host: raw.host,
    device: raw.device,
    why: raw.why_empty,
    n,
    start,
    end,
    lane: s.lane,
    row: s.row,
    kind: s.kind,
    name: s.name,
    category: s.category,
    launch: s.launch,
    member: new Map(s.members.map(([i, key, wait]) => [i, {key, wait}])),
    bytes: new Map(s.bytes),
    lanes: raw.lanes.map(([name, kind, rows]) =>
                             ({name: timeline.texts[name], kind, rows, pieces: []})),
  };
  for (let i = 0; i < n; i++) rank.lanes[rank.lane[i]].pieces.push(i);
  // The latest end of this and all earlier pieces of the lane, to find the first piece in view.
  for (const lane of rank.lanes) {
    let reach = -Infinity;
    lane.reach = Float64Array.from(lane.pieces, (i) => (reach = Math.max(reach, end[i])));
  }
  return rank;
}

function shadeOfPiece(rank, i) {
  if (rank.kind[i] !== KIND.phase) return SHADE_OF_KIND[rank.kind[i]] || 'accent';
  const name = timeline.texts[rank.name[i]];
  return (SHADE_OF_PHASE.find(([words]) => words.test(name)) || [null, 'idle'])[1];
}

const nsText = (ns) => seconds(ns / 1e9);
const nameOf = (rank, i) => timeline.texts[rank.name[i]] || 'not named';

// Facts about one piece, for the tip at the pointer and for the piece that was clicked.
function factsOfPiece(rank, i, origin) {
  const lane = rank.lanes[rank.lane[i]], category = timeline.texts[rank.category[i]];
  const list = [
    ['rank', isKnown(rank.rank) ? String(rank.rank) : UNKNOWN], ['on', lane.name],
    category ? ['is', category] : null, ['from', nsText(rank.start[i] - origin)],
    ['takes', rank.end[i] > rank.start[i] ? nsText(rank.end[i] - rank.start[i]) : 'not known']
  ];
  const member = rank.member.get(i);
  if (member) {
    if (isKnown(member.wait)) list.push(['of it wait for ranks', nsText(member.wait)]);
    const c = timeline.collectives[member.key];
    if (c) {
      list.push(['communicator', timeline.texts[c.comm]]);
      if (isKnown(c.bytes)) list.push(['size', bytes(c.bytes)]);
      if (isKnown(c.busbw_gbps)) list.push(['bus bandwidth', bandwidth(c.busbw_gbps)]);
      if (isKnown(c.members)) list.push(['members', count(c.members)]);
      if (c.algorithm) list.push(['algorithm', timeline.texts[c.algorithm]]);
    }
  }
  if (rank.bytes.has(i)) list.push(['bytes', bytes(rank.bytes.get(i))]);
  if (rank.launch[i]) {
    const call = i - rank.launch[i];
    list.push(['launched by', nameOf(rank, call)]);
    list.push(['launch to start', nsText(Math.max(0, rank.start[i] - rank.end[call]))]);
  }
  return list.filter(Boolean);
}

// The begin and end of each step that is shown, over all ranks.
function stepStretches(ranks) {
  const stretches = timeline.steps.map((step) => ({...step, from: Infinity, to: -Infinity}));
  for (const rank of ranks)
    for (const lane of rank.lanes) {
      if (lane.kind !== LANE.steps) continue;
      for (const i of lane.pieces) {
        const number = Number((/(\d+)\s*$/.exec(nameOf(rank, i)) || [])[1]);
        const stretch = stretches.find((s) => s.step === number);
        if (!stretch) continue;
        stretch.from = Math.min(stretch.from, rank.start[i]);
        stretch.to = Math.max(stretch.to, rank.end[i]);
      }
    }
  const found = stretches.filter((s) => s.to > s.from);
  return found.length ? found :
                        [{step: null, why: 'all that is shown', from: 0, to: timeline.length}];
}

const PIECE_TALL = 13;
const RANK_GAP = 8;
const HEAD_TALL = 15;       // the line of a rank with its name and the path
const TALLEST = 8000;       // largest height of the picture, pixels
const TIMELINE_LEFT = 132;  // room for names of lanes

class TimelinePicture {
  constructor() {
    this.ranks = timeline.ranks.map(rankOf);
    this.stretches = stepStretches(this.ranks);
    this.chosen = null;  // {rank, i}
    this.all = this.ranks.length <= 4;
    this.view = new View(0, 1, 1);
    this.holder = el('div', {class: 'picture tall', tabindex: -1});
    this.told = el('div', {class: 'chosen', 'aria-live': 'polite'},
                   el('p', {class: 'dim hint'}, 'Click a piece for its exact times.'));
    this.numbers = el('div');
    this.layOut();
    this.picture = canvasOf(this.holder, () => this.tall, (...to) => this.draw(...to), {
      class: 'timeline',
      role: 'img',
      'aria-label': `what ran when on ${plural(this.ranks.length, 'rank')}; arrow keys go from ` +
          'piece to piece',
    });
    this.listen();
    this.goToStep(this.stretches[this.typical()]);
  }

  // Shows the step that is selected elsewhere on the page, if the timeline has it.
  follow() {
    const at = this.stretches.findIndex((s) => s.step !== null && s.step === focusOn.step);
    if (at < 0 || this.stretches[at] === this.stretch) return;
    this.pick.querySelector(`[data-value="${at}"]`).click();
  }

  typical() {
    const at = this.stretches.findIndex((s) => /slowest|worst/.test(s.why));
    return at < 0 ? 0 : at;
  }

  goToStep(stretch) {
    this.stretch = stretch;
    const margin = (stretch.to - stretch.from) * 0.01;
    this.view.whole = [stretch.from - margin, stretch.to + margin];
    this.view.least = 200;
    this.view.from = stretch.from;  // so that set() sees a change and calls all listeners
    this.view.set(...this.view.whole);
    this.tellNumbers();
    this.picture.redraw();
  }

  // Places of the lanes: device lanes always, lanes of the host if there is room or on request.
  layOut() {
    let y = 4;
    this.places = [];
    this.hidden = 0;
    for (const rank of this.ranks) {
      const top = y;
      y += HEAD_TALL;
      const lanes = [];
      rank.lanes.forEach((lane, l) => {
        const host = lane.kind === LANE.calls || lane.kind === LANE.phases;
        if (!lane.pieces.length || lane.kind === LANE.steps || (host && !this.all)) return;
        if (y > TALLEST) {
          this.hidden++;
          return;
        }
        lanes.push({l, y, tall: lane.rows * PIECE_TALL});
        y += lane.rows * PIECE_TALL + 2;
      });
      this.places.push({rank, top, lanes, bottom: y});
      y += RANK_GAP;
    }
    this.tall = y + 22;
  }

  x(time) { return this.view.x(time, TIMELINE_LEFT, this.span); }

  draw(context, width, tall) {
    this.span = width - TIMELINE_LEFT - AXIS_RIGHT;
    const left = TIMELINE_LEFT;
    this.drawAxis(context, left, tall);
    for (const place of this.places) this.drawNames(context, place, left);
    context.save();
    context.beginPath();
    context.rect(left, 0, this.span, tall - 18);
    context.clip();
    this.fills = {};
    for (const place of this.places)
      for (const at of place.lanes) this.drawLane(context, place.rank, at);
    this.drawPath(context);
    this.drawTies(context);
    context.restore();
  }

  drawAxis(context, left, tall) {
    context.textAlign = 'center';
    for (const at of ticks(this.view.from - this.stretch.from, this.view.to - this.stretch.from,
                           Math.max(2, this.span / 120))) {
      const x = this.x(at + this.stretch.from);
      context.fillStyle = colour('grid');
      context.fillRect(Math.round(x), 0, 1, tall - 20);
      context.fillStyle = colour('ink2');
      context.fillText(at === 0 ? '0' : nsText(at), x, tall - 6);
    }
  }

  drawNames(context, place, left) {
    const {rank} = place;
    context.textAlign = 'left';
    context.fillStyle = colour('ink');
    context.fillText(isKnown(rank.rank) ? 'rank ' + rank.rank : 'rank unknown', 2, place.top + 11);
    context.fillStyle = colour('ink2');
    if (rank.why || !place.lanes.length)
      context.fillText(cutTo(rank.why || 'nothing to show', 90), left + 2, place.top + 11);
    context.textAlign = 'right';
    for (const {l, y} of place.lanes)
      context.fillText(cutTo(rank.lanes[l].name, 20), left - 6, y + 10);
    context.fillStyle = colour('grid');
    context.fillRect(0, place.bottom + RANK_GAP / 2 - 1, left + this.span, 1);
  }

  drawLane(context, rank, {l, y}) {
    const lane = rank.lanes[l], {from, to} = this.view;
    const scale = this.span / (to - from), drawn = new Float64Array(lane.rows).fill(-Infinity);
    let shade = null;
    for (let p = lowerBound(lane.reach, from); p < lane.pieces.length; p++) {
      const i = lane.pieces[p];
      if (rank.start[i] > to) break;
      const begin = this.x(rank.start[i]), end = Math.max(begin + 1, this.x(rank.end[i]));
      const row = rank.row[i];
      if (end < drawn[row] + 0.7 && end - begin < 1.5) continue;  // pixel already drawn
      drawn[row] = Math.max(drawn[row], end);
      const wanted = shadeOfPiece(rank, i);
      if (wanted !== shade) {
        shade = wanted;
        context.fillStyle = this.fills[shade] || (this.fills[shade] = colour(shade));
      }
      const top = y + row * PIECE_TALL, wide = end - begin > 3 ? end - begin - 0.6 : end - begin;
      context.fillRect(begin, top, wide, PIECE_TALL - 2);
      const member = rank.member.get(i);
      if (member && member.wait > 0) {
        context.fillStyle = colour('wait');
        context.fillRect(begin, top, Math.min(wide, member.wait * scale), PIECE_TALL - 2);
        shade = null;
      }
      if (end - begin > 46) {
        context.fillStyle = colour(wordsOn(member && member.wait > 0 ? 'wait' : wanted));
        context.textAlign = 'left';
        const room = Math.floor((end - Math.max(begin, TIMELINE_LEFT) - 6) / 6.2);
        if (room > 3)
          context.fillText(cutTo(nameOf(rank, i), room), Math.max(begin, TIMELINE_LEFT) + 3,
                           top + 9);
        shade = null;
      }
    }
  }

  // The stretches of the path above the lanes of their rank, and lines where it changes ranks.
  drawPath(context) {
    const place = new Map(this.places.map((p) => [p.rank.rank, p]));
    context.fillStyle = context.strokeStyle = colour('critical');
    context.lineWidth = 1.5;
    for (const path of timeline.paths) {
      let last = null;
      for (const [from, length, rank] of path) {
        const at = place.get(rank), begin = this.x(from), end = this.x(from + length);
        if (end < 0 || begin > this.span + 400) {
          last = rank;
          continue;
        }
        if (at) context.fillRect(begin, at.top + 5, Math.max(1, end - begin), 5);
        if (last !== null && last !== rank && at && place.get(last)) {
          context.beginPath();
          context.moveTo(begin, place.get(last).top + 7);
          context.lineTo(begin, at.top + 7);
          context.stroke();
        }
        last = rank;
      }
    }
  }

  placeOf(rank, i) {
    const place = this.places.find((p) => p.rank === rank);
    const lane = place && place.lanes.find(({l}) => l === rank.lane[i]);
    return lane ? lane.y + rank.row[i] * PIECE_TALL : null;
  }

  outline(context, rank, i) {
    const y = this.placeOf(rank, i);
    if (y === null) return null;
    const begin = this.x(rank.start[i]), end = this.x(rank.end[i]);
    context.strokeRect(begin - 1, y - 1, Math.max(3, end - begin + 1), PIECE_TALL);
    return {x: begin, y: y + PIECE_TALL / 2 - 1, end};
  }

  // The chosen piece, the other members of its collective, the call that launched it, and the work
  // that it launched.
  drawTies(context) {
    if (!this.chosen) return;
    const {rank, i} = this.chosen, member = rank.member.get(i);
    context.strokeStyle = colour('ink');
    context.lineWidth = 2;
    const here = this.outline(context, rank, i);
    context.lineWidth = 1.2;
    const tie = (there, x = there && there.x) => {
      if (!here || !there) return;
      context.beginPath();
      context.moveTo(here.x, here.y);
      context.lineTo(x, there.y);
      context.stroke();
    };
    if (member && member.key !== null)
      for (const other of this.ranks)
        for (const [k, m] of other.member)
          if (m.key === member.key && !(other === rank && k === i))
            tie(this.outline(context, other, k));
    if (rank.launch[i]) tie(this.outline(context, rank, i - rank.launch[i]));
    for (let k = i + 1; k < Math.min(rank.n, i + 4000); k++)
      if (rank.launch[k] && k - rank.launch[k] === i) tie(this.outline(context, rank, k));
  }

  pieceAt(event) {
    const box = this.picture.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const place = this.places.find((p) => y >= p.top && y < p.bottom + RANK_GAP);
    const at = place && place.lanes.find((lane) => y >= lane.y && y < lane.y + lane.tall);
    if (!at) return null;
    const lane = place.rank.lanes[at.l], row = Math.floor((y - at.y) / PIECE_TALL);
    const time = this.view.valueAt(x, TIMELINE_LEFT, this.span);
    const near = (this.view.to - this.view.from) / this.span;
    let found = NO_PIECE;
    for (let p = lowerBound(lane.reach, time - near); p < lane.pieces.length; p++) {
      const i = lane.pieces[p];
      if (place.rank.start[i] > time + near) break;
      if (place.rank.row[i] === row && place.rank.end[i] >= time - near) found = i;
    }
    return found === NO_PIECE ? null : {rank: place.rank, i: found};
  }

  choose(piece) {
    this.chosen = piece;
    this.told.replaceChildren();
    put(this.told, {},
        piece ?
            [
              el('h3', {}, cutTo(nameOf(piece.rank, piece.i), 300)),
              facts(factsOfPiece(piece.rank, piece.i, this.stretch.from)),
              el('p', {class: 'dim'},
                 `${whole(piece.rank.end[piece.i] - piece.rank.start[piece.i])} ns, from ` +
                     `${
                         whole(piece.rank.start[piece.i] -
                               this.stretch.from)} ns after the beginning of what is shown`),
            ] :
            [el('p', {class: 'dim hint'}, 'Click a piece for its exact times.')]);
    this.picture.redraw();
  }

  // Chooses the next piece of the lane, or the nearest piece of the lane below or above.
  step(along, across) {
    const lanes = this.places.flatMap((place) => place.lanes.map(({l}) => [place.rank, l]));
    if (!lanes.length) return;
    let at = this.chosen ? lanes.findIndex(([rank, l]) => rank === this.chosen.rank &&
                                               l === rank.lane[this.chosen.i]) :
                           -1;
    const time = this.chosen ? this.chosen.rank.start[this.chosen.i] : this.view.from;
    if (this.chosen && along) {
      const [rank, l] = lanes[at], pieces = rank.lanes[l].pieces;
      const next = pieces[pieces.indexOf(this.chosen.i) + along];
      if (next !== undefined) this.choose({rank, i: next});
    } else {
      at = nth(at + (across || 1), lanes.length);
      const [rank, l] = lanes[at], pieces = rank.lanes[l].pieces;
      const starts = pieces.map((i) => rank.start[i]);
      this.choose({rank, i: pieces[Math.min(pieces.length - 1, lowerBound(starts, time))]});
    }
    const start = this.chosen.rank.start[this.chosen.i], wide = this.view.to - this.view.from;
    if (start < this.view.from || start > this.view.to)
      this.view.set(start - wide / 2, start + wide / 2);
  }

  listen() {
    const canvas = this.picture.canvas;
    moveBy(canvas, this.view, TIMELINE_LEFT, AXIS_RIGHT,
           (event) => this.choose(this.pieceAt(event)));
    this.view.listeners.push(this.picture.redraw);
    canvas.addEventListener('pointermove', (event) => {
      const piece = this.pieceAt(event);
      if (!piece) return hideTip();
      return showTip(
          event,
          [nameOf(piece.rank, piece.i), ...factsOfPiece(piece.rank, piece.i, this.stretch.from)]);
    });
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('keydown', (event) => {
      const by = {ArrowRight: [1, 0],
                  ArrowLeft: [-1, 0],
                  ArrowDown: [0, 1],
                  ArrowUp: [0, -1]}[event.key];
      if (!by) return;
      event.preventDefault();
      this.step(...by);
    });
  }

  tellNumbers() {
    const rows = [];
    for (const rank of this.ranks)
      for (let i = 0; i < rank.n; i++)
        if (rank.kind[i] !== KIND.step && rank.end[i] > this.stretch.from &&
            rank.start[i] < this.stretch.to)
          rows.push({rank, i, takes: rank.end[i] - rank.start[i]});
    rows.sort((a, b) => b.takes - a.takes);
    this.numbers.replaceChildren(
        numbersOf('its longest pieces in numbers',
                  () =>
                      tableOf(
                          [
                            ['piece', (p) => nameOf(p.rank, p.i), null, {head: true, wide: true}],
                            ['rank', (p) => p.rank.rank, orUnknown(String), {numeric: true}],
                            ['on', (p) => p.rank.lanes[p.rank.lane[p.i]].name],
                            [
                              'from', (p) => p.rank.start[p.i] - this.stretch.from,
                              nsText, {numeric: true}
                            ],
                            ['takes', 'takes', nsText, {numeric: true}],
                          ],
                          rows.slice(0, 400), {
                            caption: `the longest of ${plural(rows.length, 'piece')}`,
                            onrow: (p) => this.choose(p)
                          })));
  }

  controls() {
    const steps = this.stretches.map(
        (s, i) => [String(i),
                   s.step === null ? s.why : `step ${s.step}` + (s.why ? ` (${s.why})` : '')]);
    this.pick = choice('show', steps, String(this.typical()),
                       (value) => this.goToStep(this.stretches[Number(value)]));
    onFocus(() => this.follow());
    const hosts = this.ranks.some(
        (rank) => rank.lanes.some((lane) => lane.kind === LANE.calls || lane.kind === LANE.phases));
    const lanes = hosts ? choice('lanes', [['all', 'all'], ['device', 'devices and collectives']],
                                 this.all ? 'all' : 'device',
                                 (value) => {
                                   this.all = value === 'all';
                                   this.layOut();
                                   this.picture.redraw();
                                 }) :
                          null;
    return el('div', {class: 'controls'}, this.pick, lanes);
  }

  // The meaning of the colours of all kinds that occur.
  key() {
    const kinds = new Set(this.ranks.flatMap((rank) => rank.kind));
    const waits = this.ranks.some((rank) => [...rank.member.values()].some((m) => m.wait > 0));
    return legend([
      kinds.has(KIND.kernel) && {name: 'compute', shade: 'compute'},
      kinds.has(KIND.collective) && {name: 'transfer', shade: 'transfer'},
      (waits || kinds.has(KIND.commWait)) && {name: 'wait for ranks', shade: 'wait'},
      kinds.has(KIND.call) &&
          {name: 'calls, to the end of the record where they are pending', shade: 'transfer'},
      kinds.has(KIND.copy) && {name: 'copies', shade: 'copy'},
      kinds.has(KIND.launch) && {name: 'launches', shade: 'launch'},
      kinds.has(KIND.op) && {name: 'operators', shade: 'host'},
      kinds.has(KIND.sync) && {name: 'waits for the GPU', shade: 'idle'},
      timeline.paths.length > 0 && {name: 'critical path, above the lanes', shade: 'critical'},
    ].filter(Boolean));
  }
}

panel({
  id: 'timeline',
  title: 'Timeline',
  applies: () => !before && timeline !== null && timeline.ranks.length > 0,
  body: () => {
    const picture = new TimelinePicture();
    return [
      picture.controls(),
      picture.holder,
      picture.key(),
      picture.hidden ? note(`${plural(picture.hidden, 'lane')} more do not fit here.`) : null,
      timeline.path_reason && timeline.steps.length ?
          el('p', {class: 'dim'}, 'no critical path: ' + timeline.path_reason) :
          null,
      timeline.left_out.map((line) => el('p', {class: 'dim'}, line)),
      el('p', {class: 'dim hint'}, HOW_TO_MOVE, ' \u00b7 arrow keys go from piece to piece'),
      picture.told,
      picture.numbers,
    ];
  },
});
