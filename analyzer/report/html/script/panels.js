// SPDX-License-Identifier: MIT
// The panels of the page register here, in their order on the page. A panel: {id, title, sections:
// those of the report (findings.def) that it shows, applies(report), unknown(report): why nothing
// is known, unjudged(report): something is known but cannot be judged, body(report): elements,
// elsewhere: its findings belong more to another panel}. A panel that does not apply to the report
// is left out; one that no finding judges has no badge.

const panels = [];

function panel(definition) { panels.push(definition); }

const BADGES = {
  good: ['\u25cf', 'ok'],
  info: ['\u25c6', 'note'],
  warning: ['\u25b2', 'warning'],
  critical: ['\u25a0', 'CRITICAL'],
  unknown: ['\u25cb', 'unknown'],
};
const SEVERITIES = ['info', 'warning', 'critical'];

const badge = (kind) =>
    kind && el('span', {class: 'badge ' + kind, title: BADGES[kind][1]}, BADGES[kind][0]);

function belongs(definition, finding) {
  return (definition.sections || []).some((section) => finding.sections.includes(section));
}

function findingsShown() { return before ? report.diff.findings : report.findings; }

function badgeOf(definition) {
  if (definition.unknown && definition.unknown(report)) return 'unknown';
  if (definition.badge) return definition.badge(report);
  if (!definition.sections) return null;  // no finding judges it
  let worst = -1;
  for (const finding of findingsShown())
    if (belongs(definition, finding)) worst = Math.max(worst, SEVERITIES.indexOf(finding.severity));
  if (worst >= 0) return SEVERITIES[worst];
  return definition.unjudged && definition.unjudged(report) ? 'unknown' : 'good';
}

// The panel of a finding: the one that it belongs to, before others that show it too.
function panelOf(finding) {
  const shown = panels.filter((definition) => belongs(definition, finding) &&
                                  document.getElementById(definition.id));
  return shown.find((definition) => !definition.elsewhere) || shown[0];
}

// The selected step and rank of the whole page, or null. Pictures listen to changes.
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
