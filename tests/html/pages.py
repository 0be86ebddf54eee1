#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page in a real browser: pages.py TRACEGEN TSCOPE-REPORT QUANTITIES SHARED [test...].

SHARED may contain recordings of other tools (SHARED/testdata); without it they are left out, with a message. The
expected contents are the JSON report and the parameters of the traces.
"""
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import browser  # noqa: E402
import inputs  # noqa: E402
from observed import json_of, run  # noqa: E402
from page_data import DATA, data_of  # noqa: E402
import shared_recordings  # noqa: E402

browser.need()
TRACEGEN, REPORT, QUANTITIES, SHARED = sys.argv[1:5]
QUANTITY_JS = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "../../analyzer/report/html/script/quantity.js")
CODE_LIMIT = 300_000  # bytes of a page without its data


def words(scale, value):
    """As docs/outputs/html-report.md describes it: three digits, and the unit that fits."""
    if value is None:
        return "unknown"
    for unit, name in scale:
        number = value / unit
        if abs(number) >= 0.9995 or (unit, name) == scale[-1]:
            digits = 0 if abs(number) >= 99.95 else 1 if abs(number) >= 9.995 else 2
            return f"0 {name}" if value == 0 else f"{number:.{digits}f} {name}"


def ms(value):
    if value == 0:
        return "0 s"
    return words([(1e3, "s"), (1, "ms"), (1e-3, "µs"), (1e-6, "ns")], value)


def cut(value):
    """The report's document as it is in the page: strings are cut to 2,000 bytes."""
    if isinstance(value, list):
        return [cut(one) for one in value]
    if isinstance(value, dict):
        return {key: cut(one) for key, one in value.items()}
    if isinstance(value, str) and len(value.encode()) > 2000:
        kept = value.encode()[:2000].decode(errors="ignore")
        return f"{kept}… (cut: {len(value.encode())} bytes in all)"
    return value


def setUpModule():
    """One browser for all tests, and inputs that are made once."""
    holder = tempfile.TemporaryDirectory(prefix="tscope-html-")
    unittest.addModuleCleanup(holder.cleanup)
    Page.folder = holder.name
    Page.made = inputs.made(TRACEGEN, Page.folder)
    Page.browser = browser.Browser()
    unittest.addModuleCleanup(Page.browser.close)


class Page(unittest.TestCase):
    def setUp(self):
        self.browser.size(1280, 900)

    def page_of(self, name, *arguments):
        path = os.path.join(self.folder, name + ".html")
        run(REPORT, *arguments, "--format", "html", "--output", path)
        return path

    def report_of(self, *arguments):
        return json_of(REPORT, *arguments)

    def open(self, path):
        self.browser.open(path)
        self.no_complaints(path)

    def no_complaints(self, path):
        self.assertEqual([entry["message"] for entry in self.browser.logs()], [], path)
        self.assertEqual(self.browser.requests(), [], path)

    def text(self, selector):
        return self.browser.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)",
                                selector)

    def column(self, panel, name, table=0):
        """The cells that a table of a panel shows in a column."""
        return self.browser.run("""
          const table = document.querySelectorAll('#' + arguments[0] + ' table')[arguments[2]];
          const heads = [...table.querySelectorAll('thead th')].map(th => th.querySelector('button').firstChild.data);
          const at = heads.indexOf(arguments[1]);
          return [...table.querySelectorAll('tbody tr')].map(tr => tr.children[at].innerText.trim());
        """, panel, name, table)

    def check(self, name, paths):
        path = self.page_of(name, *paths)
        self.open(path)
        with open(path, encoding="utf-8") as file:
            page = file.read()
        self.assertLess(len(page.encode()) - len(DATA.search(page)[1]), CODE_LIMIT)
        report = self.report_of(*paths)
        self.assertEqual(data_of(page)["report"], cut(report), name)
        self.assertEqual(self.browser.run("""
          const all = [...document.querySelectorAll('.table')].filter(t => !t.querySelector('.more button'));
          return all.flatMap(t => [...t.querySelectorAll('thead th')].filter((_, i) => {
            const cells = [...t.querySelectorAll('tbody tr')].map(tr => tr.children[i]);
            return cells.length && cells.every(c => c.localName === 'td' && c.innerText.trim() === 'unknown');
          }).map(th => th.innerText));
        """), [], f"{name}: columns of which nothing is known")
        phases = [section for section in report["sections"] if section["name"] == "phases" and not section["unknown"]]
        self.assertEqual(self.text("#steps h3").count("Phases on the host"), len(phases), name)
        self.assertTrue(self.text("#verdict"), name)
        self.assertNotIn("undefined", " ".join(self.text("main")))
        self.assertNotIn("NaN", re.sub(r"\bNaN loss|not a number|NaN", "", " ".join(self.text("main h2"))))
        # Nothing is wider than the window, on a laptop and on a phone.
        for width in (1280, 390):
            self.browser.size(width, 900)
            self.browser.settle()
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width, name)
        self.browser.size(1280, 900)


