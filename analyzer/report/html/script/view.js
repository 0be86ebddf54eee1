// SPDX-License-Identifier: MIT
// The visible part of an axis, which wheel, drag and keys change. Pictures that share a view move
// together.

// Margins in pixels, the same for all pictures that share an axis.
const AXIS_LEFT = 84;
const AXIS_RIGHT = 14;

class View {
  constructor(from, to, least) {
    Object.assign(this, {whole: [from, to], from, to, least, listeners: []});
  }

  set(from, to) {
    const [low, high] = this.whole;
    let span = Math.min(high - low, Math.max(this.least, to - from));
    if (!Number.isFinite(span)) span = high - low;
    from = Math.min(Math.max(low, from), high - span);
    if (from === this.from && from + span === this.to) return;
    this.from = from;
    this.to = from + span;
    for (const listener of this.listeners) listener();
  }

  zoom(factor, at) { this.set(at - (at - this.from) * factor, at + (this.to - at) * factor); }
  pan(share) {
    const by = (this.to - this.from) * share;
    this.set(this.from + by, this.to + by);
  }
  // In a picture whose axis begins at `left` and is so many pixels wide: where a value is, and
  // back.
  x(value, left, span) { return left + ((value - this.from) / (this.to - this.from)) * span; }
  valueAt(x, left, span) { return this.from + ((x - left) / span) * (this.to - this.from); }
  reset() { this.set(...this.whole); }
  get zoomed() { return this.from > this.whole[0] || this.to < this.whole[1]; }
}

// The wheel zooms at the pointer, and dragging moves. The wheel needs a modifier key, or a click on
// the picture first; without these it scrolls the page. left and right are margins in pixels.
function moveBy(canvas, view, left, right, onclick) {
  let drag = null, moved = false, touches = new Map();
  const span = () => Math.max(1, canvas.clientWidth - left - right);
  const valueAt = (x) => view.valueAt(x, left, span());
  const place = (event) => event.clientX - canvas.getBoundingClientRect().left;
  canvas.addEventListener('wheel', (event) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!sideways &&
        !(event.ctrlKey || event.metaKey || event.shiftKey || document.activeElement === canvas))
      return;
    event.preventDefault();
    if (sideways)
      view.pan(event.deltaX / span());
    else
      view.zoom(Math.exp(clamp(event.deltaY, -60, 60) * 0.004), valueAt(place(event)));
  }, {passive: false});
  canvas.addEventListener('pointerdown', (event) => {
    touches.set(event.pointerId, event.clientX);
    drag = {x: event.clientX, from: view.from, to: view.to};
    moved = false;
    try {
      canvas.setPointerCapture(event.pointerId);
    } catch (error) { /* the pointer has left */
    }
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!drag) return;
    if (touches.size === 2) {
      const before2 = [...touches.values()];
      touches.set(event.pointerId, event.clientX);
      const now = [...touches.values()];
      const was = Math.abs(before2[0] - before2[1]), is = Math.abs(now[0] - now[1]);
      if (was > 4 && is > 4)
        view.zoom(was / is, valueAt((now[0] + now[1]) / 2 - canvas.getBoundingClientRect().left));
      moved = true;
      return;
    }
    if (Math.abs(event.clientX - drag.x) > 3) moved = true;
    if (!moved) return;
    const by = ((drag.x - event.clientX) / span()) * (drag.to - drag.from);
    view.set(drag.from + by, drag.to + by);
  });
  const up = (event) => {
    touches.delete(event.pointerId);
    if (drag && !moved && event.type === 'pointerup' && onclick) onclick(event);
    drag = null;
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('dblclick', () => view.reset());
  const tell = () => {
    canvas.dataset.from = view.from;
    canvas.dataset.to = view.to;
  };
  view.listeners.push(tell);
  tell();
  canvas.addEventListener('keydown', (event) => {
    const middle = (view.from + view.to) / 2;
    const does = {
      '+': () => view.zoom(0.5, middle),
      '=': () => view.zoom(0.5, middle),
      '-': () => view.zoom(2, middle),
      0: () => view.reset(),
      w: () => view.zoom(0.5, middle),
      s: () => view.zoom(2, middle),
      a: () => view.pan(-0.25),
      d: () => view.pan(0.25),
    }[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    does();
  });
  return valueAt;
}

const HOW_TO_MOVE = 'drag to move, wheel (once clicked) or + and \u2212 to zoom, 0 for all';
