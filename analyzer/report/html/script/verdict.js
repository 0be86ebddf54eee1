// SPDX-License-Identifier: MIT
// What to fix, how much time that would save, how certain this is, and the evidence.

// Between the quartiles of the steps, where they differ.
function spreadOf(finding) {
  const {saving_s: saves, saving_low_s: low, saving_high_s: high} = finding;
  const whole = report.steps.analysed_s;
  return isKnown(low) && high - low > 0.1 * saves ?
      `, ${percent(low / whole)} to ${percent(high / whole)} in half of the steps` :
      '';
}

function savingOf(finding) {
  if (!isKnown(finding.saving_s)) return null;
  const whole = report.steps.analysed_s;
  const shared = finding.saving_s - finding.saving_added_s, ids = finding.overlaps;
  const part = finding.saving_added_s < 0.01 * finding.saving_s ? 'all' : seconds(shared);
  return seconds(finding.saving_s) +
      (whole > 0 ? ` (${percent(finding.saving_s / whole)} of the time)` : '') + spreadOf(finding) +
      (finding.together ? `, only if ${finding.together} are all mended` :
       ids.length ? `, ${part} shared with ${ids.join(' and ')}` : '');
}

function findingCard(finding, evidence) {
  const saving = savingOf(finding);
  const card = el(
      'article', {class: 'finding ' + finding.severity},
      el('h3', {}, badge(markOfFinding(finding)), ' ', finding.title),
      el('p', {class: 'saving'}, el('b', {}, saving ? 'saving ' + saving : 'saving unknown'),
         el('small', {}, ' ', finding.id)),
      finding.close_second ? el('p', {class: 'dim'}, finding.close_second) : null,
      el('p', {class: 'action'}, el('span', {class: 'arrow', 'aria-hidden': 'true'}, '\u2192 '),
         finding.action),
      evidence ?
          el('p', {class: 'evidence'}, el('span', {class: 'dim'}, 'rests on '), finding.evidence) :
          null);
  const links = el('p', {class: 'links'});
  card.append(links);
  card.addSeen = () => {
    const where = panelOf(finding);
    if (where && !document.getElementById(where.id).contains(card))
      links.append(el('a', {
        href: '#' + where.id,
        onclick: (event) => {
          event.preventDefault();
          if (finding.ranks.length === 1) lookAt(focusOn.step, finding.ranks[0]);
          goTo(where.id);
        }
      },
                      'see it in \u201c' + headOf(where).title + '\u201d'));
    if (finding.ranks.length)
      links.append(el('span', {class: 'dim'},
                      (finding.ranks.length === 1 ? 'rank ' : 'ranks ') + rankList(finding.ranks)));
  };
  return card;
}

const seenLater = [];
function cards(findings, evidence) {
  return findings.map((finding) => {
    const card = findingCard(finding, evidence);
    seenLater.push(card.addSeen);
    return card;
  });
}

// What data is missing, in a few words; empty if none is.
function doubts(of) {
  const list = [];
  const found = of.run.ranks_found.length, world = of.run.world_size;
  if (world && found && found < world)
    list.push(`${plural(world - found, 'rank')} of ${count(world)} not found`);
  if (of.quality.lost > 0) list.push(plural(of.quality.lost, 'event') + ' lost');
  if (of.quality.partial_ranks.length)
    list.push(plural(of.quality.partial_ranks.length, 'rank') + ' not complete');
  if (found > 1 && !of.quality.clock.aligned) list.push('clocks not aligned');
  for (const [name, cover] of Object.entries(of.quality.coverage))
    if (cover.share < 1)
      list.push(`${name}: ${percent(cover.share)} seen`);
  return list;
}

function tiles(of) {
  const list = [];
  const add = (name, value, more) => {
    if (isKnown(value)) list.push([name, value, more]);
  };
  if (isKnown(of.steps.median_ms))
    add('median step', ms(of.steps.median_ms), `p95 ${ms(of.steps.p95_ms)}`);
  if (of.steps.count)
    add('steps looked at', count(of.steps.count - (of.steps.warmup_excluded || 0)),
        of.steps.warmup_excluded ? `first ${count(of.steps.warmup_excluded)} left out` : null);
  if (isKnown(of.overlap.exposed_ms) && isKnown(of.steps.median_ms))
    add('exposed communication', ms(of.overlap.exposed_ms), 'a step');
  if (isKnown(of.gpu_timeline.busy_fraction))
    add('GPU busy', percent(of.gpu_timeline.busy_fraction), 'whole input');
  if (isKnown(of.budget.mfu))
    add('MFU', percent(of.budget.mfu));
  else if (isKnown(of.budget.hfu))
    add('HFU, at least', percent(of.budget.hfu));
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

function restsOn(of) {
  const doubt = doubts(of);
  const found = of.run.ranks_found.length;
  const solid = [];
  if (found)
    solid.push(of.run.world_size === found ? `all ${plural(found, 'rank')}` :
                                             plural(found, 'rank'));
  if (of.quality.events > 0) solid.push(plural(of.quality.events, 'event'));
  if (of.quality.lost === 0) solid.push('none lost');
  if (found > 1 && of.quality.clock.aligned)
    solid.push('clocks within ' +
               us(of.quality.clock.between_hosts_us ?? of.quality.clock.residual_us));
  if (found && of.quality.gpu_timing) solid.push('GPU time: ' + of.quality.gpu_timing);
  return el(
      'div', {class: 'rests'},
      el('h3', {}, badge(of.sections.find((one) => one.name === 'trust')?.mark), ' How sure'),
      el('p', {},
         solid.join(' \u00b7 ') ||
             'from ' +
                 of.run.inputs.map((input) => `${count(input.files)} ${input.what}`).join(', ')),
      doubt.length ? el('ul', {}, doubt.slice(0, 6).map((line) => el('li', {}, line))) : null,
      el('p', {class: 'links'},
         el('a', {
           href: '#trust',
           onclick: (event) => {
             event.preventDefault();
             goTo('trust');
           }
         },
            'what this rests on')));
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
            top.length ?
                cards(top, true) :
                el('p', {class: 'nothing'}, report.no_finding),
            report.findings.length > 3 ?
                el('p', {class: 'links'},
                   el('a', {
                     href: '#findings',
                     onclick: (event) => {
                       event.preventDefault();
                       goTo('findings');
                     }
                   },
                      `and ${plural(report.findings.length - 3, 'finding')} more`)) :
                null,
            report.overlap.hidden ? el('p', {}, badge('ok'), ' ', report.overlap.hidden) : null,
            report.undecided.map((one) => el('p', {class: 'unknown'}, badge('unknown'),
                                            ` cannot tell ${one.what}: `, one.why))),
         restsOn(report))
    ];
  },
});

panel({
  id: 'findings',
  sections: ['diff_findings', 'findings'],
  applies: () => findingsShown().length > 3,
  body: () => el('div', {class: 'cards'}, cards(findingsShown(), true)),
});
