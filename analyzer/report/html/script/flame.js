// SPDX-License-Identifier: MIT
// Flame graphs with the outermost frame on top: below a frame is what it calls, and the width of a
// frame is its cost with all that it calls. For the keyboard the frames are a tree: one of them has
// the focus, and arrow keys move to callers, callees and siblings.
//
// nodes, in depth-first order: [{depth, name, shade, value, tip: [line or [label, value],
// ...]}].

const FLAME_ROW = 22;
const FLAME_LEAST = 0.0008;  // of the width; narrower frames are shown only after zooming in

// The tree of the nodes: parent and children of each, and the end of its subtree in the list.
function flameTree(nodes) {
  const open = [], tree = nodes.map((node) => ({node, parent: null, children: []}));
  for (const here of tree) {
    open.length = Math.min(open.length, here.node.depth);
    here.parent = open[open.length - 1] || null;
    if (here.parent) here.parent.children.push(here);
    open.push(here);
  }
  return tree;
}

class Flame {
  constructor(label, say, words) {
    this.say = say;
    this.words = words;  // for the cost of a frame in all, and, if it means something, of itself
    this.told = el('div', {class: 'chosen', 'aria-live': 'polite'});
    this.boxes = el('div', {class: 'frames', role: 'tree', 'aria-label': label});
    this.boxes.addEventListener('keydown', (event) => this.key(event));
    this.element = el('div', {class: 'picture'}, this.boxes, this.told);
  }

  show(nodes) {
    this.tree = flameTree(nodes);
    this.roots = this.tree.filter((here) => !here.parent);
    this.total = sumOf(this.roots.map((root) => root.node.value));
    this.zoom = this.chosen = null;
    this.draw();
  }

  // The callers of the frame that is zoomed to stay above it, as wide as the picture.
  draw() {
    const boxes = [];
    this.deepest = 0;
    this.drawn = new Map();
    const above = [];
    for (let at = this.zoom && this.zoom.parent; at; at = at.parent) above.unshift(at);
    for (const here of above) boxes.push(this.box(here, 0, 1, 'above'));
    this.place(this.zoom ? [this.zoom] : this.roots, 0, boxes,
               this.zoom ? this.zoom.node.value : this.total);
    const first = this.drawn.get(this.chosen) || boxes[0];
    if (first) first.tabIndex = 0;
    this.boxes.style.setProperty('height', (this.deepest + 1) * FLAME_ROW + 'px');
    this.boxes.replaceChildren(...boxes);
    this.tell();
  }

  place(list, x, boxes, whole) {
    for (const here of list) {
      const wide = whole > 0 ? here.node.value / whole : 0;
      if (wide >= FLAME_LEAST) {
        boxes.push(this.box(here, x, wide, null));
        this.place(here.children, x, boxes, whole);
      }
      x += wide;
    }
  }

  box(here, x, wide, more) {
    const node = here.node;
    this.deepest = Math.max(this.deepest, node.depth);
    const box = el('div', {
      class:
          ['frame', node.shade, more, here === this.chosen ? 'looked' : null].filter(Boolean).join(
              ' '),
      role: 'treeitem',
      tabindex: -1,
      'aria-level': node.depth + 1,
      'aria-selected': here === this.chosen ? 'true' : 'false',
      'aria-label': `${cutTo(node.name, 200)}, ${this.say(node.value)}, ${this.share(node)}`,
      css: {
        left: (100 * x).toFixed(4) + '%',
        width: (100 * wide).toFixed(4) + '%',
        top: node.depth * FLAME_ROW + 'px'
      },
      onclick: () => {
        this.chosen = here;
        this.zoom = this.zoom === here ? here.parent : here;
        this.draw();
      }
    },
                   cutTo(node.name, 200));
    this.drawn.set(here, box);
    return withTip(box, () => [node.name, ...this.facts(here)]);
  }

  share(node) { return percent(this.total > 0 ? node.value / this.total : null) + ' of all'; }

  facts(here) {
    const own = here.node.value - sumOf(here.children.map((child) => child.node.value));
    return [
      [this.words.all, `${this.say(here.node.value)}, ${this.share(here.node)}`],
      ...(this.words.own ? [[this.words.own, this.say(Math.max(0, own))]] : []), ...here.node.tip
    ];
  }

  tell() {
    const here = this.chosen;
    this.told.replaceChildren(...(
        here ?
            [
              el('h3', {}, cutTo(here.node.name, 400)),
              facts(this.facts(here).filter(Array.isArray))
            ] :
            [el('p', {class: 'dim hint'},
                'click a frame to zoom in, click again to go back; arrow keys go from frame to ' +
                    'frame, Enter zooms in, 0 shows all')]));
  }

  // Moves to the nearest frame that is drawn; sideways only among frames of one caller.
  key(event) {
    const here = this.chosen || this.zoom || this.roots[0];
    if (!here) return;
    const shown = (list) => list.filter((one) => this.drawn.has(one));
    const beside = shown(here.parent ? here.parent.children : this.roots),
          at = beside.indexOf(here);
    let to = null;
    if (event.key === 'ArrowDown')
      to = this.chosen ? shown(here.children)[0] : here;
    else if (event.key === 'ArrowUp')
      to = here.parent;
    else if (event.key === 'ArrowRight')
      to = beside[at + 1];
    else if (event.key === 'ArrowLeft')
      to = beside[at - 1];
    else if (event.key === 'Enter' || event.key === ' ')
      this.zoom = this.zoom === here ? here.parent : (to = here);
    else if (event.key === '0' || event.key === 'Escape')
      this.zoom = null, to = here;
    else
      return;
    event.preventDefault();
    event.stopPropagation();
    this.chosen = to || here;
    this.draw();
    const box = this.drawn.get(this.chosen);
    if (box) box.focus({preventScroll: true});
  }
}
