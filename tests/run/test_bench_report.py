"""What the network's bench prints of what it measured: ratios, bars, and by name what was absent or
broke."""
import pathlib
import sys
import xml.dom.minidom

NATIVE_ONLY = "nothing of ward runs"

BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench"


def summary(report, rate):
    def way(number, **more):
        return {"note": "a way", "control": "cubic", "failed": [], "cpu": [],
                "ttfb": [number, 900.0, 1.0], "rate": [rate, rate], "down": [10.0 * number],
                "up": [number], **more}
    ways = report.summarise({"direct": way(100.0, rate=[1000.0]), "ward": way(200.0, cpu=[0.25]),
                             "haproxy": way(150.0, cpu=[1.0]),
                             "pasta, tap": way(1.0, up=[], failed=["round 1, up: broke off"])})
    whole = {"ways": ways, "absent": {"squid": "apt-get install squid-for-this-test"},
             "memory": {"processes": 2},
             "start": {"without_ms": 2.0, "with_ms": 3.0, "without_min_ms": 1.0,
                       "with_min_ms": 1.5},
             "conditions": {"rounds": 3, "processors": 2, "processor": "one <&>", "kernel": "6",
                            "load_before": 0.0, "as": "as nobody"}}
    whole["bars"] = report.bars(whole)
    return whole


def test_report(t):
    """Medians and their ratios; a bar that is missed says so; nothing is left out in silence."""
    sys.path.insert(0, str(BENCH))
    try:
        import net_doc
        import net_peers
        import net_report
    finally:
        sys.path.remove(str(BENCH))
    good, bad = summary(net_report, 450.0), summary(net_report, 449.0)
    t.equal(good["ways"]["ward"]["ttfb"], 200.0, "the median")
    t.equal(good["ways"]["ward"]["ttfb_x"], 2.0, "its ratio to the direct way")
    t.equal([b["holds"] for b in good["bars"] if "connections" in b["what"]], [True],
            "just enough connections")
    t.equal([b["holds"] for b in bad["bars"] if "connections" in b["what"]], [False],
            "too few connections")
    for text in (net_report.text(bad), net_doc.page(bad)):
        t.contains(text.lower(), "missed", "the bar")
        t.contains(text, "round 1, up: broke off", "what broke")
        t.contains(text, "squid", "who is absent")
    t.contains(net_report.text(bad), "apt-get install squid-for-this-test", "how to get it")
    xml.dom.minidom.parseString(net_report.svg(bad))
    t.check(net_report.sound(good), "direct and ward were measured")
    del good["ways"]["ward"]["rate"]
    t.check(not net_report.sound(good), "ward was not measured")
    t.contains(net_peers.absent("x", {"no-such-program-anywhere": "its-package"}), "its-package",
               "the package")
    t.equal(net_peers.absent("x", {"sh": "dash"}), None, "what is there")