class Opens(Page):
    def test_what_tscope_records_and_logs(self):
        for name, paths in self.made.items():
            with self.subTest(name):
                self.check(name, paths)

    def test_recordings_of_other_tools(self):
        found = shared_recordings.recordings(os.path.join(SHARED, "testdata"), self.folder)
        if not found:
            self.skipTest(f"no recordings in {SHARED}/testdata")
        for name, paths in found.items():
            with self.subTest(name):
                self.check(name, paths)

    def test_who_waits_for_whom(self):
        found = shared_recordings.recordings(os.path.join(SHARED, "testdata"), self.folder).get("flight-lock_gil_1st")
        if not found:
            self.skipTest(f"no recordings in {SHARED}/testdata")
        # Known: ranks 9 and 14 were stopped, outside any collective.
        check = self.report_of(*found)["collective_check"]
        self.assertEqual({row["rank"] for row in check["suspects"]}, {9, 14})
        held = {rank for wait in check["waits"] for rank in wait["ranks"]}
        self.assertEqual(held, set(range(16)) - {9, 14})
        self.assertTrue({9, 14} <= {rank for wait in check["waits"] for rank in wait["waits_for"]})
        for wait in check["waits"]:
            self.assertFalse(set(wait["ranks"]) & set(wait["waits_for"]), wait)
        self.open(self.page_of("hang", *found))
        boxes = self.text("#hang svg g.critical")
        self.assertEqual(self.browser.run("return document.querySelectorAll('#hang svg g.critical').length"), 2, boxes)
        self.assertEqual(self.browser.run("return document.querySelector('section.panel').id"), "verdict")
        self.assertEqual(self.browser.run("return document.querySelectorAll('section.panel')[1].id"), "hang")

    def test_two_runs(self):
        path = self.page_of("diff", "diff", *self.made["even"], *self.made["slow-rank"])
        self.open(path)
        with open(path, encoding="utf-8") as file:
            data = data_of(file.read())
        self.assertEqual(data["before"], self.report_of(*self.made["even"]))
        self.assertEqual(data["report"]["diff"]["after"], "synthetic")
        self.assertEqual(self.column("figures", "figure")[0], data["report"]["diff"]["rows"][0]["name"])
        self.assertEqual(len(self.text("#bothsteps canvas")), 2)
        made = lambda name, *options: inputs.synthetic(TRACEGEN, self.folder, name, "--run", name, "--ranks", "4",
                                                      "--steps", "40", "--phases", *options)[0]
        kinds = self.page_of("diff-kinds", "diff", *[made(f"even{i}") for i in range(3)], "--",
                             *[made(f"slow{i}", "--slow-rank", "2", "--slow-factor", "1.4") for i in range(3)])
        self.open(kinds)
        self.assertIn("3 runs", self.text("#changed")[0])
        self.assertIn("became slower in its compute", self.text("#changed")[0])
        self.assertIn("speedup", self.text("#bothkernels")[0])
        logs = self.page_of("diff-logs", "diff", *self.made["log"], *self.made["log-nan"])
        self.open(logs)
        self.assertNotIn("median step", self.text("#changed")[0])


