// SPDX-License-Identifier: MIT
// The page's data: {tool, report, before?, timeline?, parts, phases, marks, units, shades}.
// `report` is the document of docs/outputs/report-json.md; lists of objects with the same fields
// have the names once. The last five are from tables: report/parts.def, report/marks.def,
// base/units.def, report/html/shades.def.

function unpacked(value) {
  if (Array.isArray(value)) {
    if (value.length && typeof value[0] === 'object')
      for (let i = 0; i < value.length; i++) value[i] = unpacked(value[i]);
    return value;
  }
  if (value === null || typeof value !== 'object') return value;
  if (value._columns && value._rows)
    return value._rows.map((row) => {
      const object = {};
      value._columns.forEach((column, i) => {
        object[column] = unpacked(row[i]);
      });
      return object;
    });
  for (const key of Object.keys(value)) value[key] = unpacked(value[key]);
  return value;
}

const data = unpacked(JSON.parse(document.getElementById('data').textContent));
const report = data.report;
const before = data.before || null;

// Strings from traces must have no effect on the page: characters that change the direction of text
// or move a cursor are shown as visible codes.
// eslint-disable-next-line no-control-regex
const UNSEEN =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function clean(text) {
  return String(text).replace(
      UNSEEN, (c) => '\u27e8' + c.codePointAt(0).toString(16).padStart(4, '0') + '\u27e9');
}

function cutTo(text, limit) {
  const shown = clean(text);
  return shown.length > limit ? shown.slice(0, limit - 1) + '\u2026' : shown;
}

// As CLAMP() in C. Of a list, `nth` is the index that is there.
const clamp = (value, least, most) => Math.max(least, Math.min(most, value));
const nth = (i, n) => clamp(i, 0, n - 1);

function extent(values) {
  let least = Infinity, most = -Infinity;
  for (const value of values)
    if (isKnown(value)) {
      if (value < least) least = value;
      if (value > most) most = value;
    }
  return least <= most ? [least, most] : null;
}

function median(values) {
  const known = values.filter(isKnown).sort((a, b) => a - b);
  if (!known.length) return null;
  const middle = known.length >> 1;
  return known.length % 2 ? known[middle] : (known[middle - 1] + known[middle]) / 2;
}

function meanOf(values) {
  const known = values.filter(isKnown);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

function sumOf(values) {
  return values.reduce((sum, value) => sum + (isKnown(value) ? value : 0), 0);
}
