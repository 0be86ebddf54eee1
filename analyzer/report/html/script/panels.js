// SPDX-License-Identifier: MIT
// The panels of the page register here. A panel: {id, sections: those of the report that it shows,
// its own first (report.sections), applies(report): where there are none, or not in every report,
// body(report): elements, elsewhere: its findings belong more to another panel}. Its title is that
// of its first section that the report has, and its mark that of the worst finding of all of them;
// a panel without sections has a title of its own and no mark.

const panels = [];

function panel(definition) { panels.push({sections: [], ...definition}); }

const MARKS = data.marks;  // {mark: [glyph, word]}
const FOUND = ['note', 'warning', 'critical'];

const badge = (mark) =>
    mark && el('span', {class: 'badge ' + mark, title: MARKS[mark][1]}, MARKS[mark][0]);

const markOfFinding = (finding) => (finding.severity === 'info' ? 'note' : finding.severity);

function sectionsOf(definition) {
  return definition.sections.map((name) => report.sections.find((one) => one.name === name))
      .filter(Boolean);
}

// Undefined where the report does not have what the panel shows.
function headOf(definition) {
  const sections = sectionsOf(definition), first = sections[0];
  const applies = definition.applies ? definition.applies(report) : Boolean(first);
  if (!applies || (before && first && !first.name.startsWith('diff_') && first.name !== 'trust'))
    return undefined;
  const worst = Math.max(-1, ...sections.map((one) => FOUND.indexOf(one.mark)));
  const unknown = sections.filter((one) => one.unknown);
  return {
    title: definition.title || first.title,
    mark: worst >= 0 ? FOUND[worst] :
        first        ? first.mark :
                       null,
    unknown:
        unknown.map((one) => unknownBecause((one === first ? '' : one.title + ': ') + one.unknown)),
    known: !first || unknown.length < sections.length,
    facts: sections.flatMap((one) => one.facts),
    basis: sections.flatMap((one) => one.basis)
  };
}

// What the figures of a panel are of. What warns stands above them.
const warns = (fact) => fact.tone === 'strong';
function restsOnLine(basis) {
  const texts = basis.filter((fact) => !warns(fact)).map((fact) => fact.text);
  return texts.length ? el('p', {class: 'dim basis'}, texts.join(' \u00b7 ')) : null;
}

const belongs = (definition, finding) =>
    definition.sections.some((section) => finding.sections.includes(section));

function findingsShown() { return before ? report.diff.findings : report.findings; }

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