class Scenarios(Page):
    """Runs of the stand-in cluster, which have more than synthetic traces."""

    PANELS = {"pipeline-data": "#pipeline", "tensor": "#communication", "slow-link": "#ranks",
             "graph-pipeline": "#gpu", "gemms": "#gemms", "gpu-host-only": "#trust"}

    def test_scenarios(self):
        build = os.environ.get("TSCOPE_BUILD")
        if not build:
            self.skipTest("TSCOPE_BUILD names no build folder to run the stand-in cluster from")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "standins", "scenarios.py")
        names = subprocess.run([sys.executable, script, "--list"], capture_output=True, text=True, check=True).stdout
        for name in names.split():
            with self.subTest(name):
                # The scenario's own test checks whether its figures are right.
                subprocess.run([sys.executable, script, "--build", build, "--keep", os.path.join(self.folder, "kept"), name],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
                kept, = glob.glob(os.path.join(self.folder, "kept", name + ".*"))
                traces = os.path.join(kept, "traces")
                self.check(name, [traces])
                if name in self.PANELS:
                    self.assertEqual(len(self.text(self.PANELS[name])), 1)
                for kind in ("perfetto", "sqlite"):
                    run(REPORT, "--format", kind, "--output", os.path.join(kept, kind), traces)


class Shows(Page):
    def setUp(self):
        super().setUp()
        self.open(self.page_of("slow-rank", *self.made["slow-rank"]))
        self.report = self.report_of(*self.made["slow-rank"])

    def test_the_verdict_on_top(self):
        finding = self.report["findings"][0]
        card = self.text("#verdict .finding")[0]
        self.assertIn(finding["title"], card)
        self.assertIn(finding["action"], card)
        self.assertIn(finding["evidence"], card)
        self.assertIn("saving " + ms(1e3 * finding["saving_s"]), card)
        tiles = dict(zip(self.text("#verdict .tile .dim"), self.text("#verdict .tile b")))
        self.assertEqual(tiles["median step"], ms(self.report["steps"]["median_ms"]))
        self.assertEqual(tiles["exposed communication"], ms(self.report["overlap"]["exposed_ms"]))
        # All of it is on one screen of a laptop.
        self.assertLess(self.browser.run(
            "return document.querySelector('#verdict .finding').getBoundingClientRect().bottom"), 900)

    def test_the_numbers_of_the_json_report(self):
        ranks = self.report["distributed"]["ranks"]
        self.assertEqual(self.column("ranks", "compute"), [ms(row["compute_ms"]) for row in ranks])
        self.assertEqual(self.column("ranks", "peers wait"), [ms(row["imposed_wait_ms"]) for row in ranks])
        lines = [line for line in self.report["budget"]["lines"] if line["seconds"] != 0]
        self.assertEqual(self.column("budget", "went to"), [line["name"] for line in lines])
        self.assertEqual(self.column("budget", "time"), [ms(1e3 * line["seconds"]) for line in lines])
        kernels = self.report["kernels"]["top"]
        self.assertEqual(self.column("kernels", "time"), [ms(row["sum_ms"]) for row in kernels[:12]])
        collectives = self.report["collectives"]
        table = len(self.browser.run("return [...document.querySelectorAll('#communication table')].map(t => 1)")) - 1
        self.assertEqual(self.column("communication", "transfer", table),
                         [ms(row["transfer_ms"]) for row in collectives])

    def test_every_amount_is_as_in_the_text_report(self):
        said = json.loads(run(QUANTITIES).stdout)
        names = ", ".join(sorted({name for name, _, _ in said if not name.startswith("ranks")}))
        with open(QUANTITY_JS, encoding="utf-8") as file:
            script = file.read()
        page = self.browser.run("const data = JSON.parse(document.getElementById('data').textContent);\n"
                                f"{script}\nconst say = {{{names}}}; say.flops = (value) => flops(value, 'FLOP');\n"
                                "for (const limit of [24, 60]) say['ranks' + limit] = (ranks) => rankList(ranks, limit);\n"
                                "return arguments[0].map(([n, v]) => say[n](v))",
                                said)
        self.assertIn(["ranks60", [4, 3, 1, 0], "0, 1, 3, 4"], said)
        self.assertEqual([one for one, text in zip(said, page) if one[2] != text],
                         [], [text for one, text in zip(said, page) if one[2] != text])

    def test_tables_sort_and_filter(self):
        compute = [row["median_compute_ms"] for row in self.report["distributed"]["ranks"]]
        slowest_first = sorted(range(4), key=lambda rank: -compute[rank])
        head = "#ranks thead th:nth-child(3)"
        self.browser.click(head + " button")
        self.assertEqual([re.sub(r"\D", "", cell) for cell in self.column("ranks", "rank")],
                         [str(rank) for rank in slowest_first])
        sort = "return document.querySelector(arguments[0]).getAttribute('aria-sort')"
        self.assertEqual(self.browser.run(sort, head), "descending")
        self.browser.click(head + " button")
        self.assertEqual(self.browser.run(sort, head), "ascending")
        self.assertEqual([re.sub(r"\D", "", cell) for cell in self.column("ranks", "rank")],
                         [str(rank) for rank in reversed(slowest_first)])
        names = self.column("path", "most of it")
        word = names[0].split()[0].lower()
        self.browser.write("#path input[type=search]", word)
        left = self.column("path", "most of it")
        self.assertTrue(left)
        self.assertTrue(all(word in name.lower() for name in left))

    def test_a_step_is_chosen_by_click_and_by_keys(self):
        self.browser.pointer("canvas.strip", 0.5, 0.5, press=True)
        first = int(re.fullmatch(r"Step (\d+)", self.text("#steps .chosen h3")[0]).group(1))
        self.browser.keys("ArrowRight")
        self.assertEqual(self.text("#steps .chosen h3"), [f"Step {first + 1}"])
        series = self.report["series"]["steps"]
        at = series["step"].index(first + 1)
        shown = self.text("#steps .chosen")[0]
        for key in ("wall_ms", "compute_ms", "exposed_wait_ms"):
            self.assertIn(ms(series[key][at]), shown)
        self.browser.keys("Escape")
        self.assertEqual(self.text("#steps .chosen h3"), [])

    def view(self, selector):
        return self.browser.run("const c = document.querySelector(arguments[0]);"
                                "return [Number(c.dataset.from), Number(c.dataset.to)]", selector)

    def test_pictures_zoom_and_move_together(self):
        whole = self.view("canvas.strip")
        self.assertEqual(whole, [0, 40])
        self.browser.pointer("canvas.strip", 0.5, 0.5, press=True)
        self.browser.keys("+")
        near = self.view("canvas.strip")
        self.assertAlmostEqual(near[1] - near[0], 20)
        self.assertEqual(self.view("canvas.heat"), near)
        self.browser.pointer("canvas.heat", 0.6, 0.3, drag=100)
        moved = self.view("canvas.strip")
        self.assertLess(moved[0], near[0])
        self.assertAlmostEqual(moved[1] - moved[0], 20)
        self.browser.pointer("canvas.strip", 0.5, 0.5, press=True, wheel=-200)
        self.assertLess(self.view("canvas.strip")[1] - self.view("canvas.strip")[0], 20)
        self.browser.keys("0")
        self.assertEqual(self.view("canvas.heat"), whole)

    def test_the_heat_map_describes_each_cell(self):
        table = self.report["series"]["by_rank"]
        self.browser.pointer("canvas.heat", 0.5, 0.4)
        tip = self.text("#tip")[0]
        rank, step = map(int, re.search(r"rank (\d+) · step (\d+)", tip).groups())
        row = table["rows"][rank]
        column = table["step"].index(step)
        for key in ("wall_ms", "compute_ms", "late_ms"):
            self.assertIn(ms(row[key][column]), tip)
        self.browser.click("#ranks .choice button[data-value=compute_ms]")
        self.browser.click("#ranks .choice button[data-value=value]")  # the worst one first
        self.browser.pointer("canvas.heat", 0.5, 0.05)
        self.assertIn("rank 2 ", self.text("#tip")[0])
        self.browser.pointer("canvas.heat", 0.5, 0.05, press=True)
        self.browser.keys("ArrowDown")
        self.browser.pointer("canvas.heat", 0.9, 0.05)

    def test_keys_and_links_lead_through_the_page(self):
        at = "return document.activeElement.id"
        self.browser.keys("j")
        second = self.browser.run(at)
        self.assertIn(second, [a.lower() for a in self.browser.run(
            "return [...document.querySelectorAll('section.panel')].map(s => s.id)")])
        self.browser.keys("j")
        self.assertNotEqual(self.browser.run(at), second)
        self.browser.click("#verdict .finding .links a")
        self.assertEqual(self.browser.run(at), "ranks")
        self.browser.click("#contents a[href='#kernels']")
        self.assertEqual(self.browser.run(at), "kernels")
        # Everything that can be clicked can be reached with the keyboard.
        self.assertEqual(self.browser.run(
            "return [...document.querySelectorAll('button, a[href], input, canvas.strip, canvas.heat')]"
            ".filter(e => e.tabIndex < 0).length"), 0)

    def test_light_dark_and_paper(self):
        ground = "return getComputedStyle(document.body.parentElement).backgroundColor"
        light = self.browser.run(ground)
        self.browser.run("document.activeElement.blur()")
        self.browser.keys("t")
        self.assertNotEqual(self.browser.run(ground), light)
        self.browser.keys("t")
        self.assertEqual(self.browser.run(ground), light)
        self.browser.keys("t")
        theme = "window.dispatchEvent(new Event(arguments[0])); return document.documentElement.dataset.theme"
        self.assertEqual(self.browser.run(theme, "beforeprint"), "light")  # paper is white
        self.assertEqual(self.browser.run(theme, "afterprint"), "dark")
        # Pictures become narrow enough for the paper.
        self.browser.command("Emulation.setEmulatedMedia", media="print")
        self.assertEqual(self.browser.run("""document.querySelector('main').style.setProperty('width', '500px');
          return [...document.querySelectorAll('main canvas')].filter(
            c => c.getBoundingClientRect().width > c.parentElement.clientWidth + 1).length"""), 0)
        self.assertEqual(self.browser.run("return [...document.querySelectorAll('.hint')].filter("
                                          "e => e.getClientRects().length).length"), 0)
        self.browser.command("Emulation.setEmulatedMedia", media="screen")
        self.browser.run("document.querySelector('main').style.removeProperty('width')")
        pdf = self.browser.command("Page.printToPDF", printBackground=True)["data"]
        self.assertTrue(pdf.startswith("JVBERi0"))  # %PDF-
        self.no_complaints("printing")

    def test_no_animation_if_it_is_not_wanted(self):
        """Asks the browser which animations run, directly after actions that may animate: a link to a finding, a fold,
        a click."""
        page = self.page_of("moves", *self.made["slow-rank"])
        for still in (True, False):
            with browser.Browser(still=still) as one:
                one.open(page)
                matches, moving, glides = one.run("""
                  const glides = [], real = Element.prototype.scrollIntoView;
                  Element.prototype.scrollIntoView = function (how) { glides.push(how && how.behavior); real.call(this, how); };
                  document.querySelectorAll('a[href^="#"]').forEach(a => a.click());
                  document.querySelectorAll('summary, .more button, thead button').forEach(e => e.click());
                  return [matchMedia('(prefers-reduced-motion: reduce)').matches,
                          document.getAnimations().filter(a => a.playState === 'running').length,
                          glides.concat(getComputedStyle(document.documentElement).scrollBehavior)];
                """)
                self.assertEqual(matches, still)
                if still:
                    self.assertEqual(moving, 0)
                    self.assertNotIn("smooth", glides)

    def test_every_picture_has_words(self):
        self.assertEqual(self.browser.run(
            "return [...document.querySelectorAll('main canvas, main svg')].filter(e => !e.getAttribute('aria-label')"
            " && e.getAttribute('aria-hidden') !== 'true').map(e => e.className.baseVal || e.className)"), [])


class SameWords(Page):
    """The facts of each section, what figures are of, and what fixes save, is said in the same words by the text report
    and the page: whole lines, in the same order, and nothing between them."""

    @staticmethod
    def normal(text):
        """Without bars, and without where lines end and items are parted."""
        return " ".join(re.sub(r"[█▉▊▋▌▍▎▏][█▉▊▋▌▍▎▏·]*|·", " ", text).split())

    def sections_of(self, text):
        """{title: what stands below it} of the text report."""
        parts = re.split(r"(?m)^[●◆▲■○·] (.*?) ─+ ?\w*$", text)
        return dict(zip(parts[1::2], map(self.normal, parts[2::2])))

    def in_text(self, section, texts):
        """Whether a section says this, from the beginning of a word to the end of one."""
        return not texts or f" {self.normal(' '.join(texts))} " in f" {section} "

    def lines_of(self, facts):
        """[[label, line, line...]...] as the page shows them."""
        lines = []
        for fact in facts:
            if fact["label"]:
                lines.append([fact["label"], fact["text"]])
            elif fact["label"] == "":
                lines[-1].append(fact["text"])
            else:
                lines[-1][-1] += " · " + fact["text"]
        return [[self.normal(one) for one in line] for line in lines]

    def shown(self):
        """{panel: its lines of facts, and the rest}, and all texts of the page."""
        panels = self.browser.run("""
          const lines = list => [...list.querySelectorAll(':scope > dt')].map(
            dt => [dt.textContent, ...dt.nextElementSibling.innerText.split('\\n')]);
          return [...document.querySelectorAll('section.panel')].map(panel => ({
            facts: [...panel.querySelectorAll(':scope > dl.lines')].flatMap(lines),
            basis: [...panel.querySelectorAll(':scope > .note, :scope > .basis')].map(e => e.textContent)}))""")
        texts = self.browser.run("return [...document.querySelectorAll('main td, main p, main b, main pre, .saving')]"
                                 ".flatMap(e => e.textContent.split('\\n'))")
        facts = [[self.normal(one) for one in line] for panel in panels for line in panel["facts"]]
        return facts, [text for panel in panels for text in panel["basis"]], set(map(self.normal, texts))

    def expect(self, report, findings, text, path):
        """All that is said is in the text report and on the page. Returns it."""
        self.open(path)
        facts, basis, texts = self.shown()
        below, said = self.sections_of(text), []
        for section in report["sections"]:
            lines = self.lines_of(section["facts"])
            said += lines
            whole = [one for line in lines for one in line]
            self.assertTrue(self.in_text(below[section["title"]], whole), (section["title"], whole, below[section["title"]]))
            for line in lines:
                self.assertIn(line, facts, section["title"])
            of = [fact["text"] for fact in section["basis"]]
            said += of
            self.assertTrue(self.in_text(below[section["title"]], of), (section["title"], of))
            rests = [fact["text"] for fact in section["basis"] if fact["tone"] != "strong"]
            for one in [fact["text"] for fact in section["basis"] if fact["tone"] == "strong"] + [" · ".join(rests)]:
                # A panel of several sections says of what the figures of all of them are.
                self.assertTrue(any(f" · {one} · " in f" · {line} · " for line in basis) or not one, (section["title"], one, basis))
        single = [rank["doing"] for rank in report["run_end"]["ranks"][:8]] + [report["no_finding"], report["overlap"]["hidden"]]
        single += [line["text"] for line in report["stalls"]["lines"]]
        for one in filter(None, single):
            self.assertTrue(any(self.in_text(section, [one]) for section in below.values()), one)
            self.assertTrue(any(self.in_text(line, [one]) for line in texts), one)
        for finding in findings:
            self.assertTrue(any(self.in_text(section, finding["saving"]) for section in below.values()), finding["saving"])
            self.assertIn(self.normal(" ".join([*finding["saving"], finding["id"]])), texts)
        return said

    def text_of(self, *arguments):
        return run(REPORT, *arguments, "--width", "160", "--color", "never").stdout

    def test_a_comparison(self):
        arguments = ["diff", *self.made["even"], *self.made["slow-rank"]]
        report = json_of(REPORT, *arguments)
        shown = [section for section in report["sections"] if section["name"].startswith("diff_")]
        said = self.expect({**report, "sections": shown, "no_finding": None, "overlap": {"hidden": None}},
                           report["diff"]["findings"], self.text_of(*arguments), self.page_of("words-diff", *arguments))
        self.assertIn("a step, mean over ranks", said)

    def test_sentences(self):
        lacks = inputs.synthetic(TRACEGEN, self.folder, "lacks-ranks", "--ranks", "8", "--ranks-per-host", "4", "--steps",
                                 "20", "--phases", "--lost-ranks", "2", "--skew-hosts")
        hang = inputs.synthetic(TRACEGEN, self.folder, "hangs", "--flavour", "gloo", "--hang-rank", "1", "--ranks", "4",
                                "--steps", "20")
        for name, paths in {**self.made, "lacks-ranks": lacks, "hangs": hang}.items():
            with self.subTest(name):
                report = self.report_of(*paths)
                said = self.expect(report, report["findings"], self.text_of(*paths), self.page_of("words-" + name, *paths))
                if name == "slow-rank":
                    self.assertIn(["ranks", "all 4 found on 2 hosts all complete"], said)
                if name == "lacks-ranks":
                    self.assertIn("TRANSFER HOLDS WAITING FOR RANKS NOT FOUND", said)
                    self.assertIn("stragglers", [line[0] for line in said if "none among the 6 OF 8 RANKS FOUND" in line[-1]])


class Timeline(Page):
    """What ran when, for traces in which every time is known."""

    def setUp(self):
        super().setUp()
        path = self.page_of("timeline", *self.made["slow-rank"])
        self.open(path)
        with open(path, encoding="utf-8") as file:
            self.timeline = data_of(file.read())["timeline"]
        self.report = self.report_of(*self.made["slow-rank"])

    def details(self):
        heads = self.text("#timeline .chosen dt")
        return dict(zip(heads, [value.replace("\xa0", " ") for value in self.text("#timeline .chosen dd")]))

    def test_the_pieces_are_those_of_the_trace(self):
        steps = {step["step"]: step["why"] for step in self.timeline["steps"]}
        walls = dict(zip(self.report["series"]["steps"]["step"], self.report["series"]["steps"]["wall_ms"]))
        slowest = max(range(self.report["steps"]["warmup_excluded"], 40), key=walls.get)
        self.assertEqual(steps[slowest], "slowest")
        self.assertIn("median", steps.values())
        self.assertEqual([rank["rank"] for rank in self.timeline["ranks"]], [0, 1, 2, 3])
        texts = self.timeline["texts"]
        for rank in self.timeline["ranks"]:
            spans = rank["spans"]
            columns = ("start", "length", "lane", "row", "kind", "name", "category", "launch")
            self.assertEqual(len({len(spans[column]) for column in columns}), 1)
            # Each step has one all-reduce for each of four buckets, on every rank.
            reduces = [i for i, kind in enumerate(spans["kind"]) if kind == self.timeline["kinds"]["collective"]]
            self.assertEqual({texts[spans["name"][i]] for i in reduces}, {"all_reduce"})
            self.assertGreaterEqual(len(reduces), 4 * len(steps))
        # A key connects members: each collective that all ranks show has one key.
        keys = [{key for _, key, _ in rank["spans"]["members"]} for rank in self.timeline["ranks"]]
        self.assertGreaterEqual(len(keys[0] & keys[1] & keys[2] & keys[3]), 4 * len(steps))
        self.assertTrue(self.timeline["paths"])

    def test_a_piece_is_found_with_exact_details(self):
        canvas = "canvas.timeline"
        self.browser.click("#timeline .choice button[data-value='0']")
        self.browser.run("document.querySelector('canvas.timeline').focus()")
        self.browser.keys("ArrowDown")
        self.assertEqual(self.details()["rank"], "0")
        first = self.text("#timeline .chosen h3")
        self.browser.keys("ArrowRight", "ArrowRight", "ArrowRight")
        self.assertTrue(first and self.text("#timeline .chosen h3"))
        for _ in range(12):  # zooms until collectives are visible
            if "communicator" in self.details():
                break
            self.browser.keys("ArrowDown")
        details = self.details()
        self.assertIn("members", details)
        self.assertEqual(details["members"], "4")
        self.assertRegex(self.text("#timeline .chosen p")[0], r"^[\d,]+ ns, from -?[\d,]+ ns")
        self.browser.pointer(canvas, 0.6, 0.5)
        self.no_complaints("timeline")

    def test_steps_zoom_and_follow(self):
        view = ("const c = document.querySelector('canvas.timeline');"
                "return [Number(c.dataset.from), Number(c.dataset.to)]")
        self.browser.run("document.querySelector('canvas.timeline').focus()")
        whole = self.browser.run(view)
        self.browser.keys("+", "+")
        near = self.browser.run(view)
        self.assertAlmostEqual((near[1] - near[0]) / (whole[1] - whole[0]), 0.25)
        self.browser.keys("d")
        self.assertGreater(self.browser.run(view)[0], near[0])
        self.browser.keys("0")
        self.assertEqual(self.browser.run(view), whole)
        first = self.text("#timeline .choice:first-child button[aria-pressed=true]")[0]
        self.browser.click("#timeline .choice:first-child button[aria-pressed=false]")
        self.assertNotEqual(self.browser.run(view), whole)
        # If a step is chosen elsewhere, it is shown here.
        step = int(re.search(r"step (\d+)", first).group(1))
        self.browser.click("#steps .numbers:last-of-type summary")
        self.browser.run("""const rows = [...document.querySelectorAll('#steps .numbers:last-of-type tbody tr')];
                            rows[0].click()""")
        self.browser.write("#steps .numbers:last-of-type input[type=search]", str(step))
        self.browser.run("""[...document.querySelectorAll('#steps .numbers:last-of-type tbody tr')]
          .find(tr => tr.children[0].innerText === arguments[0]).click()""", str(step))
        self.browser.settle()
        self.assertIn(f"step {step} ", self.text("#timeline .choice button[aria-pressed=true]")[0] + " ")


class Stacks(Page):
    """A flame graph of lines with invented stacks: two callers, one of which calls two functions."""

    FRAMES = [(0, "<module>", "yes", 10), (1, "train", "yes", 8), (2, "wait", "no", 5), (2, "log", "yes", 2),
              (1, "load", "yes", 2)]

    def setUp(self):
        super().setUp()
        path = self.page_of("stacks", *self.made["slow-rank"])
        with open(path, encoding="utf-8") as file:
            page = file.read()
        data = data_of(page)
        data["report"]["lines"] = {
            "lines": [{"place": "train.py:7", "file": "/train.py", "function": "log", "line": 7, "waits": 1,
                       "wait_ms": 10, "idle_ms": 0, "without_ms": None, "input_ms": 0, "collectives": 0, "comm_ms": 0,
                       "exposed_ms": 0, "launches": 3, "gpu_ms": 4, "samples": 3, "backward": 0}],
            "stacks": [{"depth": depth, "place": f"train.py:{i}", "function": name, "own": own, "host_ms": value,
                        "idle_ms": 0, "exposed_ms": 0, "gpu_ms": value / 2}
                       for i, (depth, name, own, value) in enumerate(self.FRAMES)],
            "known": 1, "call_sites": 9, "reason": None}
        data["report"]["sections"] = [{"name": "lines", "title": "Lines", "mark": "ok", "unknown": None, "facts": [], "basis": []}]
        begin, end = DATA.search(page).span(1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(page[:begin] + json.dumps(data).replace("<", "\\u003c") + page[end:])
        self.open(path)

    def frames(self):
        return {name.split(" ")[0]: width for name, width in self.browser.run(
            "return [...document.querySelectorAll('#lines .frame')].map(e => [e.innerText, parseFloat(e.style.width)])")}

    def chosen(self):
        return self.browser.run("return document.querySelector('#lines .frame.looked').innerText").split(" ")[0]

    def test_frames_are_as_wide_as_they_cost(self):
        self.assertEqual(self.frames(), {"<module>": 100, "train": 80, "wait": 50, "log": 20, "load": 20})
        self.browser.click("#lines .choice button[data-value=gpu_ms]")
        self.assertEqual(self.frames()["wait"], 50)
        self.browser.click("#lines .frame:nth-child(2)")
        self.assertEqual(self.frames(), {"<module>": 100, "train": 100, "wait": 62.5, "log": 25})
        self.assertIn("4.00 ms, 80 % of all", self.text("#lines .chosen")[0])
        self.assertIn("500 µs", self.text("#lines .chosen")[0])  # its own time

    def test_places_of_known_files_are_links_to_them(self):
        links = self.browser.run("return [...document.querySelectorAll('a[href^=vscode]')].map(a => [a.getAttribute('href'), "
                                 "a.textContent, !!a.closest('table'), !!a.closest('.frame')])")
        self.assertIn(["vscode://file/train.py:7", "train.py:7", True, False], links)
        self.assertFalse([link for link in links if link[3]])  # a frame is pressed itself

    def test_keys_go_from_frame_to_frame(self):
        self.browser.run("document.querySelector('#lines .frame[tabindex=\"0\"]').focus()")
        self.browser.keys("ArrowDown", "ArrowDown", "ArrowDown")
        self.assertEqual(self.chosen(), "wait")
        self.browser.keys("ArrowRight")
        self.assertEqual(self.chosen(), "log")
        self.browser.keys("ArrowUp", "ArrowRight")
        self.assertEqual(self.chosen(), "load")
        self.browser.keys("Enter")
        self.assertEqual(self.frames(), {"<module>": 100, "load": 100})
        self.browser.keys("0")
        self.assertEqual(len(self.frames()), 5)
        self.no_complaints("stacks")


class Harmless(Page):
    def nothing_ran(self, path):
        self.no_complaints(path)
        self.assertIsNone(self.browser.run("return window.hacked === undefined ? null : 1"))
        self.assertEqual(self.browser.run("return [document.scripts.length, document.images.length,"
                                          "document.querySelectorAll('iframe, object, embed').length]"), [2, 0, 0])

    def read_all(self, path):
        """Opens a page and every part of it that can be opened."""
        self.browser.open(path)
        self.browser.run("document.querySelectorAll('details').forEach(d => d.open = true);"
                         "document.querySelectorAll('.more button:last-of-type, thead button')"
                         ".forEach(b => b.click());")
        self.browser.settle()
        for canvas in ("canvas.strip", "canvas.path", "canvas.timeline"):
            if self.browser.run("return document.querySelectorAll(arguments[0]).length", canvas):
                self.browser.pointer(canvas, 0.5, 0.3, press=True)
        self.nothing_ran(path)

    def test_names_in_recordings(self):
        path = os.path.join(self.folder, "hostile.json")
        made = inputs.kineto(path, inputs.HOSTILE, host=inputs.HOSTILE[0])
        page = self.page_of("hostile", *made)
        self.assertLess(os.path.getsize(page), 1_000_000)  # a name of a megabyte is cut
        self.read_all(page)
        shown = " ".join(self.text("main"))
        self.assertIn("<img src=x onerror=window.hacked=1>", shown)  # as text
        self.assertNotIn("\u202e", shown)  # made visible

    def test_names_in_traces(self):
        few = ("--ranks", "4", "--steps", "20")
        for name, options in {"gpu": ("--phases",), "slow": ("--slow-rank", "2", "--slow-factor", "1.4"),
                              "hang": ("--flavour", "gloo", "--hang-rank", "1")}.items():
            with self.subTest(name):
                made = inputs.named(TRACEGEN, self.folder, "hostile-" + name, inputs.HOSTILE, *few, *options)
                page = self.page_of("hostile-" + name, *made)
                self.assertLess(os.path.getsize(page), 1_000_000)
                self.read_all(page)
                shown = " ".join(self.text("main"))
                self.assertIn(inputs.HOSTILE[0], shown)  # as text
                self.assertNotIn("\u202e", shown)
                self.read_all(self.page_of("hostile-diff-" + name, "diff", *made, *self.made["even"]))

    def test_names_in_logs_and_paths(self):
        folder = os.path.join(self.folder, "<img src=x onerror=window.hacked=1>")
        os.mkdir(folder)
        made = inputs.log(folder, "loss </script><script>window.hacked=1</script>".replace("/", "\u2215"),
                          [3 - step / 100 for step in range(80)], lambda step: {word[:200]: step for word in inputs.HOSTILE})
        page = self.page_of("hostile-log", *made)
        self.read_all(page)
        self.read_all(self.page_of("hostile-diff", "diff", *made, *self.made["log"]))

    def test_random_names(self):
        dice = random.Random(11)
        alphabet = [*"<>&'\"/\\`${}()[];:=!-#%@ \n\t\0", "script", "onerror=", "</", "<!--", "-->", "]]>", "\u2028",
                    "\u202e", "\ud83d", "\U0001f4a3", "é", "window.hacked=1", "x" * 500]
        for turn in range(6):
            names = ["".join(dice.choice(alphabet) for _ in range(dice.randint(1, 60))) for _ in range(12)]
            made = inputs.kineto(os.path.join(self.folder, f"random{turn}.json"), names)
            with self.subTest(turn):
                self.read_all(self.page_of(f"random{turn}", *made))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]], verbosity=2)
