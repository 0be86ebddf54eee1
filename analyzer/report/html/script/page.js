// SPDX-License-Identifier: MIT
// Assembles the page from its panels.

const ORDER = [
  'verdict',         'changed',     'hang',        'stalls',   'run_end',    'steps',
  'bothsteps',       'ranks',       'timeline',    'budget',   'path',       'communication',
  'pipeline',        'gpu',         'kernels',     'gemms',    'ranges',     'lines',
  'memory',          'modules',     'convergence', 'figures',  'bothstacks', 'bothkernels',
  'bothcollectives', 'bothscalars', 'provenance',  'findings', 'trust'
];

function heading() {
  const run = report.run, found = run.ranks_found.length;
  const name =
      before ? `${report.diff.before} \u2192 ${report.diff.after}` : run.id || 'unnamed run';
  document.title = cutTo(`${name} \u00b7 tscope`, 120);
  const sides = () => plural(report.diff.runs_before, 'run') + ' against ' + report.diff.runs_after;
  const facts1 = before ? [sides()] : [
    found ? plural(found, 'rank') : null,
    run.hosts.length ? plural(run.hosts.length, 'host') : null,
    isKnown(run.duration_s) ? seconds(run.duration_s) : null
  ];
  const theme =
      el('button', {type: 'button', class: 'theme', title: 'light or dark (t)', onclick: turnTheme},
         '\u25d0');
  put(document.getElementById('top'), {}, [
    el('div', {class: 'brand'}, el('b', {}, 'tscope'), el('h1', {}, cutTo(name, 200)), theme),
    el('p', {}, facts1.filter(Boolean).join(' \u00b7 ')),
    run.command && !before ? el('p', {class: 'command', title: cutTo(run.command, 2000)},
                                el('code', {}, cutTo(run.command, 400))) :
                             null
  ]);
}

function turnTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' :
                                    window.matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  redrawAll();
}

function build() {
  heading();
  const main = document.getElementById('panels'), contents = document.getElementById('contents');
  main.replaceChildren();
  panels.sort((a, b) => ORDER.indexOf(a.id) - ORDER.indexOf(b.id));
  // If a job hangs, that comes first, because nothing else matters then.
  const hang = panels.find((definition) => definition.id === 'hang');
  if (!report.findings.some((finding) => finding.sections[0] === 'hang')) {
    panels.splice(panels.indexOf(hang), 1);
    panels.splice(panels.findIndex((definition) => definition.id === 'findings'), 0, hang);
  }
  const list = el('ol');
  contents.append(list);
  for (const definition of panels) {
    const head = headOf(definition);
    if (!head) continue;
    const section =
        el('section', {
          id: definition.id,
          class: 'panel',
          tabindex: -1,
          'aria-labelledby': definition.id + '-title'
        },
           el('h2', {id: definition.id + '-title'}, badge(head.mark), ' ', head.title,
              head.mark && el('small', {class: 'state ' + head.mark}, MARKS[head.mark][1])));
    main.append(section);
    put(section, {}, [
      head.unknown, head.basis.filter(warns).map((fact) => note(fact.text)),
      head.known ? [factLines(head.facts), definition.body(report)] : null, restsOnLine(head.basis)
    ]);
    list.append(el('li', {}, linkTo(definition.id, [badge(head.mark), ' ', head.title])));
  }
  for (const add of seenLater) add();
  main.append(el('footer', {},
                 `${data.tool} \u00b7 figures are those of its JSON report \u00b7 keys: `,
                 el('kbd', {}, 'j'), ' and ', el('kbd', {}, 'k'), ' next and last panel, ',
                 el('kbd', {}, 't'), ' theme, ', el('kbd', {}, '0'), ' all steps'));
}

function keys() {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey ||
        /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
      return;
    const sections = [...document.querySelectorAll('section.panel')];
    const now = sections.findLastIndex((section) => section.getBoundingClientRect().top <= 80);
    if (event.key === 'j')
      goTo(sections[Math.min(sections.length - 1, now + 1)].id);
    else if (event.key === 'k')
      goTo(sections[Math.max(0, now - 1)].id);
    else if (event.key === 't')
      turnTheme();
    else if (event.key === 'Escape') {
      hideTip();
      lookAt(null, null);
    } else if (event.key === '0' && stepView)
      stepView.reset();
  });
}

// Marks the panel in the window in the list of panels.
function markWhereWeAre() {
  const links = new Map([...document.querySelectorAll('#contents a')].map(
      (link) => [link.getAttribute('href').slice(1), link]));
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const link = links.get(entry.target.id);
      if (link) link.classList.toggle('here', entry.isIntersecting);
    }
  }, {rootMargin: '-15% 0px -70% 0px'});
  for (const section of document.querySelectorAll('section.panel')) watcher.observe(section);
}

build();
keys();
markWhereWeAre();
if (location.hash.length > 1) goTo(decodeURIComponent(location.hash.slice(1)));
document.documentElement.dataset.ready = 'yes';
