// SPDX-License-Identifier: MIT
// The page is loaded anew as often as it is written. What is kept from one to the next is the
// column that the ranks are sorted by, and since when the page has been the same.

const body = document.body;
const interval = Number(body.dataset.interval) * 1000;
const LOOKS = 4; // a page that stays the same for so many is old

// In the address, behind the #: it survives loading, and nothing is stored.
const kept = new URLSearchParams(location.hash.slice(1));

function keep(name, value) {
  kept.set(name, value);
  location.replace('#' + kept);
}

// By this browser's clock alone: that of the machine with the job may be another.
function sayIfOld() {
  const written = body.dataset.written;
  if (kept.get('written') !== written) {
    keep('written', written);
    keep('since', String(Date.now()));
    return;
  }
  const seconds = Math.round((Date.now() - Number(kept.get('since'))) / 1000);
  if (seconds * 1000 < LOOKS * interval || body.dataset.over === 'yes') {
    return;
  }
  const old = document.getElementById('old');
  old.textContent = `This page has not been written for ${seconds} s: tscope-top no longer runs, ` +
    'or this copy is not replaced. What follows is what it last saw.';
  old.hidden = false;
}

function valueOf(row, column) {
  const value = row.cells[column].dataset.value;
  return value === undefined ? -Infinity : Number(value);
}

// The largest first; what is not known, last. The rank's own column the other way round.
function sortBy(column) {
  const rows = [...document.querySelectorAll('tbody tr')];
  const sign = column === 0 ? -1 : 1;
  const order = (a, b) => sign * (valueOf(b, column) - valueOf(a, column));
  rows.sort((a, b) => order(a, b) || valueOf(a, 0) - valueOf(b, 0));
  document.querySelector('tbody').append(...rows);
  document.querySelectorAll('th').forEach((heading, at) => {
    if (at === column) {
      heading.setAttribute('aria-sort', column === 0 ? 'ascending' : 'descending');
    } else {
      heading.removeAttribute('aria-sort');
    }
  });
}

document.querySelectorAll('th').forEach((heading, column) => {
  const button = heading.querySelector('button');
  if (button) {
    button.addEventListener('click', () => {
      keep('sorted', String(column));
      sortBy(column);
    });
  }
});
if (kept.has('sorted') && document.querySelector('tbody')) {
  sortBy(Number(kept.get('sorted')));
}
sayIfOld();
document.documentElement.dataset.ready = 'yes';
setTimeout(() => location.reload(), interval);
