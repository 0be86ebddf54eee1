// SPDX-License-Identifier: MIT
// Tables that sort by any column, filter by a word, and show more rows on request.
//
// A column is [title, member or row => value, (value, row) => text, more]; more is {bar: member or
// row => share 0..1, shade, head, wide, mark: row => element, numeric: where `say` does not tell}.

const ROWS_AT_FIRST = 12;

const memberOf = (of) => (typeof of === 'string' ? (row) => row[of] : of);

function columnOf([name, of, say, more = {}]) {
  const numbers = [
    bandwidth, bytes, count, memory, ms, number, percent, probability, seconds, signedPercent, us,
    String
  ];
  return {
    numeric: numbers.includes(say),
    ...more,
    name,
    of: memberOf(of),
    say,
    bar: memberOf(more.bar)
  };
}

function compareValues(a, b) {
  if (!isKnown(a)) return isKnown(b) ? 1 : 0;
  if (!isKnown(b)) return -1;
  return typeof a === 'number' ? b - a : String(a).localeCompare(String(b));
}

const said = (column, row) =>
    String(column.say ? column.say(column.of(row), row) : orUnknown(String)(column.of(row)));

function tableOf(titled, rows, options = {}) {
  // As in the text report, a column without known values is left out.
  const says = (column) =>
      column.head || rows.some((row) => said(column, row) !== UNKNOWN && said(column, row) !== '');
  const columns = titled.map(columnOf).filter(says), caption = options.caption || 'table';
  let shown = options.first || ROWS_AT_FIRST, sorted = null, turned = false, word = '', near = 0;
  const body = el('tbody'), more = el('div', {class: 'more'});
  const heads =
      columns.map((column, i) => el('th', {scope: 'col', class: column.numeric ? 'number' : null},
                                    el('button', {type: 'button', onclick: () => sortBy(i)},
                                       column.name, el('span', {class: 'arrow'}))));
  const text =
      rows.map((row) => columns.map((column) => said(column, row)).join(' ').toLowerCase());

  function cell(column, row) {
    const words = said(column, row);
    const shownWords = cutTo(words, column.wide ? 240 : 90);
    const td = el(column.head ? 'th' : 'td', {
      class: [
        column.numeric  ? 'number' :
            column.wide ? 'wide' :
                          null,
        words === UNKNOWN ? 'dim' : null
      ].filter(Boolean)
                 .join(' ') ||
          null,
      scope: column.head ? 'row' : null,
      title: shownWords.length < clean(words).length || column.wide ? cutTo(words, 2000) : null,
    });
    if (column.bar) {
      const share = column.bar(row);
      td.append(el('span', {class: 'meter', 'aria-hidden': 'true'}, el('i', {
                     class: column.shade || null,
                     css: {width: (100 * clamp(share || 0, 0, 1)).toFixed(1) + '%'}
                   })));
    }
    td.append(column.mark ? column.mark(row) || '' : '',
              ...(column.bar ? [el('span', {class: 'beside'}, shownWords)] : linked(shownWords)));
    return td;
  }

  function draw() {
    let order = rows.map((_, i) => i);
    if (word) order = order.filter((i) => text[i].includes(word));
    if (sorted !== null) {
      const column = columns[sorted];
      order.sort((a, b) =>
                     (turned ? -1 : 1) * compareValues(column.of(rows[a]), column.of(rows[b])) ||
                     a - b);
    }
    near = order.length;
    body.replaceChildren(...order.slice(0, shown).map((i) => {
      const tr = el('tr', {class: options.mark && options.mark(rows[i]) ? 'marked' : null},
                    columns.map((column) => cell(column, rows[i])));
      if (options.onrow) {
        tr.classList.add('can');
        tr.tabIndex = 0;
        tr.addEventListener('click', () => options.onrow(rows[i]));
        tr.addEventListener('keydown', (event) => {
          if (event.key === 'Enter') options.onrow(rows[i]);
        });
      }
      return tr;
    }));
    heads.forEach((head, i) => {
      if (i === sorted)
        head.setAttribute('aria-sort', turned ? 'ascending' : 'descending');
      else
        head.removeAttribute('aria-sort');
    });
    more.replaceChildren();
    if (near > shown)
      more.append(el('button', {
                    type: 'button',
                    onclick: () => {
                      shown += 50;
                      draw();
                    }
                  },
                     `show ${Math.min(50, near - shown)} more of ${count(near - shown)}`),
                  el('button', {
                    type: 'button',
                    onclick: () => {
                      shown = Infinity;
                      draw();
                    }
                  },
                     'all'));
    if (word)
      more.append(el('span', {class: 'dim'}, `${count(near)} of ${count(rows.length)} rows`));
  }

  function sortBy(i) {
    turned = sorted === i ? !turned : false;
    sorted = i;
    draw();
  }

  const filter = rows.length > 6 ? el('input', {
    type: 'search',
    placeholder: 'filter',
    'aria-label': 'filter ' + caption,
    oninput: (event) => {
      word = event.target.value.trim().toLowerCase();
      draw();
    },
  }) :
                                   null;
  draw();
  window.addEventListener('beforeprint', () => {
    shown = Math.max(shown, 40);
    draw();
  });
  return el('div', {class: 'table'},
            el('div', {class: 'tablehead'}, el('span', {class: 'caption'}, caption), filter),
            el('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption},
               el('table', {}, el('thead', {}, el('tr', {}, heads)), body)),
            more);
}

// A table with the numbers of a picture, closed at first.
function numbersOf(summary, make) {
  const details = el('details', {class: 'numbers'}, el('summary', {}, summary));
  let made = false;
  function open() {
    if (!made) {
      made = true;
      details.append(make());
    }
  }
  details.addEventListener('toggle', () => {
    if (details.open) open();
  });
  return details;
}
