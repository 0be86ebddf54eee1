// SPDX-License-Identifier: MIT
// What to fix, how much time that would save, how certain this is, and the evidence.

function findingCard(finding) {
  const card =
      el('article', {class: 'finding ' + finding.severity},
         el('h3', {}, badge(markOfFinding(finding)), ' ', finding.title),
         el('p', {class: 'saving'},
            el(isKnown(finding.saving_s) ? 'b' : 'span', {}, finding.saving[0]),
            finding.saving.slice(1).map((more) => ' \u00b7 ' + more),
            el('small', {}, ' ', finding.id)),
         finding.close_second ? el('p', {class: 'dim'}, finding.close_second) : null,
         el('p', {class: 'action'}, el('span', {class: 'arrow', 'aria-hidden': 'true'}, '\u2192 '),
            finding.action),
         el('p', {class: 'evidence'}, el('span', {class: 'dim'}, 'rests on '), finding.evidence));
  const links = el('p', {class: 'links'});
  card.append(links);
  card.addSeen = () => {
    const where = panelOf(finding);
    if (where && !document.getElementById(where.id).contains(card))
      links.append(linkTo(where.id, ['see it in \u201c' + headOf(where).title + '\u201d'], () => {
        if (finding.ranks.length === 1) lookAt(focusOn.step, finding.ranks[0]);
      }));
    if (finding.ranks.length) links.append(el('span', {class: 'dim'}, ranksText(finding.ranks)));
  };
  return card;
}

const seenLater = [];
function cards(findings) {
  return findings.map((finding) => {
    const card = findingCard(finding);
    seenLater.push(card.addSeen);
    return card;
  });
}

function tiles(of) {
  const list = [];
  const add = (name, value, more) => {
    if (isKnown(value)) list.push([name, value, more]);
  };
  if (isKnown(of.steps.median_ms))
    add('median step', ms(of.steps.median_ms), `p95 ${ms(of.steps.p95_ms)}`);
  if (of.steps.count)
    add('steps analysed', count(of.steps.count - (of.steps.warmup_excluded || 0)),
        of.steps.warmup_excluded ? `first ${count(of.steps.warmup_excluded)} left out` : null);
  if (of.overlap.comm_ms > 0 && isKnown(of.overlap.exposed_ms) && isKnown(of.steps.median_ms))
    add('exposed communication', ms(of.overlap.exposed_ms), 'a step');
  if (isKnown(of.gpu_timeline.busy_fraction))
    add('GPU busy', percent(of.gpu_timeline.busy_fraction), 'whole input');
  if (isKnown(of.budget.mfu))
    add('MFU', percent(of.budget.mfu));
  else if (isKnown(of.budget.hfu))
    add('HFU', percent(of.budget.hfu));
  if (isKnown(of.memory.peak_allocated_bytes))
    add('peak memory', memory(of.memory.peak_allocated_bytes),
        isKnown(of.memory.capacity_bytes) ? 'of ' + memory(of.memory.capacity_bytes) : null);
  if (of.convergence.verdict) add('loss', of.convergence.verdict);
  if (of.collective_check.verdict && of.collective_check.verdict !== 'none')
    add('collectives', of.collective_check.verdict);
  return el('div', {class: 'tiles'},
            list.slice(0, 6).map(([name, value, more]) =>
                                     el('div', {class: 'tile'}, el('span', {class: 'dim'}, name),
                                        el('b', {}, value), more ? el('small', {}, more) : null)));
}

// What the report rests on, without what explains it.
function restsOn() {
  const trust = report.sections.find((one) => one.name === 'trust');
  return el('div', {class: 'rests'}, el('h3', {}, badge(trust.mark), ' How sure'),
            factLines(trust.facts.filter((fact) => fact.tone !== 'dim')),
            el('p', {class: 'links'}, linkTo('trust', ['what this rests on'])));
}

panel({
  id: 'verdict',
  sections: ['verdict'],
  body: () => {
    const top = report.findings.slice(0, 3);
    return [
      tiles(report),
      el('div', {class: 'verdict'},
         el('div', {class: 'headlines'},
            top.length ? cards(top) : el('p', {class: 'nothing'}, report.no_finding),
            report.findings.length > 3 ?
                el('p', {class: 'links'},
                   linkTo('findings',
                          [`and ${plural(report.findings.length - 3, 'finding')} more`])) :
                null,
            report.overlap.hidden ? el('p', {}, badge('ok'), ' ', report.overlap.hidden) : null,
            report.undecided.map((one) => el('p', {class: 'unknown'}, badge('unknown'),
                                             ` cannot tell ${one.what}: `, one.why))),
         restsOn())
    ];
  },
});

panel({
  id: 'findings',
  sections: ['diff_findings', 'findings'],
  applies: () => findingsShown().length > 3,
  body: () => el('div', {class: 'cards'}, cards(findingsShown())),
});
