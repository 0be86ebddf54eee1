// SPDX-License-Identifier: MIT
// The panels of the page register here, in the order in which they stand. A panel: {id, title,
// findings: beginnings of ids that belong to it, applies(report), unknown(report): why nothing can
// be said, body(report): elements; elsewhere: its findings have a better place}. What a panel has
// nothing to say of is left out.

const panels = [];

function panel(definition) { panels.push(definition); }

const LAMPS = {
  good: ['\u25cf', 'ok'],
  info: ['\u25c6', 'note'],
  warning: ['\u25b2', 'warning'],
  critical: ['\u25a0', 'CRITICAL'],
  unknown: ['\u25cb', 'unknown'],
};
const SEVERITIES = ['info', 'warning', 'critical'];

const lamp = (kind) =>
    kind && el('span', {class: 'lamp ' + kind, title: LAMPS[kind][1]}, LAMPS[kind][0]);

function belongs(definition, finding) {
  return (definition.findings || []).some((begin) => finding.id.startsWith(begin));
}

function findingsShown() { return before ? report.diff.findings : report.findings; }

function lampOf(definition) {
  if (definition.unknown && definition.unknown(report)) return 'unknown';
  if (definition.lamp) return definition.lamp(report);
  if (!(definition.findings || []).length) return null;  // nothing judges it
  let worst = -1;
  for (const finding of findingsShown())
    if (belongs(definition, finding)) worst = Math.max(worst, SEVERITIES.indexOf(finding.severity));
  return worst < 0 ? 'good' : SEVERITIES[worst];
}

// Where a finding can be seen: the panel that it belongs to, rather than one that shows it too.
function panelOf(finding) {
  const shown = panels.filter((definition) => belongs(definition, finding) &&
                                  document.getElementById(definition.id));
  return shown.find((definition) => !definition.elsewhere) || shown[0];
}

// What is looked at on the whole page: a step and a rank, or null. Pictures listen.
const focusOn = {
  step: null,
  rank: null,
  listeners: []
};
function lookAt(step, rank) {
  focusOn.step = step;
  focusOn.rank = rank;
  for (const listener of focusOn.listeners) listener();
}
function onFocus(listener) { focusOn.listeners.push(listener); }
