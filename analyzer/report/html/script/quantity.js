// SPDX-License-Identifier: MIT
// Amounts and lists of ranks as text, in the same form as in the text report
// (analyzer/base/quantity.c and rank_list.c). tests/html/pages.py compares them.

const UNKNOWN = 'unknown';

const isKnown = (value) => value !== null && value !== undefined && !Number.isNaN(value);

const orUnknown = (say) => (value) => (isKnown(value) ? say(value) : UNKNOWN);

function decimalsFor(value) {
  const size = Math.abs(value);
  return size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
}

// toFixed(), but what lies in the middle goes to the even digit, as in C.
function fixed(value, decimals) {
  const halves = value * 2 ** (decimals + 1), digits = 10 ** decimals;
  if (!Number.isInteger(halves) || halves % 2 === 0) return value.toFixed(decimals);
  const below = Math.floor(value * digits);
  return ((below + Math.abs(below % 2)) / digits).toFixed(decimals);
}

function scaled(value, units) {
  if (!isKnown(value)) return UNKNOWN;
  for (let i = 0; i < units.length; i++) {
    const number = value / units[i][0];
    if (Math.abs(number) >= 0.9995 || i === units.length - 1)
      return value === 0 ? '0 ' + units[i][1] :
                           fixed(number, decimalsFor(number)) + ' ' + units[i][1];
  }
  return UNKNOWN;
}

function longTime(seconds) {
  const two = (n) => String(n).padStart(2, '0');
  if (seconds < 3599.5) {
    const whole = Math.round(seconds);
    return Math.floor(whole / 60) + ' min ' + two(whole % 60) + ' s';
  }
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return Math.floor(minutes / 60) + ' h ' + two(minutes % 60) + ' min';
  return Math.floor(minutes / 1440) + ' d ' + Math.floor((minutes % 1440) / 60) + ' h';
}

function seconds(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (value >= 119.5) return longTime(value);
  if (value === 0) return '0 s';
  return scaled(value, data.units.time);
}

const ms = (value) => (isKnown(value) ? seconds(value * 1e-3) : UNKNOWN);
const us = (value) => (isKnown(value) ? seconds(value * 1e-6) : UNKNOWN);

function bytes(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (Math.abs(value) < 999.5) return fixed(value, 0) + ' B';
  return scaled(value, data.units.bytes);
}

// Of a device: a card "of 80 GB" has 80 GiB, as PyTorch and nvidia-smi show it.
function memory(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (Math.abs(value) < 1023.5) return fixed(value, 0) + ' B';
  return scaled(value, data.units.memory);
}

function count(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (Math.abs(value) >= 999999.5) return scaled(value, data.units.count);
  if (Math.abs(value) < 1000) return fixed(value, Number.isInteger(value) ? 0 : 1);
  return whole(value);
}

const whole = (value) => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ',');

const plural = (value, one) => count(value) + ' ' + one + (value === 1 ? '' : 's');

// A share above 0 must not be shown as "0 %", and a share below 1 not as "100 %".
function percent(fraction) {
  if (!isKnown(fraction)) return UNKNOWN;
  const hundredths = fraction * 100;
  if (hundredths > 0 && hundredths < 0.05) return '<0.1 %';
  if (fraction < 1 && hundredths >= 99.5) return fixed(Math.min(hundredths, 99.9), 1) + ' %';
  if (hundredths === 0) return '0 %';
  return fixed(hundredths, Math.abs(hundredths) < 9.95 ? 1 : 0) + ' %';
}

function signedPercent(fraction) {
  if (!isKnown(fraction)) return UNKNOWN;
  const hundredths = fraction * 100;
  if (Math.abs(hundredths) < 0.05) return '0 %';
  return (hundredths > 0 ? '+' : '') + fixed(hundredths, Math.abs(hundredths) < 9.95 ? 1 : 0) +
      ' %';
}

const bandwidth = (gbps) => scaled(gbps, data.units.bandwidth);
const flops = (value, unit) => (isKnown(value) ? scaled(value, data.units.flops) + unit : UNKNOWN);

function probability(p) {
  if (!isKnown(p)) return UNKNOWN;
  if (p < 1e-12) return '<1e-12';
  if (p < 1e-3) return p.toExponential(0).replace(/-(\d)$/, '-0$1');
  return String(Number(fixed(p, 1 - Math.floor(Math.log10(p)))));
}

function number(value) {
  if (!isKnown(value)) return UNKNOWN;
  if (value === 0) return '0';
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(5)));
}

// "0-3, 7 and 12 more", and "ranks 0-3, 7 and 12 more", in about `limit` characters: as
// analyzer/base/rank_list.c.
function rankList(ranks, limit = 60) {
  const sorted = [...ranks].sort((a, b) => a - b), n = sorted.length;
  let text = '', i = 0;
  while (i < n) {
    let last = i;
    while (last + 1 < n && sorted[last + 1] === sorted[last] + 1) last++;
    if (text.length + 8 > limit && i) return `${text} and ${n - i} more`;
    const range = last > i + 1;
    text += (i ? ', ' : '') + (range ? sorted[i] + '-' + sorted[last] : sorted[i]);
    i = range ? last + 1 : i + 1;
  }
  return text;
}

const ranksText = (ranks, limit) =>
    (ranks.length === 1 ? 'rank ' : 'ranks ') + rankList(ranks, limit);
